/* stack_reveal: what a run that generates shows of its sequences: of each token the pass that chose
 * it, its hidden states and its attention weights.
 *
 * The rows of a round lie where the next round writes its own. What is shown of them is copied
 * behind what earlier rounds have left. */
#include <string.h>

#include "core/run/size.h"
#include "core/stack/stack_parts.h"

/* --- preparing --- */

struct revealing {
  const struct stack *s;
  struct stack_run *r;
  size_t numbers; /* of one hidden state of all tokens */
  struct arena *a;
  struct error *e;
};

static void *take(const struct revealing *p, size_t count, size_t size) {
  return p->e->status ? NULL : arena_alloc(p->a, count, size, p->e);
}

/* Gives each sequence its rows. */
static enum status count_rows(struct revealing *p) {
  struct stack_generation *g = p->r->generation;
  size_t rows = 0;
  for (size_t i = 0; i < p->r->geometry.items; i++) {
    struct stack_sequence *q = &g->sequence[i];
    q->row = rows;
    q->keys = g->rounds->advance[i].text + q->most - 1;
    rows += q->most; /* their tokens lie in memory: no sum overflows */
  }
  if (!size_mul(rows, p->s->form.width, &p->numbers))
    return error_limit(p->e, "max_answer_bytes", "the hidden states are too many to count");
  return STATUS_OK;
}

static size_t heads_of(const struct stack *s, const struct stack_wish *wish) {
  return wish->weights == STACK_WEIGHTS_AVERAGE ? 1 : s->form.self.heads;
}

/* Adds the numbers of a list [heads, rows, columns]. */
static bool count_more(size_t *count, size_t heads, size_t rows, size_t columns) {
  size_t more;
  return size_mul(rows, columns, &more) && size_mul(more, heads, &more) &&
         size_add(*count, more, count);
}

/* Places for pictures of up to `most` rows and columns, or for the weights themselves, where `most`
 * is SIZE_MAX. Returns how many numbers these are. */
static size_t *place_lists(const struct revealing *p, const struct stack_wish *wish, size_t most,
                           size_t *count) {
  size_t *at = take(p, p->r->geometry.items, sizeof *at);
  *count = 0;
  for (size_t i = 0; at && i < p->r->geometry.items; i++) {
    const struct stack_sequence *q = &p->r->generation->sequence[i];
    at[i] = *count;
    if (!count_more(count, heads_of(p->s, wish), size_min(q->most, most), size_min(q->keys, most)))
      error_limit(p->e, "max_answer_bytes", "the attention weights are too many to count");
  }
  return at;
}

static void place_layer(const struct revealing *p, size_t layer) {
  const struct stack_wish *wish = &p->r->wish[layer];
  struct stack_revealed *to = &p->r->generation->rounds->revealed[layer];
  struct stack_shown *shown = &p->r->shown[layer];
  size_t count;
  *to = (struct stack_revealed){0};
  *shown = (struct stack_shown){0};
  if (wish->hidden) shown->hidden = to->hidden = take(p, p->numbers, sizeof(float));
  if (wish->input) shown->input = to->input = take(p, p->numbers, sizeof(float));
  if (wish->weights == STACK_WEIGHTS_NONE) return;
  shown->weights_at = place_lists(p, wish, SIZE_MAX, &count);
  shown->weights = to->weights = take(p, count, sizeof(float));
  if (wish->weights != STACK_WEIGHTS_THUMBNAILS) return;
  shown->thumbnails_at = place_lists(p, wish, wish->thumbnail, &count);
  shown->thumbnails = to->thumbnails = take(p, count, 1);
}

enum status stack_reveal_prepare(const struct stack *s, struct stack_run *r, struct arena *a,
                                 struct error *e) {
  struct revealing p = {.s = s, .r = r, .a = a, .e = e};
  struct stack_rounds *o = r->generation->rounds;
  const size_t layers = s->form.layers;
  bool weights = false;
  if (count_rows(&p)) return e->status;
  if (r->embedded) r->embedding = o->embedding = take(&p, p.numbers, sizeof(float));
  if (!r->wish) return e->status;
  o->revealed = take(&p, layers, sizeof *o->revealed);
  r->shown = take(&p, layers, sizeof *r->shown);
  for (size_t l = 0; !e->status && l < layers; l++) {
    place_layer(&p, l);
    weights |= r->wish[l].weights != STACK_WEIGHTS_NONE;
  }
  if (weights) o->shows = take(&p, r->geometry.items, sizeof *o->shows);
  return e->status;
}

/* --- units: a layer of a sequence; behind the last one what enters the first --- */

static bool is_shown(const struct stack_run *r, size_t layer, size_t layers) {
  const struct stack_rounds *o = r->generation->rounds;
  if (layer == layers) return o->embedding;
  const struct stack_revealed *to = o->revealed ? &o->revealed[layer] : NULL;
  return to && (to->hidden || to->input || to->weights);
}

static bool reveal_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_rounds *o = r->generation->rounds;
  const size_t layers = stack_step_of(step)->stack->form.layers;
  if (!o->revealed && !o->embedding) return false;
  for (; at->item < o->asks; at->item++, at->head = 0)
    for (; at->head <= layers; at->head++) {
      if (!is_shown(r, at->head, layers)) continue;
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

/* Of `rows` that belong to one another puts row t, and zeros behind it; behind the last token
 * zeros. */
static void put_row(const struct revealed_pass *p, float *rows, size_t size, const float *from,
                    size_t count) {
  float *row = rows + p->t * size;
  memcpy(row, from, count * sizeof *row);
  memset(row + count, 0, (size - count) * sizeof *row);
  if (p->q->finish) memset(row + size, 0, (p->q->most - p->t - 1) * size * sizeof *row);
}

static void put_hidden(const struct revealed_pass *p, float *to, const float *rows) {
  const size_t d = p->s->form.width;
  const struct item *item = &p->r->geometry.item[p->item];
  if (to) put_row(p, to + p->q->row * d, d, rows + (item->q_row + item->q - 1) * d, d);
}

static void put_weights(const struct revealed_pass *p, size_t layer) {
  const struct call *c = &p->r->call[layer];
  const struct stack_shown *shown = &p->r->shown[layer];
  const struct stack_sequence *q = p->q;
  const size_t keys = p->r->geometry.item[p->item].k;
  float *to = p->r->generation->rounds->revealed[layer].weights + shown->weights_at[p->item];
  const float *from = c->weights + c->weights_at[p->item];
  for (size_t head = 0; head < heads_of(p->s, &p->r->wish[layer]); head++)
    put_row(p, to + head * q->most * q->keys, q->keys, from + head * keys, keys);
}

static void put_thumbnails(const struct revealed_pass *p, size_t layer) {
  const struct stack_shown *shown = &p->r->shown[layer];
  const struct stack_sequence *q = p->q;
  uint8_t *to =
      p->r->generation->rounds->revealed[layer].thumbnails + shown->thumbnails_at[p->item];
  struct stack_picture of = {.weights = shown->weights + shown->weights_at[p->item],
                             .row_step = q->keys,
                             .rows = p->t + 1,
                             .columns = p->r->geometry.item[p->item].k,
                             .most = p->r->wish[layer].thumbnail};
  for (size_t head = 0; head < p->s->form.self.heads; head++) {
    stack_picture_write(&of, to);
    to += stack_picture_high(&of) * stack_picture_wide(&of);
    of.weights += q->most * q->keys;
  }
}

static void put_layer(const struct revealed_pass *p, size_t layer) {
  const struct stack_revealed *to = &p->r->generation->rounds->revealed[layer];
  put_hidden(p, to->hidden, stack_hidden_rows(p->s, p->r, layer + 1));
  put_hidden(p, to->input, p->r->space->flow[layer].input);
  if (to->weights) put_weights(p, layer);
  if (to->thumbnails && p->q->finish) put_thumbnails(p, layer);
}

static void compute_reveal(const struct step *step, const struct span *span, void *scratch) {
  const struct stack *s = stack_step_of(step)->stack;
  struct span left = *span;
  struct unit u;
  (void)scratch;
  while (run_next_unit(&left, &u)) {
    const struct stack_run *r = stack_run_of(u.run);
    const struct stack_rounds *o = r->generation->rounds;
    const struct revealed_pass p = {.s = s,
                                    .r = r,
                                    .q = &r->generation->sequence[u.item],
                                    .item = u.item,
                                    .t = r->geometry.item[u.item].k - o->advance[u.item].text};
    if (u.head == s->form.layers)
      put_hidden(&p, o->embedding, stack_hidden_rows(s, r, 0));
    else
      put_layer(&p, u.head);
  }
}

const struct step stack_step_reveal = {.unit = reveal_unit,
                                       .work = reveal_work,
                                       .compute = compute_reveal};
