/* answered: small requests that have been computed, for tests of their answers. */
#ifndef TESTS_ANSWERED_H
#define TESTS_ANSWERED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/attention/measures.h"
#include "server/attention/attention_answer.h"
#include "tests/support/answer_join.h"

enum { HEADS = 2, OUTPUT = 3, ITEMS_MAX = 1500 };

static char name[] = "demo";
static const struct model model = {.name = name, .shape = {.heads = HEADS, .output_size = OUTPUT}};
static const struct body_limits wide = {.max_answer_bytes = 1 << 30};

/* An answered request of items with these rows, whose numbers are all different. */
struct answered {
  struct arena arena;
  struct attention_request request;
  struct item item[ITEMS_MAX];
  size_t weights_at[ITEMS_MAX], segment_weights_at[ITEMS_MAX];
  struct error error;
};

static inline float *numbers(struct answered *a, size_t count, float first) {
  float *data = arena_alloc(&a->arena, count, sizeof *data, &a->error);
  assert_non_null(data);
  for (size_t i = 0; i < count; i++) data[i] = first + (float)i / 8;
  return data;
}

static inline void make(struct answered *a, size_t items, const size_t (*rows)[2],
                        enum weights want) {
  memset(a, 0, sizeof *a);
  arena_init(&a->arena, NULL);
  struct layer_run *c = &a->request.asked;
  c->geometry.items = items;
  c->geometry.item = a->item;
  c->call.want = want;
  c->call.weights_at = a->weights_at;
  for (size_t i = 0; i < items; i++) {
    size_t q = rows[i][0], k = rows[i][1];
    a->item[i] =
        (struct item){.q = q, .k = k, .q_row = c->geometry.q_rows, .k_row = c->geometry.k_rows};
    a->weights_at[i] = c->call.weight_count;
    c->geometry.q_rows += q;
    c->geometry.k_rows += k;
    if (want != WEIGHTS_NONE)
      c->call.weight_count += q * k * (want == WEIGHTS_PER_HEAD ? HEADS : 1);
  }
  c->call.outputs = numbers(a, c->geometry.q_rows * OUTPUT, -1000.5f);
  if (want != WEIGHTS_NONE) c->call.weights = numbers(a, c->call.weight_count, 0.125f);
}

/* Asks for the weights of segments as well: of each item as many as `segments` says. */
static inline void add_segments(struct answered *a, const size_t *segments) {
  static const int32_t nothing;
  struct layer_run *c = &a->request.asked;
  c->call.segment_weights_at = a->segment_weights_at;
  c->geometry.segment_end = &nothing; /* that there are any is all that the answer needs to know */
  for (size_t i = 0; i < c->geometry.items; i++) {
    a->item[i].segments = segments[i];
    a->segment_weights_at[i] = c->call.segment_weight_count;
    c->call.segment_weight_count += a->item[i].q * segments[i] * HEADS;
  }
  if (c->call.want == WEIGHTS_PER_HEAD)
    c->call.segment_weights = numbers(a, c->call.segment_weight_count, 7);
}

static inline void add_pointers(struct answered *a) {
  struct layer_run *c = &a->request.asked;
  c->call.want_pointers = true;
  c->call.pointers =
      arena_alloc(&a->arena, HEADS * c->geometry.q_rows, sizeof *c->call.pointers, &a->error);
  assert_non_null(c->call.pointers);
  for (size_t i = 0; i < HEADS * c->geometry.q_rows; i++) c->call.pointers[i] = (int32_t)i - 1;
}

/* Asks for the measures instead of the outputs. */
static inline void measure(struct answered *a, bool gradients, bool divergence) {
  static struct head_measures head[HEADS] = {{0.5, 0.25, 1e10, 3, 0.75, 1.0 / 3, 1e-9},
                                             {1, 0, 0, 0, 0, 2, 1e-20}};
  static double apart[HEADS * HEADS] = {0, 0.1, 0.1, 0};
  static size_t ranking[HEADS] = {1, 0};
  static struct measures measures;
  static const float gradient[1];
  measures =
      (struct measures){.head = head, .divergence = divergence ? apart : NULL, .ranking = ranking};
  struct layer_run *c = &a->request.asked;
  c->call.want_measures = true;
  c->call.measures = &measures;
  c->call.gradients = gradients ? gradient : NULL;
}

/* The bytes of the answer in this form, a zero behind them; its pieces are written last to first.
 * The caller frees them. */
static inline char *answer_of(struct answered *a, enum answer_form form, const struct model *m,
                              struct answer *answer, size_t *bytes) {
  attention_answer_plan(answer, form, m, &a->request, &wide, &a->arena, &a->error);
  assert_int_equal(a->error.status, STATUS_OK);
  if (a->request.asked.call.measures)
    a->request.asked.call.measures->rows = 512; /* known only now */
  char *text = answer_join_written(answer);
  *bytes = answer_bytes(answer);
  return text;
}

#endif
