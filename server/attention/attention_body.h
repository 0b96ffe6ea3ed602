/* attention_body: the body of an attention request, chunk by chunk, into a call of the core.
 *
 * A body is JSON, safetensors, or a request of the Open Inference Protocol v2; each has a reader
 * of its own, and all fill the same fields. All of the contract is then checked in one place
 * (attention_check): what is accepted, the core computes. */
#ifndef SERVER_ATTENTION_BODY_H
#define SERVER_ATTENTION_BODY_H

#include "config/model/model.h"
#include "config/settings/config.h"
#include "server/attention/attention_request.h"

struct body_limits {
  size_t max_items, max_pairs, max_answer_bytes;
};

/* What a request asks of a model: the answer of its attention, or measures of its heads. The fields
 * are the same, but for gradients. */
enum body_ask { ASK_ATTENTION, ASK_HEADS };

/* How a body is written. */
enum body_form { BODY_JSON, BODY_SAFETENSORS, BODY_V2 };

/* What is known before the body: from the path and the head of the request. */
struct body_terms {
  enum body_ask ask;
  enum body_form form;
  uint64_t body_bytes; /* that are announced; BODY_UNKNOWN: not said */
  uint64_t json_bytes; /* BODY_V2: so many are JSON, binary data follow; BODY_UNKNOWN: all are */
  bool wants_binary;   /* the answer as safetensors, if it has that form */
  bool refuses_json;   /* and in no other */
};
#define BODY_UNKNOWN UINT64_MAX

struct attention_body;

/* It lives, like all that it makes, in the arena. */
struct attention_body *attention_body_new(const struct model *m, const struct body_terms *head,
                                          const struct body_limits *limits, struct arena *a,
                                          struct error *e);

/* The next bytes of the body. After the first failure further calls return the same status and
 * look at nothing. */
enum status attention_body_feed(struct attention_body *d, const char *bytes, size_t size,
                                struct error *e);

/* The body has ended: checks what can only be checked now, across fields. */
enum status attention_body_finish(struct attention_body *d, struct attention_request *out,
                                  struct error *e);

#endif
