/* body_v2: a body that is a request of the Open Inference Protocol v2: JSON, and binary data
 * behind it. */
#ifndef SERVER_BODY_V2_H
#define SERVER_BODY_V2_H

#include "server/body/body_terms.h"
#include "server/body/contract.h"

struct body_v2;

/* The parts of the response that the request asks for. */
struct body_v2_asked {
  const char *id; /* as it was sent, a JSON string with its quotes; NULL: none */
  size_t id_length;
  size_t outputs;
  struct {
    unsigned which; /* of the contract's outputs */
    bool binary;
  } output[CONTRACT_OUTPUTS_MAX]; /* [outputs] in the order asked for */
  uint64_t timeout_us;            /* 0: none */
};

/* As body_json_new. The contract has a v2. Pointers of failures are into this body. */
struct body_v2 *body_v2_new(struct contract_reading *into, const struct body_terms *terms,
                            struct arena *a, struct error *e);
enum status body_v2_feed(struct body_v2 *b, const char *bytes, size_t size);
enum status body_v2_finish(struct body_v2 *b, struct body_v2_asked *asked); /* it has ended */

/* Turns the pointer of a failure that is found later in the fields, which is of the native form,
 * into one into this body. */
void body_v2_locate(const struct body_v2 *b, struct error *e);

#endif
