/* stack_answer: which sections an answer has, and where their numbers lie. */
#include "server/stack/stack_answer.h"

#include <stdio.h>

#include "core/run/size.h"
#include "server/attention/attention_trace.h"
#include "server/stack/stack_answer_sequences.h"
#include "server/stack/stack_fields.h"

enum { LENGTH_SIZE = 16 };

static const char hidden[] = "hidden", attention[] = "attention", thumbnails[] = "thumbnails";
static const size_t one = 1, zero = 0;

/* --- sections --- */

struct answer_section *stack_answer_add(struct stack_listing *l, const char *group,
                                        const char *name) {
  struct answer_section *s = &l->content->section[l->content->sections++];
  *s = (struct answer_section){.group = group, .name = name, .items = 1, .heads = 1};
  return s;
}

/* A list of rows for each item, with zeros behind them in a rectangle. */
static struct answer_section *add_batch(struct stack_listing *l, const char *group,
                                        const void *data) {
  const struct stack_request *r = l->r;
  struct answer_section *s = stack_answer_add(l, group, NULL);
  s->batch = true;
  s->alike = r->rectangular;
  s->padded = !r->rectangular;
  s->padded_rows = r->widest;
  s->items = r->run->geometry.items;
  s->rows = ANSWER_OF_ITEMS(&r->run->geometry, q, &r->widest);
  if (r->generates) stack_answer_tokens(r, s);
  s->row_room = ROW_ROOM;
  s->data = data;
  s->write = answer_write_floats;
  return s;
}

static struct answer_section *add_rows_of(struct stack_listing *l, const char *group,
                                          const float *data, const size_t *width) {
  struct answer_section *s = add_batch(l, group, data);
  s->padded_width = *width;
  s->width = (struct answer_sizes){width, 0};
  s->begin = l->r->generates ? STACK_OF_SEQUENCES(l->r, row)
                             : ANSWER_OF_ITEMS(&l->r->run->geometry, q_row, &zero);
  s->times = *width;
  return s;
}

static struct answer_section *add_rows(struct stack_listing *l, const char *group,
                                       const float *data) {
  return add_rows_of(l, group, data, &l->form->width);
}

static void add_outputs(struct stack_listing *l) {
  const struct stack_run *run = l->r->run;
  if (run->pool == STACK_POOL_NONE) {
    add_rows(l, NULL, run->outputs)->name = "outputs";
    return;
  }
  struct answer_section *s = stack_answer_add(l, NULL, "outputs");
  s->batch = s->single = s->alike = true;
  s->rows = (struct answer_sizes){&run->geometry.items, 0};
  s->width = (struct answer_sizes){&run->output_size, 0};
  s->begin = (struct answer_sizes){&zero, 0};
  s->row_room = ROW_ROOM;
  s->data = run->outputs;
  s->write = answer_write_floats;
}

static void add_weights(struct stack_listing *l, size_t layer) {
  const struct stack_shown *shown = &l->r->run->shown[layer];
  struct answer_section *s = add_batch(l, attention, shown->weights);
  s->per_head = l->r->run->wish[layer].weights == STACK_WEIGHTS_PER_HEAD;
  if (s->per_head) s->heads = l->form->self.heads;
  s->padded_width = l->r->widest;
  s->width = s->rows;
  if (l->r->generates) stack_answer_keys(l->r, s);
  s->begin = answer_of_list(&l->r->run->geometry, shown->weights_at, &zero);
  s->times = 1;
}

/* The rows and columns of each item's thumbnails are numbers of their own. */
static void add_thumbnails(struct stack_listing *l, size_t layer, const size_t *side) {
  const struct stack_shown *shown = &l->r->run->shown[layer];
  struct answer_section *s = add_batch(l, thumbnails, shown->thumbnails);
  const struct geometry *g = &l->r->run->geometry;
  s->number = NUMBER_BYTE;
  s->per_head = true;
  s->heads = l->form->self.heads;
  s->padded_rows = s->padded_width = size_min(l->r->run->wish[layer].thumbnail, l->r->widest);
  s->rows = s->width = answer_of_list(g, side, &s->padded_rows);
  s->begin = answer_of_list(g, shown->thumbnails_at, &zero);
  s->times = 1;
}

/* How many rows or targets of each item count, in front of the zeros of a rectangle. */
static enum status add_lens(struct stack_listing *l, const char *name, const int32_t *lens,
                            struct arena *arena, struct error *e) {
  const struct stack_request *r = l->r;
  struct answer_section *s = stack_answer_add(l, NULL, name);
  s->number = NUMBER_LENGTH;
  s->alike = true;
  s->rows = (struct answer_sizes){&r->run->geometry.items, 0};
  s->width = (struct answer_sizes){&one, 0};
  s->begin = (struct answer_sizes){&zero, 0};
  s->data = lens;
  s->write = answer_write_integers;
  if (!r->unbatched) return STATUS_OK;
  char *alone = arena_alloc(arena, LENGTH_SIZE, 1, e);
  if (!alone) return e->status;
  snprintf(alone, LENGTH_SIZE, "%d", (int)lens[0]);
  s->instead = alone;
  s->items = 0;
  s->scalar = true;
  return STATUS_OK;
}

/* --- which there are --- */

static const char *name_part(struct stack_listing *l, size_t number, const char *behind) {
  char *name = l->part[l->content->sections - 1];
  snprintf(name, STACK_PART_NAME_SIZE, "%.12s.%zu%s", l->form->name, number, behind);
  return name;
}

static void add_hidden(struct stack_listing *l) {
  const struct stack_run *run = l->r->run;
  if (run->embedded) add_rows(l, hidden, run->embedding)->name = name_part(l, 0, "");
  for (size_t i = 0; i < l->form->layers && run->wish; i++) {
    const struct stack_shown *shown = &run->shown[i];
    if (run->wish[i].input)
      add_rows(l, hidden, shown->input)->name = name_part(l, i, ".self.input");
    if (run->wish[i].hidden) add_rows(l, hidden, shown->hidden)->name = name_part(l, i + 1, "");
  }
}

/* `side` NULL: no thumbnails. */
static void add_attention(struct stack_listing *l, const size_t *side) {
  const struct stack_wish *wish = l->r->run->wish;
  for (size_t i = 0; i < l->form->layers && wish; i++) {
    const bool picture = wish[i].weights == STACK_WEIGHTS_THUMBNAILS;
    if (wish[i].weights == STACK_WEIGHTS_NONE || (picture && !side)) continue;
    if (picture)
      add_thumbnails(l, i, side);
    else
      add_weights(l, i);
    l->content->section[l->content->sections - 1].name = name_part(l, i, ".self");
  }
}

static void add_v2(struct stack_listing *l) {
  const struct body_v2_asked *v2 = &l->r->v2;
  const struct stack_run *run = l->r->run;
  l->content->id = v2->id;
  l->content->id_length = v2->id_length;
  for (size_t i = 0; i < v2->outputs; i++) {
    const enum stack_v2_output which = (enum stack_v2_output)v2->output[i].which;
    if (which == STACK_V2_POOLER_OUTPUT)
      add_outputs(l);
    else if (which == STACK_V2_LOGITS)
      add_rows_of(l, NULL, run->logits, &l->form->embedding.tokens);
    else
      add_rows(l, NULL, run->rows);
    struct answer_section *s = &l->content->section[l->content->sections - 1];
    s->name = stack_output_name(which);
    s->binary = v2->output[i].binary;
  }
}

/* Each sequence has its parts, but arrays as base64 are of all of them. */
static enum status add_generated(struct stack_listing *l, struct arena *arena, struct error *e) {
  if (stack_answer_sequences(l, arena, e)) return e->status;
  if (!l->r->base64) return STATUS_OK;
  add_hidden(l);
  add_attention(l, NULL);
  return STATUS_OK;
}

static enum status add_native(struct stack_listing *l, enum answer_form form, const size_t *side,
                              struct arena *arena, struct error *e) {
  const struct stack_request *r = l->r;
  const bool rectangles = form == ANSWER_SAFETENSORS || r->base64;
  if (r->generates) return add_generated(l, arena, e);
  if (r->scored)
    stack_answer_scores(l, form);
  else
    add_outputs(l);
  add_hidden(l);
  add_attention(l, side);
  if (r->trace)
    l->content->section[l->content->sections++] = attention_trace_section(r->trace, arena, e);
  if (rectangles && add_lens(l, "valid_lens", r->lens, arena, e)) return e->status;
  if (rectangles && r->scored) return add_lens(l, "target_lens", r->target_lens, arena, e);
  return e->status;
}

/* --- the plan --- */

/* More than there will be. */
static size_t count_sections(const struct stack_request *r, size_t layers) {
  enum { BESIDE = 8, A_LAYER = 3 };
  return BESIDE + (r->run->wish ? A_LAYER * layers : 0);
}

/* The rows of each item's thumbnails; all have one size at most. NULL with an error, or where there
 * are none. */
static size_t *make_sides(const struct stack_request *r, size_t layers, struct arena *arena,
                          struct error *e) {
  const struct geometry *g = &r->run->geometry;
  size_t most = 0;
  for (size_t i = 0; i < layers && r->run->wish && !r->generates; i++)
    most = size_max(most, r->run->wish[i].thumbnail);
  size_t *side = most ? arena_alloc(arena, g->items, sizeof *side, e) : NULL;
  for (size_t i = 0; side && i < g->items; i++) side[i] = size_min(most, g->item[i].q);
  return side;
}

size_t stack_answer_recalled(const struct stack_request *r) {
  size_t tokens = 0;
  for (size_t text = 0; text < r->texts; text++)
    tokens += r->generation.sequence[text * r->returns].recalled;
  return tokens;
}

void stack_answer_leave(struct stack_request *r) {
  if (r->run) stack_generation_end(&r->generation, r->run->geometry.items);
}

struct answer_usage stack_answer_usage(const struct stack_request *r) {
  if (!r->generates) return (struct answer_usage){.tokens = r->run->geometry.q_rows};
  return (struct answer_usage){.tokens = r->text_tokens,
                               .cached = stack_answer_recalled(r),
                               .generated = stack_answer_generated,
                               .of = r};
}

enum status stack_answer_plan(struct answer *a, enum answer_form form, const char *model,
                              const struct stack_request *r, const struct body_limits *limits,
                              struct arena *arena, struct error *e) {
  const struct stack_form *f = r->form;
  const size_t sections = count_sections(r, f->layers);
  struct answer_content *content = arena_alloc(arena, 1, sizeof *content, e);
  struct answer_section *section = arena_alloc(arena, sections, sizeof *section, e);
  struct stack_listing l = {.r = r,
                            .form = f,
                            .content = content,
                            .part = arena_alloc(arena, sections, sizeof *l.part, e)};
  const size_t *side = make_sides(r, f->layers, arena, e);
  *a = (struct answer){.form = form};
  if (e->status) return e->status;
  *content = (struct answer_content){.model = model,
                                     .unbatched = r->unbatched,
                                     .base64 = r->base64,
                                     .left = r->run->left,
                                     .section = section};
  if (form == ANSWER_V2)
    add_v2(&l);
  else if (add_native(&l, form, side, arena, e))
    return e->status;
  content->has_usage = form != ANSWER_V2;
  content->usage = stack_answer_usage(r);
  return answer_plan(a, form, content, limits->max_answer_bytes, arena, e);
}
