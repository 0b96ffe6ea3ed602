/* whole_pieces: lists the blocks of a model, their widths, parameters and multiplications. */
#include "config/build/whole_pieces.h"

#include <stdio.h>
#include <stdlib.h>

#include "config/describe/definition.h"

const char *const whole_block_kinds[] = {[BLOCK_EMBEDDINGS] = "embeddings",
                                         [BLOCK_ATTENTION] = "attention",
                                         [BLOCK_FEED_FORWARD] = "feed_forward",
                                         [BLOCK_NORM] = "norm",
                                         [BLOCK_POOLER] = "pooler",
                                         [BLOCK_CLASSIFIER] = "classifier",
                                         [BLOCK_OUTPUT] = "output"};

enum { BESIDE_LAYERS = 7 }; /* most blocks of a stack that are not in a layer */

/* The listing of one stack. */
struct whole_listing {
  struct whole *w;
  const struct whole_plan *p;
  const struct whole_stack *stack;
};

/* --- numbers --- */

/* Does the encoder, which is listed first, have it too? */
static bool is_borrowed(const struct whole_listing *l, enum whole_role role) {
  const struct whole_stack *encoder = &l->p->stack[WHOLE_ENCODER];
  return l->stack != encoder && whole_plan_is_lent(l->p, encoder, role);
}

/* Counts the numbers of all roles of a block. Each role belongs to one: the blocks' parameters add
 * up to the model's. */
static uint64_t count_roles(const struct whole_listing *l, enum whole_role_block block,
                            size_t layer) {
  uint64_t count = 0;
  const bool repeats = whole_plan_origin(l->p, l->stack, layer) != layer;
  for (enum whole_role role = 0; role < WHOLE_ROLES; role++) {
    if (whole_roles[role].block != block || (repeats && role < WHOLE_LAYER_ROLES)) continue;
    const struct layout_matrix *m = whole_plan_part(l->stack, role, layer);
    if (!m->found || is_borrowed(l, role)) continue;
    count += (uint64_t)m->weight.rows * m->weight.columns + (m->has_bias ? m->bias.columns : 0);
  }
  return count;
}

static bool has_role(const struct whole_listing *l, enum whole_role role) {
  return whole_plan_part(l->stack, role, 0)->found;
}

/* --- blocks --- */

/* Appends a block that is not in a layer. */
static struct whole_block *add_block(const struct whole_listing *l, enum whole_block_kind kind,
                                     const char *name, enum whole_role_block block) {
  struct whole_block *b = &l->w->block[l->w->blocks++];
  b->kind = kind;
  b->side = l->stack->form.name;
  b->layer = WHOLE_NO_LAYER;
  b->parameters = count_roles(l, block, 0);
  snprintf(b->name, sizeof b->name, "%.8s.%.12s", b->side, name);
  return b;
}

static struct whole_block *add_in_layer(const struct whole_listing *l, enum whole_block_kind kind,
                                        const char *name, enum whole_role_block block,
                                        size_t layer) {
  struct whole_block *b = add_block(l, kind, name, block);
  b->layer = layer;
  b->parameters = count_roles(l, block, layer);
  snprintf(b->name, sizeof b->name, "%.8s.%u.%.12s", b->side,
           (unsigned)layer % (DEFINITION_LAYER_MAX + 1), name);
  return b;
}

static void add_width(struct whole_block *b, size_t width) { b->width[b->widths++] = width; }

/* Adds a matrix that every row is multiplied with. */
static void add_matrix(struct whole_block *b, size_t in, size_t out) {
  if (b->widths == 0 || b->kind == BLOCK_EMBEDDINGS) add_width(b, in);
  add_width(b, out);
  b->token += (uint64_t)in * out;
}

/* Keys and values are computed once for each row they come from: in a cross-attention, the
 * encoder's. */
static void add_attention(const struct whole_listing *l, size_t layer, bool cross) {
  const struct layer_shape *s = cross ? &l->stack->form.cross : &l->stack->form.kind->self;
  const uint64_t heads = s->heads * s->head_size, size = s->kv_heads * s->head_size;
  const uint64_t made = size * (s->key_size + s->value_size);
  const enum whole_role_block block = cross ? WHOLE_OF_CROSS : WHOLE_OF_SELF;
  struct whole_block *b = add_in_layer(l, BLOCK_ATTENTION, cross ? "cross" : "self", block, layer);
  if (!cross && layer == 0) b->parameters += count_roles(l, WHOLE_OF_FIRST, layer);
  add_width(b, s->query_size);
  add_width(b, s->heads);
  add_width(b, s->head_size);
  add_width(b, s->output_size);
  b->token = heads * (s->query_size + s->output_size) + (cross ? 0 : made);
  b->key = cross ? made : 0;
  b->pair = 2 * heads; /* for the score, and for the weighted value */
}

/* Adds the pooler and the dense layers, which make one vector of an item. */
static void add_pooling(const struct whole_listing *l) {
  const struct stack_form *f = &l->stack->form;
  if (has_role(l, WHOLE_POOLER))
    add_matrix(add_block(l, BLOCK_POOLER, "pooler", WHOLE_OF_POOLER), f->width, f->width);
  if (!has_role(l, WHOLE_DENSE)) return;
  struct whole_block *b = add_block(l, BLOCK_POOLER, "dense", WHOLE_OF_DENSE);
  for (unsigned i = 0; i < STACK_DENSE_MOST && has_role(l, WHOLE_DENSE + 2 * i); i++) {
    size_t out, in;
    whole_plan_size(l->stack, WHOLE_DENSE + 2 * i, &out, &in);
    add_matrix(b, in, out);
    if (has_role(l, WHOLE_DENSE_SKIP + 2 * i)) b->token += (uint64_t)in * out;
  }
}

static void add_stack(const struct whole_listing *l) {
  const struct stack_form *f = &l->stack->form;
  const struct stack_embedding *m = &f->embedding;
  if (m->tokens > 0 || m->positions != POSITIONS_NONE ||
      count_roles(l, WHOLE_OF_EMBEDDINGS, 0) > 0) {
    struct whole_block *b = add_block(l, BLOCK_EMBEDDINGS, "embeddings", WHOLE_OF_EMBEDDINGS);
    if (m->tokens > 0) add_width(b, m->tokens);
    if (has_role(l, WHOLE_PROJECT))
      add_matrix(b, stack_form_embedded(f), f->width);
    else
      add_width(b, f->width);
    b->tied = is_borrowed(l, WHOLE_TOKEN);
  }
  for (size_t i = 0; i < f->layers; i++) {
    add_attention(l, i, false);
    if (f->cross.heads) add_attention(l, i, true);
    struct whole_block *b =
        add_in_layer(l, BLOCK_FEED_FORWARD, "feed_forward", WHOLE_OF_FORWARD, i);
    add_matrix(b, f->width, f->forward_size);
    add_matrix(b, f->forward_size, f->width);
    if (whole_plan_part(l->stack, WHOLE_GATE, i)->found)
      b->token += (uint64_t)f->width * f->forward_size;
    if (i > 0) continue;
    b->parameters += count_roles(l, WHOLE_OF_CONVOLUTION, i);
    b->token += (uint64_t)f->width * f->width * f->convolution.taps;
  }
  if (has_role(l, WHOLE_NORM_LAST))
    add_width(add_block(l, BLOCK_NORM, "norm", WHOLE_OF_NORM), f->width);
  add_pooling(l);
  if (f->classifier.count > 0) {
    struct whole_block *b = add_block(l, BLOCK_CLASSIFIER, "classifier", WHOLE_OF_CLASSIFIER);
    /* Its first matrix may be the pooler, which is a block of its own. */
    if (has_role(l, WHOLE_CLASS_FIRST)) add_matrix(b, f->width, f->width);
    add_matrix(b, f->width, f->classifier.count);
    b->tied = !has_role(l, WHOLE_CLASSES); /* rows of the language modeling head */
  }
  if (has_role(l, WHOLE_WEIGHER))
    add_matrix(add_block(l, BLOCK_OUTPUT, "sparse", WHOLE_OF_SPARSE), f->width, 1);
  if (f->output.tied || has_role(l, WHOLE_HEAD)) {
    struct whole_block *b = add_block(l, BLOCK_OUTPUT, "output", WHOLE_OF_OUTPUT);
    if (has_role(l, WHOLE_TRANSFORM)) add_matrix(b, f->width, stack_form_output(f));
    add_matrix(b, stack_form_output(f), f->embedding.tokens);
    b->tied = f->output.tied;
  }
}

enum status whole_pieces_list(struct whole *w, const struct whole_plan *p, struct error *e) {
  size_t most = 0;
  for (enum whole_side i = 0; i < WHOLE_SIDES; i++) {
    const struct stack_form *f = &p->stack[i].form;
    most += stack_form_attentions(f) + f->layers + BESIDE_LAYERS;
  }
  w->block = calloc(most, sizeof *w->block);
  if (!w->block) return error_no_memory(e);
  for (enum whole_side i = 0; i < WHOLE_SIDES; i++)
    if (p->stack[i].family) add_stack(&(struct whole_listing){w, p, &p->stack[i]});
  return STATUS_OK;
}
