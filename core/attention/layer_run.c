/* layer_run: computes spans: rows through a matrix, attention of query tiles, and measures of
 * heads.
 *
 * Everything a span writes is its own: rows of projections, context, outputs and weights, sums of
 * measures. What spans share are the tops and the fault of a call, which do not depend on order. */
#include "core/attention/layer_rows.h"

void layer_run(const struct layer *l, const struct span *span, void *scratch) {
  const unsigned mode = kernel_enter();
  struct cursor at = span->from;
  struct strip strip;
  struct unit u;
  strip_begin(&strip, l, scratch);
  for (size_t i = 0; i < span->units; i++) {
    must(unit_next(l, &at, &u));
    if (call_is_over(u.call, u.phase)) continue;
    if (u.phase == PHASE_LOOK) {
      run_look(l, &u);
      continue;
    }
    if (u.phase == PHASE_ATTEND) {
      run_attention(l, &u, scratch);
      continue;
    }
    if (u.phase == PHASE_MEASURE) {
      run_measure(l, &u, scratch);
      continue;
    }
    if (u.phase == PHASE_SUM) {
      run_measure_sum(l, &u);
      continue;
    }
    strip_take(&strip, &u);
  }
  strip_flush(&strip);
  kernel_leave(mode);
}

void layer_compute(const struct layer *l, struct call *first, double work, void *scratch) {
  struct span span;
  for (struct cursor at = layer_begin(l, first); at.phase != PHASE_DONE; at = layer_next(l, &at))
    while (layer_cut(l, &at, work, &span)) layer_run(l, &span, scratch);
}
