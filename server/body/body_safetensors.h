/* body_safetensors: a body that is safetensors, the native form in binary. Private to decode. */
#ifndef SERVER_BODY_SAFETENSORS_H
#define SERVER_BODY_SAFETENSORS_H

#include "server/attention/attention_fields.h"

struct decode_safetensors;

/* `e` holds no failure, and outlives the decoder: the first one goes there, and is looked for there
 * by the caller. After it nothing is looked at any more. */
struct decode_safetensors *decode_safetensors_new(const struct model *m,
                                                  const struct decode_head *head,
                                                  const struct decode_limits *limits,
                                                  struct arena *a, struct error *e);
void decode_safetensors_feed(struct decode_safetensors *d, const char *bytes, size_t size);

/* The body has ended. The fields are the decoder's. */
const struct fields *decode_safetensors_finish(struct decode_safetensors *d);

#endif
