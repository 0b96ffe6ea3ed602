/* layer_look: what each query of an item may see, and what else is worked out before any row. */
#include <string.h>

#include "core/attention/layer_parts.h"
#include "core/base/size.h"

/* --- once for all layers over a geometry --- */

static void look_at_bias(const struct layer *l, const struct geometry *g, size_t index) {
  const struct item *item = &g->item[index];
  const size_t planes = g->bias_per_head ? l->shape.heads : 1;
  const uint32_t bits = l->kernel->peak(planes * item->q * item->k, g->bias + item->bias_at);
  memcpy(&g->sight.item[index].bias_top, &bits, sizeof bits);
}

static void look_at_geometry(const struct layer *l, const struct geometry *g, size_t index) {
  sight_look(g, index);
  if (g->bias) look_at_bias(l, g, index);
}

/* --- for each layer --- */

/* A head that is not computed has zeros for a context. */
static void clear_contexts(const struct layer *l, const struct call *c, const struct item *item) {
  const size_t row = role_in(l, ROLE_OUTPUT);
  memset(c->space->context + item->q_row * row, 0, item->q * row * sizeof(float));
}

static void look_at_call(const struct layer *l, const struct call *c, size_t index) {
  const struct call_space *s = c->space;
  if (s->needed[ROLE_OUTPUT].slot) clear_contexts(l, c, &c->geometry->item[index]);
  if (l->relative) relative_fill(l, c, index);
  if (!could_be_in_place(c, index)) return;
  for (unsigned role = ROLE_KEY; role <= ROLE_VALUE; role++)
    atomic_store_explicit(&s->tops[index].role[role], TOP_IN_PLACE, memory_order_relaxed);
}

static bool has_look(const struct layer_step *s, const struct call *c) {
  return s->at.first || c->space->needed[ROLE_OUTPUT].slot || s->at.layer->relative ||
         c->space->in_place;
}

/* --- units --- */

/* Whole items: what is read once costs little beside what it is read for. */
static bool look_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct layer_step *s = layer_step_of(step);
  const struct call *c = call_of(s, u->run);
  const struct geometry *g = c->geometry;
  if (at->item == g->items || g->q_rows == 0 || !has_look(s, c)) return false;
  u->item = at->item;
  u->items = size_min(c->space->bunch, g->items - at->item);
  at->item += u->items;
  return true;
}

static double look_unit_work(const struct step *step, const struct unit *u) {
  return call_of(layer_step_of(step), u->run)->space->look_work * (double)u->items;
}

static void look_at_unit(const struct layer_step *s, const struct unit *u) {
  const struct call *c = call_of(s, u->run);
  for (size_t i = u->item; i < u->item + u->items; i++) {
    if (c->geometry->item[i].q == 0) continue;
    if (s->at.first) look_at_geometry(s->at.layer, c->geometry, i);
    look_at_call(s->at.layer, c, i);
  }
}

static void compute_look(const struct step *step, const struct span *span, void *scratch) {
  const unsigned mode = kernel_enter();
  struct span left = *span;
  struct unit u;
  (void)scratch;
  while (run_next_unit(&left, &u)) look_at_unit(layer_step_of(step), &u);
  kernel_leave(mode);
}

const struct step step_look = {.unit = look_unit, .work = look_unit_work, .compute = compute_look};
