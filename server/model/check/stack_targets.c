/* stack_targets: how many rows the targets of each item are fed in, and which target each row has.
 */
#include "server/model/check/stack_targets.h"

#include <string.h>

#include "core/base/size.h"
#include "server/model/check/stack_items.h"

/* --- counts --- */

/* Fails unless the field has a list for each item, none of them longer than positions can count. */
static enum status check_counts(struct stack_check *k, enum stack_field field) {
  if (stack_items_beside(k, field)) return k->e->status;
  for (size_t i = 0; i < k->items; i++)
    if (stack_items_count(k, field, i) > INT32_MAX)
      return error_limit(k->e, "max_pairs", "item %zu has more than %d positions", i, INT32_MAX);
  return STATUS_OK;
}

/* [items] the valid targets of each item. NULL with an error. */
static int32_t *read_lens(struct stack_check *k) {
  if (check_counts(k, STACK_FIELD_TARGETS)) return NULL;
  int32_t *lens = arena_alloc(k->reading->arena, k->items, sizeof *lens, k->e);
  if (!lens || stack_items_lens(k, STACK_FIELD_TARGET_LENS, STACK_FIELD_TARGETS, lens)) return NULL;
  return lens;
}

/* --- targets to score --- */

/* Checks one item's tokens and targets, and counts its rows. */
static enum status count_item(struct stack_check *k, size_t item, size_t targets) {
  struct stack_request *out = k->out;
  const bool source = stack_check_has_source(k);
  const size_t begun = (size_t)k->begun[item], rows = begun + targets - 1;
  const size_t positions = k->w->target_positions;
  if (begun == 0)
    return stack_items_refuse(k, STACK_FIELD_TOKENS, item,
                              "the item has no tokens: the first target must follow at least one");
  if (targets == 0)
    return stack_items_refuse(k, STACK_FIELD_TARGETS, item, "the item has no targets to score");
  if (positions && rows > positions && source)
    return stack_items_refuse(k, STACK_FIELD_TARGETS, item,
                              "the decoder start token and %zu targets need %zu positions, which "
                              "exceeds the decoder's context length of %zu",
                              targets, rows, positions);
  if (positions && rows > positions)
    return stack_items_refuse(
        k, STACK_FIELD_TARGETS, item,
        "%zu tokens and %zu targets need %zu positions (the last target needs "
        "none), which exceeds the "
        "model's context length of %zu",
        begun, targets, rows, positions);
  if (rows > INT32_MAX)
    return error_limit(k->e, "max_pairs", "item %zu has more than %d positions", item, INT32_MAX);

  /* A rectangle has room for the item before lengths cut it. */
  const size_t sent = stack_items_count(k, STACK_FIELD_TARGETS, item);
  const size_t before = source ? 1 : stack_items_count(k, STACK_FIELD_TOKENS, item);
  out->scored[item] = (struct stack_scored){.count = targets, .first = out->targets};
  out->targets += targets;
  out->most_targets = size_max(out->most_targets, sent);
  out->main.widest = size_max(out->main.widest, before + sent - 1);
  k->begun[item] = (int32_t)rows;
  return STATUS_OK;
}

enum status stack_targets_count(struct stack_check *k) {
  struct stack_request *out = k->out;
  const struct tensor *t = stack_check_tensor(k, STACK_FIELD_TARGETS);
  if (!t) return error_at(k->e, "/targets", "the field \"targets\" is missing");
  const int32_t *targets = read_lens(k);
  if (!targets) return k->e->status;
  out->scored = arena_alloc(k->reading->arena, k->items, sizeof *out->scored, k->e);
  if (!out->scored) return k->e->status;
  out->target_lens = targets;
  if (k->items == 0) {
    /* An empty batch has no items, but a shape may give them tokens and targets. */
    out->most_targets = t->common.dim[0];
    if (k->main->widest + out->most_targets > 0) k->main->widest += out->most_targets - 1;
  }
  for (size_t i = 0; i < k->items; i++)
    if (count_item(k, i, (size_t)targets[i])) return k->e->status;
  out->targets_alike = true;
  for (size_t i = 0; i < k->items; i++)
    out->targets_alike = out->targets_alike && out->scored[i].count == out->most_targets;
  return STATUS_OK;
}

/* --- targets that begin a response --- */

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

/* --- tokens for the decoder --- */

enum status stack_targets_fed(struct stack_check *k) {
  const enum stack_field field = STACK_FIELD_DECODER_TOKENS, mask = STACK_FIELD_DECODER_MASK;
  const size_t positions = k->w->target_positions;
  if (check_counts(k, field)) return k->e->status;
  if (!stack_check_tensor(k, mask))
    for (size_t i = 0; i < k->items; i++) k->begun[i] = (int32_t)stack_items_count(k, field, i);
  else if (stack_items_mask(k, mask, field, k->begun))
    return k->e->status;
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

enum status stack_targets_set(struct stack_check *k) {
  const struct geometry *g = &k->main->run->geometry;
  struct arena *a = k->reading->arena;
  const bool source = stack_check_has_source(k);
  const int32_t begin = (int32_t)k->w->token.begin;
  const int32_t *token = source ? &begin : stack_check_tensor(k, STACK_FIELD_TOKENS)->data,
                *target = stack_check_tensor(k, STACK_FIELD_TARGETS)->data;
  int32_t *fed = arena_alloc(a, g->q_rows, sizeof *fed, k->e),
          *goal = arena_alloc(a, g->q_rows, sizeof *goal, k->e); /* of each row; -1: none */
  if (!fed || !goal) return k->e->status;
  k->main->run->tokens = fed;
  k->main->run->targets = goal;
  for (size_t i = 0; i < k->items; i++) {
    struct stack_scored *s = &k->out->scored[i];
    const size_t rows = g->item[i].q, tokens = rows + 1 - s->count, at = g->item[i].q_row;
    if ((!source && stack_items_below(k, STACK_FIELD_TOKENS, i, token, tokens, k->w->vocabulary)) ||
        stack_items_below(k, STACK_FIELD_TARGETS, i, target, s->count, k->w->target_vocabulary))
      return k->e->status;
    s->row = at + tokens - 1;
    memcpy(fed + at, token, tokens * sizeof *fed);
    memcpy(fed + at + tokens, target, (s->count - 1) * sizeof *fed);
    for (size_t row = at; row < s->row; row++) goal[row] = -1;
    memcpy(goal + s->row, target, s->count * sizeof *goal);
    if (!source) token += stack_items_count(k, STACK_FIELD_TOKENS, i);
    target += stack_items_count(k, STACK_FIELD_TARGETS, i);
  }
  return STATUS_OK;
}
