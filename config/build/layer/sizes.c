/* sizes: works out the sizes for each projection and each score. */
#include "config/build/layer/sizes.h"

#include <math.h>

#include "core/base/size.h"

/* Checks a size in the definition, unless it is 0, against the actual one. */
static enum status check_said_size(const char *key, size_t said, size_t is, struct error *e) {
  if (!said || said == is) return STATUS_OK;
  return error_set(e, STATUS_CONFIG, "%s: %zu in the definition, but it must be %zu", key, said,
                   is);
}

static size_t or_else(size_t said, size_t otherwise) { return said ? said : otherwise; }

/* The number of groups of the input's columns; each row of the matrix is about one group. */
static size_t groups_of(const struct definition *d, enum role role) {
  if (!d->grouped) return 1;
  return role == ROLE_QUERY ? d->heads : d->kv_heads;
}

/* The out and in of a matrix in the checkpoint; a vector is one row. */
static struct parameters_matrix matrix_size(const struct layout_matrix *from) {
  return (struct parameters_matrix){.out = layout_matrix_out(from), .in = layout_matrix_in(from)};
}

/* --- the matrices that make the heads --- */

/* Sizes of random matrices, which the definition alone determines. Inputs have query_size columns
 * by default. */
static enum status size_random(struct parameters *p, const struct definition *d, struct error *e) {
  static const char *const names[] = {"query_size", "key_size", "value_size"};
  const size_t said[] = {d->query_size, d->key_size, d->value_size};
  if (!d->query_size)
    return error_set(e, STATUS_CONFIG, "query_size: required without a checkpoint");
  const size_t hidden = or_else(d->hidden, d->query_size), head = hidden / d->heads;
  p->matrix[ROLE_QUERY].out = hidden;
  p->matrix[ROLE_KEY].out = p->matrix[ROLE_VALUE].out = head * d->kv_heads;
  for (enum role role = ROLE_QUERY; role <= ROLE_VALUE; role++) {
    const size_t size = or_else(said[role], d->query_size), groups = groups_of(d, role);
    if (size % groups != 0)
      return error_set(e, STATUS_CONFIG, "%s: the %zu groups of the heads do not divide %zu",
                       names[role], groups, size);
    p->matrix[role].in = size / groups;
  }
  if (hidden % d->heads != 0)
    return error_set(e, STATUS_CONFIG, "heads: %zu do not divide the hidden size %zu", d->heads,
                     hidden);
  return STATUS_OK;
}

/* Sizes without projections: the input's columns are the heads, H d of a query, G d_k of a key, G
 * d_v of a value. Sizes that the definition does not have follow from the score's parameters, which
 * have the sizes of the heads. */
static enum status size_unprojected(struct parameters *p, const struct definition *d,
                                    const struct layout_matrix found[ROLE_COUNT], struct error *e) {
  size_t query = 0, key = 0;
  if (found[ROLE_SCORE_QUERY].found) {
    query = matrix_size(&found[ROLE_SCORE_QUERY]).in;
    key = matrix_size(&found[ROLE_SCORE_KEY]).in;
  } else if (found[ROLE_SCORE_WEIGHT].found) {
    query = matrix_size(&found[ROLE_SCORE_WEIGHT]).in;
    key = matrix_size(&found[ROLE_SCORE_WEIGHT]).out;
  }
  query = or_else(d->query_size, query * d->heads);
  if (!query)
    return error_set(e, STATUS_CONFIG, "query_size: required with projection %s", d->projection);
  if (query % d->heads != 0)
    return error_set(e, STATUS_CONFIG, "heads: %zu do not divide the query size %zu", d->heads,
                     query);
  const size_t shared = query / d->heads * d->kv_heads;
  key = or_else(key * d->kv_heads, shared);
  if (d->compare != SCORE_DOT) key = or_else(d->key_size, key);
  const size_t sizes[] = {query, key, or_else(d->value_size, shared)};
  for (enum role role = ROLE_QUERY; role <= ROLE_VALUE; role++)
    p->matrix[role] = (struct parameters_matrix){.out = sizes[role], .in = sizes[role]};
  return STATUS_OK;
}

/* --- the shape --- */

static enum status check_columns(const char *key, size_t columns, size_t heads, const char *what,
                                 struct error *e) {
  if (columns % heads == 0) return STATUS_OK;
  return error_set(e, STATUS_CONFIG, "%s: %zu do not divide the %zu columns of the %s", key, heads,
                   columns, what);
}

/* Sets the layer's shape, from matrices whose sizes are known. */
static enum status form_heads(struct parameters *p, const struct definition *d, struct error *e) {
  const struct parameters_matrix *query = &p->matrix[ROLE_QUERY], *key = &p->matrix[ROLE_KEY];
  const struct parameters_matrix *value = &p->matrix[ROLE_VALUE];
  const char *shared = d->kv_heads == d->heads ? "heads" : "kv_heads";
  if (check_columns("heads", query->out, d->heads, "queries", e) ||
      check_columns(shared, key->out, d->kv_heads, "keys", e) ||
      check_columns(shared, value->out, d->kv_heads, "values", e))
    return e->status;
  p->shape = (struct layer_shape){
      .heads = d->heads,
      .kv_heads = d->kv_heads,
      .head_size = query->out / d->heads,
      .key_head_size = key->out / d->kv_heads,
      .value_head_size = value->out / d->kv_heads,
      .query_size = query->in * groups_of(d, ROLE_QUERY),
      .key_size = key->in * groups_of(d, ROLE_KEY),
      .value_size = value->in * groups_of(d, ROLE_VALUE),
      .sigmoid = d->sigmoid,
      .grouped = d->grouped,
  };
  if (d->compare == SCORE_DOT && p->shape.key_head_size != p->shape.head_size)
    return error_set(e, STATUS_CONFIG,
                     "%s: keys of %zu columns are not %zu heads of %zu, as queries have", shared,
                     key->out, d->kv_heads, p->shape.head_size);
  if (check_said_size("hidden", d->hidden, query->out, e) ||
      check_said_size("query_size", d->query_size, p->shape.query_size, e) ||
      check_said_size("key_size", d->key_size, p->shape.key_size, e))
    return e->status;
  return check_said_size("value_size", d->value_size, p->shape.value_size, e);
}

static enum status form_output(struct parameters *p, const struct definition *d,
                               const struct layout_matrix *found, struct error *e) {
  struct parameters_matrix *output = &p->matrix[ROLE_OUTPUT];
  size_t context;
  if (!size_mul(p->shape.heads, p->shape.value_head_size, &context))
    return error_set(e, STATUS_CONFIG, "heads: too many for values of this size");
  if (!d->output_projected) {
    output->in = output->out = context;
  } else if (found->found) {
    *output = matrix_size(found);
  } else {
    output->in = context;
    output->out = or_else(d->output_size, p->shape.query_size);
  }
  if (output->in != context)
    return error_set(e, STATUS_CONFIG,
                     "tensor \"%.100s\" has %zu columns, but the heads together %zu",
                     found->weight.tensor->name, output->in, context);
  p->shape.output_size = output->out;
  return check_said_size("output_size", d->output_size, output->out, e);
}

/* --- the score --- */

static enum status form_score(struct parameters *p, const struct definition *d,
                              const struct layout_matrix found[ROLE_COUNT], struct error *e) {
  struct layer_shape *s = &p->shape;
  const size_t query = s->head_size, key = s->key_head_size;
  s->score = d->compare;
  s->scale = !d->scaled ? 1 : (float)(d->scale > 0 ? d->scale : 1 / sqrt((double)query));
  if (d->compare == SCORE_ADDITIVE) {
    const struct layout_matrix *first = &found[ROLE_SCORE_QUERY];
    s->score_size = first->found ? matrix_size(first).out : or_else(d->score_size, query);
    if (check_said_size("score_size", d->score_size, s->score_size, e)) return e->status;
    p->matrix[ROLE_SCORE_QUERY] = (struct parameters_matrix){.out = s->score_size, .in = query};
    p->matrix[ROLE_SCORE_KEY] = (struct parameters_matrix){.out = s->score_size, .in = key};
    p->matrix[ROLE_SCORE_VECTOR] = (struct parameters_matrix){.out = 1, .in = s->score_size};
  } else if (d->compare == SCORE_BILINEAR) {
    p->matrix[ROLE_SCORE_WEIGHT] = (struct parameters_matrix){.out = key, .in = query};
  }
  return STATUS_OK;
}

/* --- positions --- */

/* Each side has its own buckets. Half of them are for the nearest distances, one each; the other
 * half share the distances from there to the largest, so there must be such distances. */
enum status sizes_check_relative(const struct layer_shape *s, struct error *e) {
  const size_t side = s->relative_both ? s->relative_buckets / 2 : s->relative_buckets;
  if (s->relative_both && s->relative_buckets % 2 != 0)
    return error_set(e, STATUS_CONFIG,
                     "relative_bias: buckets: must be even if bidirectional, not %zu",
                     s->relative_buckets);
  if (side < 2)
    return error_set(e, STATUS_CONFIG,
                     "relative_bias: %zu buckets are too few, at least %d are required",
                     s->relative_buckets, s->relative_both ? 4 : 2);
  if (s->relative_distance <= side / 2)
    return error_set(
        e, STATUS_CONFIG,
        "relative_bias: max_distance: %zu is within the %zu distances that have a bucket each",
        s->relative_distance, side / 2);
  return STATUS_OK;
}

static enum status form_positions(struct parameters *p, const struct definition *d,
                                  const struct layout_matrix *found, struct error *e) {
  struct layer_shape *s = &p->shape;
  if (d->rope == TOGGLE_ON) s->rope_base = d->rope_base;
  if (d->rope == TOGGLE_ON && s->head_size % 2 != 0)
    return error_set(e, STATUS_CONFIG, "rope: the head size must be even, not %zu", s->head_size);
  if (d->relative != TOGGLE_ON) return STATUS_OK;
  s->relative_buckets = found->found ? layout_matrix_out(found) : d->relative_buckets;
  s->relative_distance = d->relative_distance;
  s->relative_both = d->relative_both == TOGGLE_ON;
  p->matrix[ROLE_RELATIVE] = (struct parameters_matrix){.out = s->relative_buckets, .in = d->heads};
  return sizes_check_relative(s, e);
}

enum status sizes_find(struct parameters *p, const struct definition *d,
                       const struct layout_matrix found[ROLE_COUNT], struct error *e) {
  if (!d->projected ? size_unprojected(p, d, found, e)
                    : !found[ROLE_QUERY].found && size_random(p, d, e))
    return e->status;
  for (enum role role = ROLE_QUERY; role <= ROLE_VALUE && found[ROLE_QUERY].found; role++)
    if (d->projected) p->matrix[role] = matrix_size(&found[role]);
  if (form_heads(p, d, e) || form_output(p, d, &found[ROLE_OUTPUT], e) ||
      form_score(p, d, found, e) || form_positions(p, d, &found[ROLE_RELATIVE], e))
    return e->status;
  /* Parameters of the score and tables of positions have only one possible shape. */
  for (enum role role = ROLE_PROJECTIONS; role < ROLE_COUNT; role++) {
    const struct parameters_matrix *right = &p->matrix[role];
    if (!found[role].found) continue;
    const struct parameters_matrix is = matrix_size(&found[role]);
    const struct checkpoint_entry *t = found[role].weight.tensor;
    if (is.out == right->out && is.in == right->in) continue;
    if (t->rank == 1)
      return error_set(e, STATUS_CONFIG, "tensor \"%.100s\" is [%zu], but must be [%zu]", t->name,
                       is.in, right->in);
    return error_set(e, STATUS_CONFIG, "tensor \"%.100s\" is [%zu, %zu], but must be [%zu, %zu]",
                     t->name, is.out, is.in, right->out, right->in);
  }
  return STATUS_OK;
}
