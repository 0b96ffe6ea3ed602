/* whole_heads: finds the layers after a model's stacks, except its classifier's. */
#include "config/build/head/whole_heads.h"

#include <stdio.h>

#include "config/build/plan/whole_find.h"

enum { NAME_SIZE = LAYOUT_ADDRESS_SIZE + 16 };

/* The search for the heads of one stack. */
struct whole_heading {
  struct whole_plan *p;
  struct whole_stack *stack;
  struct error *e;
};

/* The tensor stem + end after the prefix or a part of it; NULL: there is none. */
static const struct checkpoint_entry *find_end(const struct whole_plan *p, const char *stem,
                                               const char *end) {
  char name[NAME_SIZE];
  snprintf(name, sizeof name, "%.120s%s", stem, end);
  return whole_find_near(p, name);
}

/* --- logits and masked tokens --- */

/* Finds the matrix of the logits of this name, if the stack has its own, and their bias, whose name
 * may be another one. */
static enum status find_logits(const struct whole_heading *f, const char *stem, const char *added) {
  const struct checkpoint_entry *weight = find_end(f->p, stem, ".weight"),
                                *bias = added ? whole_find_near(f->p, added) : NULL;
  struct layout_matrix *m = &f->stack->part[WHOLE_HEAD], *b = &f->stack->part[WHOLE_LOGITS_BIAS];
  const bool headed = f->stack->family->headed;
  if (!bias) bias = find_end(f->p, stem, ".bias");
  if (headed && !weight)
    return error_set(f->e, STATUS_CONFIG, "there is no tensor \"%s%s.weight\"", f->p->prefix, stem);
  m->found = weight && (headed || f->p->said.tie_output != TOGGLE_ON);
  if (m->found && whole_find_use(f->p, weight, 2, &m->weight, f->e)) return f->e->status;
  b->found = bias;
  return bias ? whole_find_use(f->p, bias, bias->rank == 2 ? 2 : 1, &b->weight, f->e) : STATUS_OK;
}

/* Finds weight and bias of a role of a head; their names may lack the prefix or a part of it. */
static enum status find_pair_near(const struct whole_heading *f, enum whole_role role,
                                  const char *stem) {
  const bool norm = whole_role_is_norm(role);
  struct layout_matrix *m = &f->stack->part[role];
  const struct checkpoint_entry *weight = find_end(f->p, stem, ".weight"),
                                *bias = find_end(f->p, stem, ".bias");
  if (!weight && norm) weight = find_end(f->p, stem, ".gamma");
  if (!bias && norm) bias = find_end(f->p, stem, ".beta");
  if (!weight)
    return error_set(f->e, STATUS_CONFIG,
                     "there is no tensor \"%s.weight\" of the masked language modeling head", stem);
  *m = (struct layout_matrix){.found = true, .has_bias = bias};
  if (whole_find_use(f->p, weight, norm ? 1 : 2, &m->weight, f->e)) return f->e->status;
  return bias ? whole_find_use(f->p, bias, 1, &m->bias, f->e) : STATUS_OK;
}

/* Does the file have a tensor of this head? */
static bool has_masked(const struct whole_plan *p, const struct whole_masked *m) {
  return (m->dense && find_end(p, m->dense, ".weight")) || find_end(p, m->matrix, ".weight") ||
         (m->bias && whole_find_near(p, m->bias));
}

/* Finds the masked language modeling head of an encoder whose architecture has one: the first whose
 * tensors the file has. */
static enum status find_masked(const struct whole_heading *f) {
  struct whole_plan *p = f->p;
  const struct whole_masked *one = f->stack->family->masked;
  size_t i = 0;
  const bool named =
      whole_plan_is_for(p, "ForMaskedLM") || whole_plan_is_for(p, "NomicBertForPreTraining");
  if (p->kind != MODEL_ENCODER || !one->matrix || !named) return STATUS_OK;
  while (i < WHOLE_MASKED_MOST && one[i].matrix && !has_masked(p, &one[i])) i++;
  if (i == WHOLE_MASKED_MOST || !one[i].matrix) {
    notes_add(&p->notes, "config.json: architectures names a masked language model, but there are "
                         "no tensors of its head: /fill is not available");
    return STATUS_OK;
  }
  p->masked = &one[i];
  if (p->masked->dense && (find_pair_near(f, WHOLE_TRANSFORM, p->masked->dense) ||
                           find_pair_near(f, WHOLE_NORM_TRANSFORM, p->masked->norm)))
    return f->e->status;
  return find_logits(f, p->masked->matrix, p->masked->bias);
}

static enum status find_head(const struct whole_heading *f) {
  const struct whole_family *family = f->stack->family;
  const bool decodes = whole_plan_side(f->p, f->stack) == WHOLE_DECODER;
  return decodes ? find_logits(f, family->head, family->logits_bias) : find_masked(f);
}

/* --- layers of files of their own --- */

/* A linear layer in a file of its own. */
struct whole_linear {
  const struct checkpoint *file;
  const char *stem, *what; /* of its tensors' names; what it is, for messages */
  enum toggle biased;      /* not said: if there is a tensor of it */
};

static enum status take_linear(const struct whole_linear *l, struct layout_matrix *m,
                               struct error *e) {
  char full[2][NAME_SIZE];
  snprintf(full[0], NAME_SIZE, "%sweight", l->stem);
  snprintf(full[1], NAME_SIZE, "%sbias", l->stem);
  const struct checkpoint_entry *weight = checkpoint_find(l->file, full[0]), *bias = NULL;
  if (l->biased != TOGGLE_OFF) bias = checkpoint_find(l->file, full[1]);
  if (!weight || (!bias && l->biased == TOGGLE_ON))
    return error_set(e, STATUS_CONFIG, "there is no tensor \"%s\" of %s", full[weight != NULL],
                     l->what);
  *m = (struct layout_matrix){.found = true, .has_bias = bias};
  if (whole_find_set(&m->weight, weight, 2, e)) return e->status;
  return bias ? whole_find_set(&m->bias, bias, 1, e) : STATUS_OK;
}

/* Finds the matrix of a dense layer of sentence-transformers. */
static enum status find_dense_matrix(const struct whole_dense *d, const char *stem, bool biased,
                                     struct layout_matrix *m, struct error *e) {
  const enum toggle toggle = biased ? TOGGLE_ON : TOGGLE_OFF;
  return take_linear(&(struct whole_linear){d->file, stem, "the dense layer", toggle}, m, e);
}

/* Finds a dense layer among the model's own tensors: of decoders, only that of ColBERT. */
static enum status find_own_dense(const struct whole_heading *f) {
  const bool late = f->p->source.late.own;
  const char *stem = late ? "linear" : f->stack->family->stem[WHOLE_DENSE];
  if (!stem || (!late && whole_plan_side(f->p, f->stack) != WHOLE_ENCODER)) return STATUS_OK;
  const struct checkpoint_entry *weight = find_end(f->p, stem, ".weight");
  if (late && !weight)
    return error_set(f->e, STATUS_CONFIG,
                     "there is no tensor \"linear.weight\", the projection of HF_ColBERT");
  if (!weight) return STATUS_OK;
  if (f->p->source.dense[0].file)
    return error_set(f->e, STATUS_CONFIG,
                     "the folder has a dense layer, but there is tensor \"%.120s\", too",
                     weight->name);
  return find_pair_near(f, WHOLE_DENSE, stem);
}

static enum status find_dense(const struct whole_heading *f) {
  if (f->stack != whole_plan_reader(f->p) || find_own_dense(f)) return f->e->status;
  for (unsigned i = 0; i < STACK_DENSE_MOST; i++) {
    const struct whole_dense *d = &f->p->source.dense[i];
    struct layout_matrix *part = f->stack->part;
    if (!d->file) break;
    if (find_dense_matrix(d, d->stem, d->bias, &part[WHOLE_DENSE + 2 * i], f->e))
      return f->e->status;
    if (d->residual && d->in != d->out &&
        find_dense_matrix(d, "residual.", false, &part[WHOLE_DENSE_SKIP + 2 * i], f->e))
      return f->e->status;
  }
  const struct whole_dense *scores = whole_plan_scores(f->p);
  return scores ? find_dense_matrix(scores, scores->stem, scores->bias,
                                    &f->stack->part[WHOLE_CLASSES], f->e)
                : STATUS_OK;
}

/* Finds the weights of tokens of bge-m3, a linear layer in a file of its own. */
static enum status find_weigher(const struct whole_heading *f) {
  const struct checkpoint *file = f->p->source.weigher;
  struct layout_matrix *m = &f->stack->part[WHOLE_WEIGHER];
  if (!file || f->stack != whole_plan_reader(f->p) || f->p->kind != MODEL_ENCODER) return STATUS_OK;
  const struct whole_linear linear = {file, "", "sparse_linear", TOGGLE_UNSAID};
  return take_linear(&linear, m, f->e);
}

enum status whole_heads_find(struct whole_plan *p, struct error *e) {
  for (enum whole_side i = 0; i < WHOLE_SIDES; i++) {
    const struct whole_heading f = {p, &p->stack[i], e};
    if (!f.stack->family) continue;
    if (find_head(&f) || find_dense(&f) || find_weigher(&f)) return e->status;
  }
  return STATUS_OK;
}
