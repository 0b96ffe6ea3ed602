/* body_json: a body that is JSON, the native form: one object, whose members are the contract's
 * fields. */
#ifndef SERVER_BODY_JSON_H
#define SERVER_BODY_JSON_H

#include "server/body/contract.h"

struct body_json;

/* What is read goes to `into`, the first failure to `e`, which holds none; both outlive the reader,
 * which the arena holds. After a failure nothing is looked at any more. */
struct body_json *body_json_new(struct contract_reading *into, struct arena *a, struct error *e);
enum status body_json_feed(struct body_json *b, const char *text, size_t length);
enum status body_json_finish(struct body_json *b); /* the body has ended */

#endif
