/* whole_choice: the defaults of generation: from `generate` of a definition, or from
 * generation_config.json or config.json in its words. */
#ifndef CONFIG_WHOLE_CHOICE_H
#define CONFIG_WHOLE_CHOICE_H

#include <jansson.h>
#include <math.h>

#include "config/describe/definition_value.h"
#include "config/describe/notes.h"
#include "core/base/status.h"
#include "core/generate/choice.h"

/* The options of generation that are one value, for definitions, requests and descriptions alike:
 * identifier; word, which is a member of struct stack_choice; type; range. OpenAI's completions
 * have those of WHOLE_SAMPLING. */
#define WHOLE_SEARCH(OPTION)                                                \
  OPTION(BEAMS, beams, WHOLE_COUNT, 1, STACK_BEAMS_MAX)                     \
  OPTION(LENGTH_PENALTY, length_penalty, WHOLE_NUMBER, -INFINITY, INFINITY) \
  OPTION(EARLY_STOPPING, early_stopping, WHOLE_EARLY, 0, 0)
#define WHOLE_SAMPLING(OPTION)                                             \
  OPTION(MIN_TOKENS, min_tokens, WHOLE_COUNT, 0, INFINITY)                 \
  OPTION(TEMPERATURE, temperature, WHOLE_NUMBER, 0, INFINITY)              \
  OPTION(TOP_K, top_k, WHOLE_COUNT, -1, INFINITY) /* -1: all tokens */     \
  OPTION(TOP_P, top_p, WHOLE_ABOVE, 0, 1)                                  \
  OPTION(MIN_P, min_p, WHOLE_NUMBER, 0, 1)                                 \
  OPTION(REPETITION_PENALTY, repetition_penalty, WHOLE_ABOVE, 0, INFINITY) \
  OPTION(PRESENCE_PENALTY, presence_penalty, WHOLE_NUMBER, -2, 2)          \
  OPTION(FREQUENCY_PENALTY, frequency_penalty, WHOLE_NUMBER, -2, 2)        \
  OPTION(NO_REPEAT_NGRAM, no_repeat_ngram, WHOLE_COUNT, 0, INFINITY)
#define WHOLE_OPTIONS(OPTION) WHOLE_SEARCH(OPTION) WHOLE_SAMPLING(OPTION)

enum whole_option_type {
  WHOLE_COUNT,  /* an integer; negative means 0 */
  WHOLE_NUMBER, /* at least `least` */
  WHOLE_ABOVE,  /* above `least` */
  WHOLE_EARLY   /* true, false or "never" */
};

struct whole_option {
  const char *word;
  enum whole_option_type type;
  double least, most;
  size_t at; /* offset in struct stack_choice: of a size_t, a double or an enum stack_early */
};

#define WHOLE_OPTION_ID(id, ...) WHOLE_OPTION_##id,
enum { WHOLE_OPTIONS(WHOLE_OPTION_ID) WHOLE_OPTION_COUNT };

extern const struct whole_option whole_options[WHOLE_OPTION_COUNT];

/* Is the number in the option's range? */
bool whole_option_has(const struct whole_option *o, double number);

/* Reads a value of WHOLE_EARLY. False: it is none. */
bool whole_option_early(const json_t *value, enum stack_early *out);

/* Returns the option's value in a choice, as in a definition. NULL without memory. */
json_t *whole_option_json(const struct whole_option *o, const struct stack_choice *c);

enum { WHOLE_BANNED_MAX = 256 }; /* tokens that are never generated */

struct whole_choice {
  size_t max_tokens;
  bool says_temperature;      /* whether there is a temperature, 0 included */
  struct stack_choice choice; /* its lists are empty; banned tokens are here: */
  size_t banned;
  int32_t ban[WHOLE_BANNED_MAX];
};

/* The defaults of a model without any: greedy decoding of at most 64 tokens. */
void whole_choice_init(struct whole_choice *c);

/* Reads the object strictly; members for absent keys stay as they are. STATUS_CONFIG with a detail
 * that begins with the key. */
enum status whole_choice_read(struct whole_choice *c, const json_t *json, struct error *e);

/* Merges `said` into `known`, which it overrides. Beam search and sampling exclude each other: the
 * one in `said` switches off the other. STATUS_OUT_OF_MEMORY. */
enum status whole_choice_override(json_t *known, json_t *said, struct error *e);

/* A document of Hugging Face transformers about generation. */
struct whole_generating {
  const json_t *said;
  const char *document; /* "generation_config.json" */
  bool pair;            /* encoder-decoder model, whose output begins with a start token */
};

/* Returns a new object in the words of `generate`. Keys that have no effect here are noted. NULL
 * with an error that names the document and its key, or with STATUS_OUT_OF_MEMORY. */
json_t *whole_choice_translate(const struct whole_generating *g, struct notes *n, struct error *e);

/* Writes the word of a definition for a key of transformers, for hints: `"begin"`, or
 * `"beams" in "generate"`. False: unknown. */
bool whole_called(const char *key, char out[DEFINITION_CALLED]);

/* The same for a key within `generate`. */
bool whole_called_generating(const char *key, char out[DEFINITION_CALLED]);

#endif
