/* body_v2: a body that is a request of the Open Inference Protocol v2: JSON, and binary data
 * behind it. */
#ifndef SERVER_BODY_V2_H
#define SERVER_BODY_V2_H

#include "server/attention/attention_fields.h"

struct body_v2;

/* `e` holds no failure, and outlives the reader: the first one goes there, and is looked for there
 * by the caller. After it nothing is looked at any more. */
struct body_v2 *body_v2_new(const struct model *m, const struct body_terms *head,
                            const struct body_limits *limits, struct arena *a, struct error *e);
void body_v2_feed(struct body_v2 *d, const char *bytes, size_t size);

/* The body has ended. The fields are the reader's. */
const struct fields *body_v2_finish(struct body_v2 *d, struct body_v2_asked *v2);

/* A failure found in the fields, whose pointer is one of the native form: says where in this body
 * it is. */
void body_v2_locate(const struct body_v2 *d, struct error *e);

#endif
