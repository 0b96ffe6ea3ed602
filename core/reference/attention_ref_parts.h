/* attention_ref_parts: what the files of the twin share. Private to them.
 *
 * attention_ref.c has the formulas; of them attention_ref_score.c compares a query with a key, and
 * attention_ref_weigh.c has what may become of weights besides. attention_ref_needed.c says which
 * rows and heads take part, attention_ref_item.c has memory and answers, attention_ref_trace.c a
 * trace, attention_ref_call.c takes a call apart. */
#ifndef CORE_ATTENTION_REF_PARTS_H
#define CORE_ATTENTION_REF_PARTS_H

#include "core/reference/attention_ref.h"
#include "core/reference/ref_math.h"

/* The rows of queries, keys or values of an item. n is ref_side_size. */
struct ref_rows {
  size_t count;
  size_t in;           /* how wide they come in */
  size_t heads, size;  /* and the heads that they become */
  const double *input; /* [count, in] */
  double *projected;   /* [count, heads, size] */
  double *sides;       /* [count, heads, n] as a score compares them; not of values */

  uint8_t *head_needed; /* [heads] 1: the answer depends on this head */
  uint8_t *row_needed;  /* [count] */
};

/* One attention: a layer, an item, and what is computed of it. */
struct ref_work {
  const struct layer_shape *s;
  const struct layer_matrix *matrix; /* [ROLE_COUNT] */
  const struct ref_item *item;
  const struct ref_answer *answer;

  struct ref_rows rows[ROLE_VALUE + 1]; /* by role */

  /* Of one query in one head. */
  double *scores;          /* [k] -INFINITY: the query may not see the key */
  double *weights;         /* [k] */
  double *segment_scores;  /* [segments] */
  double *segment_weights; /* [segments] */
  double *segment_key;     /* [d_k] the mean key of one segment */
  double *segment_side;    /* [n] the same as a score compares it */
  int32_t pointer;         /* the heaviest or the drawn key, or -1 */

  double *context; /* [H d_v] of one query: all heads */

  bool beyond; /* a number that takes part exceeds the float32 range */
};

/* attention_ref.c: all queries, from the inputs to the outputs. */
void ref_attend(struct ref_work *r);

/* attention_ref_score.c: a score compares a side that depends on the query alone with one that
 * depends on the key alone, both of this size. */
size_t ref_side_size(const struct layer_shape *s);
void ref_make_side(struct ref_work *r, enum role role, const double *x, double *side);
double ref_compare(const struct ref_work *r, const double *query_side, const double *key_side);
double ref_score(const struct ref_work *r, const double *query_side, const double *key_side);
/* What the distance from query i to key j adds. */
double ref_relative(const struct ref_work *r, size_t head, size_t i, size_t j);

/* attention_ref_weigh.c: makes weights of the scores on two levels. */
void ref_weigh_segments(struct ref_work *r, size_t head, size_t i);
/* Sets the pointer. Where a key is selected, it gets all the weight. */
void ref_choose(struct ref_work *r, size_t head, size_t i);

/* attention_ref_needed.c: finds the rows and heads that the answer depends on. The others are not
 * computed, so they cannot be at fault, whatever is in them. */
void ref_find_needed(struct ref_work *r);

/* attention_ref_item.c: writes down what is asked for of a query in a head, and of a query. */
void ref_write_weights(const struct ref_work *r, size_t head, size_t i);
void ref_write_context(const struct ref_work *r, size_t i);

/* attention_ref_trace.c: and what is asked for of one query in one head. */
void ref_write_trace(struct ref_work *r, size_t head, size_t i);

/* Numbers that take part must not be beyond float32. */
static inline void ref_check(struct ref_work *r, const double *x, size_t n) {
  for (size_t i = 0; i < n; i++) r->beyond |= !ref_is_float(x[i]);
}

/* The head of keys and values that a head of queries looks at: H/G heads share one. */
static inline size_t ref_key_head(const struct layer_shape *s, size_t head) {
  return head / (s->heads / s->kv_heads);
}

static inline double *ref_projected(const struct ref_work *r, enum role role, size_t row,
                                    size_t head) {
  const struct ref_rows *of = &r->rows[role];
  return of->projected + (row * of->heads + head) * of->size;
}

static inline double *ref_side(const struct ref_work *r, enum role role, size_t row, size_t head) {
  const struct ref_rows *of = &r->rows[role];
  return of->sides + (row * of->heads + head) * ref_side_size(r->s);
}

#endif
