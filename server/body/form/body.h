/* body: the bytes of a request's body, in any of its forms, chunk by chunk, into what the fields of
 * its contract hold.
 *
 * JSON, safetensors and requests of the Open Inference Protocol v2 have a reader each; all are
 * driven by the same table of fields. What the fields mean together is for the contract's owner. */
#ifndef SERVER_BODY_H
#define SERVER_BODY_H

#include "server/body/body_terms.h"
#include "server/body/contract.h"
#include "server/v2/body_v2.h"

struct body {
  struct contract_reading reading;
  struct error *e;        /* the first failure */
  struct body_json *json; /* the reader of the body's form: one of these */
  struct body_safetensors *safetensors;
  struct body_v2 *v2;
};

/* Makes the reader of the form that the terms name; b->reading has been set. What it makes lives in
 * the arena. `e` holds no failure, and outlives the body: the first one goes there. */
enum status body_init(struct body *b, const struct body_terms *terms, struct arena *a,
                      struct error *e);

/* The next bytes of the body. After the first failure further calls return the same status and look
 * at nothing. */
enum status body_feed(struct body *b, const char *bytes, size_t size);

/* How long it takes to look through what was read, in nanoseconds, about. */
uint64_t body_cost(const struct body *b);

/* The body has ended: its arrays are complete. Only a body of v2 sets `asked`. */
enum status body_finish(struct body *b, struct body_v2_asked *asked);

/* Returns the status of `e`. Where a check across fields has failed, with a pointer of the native
 * form, that becomes one into this body. */
enum status body_locate(const struct body *b);

#endif
