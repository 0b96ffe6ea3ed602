/* attention_body: the body of an attention request, chunk by chunk, into a call of the core.
 *
 * A body is JSON, safetensors, or a request of the Open Inference Protocol v2; each has a reader
 * of its own, and all fill the same fields. All of the contract is then checked in one place
 * (decode_check): what decode accepts, the core computes. */
#ifndef SERVER_ATTENTION_BODY_H
#define SERVER_ATTENTION_BODY_H

#include "config/model/model.h"
#include "config/settings/config.h"
#include "server/attention/attention_request.h"

struct decode_limits {
  size_t max_items, max_pairs, max_answer_bytes;
};

/* What a request asks of a model: the answer of its attention, or measures of its heads. The fields
 * are the same, but for gradients. */
enum ask { ASK_ATTENTION, ASK_HEADS };

/* How a body is written. */
enum body_form { BODY_JSON, BODY_SAFETENSORS, BODY_V2 };

/* What is known before the body: from the path and the head of the request. */
struct decode_head {
  enum ask ask;
  enum body_form form;
  uint64_t body_bytes; /* that are announced; DECODE_UNKNOWN: not said */
  uint64_t json_bytes; /* BODY_V2: so many are JSON, binary data follow; DECODE_UNKNOWN: all are */
  bool wants_binary;   /* the answer as safetensors, if it has that form */
  bool refuses_json;   /* and in no other */
};
#define DECODE_UNKNOWN UINT64_MAX

struct decoder;

/* The decoder, like all it makes, lives in the arena. */
struct decoder *decoder_new(const struct model *m, const struct decode_head *head,
                            const struct decode_limits *limits, struct arena *a, struct error *e);

/* The next bytes of the body. After the first failure further calls return the same status and
 * look at nothing. */
enum status decoder_feed(struct decoder *d, const char *bytes, size_t size, struct error *e);

/* The body has ended: checks what can only be checked now, across fields. */
enum status decoder_finish(struct decoder *d, struct decoded *out, struct error *e);

#endif
