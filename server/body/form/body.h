/* body: reads the bytes of a request's body, in any of its formats, chunk by chunk into the fields
 * of its contract.
 *
 * JSON, safetensors and requests of the Open Inference Protocol v2 have a reader each; the same
 * table of fields drives them all. The contract's owner checks the fields against each other. */
#ifndef SERVER_BODY_H
#define SERVER_BODY_H

#include "server/body/body_terms.h"
#include "server/body/contract.h"
#include "server/v2/body_v2.h"

struct body {
  struct contract_reading reading;
  struct error *e;        /* the first failure */
  struct body_json *json; /* one of these three: the reader of the body's format */
  struct body_safetensors *safetensors;
  struct body_v2 *v2;
};

/* Makes the reader for the format in the terms, in the arena; b->reading has been set. `e` holds no
 * failure, outlives the body and gets the first failure. All functions return its status. */
enum status body_init(struct body *b, const struct body_terms *terms, struct arena *a,
                      struct error *e);

/* Reads the next bytes of the body. After the first failure it does nothing. */
enum status body_feed(struct body *b, const char *bytes, size_t size);

/* Estimates the nanoseconds to go through all values that were read. */
uint64_t body_cost(const struct body *b);

/* Ends the body and completes its arrays. Only a v2 body sets `asked`. */
enum status body_finish(struct body *b, struct body_v2_asked *asked);

/* Turns the JSON Pointer of a failure that was found later, in checks across fields, from the
 * native format into one into this body. */
enum status body_locate(const struct body *b);

#endif
