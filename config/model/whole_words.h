/* whole_words: what config.json says of a whole model, in the words of a definition. */
#ifndef CONFIG_WHOLE_WORDS_H
#define CONFIG_WHOLE_WORDS_H

#include <jansson.h>

#include "config/layer/notes.h"
#include "config/model/whole_family.h"
#include "config/model/whole_type.h"

struct whole_words {
  const struct whole_type *type; /* NULL: there is no config.json */
  json_t *words;                 /* an object, what the library takes for missing keys included */
  json_t *from; /* by these words what said it, "config.json: hidden_size"; not the definition's,
                   nor what no file says */
  /* What no definition says. 0: not said. */
  size_t positions; /* as config.json counts them */
  size_t buckets, distance;
  double rope_base;
  struct layer_stretch rope_stretch;
  size_t window;  /* rows that one sees, itself among them */
  bool has_types; /* of tokens */
  size_t types;
  bool apart; /* the encoder has a table of tokens of its own */
};

/* `config`: what the config.json holds; `generation`: the generation_config.json, whose tokens go
 * before; either may be NULL. STATUS_CONFIG where the model_type is not served, where a value is
 * none that is served, naming the key, or STATUS_OUT_OF_MEMORY. */
enum status whole_words_make(struct whole_words *w, const json_t *config, const json_t *generation,
                             struct error *e);
void whole_words_free(struct whole_words *w);

/* What the definition says goes before; what differs is noted. What either says of the encoder
 * alone counts as said of the model. */
enum status whole_words_override(struct whole_words *w, const json_t *definition, struct notes *n,
                                 struct error *e);

/* An error that begins with a word which a file said begins with that file and its key instead.
 * Returns the status that the error holds. */
enum status whole_words_blame(const struct whole_words *w, struct error *e);

#endif
