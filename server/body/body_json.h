/* body_json: a body that is JSON, the native form. Private to decode. */
#ifndef SERVER_BODY_JSON_H
#define SERVER_BODY_JSON_H

#include "server/attention/attention_fields.h"

struct decode_json;

/* `e` holds no failure, and outlives the decoder: the first one goes there, and is looked for there
 * by the caller. After it nothing is looked at any more. */
struct decode_json *decode_json_new(const struct model *m, const struct decode_head *head,
                                    const struct decode_limits *limits, struct arena *a,
                                    struct error *e);
void decode_json_feed(struct decode_json *d, const char *text, size_t length);

/* The body has ended. The fields are the decoder's. */
const struct fields *decode_json_finish(struct decode_json *d);

#endif
