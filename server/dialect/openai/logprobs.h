/* logprobs: the member `logprobs` of a choice in OpenAI's responses: the log probabilities of its
 * tokens, in the format of completions and in that of chat completions. */
#ifndef SERVER_LOGPROBS_H
#define SERVER_LOGPROBS_H

#include "server/model/fields/stack_request.h"

struct logprobs {
  /* Writes ,"logprobs":… for tokens `from` to `end` - 1 of a sequence. */
  char *(*write)(const struct stack_request *r, size_t item, size_t from, size_t end, char *out);

  /* The most bytes of that: for no tokens, and more for a token, for each of its strings and for
   * each byte of a string. */
  size_t fixed, of_token, of_string, of_byte;
};

extern const struct logprobs logprobs_of_completions, logprobs_of_chat;

/* Writes ,"logprobs":null, which takes at most LOGPROBS_NONE_ROOM bytes. */
char *logprobs_write_none(char *out);
enum { LOGPROBS_NONE_ROOM = sizeof ",\"logprobs\":null" };

/* The most bytes for `tokens` tokens of a tokenizer, with `top` most likely ones in the place of
 * each; SIZE_MAX: an overflow. */
size_t logprobs_room(const struct logprobs *l, const struct tokenizer *t, size_t top,
                     size_t tokens);

#endif
