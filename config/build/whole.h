/* whole: what a whole model has beyond its name, source and digest: its stacks, the attentions in
 * them, and what it was made to be used with.
 *
 * It belongs to its struct model, and is as immutable. */
#ifndef CONFIG_WHOLE_H
#define CONFIG_WHOLE_H

#include <jansson.h>

#include "config/build/model.h"
#include "config/describe/whole_settings.h"
#include "config/tokenizer/tokenizer.h"
#include "core/stack/stack.h"

#define WHOLE_NO_LAYER SIZE_MAX

enum {
  WHOLE_PART_NAME_SIZE = 32, /* "encoder.9999.feed_forward" */
  WHOLE_WIDTHS_MOST = 4      /* of a piece */
};

/* One attention of a whole model, as a model of its own: the paths of an attention serve it. */
struct whole_part {
  char name[WHOLE_PART_NAME_SIZE]; /* "encoder.3.self" */
  struct model model; /* MODEL_ATTENTION; its name is that of the whole model, its layer is borrowed
                         of the stack, and its texts of the whole model */
};

enum whole_block_kind {
  BLOCK_EMBEDDINGS,
  BLOCK_ATTENTION,
  BLOCK_FEED_FORWARD,
  BLOCK_NORM,
  BLOCK_POOLER,
  BLOCK_CLASSIFIER,
  BLOCK_OUTPUT
};

/* A piece of a whole model. Of multiplications only those of products are counted: of rows with
 * matrices, and of an attention's queries with keys, and weights with values. */
struct whole_block {
  char name[WHOLE_PART_NAME_SIZE]; /* "encoder.3.feed_forward" */
  enum whole_block_kind kind;
  const char *side;                /* "encoder" or "decoder"; static text */
  size_t layer;                    /* WHOLE_NO_LAYER: it is in none */
  size_t width[WHOLE_WIDTHS_MOST]; /* [widths] input, inner and output widths */
  size_t widths;
  uint64_t parameters; /* that no piece before it has */
  uint64_t token;      /* multiplications for each row */
  uint64_t pair;       /* of an attention, for each query and key */
  uint64_t key;        /* of one across, for each row of the encoder's; else 0 */
  bool tied;           /* its matrix is the table of tokens of a piece before it */
};

struct whole {
  const char *family;              /* "bert"; static text */
  struct stack *encoder, *decoder; /* one of them, or both: the layers of the decoder attend to
                                      the encoder's outputs then, and may have its table of tokens,
                                      or lend theirs */
  size_t vocabulary;               /* of `tokens`; 0: it takes `embeddings` only */
  size_t types;                    /* of token_types; 0: it has none */
  size_t positions;                /* rows that an item may have; 0: as many as one likes */
  size_t target_vocabulary, target_positions; /* the same of the decoder; where it stands alone they
                                                 are these */
  size_t aside;                               /* tensors of its file that are not used */
  struct whole_tokens token;

  /* Where an /encode request does not say otherwise. */
  enum stack_pool pool;
  bool normalize;

  /* Where a /generate request does not say otherwise. */
  struct stack_choice choice;   /* its `end` is here: */
  int32_t ends[WHOLE_ENDS_MAX]; /* those of token.end that are in the vocabulary; they always end */
  int32_t *banned;              /* [choice.banned_count] its list, or NULL */
  size_t max_tokens;

  /* Of an encoder with a classifier. */
  size_t classes;               /* 0: it has none */
  char **label;                 /* [classes] their names */
  enum stack_function function; /* where a /classify request does not say otherwise */

  struct tokenizer *tokenizer; /* NULL: it takes tokens alone */
  const char *tokenizer_file;  /* its name; static text */
  size_t longest;              /* the tokens that "truncate": true leaves of a text; 0: all */
  bool truncates;  /* where a request does not say what a text is cut to, the definition does: */
  size_t truncate; /* to so many tokens; 0: it is not cut; SIZE_MAX: to `longest` */

  /* Texts that the model was trained to see before those that are encoded. */
  json_t *prompts;       /* {"query": "query: ", ...}; NULL: it names none */
  json_t *prompt;        /* the default one, a text; NULL: none */
  size_t longest_prompt; /* bytes of the longest of these */
  bool prompt_left_out;  /* the rows of a prompt are not pooled, but where one row is */

  struct whole_part *part; /* [parts], the encoder's by their layers; then the decoder's, those
                              across behind the others */
  size_t parts;

  struct whole_block *block; /* [blocks], in the order in which data flows */
  size_t blocks;
};

void whole_free(struct whole *w); /* NULL is fine */

/* The stack that reads `tokens`. */
static inline struct stack *whole_reader(const struct whole *w) {
  return w->encoder ? w->encoder : w->decoder;
}

/* Both: an encoder, and a decoder that attends to what it puts out. */
static inline bool whole_is_pair(const struct whole *w) { return w->encoder && w->decoder; }

/* Bytes of scratch that one thread needs for either stack. */
size_t whole_scratch_bytes(const struct whole *w);

/* Has it a decoder beside an encoder, of which no token is known with which it begins? */
bool whole_lacks_begin(const struct whole *w);

/* Are there logits behind its decoder? */
bool whole_has_logits(const struct whole *w);

/* Can it say how likely tokens are? NULL, which is no whole model, cannot; nor can one that lacks
 * the token with which it begins. */
bool whole_has_output(const struct whole *w);

/* And go on from a text? */
bool whole_can_generate(const struct whole *w);

/* The names of the kinds of blocks by their numbers; NULL after the last. */
extern const char *const whole_block_kinds[];

/* The part of this name; NULL: the model has none. */
const struct whole_part *whole_find_part(const struct whole *w, const char *name);

#endif
