/* body_safetensors: a body that is safetensors, the native form in binary. */
#ifndef SERVER_BODY_SAFETENSORS_H
#define SERVER_BODY_SAFETENSORS_H

#include "server/attention/attention_fields.h"

struct body_safetensors;

/* `e` holds no failure, and outlives the reader: the first one goes there, and is looked for there
 * by the caller. After it nothing is looked at any more. */
struct body_safetensors *body_safetensors_new(const struct model *m, const struct body_terms *head,
                                              const struct body_limits *limits, struct arena *a,
                                              struct error *e);
void body_safetensors_feed(struct body_safetensors *d, const char *bytes, size_t size);

/* The body has ended. The fields are the reader's. */
const struct fields *body_safetensors_finish(struct body_safetensors *d);

#endif
