/* layer_look: the first step of a layer: which keys each query attends to, and what else precedes
 * all rows. */
#include <string.h>

#include "core/attention/layer_parts.h"
#include "core/base/size.h"

/* A unit is one or several whole items: reading a mask is cheap compared with attention. */
static bool look_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct layer_step *s = layer_step_of(step);
  const struct call *c = call_of(s, u->run);
  const struct geometry *g = c->geometry;
  const bool any = s->at.first || c->space->needed[ROLE_OUTPUT].slot || s->at.layer->relative ||
                   c->space->in_place;
  if (at->item == g->items || g->q_rows == 0 || !any) return false;
  u->item = at->item;
  u->items = size_min(c->space->bunch, g->items - at->item);
  at->item += u->items;
  return true;
}

static double look_unit_work(const struct step *step, const struct unit *u) {
  return call_of(layer_step_of(step), u->run)->space->look_work * (double)u->items;
}

static void look_at_item(const struct layer_step *s, const struct call *c, size_t index) {
  const struct layer *l = s->at.layer;
  const struct geometry *g = c->geometry;
  const struct item *item = &g->item[index];
  if (item->q == 0) return;
  /* Once for all layers over the geometry. */
  if (s->at.first) {
    sight_look(g, index);
    if (g->bias) {
      const size_t planes = g->bias_per_head ? l->shape.heads : 1;
      const uint32_t bits = l->kernel->peak(planes * item->q * item->k, g->bias + item->bias_at);
      memcpy(&g->sight.item[index].bias_top, &bits, sizeof bits);
    }
  }
  /* Each layer. The contexts of heads that are not computed are zeros. */
  if (c->space->needed[ROLE_OUTPUT].slot) {
    const size_t row = role_in(l, ROLE_OUTPUT);
    memset(c->space->context + item->q_row * row, 0, item->q * row * sizeof(float));
  }
  if (l->relative) relative_fill(l, c, index);
  if (!could_be_in_place(c, index)) return;
  for (unsigned role = ROLE_KEY; role <= ROLE_VALUE; role++)
    atomic_store_explicit(&c->space->tops[index].role[role], TOP_IN_PLACE, memory_order_relaxed);
}

static void compute_look(const struct step *step, const struct span *span, void *scratch) {
  const unsigned mode = kernel_enter();
  const struct layer_step *s = layer_step_of(step);
  struct span left = *span;
  struct unit u;
  (void)scratch;
  while (run_next_unit(&left, &u))
    for (size_t i = u.item; i < u.item + u.items; i++) look_at_item(s, call_of(s, u.run), i);
  kernel_leave(mode);
}

const struct step step_look = {.unit = look_unit, .work = look_unit_work, .compute = compute_look};
