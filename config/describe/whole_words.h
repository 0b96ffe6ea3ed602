/* whole_words: what config.json and a definition say of a whole model, in the words of the latter.
 */
#ifndef CONFIG_WHOLE_WORDS_H
#define CONFIG_WHOLE_WORDS_H

#include <jansson.h>

#include "config/describe/notes.h"
#include "config/family/whole_family.h"
#include "config/family/whole_type.h"

/* A word of a definition: "heads"; of one stack alone where `side` is its name, else NULL. */
struct whole_word {
  const char *side, *word;
};

/* The document and key that a word comes from. */
struct whole_by {
  const char *document, *key; /* of config.json: "hidden_size"; NULL: none says it */
};

/* What stands beside the tensors; either may be NULL. */
struct whole_documents {
  const json_t *config;     /* config.json */
  const json_t *generation; /* generation_config.json, whose tokens go before */
};

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
  bool apart;               /* encoder and decoder have a table of tokens each, */
  size_t target_vocabulary; /* the decoder's of so many */
};

/* STATUS_CONFIG where the model_type is not served, where a value is none that is served, naming
 * the key, or STATUS_OUT_OF_MEMORY. */
enum status whole_words_make(struct whole_words *w, const struct whole_documents *of,
                             struct notes *n, struct error *e);
void whole_words_free(struct whole_words *w);

/* Puts a value, whose reference is taken, in the place of what was known. */
void whole_words_put(struct whole_words *w, const struct whole_word *at, json_t *value,
                     const struct whole_by *by, struct error *e);

/* What the definition says goes before; what differs is noted. What it says of the model goes
 * before what a file says of one stack alone. */
enum status whole_words_override(struct whole_words *w, const json_t *definition, struct notes *n,
                                 struct error *e);

/* An error that begins with a word which a file said begins with that file and its key instead;
 * before the word may stand of which stack it is, which is left out unless there are `both`.
 * Returns the status that the error holds. */
enum status whole_words_blame(const struct whole_words *w, bool both, struct error *e);

#endif
