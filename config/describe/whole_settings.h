/* whole_settings: the definition of a model, read strictly.
 *
 * A config.json whose model_type is "transformer" has the same words; other types are translated
 * into them (whole_translate.h). */
#ifndef CONFIG_WHOLE_SETTINGS_H
#define CONFIG_WHOLE_SETTINGS_H

#include <jansson.h>

#include "config/describe/definition_value.h"
#include "config/describe/whole_choice.h"
#include "config/describe/whole_source.h"
#include "config/family/whole_family.h"
#include "core/stack/stack.h"

enum { WHOLE_ENDS_MAX = 16 }; /* tokens that end a text */

struct whole_tokens { /* token ids; -1: none */
  int64_t begin, pad, forced_begin, forced_end;
  size_t ends;
  int64_t end[WHOLE_ENDS_MAX];
};

/* The scores that a classifier computes. */
enum whole_head {
  WHOLE_HEAD_CLASSES, /* of each class of an item */
  WHOLE_HEAD_TOKENS,  /* of each class of each token */
  WHOLE_HEAD_SPANS    /* of each token as the first or the last one of an answer */
};

/* How positions are encoded: a set of bits. The first three are about the embedding, of which the
 * family determines the kind of sinusoids, the others about the attention. */
enum {
  WHOLE_PLACES_UNSAID,
  WHOLE_PLACES_NONE = 1 << 0, /* it is alone */
  WHOLE_PLACES_SINUSOID = 1 << 1,
  WHOLE_PLACES_LEARNED = 1 << 2,
  WHOLE_PLACES_ROTARY = 1 << 3,
  WHOLE_PLACES_RELATIVE = 1 << 4,
  WHOLE_PLACES_ALIBI = 1 << 5
};

/* The sizes that each stack has; 0: not given. */
struct whole_stack_sizes {
  size_t layers, heads, forward_size;
};

struct whole_settings {
  bool has_kind;
  enum model_kind kind;
  struct whole_stack_sizes of[WHOLE_SIDES];      /* a size of the model counts for both */
  size_t width, kv_heads, head_size, vocabulary; /* 0: not given */
  enum toggle pre, rms, gated;
  double epsilon;           /* 0: not given */
  const char *activation;   /* static text; NULL: not given */
  enum activation activate; /* its meaning */
  unsigned places;
  size_t first_position, max_positions; /* 0: not given */
  enum toggle scale_embedding, tie_output;
  struct whole_tokens token; /* -1 also if not given */
  bool has_compute;
  enum compute compute; /* how matrices are multiplied */
  bool float32;         /* keep weights as float32, even if 16 bits can hold them */
  struct whole_choice choice;
  bool has_pool;
  enum stack_pool pool;
  enum toggle normalize;
  size_t classes;       /* 0: not given */
  const json_t *labels; /* a list of strings; NULL: not given */
  bool has_function;
  enum stack_function function;
  bool has_task;
  enum whole_head task;
  struct whole_logit_score logit_score;
};

/* Reads the object; *s borrows from it. STATUS_CONFIG with a detail that begins with the key. */
enum status whole_settings_read(struct whole_settings *s, const json_t *json, struct error *e);

/* The names of functions by their numbers; NULL after the last. */
extern const char *const whole_function_names[];

/* The names of heads by their numbers, those of the paths that serve them; NULL after the last. */
extern const char *const whole_task_names[];

/* "encoder" or "decoder": the member of a definition about that stack alone. */
const char *whole_settings_side(enum whole_side side);

/* Is it the word of a size that each stack has: "heads"? */
bool whole_settings_is_size(const char *word);

/* Finds an activation by its name in definitions or in the config.json of any family. Returns the
 * name as static text; NULL: unknown. */
const char *whole_settings_activation(const char *name, enum activation *out);

#endif
