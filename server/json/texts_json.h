/* texts_json: the texts of a field in JSON, read chunk by chunk. Escapes are decoded; the bytes of
 * a text are stored once. */
#ifndef SERVER_TEXTS_JSON_H
#define SERVER_TEXTS_JSON_H

#include "server/json/texts.h"

struct texts_json;

/* The rule of a field of texts. */
struct texts_rule {
  const char *field; /* name, for pointers: "text" */
  size_t max_items;
  enum texts_form form;
  bool or_tokens; /* the field may have tokens instead: errors say so */
};

/* Returns a reader in the arena, or NULL with an error. The rule's name must outlive it. */
struct texts_json *texts_json_new(const struct texts_rule *rule, struct arena *a, struct error *e);

/* Continues with text[0 .. length), which is at `offset` of the body. Returns how many bytes belong
 * to the value; *complete is whether it has ended. After a failure, in `e`, the reader must not be
 * used.
 *
 *   invalid-json (offset)      a byte that JSON cannot have there, or that is not UTF-8
 *   invalid-request (pointer)  a value that is not in a form that the rule allows
 *   too-large (limit max_items), overloaded, out-of-memory */
size_t texts_json_feed(struct texts_json *r, const char *text, size_t length, size_t offset,
                       bool *complete, struct error *e);

/* Returns the texts, after *complete. */
const struct texts *texts_json_view(const struct texts_json *r);

#endif
