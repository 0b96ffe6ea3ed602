/* tensor_nest: what the brackets of a tensor mean: depth, lengths, ragged elements, pointers;
 * internal to tensor_json, which reads the text. The rules are those of tensor_json.h. */
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
  size_t index[TENSOR_DEPTH_MAX + 1]; /* [depth]: values so far in the array open at that depth */

  struct tensor_shape current;      /* of the element being read */
  bool known[TENSOR_DEPTH_MAX - 1]; /* which of its lengths an array has settled */
  struct tensor_shape common;       /* of the first element, and all until `ragged` */
  struct tensor_shape *ragged;
  size_t ragged_capacity, first_ragged;

  /* The first empty array at each depth: a row of no numbers, if that turns out as their depth. */
  bool hollow[TENSOR_DEPTH_MAX + 1];
  size_t hollow_index[TENSOR_DEPTH_MAX + 1][TENSOR_DEPTH_MAX + 1];
};

void tensor_nest_init(struct tensor_nest *n, const struct tensor_rule *rule, struct arena *a);

/* A `[` where a value belongs. The caller has checked tensor_nest_full_depth. */
enum status tensor_nest_open(struct tensor_nest *n, struct error *e);
enum status tensor_nest_close(struct tensor_nest *n, struct error *e);

/* No array may be opened inside this one: the rule's depth is reached. */
static inline bool tensor_nest_full_depth(const struct tensor_nest *n) {
  return n->depth == n->rule.depth_max;
}

/* A number where a value belongs: may it be here? On success *room is how many may follow in the
 * array, itself included. It is counted by the caller: n->index[n->depth]++. With no room the row
 * is too long: its values are counted nevertheless, and tensor_nest_close refuses it. */
enum status tensor_nest_number(struct tensor_nest *n, size_t *room, struct error *e);

/* Refuses a row that is too long where it is not worth counting on. */
enum status tensor_nest_refuse_length(const struct tensor_nest *n, struct error *e);

/* The value has ended: checks what can only be checked now. */
enum status tensor_nest_finish(struct tensor_nest *n, struct error *e);

/* An invalid-request at the value that comes next. */
enum status tensor_nest_refuse(const struct tensor_nest *n, struct error *e, const char *format,
                               ...) __attribute__((format(printf, 3, 4)));

/* The same at the field as a whole. */
enum status tensor_nest_refuse_all(const struct tensor_nest *n, struct error *e, const char *format,
                                   ...) __attribute__((format(printf, 3, 4)));

#endif
