/* thumbnail: attention weights as small pictures: the greatest weight of each block, a byte each.
 */
#include <math.h>

#include "core/inspect/inspect.h"

/* The first row (or column) of block i, of `blocks` that share `rows`. */
static size_t begin(size_t i, size_t rows, size_t blocks) { return i * rows / blocks; }

void thumbnail_write(const struct thumbnail *p, uint8_t *to) {
  const size_t high = thumbnail_high(p), wide = thumbnail_wide(p);
  for (size_t i = 0; i < high; i++)
    for (size_t j = 0; j < wide; j++) {
      const size_t left = begin(j, p->columns, wide), right = begin(j + 1, p->columns, wide);
      float most = 0;
      for (size_t row = begin(i, p->rows, high); row < begin(i + 1, p->rows, high); row++) {
        const float *weight = p->weights + row * p->row_step;
        for (size_t at = left; at < right; at++) most = weight[at] > most ? weight[at] : most;
      }
      *to++ = (uint8_t)floor(255 * (double)most + 0.5); /* exact: in float the sum is rounded */
    }
}

/* --- the step: a unit is a head of an item --- */

static bool thumbnail_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_step *s = stack_step_of(step);
  const struct stack_run *r = stack_run_of(u->run);
  if (!r->wish || r->wish[s->attention].weights != STACK_WEIGHTS_THUMBNAILS) return false;
  if (at->head == stack_shape(s->stack, s->attention)->heads) at->item++, at->head = 0;
  if (at->item == r->geometry.items) return false;
  u->item = at->item;
  u->head = at->head++;
  u->heads = 1;
  return true;
}

/* Bound by memory. */
static double thumbnail_work(const struct step *step, const struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  const struct item *item = &r->call[stack_step_of(step)->attention].geometry->item[u->item];
  return 20 * (double)item->q * (double)item->k + 100;
}

static void write_head(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack_run *r = stack_run_of(u->run);
  const size_t number = step->attention;
  const struct call *c = &r->call[number];
  const size_t q = c->geometry->item[u->item].q, k = c->geometry->item[u->item].k;
  const struct thumbnail p = {.weights = c->weights + c->weights_at[u->item] + u->head * q * k,
                              .row_step = k,
                              .rows = q,
                              .columns = k,
                              .most = r->wish[number].thumbnail};
  const size_t bytes = thumbnail_high(&p) * thumbnail_wide(&p);
  (void)scratch;
  const struct stack_shown *shown = &r->shown[number];
  thumbnail_write(&p, shown->thumbnails + shown->thumbnails_at[u->item] + u->head * bytes);
}

const struct stack_step stack_step_thumbnails = {
    .step = {.unit = thumbnail_unit, .work = thumbnail_work, .compute = stack_compute},
    .each = write_head};
