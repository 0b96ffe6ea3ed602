/* exchange: one request to a model from its bytes to the bytes of its response, without a socket.
 *
 * HTTP and `attend run` share it: read, check, pool, write. The exchange belongs to its maker,
 * except between exchange_submit and its `done`, when it belongs to the pool. A stream's events may
 * be read meanwhile, with exchange_stream. */
#ifndef SERVER_EXCHANGE_H
#define SERVER_EXCHANGE_H

#include "config/build/model.h"
#include "server/answer/answer.h"
#include "server/attention/attention_body.h"
#include "server/dialect/dialect.h"
#include "server/model/answer/stack_ablation_answer.h"
#include "server/model/answer/stack_stream.h"
#include "server/model/check/stack_body.h"
#include "server/service/service.h"
#include "server/tokenize/tokenize_body.h"

/* Times are of clock_now. */
struct exchange {
  /* Members that the maker sets, before or after exchange_begin. All but `done` may be NULL. */
  void (*done)(struct exchange *); /* from any thread: the exchange is its maker's again */
  bool (*gone)(struct exchange *); /* whether the reader has left */
  void (*news)(struct exchange *); /* a stream may have more; by the thread that computes, which
                                       may hold the pool's lock */
  /* The tokens of a round took `ns`: from `begun`, or from the tokens before. */
  void (*paced)(struct exchange *, bool first, uint64_t ns);
  bool alone; /* its thread serves no other exchange, and also makes checks that take long */

  /* Members of one request; exchange_begin sets all of them. */
  struct service *service;
  struct models_hold hold;
  const struct model *model; /* of the set that is held; NULL: its body has not named it yet */
  struct body_terms terms;
  struct arena arena; /* all memory of this request */
  const struct exchange_contract *contract;
  const struct exchange_work *work;
  void *fields;      /* the contract's: attention_body, dialect_body, ... */
  struct body *body; /* its reader, which fills `fields` */
  union {            /* the checked request: the contract's */
    struct attention_request attention;
    struct stack_request stack;
    struct tokenize_request tokenize;
  } request;
  struct run *run;     /* the first run of the request */
  uint64_t timeout_us; /* the body's own; 0: none */
  size_t tokens;       /* input tokens of a model, ... */
  size_t recalled;     /* ... and how many of them are in the prefix cache */
  struct answer answer;
  bool stream; /* the response is written while it is computed, by `streamed` or `measured` */
  struct stack_stream streamed;
  struct stack_ablation_stream measured; /* head importance; ends with `answer` */
  struct sequences_share sequences;      /* its sequences in progress */
  size_t counted;                        /* generated tokens whose time was reported by `paced` */
  uint64_t counted_at;                   /* the time of the last of them */
  uint64_t first_ns;        /* the time that the first token took, from `begun`; 0: no token */
  uint64_t client;          /* identifies the client in the pool; set before exchange_submit */
  bool checked;             /* the body is checked, before exchange_submit */
  struct run check;         /* a check that takes long: the job's first run */
  struct patience patience; /* asks during a check whether to continue */
  struct job job;
  struct error error;       /* the first failure of any stage; then there is no answer */
  uint64_t begun, deadline; /* of the pool's work */
  uint64_t pause_ns; /* the longest time of the first token and between two tokens of a request that
                        generates, or of each head of one that measures heads; set before
                        exchange_submit; 0: any */
  uint64_t body_ns;  /* the time in exchange_feed, and of the check */
  uint64_t waited_ns; /* the wait for a worker that checks the body */
  uint64_t body_bytes;
};

/* Begins a request, and owns the hold from now on. `m` is a model of it, or NULL if the terms are
 * in a dialect: the body names the model. A failure is in x->error. */
void exchange_begin(struct exchange *x, struct service *s, struct models_hold *hold,
                    const struct model *m, const struct body_terms *terms);

/* Reads the next bytes of the body; also counts them, against max_body_bytes. Once x->error is set,
 * they are only counted. */
void exchange_feed(struct exchange *x, const char *text, size_t length);

/* The body has ended. Returns false if there is nothing to compute because x->error is set. A check
 * that would take over 200 us is left to a worker, after exchange_submit, unless the thread is
 * `alone`. A check that takes longer than expected ends at `deadline`; 0: there is none.
 */
bool exchange_finish(struct exchange *x, uint64_t deadline);

/* Gives the work to the pool: first the check, if it takes long. `deadline` 0: none; the body may
 * ask for an earlier one. x->done is called exactly once, maybe before this returns; then there is
 * an error in x->error, or a response in x->answer, or the end of a stream. */
void exchange_submit(struct exchange *x, uint64_t deadline);

/* Whether its results come one by one, each with a deadline: generated tokens, and heads. */
bool exchange_has_rounds(const struct exchange *x);

/* Whether a stream has a part of its response, from exchange_submit on. */
bool exchange_has_begun(const struct exchange *x);

/* Copies the next part of a stream to out[room], and returns its bytes; 0: there is nothing more,
 * or not yet. `done`: x->done was called before; `problem` is then the text of x->error, or NULL if
 * there is none. */
size_t exchange_stream(struct exchange *x, bool done, const char *problem, char *out, size_t room);

/* The tokens of its texts; NULL: it has no texts. */
const struct tokenize_texts *exchange_texts(const struct exchange *x);

/* Seconds that a worker was expected to take for it alone, once it is done; 0: it did not wait for
 * one. */
double exchange_expected(const struct exchange *x);

/* How many tokens were generated so far. */
size_t exchange_generated(const struct exchange *x);

/* Skips the rest of the request: any thread, once it has been submitted. */
void exchange_cancel(struct exchange *x);

void exchange_end(struct exchange *x); /* frees all; not between submit and done */

/* --- exchange_contract: only the exchange calls these --- */

/* How the body of a request becomes work and a plan of its response. */
struct exchange_contract {
  /* Makes the body of a request that begins: sets x->fields and x->body, or x->error. */
  void (*begin)(struct exchange *x);

  /* The body has ended: makes x->run, x->timeout_us and x->answer of it, or sets x->error, which it
   * also returns. */
  enum status (*finish)(struct exchange *x);

  /* The exchange ends, with x->fields: frees what is not the arena's. NULL: nothing. */
  void (*end)(struct exchange *x);
};

/* The properties of a kind of work that other kinds do not have. Any member may be NULL. */
struct exchange_work {
  /* The request was checked: reserves what the service bounds, or sets x->error. */
  void (*reserve)(struct exchange *x);

  /* The job is about to be submitted: sets what workers call between its rounds, and the deadline
   * of the first one. */
  void (*begin_rounds)(struct exchange *x);
  void (*end_rounds)(struct exchange *x); /* the job is done, also if it failed */

  bool (*has_begun)(const struct exchange *x); /* of a stream: exchange_has_begun */
  size_t (*stream)(struct exchange *x, bool done, const char *problem, char *out, size_t room);
  const struct tokenize_texts *(*texts)(const struct exchange *x);
  size_t (*generated)(const struct exchange *x);
  void (*cancel)(struct exchange *x); /* what x->run does not cancel */
  void (*end)(struct exchange *x);    /* the exchange ends; its memory is still there */
};

/* The kinds of work (exchange_work.c): `plain` has nothing of its own (a layer, and token ids that
 * become text), `tokens` is of texts that become tokens, `pass` of one pass through a model. */
extern const struct exchange_work exchange_plain, exchange_tokens, exchange_pass,
    exchange_generation, exchange_ablation;

/* Chooses x->contract and x->work by x->terms, whose kind of request becomes that of the model. */
void exchange_choose(struct exchange *x);

#endif
