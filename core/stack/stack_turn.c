/* stack_turn: keys as later rounds read them: a block of them that is whole is turned, so that the
 * scores of its keys with one query are made side by side without turning it each time. */
#include <string.h>

#include "core/stack/stack_parts.h"

size_t stack_turn_floats(const struct stack *s) { return KERNEL_KEYS * s->form.self.key_head_size; }

/* --- units: a layer of an item --- */

static bool turn_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_advance *advance = r->generation->rounds->advance;
  for (; at->item < r->geometry.items; at->item++, at->head = 0) {
    if (advance[at->item].turns == advance[at->item].turned) continue;
    if (at->head == stack_step_of(step)->stack->form.layers) continue;
    u->item = at->item;
    u->head = at->head++;
    u->heads = 1;
    return true;
  }
  return false;
}

/* Bound by memory. */
static double turn_work(const struct step *step, const struct unit *u) {
  const struct layer_shape *a = &stack_step_of(step)->stack->form.self;
  const struct stack_advance *at = &stack_run_of(u->run)->generation->rounds->advance[u->item];
  return 4.0 * (double)(at->turns - at->turned) * (double)(a->kv_heads * a->key_head_size);
}

/* --- what they do --- */

static void turn_layer(const struct stack *s, const struct stack_advance *at, struct kept *k,
                       float *scratch) {
  const size_t size = s->form.self.key_head_size, block = KERNEL_KEYS * size;
  must(k->rows.row_step == size && k->rows.turned == at->turned);
  for (size_t head = 0; head < s->form.self.kv_heads; head++)
    for (size_t row = at->turned; row < at->turns; row += KERNEL_KEYS) {
      float *rows = k->rows.row + head * k->rows.head_step + row * size;
      s->kernel->turn_keys(size, rows, scratch);
      memcpy(rows, scratch, block * sizeof *rows);
    }
  k->rows.turned = at->turns;
}

static void compute_turn(const struct step *step, const struct span *span, void *scratch) {
  struct span left = *span;
  struct unit u;
  while (run_next_unit(&left, &u)) {
    const struct stack_rounds *o = stack_run_of(u.run)->generation->rounds;
    turn_layer(stack_step_of(step)->stack, &o->advance[u.item], &o->kept[u.head][u.item].key,
               scratch);
  }
}

const struct step stack_step_turn = {.unit = turn_unit, .work = turn_work, .compute = compute_turn};
