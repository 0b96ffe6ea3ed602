/* whole_plan: everything about a model except its numbers: its family, its sizes, and the tensors
 * that hold the numbers of each role.
 *
 * A plan is made from a definition and its files (whole_plan_make.h); only names, types and shapes
 * of tensors are read for it. One thread uses it. */
#ifndef CONFIG_WHOLE_PLAN_H
#define CONFIG_WHOLE_PLAN_H

#include "config/adapter/adapter_term.h"
#include "config/build/layer/layout_matrix.h"
#include "config/describe/notes.h"
#include "config/describe/whole_settings.h"
#include "config/describe/whole_source.h"
#include "config/describe/whole_words.h"
#include "config/family/layout_family.h"

/* One stack of the model. */
struct whole_stack {
  const struct whole_family *family; /* names of its tensors; NULL: there is no such stack */

  /* Sizes and kinds, without parameters, which whole_numbers.h reads. */
  struct stack_form form;
  unsigned places;  /* how it encodes positions: not UNSAID once its sizes are known */
  size_t positions; /* rows that an item may have; 0: any number */

  /* The tensors of each role. A norm's factor is its weight, its shift its bias. In a random model
   * only the sizes are set, and `tensor` is NULL. */
  struct layout_matrix part[WHOLE_ROLES];           /* roles of the stack */
  struct layout_matrix (*layer)[WHOLE_LAYER_ROLES]; /* [layers] roles of each layer */
};

/* A tensor that an adapter changes. */
struct whole_adapter_target {
  const struct checkpoint_entry *tensor; /* of the model */
  const struct adapter_pair *pair;
  bool turned;               /* as in adapter_term_read */
  struct adapter_term *term; /* what it and later adapters add, once it is read; NULL: an earlier
                                adapter has it */
};

struct whole_adapter {
  struct adapter *adapter;
  size_t targets;
  struct whole_adapter_target *target; /* [targets] */
};

enum { WHOLE_ADAPTERS_MOST = 16 };

struct whole_plan {
  struct whole_source source;
  struct whole_words words;
  struct whole_settings said;        /* definition and config.json together */
  const struct whole_family *family; /* of the stack that reads `tokens` */
  const struct whole_masked *masked; /* the head of an encoder for masked tokens; NULL: none */
  char prefix[LAYOUT_ADDRESS_SIZE];  /* of its tensors' names */
  enum model_kind kind;
  struct whole_stack stack[WHOLE_SIDES];

  enum stack_pool pool;
  bool normalize;
  enum whole_head head; /* of the classifier, if there is one */
  json_t *labels;       /* the names of its classes, a list of strings; or NULL */
  enum stack_function function;

  bool *used;     /* [tensors of the file] */
  size_t aside;   /* tensors of the file that are not used */
  uint64_t count; /* numbers of all parts; shared ones count once */
  struct notes notes;
  size_t adapters;
  struct whole_adapter adapter[WHOLE_ADAPTERS_MOST]; /* [adapters] in the order of the definition */
};

void whole_plan_free(struct whole_plan *p); /* a zeroed plan is fine */

/* Completes an error about the files: puts their path before it, and the name that the file at
 * fault uses for the setting with which it begins. Returns e->status. */
enum status whole_plan_blame(const struct whole_plan *p, struct error *e);

/* A part of a stack. */
struct whole_place {
  enum whole_role role;
  size_t layer; /* ignored for roles of the stack */
};

/* The stack that reads `tokens`: the encoder, or the decoder of a decoder-only model. */
static inline struct whole_stack *whole_plan_reader(const struct whole_plan *p) {
  return (struct whole_stack *)&p->stack[p->kind == MODEL_DECODER ? WHOLE_DECODER : WHOLE_ENCODER];
}

/* Is it the decoder of the model, or its encoder? A family of decoders may be an encoder. */
static inline enum whole_side whole_plan_side(const struct whole_plan *p,
                                              const struct whole_stack *s) {
  return (enum whole_side)(s - p->stack);
}

/* Does config.json name an architecture that ends so? */
bool whole_plan_is_for(const struct whole_plan *p, const char *end);

/* The score by logits: the definition overrides modules.json. */
static inline const struct whole_logit_score *whole_plan_logit_score(const struct whole_plan *p) {
  return p->said.logit_score.tokens ? &p->said.logit_score : &p->source.logit_score;
}

/* The layer of modules.json that makes the scores of a cross-encoder; NULL: there is none. */
static inline const struct whole_dense *whole_plan_scores(const struct whole_plan *p) {
  const struct whole_dense *d = &p->source.dense[WHOLE_DENSE_SCORES];
  return d->file && !whole_plan_logit_score(p)->tokens ? d : NULL;
}

/* The part of a role; `layer` is ignored for roles of the stack. */
static inline struct layout_matrix *whole_plan_part(const struct whole_stack *s,
                                                    enum whole_role role, size_t layer) {
  return role < WHOLE_LAYER_ROLES ? &s->layer[layer][role] : (struct layout_matrix *)&s->part[role];
}

/* Is `s` the encoder, and does it use the decoder's table for this role? */
bool whole_plan_is_lent(const struct whole_plan *p, const struct whole_stack *s,
                        enum whole_role role);

/* The first layer of the stack that has the parameters of a layer: in most models itself. */
size_t whole_plan_origin(const struct whole_plan *p, const struct whole_stack *s, size_t layer);

/* The size of a role's weight, [out, in], once the form is known; a vector is one row. */
void whole_plan_size(const struct whole_stack *s, enum whole_role role, size_t *out, size_t *in);

/* Bytes of the numbers in memory as float32: DeBERTa's projected positions replace what they are
 * computed from. */
uint64_t whole_plan_bytes(const struct whole_plan *p);

/* The file that holds the role's tensor: a dense layer may have its own. */
static inline struct checkpoint *whole_plan_file(const struct whole_plan *p, enum whole_role role) {
  const bool dense = role >= WHOLE_DENSE && role <= WHOLE_DENSE_END;
  struct checkpoint *own = dense                   ? p->source.dense[(role - WHOLE_DENSE) / 2].file
                           : role == WHOLE_CLASSES ? p->source.dense[WHOLE_DENSE_SCORES].file
                                                   : NULL;
  if (role == WHOLE_WEIGHER) return p->source.weigher;
  return own ? own : p->source.file;
}

#endif
