/* stack_targets: the rows that are fed to score targets, and which target each of them has. */
#include "server/stack/stack_targets.h"

#include <string.h>

#include "core/run/size.h"
#include "server/stack/stack_items.h"

/* --- how many --- */

static enum status check_item(struct stack_check *k, size_t item, size_t tokens, size_t targets) {
  const size_t positions = k->w->positions, rows = tokens + targets - 1;
  if (tokens == 0)
    return stack_items_refuse(k, STACK_FIELD_TOKENS, item,
                              "an item without tokens: the first target has to follow one");
  if (targets == 0)
    return stack_items_refuse(k, STACK_FIELD_TARGETS, item, "an item without targets to score");
  if (positions && tokens <= positions && rows > positions)
    return stack_items_refuse(k, STACK_FIELD_TARGETS, item,
                              "%zu tokens and all but the last of %zu targets are %zu rows; the "
                              "model has %zu positions",
                              tokens, targets, rows, positions);
  if (rows > INT32_MAX)
    return error_limit(k->e, "max_pairs", "item %zu has more than %d rows", item, INT32_MAX);
  return STATUS_OK;
}

/* Of one item, what is fed behind its tokens, and what a rectangle has room for. */
static void count_item(struct stack_check *k, size_t item, int32_t targets, int32_t *len) {
  struct stack_request *out = k->out;
  const size_t came = stack_items_count(k, STACK_FIELD_TARGETS, item);
  out->scored[item] = (struct stack_scored){.count = (size_t)targets};
  out->targets += (size_t)targets;
  out->most_targets = size_max(out->most_targets, came);
  out->widest = size_max(out->widest, stack_items_count(k, STACK_FIELD_TOKENS, item) + came - 1);
  *len += targets - 1;
}

static enum status count_targets(struct stack_check *k, const int32_t *targets, int32_t *lens) {
  struct stack_request *out = k->out;
  const size_t items = k->run->geometry.items;
  for (size_t i = 0; i < items; i++) {
    if (check_item(k, i, (size_t)lens[i], (size_t)targets[i])) return k->e->status;
    count_item(k, i, targets[i], &lens[i]);
  }
  out->targets_alike = true;
  for (size_t i = 0; i < items; i++)
    out->targets_alike = out->targets_alike && out->scored[i].count == out->most_targets;
  return STATUS_OK;
}

/* An empty batch has no items, but a shape may give them tokens and targets. */
static void count_none(struct stack_check *k) {
  const size_t targets = stack_check_tensor(k, STACK_FIELD_TARGETS)->common.dim[0];
  k->out->most_targets = targets;
  if (k->out->widest + targets > 0) k->out->widest += targets - 1;
}

enum status stack_targets_count(struct stack_check *k, int32_t *lens) {
  const size_t items = k->run->geometry.items;
  if (!stack_check_tensor(k, STACK_FIELD_TARGETS))
    return error_at(k->e, "/targets", "the field \"targets\" is missing");
  if (stack_items_beside(k, STACK_FIELD_TARGETS)) return k->e->status;
  for (size_t i = 0; i < items; i++)
    if (stack_items_count(k, STACK_FIELD_TARGETS, i) > INT32_MAX)
      return error_limit(k->e, "max_pairs", "item %zu has more than %d rows", i, INT32_MAX);
  int32_t *targets = arena_alloc(k->reading->arena, items, sizeof *targets, k->e);
  k->out->scored = arena_alloc(k->reading->arena, items, sizeof *k->out->scored, k->e);
  if (!targets || !k->out->scored) return k->e->status;
  if (stack_items_lens(k, STACK_FIELD_TARGET_LENS, STACK_FIELD_TARGETS, targets))
    return k->e->status;
  k->out->target_lens = targets;
  if (items == 0) count_none(k);
  return count_targets(k, targets, lens);
}

/* --- the rows --- */

/* What is fed of one item, and what each row is to foretell. */
static void feed_item(const int32_t *token, size_t tokens, const int32_t *target, size_t targets,
                      int32_t *fed, int32_t *foretold) {
  memcpy(fed, token, tokens * sizeof *fed);
  memcpy(fed + tokens, target, (targets - 1) * sizeof *fed);
  for (size_t row = 0; row + 1 < tokens; row++) foretold[row] = -1;
  memcpy(foretold + tokens - 1, target, targets * sizeof *foretold);
}

enum status stack_targets_take(struct stack_check *k) {
  const struct geometry *g = &k->run->geometry;
  struct arena *a = k->reading->arena;
  const int32_t *token = stack_check_tensor(k, STACK_FIELD_TOKENS)->data,
                *target = stack_check_tensor(k, STACK_FIELD_TARGETS)->data;
  int32_t *fed = arena_alloc(a, g->q_rows, sizeof *fed, k->e),
          *foretold = arena_alloc(a, g->q_rows, sizeof *foretold, k->e);
  if (!fed || !foretold) return k->e->status;
  k->run->tokens = fed;
  k->run->targets = foretold;
  for (size_t i = 0; i < g->items; i++) {
    struct stack_scored *s = &k->out->scored[i];
    const size_t rows = g->item[i].q, tokens = rows + 1 - s->count, at = g->item[i].q_row;
    if (stack_items_below(k, STACK_FIELD_TOKENS, i, token, tokens, k->w->vocabulary) ||
        stack_items_below(k, STACK_FIELD_TARGETS, i, target, s->count, k->w->vocabulary))
      return k->e->status;
    s->row = at + tokens - 1;
    feed_item(token, tokens, target, s->count, fed + at, foretold + at);
    token += stack_items_count(k, STACK_FIELD_TOKENS, i);
    target += stack_items_count(k, STACK_FIELD_TARGETS, i);
  }
  return STATUS_OK;
}
