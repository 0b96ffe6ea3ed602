/* run: how the work of a batch of runs is walked, step by step. */
#include "core/run/run.h"

enum { UNITS_MAX = 512 }; /* of a span: cutting walks them while other threads wait */

static const struct step *step_at(const struct cursor *at) { return at->program->step[at->step]; }

/* Moves to the next unit of the step, of any run of the batch; its run is NULL if there is none. A
 * unit is set field by field, and cursors move in place: compilers clear and copy whole structs
 * slowly. */
static void move_on(struct cursor *at) {
  const struct step *s = step_at(at);
  struct unit *u = &at->unit;
  while (u->run) {
    u->step = at->step;
    u->pass = at->pass;
    u->item = u->head = u->heads = u->row = u->rows = 0;
    u->items = 1;
    u->column = at->column, u->columns = at->columns;
    if (s->unit(s, at, u)) return;
    /* The next run; after the last one, the first run again with the next columns. */
    at->item = at->head = at->row = 0;
    u->run = u->run->next;
    if (u->run || at->columns == 0) continue;
    at->column += at->columns;
    if (at->column < s->columns) u->run = at->first;
  }
}

/* Moves to the first unit of a pass of a step. */
static void enter_step(struct cursor *at, unsigned step, size_t pass) {
  const struct step *s = at->program->step[step];
  at->step = step, at->pass = pass;
  at->unit.run = at->first;
  at->item = at->head = at->row = at->column = 0;
  at->columns = s->share ? s->share(s, at->first) : 0;
  move_on(at);
}

/* If no unit is left in the cursor's step, moves on to the steps that join it. */
static void enter_joined(struct cursor *at) {
  const struct program *p = at->program;
  while (!run_has_units(at) && at->step + 1 < p->steps && p->step[at->step + 1]->joins)
    enter_step(at, at->step + 1, 0);
}

void run_begin(struct cursor *at, struct run *first) {
  at->program = first->program;
  at->first = first;
  enter_step(at, 0, 0);
  enter_joined(at);
}

void run_next(struct cursor *at) {
  const struct step *s = step_at(at);
  size_t most = 1; /* passes of any run */
  for (const struct run *r = at->first; s->passes && r; r = r->next) {
    const size_t passes = run_is_over(r, at->step) ? 0 : s->passes(s, r);
    most = passes > most ? passes : most;
  }
  if (at->pass + 1 < most)
    enter_step(at, at->step, at->pass + 1);
  else if (++at->step < at->program->steps)
    enter_step(at, at->step, 0);
  if (!run_is_done(at)) enter_joined(at);
}

bool run_cut(struct cursor *at, double work, struct span *out) {
  out->from = *at, out->units = 0, out->work = 0;
  if (!run_has_units(at)) return false;
  const struct step *s = step_at(at);
  const double least = s->least ? s->least(s, at) : 0;
  const double most = work > least ? work : least;
  for (; run_has_units(at) && out->work < most && out->units < UNITS_MAX; out->units++) {
    out->work += run_is_over(at->unit.run, at->step) ? 0 : s->work(s, &at->unit);
    move_on(at);
  }
  enter_joined(at);
  return out->units > 0;
}

void run_span(const struct span *span, void *scratch) {
  const struct step *s = step_at(&span->from);
  s->compute(s, span, scratch);
}

bool run_next_unit(struct span *left, struct unit *u) {
  while (left->units > 0) {
    *u = left->from.unit;
    if (--left->units > 0) move_on(&left->from);
    if (!run_is_over(u->run, u->step)) return true;
  }
  return false;
}

void run_compute(struct run *first, double work, void *scratch) {
  struct cursor at;
  struct span span;
  for (run_begin(&at, first); !run_is_done(&at); run_next(&at))
    while (run_cut(&at, work, &span)) run_span(&span, scratch);
}

/* --- faults --- */

/* The step's number is stored plus one, so that no fault is 0. */
void run_record_fault(struct run *r, unsigned step, uint64_t place) {
  const uint64_t here = (uint64_t)(step + 1) << RUN_FAULT_SHIFT | place;
  uint64_t known = atomic_load(&r->fault);
  while ((known == 0 || here < known) && !atomic_compare_exchange_weak(&r->fault, &known, here)) {
  }
}

enum status run_fault(const struct run *r, struct error *e) {
  const uint64_t fault = atomic_load(&r->fault);
  if (fault == 0) return STATUS_OK;
  const struct step *s = r->program->step[(fault >> RUN_FAULT_SHIFT) - 1];
  return s->fault(s, r, fault & (((uint64_t)1 << RUN_FAULT_SHIFT) - 1), e);
}
