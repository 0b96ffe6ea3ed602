/* whole_choice: how a model goes on from a text where a request does not say otherwise: by
 * `generate` of a definition, or by generation_config.json or config.json in its words. */
#ifndef CONFIG_WHOLE_CHOICE_H
#define CONFIG_WHOLE_CHOICE_H

#include <jansson.h>
#include <math.h>

#include "config/describe/notes.h"
#include "core/base/status.h"
#include "core/generate/choice.h"

/* The options of a choice that are one number, of definitions, requests and descriptions alike: the
 * identifier, the word, which is a member of struct stack_choice, its type, and its range. */
#define WHOLE_OPTIONS(OPTION)                                              \
  OPTION(MIN_TOKENS, min_tokens, WHOLE_COUNT, 0, INFINITY)                 \
  OPTION(TEMPERATURE, temperature, WHOLE_NUMBER, 0, INFINITY)              \
  OPTION(TOP_K, top_k, WHOLE_COUNT, -1, INFINITY) /* -1: of all */         \
  OPTION(TOP_P, top_p, WHOLE_ABOVE, 0, 1)                                  \
  OPTION(MIN_P, min_p, WHOLE_NUMBER, 0, 1)                                 \
  OPTION(REPETITION_PENALTY, repetition_penalty, WHOLE_ABOVE, 0, INFINITY) \
  OPTION(PRESENCE_PENALTY, presence_penalty, WHOLE_NUMBER, -2, 2)          \
  OPTION(FREQUENCY_PENALTY, frequency_penalty, WHOLE_NUMBER, -2, 2)        \
  OPTION(NO_REPEAT_NGRAM, no_repeat_ngram, WHOLE_COUNT, 0, INFINITY)

enum whole_option_type {
  WHOLE_COUNT,  /* an integer; one below 0 is read as 0 */
  WHOLE_NUMBER, /* from its least on */
  WHOLE_ABOVE   /* above it */
};

struct whole_option {
  const char *word;
  enum whole_option_type type;
  double least, most;
  size_t at; /* in struct stack_choice: a size_t where it is a count, else a double */
};

#define WHOLE_OPTION_ID(id, ...) WHOLE_OPTION_##id,
enum { WHOLE_OPTIONS(WHOLE_OPTION_ID) WHOLE_OPTION_COUNT };

extern const struct whole_option whole_options[WHOLE_OPTION_COUNT];

/* Is the number in the option's range? */
bool whole_option_has(const struct whole_option *o, double number);

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
