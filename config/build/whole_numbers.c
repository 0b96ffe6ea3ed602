/* whole_numbers: reads the numbers of whole models, or makes those of random ones. A struct
 * whole_reader keeps the first failure: after it every read returns NULL. */
#include "config/build/whole_numbers.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/build/layer/layout_matrix.h"
#include "config/build/model.h"
#include "config/build/plan/whole_find.h"
#include "config/build/whole_random.h"
#include "config/document/digest_tree.h"
#include "config/document/text.h"
#include "core/base/huge.h"
#include "core/base/size.h"
#include "core/base/team.h"

enum { COMPARED = 4 * 1024 }; /* numbers that are compared at a time */

/* The reading of a stack's numbers into an arena. */
struct whole_reader {
  const struct whole_plan *p;
  const struct whole_stack *stack;
  struct arena *a;
  struct error *e; /* the first failure */
};

/* Reads a part of a tensor into `out`, or makes random numbers. */
static enum status fill(const struct whole_reader *r, const struct layout_part *part,
                        bool transposed, const struct whole_place *at, bool bias, float *out) {
  if (r->p->source.file)
    return layout_matrix_read(whole_plan_file(r->p, at->role), part, transposed, out, r->e);
  whole_random_fill(r->p, r->stack, at, bias, out);
  return r->e->status;
}

/* The same, into the arena. NULL after a failure. */
static float *read_some(const struct whole_reader *r, const struct layout_part *part,
                        bool transposed, const struct whole_place *at, bool bias) {
  float *out =
      r->e->status ? NULL : arena_alloc(r->a, part->rows * part->columns, sizeof *out, r->e);
  if (out) fill(r, part, transposed, at, bias, out);
  return out;
}

/* Reads the weight or the bias of a role. NULL if there is none, or after a failure. */
static float *read_part(const struct whole_reader *r, enum whole_role role, size_t layer,
                        bool bias) {
  const struct layout_matrix *m = whole_plan_part(r->stack, role, layer);
  const struct whole_place at = {role, layer};
  if (!m->found || (bias && !m->has_bias)) return NULL;
  return read_some(r, bias ? &m->bias : &m->weight, !bias && m->transposed, &at, bias);
}

/* A refusal of an arena means for a load that memory ran out. */
static enum status name_memory(struct error *e) {
  if (e->status == STATUS_TOO_LARGE || e->status == STATUS_OVERLOADED)
    e->status = STATUS_OUT_OF_MEMORY;
  return e->status;
}

static struct stack_norm read_norm(const struct whole_reader *r, enum whole_role role,
                                   size_t layer) {
  float *factor = read_part(r, role, layer, false);
  const size_t count = whole_plan_part(r->stack, role, layer)->weight.columns;
  for (size_t i = 0; factor && r->stack->family->above_one && i < count; i++) factor[i] += 1;
  return (struct stack_norm){.factor = factor, .shift = read_part(r, role, layer, true)};
}

/* The place of a role's numbers: in struct stack_layer or, of a role of the stack, in struct
 * stack_form. */
static const size_t places[WHOLE_ROLES] = {
#define WHOLE_LAYER(id, kind, block, number, random, out, in, place) \
  [WHOLE_##id] = offsetof(struct stack_layer, place),
#define WHOLE_STACK(id, kind, block, number, random, out, in, place, required) \
  [WHOLE_##id] = offsetof(struct stack_form, place),
#define WHOLE_SHARED(id, kind, block, number, random, out, in, place, required) \
  [WHOLE_##id] = offsetof(struct stack_layer, place),
#include "config/family/whole_roles.def"
};

/* The roles of the stack that each layer reads. */
static const bool shared[WHOLE_ROLES] = {
#define WHOLE_STACK(id, ...)
#define WHOLE_SHARED(id, ...) [WHOLE_##id] = true,
#include "config/family/whole_roles.def"
};

/* Reads the numbers of a role to their place in `out`. */
static void read_role(const struct whole_reader *r, enum whole_role role, size_t layer, void *out) {
  void *place = (char *)out + places[role];
  switch (whole_roles[role].kind) {
  case WHOLE_IS_MATRIX:
    *(struct layer_matrix *)place =
        (struct layer_matrix){.weight = read_part(r, role, layer, false),
                              .bias = read_part(r, role, layer, true)};
    break;
  case WHOLE_IS_NORM:
    *(struct stack_norm *)place = read_norm(r, role, layer);
    break;
  case WHOLE_IS_HEAD_NORM:
    *(const float **)place = read_norm(r, role, layer).factor;
    break;
  case WHOLE_IS_TABLE:
  case WHOLE_IS_VECTOR:
    *(const float **)place = read_part(r, role, layer, false);
    break;
  }
}

/* Reads the table of tokens to memory that the stack takes: often it is most of a model. */
static void read_table(const struct whole_reader *r, struct stack_embedding *out) {
  const struct whole_place at = {WHOLE_TOKEN, 0};
  const struct layout_matrix *m = whole_plan_part(r->stack, at.role, at.layer);
  size_t count, bytes;
  if (!m->found || r->e->status || whole_plan_is_lent(r->p, r->stack, at.role)) return;
  float *table = size_mul(m->weight.rows, m->weight.columns, &count) &&
                         size_mul(count, sizeof *table, &bytes) && bytes <= SIZE_MAX / 8
                     ? huge_alloc(bytes)
                     : NULL;
  if (!table) {
    error_no_memory(r->e);
  } else if (fill(r, &m->weight, m->transposed, &at, false, table) == STATUS_OK) {
    out->token = table;
    out->given = true;
  } else {
    free(table);
  }
}

/* Makes the one class of a score by logits: the difference of two rows of the language modeling
 * head, or one of them. */
static enum status make_logit_score(const struct whole_reader *r, struct stack_form *form) {
  const struct whole_logit_score *score = whole_plan_logit_score(r->p);
  const struct stack_output *o = &form->output;
  const float *rows = o->tied ? form->embedding.token : o->matrix.weight, *bias = o->matrix.bias;
  const float scale = o->scale != 0 ? o->scale : 1;
  const size_t d = form->width;
  float *sum = r->e->status ? NULL : arena_alloc(r->a, d + 1, sizeof *sum, r->e);
  if (!sum) return r->e->status;
  memset(sum, 0, (d + 1) * sizeof *sum);
  for (size_t i = 0; i < score->tokens; i++) {
    const size_t token = (size_t)score->token[i];
    const float sign = i == 0 ? 1 : -1;
    for (size_t t = 0; t < d; t++) sum[t] += sign * scale * rows[token * d + t];
    if (bias) sum[d] += sign * bias[token];
  }
  form->classifier.classes = (struct layer_matrix){sum, bias ? sum + d : NULL};
  return STATUS_OK;
}

enum status whole_numbers_stack(const struct whole_plan *p, const struct whole_stack *s,
                                struct arena *a, struct stack_form *form, struct error *e) {
  const struct whole_reader r = {p, s, a, e};
  *form = s->form;
  for (enum whole_role role = WHOLE_LAYER_ROLES; role < WHOLE_ROLES; role++)
    if (!shared[role] && role != WHOLE_TOKEN) read_role(&r, role, 0, form);
  read_table(&r, &form->embedding);
  if (whole_plan_logit_score(p)->tokens) make_logit_score(&r, form);
  return name_memory(e);
}

enum status whole_numbers_layer(const struct whole_plan *p, const struct whole_stack *s,
                                size_t layer, struct arena *a, struct stack_layer *out,
                                struct error *e) {
  const struct whole_reader r = {p, s, a, e};
  const size_t origin = whole_plan_origin(p, s, layer);
  *out = (struct stack_layer){.kind = whole_words_kind(&p->words, layer),
                              .repeats = origin != layer,
                              .of = origin};
  if (out->repeats) return e->status;
  for (enum whole_role role = 0; role < WHOLE_LAYER_ROLES; role++) read_role(&r, role, layer, out);
  for (enum whole_role role = WHOLE_LAYER_ROLES; role < WHOLE_ROLES; role++)
    if (shared[role]) read_role(&r, role, 0, out);
  return name_memory(e);
}

enum status whole_numbers_blame(const struct whole_plan *p, const struct whole_stack *s,
                                size_t layer, struct error *e) {
  const bool whole = layer == s->form.layers;
  const enum gemm_engine engine = gemm_engine_for(s->form.compute, GEMM_PACKED);
  for (enum whole_role role = whole ? WHOLE_LAYER_ROLES : 0;
       role < (whole ? WHOLE_ROLES : WHOLE_LAYER_ROLES) && e->status == STATUS_CONFIG; role++) {
    const struct layout_matrix *m = whole_plan_part(s, role, layer);
    const bool tied = role == WHOLE_TOKEN && s->form.output.tied;
    if (!m->found || (whole_roles[role].kind != WHOLE_IS_MATRIX && !tied)) continue;
    /* The matrix that fails again is the one. */
    struct error why = {0};
    struct arena a;
    size_t out, in;
    arena_init(&a, NULL);
    const struct whole_reader r = {p, s, &a, &why};
    const float *weight = read_part(&r, role, layer, false);
    whole_plan_size(s, role, &out, &in);
    if (weight) gemm_free(gemm_new(out, in, 1, weight, NULL, engine, &why));
    arena_free(&a);
    if (why.status != STATUS_CONFIG) continue;
    char stem[LAYOUT_ADDRESS_SIZE];
    const char *dot = whole_find_name(p, s, &(struct whole_place){role, layer}, stem);
    if (p->source.file) return text_before(e, "tensor \"%.120s\": ", m->weight.tensor->name);
    return text_before(e, "tensor \"%.120s%sweight\": ", stem, dot);
  }
  return e->status;
}

/* --- the digest --- */

/* A part of a tensor as the digest sees it; several parts of one tensor follow each other. */
struct whole_piece {
  const char *name; /* of the tensor */
  size_t at;        /* the order of the parts in it */
  const struct whole_stack *stack;
  struct whole_place place;
  bool bias;
  struct layout_part part; /* as it is stored */
};

struct whole_pieces {
  size_t count;
  struct whole_piece *piece;
  struct arena names; /* of random tensors */
};

static int compare_pieces(const void *left, const void *right) {
  const struct whole_piece *a = left, *b = right;
  const int order = strcmp(a->name, b->name);
  if (order != 0) return order;
  if (a->at != b->at) return a->at > b->at ? 1 : -1;
  return (int)a->place.role - (int)b->place.role; /* the files of dense layers have equal names */
}

static void add_piece(const struct whole_plan *p, struct whole_pieces *all,
                      const struct whole_stack *stack, const struct whole_place *place,
                      struct error *e) {
  const struct layout_matrix *m = whole_plan_part(stack, place->role, place->layer);
  if (whole_plan_is_lent(p, stack, place->role)) return;
  for (int bias = 0; m->found && bias <= m->has_bias; bias++) {
    struct layout_part part = bias ? m->bias : m->weight;
    if (!bias && m->transposed) {
      /* Columns of a packed tensor are not contiguous: the first piece is then the whole tensor. */
      part.columns = (size_t)part.tensor->dim[1];
      if (part.column > 0) continue;
    }
    struct whole_piece *piece = &all->piece[all->count++];
    *piece = (struct whole_piece){.stack = stack, .place = *place, .bias = bias, .part = part};
    if (p->source.file) {
      piece->at = part.row + part.column;
      piece->name = part.tensor->name;
      continue;
    }
    /* Random tensors have the names of nn.Transformer, whose queries, keys and values are packed.
     */
    char stem[LAYOUT_ADDRESS_SIZE], whole[LAYOUT_ADDRESS_SIZE + 16];
    const char *dot = whole_find_name(p, stack, place, stem);
    snprintf(whole, sizeof whole, "%s%s%s", stem, dot, bias ? "bias" : "weight");
    char *name = arena_alloc(&all->names, strlen(whole) + 1, 1, e);
    piece->at = place->role;
    piece->name = name ? memcpy(name, whole, strlen(whole) + 1) : "";
  }
}

static enum status list_pieces(const struct whole_plan *p, struct whole_pieces *all,
                               struct error *e) {
  const size_t layers = p->stack[WHOLE_ENCODER].form.layers + p->stack[WHOLE_DECODER].form.layers;
  const size_t most = 2 * (layers * WHOLE_LAYER_ROLES + WHOLE_SIDES * WHOLE_ROLES);
  arena_init(&all->names, NULL);
  all->count = 0;
  all->piece = malloc(most * sizeof *all->piece);
  if (!all->piece) return error_no_memory(e);
  for (enum whole_side side = 0; side < WHOLE_SIDES; side++) {
    const struct whole_stack *s = &p->stack[side];
    for (size_t i = 0; i < s->form.layers; i++)
      for (enum whole_role role = 0; role < WHOLE_LAYER_ROLES; role++)
        if (whole_plan_origin(p, s, i) == i)
          add_piece(p, all, s, &(struct whole_place){role, i}, e);
    for (enum whole_role role = WHOLE_LAYER_ROLES; role < WHOLE_ROLES; role++)
      add_piece(p, all, s, &(struct whole_place){role, 0}, e);
  }
  qsort(all->piece, all->count, sizeof *all->piece, compare_pieces);
  return name_memory(e);
}

static const float *read_piece(const struct whole_plan *p, const struct whole_piece *piece,
                               struct arena *a, struct error *e) {
  const struct whole_reader r = {p, piece->stack, a, e};
  return read_some(&r, &piece->part, false, &piece->place, piece->bias);
}

static size_t piece_bytes(const struct whole_piece *piece) {
  return piece->part.rows * piece->part.columns * sizeof(float);
}

/* Hashes all pieces at once: they are in memory together. */
static enum status digest_small(const struct whole_plan *p, const struct whole_pieces *all,
                                char out[MODEL_DIGEST_SIZE], struct error *e) {
  unsigned char digest[DIGEST_SIZE];
  struct arena a;
  struct digest_part *part = calloc(all->count + 1, sizeof *part);
  if (!part) return error_no_memory(e);
  arena_init(&a, NULL);
  for (size_t i = 0; i < all->count; i++) {
    const struct whole_piece *one = &all->piece[i];
    part[i].bytes = read_piece(p, one, &a, e);
    part[i].size = piece_bytes(one);
  }
  if (name_memory(e) == STATUS_OK) {
    digest_parts(part, all->count, digest);
    digest_hex(digest, out);
  }
  arena_free(&a);
  free(part);
  return e->status;
}

/* Hashes one piece after the other. */
static enum status digest_large(const struct whole_plan *p, const struct whole_pieces *all,
                                char out[MODEL_DIGEST_SIZE], struct error *e) {
  struct digest_tree_flow *flow = digest_tree_flow_new(p->count * sizeof(float), e);
  for (size_t i = 0; flow && i < all->count && e->status == STATUS_OK; i++) {
    const struct whole_piece *one = &all->piece[i];
    struct arena a;
    arena_init(&a, NULL);
    const float *numbers = read_piece(p, one, &a, e);
    if (name_memory(e) == STATUS_OK) digest_tree_flow_add(flow, numbers, piece_bytes(one), e);
    arena_free(&a);
  }
  if (flow && e->status == STATUS_OK) digest_tree_flow_end(flow, out);
  digest_tree_flow_free(flow);
  return e->status;
}

enum status whole_numbers_digest(const struct whole_plan *p, char out[MODEL_DIGEST_SIZE],
                                 const char **name, struct error *e) {
  struct whole_pieces all;
  const bool large = p->count * sizeof(float) > MODEL_SMALL;
  *name = large ? "digest" : "sha256";
  if (list_pieces(p, &all, e) == STATUS_OK) (large ? digest_large : digest_small)(p, &all, out, e);
  arena_free(&all.names);
  free(all.piece);
  return e->status;
}

/* --- copies of the table of tokens --- */

struct whole_copies {
  struct checkpoint *file;
  const struct checkpoint_entry *one, *other;
};

static enum status refuse_copy(const struct whole_copies *c, struct error *e) {
  return error_set(e, STATUS_CONFIG,
                   "tensor \"%.120s\" differs from \"%.120s\", of which it should be a copy",
                   c->other->name, c->one->name);
}

static enum status compare_piece(void *of, size_t index, struct error *e) {
  const struct whole_copies *c = of;
  float one[COMPARED], other[COMPARED];
  const uint64_t at = (uint64_t)index * COMPARED;
  const size_t n = c->one->count - at < COMPARED ? (size_t)(c->one->count - at) : COMPARED;
  if (checkpoint_read_floats(c->file, c->one, at, n, one, e) ||
      checkpoint_read_floats(c->file, c->other, at, n, other, e))
    return e->status;
  for (size_t i = 0; i < n; i++)
    if (one[i] != other[i]) return refuse_copy(c, e);
  return STATUS_OK;
}

/* Compares the table of tokens with a copy, which may be NULL. */
static enum status check_copy(const struct whole_plan *p, const struct checkpoint_entry *copy,
                              struct error *e) {
  const struct whole_stack *s =
      &p->stack[p->stack[WHOLE_DECODER].family ? WHOLE_DECODER : WHOLE_ENCODER];
  struct whole_copies c = {p->source.file, s->part[WHOLE_TOKEN].weight.tensor, copy};
  if (!c.other || c.other == c.one) return STATUS_OK;
  if (checkpoint_check_tensor(c.other, e)) return e->status;
  if (c.other->rank != 2 || c.other->dim[0] != c.one->dim[0] || c.other->dim[1] != c.one->dim[1] ||
      c.other->by_columns != c.one->by_columns)
    return refuse_copy(&c, e);
  const size_t pieces = (size_t)((c.one->count + COMPARED - 1) / COMPARED);
  return (checkpoint_reads_anywhere(c.file) ? team_split : team_row)(pieces, compare_piece, &c, e);
}

enum status whole_numbers_check_copies(const struct whole_plan *p, struct error *e) {
  const struct whole_stack *decoder = &p->stack[WHOLE_DECODER];
  const char *head = p->masked ? p->masked->matrix : decoder->family ? decoder->family->head : NULL;
  char name[LAYOUT_ADDRESS_SIZE + 64];
  if (!p->source.file) return STATUS_OK;
  for (size_t i = 0; i < WHOLE_TABLES_MOST && p->family->table[i]; i++) {
    if (!p->family->tied || p->words.apart) break;
    snprintf(name, sizeof name, "%s%s.weight", p->prefix, p->family->table[i]);
    if (check_copy(p, checkpoint_find(p->source.file, name), e)) return e->status;
  }
  if (!(p->masked ? whole_plan_reader(p) : decoder)->form.output.tied) return STATUS_OK;
  snprintf(name, sizeof name, "%s.weight", head);
  return check_copy(p, whole_find_near(p, name), e);
}
