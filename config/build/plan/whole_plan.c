/* whole_plan: the sizes of its parts, its errors, its end. */
#include "config/build/plan/whole_plan.h"

#include <stdlib.h>

#include "config/describe/definition_value.h"
#include "config/document/text.h"

void whole_plan_free(struct whole_plan *p) {
  whole_source_close(&p->source);
  whole_words_free(&p->words);
  for (enum whole_side i = 0; i < WHOLE_SIDES; i++) free(p->stack[i].layer);
  free(p->used);
  json_decref(p->labels);
  for (size_t i = 0; i < p->adapters; i++) {
    for (size_t j = 0; j < p->adapter[i].targets; j++)
      adapter_term_free(p->adapter[i].target[j].term);
    free(p->adapter[i].target);
    adapter_free(p->adapter[i].adapter);
  }
  *p = (struct whole_plan){0};
}

enum status whole_plan_blame(const struct whole_plan *p, struct error *e) {
  whole_words_blame(&p->words, p->kind == MODEL_SEQ2SEQ, e);
  return p->source.path ? text_before(e, "%.100s: ", text_tail(p->source.path)) : e->status;
}

bool whole_plan_is_for(const struct whole_plan *p, const char *end) {
  return definition_value_lists(p->source.config, "architectures", end);
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

size_t whole_plan_origin(const struct whole_plan *p, const struct whole_stack *s, size_t layer) {
  const struct whole_words *w = &p->words;
  size_t first = 0;
  if (!s->family->shared) return layer;
  while (whole_words_group(w, first) != whole_words_group(w, layer / w->inner)) first++;
  return first * w->inner + layer % w->inner;
}

void whole_plan_size(const struct whole_stack *stack, enum whole_role role, size_t *out,
                     size_t *in) {
  const struct stack_form *f = &stack->form;
  const struct layer_shape *s = &f->kind->self, *c = &f->cross;
  const size_t d = f->width, forward = f->forward_size, size = s->head_size, heads = s->heads;
  const size_t queries = heads * size, keys = s->kv_heads * size, buckets = s->relative_buckets;
  const size_t cross_queries = c->heads * c->head_size, cross_keys = c->kv_heads * c->head_size;
  const size_t encoded = c->key_size; /* the width of the encoder */
  const size_t tokens = f->embedding.tokens, types = f->embedding.types;
  const size_t embedded = stack_form_embedded(f), read = stack_form_output(f);
  const size_t positions = f->embedding.position_rows, classes = f->classifier.count;
  const struct stack_dense *dense = f->pooling.dense;
  const size_t sizes[WHOLE_ROLES][2] = {
#define SIZE(id, out, in)                                          [WHOLE_##id] = {out, in},
#define WHOLE_LAYER(id, kind, block, number, random, out, in, ...) SIZE(id, out, in)
#define WHOLE_STACK(id, kind, block, number, random, out, in, ...) SIZE(id, out, in)
#include "config/family/whole_roles.def"
  };
  *out = sizes[role][0];
  *in = sizes[role][1];
}

/* Bytes of a role's numbers that are not kept. */
static uint64_t dropped_bytes(const struct whole_stack *s, enum whole_role role, size_t layer) {
  const struct layout_matrix *m = whole_plan_part(s, role, layer);
  if (!m->found || !whole_role_is_projected(role)) return 0;
  return ((uint64_t)m->weight.rows * m->weight.columns + (m->has_bias ? m->bias.columns : 0)) *
         sizeof(float);
}

uint64_t whole_plan_bytes(const struct whole_plan *p) {
  uint64_t bytes = p->count * sizeof(float);
  for (enum whole_side side = 0; side < WHOLE_SIDES; side++) {
    const struct whole_stack *s = &p->stack[side];
    if (!s->family || s->form.layers == 0) continue;
    bytes += s->form.layers * layer_position_bytes(&s->form.kind->self);
    for (enum whole_role role = 0; role < WHOLE_ROLES; role++)
      for (size_t i = 0; i < (role < WHOLE_LAYER_ROLES ? s->form.layers : 1); i++)
        bytes -= dropped_bytes(s, role, i);
  }
  return bytes;
}
