/* attention_request: a request as it was understood: the core's call, and what is asked of the
 * answer. */
#ifndef SERVER_ATTENTION_REQUEST_H
#define SERVER_ATTENTION_REQUEST_H

#include "core/attention/call.h"

/* What a request of v2 asks of its answer. */
struct body_v2_asked {
  const char *id; /* as it was sent, a JSON string with its quotes; NULL: none */
  size_t id_length;
  size_t outputs;
  struct {
    bool weights; /* attention_weights, else outputs */
    bool binary;
  } output[2];         /* [outputs] in the order asked for */
  uint64_t timeout_us; /* 0: not said */
};

/* What was asked of the answer beside the core's call. */
struct attention_request {
  struct call call;
  bool unbatched;   /* queries of depth 2: the answer loses its first dimension */
  bool rectangular; /* all items have as many queries, and as many keys */
  struct item none; /* of an empty batch whose shape was said: what each item would have */
  bool base64;      /* arrays of floats as base64 */
  struct body_v2_asked v2;
};

/* Has the answer a form as safetensors? Not measures, nor what differs in shape from item to item:
 * the rows, or the segments where their weights are asked for. */
bool attention_request_has_binary(const struct attention_request *d);

/* Have all items as many segments? */
bool attention_request_segments_agree(const struct attention_request *d);

#endif
