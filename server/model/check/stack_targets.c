/* stack_targets: what is fed of the targets of each item, and which target each row has. */
#include "server/model/check/stack_targets.h"

#include <string.h>

#include "core/base/size.h"
#include "server/model/check/stack_items.h"

/* --- how many --- */

/* Do as many belong to each item as can be counted? */
static enum status check_counts(struct stack_check *k, enum stack_field field) {
  if (stack_items_beside(k, field)) return k->e->status;
  for (size_t i = 0; i < k->items; i++)
    if (stack_items_count(k, field, i) > INT32_MAX)
      return error_limit(k->e, "max_pairs", "item %zu has more than %d positions", i, INT32_MAX);
  return STATUS_OK;
}

/* The lengths of all items' targets. NULL with an error. */
static int32_t *read_lens(struct stack_check *k) {
  if (check_counts(k, STACK_FIELD_TARGETS)) return NULL;
  int32_t *lens = arena_alloc(k->reading->arena, k->items, sizeof *lens, k->e);
  if (!lens || stack_items_lens(k, STACK_FIELD_TARGET_LENS, STACK_FIELD_TARGETS, lens)) return NULL;
  return lens;
}

/* --- to be scored --- */

static enum status refuse_positions(struct stack_check *k, size_t item, size_t begun,
                                    size_t targets) {
  const size_t rows = begun + targets - 1, positions = k->w->target_positions;
  if (stack_check_has_source(k))
    return stack_items_refuse(k, STACK_FIELD_TARGETS, item,
                              "the decoder start token and %zu targets need %zu positions, which "
                              "exceeds the decoder's context length of %zu",
                              targets, rows, positions);
  return stack_items_refuse(k, STACK_FIELD_TARGETS, item,
                            "%zu tokens and %zu targets need %zu positions (the last target needs "
                            "none), which exceeds the "
                            "model's context length of %zu",
                            begun, targets, rows, positions);
}

static enum status check_item(struct stack_check *k, size_t item, size_t begun, size_t targets) {
  const size_t positions = k->w->target_positions, rows = begun + targets - 1;
  if (begun == 0)
    return stack_items_refuse(k, STACK_FIELD_TOKENS, item,
                              "the item has no tokens: the first target must follow at least one");
  if (targets == 0)
    return stack_items_refuse(k, STACK_FIELD_TARGETS, item, "the item has no targets to score");
  if (positions && rows > positions) return refuse_positions(k, item, begun, targets);
  if (rows > INT32_MAX)
    return error_limit(k->e, "max_pairs", "item %zu has more than %d positions", item, INT32_MAX);
  return STATUS_OK;
}

/* Of one item, what is fed behind what begins it, and what a rectangle has room for. */
static void count_item(struct stack_check *k, size_t item, int32_t targets) {
  struct stack_request *out = k->out;
  const size_t came = stack_items_count(k, STACK_FIELD_TARGETS, item);
  const size_t begun =
      stack_check_has_source(k) ? 1 : stack_items_count(k, STACK_FIELD_TOKENS, item);
  out->scored[item] = (struct stack_scored){.count = (size_t)targets, .first = out->targets};
  out->targets += (size_t)targets;
  out->most_targets = size_max(out->most_targets, came);
  out->main.widest = size_max(out->main.widest, begun + came - 1);
  k->begun[item] += targets - 1;
}

static enum status count_targets(struct stack_check *k, const int32_t *targets) {
  struct stack_request *out = k->out;
  for (size_t i = 0; i < k->items; i++) {
    if (check_item(k, i, (size_t)k->begun[i], (size_t)targets[i])) return k->e->status;
    count_item(k, i, targets[i]);
  }
  out->targets_alike = true;
  for (size_t i = 0; i < k->items; i++)
    out->targets_alike = out->targets_alike && out->scored[i].count == out->most_targets;
  return STATUS_OK;
}

/* An empty batch has no items, but a shape may give them tokens and targets. */
static void count_none(struct stack_check *k) {
  const size_t targets = stack_check_tensor(k, STACK_FIELD_TARGETS)->common.dim[0];
  k->out->most_targets = targets;
  if (k->main->widest + targets > 0) k->main->widest += targets - 1;
}

enum status stack_targets_count(struct stack_check *k) {
  struct stack_request *out = k->out;
  if (!stack_check_tensor(k, STACK_FIELD_TARGETS))
    return error_at(k->e, "/targets", "the field \"targets\" is missing");
  const int32_t *targets = read_lens(k);
  if (!targets) return k->e->status;
  out->scored = arena_alloc(k->reading->arena, k->items, sizeof *out->scored, k->e);
  if (!out->scored) return k->e->status;
  out->target_lens = targets;
  if (k->items == 0) count_none(k);
  return count_targets(k, targets);
}

/* --- to be gone on from --- */

enum status stack_targets_begin(struct stack_check *k) {
  const struct tensor *lens = stack_check_tensor(k, STACK_FIELD_TARGET_LENS);
  const size_t positions = k->w->target_positions;
  if (!stack_check_tensor(k, STACK_FIELD_TARGETS)) {
    if (!lens || lens->null) return STATUS_OK;
    return error_at(k->e, "/target_lens", "\"target_lens\" requires \"targets\"");
  }
  const int32_t *targets = read_lens(k);
  if (!targets) return k->e->status;
  for (size_t i = 0; i < k->items; i++) {
    const size_t count = (size_t)targets[i];
    if (positions && count >= positions)
      return stack_items_refuse(k, STACK_FIELD_TARGETS, i,
                                "the decoder start token and %zu targets need %zu positions, which "
                                "exceeds the decoder's context length of %zu",
                                count, count + 1, positions);
    if (count == INT32_MAX)
      return error_limit(k->e, "max_pairs", "item %zu has more than %d positions", i, INT32_MAX);
    k->begun[i] += targets[i];
  }
  return STATUS_OK;
}

/* --- as they are --- */

static enum status read_fed(struct stack_check *k) {
  const enum stack_field tokens = STACK_FIELD_DECODER_TOKENS, mask = STACK_FIELD_DECODER_MASK;
  if (stack_check_tensor(k, mask)) return stack_items_mask(k, mask, tokens, k->begun);
  for (size_t i = 0; i < k->items; i++) k->begun[i] = (int32_t)stack_items_count(k, tokens, i);
  return STATUS_OK;
}

enum status stack_targets_fed(struct stack_check *k) {
  const enum stack_field field = STACK_FIELD_DECODER_TOKENS;
  const size_t positions = k->w->target_positions;
  if (check_counts(k, field) || read_fed(k)) return k->e->status;
  k->main->widest = k->items ? 0 : stack_check_tensor(k, field)->common.dim[0];
  for (size_t i = 0; i < k->items; i++) {
    const size_t rows = (size_t)k->begun[i];
    if (positions && rows > positions)
      return stack_items_refuse(k, field, i,
                                "%zu tokens exceed the decoder's context length of %zu", rows,
                                positions);
    k->main->widest = size_max(k->main->widest, stack_items_count(k, field, i));
  }
  return STATUS_OK;
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
  const struct geometry *g = &k->main->run->geometry;
  struct arena *a = k->reading->arena;
  const bool source = stack_check_has_source(k);
  const int32_t begin = (int32_t)k->w->token.begin;
  const int32_t *token = source ? &begin : stack_check_tensor(k, STACK_FIELD_TOKENS)->data,
                *target = stack_check_tensor(k, STACK_FIELD_TARGETS)->data;
  int32_t *fed = arena_alloc(a, g->q_rows, sizeof *fed, k->e),
          *foretold = arena_alloc(a, g->q_rows, sizeof *foretold, k->e);
  if (!fed || !foretold) return k->e->status;
  k->main->run->tokens = fed;
  k->main->run->targets = foretold;
  for (size_t i = 0; i < k->items; i++) {
    struct stack_scored *s = &k->out->scored[i];
    const size_t rows = g->item[i].q, tokens = rows + 1 - s->count, at = g->item[i].q_row;
    if ((!source && stack_items_below(k, STACK_FIELD_TOKENS, i, token, tokens, k->w->vocabulary)) ||
        stack_items_below(k, STACK_FIELD_TARGETS, i, target, s->count, k->w->target_vocabulary))
      return k->e->status;
    s->row = at + tokens - 1;
    feed_item(token, tokens, target, s->count, fed + at, foretold + at);
    if (!source) token += stack_items_count(k, STACK_FIELD_TOKENS, i);
    target += stack_items_count(k, STACK_FIELD_TARGETS, i);
  }
  return STATUS_OK;
}
