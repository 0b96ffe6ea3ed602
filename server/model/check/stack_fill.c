/* stack_fill: which tokens of each item are predicted. */
#include "server/model/check/stack_fill.h"

#include <string.h>

#include "core/base/size.h"
#include "server/model/check/stack_items.h"

/* Checks that the request says for each item which tokens to fill. */
static enum status check_positions(struct stack_check *k) {
  const struct stack_positions *p = &k->values->positions;
  static const char pointer[] = "/positions";
  if (p->which == STACK_FILL_MASKS && k->field != STACK_FIELD_TOKENS)
    return error_at(k->e, pointer,
                    "embeddings have no mask token: name the positions, or send \"all\"");
  if (p->which == STACK_FILL_MASKS && k->w->mask < 0)
    return error_at(k->e, pointer, "this model has no %s: name the positions, or send \"all\"",
                    k->w->tokenizer ? "mask token" : "tokenizer, which knows the mask token");
  if (p->which != STACK_FILL_LISTED) return STATUS_OK;
  if (p->batch == k->out->unbatched)
    return error_at(k->e, pointer, "%s",
                    p->batch ? "a single item requires one list of positions"
                             : "a batch requires a list of positions for each item");
  if (p->lists != k->items)
    return error_at(k->e, pointer, "positions has %zu items, but %s has %zu", p->lists,
                    stack_check_shown(k, k->field), k->items);
  return STATUS_OK;
}

/* Appends the positions of an item, whose tokens, if it has any, are at `token`. */
static enum status find_item(struct stack_check *k, size_t item, const int32_t *token,
                             int32_t *filled) {
  struct stack_request *out = k->out;
  const struct stack_positions *p = &k->values->positions;
  const size_t rows = (size_t)k->lens[item], first = out->targets;
  if (p->which == STACK_FILL_LISTED) {
    const size_t begin = item ? p->end[item - 1] : 0;
    for (size_t i = begin; i < p->end[item]; i++) {
      if ((size_t)p->position[i] >= rows)
        return stack_items_refuse_number(k, STACK_FIELD_POSITIONS, item, i - begin,
                                         "position %d is outside the %zu tokens of the item",
                                         (int)p->position[i], rows);
      filled[out->targets++] = p->position[i];
    }
  } else {
    for (size_t i = 0; i < rows; i++)
      if (p->which == STACK_FILL_ALL || token[i] == k->w->mask) filled[out->targets++] = (int32_t)i;
  }
  const size_t count = out->targets - first;
  if (count == 0 && rows == 0)
    return stack_items_refuse(k, k->field, item, "an empty item has no token to fill");
  if (count == 0) {
    const struct tokenizer_text piece =
        tokenizer_piece(k->w->tokenizer, k->w->mask, k->reading->arena, k->e);
    return stack_items_refuse(k, k->field, item,
                              "the item has no mask token (%.*s%stoken %d): mark the words to fill "
                              "with it, or send \"positions\"",
                              (int)piece.length, piece.bytes ? (const char *)piece.bytes : "",
                              piece.length ? ", " : "", (int)k->w->mask);
  }
  out->scored[item] = (struct stack_scored){.count = count, .first = first};
  out->most_targets = size_max(out->most_targets, count);
  return STATUS_OK;
}

enum status stack_fill_count(struct stack_check *k) {
  struct stack_request *out = k->out;
  struct arena *a = k->reading->arena;
  const int32_t *token = k->field == STACK_FIELD_TOKENS ? k->rows->data : NULL;
  size_t rows = 0;
  if (check_positions(k)) return k->e->status;
  for (size_t i = 0; i < k->items; i++) rows += (size_t)k->lens[i];
  int32_t *filled = arena_alloc(a, rows, sizeof *filled, k->e);
  out->scored = arena_alloc(a, k->items, sizeof *out->scored, k->e);
  out->fills_of = k->w;
  out->filled = filled;
  for (size_t i = 0; !k->e->status && i < k->items; i++) {
    find_item(k, i, token, filled);
    if (token) token += stack_items_count(k, k->field, i);
  }
  out->targets_alike = true;
  for (size_t i = 0; !k->e->status && i < k->items; i++)
    out->targets_alike = out->targets_alike && out->scored[i].count == out->most_targets;
  return k->e->status;
}

enum status stack_fill_set(struct stack_check *k) {
  const struct geometry *g = &k->main->run->geometry;
  int32_t *goal = arena_alloc(k->reading->arena, g->q_rows, sizeof *goal, k->e);
  for (size_t i = 0; goal && i < g->q_rows; i++) goal[i] = -1;
  for (size_t i = 0; goal && i < k->items; i++) {
    const struct stack_scored *s = &k->out->scored[i];
    for (size_t t = s->first; t < s->first + s->count; t++)
      goal[g->item[i].q_row + (size_t)k->out->filled[t]] = 0;
  }
  k->main->run->targets = goal;
  return k->e->status;
}
