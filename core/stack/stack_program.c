/* stack_program: the steps of a stack, and what those that take rows have in common. */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/size.h"
#include "core/stack/stack_parts.h"

/* --- rows --- */

bool stack_rows_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_step *s = stack_step_of(step);
  const size_t rows = stack_run_of(u->run)->geometry.q_rows;
  if (at->row >= rows) return false;
  u->row = at->row;
  u->rows = size_min(s->rows, rows - at->row);
  at->row += u->rows;
  return true;
}

double stack_rows_work(const struct step *step, const struct unit *u) {
  return stack_step_of(step)->row_work * (double)u->rows;
}

size_t stack_share_columns(const struct step *step, size_t rows, double work, size_t least) {
  enum { UNIT_WORK = 4000000, UNIT_COLUMNS = 256 }; /* some tens of microseconds; at least */
  if (rows == 0 || rows > STACK_SHARED_ROWS || work * (double)rows < 2.0 * UNIT_WORK) return 0;
  const double column = stack_step_of(step)->row_work / (double)step->columns * (double)rows;
  const size_t columns = size_max(UNIT_COLUMNS * least, (size_t)(UNIT_WORK / column));
  return size_min(size_round_up(columns, KERNEL_PANEL_MAX), step->columns);
}

size_t stack_item_of(const struct geometry *g, size_t row) {
  size_t first = 0, end = g->items; /* the item is the last one that begins no later */
  while (first + 1 < end) {
    const size_t middle = first + (end - first) / 2;
    if (g->item[middle].q_row <= row)
      first = middle;
    else
      end = middle;
  }
  return first;
}

void stack_note_rows(const struct stack *s, const struct unit *u, const float *row, uint32_t top) {
  const size_t d = s->form.width;
  if (top < KERNEL_NOT_FINITE) return;
  for (size_t i = 0; i < u->rows; i++)
    if (s->kernel->peak(d, row + i * d) >= KERNEL_NOT_FINITE) {
      run_note_fault(u->run, u->step, u->row + i);
      return;
    }
}

enum status stack_fault(const struct stack_step *s, const struct run *r, const char *what,
                        uint64_t row, struct error *e) {
  const struct geometry *g = &stack_run_of(r)->geometry;
  const struct stack_form *f = &s->stack->form;
  const size_t item = stack_item_of(g, row);
  char layer[STACK_NAME_SIZE] = "";
  if (s->layer < f->layers) snprintf(layer, sizeof layer, " layer %zu", s->layer);
  const size_t before = (size_t)g->item[item].offset; /* rows of earlier rounds */
  return error_set(e, STATUS_NOT_FINITE,
                   "%s%s: %s position %zu of item %zu exceeds the float32 range", f->name, layer,
                   what, before + (size_t)row - g->item[item].q_row,
                   stack_named(stack_run_of(r), item));
}

/* --- the list --- */

enum {
  OWN_PER_LAYER = 8, /* lens, show and join of two attentions, up, down, join */
  OWN_BESIDE = 15,   /* embed, enter, last, pool, output, ablation; recall, logits, next, search,
                        turn,   reveal, settle, keep, release */
  ROWS_SMALL = 32,   /* of a unit of a step that touches each number a few times: */
  TOUCH_WORK = 20,   /* operations for a number there, about */
  TOUCH_ROW = 100    /* and for a row */
};

static struct stack_step *make_step(struct stack *s, const struct step *step, size_t layer) {
  struct stack_step *own = &s->own[s->owns++];
  *own = (struct stack_step){.step = *step, .stack = s, .layer = layer};
  return own;
}

static struct stack_step *add_step(struct stack *s, const struct step *step, size_t layer) {
  struct stack_step *own = make_step(s, step, layer);
  s->list[s->program.steps++] = &own->step;
  return own;
}

/* A step that goes through all rows, with so many operations for each. */
static struct stack_step *add_rows(struct stack *s, const struct step *step, size_t layer,
                                   double work) {
  struct stack_step *own = add_step(s, step, layer);
  own->rows = ROWS_SMALL;
  own->row_work = work;
  s->row_work += work;
  return own;
}

static void add_join(struct stack *s, enum join_place place, size_t layer) {
  const double work = TOUCH_WORK * (double)s->form.width + TOUCH_ROW;
  add_rows(s, &stack_step_join, layer, work)->join = place;
}

static void add_attention(struct stack *s, size_t number, size_t layer, enum join_place join) {
  struct stack_attending *a = stack_attending(s, number);
  const size_t call_at = offsetof(struct stack_run, call) + number * sizeof(struct call);
  const struct layer_place at = {
      .layer = a->layer, .call_at = call_at, .first = layer == 0, .where = a->where};
  s->program.steps += layer_list_steps(&at, a->step, s->list + s->program.steps);
  add_step(s, &stack_step_show, layer)->attention = number;
  add_join(s, join, layer);
}

/* Its products, and the activation: some thirty operations a number. */
static void add_forward(struct stack *s, size_t layer) {
  const struct stack_form *f = &s->form;
  const double d = (double)f->width, size = (double)f->forward_size;
  const double up = size * ((s->layer[layer].gate ? 4.0 : 2.0) * d + 30), down = 2.0 * d * size;
  struct stack_step *own = add_rows(s, &stack_step_up, layer, up);
  own->step.columns = f->forward_size, own->tile_work = up + down;
  own = add_rows(s, &stack_step_down, layer, down);
  own->step.columns = f->width, own->down = true;
}

static void add_output(struct stack *s, const struct step *step, size_t layer) {
  if (!s->output) return;
  struct stack_step *own = add_step(s, step, layer);
  own->rows = STACK_OUTPUT_ROWS;
  own->row_work = stack_output_work(s);
}

/* What enters it is looked at before anything is added to it. */
static void add_layer(struct stack *s, size_t layer) {
  add_output(s, &stack_step_lens, layer);
  add_attention(s, layer, layer, JOIN_SELF);
  if (s->form.cross.heads) add_attention(s, s->form.layers + layer, layer, JOIN_CROSS);
  add_forward(s, layer);
  add_join(s, JOIN_FORWARD, layer);
}

/* A round goes through the layers as any run does. Nothing is shown or pooled; what stands in the
 * place of that says which token comes next. */
static bool is_of_rounds(const struct step *step) {
  return step->compute != stack_step_show.compute && step->compute != stack_step_pool.compute &&
         step->compute != stack_step_output.compute && step->compute != stack_step_lens.compute;
}

static void list_rounds(struct stack *s, const struct step **list) {
  struct program *p = &s->rounds;
  const size_t tokens = s->form.embedding.tokens;
  *p = (struct program){.step = list, .again = stack_rounds_again};
  struct stack_step *own = make_step(s, &stack_step_recall, s->form.layers);
  own->row_work = stack_recall_work(s);
  list[p->steps++] = &own->step;
  for (unsigned i = 0; i < s->program.steps; i++)
    if (is_of_rounds(s->list[i])) list[p->steps++] = s->list[i];
  own = make_step(s, &stack_step_logits, s->form.layers);
  own->step.columns = tokens;
  own->row_work = 2.0 * (double)s->form.width * (double)tokens;
  list[p->steps++] = &own->step;
  own = make_step(s, &stack_step_next, s->form.layers);
  own->row_work = stack_output_work(s) - 2.0 * (double)s->form.width * (double)tokens;
  list[p->steps++] = &own->step;
  list[p->steps++] = &make_step(s, &stack_step_search, s->form.layers)->step;
  list[p->steps++] = &make_step(s, &stack_step_turn, s->form.layers)->step;
  list[p->steps++] = &make_step(s, &stack_step_reveal, s->form.layers)->step;
  list[p->steps++] = &make_step(s, &stack_step_settle, s->form.layers)->step;
  own = make_step(s, &stack_step_keep, s->form.layers);
  own->row_work = stack_recall_work(s);
  list[p->steps++] = &own->step;
  list[p->steps++] = &make_step(s, &stack_step_release, s->form.layers)->step;
}

/* The same steps, and one more. Where a head is left out, the layers before its own are, too: where
 * each of the layers begins is known. */
static void list_again(struct stack *s) {
  const struct step **end = s->list + s->program.steps;
  *end++ = &make_step(s, &stack_step_ablation, s->form.layers)->step;
  s->again[s->form.layers].step = s->list;
  for (size_t i = 0; i <= s->form.layers; i++) {
    s->again[i].steps = (unsigned)(end - s->again[i].step);
    s->again[i].again = stack_ablation_again;
  }
}

static size_t most_scratch(const struct stack *s) {
  size_t floats = size_max(stack_embed_floats(s), stack_forward_floats(s));
  floats = size_max(floats, stack_output_floats(s));
  floats = size_max(floats, size_max(stack_logits_floats(s), stack_next_floats(s)));
  floats = size_max(floats, size_max(stack_turn_floats(s), stack_settle_floats(s)));
  size_t bytes = size_max(floats, stack_pool_floats(s)) * sizeof(float);
  for (size_t i = 0; i < stack_form_attentions(&s->form); i++)
    bytes = size_max(bytes, layer_scratch_bytes(stack_attention(s, i)));
  return bytes;
}

/* Of all matrices that a batch reads: not of the table of tokens, of which it reads rows. */
static void count_bytes(struct stack *s) {
  const struct stack_embedding *m = &s->form.embedding;
  const size_t number = s->token_form == KERNEL_FLOAT32 ? sizeof(float) : sizeof(uint16_t);
  const size_t table = s->token ? m->tokens * s->form.width * number : 0;
  const size_t output = s->output ? gemm_bytes(s->output) : 0;
  s->rounds.bytes = s->bytes - table;
  s->program.bytes = s->rounds.bytes - output;
  for (size_t i = 0; i <= s->form.layers; i++) s->again[i].bytes = s->program.bytes;
}

enum status stack_list_steps(struct stack *s, struct error *e) {
  const size_t layers = s->form.layers, owns = layers * OWN_PER_LAYER + OWN_BESIDE;
  const bool pre = s->form.place == NORM_PRE;
  s->own = calloc(owns, sizeof *s->own);
  const size_t most = owns + stack_form_attentions(&s->form) * STEP_COUNT;
  s->list = calloc(2 * most, sizeof(struct step *)); /* of both programs */
  s->again = calloc(layers + 1, sizeof *s->again);
  if (!s->own || !s->list || !s->again)
    return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a model");
  s->program.step = s->list;
  add_rows(s, &stack_step_embed, layers, TOUCH_WORK * (double)s->form.width + TOUCH_ROW);
  if (pre) add_join(s, JOIN_ENTER, 0);
  for (size_t i = 0; i < layers; i++) {
    s->again[i].step = s->list + s->program.steps;
    add_layer(s, i);
  }
  if (!pre && s->form.last.factor) add_join(s, JOIN_LAST, layers);
  add_step(s, &stack_step_pool, layers);
  add_output(s, &stack_step_output, layers);
  list_again(s);
  if (s->output && s->form.causal) list_rounds(s, s->list + most);
  count_bytes(s);
  s->scratch = most_scratch(s);
  return STATUS_OK;
}
