/* body_v2: a body that is a request of the Open Inference Protocol v2: JSON, and binary data
 * behind it. Private to decode. */
#ifndef SERVER_BODY_V2_H
#define SERVER_BODY_V2_H

#include "server/attention/attention_fields.h"

struct decode_v2;

/* `e` holds no failure, and outlives the decoder: the first one goes there, and is looked for there
 * by the caller. After it nothing is looked at any more. */
struct decode_v2 *decode_v2_new(const struct model *m, const struct decode_head *head,
                                const struct decode_limits *limits, struct arena *a,
                                struct error *e);
void decode_v2_feed(struct decode_v2 *d, const char *bytes, size_t size);

/* The body has ended. The fields are the decoder's. */
const struct fields *decode_v2_finish(struct decode_v2 *d, struct decoded_v2 *v2);

/* A failure found in the fields, whose pointer is one of the native form: says where in this body
 * it is. */
void decode_v2_locate(const struct decode_v2 *d, struct error *e);

#endif
