/* body_v2: a body that is a request of the Open Inference Protocol v2: JSON, then binary data. */
#ifndef SERVER_BODY_V2_H
#define SERVER_BODY_V2_H

#include "server/body/body_terms.h"
#include "server/body/contract.h"

struct body_v2;

/* The options of a v2 request for its response. */
struct body_v2_asked {
  const char *id; /* as it was sent, a JSON string with its quotes; NULL: none */
  size_t id_length;
  size_t outputs;
  struct {
    unsigned which; /* index of the contract's output */
    bool binary;
  } output[CONTRACT_OUTPUTS_MAX]; /* [outputs] in the requested order */
  uint64_t timeout_us;            /* 0: none */
};

/* Makes a reader in the arena, or returns NULL with an error. The contract has a v2. Values go to
 * `into`, the first failure to `e`, which holds none; both outlive the reader. JSON Pointers of
 * failures are into this body. After a failure nothing is read. */
struct body_v2 *body_v2_new(struct contract_reading *into, const struct body_terms *terms,
                            struct arena *a, struct error *e);
enum status body_v2_feed(struct body_v2 *b, const char *bytes, size_t size);
enum status body_v2_finish(struct body_v2 *b, struct body_v2_asked *asked); /* ends the body */

/* Turns the JSON Pointer of a failure that was found later in the fields, which is one of the
 * native format, into one into this body. */
void body_v2_locate(const struct body_v2 *b, struct error *e);

#endif
