/* stack_words: how tokens to come are written, wherever they are: in scores, in sequences, in the
 * events of a stream. */
#ifndef SERVER_STACK_WORDS_H
#define SERVER_STACK_WORDS_H

#include "core/generate/generation.h"

enum {
  STACK_TOP_ROOM = 64, /* bytes of {"token":,"log_probability":} with both of its numbers */
  STACK_BEAM_ROOM =
      112 /* and of a way of a search: {"parent":,"token":,"log_probability":,"sum":} */
};

/* [{"token":3,"log_probability":-0.5},...] */
char *stack_write_top(char *out, const int32_t *token, const float *log, size_t count);

/* [{"parent":0,"token":3,"log_probability":-0.5,"sum":-1.5},...] */
char *stack_write_beams(char *out, const struct stack_beam *beam, size_t count);

const char *stack_finish_name(enum stack_finish finish); /* "end", ... */

#endif
