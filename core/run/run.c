/* run: how the work of a batch of runs is walked, step by step. */
#include "core/run/run.h"

enum { UNITS_MAX = 512 }; /* of a span: cutting walks them while other threads wait */

static const struct step *step_at(const struct cursor *at) { return at->program->step[at->step]; }

/* To the next run, or with the next columns to the first one. */
static void leave_run(struct cursor *at) {
  at->item = at->head = at->row = 0;
  at->run = at->run->next;
  if (at->run || at->columns == 0) return;
  at->column += at->columns;
  if (at->column < step_at(at)->columns) at->run = at->first;
}

bool run_unit(struct cursor *at, struct unit *u) {
  const struct step *s = at->run ? step_at(at) : NULL;
  for (; at->run; leave_run(at)) {
    *u = (struct unit){.run = at->run,
                       .step = at->step,
                       .pass = at->pass,
                       .items = 1,
                       .column = at->column,
                       .columns = at->columns};
    if (s->unit(s, at, u)) return true;
  }
  return false;
}

/* The beginning of a step, or of a pass of it, whether or not it has anything to do. */
static struct cursor step_begin(const struct program *p, struct run *first, unsigned step,
                                size_t pass) {
  const struct step *s = p->step[step];
  return (struct cursor){.program = p,
                         .first = first,
                         .run = first,
                         .step = step,
                         .pass = pass,
                         .columns = s->share ? s->share(s, first) : 0};
}

/* Where nothing is left of the cursor's step, it moves on to the steps that join it; at the end of
 * these its run becomes NULL. */
static void settle(struct cursor *at) {
  const struct program *p = at->program;
  for (;;) {
    struct cursor ahead = *at;
    struct unit u;
    if (run_unit(&ahead, &u)) return;
    at->run = NULL;
    if (at->step + 1 >= p->steps || !p->step[at->step + 1]->joins) return;
    *at = step_begin(p, at->first, at->step + 1, 0);
  }
}

static struct cursor cursor_of(struct run *first, unsigned step, size_t pass) {
  const struct program *p = first->program;
  if (step == p->steps) return (struct cursor){.program = p, .first = first, .step = step};
  struct cursor at = step_begin(p, first, step, pass);
  settle(&at);
  return at;
}

struct cursor run_begin(struct run *first) {
  return cursor_of(first, 0, 0);
}

static size_t passes_of(const struct cursor *at) {
  const struct step *s = step_at(at);
  size_t most = 1;
  for (const struct run *r = at->first; s->passes && r; r = r->next) {
    const size_t passes = run_is_over(r, at->step) ? 0 : s->passes(s, r);
    most = passes > most ? passes : most;
  }
  return most;
}

struct cursor run_next(const struct cursor *at) {
  if (at->pass + 1 < passes_of(at)) return cursor_of(at->first, at->step, at->pass + 1);
  return cursor_of(at->first, at->step + 1, 0);
}

bool run_cut(struct cursor *at, double work, struct span *out) {
  *out = (struct span){.from = *at};
  if (!at->run) return false;
  const struct step *s = step_at(at);
  const double least = s->least ? s->least(s, at) : 0;
  struct unit u;
  for (double sum = 0; sum < (work > least ? work : least) && out->units < UNITS_MAX;
       out->units++) {
    if (!run_unit(at, &u)) break;
    sum += run_is_over(u.run, at->step) ? 0 : s->work(s, &u);
  }
  settle(at);
  return out->units > 0;
}

void run_span(const struct span *span, void *scratch) {
  const struct step *s = step_at(&span->from);
  s->compute(s, span, scratch);
}

bool run_next_unit(struct span *left, struct unit *u) {
  while (left->units > 0) {
    left->units--;
    must(run_unit(&left->from, u));
    if (!run_is_over(u->run, u->step)) return true;
  }
  return false;
}

void run_compute(struct run *first, double work, void *scratch) {
  struct span span;
  for (struct cursor at = run_begin(first); !run_is_done(&at); at = run_next(&at))
    while (run_cut(&at, work, &span)) run_span(&span, scratch);
}

/* --- faults --- */

/* The step's number is kept with one added, so that no fault is 0. */
void run_note_fault(struct run *r, unsigned step, uint64_t place) {
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
