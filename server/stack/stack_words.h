/* stack_words: how tokens to come are written, wherever they are: in scores, in sequences, in the
 * events of a stream. */
#ifndef SERVER_STACK_WORDS_H
#define SERVER_STACK_WORDS_H

#include "core/stack/stack_generation.h"

enum { STACK_TOP_ROOM = 64 /* bytes of {"token":,"log_probability":} with both of its numbers */ };

/* [{"token":3,"log_probability":-0.5},...] */
char *stack_write_top(char *out, const int32_t *token, const float *log, size_t count);

const char *stack_finish_name(enum stack_finish finish); /* "end", ... */

#endif
