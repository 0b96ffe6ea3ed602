/* match: MaxSim: the sum over the vectors of a query of the greatest dot product with a vector of
 * another item. */
#include "core/forward/forward.h"

static void match_item(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack *s = step->stack;
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_kept *q = &r->match->of[r->match->query], *d = &r->match->of[u->item];
  const size_t size = r->output_size;
  double sum = 0;
  (void)scratch;
  for (size_t i = 0; i < q->count; i++) {
    const float *row = r->outputs + (q->first + i) * size;
    double best = s->kernel->dot(size, row, r->outputs + d->first * size);
    for (size_t k = 1; k < d->count; k++) {
      const double dot = s->kernel->dot(size, row, r->outputs + (d->first + k) * size);
      best = dot > best ? dot : best;
    }
    sum += best;
  }
  r->similarity[u->item] = (float)sum;
}

static bool match_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  (void)step;
  if (!r->match) return false;
  if (at->item == r->match->query) at->item++;
  if (at->item >= r->geometry.items) return false;
  u->item = at->item++;
  u->items = 1;
  return true;
}

/* Operations for the similarity of an item. */
static double item_work(const struct stack_run *r, size_t item) {
  const struct stack_kept *of = r->match->of;
  return 2.0 * (double)of[r->match->query].count * (double)of[item].count * (double)r->output_size;
}

static double match_work(const struct step *step, const struct unit *u) {
  (void)step;
  return item_work(stack_run_of(u->run), u->item);
}

double stack_match_work(const struct stack_run *r) {
  double work = 0;
  for (size_t i = 0; r->match && i < r->geometry.items; i++)
    if (i != r->match->query) work += item_work(r, i);
  return work;
}

const struct stack_step stack_step_match = {
    .step = {.unit = match_unit, .work = match_work, .compute = stack_compute_kernels},
    .each = match_item};
