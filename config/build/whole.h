/* whole: what a whole model has in addition to its name, source and digest: its stacks, their
 * attentions, and the defaults of its requests.
 *
 * It belongs to its struct model, and is as immutable. */
#ifndef CONFIG_WHOLE_H
#define CONFIG_WHOLE_H

#include <jansson.h>

#include "config/build/model.h"
#include "config/describe/whole_settings.h"
#include "config/describe/whole_source.h"
#include "config/template/chat.h"
#include "config/tokenizer/tokenizer.h"
#include "core/stack/stack.h"

#define WHOLE_NO_LAYER SIZE_MAX

enum {
  WHOLE_PART_NAME_SIZE = 32, /* "encoder.9999.feed_forward" */
  WHOLE_WIDTHS_MOST = 4      /* of a block */
};

/* One attention of a whole model, as a model of its own: the paths of an attention serve it. */
struct whole_part {
  char name[WHOLE_PART_NAME_SIZE]; /* "encoder.3.self" */
  struct model model; /* MODEL_ATTENTION. It has the whole model's name, and borrows its texts, and
                         its layer from the stack */
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

/* A block of a whole model. Only the multiplications of products are counted: of rows with
 * matrices, of an attention's queries with keys, and of its weights with values. */
struct whole_block {
  char name[WHOLE_PART_NAME_SIZE]; /* "encoder.3.feed_forward" */
  enum whole_block_kind kind;
  const char *side;                /* "encoder" or "decoder"; static text */
  size_t layer;                    /* WHOLE_NO_LAYER: it is not in a layer */
  size_t width[WHOLE_WIDTHS_MOST]; /* [widths] input, inner and output widths */
  size_t widths;
  uint64_t parameters; /* those that no block before it has */
  uint64_t token;      /* multiplications for each row */
  uint64_t pair;       /* multiplications of an attention for each pair of query and key */
  uint64_t key;        /* multiplications of a cross-attention for each row of the encoder; or 0 */
  bool tied;           /* its matrix is the table of tokens of a block before it */
};

/* How a text of late interaction becomes tokens. */
struct whole_text_form {
  size_t longest; /* tokens after "truncate": true; 0: as of other texts */
  int64_t marker; /* the token after the first one; -1: none is added */
  size_t filled;  /* a shorter text is padded to so many tokens; 0: it is not */
  int32_t filler; /* with this one */
  bool attends;   /* whether padding is attended to */
};

struct whole {
  const char *family;              /* "bert"; static text */
  const char *builtin;             /* the name of a model that is part of the program, or NULL */
  struct stack *encoder, *decoder; /* one of them is NULL, or the layers of the decoder attend to
                                      the encoder's outputs; one table of tokens may serve both */
  size_t vocabulary;               /* of `tokens`; 0: the model takes `embeddings` only */
  size_t types;                    /* of token_types; 0: it has none */
  size_t positions;                /* rows that an item may have; 0: any number */
  size_t target_vocabulary, target_positions; /* the same of the decoder; equal to these without an
                                                 encoder */
  size_t aside;                               /* tensors of its file that are not used */
  struct whole_tokens token;

  /* Defaults of /encode. */
  enum stack_pool pool;
  bool normalize;

  /* Defaults of /generate. */
  struct stack_choice choice;   /* its `end` is the next member: */
  int32_t ends[WHOLE_ENDS_MAX]; /* the tokens of token.end in the vocabulary; they always end */
  int32_t *banned;              /* [choice.banned_count] its list, or NULL */
  bool says_temperature;        /* whether the files or the definition have a temperature */
  size_t max_tokens;

  /* The classifier. */
  size_t classes; /* 0: it has none */
  enum whole_head head;
  char **label;                 /* [classes] names; NULL: it has none, or its scores are of spans */
  enum stack_function function; /* the default that is applied to scores */

  struct tokenizer *tokenizer; /* NULL: the model takes tokens only */
  const char *tokenizer_file;  /* its name; static text */
  struct chat *chat;           /* its chat template; NULL: none */
  int32_t chat_end;            /* the token that ends a message there; -1: none is known */
  int32_t *special;            /* [specials] tokens that have no weight of their own in texts */
  size_t specials;
  int64_t mask;    /* its token for a masked one; -1: none */
  size_t longest;  /* tokens of a text after "truncate": true; 0: all */
  bool truncates;  /* whether the definition sets the default of `truncate`: */
  size_t truncate; /* a number of tokens; 0: no truncation; SIZE_MAX: `longest` */

  /* Late interaction. */
  bool interacts;                           /* queries and documents are embedded differently */
  struct whole_text_form text[WHOLE_TEXTS]; /* if there is a tokenizer, too */
  uint8_t *dropped; /* [vocabulary] a bit 1 << text: the token has no vector there; NULL: all do */

  /* Texts that the model was trained to see before the texts it encodes. */
  json_t *prompts;       /* {"query": "query: ", ...}; NULL: none */
  json_t *prompt;        /* the default, a text; NULL: none */
  size_t longest_prompt; /* bytes of the longest of these */
  bool prompt_left_out;  /* the rows of a prompt are not pooled, unless one row alone is */

  json_t *adapters; /* those merged into it (whole_adapter_describe); NULL: none */

  struct whole_part *part; /* [parts] the encoder's by layer; then the decoder's by layer, its
                              self-attentions before its cross-attentions */
  size_t parts;

  struct whole_block *block; /* [blocks], in the order in which data flows */
  size_t blocks;
};

/* Is this the definition of a whole model? */
bool whole_is_meant(const json_t *definition);

/* Makes the whole of model `m`, which has its name already: kind, numbers, digest, parts and notes;
 * then tries it. `compute` is for a model that does not set it itself. Numbers are read a layer at
 * a time: only one layer is in memory twice. After a failure, STATUS_CONFIG or
 * STATUS_OUT_OF_MEMORY, model_free frees what there is. */
enum status whole_load(struct model *m, const json_t *definition, const char *directory,
                       enum compute compute, struct error *e);

/* Checks everything except the numbers, and returns the bytes these take as float32. The same
 * failures. */
enum status whole_measure(const json_t *definition, const char *directory, uint64_t *bytes,
                          struct error *e);

void whole_free(struct whole *w); /* NULL is fine */

/* The stack that reads `tokens`. */
static inline struct stack *whole_reader(const struct whole *w) {
  return w->encoder ? w->encoder : w->decoder;
}

/* Is it an encoder-decoder model? */
static inline bool whole_is_pair(const struct whole *w) { return w->encoder && w->decoder; }

/* The classes of a classifier whose scores are these; 0: the model has no such classifier. */
static inline size_t whole_classes(const struct whole *w, enum whole_head head) {
  return w->head == head ? w->classes : 0;
}

/* Bytes of scratch that one thread needs for either stack. */
size_t whole_scratch_bytes(const struct whole *w);

/* Is it an encoder-decoder model without a decoder start token? */
bool whole_lacks_begin(const struct whole *w);

/* Does its encoder have a masked language modeling head? False for NULL. */
bool whole_can_fill(const struct whole *w);

/* Does its encoder make sparse embeddings? False for NULL. */
bool whole_can_weigh(const struct whole *w);

/* Has it a projection that makes vectors of rows? False for NULL. */
bool whole_has_rows(const struct whole *w);

/* Does its decoder make logits? */
bool whole_has_logits(const struct whole *w);

/* Can it score tokens? False for NULL, and without a decoder start token. */
bool whole_has_output(const struct whole *w);

/* Can it generate text? False for NULL, and without a decoder start token. */
bool whole_can_generate(const struct whole *w);

/* The names of the kinds of blocks by their numbers; NULL after the last. */
extern const char *const whole_block_kinds[];

/* The part of this name; NULL: the model has none. */
const struct whole_part *whole_find_part(const struct whole *w, const char *name);

#endif
