/* thumbnail: attention weights as thumbnails: the greatest weight of each block, a byte each. */
#include <math.h>

#include "core/base/size.h"
#include "core/inspect/inspect.h"

/* A block's rows and columns begin at these shares of the head's. */
static size_t share(size_t i, size_t rows, size_t side) { return i * rows / side; }

static uint8_t block_byte(const struct thumbnail *p, size_t i, size_t j) {
  const size_t high = thumbnail_high(p), wide = thumbnail_wide(p);
  const size_t left = share(j, p->columns, wide), right = share(j + 1, p->columns, wide);
  float most = 0;
  for (size_t row = share(i, p->rows, high); row < share(i + 1, p->rows, high); row++) {
    const float *weight = p->weights + row * p->row_step;
    for (size_t at = left; at < right; at++) most = weight[at] > most ? weight[at] : most;
  }
  return (uint8_t)floor(255 * (double)most + 0.5); /* exact: of a float the sum would be rounded */
}

void thumbnail_write(const struct thumbnail *p, uint8_t *to) {
  for (size_t i = 0; i < thumbnail_high(p); i++)
    for (size_t j = 0; j < thumbnail_wide(p); j++) *to++ = block_byte(p, i, j);
}

static void show_head(const struct stack_run *r, size_t number, size_t item, size_t head) {
  const struct call *c = &r->call[number];
  const struct stack_shown *shown = &r->shown[number];
  const size_t q = c->geometry->item[item].q, k = c->geometry->item[item].k;
  const struct thumbnail p = {.weights = c->weights + c->weights_at[item] + head * q * k,
                              .row_step = k,
                              .rows = q,
                              .columns = k,
                              .most = r->wish[number].thumbnail};
  const size_t bytes = thumbnail_high(&p) * thumbnail_wide(&p);
  thumbnail_write(&p, r->space->thumbnails[number] + shown->thumbnails_at[item] + head * bytes);
}

static bool next_head(const struct step *step, struct cursor *at, struct unit *u) {
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
static double show_work(const struct step *step, const struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  const struct item *item = &r->call[stack_step_of(step)->attention].geometry->item[u->item];
  return 20 * (double)item->q * (double)item->k + 100;
}

static void show_unit(const struct stack_step *step, const struct unit *u, void *scratch) {
  (void)scratch;
  show_head(stack_run_of(u->run), step->attention, u->item, u->head);
}

const struct stack_step stack_step_thumbnails = {
    .step = {.unit = next_head, .work = show_work, .compute = stack_compute}, .each = show_unit};
