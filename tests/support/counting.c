/* counting: a program of the tests' own, for the pool. */
#include "tests/support/counting.h"

#include <string.h>

static struct counting_run *counting_run_of(const struct run *run) {
  return (struct counting_run *)run;
}

static void count_unit(struct counting_run *r, size_t steps, size_t step, size_t unit) {
  const uint64_t *before = r->cell[(step + steps - 1) % steps];
  r->cell[step][unit] =
      (r->cell[step][unit] + before[unit]) * 3 + before[(unit + 1) % r->units] + r->round + 1;
}

/* --- the program --- */

static struct cursor begin_step(const struct program *p, struct run *first, unsigned step) {
  return (struct cursor){.first = first, .run = step < p->phases ? first : NULL, .phase = step};
}

static struct cursor begin_first(const struct program *p, struct run *first) {
  return begin_step(p, first, 0);
}

static struct cursor begin_next(const struct program *p, const struct cursor *at) {
  return begin_step(p, at->first, at->phase + 1);
}

static void move_on(struct cursor *at) {
  if (++at->row < counting_run_of(at->run)->units) return;
  at->row = 0;
  at->run = at->run->next;
}

static bool cut_units(const struct program *p, struct cursor *at, double work, struct span *out) {
  *out = (struct span){.from = *at};
  for (double sum = 0; at->run && sum < work; out->units++) {
    const struct counting_run *r = counting_run_of(at->run);
    if (!atomic_load(&r->run.cancelled)) sum += r->run.work / (double)(r->units * p->phases);
    move_on(at);
  }
  return out->units > 0;
}

static void count_units(const struct program *p, const struct span *span, void *scratch) {
  (void)scratch;
  struct cursor at = span->from;
  for (size_t i = 0; i < span->units; i++, move_on(&at)) {
    struct counting_run *r = counting_run_of(at.run);
    if (atomic_load(&r->run.cancelled)) continue;
    if (r->at_unit) r->at_unit(r);
    if (r->round == r->fault_at) atomic_store(&r->run.fault, 1);
    count_unit(r, p->phases, at.phase, at.row);
  }
}

static enum status describe_fault(const struct run *run, struct error *e) {
  if (!atomic_load(&run->fault)) return STATUS_OK;
  return error_set(e, STATUS_SYSTEM, "told to");
}

static uint64_t drawn(uint64_t seed, size_t round) {
  const uint64_t x = (seed + round) * 0x9e3779b97f4a7c15u;
  return x ^ x >> 29;
}

static bool goes_again(const struct program *p, struct run *run) {
  struct counting_run *r = counting_run_of(run);
  struct counting *c = (struct counting *)p;
  if (atomic_load(&c->closed)) atomic_fetch_add(&c->asked_too_late, 1);
  r->asked++;
  if (r->round + 1 >= r->rounds) return false;
  r->round++;
  if (r->later != 0) run->work = r->later;
  if (r->seed) run->work = (double)(drawn(r->seed, r->round) % 4000000);
  return true;
}

void counting_init(struct counting *c, size_t steps, bool again) {
  memset(c, 0, sizeof *c);
  c->program = (struct program){.phases = (unsigned)steps,
                                .begin = begin_first,
                                .next = begin_next,
                                .cut = cut_units,
                                .compute = count_units,
                                .fault = describe_fault,
                                .again = again ? goes_again : NULL};
}

void counting_run_init(struct counting_run *r, struct counting *c, size_t units, size_t rounds) {
  memset(r, 0, sizeof *r);
  r->units = units;
  r->rounds = rounds;
  r->fault_at = SIZE_MAX;
  r->run = (struct run){.program = &c->program, .work = 1e6, .rows = 1};
  r->job.run = &r->run;
}

bool counting_is_right(const struct counting_run *r) {
  const size_t steps = r->run.program->phases;
  struct counting_run alone = {.units = r->units};
  for (alone.round = 0; alone.round < r->rounds; alone.round++)
    for (size_t step = 0; step < steps; step++)
      for (size_t unit = 0; unit < r->units; unit++) count_unit(&alone, steps, step, unit);
  return memcmp(alone.cell, r->cell, sizeof alone.cell) == 0;
}
