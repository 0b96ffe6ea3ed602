/* stack_spelled: what each token of a sequence adds to its text, what the likeliest in its place
 * would have added, and where that is. For stack_detokenizer, and who writes it. */
#ifndef SERVER_STACK_SPELLED_H
#define SERVER_STACK_SPELLED_H

#include "config/tokenizer/detokenizer.h"
#include "core/generate/generation.h"

struct stack_spelled {
  char *bytes;   /* of all strings, one behind the other */
  size_t *end;   /* [most, each] of each string: of a token its own, then those of the likeliest */
  size_t *place; /* [most] characters of the text in front of each token */
  size_t each;   /* strings of a token */
};

size_t stack_spelled_room(const struct tokenizer *t); /* bytes of a string, at most */

/* Room for so many tokens, each with so many of the likeliest. NULL without memory. */
struct stack_spelled *stack_spelled_new(const struct tokenizer *t, size_t most, size_t top,
                                        struct arena *a, struct error *e);

/* Takes token t of a sequence, behind those before it and before its detokenizer hears it. Fails as
 * detokenizer_add does. */
enum status stack_spelled_add(struct stack_spelled *s, struct detokenizer *u,
                              const struct stack_generation *g, size_t item, size_t t,
                              struct error *e);

/* Of token t its own string, number 0, or that of one of the likeliest, from 1 on: bytes, maybe of
 * a character that is not whole; what no token is called token_id: and its number. */
struct tokenizer_text stack_spelled_string(const struct stack_spelled *s, size_t t, size_t number);

#endif
