/* body_json: a body that is JSON, the native form. */
#ifndef SERVER_BODY_JSON_H
#define SERVER_BODY_JSON_H

#include "server/attention/attention_fields.h"

struct body_json;

/* `e` holds no failure, and outlives the reader: the first one goes there, and is looked for there
 * by the caller. After it nothing is looked at any more. */
struct body_json *body_json_new(const struct model *m, const struct body_terms *head,
                                const struct body_limits *limits, struct arena *a, struct error *e);
void body_json_feed(struct body_json *d, const char *text, size_t length);

/* The body has ended. The fields are the reader's. */
const struct fields *body_json_finish(struct body_json *d);

#endif
