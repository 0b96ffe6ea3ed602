/* whole_sizes: works out the sizes of a whole model. */
#include "config/model/whole_sizes.h"

#include <math.h>

#include "config/layer/definition.h"
#include "config/layer/sizes.h"
#include "config/model/whole_random.h"
#include "core/run/size.h"

/* --- sizes that a tensor tells --- */

/* What is said must be what the tensor has, where it is there. */
static enum status agree(const struct layout_part *part, size_t is, const char *key, size_t said,
                         struct error *e) {
  if (!said || !part->tensor || is == said) return STATUS_OK;
  return error_set(e, STATUS_CONFIG, "%s: %zu is said, but by tensor \"%.120s\" it is %zu", key,
                   said, part->tensor->name, is);
}

static enum status settle_sizes(struct whole_plan *p, struct error *e) {
  struct stack_form *f = &p->form;
  static const struct layout_matrix none;
  const bool random = !p->source.file;
  const struct layout_matrix *query = random ? &none : &p->layer[0][WHOLE_QUERY];
  const struct layout_matrix *up = random ? &none : &p->layer[0][WHOLE_UP];
  const struct layout_part *token = &p->part[WHOLE_TOKEN].weight;
  if (agree(&query->weight, layout_matrix_in(query), "width", p->said.width, e) ||
      agree(&up->weight, layout_matrix_out(up), "feed_forward", p->said.forward_size, e))
    return e->status;
  f->width = random ? p->said.width : layout_matrix_in(query);
  f->forward_size = random ? p->said.forward_size : layout_matrix_out(up);
  if (random) f->layers = p->said.layers;
  if (p->family->rows_only || (!random && !token->tensor)) {
    if (p->said.vocabulary)
      error_set(e, STATUS_CONFIG, "vocabulary: is said, but there is no table of tokens");
    return e->status;
  }
  f->embedding.tokens = random ? p->said.vocabulary : token->rows;
  return agree(token, token->rows, "vocabulary", p->said.vocabulary, e);
}

static enum status settle_types(struct whole_plan *p, struct error *e) {
  const struct layout_matrix *type = &p->part[WHOLE_TYPE];
  p->form.embedding.types = type->found ? type->weight.rows : 0;
  if (!p->words.has_types || p->words.types == p->form.embedding.types) return STATUS_OK;
  return error_set(e, STATUS_CONFIG,
                   "config.json: type_vocab_size: %zu is said, but the table has %zu rows",
                   p->words.types, p->form.embedding.types);
}

/* --- which positions --- */

/* A table that is not meant is left aside. */
static void leave_table(struct whole_plan *p, enum whole_role role) {
  struct layout_matrix *m = &p->part[role];
  if (m->found) p->used[m->weight.tensor - checkpoint_at(p->source.file, 0)] = false;
  *m = (struct layout_matrix){0};
}

/* What a family of the library does is not a matter of choice. */
static enum whole_places usual_places(const struct whole_family *f) {
  return f->relative                         ? WHOLE_PLACES_RELATIVE
         : f->rotary                         ? WHOLE_PLACES_ROTARY
         : f->rows_only                      ? WHOLE_PLACES_NONE
         : f->positions == POSITIONS_LEARNED ? WHOLE_PLACES_LEARNED
                                             : WHOLE_PLACES_SINUSOID;
}

/* Where no key says it, the table that the file has does. */
static enum status settle_places(struct whole_plan *p, struct error *e) {
  const bool learned = p->part[WHOLE_POSITION].found, relative = p->part[WHOLE_RELATIVE].found;
  if (p->family->keys) {
    p->places = usual_places(p->family);
    if (p->said.places != WHOLE_PLACES_UNSAID && p->said.places != p->places)
      return error_set(e, STATUS_CONFIG, "positions: %s has no choice", p->family->name);
    if (learned) p->places = WHOLE_PLACES_LEARNED;
    return STATUS_OK;
  }
  if (p->said.places == WHOLE_PLACES_UNSAID && learned && relative)
    return error_set(e, STATUS_CONFIG,
                     "positions: required: the file has tables for learned and for relative ones");
  p->places = p->said.places             ? p->said.places
              : relative                 ? WHOLE_PLACES_RELATIVE
              : learned                  ? WHOLE_PLACES_LEARNED
              : p->form.embedding.tokens ? usual_places(p->family)
                                         : WHOLE_PLACES_NONE;
  return STATUS_OK;
}

/* --- heads --- */

static enum status settle_relative(struct whole_plan *p, struct error *e) {
  struct layer_shape *s = &p->form.self;
  struct layout_matrix *table = &p->part[WHOLE_RELATIVE];
  if (p->places != WHOLE_PLACES_RELATIVE) {
    leave_table(p, WHOLE_RELATIVE);
    return STATUS_OK;
  }
  s->relative_buckets = table->found ? table->weight.rows : DEFINITION_RELATIVE_BUCKETS;
  s->relative_distance = p->words.distance ? p->words.distance : DEFINITION_RELATIVE_DISTANCE;
  s->relative_both = true;
  if (p->source.file && !table->found)
    return error_set(e, STATUS_CONFIG, "positions: there is no tensor \"relative_bias.weight\"");
  if (p->words.buckets && p->words.buckets != s->relative_buckets)
    return error_set(e, STATUS_CONFIG,
                     "config.json: relative_attention_num_buckets: %zu is said, but the table has "
                     "%zu rows",
                     p->words.buckets, s->relative_buckets);
  return sizes_check_relative(s, e);
}

static float norm_epsilon(const struct whole_plan *p) {
  return (float)(p->said.epsilon > 0 ? p->said.epsilon : 1e-5);
}

static enum status settle_heads(struct whole_plan *p, struct error *e) {
  const struct stack_form *f = &p->form;
  const struct layout_matrix *query = p->layer ? &p->layer[0][WHOLE_QUERY] : NULL;
  const size_t heads = p->said.heads, inner = query ? layout_matrix_out(query) : f->width;
  size_t size = p->said.head_size;
  if (!heads)
    return error_set(e, STATUS_CONFIG,
                     "heads: required: neither a tensor nor a config.json tells it");
  if (!size) size = inner / heads;
  if (size == 0 || ((query || !p->said.head_size) && size * heads != inner))
    return error_set(e, STATUS_CONFIG, "heads: %zu%s do not make %zu rows of queries", heads,
                     p->said.head_size ? " of the head_size that is said" : "", inner);
  const size_t groups = query ? layout_matrix_out(&p->layer[0][WHOLE_KEY]) / size : 0;
  const bool norms = p->words.type && p->words.type->head_norms;
  const size_t shared = p->said.kv_heads ? p->said.kv_heads : groups ? groups : heads;
  if (heads % shared != 0)
    return error_set(e, STATUS_CONFIG, "kv_heads: %zu does not divide %zu heads", shared, heads);
  p->form.self =
      (struct layer_shape){.heads = heads,
                           .kv_heads = shared,
                           .head_size = size,
                           .key_head_size = size,
                           .value_head_size = size,
                           .query_size = f->width,
                           .key_size = f->width,
                           .value_size = f->width,
                           .output_size = f->width,
                           .norm_epsilon = norms ? norm_epsilon(p) : 0,
                           .scale = p->family->unscaled ? 1 : (float)(1 / sqrt((double)size)),
                           .rope_base = p->places != WHOLE_PLACES_ROTARY ? 0
                                        : p->words.rope_base > 0         ? p->words.rope_base
                                                                         : DEFINITION_ROPE_BASE,
                           .rope_stretch = p->words.rope_stretch};
  if (p->form.self.rope_base > 0 && size % 2 != 0)
    return error_set(e, STATUS_CONFIG,
                     "positions: rotary ones turn pairs of columns, but the heads have %zu", size);
  return settle_relative(p, e);
}

/* --- norms and activation --- */

static enum status check_choices(const struct whole_plan *p, struct error *e) {
  const struct whole_family *f = p->family;
  const struct whole_settings *s = &p->said;
  const char *key = NULL;
  if (s->gated == TOGGLE_ON && !f->stem[WHOLE_GATE]) key = "gated";
  if (s->gated != TOGGLE_ON && f->gated) key = "gated";
  if (f->keys && s->pre != TOGGLE_UNSAID && (s->pre == TOGGLE_ON) != (f->place == NORM_PRE))
    key = "norm";
  if (f->keys && s->rms != TOGGLE_UNSAID && (s->rms == TOGGLE_ON) != (f->norm == NORM_RMS))
    key = "norm_kind";
  return key ? error_set(e, STATUS_CONFIG, "%s: %s has no choice", key, f->name) : STATUS_OK;
}

/* The first norm that has a bias; NULL: none has. */
static const struct layout_matrix *find_shift(const struct whole_plan *p) {
  for (enum whole_role role = 0; role < WHOLE_ROLES; role++) {
    if (!whole_role_is_norm(role)) continue;
    const size_t places = role < WHOLE_LAYER_ROLES ? p->form.layers : 1;
    for (size_t layer = 0; layer < places; layer++)
      if (whole_plan_part(p, role, layer)->has_bias) return whole_plan_part(p, role, layer);
  }
  return NULL;
}

/* RMS norm shifts nothing: a file whose norms have biases means another. */
static enum status check_shift(const struct whole_plan *p, struct error *e) {
  const struct layout_matrix *m = p->form.norm == NORM_RMS && p->source.file ? find_shift(p) : NULL;
  if (!m) return STATUS_OK;
  return error_set(e, STATUS_CONFIG,
                   "norm_kind: an RMS norm has no bias, but there is tensor \"%.120s\"",
                   m->bias.tensor->name);
}

static enum status settle_kinds(struct whole_plan *p, struct error *e) {
  struct stack_form *f = &p->form;
  const struct whole_settings *s = &p->said;
  if (check_choices(p, e)) return e->status;
  f->name = p->family->decodes ? "decoder" : "encoder";
  f->causal = p->family->decodes;
  f->norm = s->rms == TOGGLE_ON ? NORM_RMS : p->family->norm;
  if (check_shift(p, e)) return e->status;
  f->place = s->pre == TOGGLE_ON ? NORM_PRE : p->family->place;
  f->epsilon = norm_epsilon(p);
  f->window = p->words.window;
  f->whole = s->float32;
  f->activation = s->activation ? s->activate : ACTIVATION_RELU;
  f->last_aside = p->family->aside;
  f->output.tied = p->family->decodes && f->embedding.tokens > 0 && !p->part[WHOLE_HEAD].found &&
                   s->tie_output != TOGGLE_OFF;
  const bool scaled =
      s->scale_embedding == TOGGLE_UNSAID ? !p->family->keys : s->scale_embedding == TOGGLE_ON;
  f->embedding.scale = scaled ? (float)sqrt((double)f->width) : 1;
  return STATUS_OK;
}

/* --- positions --- */

static enum status settle_table(struct whole_plan *p, struct error *e) {
  struct stack_embedding *m = &p->form.embedding;
  const struct layout_matrix *table = &p->part[WHOLE_POSITION];
  const size_t said = p->words.positions, more = p->family->positions_beyond;
  if (p->source.file && !table->found)
    return error_set(e, STATUS_CONFIG, "positions: there is no tensor \"%s.weight\"",
                     p->family->stem[WHOLE_POSITION] ? p->family->stem[WHOLE_POSITION]
                                                     : "positions");
  if (!p->source.file && !p->said.max_positions)
    return error_set(e, STATUS_CONFIG, "max_positions: required for positions that are learned");
  m->position_rows = table->found ? table->weight.rows : p->said.max_positions + m->first_position;
  if (table->found && said && said + more != m->position_rows)
    return error_set(e, STATUS_CONFIG,
                     "config.json: max_position_embeddings: %zu is said, but tensor \"%.120s\" has "
                     "%zu rows, not %zu",
                     said, table->weight.tensor->name, m->position_rows, said + more);
  if (m->position_rows <= m->first_position)
    return error_set(e, STATUS_CONFIG, "first_position: %zu is behind the %zu rows of the table",
                     m->first_position, m->position_rows);
  p->positions = m->position_rows - m->first_position;
  if (p->said.max_positions > p->positions)
    return error_set(e, STATUS_CONFIG, "max_positions: %zu is said, but the table has %zu",
                     p->said.max_positions, p->positions);
  return STATUS_OK;
}

static enum status settle_positions(struct whole_plan *p, struct error *e) {
  struct stack_embedding *m = &p->form.embedding;
  m->positions = p->places == WHOLE_PLACES_LEARNED    ? POSITIONS_LEARNED
                 : p->places == WHOLE_PLACES_SINUSOID ? p->family->positions
                                                      : POSITIONS_NONE;
  m->first_position = p->said.first_position;
  if (m->positions == POSITIONS_LEARNED) {
    if (settle_table(p, e)) return e->status;
  } else {
    leave_table(p, WHOLE_POSITION);
    if (p->family->rotary) p->positions = p->words.positions;
  }
  const bool computed = m->positions != POSITIONS_LEARNED && m->positions != POSITIONS_NONE;
  if (computed && (p->form.width % 2 != 0 || p->form.width < 4))
    return error_set(e, STATUS_CONFIG,
                     "positions: sinusoids need an even width of 4 at least, not %zu",
                     p->form.width);
  if (p->said.max_positions && p->said.max_positions < p->positions && p->source.file)
    notes_add(&p->notes, "the table has %zu positions, but here max_positions is %zu", p->positions,
              p->said.max_positions);
  if (p->said.max_positions) p->positions = p->said.max_positions;
  return STATUS_OK;
}

/* --- one vector of an item --- */

static enum status settle_pooling(struct whole_plan *p, struct error *e) {
  const struct whole_source *s = &p->source;
  p->pool = p->said.has_pool ? p->said.pool : s->pool;
  p->normalize = p->said.normalize == TOGGLE_UNSAID ? s->normalize : p->said.normalize == TOGGLE_ON;
  if (s->modules && p->pool != s->pool)
    notes_add(&p->notes, "modules.json says pool %s, but here it is %s",
              whole_settings_pool_name(s->pool), whole_settings_pool_name(p->pool));
  if (s->modules && p->normalize != s->normalize)
    notes_add(&p->notes, "modules.json says normalize %s, but here it is %s",
              s->normalize ? "true" : "false", p->normalize ? "true" : "false");
  p->form.pooling.dense_size = s->dense ? s->dense_out : 0;
  p->form.pooling.dense_tanh = s->dense_tanh;
  if (p->pool == STACK_POOL_POOLER && !p->part[WHOLE_POOLER].found)
    return error_set(e, STATUS_CONFIG, "pool: the model has no pooler");
  if (s->pool_width && s->pool_width != p->form.width)
    return error_set(e, STATUS_CONFIG,
                     "word_embedding_dimension: %zu is said of the pooling, but the width is %zu",
                     s->pool_width, p->form.width);
  if (s->dense && s->dense_in != p->form.width)
    return error_set(e, STATUS_CONFIG,
                     "in_features: %zu is said of the dense layer, but the width is %zu",
                     s->dense_in, p->form.width);
  return STATUS_OK;
}

/* --- do the parts agree? --- */

void whole_plan_size(const struct whole_plan *p, enum whole_role role, size_t *out, size_t *in) {
  const struct stack_form *f = &p->form;
  const struct layer_shape *s = &f->self;
  const size_t d = f->width, queries = s->heads * s->head_size, keys = s->kv_heads * s->head_size;
  const struct stack_embedding *m = &f->embedding;
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
                                        [WHOLE_TOKEN] = {m->tokens, d},
                                        [WHOLE_TYPE] = {m->types, d},
                                        [WHOLE_POSITION] = {m->position_rows, d},
                                        [WHOLE_NORM_EMBEDDED] = {1, d},
                                        [WHOLE_NORM_LAST] = {1, d},
                                        [WHOLE_POOLER] = {d, d},
                                        [WHOLE_RELATIVE] = {s->relative_buckets, s->heads},
                                        [WHOLE_DENSE] = {f->pooling.dense_size, d},
                                        [WHOLE_HEAD] = {m->tokens, d}};
  *out = sizes[role][0];
  *in = sizes[role][1];
}

static enum status check_part(struct whole_plan *p, enum whole_role role, size_t layer,
                              struct error *e) {
  const struct layout_matrix *m = whole_plan_part(p, role, layer);
  size_t out, in;
  if (!m->found) return STATUS_OK;
  whole_plan_size(p, role, &out, &in);
  const size_t bias = whole_role_is_norm(role) ? in : out;
  if (layout_matrix_out(m) != out || layout_matrix_in(m) != in)
    return error_set(e, STATUS_CONFIG,
                     "tensor \"%.120s\" has %zu times %zu numbers here, not %zu times %zu",
                     m->weight.tensor->name, m->weight.rows, m->weight.columns,
                     m->transposed ? in : out, m->transposed ? out : in);
  if (m->has_bias && m->bias.columns != bias)
    return error_set(e, STATUS_CONFIG, "tensor \"%.120s\" has %zu numbers here, not %zu",
                     m->bias.tensor->name, m->bias.columns, bias);
  p->count += (uint64_t)out * in + (m->has_bias ? bias : 0);
  return STATUS_OK;
}

static enum status check_parts(struct whole_plan *p, struct error *e) {
  for (size_t i = 0; i < p->form.layers; i++)
    for (enum whole_role role = 0; role < WHOLE_LAYER_ROLES; role++)
      if (check_part(p, role, i, e)) return e->status;
  for (enum whole_role role = WHOLE_LAYER_ROLES; role < WHOLE_ROLES; role++)
    if (check_part(p, role, 0, e)) return e->status;
  return STATUS_OK;
}

enum status whole_sizes_find(struct whole_plan *p, struct error *e) {
  if (settle_sizes(p, e) || settle_types(p, e) || settle_places(p, e) || settle_heads(p, e) ||
      settle_kinds(p, e) || settle_positions(p, e) || settle_pooling(p, e))
    return e->status;
  if (!p->source.file && whole_random_list(p, e)) return e->status;
  return check_parts(p, e);
}
