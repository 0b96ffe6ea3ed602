/* layer_fault: the first place of a call that is beyond float32. */
#include "core/attention/layer_parts.h"

enum { FAULT_SHIFT = 56 };

void fault_note(struct call *c, enum fault_stage stage, size_t row) {
  const uint64_t here = (uint64_t)stage << FAULT_SHIFT | row;
  _Atomic uint64_t *fault = &c->run.fault;
  uint64_t known = atomic_load(fault);
  while ((known == 0 || here < known) && !atomic_compare_exchange_weak(fault, &known, here)) {
  }
}

bool call_is_over(const struct call *c, enum layer_phase phase) {
  if (atomic_load_explicit(&c->run.cancelled, memory_order_relaxed)) return true;
  const uint64_t fault = atomic_load_explicit(&c->run.fault, memory_order_relaxed);
  /* A fault of this very phase stops nothing: which place is the first one must not depend on
   * the order in which the tiles are computed. */
  static const enum fault_stage first_of[PHASE_COUNT] = {
      [PHASE_LOOK] = FAULT_QUERY,    [PHASE_PROJECT] = FAULT_QUERY,   [PHASE_ATTEND] = FAULT_SCORE,
      [PHASE_OUTPUT] = FAULT_OUTPUT, [PHASE_MEASURE] = FAULT_MEASURE, [PHASE_SUM] = FAULT_MEASURE};
  return fault != 0 && fault >> FAULT_SHIFT < (uint64_t)first_of[phase];
}

/* The item that a row belongs to; rows are counted over all items. */
static size_t item_of_row(const struct call *c, size_t row, bool of_keys) {
  size_t i = 0;
  while (i + 1 < c->items && (of_keys ? c->item[i + 1].k_row : c->item[i + 1].q_row) <= row) i++;
  return i;
}

enum status fault_describe(const struct run *run, struct error *e) {
  static const char *const what[] = {[FAULT_QUERY] = "the projection of query",
                                     [FAULT_KEY] = "the projection of key",
                                     [FAULT_VALUE] = "the projection of value",
                                     [FAULT_OUTPUT] = "the output of query"};
  const struct call *c = call_of_const(run);
  const uint64_t fault = atomic_load(&run->fault);
  if (fault == 0) return STATUS_OK;
  const enum fault_stage stage = (enum fault_stage)(fault >> FAULT_SHIFT);
  const size_t row = fault & (((uint64_t)1 << FAULT_SHIFT) - 1);
  const bool of_keys = stage == FAULT_KEY || stage == FAULT_VALUE;
  const size_t item = item_of_row(c, row, of_keys);
  if (stage == FAULT_MEASURE)
    return error_set(e, STATUS_NOT_FINITE, "a measure of the heads is beyond float32");
  if (stage == FAULT_SCORE)
    return error_set(e, STATUS_NOT_FINITE, "a score of item %zu is beyond float32", item);
  const size_t first = of_keys ? c->item[item].k_row : c->item[item].q_row;
  return error_set(e, STATUS_NOT_FINITE, "%s row %zu of item %zu is beyond float32", what[stage],
                   row - first, item);
}
