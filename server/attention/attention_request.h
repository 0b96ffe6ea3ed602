/* attention_request: a request as it was meant: the core's run, and what is asked of the answer.
 */
#ifndef SERVER_ATTENTION_REQUEST_H
#define SERVER_ATTENTION_REQUEST_H

#include "core/attention/layer.h"
#include "server/v2/body_v2.h"

struct attention_request {
  struct layer_run asked;
  bool unbatched;   /* queries of depth 2: the answer loses its first dimension */
  bool rectangular; /* all items have as many queries, and as many keys */
  struct item none; /* of an empty batch whose shape was given: what each item would have */
  bool base64;      /* arrays of floats as base64 */
  struct body_v2_asked v2;
};

/* Does the answer have a form as safetensors? Measures and traces have none, nor do arrays whose
 * shape differs from item to item. Where it has none, the other one says why, and what to do. */
bool attention_request_has_binary(const struct attention_request *r);
const char *attention_request_why_json(const struct attention_request *r);

/* Have all items as many segments? */
bool attention_request_segments_agree(const struct attention_request *r);

#endif
