/* stack_stream: the events of a request that generates, while it is computed: each token as it is
 * chosen, the end of each sequence, and in the end what was used, or what went wrong. */
#ifndef SERVER_STACK_STREAM_H
#define SERVER_STACK_STREAM_H

#include "server/answer/answer.h"
#include "server/model/fields/stack_request.h"

struct stack_stream;

enum {
  STACK_PROBLEM_MOST = 5120, /* bytes of a problem's text */
  STACK_AROUND_PROBLEM = 64  /* bytes that stack_speech.problem writes around it */
};

/* In whose words events are written. Each returns the end of what it has written. */
struct stack_speech {
  size_t (*room)(const struct stack_stream *s); /* bytes of an event beside its text, at most */
  /* Token t of sequence i, with the text that is known with it, where any is wanted. */
  char *(*token)(const struct stack_stream *s, size_t i, size_t t, struct tokenizer_text text,
                 char *out);
  /* Text in an event of its own: what stands in front of the tokens; the rest of a token's. */
  char *(*more)(const struct stack_stream *s, size_t i, struct tokenizer_text text, char *out);
  char *(*finish)(const struct stack_stream *s, size_t i, char *out);
  char *(*end)(const struct stack_stream *s, char *out); /* of all */
  char *(*problem)(const char *problem, char *out);
};

struct stack_stream {
  const struct stack_speech *speech;
  const void *of_speech; /* its own */
  const struct stack_run *run;
  const struct stack_detokenizer
      *detokenizer; /* that makes text of the tokens; NULL: none is made */
  bool texts;       /* it is shown */
  size_t *sent;     /* [items] tokens of each sequence that were written; one more: its end, too */
  size_t *said;     /* [items] bytes of its text that were written */

  /* What is said in front of the tokens: of each text, behind which its sequences are. */
  const struct tokenizer_text *front; /* NULL: nothing */
  size_t *fronted;                    /* [items] bytes of it that were written */

  size_t next;  /* the sequence to look at first */
  size_t event; /* bytes of an event, at most */
  size_t most;  /* ... and of a problem */

  /* What was written for a room that does not hold it: the bytes from held_at on are due. */
  char *held; /* [most] */
  size_t held_at, held_end;
  struct answer_usage usage;
  bool over; /* the last event was written */
};

/* For a run that is prepared. */
enum status stack_stream_init(struct stack_stream *s, const struct stack_speech *speech,
                              const void *of_speech, const struct stack_request *of,
                              struct arena *a, struct error *e);

/* A text for each of the request's, to be said in front of its sequences' tokens. Of a stream that
 * shows text. */
enum status stack_stream_begin_with(struct stack_stream *s, const struct tokenizer_text *front,
                                    struct arena *a, struct error *e);

/* Is there a token? From then on there is an answer. */
bool stack_stream_has_begun(const struct stack_stream *s);

/* Writes what there is as far as there is room, which is at least a byte; returns the bytes.
 * `done`: the run was computed, and `problem`, if not NULL, is the text of what went wrong
 * with it. Then 0 means that there is nothing more. */
size_t stack_stream_write(struct stack_stream *s, bool done, const char *problem, char *out,
                          size_t room);

#endif
