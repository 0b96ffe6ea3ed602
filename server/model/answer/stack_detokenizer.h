/* stack_detokenizer: the text of generated tokens. It is the listener of a generation: the thread
 * that chooses a token makes text of it, and ends the sequence after a stop sequence. Text of a
 * sequence's token may be read by other threads once the token counts. */
#ifndef SERVER_STACK_DETOKENIZER_H
#define SERVER_STACK_DETOKENIZER_H

#include "config/tokenizer/detokenizer.h"
#include "core/generate/generation.h"
#include "server/model/fields/stack_request.h"

/* Strings that each token of a sequence adds to its text, and that the most likely tokens in its
 * place would have added. */
struct stack_token_texts {
  char *bytes; /* all strings, one after the other */
  size_t *end; /* [most, each] end of each string: the token's own, then the most likely tokens' */
  size_t *place; /* [most] characters of the text before each token */
  size_t each;   /* strings of a token */
};

/* The text of one sequence. */
struct stack_detokenized {
  struct detokenizer detokenizer;
  size_t *sendable; /* [most] bytes of text that are final with each token; NULL: no stream */
  char *strings;    /* the token strings in JSON, each after a comma; or NULL */
  size_t strings_length, strings_count;  /* bytes and tokens of `strings` */
  struct stack_token_texts *token_texts; /* or NULL */
};

struct stack_detokenizer {
  struct stack_listener listener;
  struct detokenizer_terms terms;
  const struct stack_generation *generation;
  struct stack_detokenized *sequence; /* [items] */
  bool shown;                         /* whether the response has the texts */
  bool token_texts;                   /* whether it has the text of each token */
  atomic_bool failed;                 /* whether `error` is set, by the first failure */
  struct error error;
};

/* Makes r->detokenizer, the listener of the request's generation. NULL without memory. */
struct stack_detokenizer *stack_detokenizer_new(const struct detokenizer_terms *terms,
                                                struct stack_request *r, struct arena *a,
                                                struct error *e);

/* Begins the text of each sequence after the tokens of its prompt. Does nothing without
 * r->detokenizer. Fails as detokenizer_init does. */
enum status stack_detokenizer_begin(const struct stack_request *r, struct arena *a,
                                    struct error *e);

/* The most bytes that stack_detokenizer_write writes for `most` tokens, with token strings or
 * without; SIZE_MAX: an overflow. */
size_t stack_detokenizer_room(const struct stack_detokenizer *u, size_t most, bool strings);

/* Writes `text`, `stop` and `strings` as members of an object, each after a comma, as far as the
 * response has them. */
char *stack_detokenizer_write(const struct stack_detokenizer *u, size_t item, char *out);

/* Writes only `stop`, if a stop sequence ended the sequence; and the most bytes of that. */
char *stack_detokenizer_write_stop(const struct stack_detokenizer *u, size_t item, char *out);
size_t stack_detokenizer_stop_room(const struct stack_detokenizer *u);

/* String `number` of token t: 0 is the token's own, from 1 on those of the most likely tokens.
 * Bytes, maybe a part of a character; an id without a token is "token_id:" and its number. And the
 * most bytes of a string. */
struct tokenizer_text stack_token_text(const struct stack_token_texts *s, size_t t, size_t number);
size_t stack_token_text_room(const struct tokenizer *t);

#endif
