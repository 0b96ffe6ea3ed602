/* whole_choice: how a model goes on from a text where a request does not say otherwise: by
 * `generate` of a definition, or by generation_config.json or config.json in its words. */
#ifndef CONFIG_WHOLE_CHOICE_H
#define CONFIG_WHOLE_CHOICE_H

#include <jansson.h>

#include "config/layer/notes.h"
#include "core/run/status.h"
#include "core/stack/stack_choice.h"

enum { WHOLE_BANNED_MAX = 256 }; /* tokens that are never chosen */

struct whole_choice {
  size_t max_tokens;
  struct stack_choice choice; /* without lists, but for these: */
  size_t banned;
  int32_t ban[WHOLE_BANNED_MAX];
};

/* Of a model that says nothing: the likeliest token, up to 64 of them. */
void whole_choice_init(struct whole_choice *c);

/* Reads the object strictly; what is not said stays as it is. STATUS_CONFIG with a detail that
 * begins with the key. */
enum status whole_choice_read(struct whole_choice *c, const json_t *json, struct error *e);

/* `known` becomes what both say: what is said goes before. A search and a drawing exclude each
 * other: what says the one switches the other off. */
enum status whole_choice_override(json_t *known, json_t *said, struct error *e);

/* A document of the library that says how tokens are generated. */
struct whole_generating {
  const json_t *said;
  const char *document; /* "generation_config.json" */
  bool pair;            /* of an encoder and a decoder, whose text begins with one token */
};

/* What it says, in the words of `generate`: a new object. What would choose otherwise than is
 * served is noted. NULL with an error that names the document and its key, or without memory. */
json_t *whole_choice_translate(const struct whole_generating *g, struct notes *n, struct error *e);

#endif
