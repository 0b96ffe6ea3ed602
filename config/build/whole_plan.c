/* whole_plan: the sizes of its parts, its errors, its end. */
#include "config/build/whole_plan.h"

#include <stdlib.h>

#include "config/document/text.h"

void whole_plan_free(struct whole_plan *p) {
  whole_source_close(&p->source);
  whole_words_free(&p->words);
  for (enum whole_side i = 0; i < WHOLE_SIDES; i++) free(p->stack[i].layer);
  free(p->used);
  json_decref(p->labels);
  *p = (struct whole_plan){0};
}

enum status whole_plan_blame(const struct whole_plan *p, struct error *e) {
  whole_words_blame(&p->words, p->kind == MODEL_SEQ2SEQ, e);
  return p->source.path ? text_before(e, "%.100s: ", text_tail(p->source.path)) : e->status;
}

bool whole_plan_is_lent(const struct whole_plan *p, const struct whole_stack *s,
                        enum whole_role role) {
  const struct layout_matrix *own = &p->stack[WHOLE_ENCODER].part[role];
  const struct layout_matrix *other = &p->stack[WHOLE_DECODER].part[role];
  if (s != &p->stack[WHOLE_ENCODER] || role < WHOLE_LAYER_ROLES || !own->found || !other->found)
    return false;
  return p->source.file ? own->weight.tensor == other->weight.tensor
                        : role == WHOLE_TOKEN || role == WHOLE_POSITION;
}

void whole_plan_size(const struct whole_stack *stack, enum whole_role role, size_t *out,
                     size_t *in) {
  const struct stack_form *f = &stack->form;
  const struct layer_shape *s = &f->self, *c = &f->cross;
  const size_t d = f->width, queries = s->heads * s->head_size, keys = s->kv_heads * s->head_size;
  const size_t asking = c->heads * c->head_size, asked = c->kv_heads * c->head_size;
  const struct stack_embedding *m = &f->embedding;
  const struct stack_dense *dense = f->pooling.dense;
  const size_t sizes[WHOLE_ROLES][2] = {[WHOLE_QUERY] = {queries, d},
                                        [WHOLE_KEY] = {keys, d},
                                        [WHOLE_VALUE] = {keys, d},
                                        [WHOLE_OUTPUT] = {d, queries},
                                        [WHOLE_UP] = {f->forward_size, d},
                                        [WHOLE_GATE] = {f->forward_size, d},
                                        [WHOLE_DOWN] = {d, f->forward_size},
                                        [WHOLE_NORM_SELF] = {1, d},
                                        [WHOLE_NORM_FORWARD] = {1, d},
                                        [WHOLE_NORM_QUERY] = {1, s->head_size},
                                        [WHOLE_NORM_KEY] = {1, s->head_size},
                                        [WHOLE_NORM_CROSS] = {1, d},
                                        [WHOLE_CROSS_QUERY] = {asking, d},
                                        [WHOLE_CROSS_KEY] = {asked, c->key_size},
                                        [WHOLE_CROSS_VALUE] = {asked, c->value_size},
                                        [WHOLE_CROSS_OUTPUT] = {d, asking},
                                        [WHOLE_TOKEN] = {m->tokens, d},
                                        [WHOLE_TYPE] = {m->types, d},
                                        [WHOLE_POSITION] = {m->position_rows, d},
                                        [WHOLE_NORM_EMBEDDED] = {1, d},
                                        [WHOLE_NORM_LAST] = {1, d},
                                        [WHOLE_POOLER] = {d, d},
                                        [WHOLE_RELATIVE] = {s->relative_buckets, s->heads},
                                        [WHOLE_DENSE] = {dense[0].size, d},
                                        [WHOLE_DENSE_SKIP] = {dense[0].size, d},
                                        [WHOLE_DENSE + 2] = {dense[1].size, dense[0].size},
                                        [WHOLE_DENSE_SKIP + 2] = {dense[1].size, dense[0].size},
                                        [WHOLE_HEAD] = {m->tokens, d},
                                        [WHOLE_LOGITS_BIAS] = {1, m->tokens},
                                        [WHOLE_CLASS_FIRST] = {d, d},
                                        [WHOLE_CLASSES] = {f->classifier.count, d}};
  *out = sizes[role][0];
  *in = sizes[role][1];
}
