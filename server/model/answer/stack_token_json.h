/* stack_token_json: JSON of tokens that may follow, in scores, in sequences and in the events of a
 * stream. Each writer returns the end of what it has written. */
#ifndef SERVER_STACK_TOKEN_JSON_H
#define SERVER_STACK_TOKEN_JSON_H

#include "config/tokenizer/tokenizer.h"
#include "core/generate/generation.h"

enum {
  STACK_TOP_ROOM = 64,  /* the most bytes of {"token":,"log_probability":} with its numbers */
  STACK_BEAM_ROOM = 112 /* and of {"parent":,"token":,"log_probability":,"sum":} */
};

/* [{"token":3,"log_probability":-0.5},...] */
char *stack_write_top(char *out, const int32_t *token, const float *log, size_t count);

/* [{"parent":0,"token":3,"log_probability":-0.5,"sum":-1.5},...] */
char *stack_write_beams(char *out, const struct stack_beam *beam, size_t count);

/* Writes the piece of a token as a string; null for an id that no token has. `out` has room for the
 * string and for stack_piece_room(t, -1) more bytes, which are overwritten. */
char *stack_write_piece(char *out, const struct tokenizer *t, int64_t id);

/* The most bytes of that string with a comma; of id -1: of any token's, and its piece. */
size_t stack_piece_room(const struct tokenizer *t, int64_t id);

const char *stack_finish_name(enum stack_finish finish); /* "end", ... */

#endif
