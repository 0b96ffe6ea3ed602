/* copy_out: what a run that generates shows of its sequences: of each token the pass that chose
 * it, its hidden states and its attention weights.
 *
 * The rows of a round lie where the next round writes its own. What is shown of them is copied
 * behind what earlier rounds have left. */
#include <string.h>

#include "core/base/size.h"
#include "core/generate/generate_parts.h"
#include "core/inspect/inspect.h"

/* --- preparing --- */

/* Gives each sequence its rows. */
static enum status count_rows(const struct stack_preparing *p, size_t *numbers) {
  struct stack_generation *g = p->r->generation;
  size_t rows = 0;
  for (size_t i = 0; i < p->r->geometry.items; i++) {
    struct stack_sequence *q = &g->sequence[i];
    q->row = rows;
    q->keys = g->rounds->advance[i].text + q->most - 1;
    rows += q->most; /* their tokens lie in memory: no sum overflows */
  }
  if (!size_mul(rows, p->s->form.width, numbers))
    return error_limit(p->e, "max_answer_bytes", "the hidden states exceed the address space");
  return STATUS_OK;
}

static size_t heads_of(const struct stack *s, const struct stack_run *r, size_t number) {
  if (r->wish[number].weights == STACK_WEIGHTS_AVERAGE) return 1;
  return stack_shape(s, number)->heads;
}

/* The text of a sequence, as an item across. */
static size_t text_of(const struct stack_run *r, size_t item) {
  return item / stack_each(r->generation);
}

/* Keys of a row of a sequence's weights. */
static size_t keys_of(const struct stack *s, const struct stack_run *r, size_t number,
                      size_t item) {
  if (stack_is_across(s, number)) return r->generation->rounds->source[text_of(r, item)].rows;
  return r->generation->sequence[item].keys;
}

/* Adds the numbers of a list [heads, rows, columns]. */
static bool count_more(size_t *count, size_t heads, size_t rows, size_t columns) {
  size_t more;
  return size_mul(rows, columns, &more) && size_mul(more, heads, &more) &&
         size_add(*count, more, count);
}

/* Places for pictures of up to `most` rows and columns, or for the weights themselves, where `most`
 * is SIZE_MAX. Returns how many numbers these are. */
static size_t *place_lists(const struct stack_preparing *p, size_t number, size_t most,
                           size_t *count) {
  size_t *at = stack_alloc(p, p->r->geometry.items, sizeof *at);
  *count = 0;
  for (size_t i = 0; at && i < p->r->geometry.items; i++) {
    const size_t rows = p->r->generation->sequence[i].most, keys = keys_of(p->s, p->r, number, i);
    at[i] = *count;
    if (!count_more(count, heads_of(p->s, p->r, number), size_min(rows, most),
                    size_min(keys, most)))
      error_limit(p->e, "max_answer_bytes", "the attention weights exceed the address space");
  }
  return at;
}

static void place_attention(const struct stack_preparing *p, size_t number, size_t numbers) {
  const struct stack_wish *wish = &p->r->wish[number];
  struct copied *to = &p->r->generation->rounds->revealed[number];
  struct stack_shown *shown = &p->r->shown[number];
  size_t count;
  *to = (struct copied){0};
  *shown = (struct stack_shown){0};
  if (wish->hidden) shown->hidden = to->hidden = stack_alloc(p, numbers, sizeof(float));
  if (wish->input) shown->input = to->input = stack_alloc(p, numbers, sizeof(float));
  if (wish->weights == STACK_WEIGHTS_NONE) return;
  shown->weights_at = place_lists(p, number, SIZE_MAX, &count);
  shown->weights = to->weights = stack_alloc(p, count, sizeof(float));
  if (wish->weights != STACK_WEIGHTS_THUMBNAILS) return;
  shown->thumbnails_at = place_lists(p, number, wish->thumbnail, &count);
  shown->thumbnails = to->thumbnails = stack_alloc(p, count, 1);
}

enum status copy_out_prepare(const struct stack_preparing *p) {
  struct stack_run *r = p->r;
  struct stack_rounds *o = r->generation->rounds;
  const size_t attentions = stack_form_attentions(&p->s->form);
  size_t numbers;
  bool weights = false;
  if (count_rows(p, &numbers)) return p->e->status;
  if (r->embedded) r->embedding = o->embedding = stack_alloc(p, numbers, sizeof(float));
  if (!r->wish) return p->e->status;
  o->revealed = stack_alloc(p, attentions, sizeof *o->revealed);
  r->shown = stack_alloc(p, attentions, sizeof *r->shown);
  for (size_t i = 0; !p->e->status && i < attentions; i++) {
    place_attention(p, i, numbers);
    weights |= r->wish[i].weights != STACK_WEIGHTS_NONE;
  }
  if (weights) o->shows = stack_alloc(p, r->geometry.items, sizeof *o->shows);
  return p->e->status;
}

/* --- units: an attention of a sequence; behind the last one what enters the first layer --- */

static bool is_shown(const struct stack_run *r, size_t number, size_t numbers) {
  const struct stack_rounds *o = r->generation->rounds;
  if (number == numbers) return o->embedding;
  const struct copied *to = o->revealed ? &o->revealed[number] : NULL;
  return to && (to->hidden || to->input || to->weights);
}

static bool reveal_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_rounds *o = r->generation->rounds;
  const size_t numbers = stack_form_attentions(&stack_step_of(step)->stack->form);
  if (!o->revealed && !o->embedding) return false;
  for (; at->item < o->asks; at->item++, at->head = 0)
    for (; at->head <= numbers; at->head++) {
      if (!is_shown(r, at->head, numbers)) continue;
      u->item = o->asking[at->item];
      u->head = at->head++;
      u->heads = 1;
      return true;
    }
  return false;
}

/* Bound by memory. */
static double reveal_work(const struct step *step, const struct unit *u) {
  const struct stack_form *f = &stack_step_of(step)->stack->form;
  const double keys = (double)stack_run_of(u->run)->geometry.item[u->item].k;
  return 4 * ((double)f->width + (double)f->self.heads * keys);
}

/* --- what they do --- */

/* The pass of a sequence that chose its token t. */
struct revealed_pass {
  const struct stack *s;
  const struct stack_run *r;
  const struct stack_sequence *q;
  size_t item, t;
};

struct copied_rows copy_out_rows(const struct stack *s, const struct stack_run *r, size_t number,
                                 enum copied_kind kind, size_t item) {
  const struct stack_rounds *o = r->generation->rounds;
  const struct stack_sequence *q = &r->generation->sequence[item];
  const bool last = number == stack_form_attentions(&s->form);
  const size_t d = s->form.width;
  struct copied_rows shown = {.size = d, .lists = 1};
  if (last || kind != COPIED_WEIGHTS) {
    float *rows = last                    ? kind == COPIED_HIDDEN ? o->embedding : NULL
                  : kind == COPIED_HIDDEN ? o->revealed[number].hidden
                                          : o->revealed[number].input;
    shown.row = rows ? rows + q->row * d : NULL;
    return shown;
  }
  float *weights = o->revealed[number].weights;
  shown.row = weights ? weights + r->shown[number].weights_at[item] : NULL;
  shown.size = keys_of(s, r, number, item);
  shown.lists = heads_of(s, r, number);
  shown.list_step = q->most * shown.size;
  return shown;
}

/* Of a list of rows puts row t, and zeros behind it; behind the last token zeros. */
static void put_row(const struct revealed_pass *p, float *rows, size_t size, const float *from,
                    size_t count) {
  float *row = rows + p->t * size;
  memcpy(row, from, count * sizeof *row);
  memset(row + count, 0, (size - count) * sizeof *row);
  if (p->q->finish) memset(row + size, 0, (p->q->most - p->t - 1) * size * sizeof *row);
}

static void put_rows(const struct revealed_pass *p, size_t number, enum copied_kind kind,
                     const float *from, size_t count, size_t step) {
  const struct copied_rows to = copy_out_rows(p->s, p->r, number, kind, p->item);
  for (size_t i = 0; to.row && i < to.lists; i++)
    put_row(p, to.row + i * to.list_step, to.size, from + i * step, count);
}

/* A row of the model, of the last one of the sequence that went through it. */
static void put_hidden(const struct revealed_pass *p, size_t number, enum copied_kind kind,
                       const float *rows) {
  const size_t d = p->s->form.width;
  const struct item *item = &p->r->geometry.item[p->item];
  put_rows(p, number, kind, rows + (item->q_row + item->q - 1) * d, d, 0);
}

/* Its weights lie in the call's: across, the rows of all sequences of its text are one item's. */
static void put_weights(const struct revealed_pass *p, size_t number) {
  const struct call *c = &p->r->call[number];
  const size_t of = stack_is_across(p->s, number) ? text_of(p->r, p->item) : p->item;
  const struct item *item = &c->geometry->item[of];
  const size_t row = p->r->geometry.item[p->item].q_row - item->q_row, keys = item->k;
  put_rows(p, number, COPIED_WEIGHTS, c->weights + c->weights_at[of] + row * keys, keys,
           item->q * keys);
}

void copy_out_thumbnails(const struct stack *s, const struct stack_run *r, size_t number,
                         size_t item, size_t rows) {
  const struct copied_rows from = copy_out_rows(s, r, number, COPIED_WEIGHTS, item);
  const size_t text = r->generation->rounds->advance[item].text;
  uint8_t *to = r->generation->rounds->revealed[number].thumbnails;
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

/* Thumbnails of a search are made when it is known what was found. */
static void put_attention(const struct revealed_pass *p, size_t number) {
  const struct copied *to = &p->r->generation->rounds->revealed[number];
  if (to->hidden) put_hidden(p, number, COPIED_HIDDEN, stack_hidden_rows(p->s, p->r, number + 1));
  put_hidden(p, number, COPIED_INPUT, stack_input_rows(p->s, p->r, number));
  if (to->weights) put_weights(p, number);
  if (p->q->finish && !p->r->generation->rounds->beams)
    copy_out_thumbnails(p->s, p->r, number, p->item, p->t + 1);
}

static void reveal_each(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack *s = step->stack;
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_rounds *o = r->generation->rounds;
  const struct revealed_pass p = {.s = s,
                                  .r = r,
                                  .q = &r->generation->sequence[u->item],
                                  .item = u->item,
                                  .t = r->geometry.item[u->item].k - o->advance[u->item].text};
  (void)scratch;
  if (u->head == stack_form_attentions(&s->form))
    put_hidden(&p, u->head, COPIED_HIDDEN, stack_hidden_rows(s, r, 0));
  else
    put_attention(&p, u->head);
}

const struct stack_step stack_step_copy_out = {
    .step = {.unit = reveal_unit, .work = reveal_work, .compute = stack_compute},
    .each = reveal_each};
