/* layer_look: what each query of an item may see, and what else is worked out before any row. */
#include <string.h>

#include "core/attention/layer_parts.h"
#include "core/run/size.h"

/* A head that is not computed has zeros for a context. */
static void clear_contexts(const struct layer *l, const struct call *c, const struct item *item) {
  const size_t row = role_in(l, ROLE_OUTPUT);
  memset(c->space->context + item->q_row * row, 0, item->q * row * sizeof(float));
}

static void look_at_item(const struct layer *l, const struct call *c, size_t index) {
  const struct item *item = &c->item[index];
  sight_look(&c->space->sight, c, index, l->shape.heads, &c->space->needed[ROLE_QUERY]);
  if (c->space->needed[ROLE_OUTPUT].slot) clear_contexts(l, c, item);
  if (l->relative) relative_fill(l, c, index);
  for (unsigned role = ROLE_KEY; role <= ROLE_VALUE && could_be_in_place(c, index); role++)
    atomic_store_explicit(&c->space->tops[index].role[role], TOP_IN_PLACE, memory_order_relaxed);
  if (!c->bias) return;
  const size_t planes = c->bias_per_head ? l->shape.heads : 1;
  const uint32_t bits = l->kernel->peak(planes * item->q * item->k, c->bias + item->bias_at);
  memcpy(&c->space->tops[index].bias, &bits, sizeof bits);
}

/* Whole items: what is read once costs little beside what it is read for. */
static bool look_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct call *c = call_of(at->run);
  (void)step;
  if (at->item == c->items || c->q_rows == 0) return false;
  u->item = at->item;
  u->items = size_min(c->space->bunch, c->items - at->item);
  at->item += u->items;
  return true;
}

static double look_unit_work(const struct step *step, const struct unit *u) {
  (void)step;
  return call_of(u->run)->space->look_work * (double)u->items;
}

static void compute_look(const struct step *step, const struct span *span, void *scratch) {
  const unsigned mode = kernel_enter();
  struct span left = *span;
  struct unit u;
  (void)scratch;
  while (run_next_unit(&left, &u)) {
    const struct call *c = call_of(u.run);
    for (size_t i = u.item; i < u.item + u.items; i++)
      if (c->item[i].q > 0) look_at_item(layer_step_of(step)->layer, c, i);
  }
  kernel_leave(mode);
}

const struct step step_look = {.unit = look_unit, .work = look_unit_work, .compute = compute_look};
