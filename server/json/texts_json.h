/* texts_json: the texts of a field in JSON, read chunk by chunk.
 *
 * What is escaped is read as what it means; the bytes of a text are stored once. */
#ifndef SERVER_TEXTS_JSON_H
#define SERVER_TEXTS_JSON_H

#include "server/json/texts.h"

struct texts_json;

/* What a field of texts may hold. */
struct texts_rule {
  const char *field; /* name, for pointers: "text" */
  size_t max_items;
  enum texts_form form;
  bool or_tokens; /* the field may hold tokens instead: errors say so */
};

/* NULL with an error. The rule's name outlives it. */
struct texts_json *texts_json_new(const struct texts_rule *rule, struct arena *a, struct error *e);

/* Reads on in text[0 .. length). `offset` is the place of text[0] in the body. Returns how many
 * bytes belong to the value; *complete is whether it has ended. After an error the reader is dead.
 *
 *   invalid-json (offset)      a byte that no JSON text could have there, or that is not UTF-8
 *   invalid-request (pointer)  anything but texts in one of the forms that the rule allows
 *   too-large (limit max_items), overloaded, out-of-memory */
size_t texts_json_feed(struct texts_json *r, const char *text, size_t length, size_t offset,
                       bool *complete, struct error *e);

/* After *complete. */
const struct texts *texts_json_view(const struct texts_json *r);

#endif
