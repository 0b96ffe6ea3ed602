/* stack_turn: keys as later rounds read them: a block of them that is whole is turned, so that the
 * scores of its keys with one query are made side by side without turning it each time. */
#include <string.h>

#include "core/run/size.h"
#include "core/stack/stack_parts.h"

size_t stack_turn_floats(const struct stack *s) {
  return KERNEL_KEYS * size_max(s->form.self.key_head_size, s->form.cross.key_head_size);
}

/* --- units: an attention of an item; across of a source, once it is there --- */

/* Rows of its keys that are turned in this round. */
struct turn_rows {
  size_t from, to;
};

static struct turn_rows rows_of(const struct stack_run *r, size_t item) {
  const struct stack_advance *at = &r->generation->rounds->advance[item];
  return (struct turn_rows){at->turned, at->turns};
}

static struct turn_rows rows_across(const struct stack_run *r, size_t source) {
  const size_t rows = r->generation->rounds->source[source].rows;
  return (struct turn_rows){0, rows / KERNEL_KEYS * KERNEL_KEYS};
}

/* Behind the items come the sources, of which keys are there since the first round. */
static bool turn_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_rounds *o = r->generation->rounds;
  const size_t items = r->geometry.items, layers = stack_step_of(step)->stack->form.layers;
  const size_t all = items + (o->source && o->number == 1 ? r->across.items : 0);
  for (; at->item < all; at->item++, at->head = 0) {
    if (at->head == layers) continue;
    if (at->item < items && rows_of(r, at->item).from == rows_of(r, at->item).to) continue;
    u->item = at->item < items ? at->item : at->item - items;
    u->head = at->head++ + (at->item < items ? 0 : layers);
    u->heads = 1;
    return true;
  }
  return false;
}

/* Bound by memory. */
static double turn_work(const struct step *step, const struct unit *u) {
  const struct stack *s = stack_step_of(step)->stack;
  const struct stack_run *r = stack_run_of(u->run);
  const struct layer_shape *a = stack_shape(s, u->head);
  const struct turn_rows rows =
      stack_is_across(s, u->head) ? rows_across(r, u->item) : rows_of(r, u->item);
  return 4.0 * (double)(rows.to - rows.from) * (double)(a->kv_heads * a->key_head_size);
}

/* --- what they do --- */

static void turn_rows(const struct stack *s, const struct layer_shape *a, struct turn_rows rows,
                      struct kept *k, float *scratch) {
  const size_t size = a->key_head_size, block = KERNEL_KEYS * size;
  must(k->rows.row_step == size && k->rows.turned == rows.from);
  for (size_t head = 0; head < a->kv_heads; head++)
    for (size_t row = rows.from; row < rows.to; row += KERNEL_KEYS) {
      float *at = k->rows.row + head * k->rows.head_step + row * size;
      s->kernel->turn_keys(size, at, scratch);
      memcpy(at, scratch, block * sizeof *at);
    }
  k->rows.turned = rows.to;
}

static void turn_keys(const struct stack *s, const struct stack_run *r, size_t number, size_t item,
                      float *scratch) {
  const struct stack_rounds *o = r->generation->rounds;
  struct kept_pair *pair = &o->kept[number][item];
  const bool across = stack_is_across(s, number);
  turn_rows(s, stack_shape(s, number), across ? rows_across(r, item) : rows_of(r, item), &pair->key,
            scratch);
  if (across) pair->key.count = pair->value.count = o->source[item].rows;
}

static void compute_turn(const struct step *step, const struct span *span, void *scratch) {
  struct span left = *span;
  struct unit u;
  while (run_next_unit(&left, &u)) {
    turn_keys(stack_step_of(step)->stack, stack_run_of(u.run), u.head, u.item, scratch);
  }
}

const struct step stack_step_turn = {.unit = turn_unit, .work = turn_work, .compute = compute_turn};
