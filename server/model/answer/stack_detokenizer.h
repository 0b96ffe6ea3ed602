/* stack_detokenizer: the text of what a request generates. It listens to the tokens as these are
 * chosen, makes text of them, and ends a sequence behind one of the texts that stop it. */
#ifndef SERVER_STACK_DETOKENIZER_H
#define SERVER_STACK_DETOKENIZER_H

#include "config/tokenizer/detokenizer.h"
#include "core/generate/generation.h"
#include "server/model/answer/stack_spelled.h"
#include "server/model/fields/stack_request.h"

/* What the tokens of one sequence have become. */
struct stack_detokenized {
  struct detokenizer detokenizer;
  size_t *said; /* [most] of a stream: bytes of text that are said with each token; else NULL */
  char
      *strings; /* what each token stands for, a JSON string with a comma in front of it; or NULL */
  size_t strings_length, strings_count; /* so many bytes, of so many tokens */
  struct stack_spelled *spelled;        /* what each adds to the text; or NULL */
};

struct stack_detokenizer {
  struct stack_listener listener;
  struct detokenizer_terms terms;
  const struct stack_generation *generation;
  struct stack_detokenized *sequence; /* [items] */
  bool shown;                         /* the answer has the texts */
  bool spelled;                       /* ... and what each token adds to them */
  atomic_bool failed;                 /* then there is an error: */
  struct error error;
};

/* Sets r->detokenizer, which listens to the request's generation. NULL with STATUS_OUT_OF_MEMORY.
 */
struct stack_detokenizer *stack_detokenizer_new(const struct detokenizer_terms *terms,
                                                struct stack_request *r, struct arena *a,
                                                struct error *e);

/* Begins an detokenizer for each sequence, after the tokens of its prompt. Does nothing without
 * r->detokenizer. */
enum status stack_detokenizer_begin(const struct stack_request *r, struct arena *a,
                                    struct error *e);

/* The most bytes that stack_detokenizer_write writes for so many tokens, with their strings or
 * without; SIZE_MAX: too many to count. */
size_t stack_detokenizer_room(const struct stack_detokenizer *u, size_t most, bool strings);

/* Writes `text`, `stop` and `strings`, those that there are, as members of an object, each
 * behind a comma. */
char *stack_detokenizer_write(const struct stack_detokenizer *u, size_t item, char *out);

/* Writes `stop` alone, if a stop ended the sequence; and the most bytes that this takes. */
char *stack_detokenizer_write_stop(const struct stack_detokenizer *u, size_t item, char *out);
size_t stack_detokenizer_stop_room(const struct stack_detokenizer *u);

#endif
