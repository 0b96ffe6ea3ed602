/* copy_out: what a generating run shows of its sequences: for each token the pass that chose it,
 * its hidden states and its attention weights.
 *
 * The next round overwrites the rows of a round. Those that are shown are copied after those of
 * earlier rounds. In a beam search they lie with the hypothesis that computed them, until the
 * search is over: then they follow the tokens of the results. */
#include <string.h>

#include "core/base/size.h"
#include "core/generate/generate_parts.h"
#include "core/inspect/inspect.h"

static size_t heads_of(const struct stack *s, const struct stack_run *r, size_t number) {
  if (r->wish[number].weights == STACK_WEIGHTS_AVERAGE) return 1;
  return stack_shape(s, number)->heads;
}

/* Keys of a row of a sequence's weights. */
static size_t keys_of(const struct stack *s, const struct stack_run *r, size_t number,
                      size_t item) {
  const struct stack_generation *g = r->generation;
  if (stack_is_across(s, number)) return g->rounds->source[item / stack_each(g)].rows;
  return g->sequence[item].keys;
}

/* --- preparing --- */

/* Places for weights [heads, rows, keys] of all sequences, of `most` rows and keys at most:
 * SIZE_MAX for weights, the size of a picture for thumbnails. Returns where each begins; `count`:
 * how many numbers they are. */
static size_t *place_lists(const struct stack_preparing *p, size_t number, size_t most,
                           size_t *count) {
  const size_t heads = heads_of(p->s, p->r, number);
  size_t *at = stack_alloc(p, p->r->geometry.items, sizeof *at), more;
  *count = 0;
  for (size_t i = 0; at && i < p->r->geometry.items; i++) {
    const size_t rows = p->r->generation->sequence[i].most, keys = keys_of(p->s, p->r, number, i);
    at[i] = *count;
    if (!size_mul(size_min(rows, most), size_min(keys, most), &more) ||
        !size_mul(more, heads, &more) || !size_add(*count, more, count))
      error_limit(p->e, "max_answer_bytes", "the attention weights exceed the address space");
  }
  return at;
}

/* `numbers`: of a hidden state of all tokens. */
static void place_attention(const struct stack_preparing *p, size_t number, size_t numbers) {
  const struct stack_wish *wish = &p->r->wish[number];
  struct stack_shown *shown = &p->r->shown[number];
  size_t count;
  *shown = (struct stack_shown){0};
  if (wish->hidden) shown->hidden = stack_alloc(p, numbers, sizeof(float));
  if (wish->input) shown->input = stack_alloc(p, numbers, sizeof(float));
  if (wish->weights == STACK_WEIGHTS_NONE) return;
  shown->weights_at = place_lists(p, number, SIZE_MAX, &count);
  shown->weights = stack_alloc(p, count, sizeof(float));
  if (wish->weights != STACK_WEIGHTS_THUMBNAILS) return;
  shown->thumbnails_at = place_lists(p, number, wish->thumbnail, &count);
  shown->thumbnails = stack_alloc(p, count, 1);
}

enum status copy_out_prepare(const struct stack_preparing *p) {
  struct stack_run *r = p->r;
  struct stack_rounds *o = r->generation->rounds;
  const size_t attentions = stack_form_attentions(&p->s->form);
  size_t rows = 0, numbers;
  bool weights = false;
  for (size_t i = 0; i < r->geometry.items; i++) {
    struct stack_sequence *q = &r->generation->sequence[i];
    q->row = rows;
    q->keys = stack_kept_rows(r->generation, i);
    rows += q->most; /* their tokens lie in memory: no sum overflows */
  }
  if (!size_mul(rows, p->s->form.width, &numbers))
    return error_limit(p->e, "max_answer_bytes", "the hidden states exceed the address space");
  if (r->embedded) r->embedding = stack_alloc(p, numbers, sizeof(float));
  if (!r->wish) return p->e->status;
  r->shown = stack_alloc(p, attentions, sizeof *r->shown);
  for (size_t i = 0; !p->e->status && i < attentions; i++) {
    place_attention(p, i, numbers);
    weights |= r->wish[i].weights != STACK_WEIGHTS_NONE;
  }
  if (weights) o->shows = stack_alloc(p, r->geometry.items, sizeof *o->shows);
  return p->e->status;
}

/* --- copying --- */

/* The rows of a sequence in what is shown of an attention, or of hidden state 0, whose number
 * follows all attentions: lists of rows of one size. */
struct copied_rows {
  float *row;              /* NULL: not requested */
  size_t size;             /* numbers of a row */
  size_t lists, list_step; /* lists, and numbers from one to the next */
};
enum copied_kind { COPIED_HIDDEN, COPIED_INPUT, COPIED_WEIGHTS };

static struct copied_rows rows_of(const struct stack *s, const struct stack_run *r, size_t number,
                                  enum copied_kind kind, size_t item) {
  const struct stack_sequence *q = &r->generation->sequence[item];
  const size_t d = s->form.width;
  if (number < stack_form_attentions(&s->form) && kind == COPIED_WEIGHTS) {
    float *weights = r->shown[number].weights;
    const size_t keys = keys_of(s, r, number, item);
    return (struct copied_rows){.row = weights ? weights + r->shown[number].weights_at[item] : NULL,
                                .size = keys,
                                .lists = heads_of(s, r, number),
                                .list_step = q->most * keys};
  }
  float *rows = NULL;
  if (number < stack_form_attentions(&s->form))
    rows = kind == COPIED_HIDDEN ? r->shown[number].hidden : r->shown[number].input;
  else if (kind == COPIED_HIDDEN)
    rows = r->embedding;
  return (struct copied_rows){.row = rows ? rows + q->row * d : NULL, .size = d, .lists = 1};
}

/* A sequence in a round that chose its token t. */
struct chosen_pass {
  const struct stack *s;
  const struct stack_run *r;
  const struct stack_sequence *q;
  size_t item, t;
};

/* Copies row t of each list, of which `count` numbers are given: zeros follow, and after the last
 * token rows of zeros. */
static void copy_rows(const struct chosen_pass *p, size_t number, enum copied_kind kind,
                      const float *from, size_t count, size_t step) {
  const struct copied_rows to = rows_of(p->s, p->r, number, kind, p->item);
  for (size_t i = 0; to.row && i < to.lists; i++) {
    float *row = to.row + i * to.list_step + p->t * to.size;
    memcpy(row, from + i * step, count * sizeof *row);
    memset(row + count, 0, (to.size - count) * sizeof *row);
    if (p->q->finish) memset(row + to.size, 0, (p->q->most - p->t - 1) * to.size * sizeof *row);
  }
}

/* Copies the last row of the sequence, of `rows` [rows, d]. */
static void copy_state(const struct chosen_pass *p, size_t number, enum copied_kind kind,
                       const float *rows) {
  const size_t d = p->s->form.width;
  const struct item *item = &p->r->geometry.item[p->item];
  copy_rows(p, number, kind, rows + (item->q_row + item->q - 1) * d, d, 0);
}

/* Makes the thumbnails of a finished sequence of `rows` tokens, if they are requested. */
static void copy_thumbnails(const struct stack *s, const struct stack_run *r, size_t number,
                            size_t item, size_t rows) {
  const struct copied_rows from = rows_of(s, r, number, COPIED_WEIGHTS, item);
  const size_t text = r->generation->sequence[item].text;
  uint8_t *to = r->shown[number].thumbnails;
  if (!to) return;
  to += r->shown[number].thumbnails_at[item];
  struct thumbnail of = {.weights = from.row,
                         .row_step = from.size,
                         .rows = rows,
                         .columns = stack_is_across(s, number) ? from.size : text + rows - 1,
                         .most = r->wish[number].thumbnail};
  for (size_t head = 0; head < from.lists; head++, of.weights += from.list_step) {
    thumbnail_write(&of, to);
    to += thumbnail_high(&of) * thumbnail_wide(&of);
  }
}

/* Thumbnails of a beam search are made when its results are known. */
static void copy_attention(const struct chosen_pass *p, size_t number) {
  const struct stack_run *r = p->r;
  if (r->shown[number].hidden)
    copy_state(p, number, COPIED_HIDDEN, stack_hidden_rows(p->s, r, number + 1));
  copy_state(p, number, COPIED_INPUT, stack_input_rows(p->s, r, number));
  if (r->shown[number].weights) {
    /* Across, the rows of all sequences of a prompt are one item's. */
    const struct call *c = &r->call[number];
    const size_t of = stack_is_across(p->s, number) ? p->item / r->each : p->item;
    const struct item *item = &c->geometry->item[of];
    const size_t row = r->geometry.item[p->item].q_row - item->q_row, keys = item->k;
    copy_rows(p, number, COPIED_WEIGHTS, c->weights + c->weights_at[of] + row * keys, keys,
              item->q * keys);
  }
  if (p->q->finish && !r->generation->rounds->beams)
    copy_thumbnails(p->s, r, number, p->item, p->t + 1);
}

/* --- the step: units are an attention of a sequence; after the last one, hidden state 0 --- */

static bool copy_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_rounds *o = r->generation->rounds;
  const size_t numbers = stack_form_attentions(&stack_step_of(step)->stack->form);
  if (!r->shown && !r->embedding) return false;
  for (; at->item < o->asks; at->item++, at->head = 0)
    for (; at->head <= numbers; at->head++) {
      bool shown = r->embedding != NULL;
      if (at->head < numbers) {
        const struct stack_shown *to = r->shown ? &r->shown[at->head] : NULL;
        shown = to && (to->hidden || to->input || to->weights);
      }
      if (!shown) continue;
      u->item = o->asking[at->item];
      u->head = at->head++;
      u->heads = 1;
      return true;
    }
  return false;
}

/* Bound by memory. */
static double copy_work(const struct step *step, const struct unit *u) {
  const struct stack_form *f = &stack_step_of(step)->stack->form;
  const double keys = (double)stack_run_of(u->run)->geometry.item[u->item].k;
  return 4 * ((double)f->width + (double)f->kind->self.heads * keys);
}

static void copy_each(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack *s = step->stack;
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_generation *g = r->generation;
  const struct chosen_pass p = {.s = s,
                                .r = r,
                                .q = &g->sequence[u->item],
                                .item = u->item,
                                .t = r->geometry.item[u->item].k - g->sequence[u->item].text};
  (void)scratch;
  if (u->head == stack_form_attentions(&s->form))
    copy_state(&p, u->head, COPIED_HIDDEN, stack_hidden_rows(s, r, 0));
  else
    copy_attention(&p, u->head);
}

const struct stack_step stack_step_copy_out = {
    .step = {.unit = copy_unit, .work = copy_work, .compute = stack_compute}, .each = copy_each};

/* --- the step at the end of a search: rows follow the tokens of results --- */

enum { NUMBERS = 64 }; /* of a row that move at a time */

/* Units: an attention of a prompt whose search is over since this round; after the last attention,
 * hidden state 0. */
static bool results_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_rounds *o = r->generation->rounds;
  const size_t numbers = stack_form_attentions(&stack_step_of(step)->stack->form);
  const size_t texts = r->geometry.items / stack_each(r->generation);
  const size_t first = r->shown ? 0 : numbers, end = r->embedding ? numbers + 1 : numbers;
  if (!o->beams || !o->beams->pass) return false;
  for (; at->item < texts; at->item++, at->head = 0) {
    at->head = size_max(at->head, first);
    if (o->beams[at->item].finished != o->number || at->head >= end) continue;
    u->item = at->item;
    u->head = at->head++;
    u->heads = 1;
    return true;
  }
  return false;
}

/* Bound by memory. */
static double results_work(const struct step *step, const struct unit *u) {
  const struct stack_generation *g = stack_run_of(u->run)->generation;
  const struct stack_sequence *q = &g->sequence[u->item * g->each];
  const double width = (double)stack_step_of(step)->stack->form.width;
  return 4.0 * (double)(g->each * q->most) * (width + (double)q->keys);
}

static size_t results_floats(const struct stack *s) {
  (void)s;
  return STACK_BEAMS_MAX * NUMBERS;
}

/* The rows that the sequences of a prompt show, of one kind. */
struct moving {
  const struct stack_generation *g;
  size_t first; /* the first of the sequences */
  const uint32_t *pass;
  struct copied_rows shown[STACK_BEAMS_MAX];
};

/* Moves some numbers of row t of a list, for all sequences. */
static void move_numbers(const struct moving *p, size_t t, size_t at, size_t count,
                         float *scratch) {
  const size_t most = p->g->sequence[p->first].most;
  for (size_t i = 0; i < p->g->each; i++)
    memcpy(scratch + i * NUMBERS, p->shown[i].row + at, count * sizeof *scratch);
  for (size_t i = 0; i < p->g->each; i++) {
    float *to = p->shown[i].row + at;
    if (t < stack_sequence_count(&p->g->sequence[p->first + i]))
      memcpy(to, scratch + p->pass[i * most + t] * NUMBERS, count * sizeof *to);
    else
      memset(to, 0, count * sizeof *to);
  }
}

static void move_shown(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack *s = step->stack;
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_generation *g = r->generation;
  struct moving p = {.g = g, .first = u->item * g->each, .pass = g->rounds->beams[u->item].pass};
  for (enum copied_kind kind = 0; kind <= COPIED_WEIGHTS; kind++) {
    for (size_t i = 0; i < g->each; i++) p.shown[i] = rows_of(s, r, u->head, kind, p.first + i);
    const struct copied_rows *shown = p.shown;
    for (size_t list = 0; shown->row && list < shown->lists; list++)
      for (size_t t = 0; t < g->sequence[p.first].most; t++)
        for (size_t x = 0; x < shown->size; x += NUMBERS)
          move_numbers(&p, t, list * shown->list_step + t * shown->size + x,
                       size_min(NUMBERS, shown->size - x), scratch);
  }
  if (u->head == stack_form_attentions(&s->form)) return;
  for (size_t i = 0; i < g->each; i++) {
    const size_t count = stack_sequence_count(&g->sequence[p.first + i]);
    if (count > 0) copy_thumbnails(s, r, u->head, p.first + i, count);
  }
}

const struct stack_step stack_step_copy_results = {
    .step = {.unit = results_unit, .work = results_work, .compute = stack_compute},
    .floats = results_floats,
    .each = move_shown};
