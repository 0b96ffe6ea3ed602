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

enum { HEADS = 2, OUTPUT = 3, ITEMS_MAX = 8 };

static char name[] = "demo";
static const struct model model = {.name = name, .shape = {.heads = HEADS, .output_size = OUTPUT}};
static const struct body_limits wide = {.max_answer_bytes = 1 << 30};

/* An answered request of items with these rows, whose numbers are all different. */
struct answered {
  struct arena arena;
  struct attention_request request;
  struct item item[ITEMS_MAX];
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
  struct call *c = &a->request.call;
  c->items = items;
  c->item = a->item;
  c->want = want;
  for (size_t i = 0; i < items; i++) {
    size_t q = rows[i][0], k = rows[i][1];
    a->item[i] = (struct item){
        .q = q, .k = k, .q_row = c->q_rows, .k_row = c->k_rows, .weights_at = c->weight_count};
    c->q_rows += q;
    c->k_rows += k;
    if (want != WEIGHTS_NONE) c->weight_count += q * k * (want == WEIGHTS_PER_HEAD ? HEADS : 1);
  }
  c->outputs = numbers(a, c->q_rows * OUTPUT, -1000.5f);
  if (want != WEIGHTS_NONE) c->weights = numbers(a, c->weight_count, 0.125f);
}

/* Asks for the weights of segments as well: of each item as many as `segments` says. */
static inline void add_segments(struct answered *a, const size_t *segments) {
  static const int32_t nothing;
  struct call *c = &a->request.call;
  c->segment_end = &nothing; /* that there are any is all that the answer needs to know */
  for (size_t i = 0; i < c->items; i++) {
    a->item[i].segments = segments[i];
    a->item[i].segment_weights_at = c->segment_weight_count;
    c->segment_weight_count += a->item[i].q * segments[i] * HEADS;
  }
  if (c->want == WEIGHTS_PER_HEAD) c->segment_weights = numbers(a, c->segment_weight_count, 7);
}

static inline void add_pointers(struct answered *a) {
  struct call *c = &a->request.call;
  c->want_pointers = true;
  c->pointers = arena_alloc(&a->arena, HEADS * c->q_rows, sizeof *c->pointers, &a->error);
  assert_non_null(c->pointers);
  for (size_t i = 0; i < HEADS * c->q_rows; i++) c->pointers[i] = (int32_t)i - 1;
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
  struct call *c = &a->request.call;
  c->want_measures = true;
  c->measures = &measures;
  c->gradients = gradients ? gradient : NULL;
}

/* The bytes of the answer in this form, a zero behind them; its pieces are written last to first.
 * The caller frees them. */
static inline char *answer_of(struct answered *a, enum answer_form form, const struct model *m,
                              struct answer *answer, size_t *bytes) {
  attention_answer_plan(answer, form, m, &a->request, &wide, &a->arena, &a->error);
  assert_int_equal(a->error.status, STATUS_OK);
  if (a->request.call.measures) a->request.call.measures->rows = 512; /* known only now */
  for (size_t i = answer->pieces; i-- > 0;) answer_write_piece(answer, i);
  *bytes = answer_bytes(answer);
  char *text = malloc(*bytes + 1);
  assert_non_null(text);
  size_t at = 0;
  for (size_t i = 0; i < answer->pieces; i++) {
    memcpy(text + at, answer->piece[i].iov_base, answer->piece[i].iov_len);
    at += answer->piece[i].iov_len;
  }
  assert_int_equal(at, *bytes);
  text[*bytes] = '\0';
  return text;
}

#endif
