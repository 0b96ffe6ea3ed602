/* parameters: works out the sizes of a layer and reads or makes its numbers. */
#include "config/parameters.h"

#include <math.h>
#include <stdlib.h>

#include "config/layout.h"
#include "config/random.h"
#include "core/size.h"

/* What a size is, and what the definition says that it is. */
static void agree(const char *key, size_t said, size_t is, struct error *e) {
  if (said && said != is)
    error_set(e, STATUS_CONFIG, "%s: %zu is said, but it is %zu", key, said, is);
}

static size_t or_else(size_t said, size_t otherwise) { return said ? said : otherwise; }

/* --- sizes of each way to form the heads --- */

/* out and in of a matrix in the checkpoint. */
static void measure(struct parameter_matrix *to, const struct layout_matrix *from) {
  to->out = (size_t)from->weight.dim[0];
  to->in = (size_t)from->weight.dim[1];
}

/* Matrices of random numbers are as large as the definition says. */
static enum status sizes_of_random(struct parameters *p, const struct definition *d,
                                   struct error *e) {
  if (!d->query_size)
    return error_set(e, STATUS_CONFIG, "query_size: required without a checkpoint");
  size_t hidden = or_else(d->hidden, d->query_size);
  if (hidden % d->heads != 0)
    return error_set(e, STATUS_CONFIG, "heads: %zu do not divide the hidden size %zu", d->heads,
                     hidden);
  size_t shared = hidden / d->heads * d->kv_heads;
  p->matrix[ROLE_QUERY] = (struct parameter_matrix){.out = hidden, .in = d->query_size};
  p->matrix[ROLE_KEY] =
      (struct parameter_matrix){.out = shared, .in = or_else(d->key_size, d->query_size)};
  p->matrix[ROLE_VALUE] =
      (struct parameter_matrix){.out = shared, .in = or_else(d->value_size, d->query_size)};
  return STATUS_OK;
}

/* Without projections the input's columns are the heads: H d of a query, G d of a key, G d_v of a
 * value. */
static enum status sizes_of_input(struct parameters *p, const struct definition *d,
                                  struct error *e) {
  if (!d->query_size)
    return error_set(e, STATUS_CONFIG, "query_size: required with projection %s", d->projection);
  if (d->query_size % d->heads != 0)
    return error_set(e, STATUS_CONFIG, "heads: %zu do not divide the query size %zu", d->heads,
                     d->query_size);
  size_t shared = d->query_size / d->heads * d->kv_heads;
  size_t sizes[] = {d->query_size, shared, or_else(d->value_size, shared)};
  agree("key_size", d->key_size, shared, e);
  agree("hidden", d->hidden, d->query_size, e);
  for (enum role role = ROLE_QUERY; role <= ROLE_VALUE; role++)
    p->matrix[role] = (struct parameter_matrix){.out = sizes[role], .in = sizes[role]};
  return e->status;
}

/* --- the shape --- */

static void check_heads(size_t columns, size_t heads, const char *what, struct error *e) {
  if (columns % heads != 0)
    error_set(e, STATUS_CONFIG, "heads: %zu do not divide the %zu columns of the %s", heads,
              columns, what);
}

/* The layer's shape, from matrices whose sizes are known. */
static enum status form_heads(struct parameters *p, const struct definition *d, struct error *e) {
  const struct parameter_matrix *query = &p->matrix[ROLE_QUERY], *key = &p->matrix[ROLE_KEY];
  const struct parameter_matrix *value = &p->matrix[ROLE_VALUE];
  check_heads(query->out, d->heads, "queries", e);
  check_heads(value->out, d->kv_heads, "values", e);
  if (e->status != STATUS_OK) return e->status;
  p->shape = (struct layer_shape){
      .heads = d->heads,
      .kv_heads = d->kv_heads,
      .head_size = query->out / d->heads,
      .key_head_size = query->out / d->heads,
      .value_head_size = value->out / d->kv_heads,
      .query_size = query->in,
      .key_size = key->in,
      .value_size = value->in,
  };
  if (key->out != d->kv_heads * p->shape.head_size)
    return error_set(e, STATUS_CONFIG,
                     "keys of %zu columns are not %zu heads of %zu, as queries have", key->out,
                     d->kv_heads, p->shape.head_size);
  p->shape.scale = (float)(d->scale > 0 ? d->scale : 1 / sqrt((double)p->shape.head_size));
  agree("hidden", d->hidden, query->out, e);
  agree("query_size", d->query_size, query->in, e);
  agree("key_size", d->key_size, key->in, e);
  agree("value_size", d->value_size, value->in, e);
  return e->status;
}

static enum status form_output(struct parameters *p, const struct definition *d,
                               const struct layout_matrix *found, struct error *e) {
  struct parameter_matrix *output = &p->matrix[ROLE_OUTPUT];
  size_t context;
  if (!size_mul(p->shape.heads, p->shape.value_head_size, &context))
    return error_set(e, STATUS_CONFIG, "heads: too many for values of this size");
  if (!d->output_projected) {
    output->in = output->out = context;
  } else if (found->found) {
    measure(output, found);
  } else {
    output->in = context;
    output->out = or_else(d->output_size, p->shape.query_size);
  }
  if (output->in != context)
    return error_set(e, STATUS_CONFIG,
                     "tensor \"%.100s\" has %zu columns, but the heads together %zu",
                     found->weight.name, output->in, context);
  p->shape.output_size = output->out;
  agree("output_size", d->output_size, output->out, e);
  return e->status;
}

/* --- the numbers --- */

static float *numbers_new(size_t out, size_t in, struct error *e) {
  size_t count, bytes;
  float *numbers = NULL;
  if (size_mul(out, in, &count) && size_mul(count, sizeof *numbers, &bytes))
    numbers = malloc(bytes);
  if (!numbers) error_set(e, STATUS_OUT_OF_MEMORY, "no memory for %zu times %zu numbers", out, in);
  return numbers;
}

static enum status read_matrix(struct parameter_matrix *m, const struct layout_matrix *from,
                               struct error *e) {
  if (!(m->weight = numbers_new(m->out, m->in, e)) ||
      safetensors_floats(&from->weight, m->weight, e) != STATUS_OK || !from->has_bias)
    return e->status;
  if ((m->bias = numbers_new(m->out, 1, e))) safetensors_floats(&from->bias, m->bias, e);
  return e->status;
}

static enum status make_matrix(struct parameter_matrix *m, const struct definition *d,
                               enum role role, struct error *e) {
  if (!(m->weight = numbers_new(m->out, m->in, e))) return e->status;
  random_weight(d->seed, role, m->out, m->in, m->weight);
  if (d->bias == TOGGLE_ON && (m->bias = numbers_new(m->out, 1, e)))
    random_bias(d->seed, role, m->out, m->bias);
  return e->status;
}

static enum status fill(struct parameters *p, const struct definition *d,
                        const struct layout_matrix found[ROLE_PROJECTIONS], struct error *e) {
  for (enum role role = 0; role < ROLE_PROJECTIONS && e->status == STATUS_OK; role++) {
    if (role == ROLE_OUTPUT ? !d->output_projected : !d->projected) continue;
    if (found[role].found) {
      read_matrix(&p->matrix[role], &found[role], e);
    } else {
      make_matrix(&p->matrix[role], d, role, e);
    }
  }
  if (e->status != STATUS_OK) return e->status;
  if (d->bias == TOGGLE_ON && !parameters_have_bias(p))
    error_set(e, STATUS_CONFIG, "bias: true is said, but there is none");
  if (d->bias == TOGGLE_OFF && parameters_have_bias(p))
    error_set(e, STATUS_CONFIG, "bias: false is said, but the checkpoint has biases");
  return e->status;
}

static enum status read_all(struct parameters *p, const struct definition *d,
                            const struct safetensors *file, struct error *e) {
  struct layout_matrix found[ROLE_PROJECTIONS] = {0};
  p->layout = file ? layout_find(file, d, found, e) : "none";
  if (e->status != STATUS_OK) return e->status;
  if (!d->projected) {
    sizes_of_input(p, d, e);
  } else if (file) {
    for (enum role role = ROLE_QUERY; role <= ROLE_VALUE; role++)
      measure(&p->matrix[role], &found[role]);
  } else {
    sizes_of_random(p, d, e);
  }
  if (e->status != STATUS_OK || form_heads(p, d, e) != STATUS_OK) return e->status;
  if (form_output(p, d, &found[ROLE_OUTPUT], e) != STATUS_OK) return e->status;
  return fill(p, d, found, e);
}

enum status parameters_read(struct parameters *p, const struct definition *d,
                            const struct safetensors *file, struct error *e) {
  *p = (struct parameters){0};
  if (read_all(p, d, file, e) != STATUS_OK) parameters_free(p);
  return e->status;
}

void parameters_free(struct parameters *p) {
  for (enum role role = 0; role < ROLE_PROJECTIONS; role++) {
    free(p->matrix[role].weight);
    free(p->matrix[role].bias);
  }
  *p = (struct parameters){0};
}

bool parameters_have_bias(const struct parameters *p) {
  for (enum role role = 0; role < ROLE_PROJECTIONS; role++)
    if (p->matrix[role].bias) return true;
  return false;
}
