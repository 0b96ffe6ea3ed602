/* stack_stream: the events of a request that generates, while it is computed: each token as it is
 * chosen, the end of each sequence, and in the end the usage or an error. One thread writes them
 * while workers compute. */
#ifndef SERVER_STACK_STREAM_H
#define SERVER_STACK_STREAM_H

#include "server/answer/answer.h"
#include "server/model/fields/stack_request.h"

struct stack_stream;

enum {
  STACK_PROBLEM_MOST = 5120, /* bytes of an error's text */
  STACK_AROUND_PROBLEM = 64  /* bytes that stack_events.problem writes around it */
};

/* The format of events. Each writer returns the end of what it has written. */
struct stack_events {
  size_t (*room)(const struct stack_stream *s); /* the most bytes of an event without its text */
  /* Token t of sequence i, with the text that is known with it, if the stream shows text. */
  char *(*token)(const struct stack_stream *s, size_t i, size_t t, struct tokenizer_text text,
                 char *out);
  /* Text in an event of its own: the prompt, and the rest of a token's text. */
  char *(*more)(const struct stack_stream *s, size_t i, struct tokenizer_text text, char *out);
  char *(*finish)(const struct stack_stream *s, size_t i, char *out); /* the end of sequence i */
  char *(*end)(const struct stack_stream *s, char *out);              /* the end of all */
  char *(*problem)(const char *problem, char *out);
};

extern const struct stack_events stack_events; /* of POST /v1/models/NAME/generate */

struct stack_stream {
  const struct stack_events *events;
  const void *context; /* of `events` */
  const struct stack_run *run;
  const struct stack_detokenizer *detokenizer; /* NULL: no text is made of the tokens */
  bool texts;                                  /* whether text is shown */
  size_t *sent;      /* [items] tokens of each sequence that were written; one more: its end, too */
  size_t *text_sent; /* [items] bytes of its text that were written */

  /* Text that is written before the tokens of a sequence, one for each text of the request. */
  const struct tokenizer_text *prompt; /* NULL: none */
  size_t *prompt_sent;                 /* [items] bytes of it that were written */

  size_t next;  /* the sequence to look at first */
  size_t event; /* the most bytes of an event */
  size_t most;  /* the same, errors included */

  /* Events that did not fit into the caller's memory. The bytes from held_at on are due. */
  char *held; /* [most] */
  size_t held_at, held_end;
  struct answer_usage usage;
  bool over; /* whether the last event was written */
};

/* Begins the stream of a request whose run is prepared. Fails without memory. */
enum status stack_stream_init(struct stack_stream *s, const struct stack_events *events,
                              const void *context, const struct stack_request *of, struct arena *a,
                              struct error *e);

/* Sets the texts, one for each of the request's, that are written before the tokens of their
 * sequences. Only for a stream that shows text. Fails without memory. */
enum status stack_stream_begin_with(struct stack_stream *s, const struct tokenizer_text *prompt,
                                    struct arena *a, struct error *e);

/* Whether there is a token: from then on there are events. */
bool stack_stream_has_begun(const struct stack_stream *s);

/* Writes as many events as there are and fit into `room` bytes, at least 1; returns the bytes.
 * `done`: the run was computed; `problem`, if not NULL, is the text of its error. Then 0 means that
 * all events were written. */
size_t stack_stream_write(struct stack_stream *s, bool done, const char *problem, char *out,
                          size_t room);

#endif
