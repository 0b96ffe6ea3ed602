/* tokens: memory for lists of tokens. */
#include "config/tokenizer/model/tokens.h"

#include "core/base/size.h"

enum status tokens_reserve(struct tokens *t, size_t more) {
  size_t room;
  if (t->e->status) return t->e->status;
  if (more <= t->room - t->count) return STATUS_OK;
  if (!size_add(t->count, more, &room))
    return error_set(t->e, STATUS_TOO_LARGE, "the tokens are too many to count");
  room = size_max(room, 2 * t->room);
  struct token *moved = arena_grow(t->arena, t->token, &room, sizeof *moved, t->e);
  if (!moved) return t->e->status;
  t->token = moved;
  t->room = room;
  return STATUS_OK;
}
