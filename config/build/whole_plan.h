/* whole_plan: everything about a whole model but its numbers: its family, its sizes, and where the
 * numbers of each of its roles lie.
 *
 * Made of a definition and its files; of the tensors only names, types and shapes are read. */
#ifndef CONFIG_WHOLE_PLAN_H
#define CONFIG_WHOLE_PLAN_H

#include "config/build/layer/layout_matrix.h"
#include "config/describe/notes.h"
#include "config/describe/whole_settings.h"
#include "config/describe/whole_source.h"
#include "config/describe/whole_words.h"
#include "config/family/layout_family.h"

/* One of its stacks. */
struct whole_stack {
  const struct whole_family *family; /* how its tensors are called; NULL: there is no such stack */

  /* Sizes and kinds; without parameters, which whole_numbers.h reads. */
  struct stack_form form;
  enum whole_places places; /* those of its positions: never unsaid once its sizes are found */
  size_t positions;         /* rows that an item may have; 0: as many as one likes */

  /* Where the numbers are. A norm's factor is its weight, its shift its bias. Of a random model
   * only the sizes are set, and `tensor` is NULL. */
  struct layout_matrix part[WHOLE_ROLES];           /* those of the stack */
  struct layout_matrix (*layer)[WHOLE_LAYER_ROLES]; /* [layers] */
};

struct whole_plan {
  struct whole_source source;
  struct whole_words words;
  struct whole_settings said;        /* definition and config.json together */
  const struct whole_family *family; /* of the stack that reads `tokens` */
  char prefix[LAYOUT_ADDRESS_SIZE];  /* of its tensors' names */
  enum model_kind kind;
  struct whole_stack stack[WHOLE_SIDES];

  enum stack_pool pool;
  bool normalize;
  json_t *labels; /* the names of the classes, a list of strings; NULL: there is no classifier */
  enum stack_function function;

  bool *used;     /* [tensors of the file] */
  size_t aside;   /* tensors that are not used */
  uint64_t count; /* numbers of all parts, once each */
  struct notes notes;
};

/* Makes it from a definition, which must outlive it. STATUS_CONFIG, with a detail that begins with
 * the key, the file or the tensor, or STATUS_OUT_OF_MEMORY; what there is then is freed by
 * whole_plan_free. */
enum status whole_plan_make(struct whole_plan *p, const json_t *definition, const char *directory,
                            struct error *e);

/* The same of files that are open: only `source` is set. */
enum status whole_plan_settle(struct whole_plan *p, const json_t *definition, struct error *e);

/* Puts before an error about the files which they are, and what in them said the word that it
 * begins with. Returns the status that it holds. */
enum status whole_plan_blame(const struct whole_plan *p, struct error *e);

void whole_plan_free(struct whole_plan *p); /* zeroed ones are fine */

/* A part of a stack. */
struct whole_place {
  enum whole_role role;
  size_t layer; /* counts for a layer's roles */
};

/* The stack that reads `tokens`: the encoder, or a decoder alone. */
static inline struct whole_stack *whole_plan_reader(const struct whole_plan *p) {
  return (struct whole_stack *)&p->stack[p->kind == MODEL_DECODER ? WHOLE_DECODER : WHOLE_ENCODER];
}

/* A part by its role; `layer` counts for a layer's roles. */
static inline struct layout_matrix *whole_plan_part(const struct whole_stack *s,
                                                    enum whole_role role, size_t layer) {
  return role < WHOLE_LAYER_ROLES ? &s->layer[layer][role] : (struct layout_matrix *)&s->part[role];
}

/* Has the encoder no such part of its own, as it uses the decoder's? These are tables. */
bool whole_plan_is_lent(const struct whole_plan *p, const struct whole_stack *s,
                        enum whole_role role);

/* What a role's weight must be, [out, in], once the form is known; a vector is one row. */
void whole_plan_size(const struct whole_stack *s, enum whole_role role, size_t *out, size_t *in);

/* The file in which the role lies. */
static inline struct checkpoint *whole_plan_file(const struct whole_plan *p, enum whole_role role) {
  const bool dense = role >= WHOLE_DENSE && role <= WHOLE_DENSE_END;
  return dense ? p->source.dense[(role - WHOLE_DENSE) / 2].file : p->source.file;
}

#endif
