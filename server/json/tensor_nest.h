/* tensor_nest: the meaning of a tensor's brackets: depth, lengths, ragged elements, JSON Pointers.
 * Private to tensor_json, which reads the text and whose header has the rules. */
#ifndef SERVER_TENSOR_NEST_H
#define SERVER_TENSOR_NEST_H

#include "server/json/tensor_json.h"

enum { TENSOR_DEPTH_UNKNOWN = TENSOR_DEPTH_MAX + 1 };

struct tensor_nest {
  struct tensor_rule rule;
  struct arena *arena;
  unsigned depth;                     /* brackets open now */
  unsigned deepest;                   /* brackets ever open together */
  unsigned leaf;                      /* depth of the numbers, or TENSOR_DEPTH_UNKNOWN */
  size_t index[TENSOR_DEPTH_MAX + 1]; /* [depth] values so far in the array open at that depth */

  struct tensor_shape current;      /* the element being read */
  bool known[TENSOR_DEPTH_MAX - 1]; /* whether an array has set that length of `current` */
  struct tensor_shape common;       /* the first element, and all before `first_ragged` */
  struct tensor_shape *ragged;
  size_t ragged_capacity, first_ragged;

  /* The first empty array at each depth: a row without numbers, if that is the numbers' depth. */
  bool hollow[TENSOR_DEPTH_MAX + 1];
  size_t hollow_index[TENSOR_DEPTH_MAX + 1][TENSOR_DEPTH_MAX + 1];
};

void tensor_nest_init(struct tensor_nest *n, const struct tensor_rule *rule, struct arena *a);

/* Read `[` where a value belongs, and `]`. tensor_nest_full_depth must be false before `[`. All
 * functions below return the status of `e`: invalid-request (pointer), too-large (max_items). */
enum status tensor_nest_open(struct tensor_nest *n, struct error *e);
enum status tensor_nest_close(struct tensor_nest *n, struct error *e);

/* Returns whether the rule allows no array inside this one. */
static inline bool tensor_nest_full_depth(const struct tensor_nest *n) {
  return n->depth == n->rule.depth_max;
}

/* Checks a number where a value belongs. *room is how many numbers may follow in the array, itself
 * included. The caller counts it: n->index[n->depth]++. *room 0: the row is too long; its values
 * are counted nevertheless, and tensor_nest_close rejects it. */
enum status tensor_nest_number(struct tensor_nest *n, size_t *room, struct error *e);

/* Fails for a row that is too long before its end. */
enum status tensor_nest_refuse_length(const struct tensor_nest *n, struct error *e);

/* Ends the value. */
enum status tensor_nest_finish(struct tensor_nest *n, struct error *e);

/* Fails with invalid-request at the next value, below `levels` brackets: n->depth, or 0 for the
 * whole field. */
enum status tensor_nest_refuse(const struct tensor_nest *n, unsigned levels, struct error *e,
                               const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
