/* tensor_nest: the meaning of a tensor's brackets. */
#include "server/json/tensor_nest.h"

#include <stdio.h>
#include <string.h>

#include "core/base/size.h"

void tensor_nest_init(struct tensor_nest *n, const struct tensor_rule *rule, struct arena *a) {
  *n = (struct tensor_nest){.rule = *rule, .arena = a, .leaf = TENSOR_DEPTH_UNKNOWN};
}

/* --- failures --- */

/* The pointer is the field's name and index[1 .. levels]. */
static enum status refuse_with(const struct tensor_nest *n, const size_t *index, unsigned levels,
                               struct error *e, const char *format, va_list args) {
  char pointer[ERROR_POINTER_SIZE];
  size_t used = (size_t)snprintf(pointer, sizeof pointer, "/%s", n->rule.field);
  for (unsigned d = 1; d <= levels && used < sizeof pointer; d++)
    used += (size_t)snprintf(pointer + used, sizeof pointer - used, "/%zu", index[d]);
  return error_at_v(e, pointer, format, args);
}

enum status tensor_nest_refuse(const struct tensor_nest *n, unsigned levels, struct error *e,
                               const char *format, ...) {
  va_list args;
  va_start(args, format);
  enum status status = refuse_with(n, n->index, levels, e, format, args);
  va_end(args);
  return status;
}

__attribute__((format(printf, 5, 6))) static enum status refuse_at(const struct tensor_nest *n,
                                                                   const size_t *index,
                                                                   unsigned levels, struct error *e,
                                                                   const char *format, ...) {
  va_list args;
  va_start(args, format);
  enum status status = refuse_with(n, index, levels, e, format, args);
  va_end(args);
  return status;
}

static enum status refuse_ragged(const struct tensor_nest *n, size_t element, struct error *e) {
  const size_t index[2] = {0, element};
  return refuse_at(n, index, 1, e, "all arrays of a %u-dimensional field must have the same shape",
                   n->leaf);
}

static enum status refuse_length(const struct tensor_nest *n, const size_t *index, unsigned depth,
                                 size_t length, size_t wanted, struct error *e) {
  const bool named = n->rule.width_name && wanted == n->rule.width;
  return refuse_at(n, index, depth - 1, e, "the array has %zu elements, expected %zu%s%s%s", length,
                   wanted, named ? " (the model's " : "", named ? n->rule.width_name : "",
                   named ? ")" : "");
}

/* --- lengths --- */

/* Returns whether all elements must have the shape of the first. Unknown before the first number.
 */
static bool must_agree(const struct tensor_nest *n) {
  return n->leaf != TENSOR_DEPTH_UNKNOWN && n->leaf < n->rule.ragged_depth;
}

/* Returns the length that the array open at `depth` must have, or SIZE_MAX if it is unknown. */
static size_t wanted_length(const struct tensor_nest *n, unsigned depth) {
  if (depth == n->leaf && n->rule.width) return n->rule.width;
  if (depth < 2) return SIZE_MAX;
  if (depth > 2 && n->known[depth - 2]) return n->current.dim[depth - 2];
  if (must_agree(n) && n->index[1] > 0) return n->common.dim[depth - 2];
  return SIZE_MAX;
}

/* Checks that the open array may have one more value, and sets *room to how many. */
static enum status check_room(const struct tensor_nest *n, size_t *room, struct error *e) {
  size_t have = n->index[n->depth], wanted = wanted_length(n, n->depth);
  if (have >= wanted)
    return tensor_nest_refuse(n, n->depth, e, "the array has more than %zu elements", wanted);
  size_t limit = SIZE_MAX;
  /* Elements that must agree are the rows of one item, not the items of a batch. */
  if (n->depth == 1 && n->rule.max_elements && !must_agree(n)) limit = n->rule.max_elements;
  if (have >= limit)
    return error_limit(e, "max_items", "%s has more than %zu items", n->rule.field, limit);
  *room = size_min(wanted, limit) - have;
  return STATUS_OK;
}

enum status tensor_nest_open(struct tensor_nest *n, struct error *e) {
  must(n->depth < n->rule.depth_max && n->depth < TENSOR_DEPTH_MAX);
  size_t room;
  if (n->depth >= n->leaf)
    return tensor_nest_refuse(
        n, n->depth, e, "expected a number, got an array: all arrays must be nested equally deep");
  if (n->depth > 0 && check_room(n, &room, e) != STATUS_OK) return e->status;
  n->depth++;
  n->index[n->depth] = 0;
  if (n->depth > n->deepest) n->deepest = n->depth;
  if (n->depth == 2) {
    memset(&n->current, 0, sizeof n->current);
    memset(n->known, 0, sizeof n->known);
  }
  return STATUS_OK;
}

/* --- numbers --- */

/* The first number sets the depth of all numbers, and so the meaning of the empty arrays before it.
 */
static enum status set_leaf(struct tensor_nest *n, struct error *e) {
  unsigned depth = n->depth;
  if (depth == 0 && n->rule.depth_min > 0)
    return tensor_nest_refuse(n, depth, e, "expected an array, got a number");
  if (depth < n->deepest)
    return tensor_nest_refuse(
        n, depth, e, "expected an array, got a number: all arrays must be nested equally deep");
  if (depth < n->rule.depth_min)
    return tensor_nest_refuse(n, depth, e, "expected an array of at least %u dimensions, got %u",
                              n->rule.depth_min, depth);
  n->leaf = depth;
  if (n->hollow[depth] && n->rule.width)
    return refuse_length(n, n->hollow_index[depth], depth, 0, n->rule.width, e);
  if (n->ragged && must_agree(n)) return refuse_ragged(n, n->first_ragged, e);
  return STATUS_OK;
}

enum status tensor_nest_number(struct tensor_nest *n, size_t *room, struct error *e) {
  if (n->leaf == TENSOR_DEPTH_UNKNOWN && set_leaf(n, e) != STATUS_OK) return e->status;
  if (n->depth != n->leaf)
    return tensor_nest_refuse(
        n, n->depth, e, "expected an array, got a number: all arrays must be nested equally deep");
  *room = n->depth == 0;
  if (n->depth == 0 || n->index[n->depth] >= wanted_length(n, n->depth)) return STATUS_OK;
  return check_room(n, room, e);
}

/* --- ends --- */

/* Ends an element of the outermost array. The list of shapes starts when the first one differs. */
static enum status end_element(struct tensor_nest *n, struct error *e) {
  size_t i = n->index[1];
  if (i == 0) n->common = n->current;
  bool same = memcmp(&n->current, &n->common, sizeof n->common) == 0;
  if (same && !n->ragged) return STATUS_OK;
  if (must_agree(n)) return refuse_ragged(n, i, e);
  if (!n->ragged || i >= n->ragged_capacity) {
    bool first = !n->ragged;
    size_t capacity = size_max(16, i + i / 2 + 1);
    struct tensor_shape *ragged = arena_grow(n->arena, n->ragged, &capacity, sizeof *ragged, e);
    if (!ragged) return e->status;
    n->ragged = ragged;
    n->ragged_capacity = capacity;
    if (first) n->first_ragged = i;
    for (size_t k = 0; first && k < i; k++) ragged[k] = n->common;
  }
  n->ragged[i] = n->current;
  return STATUS_OK;
}

enum status tensor_nest_close(struct tensor_nest *n, struct error *e) {
  unsigned depth = n->depth;
  must(depth > 0);
  size_t length = n->index[depth], wanted = wanted_length(n, depth);
  if (wanted != SIZE_MAX && length != wanted)
    return refuse_length(n, n->index, depth, length, wanted, e);
  if (length == 0) {
    /* A row of width 0, or a level above without rows. */
    const bool surely_row = depth == n->rule.depth_max;
    if (surely_row && n->rule.width) return refuse_length(n, n->index, depth, 0, n->rule.width, e);
    if (n->leaf == TENSOR_DEPTH_UNKNOWN && !n->hollow[depth]) {
      n->hollow[depth] = true;
      memcpy(n->hollow_index[depth], n->index, sizeof n->index);
    }
  }
  if (depth >= 2) {
    n->current.dim[depth - 2] = length;
    n->known[depth - 2] = true;
  }
  if (depth == 2 && end_element(n, e) != STATUS_OK) return e->status;
  n->depth--;
  n->index[n->depth]++;
  return STATUS_OK;
}

enum status tensor_nest_refuse_length(const struct tensor_nest *n, struct error *e) {
  return refuse_at(n, n->index, n->depth - 1, e, "the array has more than %zu elements",
                   wanted_length(n, n->depth));
}

enum status tensor_nest_finish(struct tensor_nest *n, struct error *e) {
  if (n->leaf != TENSOR_DEPTH_UNKNOWN) return STATUS_OK;
  n->leaf = n->deepest;
  if (n->ragged && must_agree(n)) return refuse_ragged(n, n->first_ragged, e);
  return STATUS_OK;
}
