/* decode: the text of an attention request, chunk by chunk, into a call of the core.
 *
 * The tensor fields go through tensor_json straight into arrays; every other field is small, is
 * collected and given to Jansson. All of the contract is checked here, in one place: what decode
 * accepts, the core computes. */
#ifndef SERVER_DECODE_H
#define SERVER_DECODE_H

#include "config/config.h"
#include "config/model.h"
#include "core/call.h"

struct decode_limits {
  size_t max_items, max_pairs, max_answer_bytes;
};

/* What a request asks of a model: the answer of its attention, or measures of its heads. The fields
 * are the same, but for gradients. */
enum ask { ASK_ATTENTION, ASK_HEADS };

/* What was asked of the answer beside the core's call. */
struct decoded {
  struct call call;
  bool unbatched; /* queries of depth 2: the answer loses its first dimension */
};

struct decoder;

/* The decoder, like all it makes, lives in the arena. */
struct decoder *decoder_new(const struct model *m, enum ask ask, const struct decode_limits *limits,
                            struct arena *a, struct error *e);

/* The next bytes of the body. After the first failure further calls return the same status and
 * look at nothing. */
enum status decoder_feed(struct decoder *d, const char *text, size_t length, struct error *e);

/* The body has ended: checks what can only be checked now, across fields. */
enum status decoder_finish(struct decoder *d, struct decoded *out, struct error *e);

#endif
