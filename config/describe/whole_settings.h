/* whole_settings: what a definition of a whole model may say, read strictly.
 *
 * A config.json whose model_type is "transformer" says it in the same words, and those of the
 * library's other types are translated into them (whole_words.h). */
#ifndef CONFIG_WHOLE_SETTINGS_H
#define CONFIG_WHOLE_SETTINGS_H

#include <jansson.h>

#include "config/describe/definition_value.h"
#include "config/describe/whole_choice.h"
#include "config/family/whole_family.h"
#include "core/stack/stack.h"

enum { WHOLE_ENDS_MAX = 16 }; /* tokens that end a text */

struct whole_tokens { /* token ids; -1: none */
  int64_t begin, pad, forced_begin, forced_end;
  size_t ends;
  int64_t end[WHOLE_ENDS_MAX];
};

/* How positions come in; the family says which sinusoids these are. */
enum whole_places {
  WHOLE_PLACES_UNSAID,
  WHOLE_PLACES_NONE,
  WHOLE_PLACES_SINUSOID,
  WHOLE_PLACES_LEARNED,
  WHOLE_PLACES_ROTARY,
  WHOLE_PLACES_RELATIVE
};

/* What may be said of one stack alone; 0: not said. */
struct whole_stack_sizes {
  size_t layers, heads, forward_size;
};

struct whole_settings {
  bool has_kind;
  enum model_kind kind;
  struct whole_stack_sizes of[WHOLE_SIDES];      /* what is said of the model counts for both */
  size_t width, kv_heads, head_size, vocabulary; /* 0: not said */
  enum toggle pre, rms, gated;
  double epsilon;           /* 0: not said */
  const char *activation;   /* static text; NULL: not said */
  enum activation activate; /* what it means */
  enum whole_places places;
  size_t first_position, max_positions; /* 0: not said */
  enum toggle scale_embedding, tie_output;
  struct whole_tokens token; /* what is not said is none */
  bool float32;              /* numbers stay so, even where 16 bits have them */
  struct whole_choice choice;
  bool has_pool;
  enum stack_pool pool;
  enum toggle normalize;
  size_t classes;       /* 0: not said */
  const json_t *labels; /* a list of strings; NULL: not said */
  bool has_function;
  enum stack_function function;
};

/* Reads the object; what is not said of the members above stays so. STATUS_CONFIG with a detail
 * that begins with the key. */
enum status whole_settings_read(struct whole_settings *s, const json_t *json, struct error *e);

/* The names of functions by their numbers; NULL after the last. */
extern const char *const whole_function_names[];

/* "encoder" or "decoder": the member in which a definition speaks of that stack alone. */
const char *whole_settings_side(enum whole_side side);

/* Is it a word that may be said of one stack alone: "heads"? */
bool whole_settings_is_size(const char *word);

/* The activation of this name, as config.json of any family may call it. Returns the name, as
 * static text; NULL: it is not known. */
const char *whole_settings_activation(const char *name, enum activation *out);

#endif
