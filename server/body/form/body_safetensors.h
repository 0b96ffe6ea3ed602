/* body_safetensors: a body that is safetensors, the native form in binary. */
#ifndef SERVER_BODY_SAFETENSORS_H
#define SERVER_BODY_SAFETENSORS_H

#include "server/body/body_terms.h"
#include "server/body/contract.h"

struct body_safetensors;

/* As body_json_new. Of the terms it needs the bytes that are announced. */
struct body_safetensors *body_safetensors_new(struct contract_reading *into,
                                              const struct body_terms *terms, struct arena *a,
                                              struct error *e);
enum status body_safetensors_feed(struct body_safetensors *b, const char *bytes, size_t size);
enum status body_safetensors_finish(struct body_safetensors *b); /* the body has ended */

#endif
