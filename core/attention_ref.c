/* attention_ref: the layer's slow, readable twin. */
#include "core/attention_ref.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/visible.h"

/* y = x W^T + b of one row; without a weight y = x. False if y is beyond float32. */
static bool project(const struct layer_matrix *m, size_t out, size_t in, const double *x,
                    double *y) {
  bool finite = true;
  for (size_t n = 0; n < out; n++) {
    y[n] = m->weight ? 0 : x[n];
    for (size_t i = 0; m->weight && i < in; i++) y[n] += (double)m->weight[n * in + i] * x[i];
    if (m->weight && m->bias) y[n] += m->bias[n];
    finite = finite && fabs(y[n]) <= FLT_MAX;
  }
  return finite;
}

static bool project_floats(const struct layer_matrix *m, size_t out, size_t in, const float *x,
                           double *y, double *room) {
  for (size_t i = 0; i < in; i++) room[i] = x[i];
  return project(m, out, in, room, y);
}

/* One item with all its projected rows. */
struct ref {
  const struct layer_shape *s;
  const struct layer_matrix *matrix;
  const struct call *c;
  const struct item *item;
  double *q, *k, *v; /* [q, H d], [k, G d], [k, G d_v] */
  double *weights;   /* [k] of one query and head */
  double *context;   /* [H d_v] of one query */
  double *room;      /* one input row */
};

static bool key_is_seen(const struct ref *r, size_t j) {
  for (size_t i = 0; i < r->item->q; i++)
    if (visible_pair(r->c, r->item, i, j)) return true;
  return false;
}

static bool query_sees(const struct ref *r, size_t i) {
  for (size_t j = 0; j < r->item->k; j++)
    if (visible_pair(r->c, r->item, i, j)) return true;
  return false;
}

/* Projects the rows that take part in anything. */
static bool project_item(struct ref *r) {
  const struct layer_shape *s = r->s;
  const struct call *c = r->c;
  const size_t wide_q = s->heads * s->head_size, wide_k = s->kv_heads * s->head_size,
               wide_v = s->kv_heads * s->value_head_size;
  bool blind = false, finite = true;
  for (size_t i = 0; i < r->item->q; i++) {
    const float *x = c->queries + (r->item->q_row + i) * s->query_size;
    if (query_sees(r, i))
      finite &= project_floats(&r->matrix[ROLE_QUERY], wide_q, s->query_size, x, r->q + i * wide_q,
                               r->room);
    else
      blind = true;
  }
  for (size_t j = 0; j < r->item->k; j++) {
    const bool seen = key_is_seen(r, j);
    const size_t row = r->item->k_row + j;
    if (seen)
      finite &= project_floats(&r->matrix[ROLE_KEY], wide_k, s->key_size,
                               c->keys + row * s->key_size, r->k + j * wide_k, r->room);
    if (seen || (blind && c->uniform_rows))
      finite &= project_floats(&r->matrix[ROLE_VALUE], wide_v, s->value_size,
                               c->values + row * s->value_size, r->v + j * wide_v, r->room);
  }
  return finite;
}

static double score(const struct ref *r, size_t head, size_t i, size_t j) {
  const struct layer_shape *s = r->s;
  const size_t shared = head / (s->heads / s->kv_heads);
  const double *q = r->q + i * s->heads * s->head_size + head * s->head_size;
  const double *k = r->k + j * s->kv_heads * s->head_size + shared * s->head_size;
  double dot = 0;
  for (size_t x = 0; x < s->head_size; x++) dot += q[x] * k[x];
  dot *= s->scale;
  if (!r->c->bias) return dot;
  const size_t plane = r->c->bias_per_head ? head * r->item->q : 0;
  return dot + r->c->bias[r->item->bias_at + (plane + i) * r->item->k + j];
}

/* The weights of one query in one head: softmax over the keys it may see. */
static bool weigh(struct ref *r, size_t head, size_t i) {
  const size_t k = r->item->k;
  double top = -INFINITY, sum = 0;
  for (size_t j = 0; j < k; j++) {
    r->weights[j] = visible_pair(r->c, r->item, i, j) ? score(r, head, i, j) : -INFINITY;
    if (r->weights[j] != -INFINITY && !(fabs(r->weights[j]) <= FLT_MAX)) return false;
    top = fmax(top, r->weights[j]);
  }
  if (top == -INFINITY) {
    for (size_t j = 0; j < k; j++) r->weights[j] = r->c->uniform_rows ? 1.0 / (double)k : 0;
    return true;
  }
  for (size_t j = 0; j < k; j++) sum += r->weights[j] = exp(r->weights[j] - top);
  for (size_t j = 0; j < k; j++) r->weights[j] /= sum;
  return true;
}

static void gather(struct ref *r, size_t head) {
  const struct layer_shape *s = r->s;
  const size_t shared = head / (s->heads / s->kv_heads);
  double *context = r->context + head * s->value_head_size;
  memset(context, 0, s->value_head_size * sizeof *context);
  for (size_t j = 0; j < r->item->k; j++) {
    if (r->weights[j] == 0) continue; /* a hidden key is not touched */
    const double *v = r->v + (j * s->kv_heads + shared) * s->value_head_size;
    for (size_t x = 0; x < s->value_head_size; x++) context[x] += r->weights[j] * v[x];
  }
  for (size_t x = 0; r->c->head_mask && x < s->value_head_size; x++)
    context[x] *= r->c->head_mask[head];
}

static bool item_ref(struct ref *r, double *outputs, double *weights, double *contexts) {
  const struct layer_shape *s = r->s;
  const size_t wide = s->heads * s->value_head_size;
  if (!project_item(r)) return false;
  for (size_t i = 0; i < r->item->q; i++) {
    for (size_t head = 0; head < s->heads; head++) {
      if (!weigh(r, head, i)) return false;
      gather(r, head);
      if (weights)
        memcpy(weights + (head * r->item->q + i) * r->item->k, r->weights,
               r->item->k * sizeof *weights);
    }
    if (contexts)
      memcpy(contexts + (r->item->q_row + i) * wide, r->context, wide * sizeof *contexts);
    double *y = outputs + (r->item->q_row + i) * s->output_size;
    if (!project(&r->matrix[ROLE_OUTPUT], s->output_size, wide, r->context, y)) return false;
  }
  return true;
}

enum status attention_ref(const struct layer_shape *s, const struct layer_matrix matrix[ROLE_COUNT],
                          const struct call *c, const struct ref_answer *answer, struct error *e) {
  double *weights = answer->weights;
  const size_t widest = s->query_size + s->key_size + s->value_size;
  for (size_t i = 0; i < c->items; i++) {
    const struct item *item = &c->item[i];
    const size_t q = item->q * s->heads * s->head_size, k = item->k * s->kv_heads * s->head_size,
                 v = item->k * s->kv_heads * s->value_head_size;
    double *room =
        calloc(q + k + v + item->k + s->heads * s->value_head_size + widest, sizeof *room);
    if (!room) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the reference");
    struct ref r = {.s = s, .matrix = matrix, .c = c, .item = item, .q = room};
    r.k = r.q + q, r.v = r.k + k, r.weights = r.v + v, r.context = r.weights + item->k;
    r.room = r.context + s->heads * s->value_head_size;
    const bool finite = item_ref(&r, answer->outputs, weights, answer->contexts);
    free(room);
    if (!finite) return error_set(e, STATUS_NOT_FINITE, "item %zu is beyond float32", i);
    if (weights) weights += s->heads * item->q * item->k;
  }
  return STATUS_OK;
}
