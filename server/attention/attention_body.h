/* attention_body: the body of an attention request, read chunk by chunk, becomes a run of the core.
 *
 * The contract is checked in one place (attention_check): the core computes what is accepted. */
#ifndef SERVER_ATTENTION_BODY_H
#define SERVER_ATTENTION_BODY_H

#include "config/build/model.h"
#include "core/attention/layer.h"
#include "server/body/form/body.h"

/* A request after its checks: the run of the core, and the options of the response. */
struct attention_request {
  struct layer_run asked;
  bool unbatched;   /* queries have depth 2: the response loses its first dimension */
  bool rectangular; /* all items have the same numbers of queries and keys */
  struct item none; /* what each item would have in an empty batch whose shape was given */
  bool base64;      /* arrays of floats as base64 */
  struct body_v2_asked v2;
};

struct attention_body;

/* Makes a body, which lives in the arena with all that it makes. `e` holds no failure, outlives the
 * body and gets the first failure. Returns NULL after a failure. */
struct attention_body *attention_body_new(const struct model *m, const struct body_terms *terms,
                                          const struct body_limits *limits, struct arena *a,
                                          struct error *e);

/* Returns the body for body_feed and body_cost. */
struct body *attention_body_of(struct attention_body *b);

/* Ends the body: checks its fields against each other. Returns the status of `e`. */
enum status attention_body_finish(struct attention_body *b, struct attention_request *out);

#endif
