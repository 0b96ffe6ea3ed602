/* body_readers: the readers of bodies in JSON (one object, whose members are the contract's fields)
 * and in safetensors. Private to body.
 *
 * Values go to `into`, the first failure to `e`, which holds none; both outlive the reader, which
 * is in the arena. After a failure nothing is read. `new` returns NULL with an error, the other
 * functions the status of `e`. */
#ifndef SERVER_BODY_READERS_H
#define SERVER_BODY_READERS_H

#include "server/body/body_terms.h"
#include "server/body/contract.h"

struct body_json;

struct body_json *body_json_new(struct contract_reading *into, struct arena *a, struct error *e);
enum status body_json_feed(struct body_json *b, const char *text, size_t length);
enum status body_json_finish(struct body_json *b); /* ends the body */

struct body_safetensors;

/* The terms say how many bytes are announced. */
struct body_safetensors *body_safetensors_new(struct contract_reading *into,
                                              const struct body_terms *terms, struct arena *a,
                                              struct error *e);
enum status body_safetensors_feed(struct body_safetensors *b, const char *bytes, size_t size);
enum status body_safetensors_finish(struct body_safetensors *b); /* ends the body */

#endif
