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

static bool next_unit(const struct step *s, struct cursor *at, struct unit *u) {
  const struct counting_run *r = counting_run_of(u->run);
  (void)s;
  if (at->row == r->units) return false;
  u->row = at->row++;
  return true;
}

static double unit_work(const struct step *s, const struct unit *u) {
  const struct counting_run *r = counting_run_of(u->run);
  (void)s;
  return r->run.work / (double)(r->units * r->run.program->steps);
}

static void count_units(const struct step *s, const struct span *span, void *scratch) {
  struct span left = *span;
  struct unit u;
  (void)s, (void)scratch;
  while (run_next_unit(&left, &u)) {
    struct counting_run *r = counting_run_of(u.run);
    if (r->at_unit) r->at_unit(r);
    if (r->round == r->fault_at) run_record_fault(&r->run, u.step, 0);
    count_unit(r, r->run.program->steps, u.step, u.row);
  }
}

static enum status describe_fault(const struct step *s, const struct run *run, uint64_t place,
                                  struct error *e) {
  (void)s, (void)run, (void)place;
  return error_set(e, STATUS_SYSTEM, "told to");
}

static const struct step counting_step = {
    .unit = next_unit, .work = unit_work, .compute = count_units, .fault = describe_fault};

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
  for (size_t i = 0; i < steps; i++) c->list[i] = &counting_step;
  c->program = (struct program){.step = c->list,
                                .steps = (unsigned)steps,
                                .next_round = again ? goes_again : NULL};
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
  const size_t steps = r->run.program->steps;
  struct counting_run alone = {.units = r->units};
  for (alone.round = 0; alone.round < r->rounds; alone.round++)
    for (size_t step = 0; step < steps; step++)
      for (size_t unit = 0; unit < r->units; unit++) count_unit(&alone, steps, step, unit);
  return memcmp(alone.cell, r->cell, sizeof alone.cell) == 0;
}
