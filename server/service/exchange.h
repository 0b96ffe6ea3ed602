/* exchange: one request to a model from its bytes to the bytes of its answer, without a socket.
 *
 * What HTTP and `attend run` share: read, prepare, pool, write. The exchange belongs to its
 * maker, except between exchange_submit and its `done`, when it belongs to the pool. */
#ifndef SERVER_EXCHANGE_H
#define SERVER_EXCHANGE_H

#include "config/build/model.h"
#include "server/answer/answer.h"
#include "server/attention/attention_body.h"
#include "server/model/answer/stack_ablation_stream.h"
#include "server/model/answer/stack_stream.h"
#include "server/model/check/stack_body.h"
#include "server/service/service.h"
#include "server/tokenize/tokenize_body.h"

struct exchange {
  struct service *service;
  struct models_hold hold;
  const struct model *model; /* of the set that is held; NULL: its body has not named it yet */
  struct body_terms terms;
  struct arena arena;                       /* everything of this request */
  const struct exchange_contract *contract; /* of what the terms ask */
  void *fields;      /* what the contract reads the body into: attention_body, dialect_body, ... */
  struct body *body; /* of those */
  union {            /* what was asked, once it is checked: the contract's own */
    struct attention_request attention;
    struct stack_request stack;
    struct tokenize_request tokenize;
  } request;
  struct run *run;     /* of the request, the first one */
  uint64_t timeout_us; /* that the body asks for; 0: none */
  size_t tokens;       /* rows that go through a whole model, ... */
  size_t recalled;     /* ... but so many, of which all is known */
  struct answer answer;
  bool stream; /* the answer is made while it is computed, of `streamed` instead */
  struct stack_stream streamed;
  struct stack_ablation_stream measured; /* or of this one, of a request that measures heads; it
                                         ends with the answer */
  struct sequences_share sequences;      /* under way */
  size_t told;                           /* tokens of which it is known that they are there */
  uint64_t told_at;                      /* since when; on clock_now */
  uint64_t first_ns;        /* that the first one took, from `begun` on; 0: none is there */
  uint64_t client;          /* whose request it is, as the pool tells clients apart; set before
                               exchange_submit */
  bool checked;             /* the body, before exchange_submit */
  struct run check;         /* of a body, where it takes long: the job's first run */
  struct patience patience; /* of the reader, meanwhile */
  struct job job;
  struct error error;       /* the first failure of any stage; then there is no answer */
  uint64_t begun, deadline; /* on clock_now: of the pool's work */
  uint64_t pause_ns;  /* that the first token, and each after the one before, may take, of a request
                         that generates, or each head of one that measures them; set before
                         exchange_submit; 0: any */
  uint64_t body_ns;   /* spent on the body: in exchange_feed, and on checking it */
  uint64_t waited_ns; /* for a worker that checks it */
  uint64_t body_bytes;
  void (*done)(struct exchange *); /* from any thread: the exchange is its maker's again */
  bool (*gone)(struct exchange *); /* has the reader left? or NULL */
  void (*news)(struct exchange *); /* of a stream: there may be more of it. Called by a worker under
                                      the pool's lock; or NULL */
  void (*paced)(struct exchange *, bool first, uint64_t ns); /* what a token took that has come,
                                      from `begun` or the one before; by a worker; or NULL */
  bool alone; /* its thread serves no other: it checks what takes long, too */
};

/* Sets every member but done, gone, news, paced and alone, which the maker sets, before or after,
 * and `check`, which is looked at only where there is one. Takes the hold over; `m` is a model of
 * it, or NULL where the terms are in a dialect: the body names the model. A failure is in x->error.
 */
void exchange_begin(struct exchange *x, struct service *s, struct models_hold *hold,
                    const struct model *m, const struct body_terms *terms);

/* The next bytes of the body; also counts them, against max_body_bytes. Once x->error is set,
 * nothing is looked at any more. */
void exchange_feed(struct exchange *x, const char *text, size_t length);

/* The body has ended. Returns false if there is nothing to compute because x->error is set. A body
 * whose check takes longer than a thread with other connections has is not checked yet, unless the
 * thread is `alone`. A check that takes longer than it seemed ends at `deadline` on clock_now; 0:
 * there is none. */
bool exchange_finish(struct exchange *x, uint64_t deadline);

/* Gives the work to the pool: first the check, where it takes long. `deadline` on clock_now; 0:
 * none; the body may bring it forward. x->done is called exactly once, maybe before this returns;
 * then there is an error in x->error, or an answer in x->answer. */
void exchange_submit(struct exchange *x, uint64_t deadline);

/* Of a stream, from exchange_submit on: is there a part of the answer? And that part, as far as
 * there is room: returns its bytes. `done`: x->done has been called, before; `problem` is then the
 * text of x->error if there is one. 0 bytes mean that there is nothing more, or not yet. */
bool exchange_has_begun(const struct exchange *x);
size_t exchange_stream(struct exchange *x, bool done, const char *problem, char *out, size_t room);

/* What its texts have become; NULL: it has none. */
const struct tokenize_texts *exchange_texts(const struct exchange *x);

/* Seconds that a worker was expected to take for it alone, once it is done; 0: it did not wait for
 * one. */
double exchange_expected(const struct exchange *x);

/* The tokens that were chosen so far. */
size_t exchange_chosen(const struct exchange *x);

/* What is left of the request is skipped: any thread, once it has been submitted. */
void exchange_cancel(struct exchange *x);

void exchange_end(struct exchange *x); /* frees all; not between submit and done */

/* --- exchange_contract: for the exchange alone --- */

/* The ways in which a request asks a model: what its fields become. */
struct exchange_contract {
  /* Makes the body of a request that begins: sets x->fields and x->body, or x->error. */
  void (*begin)(struct exchange *x);

  /* The body has ended: makes x->run, x->timeout_us and x->answer of it, or sets x->error. */
  enum status (*finish)(struct exchange *x);
};

const struct exchange_contract *exchange_contract(const struct body_terms *terms);

#endif
