/* whole_sizes: works out the sizes of a model, stack by stack: widths, positions, heads, kinds of
 * norms; then compares all parts with them. A size comes from a tensor if there is one; the same
 * size in the configuration must agree. */
#include "config/build/whole_sizes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "config/build/head/whole_classifier.h"
#include "config/build/layer/sizes.h"
#include "config/build/whole_random.h"
#include "config/describe/definition.h"
#include "config/document/text.h"
#include "core/base/size.h"

/* The work on one stack. */
struct whole_sizing {
  struct whole_plan *p;
  struct whole_stack *stack;
  const struct whole_stack_sizes *said; /* of this stack */
};

static bool is_random(const struct whole_sizing *z) { return !z->p->source.file; }

/* Is it the stack that reads `tokens`? Otherwise it is the decoder of an encoder-decoder model. */
static bool is_reader(const struct whole_sizing *z) { return z->stack == whole_plan_reader(z->p); }

/* --- widths --- */

/* Rejects a size in the configuration that differs from the tensor's, if there is a tensor. */
static enum status agree(const struct layout_part *part, size_t is, const char *key, size_t said,
                         struct error *e) {
  if (!said || !part->tensor || is == said) return STATUS_OK;
  return error_set(e, STATUS_CONFIG,
                   "%s: %zu in the configuration, but tensor \"%.120s\" implies %zu", key, said,
                   part->tensor->name, is);
}

static enum status set_widths(const struct whole_sizing *z, struct error *e) {
  struct stack_form *f = &z->stack->form;
  static const struct layout_matrix none;
  const struct whole_words *w = &z->p->words;
  const struct whole_settings *said = &z->p->said;
  const bool random = is_random(z);
  const bool layers = !random && f->layers > 0;
  const struct layout_matrix *query = layers ? &z->stack->layer[0][WHOLE_QUERY] : &none;
  const struct layout_matrix *up = layers ? &z->stack->layer[0][WHOLE_UP] : &none;
  if (agree(&query->weight, layout_matrix_in(query), "width", said->width, e) ||
      agree(&up->weight, layout_matrix_out(up), "feed_forward", z->said->forward_size, e))
    return e->status;
  f->width = random   ? said->width
             : layers ? layout_matrix_in(query)
                      : z->stack->part[WHOLE_TOKEN].weight.columns;
  f->forward_size = random ? z->said->forward_size : layout_matrix_out(up);
  if (random) f->layers = z->said->layers;

  const struct layout_matrix *token = &z->stack->part[WHOLE_TOKEN];
  const struct layout_matrix *project = &z->stack->part[WHOLE_PROJECT];
  f->embedding.width = project->found ? layout_matrix_in(project) : f->width;
  if (agree(&token->weight, token->weight.columns, "config.json: embedding_size", w->embedded, e))
    return e->status;
  if (!z->stack->family->rows_only && (random || token->found)) {
    /* A decoder with a table of its own has its own vocabulary. */
    const struct layout_matrix *encoder = &z->p->stack[WHOLE_ENCODER].part[WHOLE_TOKEN];
    const bool own = !is_reader(z) && encoder->weight.tensor != token->weight.tensor;
    f->embedding.tokens = random ? said->vocabulary : token->weight.rows;
    if (agree(&token->weight, token->weight.rows,
              own ? "config.json: decoder_vocab_size" : "vocabulary",
              own ? w->target_vocabulary : said->vocabulary, e))
      return e->status;
  } else if (said->vocabulary) {
    return error_set(e, STATUS_CONFIG, "vocabulary: given, but there are no token embeddings");
  }

  const struct layout_matrix *type = &z->stack->part[WHOLE_TYPE];
  f->embedding.types = type->found ? type->weight.rows : 0;
  if (!w->has_types || w->types == f->embedding.types) return STATUS_OK;
  return error_set(e, STATUS_CONFIG,
                   "config.json: type_vocab_size: %zu, but the table has %zu rows", w->types,
                   f->embedding.types);
}

/* --- which positions --- */

/* Marks a table that the configuration rules out as unused. */
static void drop_table(const struct whole_sizing *z, enum whole_role role) {
  struct layout_matrix *m = &z->stack->part[role];
  if (m->found) z->p->used[m->weight.tensor - checkpoint_at(z->p->source.file, 0)] = false;
  *m = (struct layout_matrix){0};
}

static unsigned usual_places(const struct whole_sizing *z) {
  const struct whole_family *f = z->stack->family;
  const unsigned attended = (f->relative ? WHOLE_PLACES_RELATIVE : 0U) |
                            (f->rotary ? WHOLE_PLACES_ROTARY : 0U) |
                            (f->alibi ? WHOLE_PLACES_ALIBI : 0U);
  const bool none = f->positions == POSITIONS_NONE || z->p->words.unplaced;
  const unsigned embedded = none                                ? 0
                            : f->positions == POSITIONS_LEARNED ? WHOLE_PLACES_LEARNED
                                                                : WHOLE_PLACES_SINUSOID;
  return attended || embedded ? attended | embedded : WHOLE_PLACES_NONE;
}

/* Finds how positions are encoded: by the family; else by the settings, by the encoder's way, or by
 * the table that the file has. */
static enum status set_places(const struct whole_sizing *z, struct error *e) {
  struct whole_stack *s = z->stack;
  const unsigned other = z->p->stack[WHOLE_ENCODER].places;
  const unsigned said = z->p->said.places                            ? z->p->said.places
                        : is_reader(z) || other == WHOLE_PLACES_NONE ? WHOLE_PLACES_UNSAID
                                                                     : other;
  const bool learned = s->part[WHOLE_POSITION].found, relative = s->part[WHOLE_RELATIVE].found;
  if (s->family->keys) {
    s->places = usual_places(z);
    if (z->p->said.places && z->p->said.places != s->places)
      return error_set(e, STATUS_CONFIG, "positions: cannot be changed for %s", s->family->name);
    /* The table of computed positions may be stored. */
    if (learned && !z->p->words.unplaced)
      s->places = (s->places & ~WHOLE_PLACES_SINUSOID) | WHOLE_PLACES_LEARNED;
    return STATUS_OK;
  }
  if (said == WHOLE_PLACES_UNSAID && learned && relative)
    return error_set(e, STATUS_CONFIG,
                     "positions: required: the file has tables for learned and for relative ones");
  s->places = said                       ? said
              : relative                 ? WHOLE_PLACES_RELATIVE
              : learned                  ? WHOLE_PLACES_LEARNED
              : s->form.embedding.tokens ? usual_places(z)
                                         : WHOLE_PLACES_NONE;
  return STATUS_OK;
}

/* --- heads --- */

static float norm_epsilon(const struct whole_plan *p) {
  return (float)(p->said.epsilon > 0 ? p->said.epsilon : 1e-5);
}

/* Makes the shape of an attention. `first` is the role of its queries; `keys` is the width of the
 * rows that keys and values are made from. */
static enum status make_shape(const struct whole_sizing *z, enum whole_role first, size_t keys,
                              struct layer_shape *out, struct error *e) {
  const struct whole_plan *p = z->p;
  const size_t width = z->stack->form.width, heads = z->said->heads;
  const struct layout_matrix *query = is_random(z) ? NULL : &z->stack->layer[0][first];
  const size_t inner = query ? layout_matrix_out(query) : width;
  size_t size = p->said.head_size;
  if (!heads)
    return error_set(e, STATUS_CONFIG,
                     "heads: required: neither a tensor nor a config.json contains it");
  if (!size) size = inner / heads;
  if (size == 0 || ((query || !p->said.head_size) && size * heads != inner))
    return error_set(e, STATUS_CONFIG,
                     "heads: %zu%s do not match the %zu rows of the query weights", heads,
                     p->said.head_size ? " of the configured head_size" : "", inner);
  const size_t groups = query ? layout_matrix_out(query + 1) / size : 0;
  const size_t shared = p->said.kv_heads ? p->said.kv_heads : groups ? groups : heads;
  if (heads % shared != 0)
    return error_set(e, STATUS_CONFIG, "kv_heads: %zu does not divide %zu heads", shared, heads);
  *out = (struct layer_shape){.heads = heads,
                              .kv_heads = shared,
                              .head_size = size,
                              .key_head_size = size,
                              .value_head_size = size,
                              .query_size = width,
                              .key_size = keys,
                              .value_size = keys,
                              .output_size = width,
                              .scale =
                                  z->stack->family->unscaled ? 1 : (float)(1 / sqrt((double)size))};
  return STATUS_OK;
}

static enum status set_self(const struct whole_sizing *z, struct error *e) {
  const struct whole_plan *p = z->p;
  const struct whole_words *w = &p->words;
  struct layer_shape *s = &z->stack->form.kind->self;
  if (z->stack->form.layers == 0) return STATUS_OK;
  if (make_shape(z, WHOLE_QUERY, z->stack->form.width, s, e)) return e->status;
  if (w->score_scalar > 0) s->scale = (float)(1 / sqrt(w->score_scalar));
  s->cap = (float)w->score_cap;
  s->norm_epsilon = w->type && w->type->head_norms ? norm_epsilon(p) : 0;
  if (z->stack->places & WHOLE_PLACES_ROTARY && s->head_size % 2 != 0)
    return error_set(e, STATUS_CONFIG,
                     "positions: rotary positions need an even head size, not %zu", s->head_size);
  s->alibi = z->stack->places & WHOLE_PLACES_ALIBI;
  const struct whole_disentangled *d = &w->disentangled;
  const size_t terms = 1U + d->keys + d->queries;
  if (terms > 1) s->scale = (float)(1 / sqrt((double)(terms * s->head_size)));
  s->position_span = d->span;
  s->position_reach = d->reach;
  s->position_keys = d->span && d->keys;
  s->position_queries = d->span && d->queries;
  for (unsigned i = 0; i < STACK_KINDS; i++)
    if (w->kind[i].rope_stretch.trained > 0 && s->head_size <= 2)
      return error_set(e, STATUS_CONFIG,
                       "positions: a base that follows the length of an item needs a head size "
                       "above 2, not %zu",
                       s->head_size);
  if (!(z->stack->places & WHOLE_PLACES_RELATIVE)) {
    drop_table(z, WHOLE_RELATIVE);
    return STATUS_OK;
  }
  const struct layout_matrix *table = &z->stack->part[WHOLE_RELATIVE];
  s->relative_buckets = table->found ? table->weight.rows : DEFINITION_RELATIVE_BUCKETS;
  s->relative_distance = w->distance ? w->distance : DEFINITION_RELATIVE_DISTANCE;
  s->relative_both = whole_plan_side(p, z->stack) == WHOLE_ENCODER;
  if (!is_random(z) && !table->found)
    return error_set(e, STATUS_CONFIG, "positions: there is no tensor \"%s.weight\"",
                     z->stack->family->stem[WHOLE_RELATIVE]);
  if (w->buckets && w->buckets != s->relative_buckets)
    return error_set(e, STATUS_CONFIG,
                     "config.json: relative_attention_num_buckets: %zu, but the table has %zu rows",
                     w->buckets, s->relative_buckets);
  return sizes_check_relative(s, e);
}

/* --- norms and activation --- */

/* Rejects settings that contradict the family. */
static enum status check_choices(const struct whole_sizing *z, struct error *e) {
  const struct whole_family *f = z->stack->family;
  const struct whole_settings *s = &z->p->said;
  const char *key = NULL;
  if (s->gated == TOGGLE_ON && !f->stem[WHOLE_GATE] && !whole_family_packed(f, WHOLE_GATE))
    key = "gated";
  if (s->gated != TOGGLE_ON && f->gated) key = "gated";
  if (f->headed && s->tie_output == TOGGLE_ON) key = "tie_output";
  if (f->keys && s->pre != TOGGLE_UNSAID && (s->pre == TOGGLE_ON) != (f->place == NORM_PRE))
    key = "norm";
  if (f->keys && s->rms != TOGGLE_UNSAID && (s->rms == TOGGLE_ON) != (f->norm == NORM_RMS))
    key = "norm_kind";
  return key ? error_set(e, STATUS_CONFIG, "%s: cannot be changed for %s", key, f->name)
             : STATUS_OK;
}

/* An RMS norm has no bias: a file whose norms have biases is a different model. */
static enum status check_shift(const struct whole_sizing *z, struct error *e) {
  const struct whole_stack *s = z->stack;
  if (s->form.norm != NORM_RMS || is_random(z)) return STATUS_OK;
  for (enum whole_role role = 0; role < WHOLE_ROLES; role++) {
    if (!whole_role_is_norm(role)) continue;
    const size_t layers = role < WHOLE_LAYER_ROLES ? s->form.layers : 1;
    for (size_t layer = 0; layer < layers; layer++) {
      const struct layout_matrix *m = whole_plan_part(s, role, layer);
      if (m->has_bias)
        return error_set(e, STATUS_CONFIG,
                         "norm_kind: an RMS norm has no bias, but there is tensor \"%.120s\"",
                         m->bias.tensor->name);
    }
  }
  return STATUS_OK;
}

/* Sets the properties in which layers differ. */
static void set_kind(const struct whole_sizing *z, const struct whole_layer_kind *said,
                     struct stack_kind *kind) {
  const bool rotated = z->stack->places & WHOLE_PLACES_ROTARY && !said->unrotated;
  kind->window = said->window;
  kind->self.rope_base = !rotated              ? 0
                         : said->rope_base > 0 ? said->rope_base
                                               : DEFINITION_ROPE_BASE;
  kind->self.rope_stretch = said->rope_stretch;
}

static enum status set_kinds(const struct whole_sizing *z, struct error *e) {
  const struct whole_family *family = z->stack->family;
  const struct whole_settings *s = &z->p->said;
  struct stack_form *f = &z->stack->form;
  if (check_choices(z, e)) return e->status;
  f->name = whole_settings_side(whole_plan_side(z->p, z->stack));
  const bool decodes = whole_plan_side(z->p, z->stack) == WHOLE_DECODER;
  f->causal = decodes || family->looks_back;
  f->norm = s->rms == TOGGLE_ON ? NORM_RMS : family->norm;
  if (check_shift(z, e)) return e->status;
  f->place = s->pre == TOGGLE_ON ? NORM_PRE : family->place;
  f->epsilon = norm_epsilon(z->p);
  f->whole = s->float32;
  f->kind->activation = s->activation ? s->activate : ACTIVATION_RELU;
  for (unsigned kind = 0; kind < STACK_KINDS; kind++) {
    f->kind[kind] = *f->kind;
    set_kind(z, &z->p->words.kind[kind], &f->kind[kind]);
  }
  f->last_aside = family->aside;
  f->convolution = z->p->words.convolution;
  const struct layout_part *convolution = &z->stack->part[WHOLE_CONVOLUTION].weight;
  if (convolution->tensor && agree(convolution, (size_t)convolution->tensor->dim[2],
                                   "config.json: conv_kernel_size", f->convolution.taps, e))
    return e->status;
  const bool headed = z->stack->part[WHOLE_HEAD].found;
  const struct whole_masked *masked = z->p->masked;
  f->output.tied =
      (decodes || masked) && f->embedding.tokens > 0 && !headed && s->tie_output != TOGGLE_OFF &&
      !z->stack->part[WHOLE_CLASSES].found; /* a classifier replaces the language modeling head */
  /* The transform maps rows to the width of the embeddings, which a tied matrix needs. */
  if (z->stack->part[WHOLE_TRANSFORM].found) f->output.width = stack_form_embedded(f);
  f->output.activation = z->p->words.has_head_activation ? z->p->words.head_activation
                         : masked && masked->gelu        ? ACTIVATION_GELU
                                                         : f->kind->activation;
  if (masked && !f->output.tied && !headed)
    return error_set(e, STATUS_CONFIG,
                     "there is no tensor \"%s.weight\" of the masked language modeling head",
                     masked->matrix);
  f->output.scale = f->output.tied && family->shrunk ? (float)(1 / sqrt((double)f->width)) : 1;
  f->output.cap = (float)z->p->words.logit_cap;
  if (!f->output.tied && !headed) drop_table(z, WHOLE_LOGITS_BIAS);
  const bool scaled =
      s->scale_embedding == TOGGLE_UNSAID ? !family->keys : s->scale_embedding == TOGGLE_ON;
  f->embedding.scale = scaled ? (float)sqrt((double)f->width) : 1;
  return STATUS_OK;
}

/* --- positions --- */

/* Sets the number of learned positions. */
static enum status set_position_rows(const struct whole_sizing *z, struct error *e) {
  const struct whole_plan *p = z->p;
  const struct whole_family *family = z->stack->family;
  struct stack_embedding *m = &z->stack->form.embedding;
  const struct layout_matrix *table = &z->stack->part[WHOLE_POSITION];
  const size_t said = p->words.positions, more = family->positions_beyond;
  if (p->source.file && !table->found)
    return error_set(e, STATUS_CONFIG, "positions: there is no tensor \"%s.weight\"",
                     family->stem[WHOLE_POSITION] ? family->stem[WHOLE_POSITION] : "positions");
  if (!p->source.file && !p->said.max_positions)
    return error_set(e, STATUS_CONFIG, "max_positions: required for positions that are learned");
  m->position_rows = table->found ? table->weight.rows : p->said.max_positions + m->first_position;
  if (table->found && said && said + more != m->position_rows)
    return error_set(
        e, STATUS_CONFIG,
        "config.json: max_position_embeddings: %zu, but tensor \"%.120s\" has %zu rows, not %zu",
        said, table->weight.tensor->name, m->position_rows, said + more);
  if (m->position_rows <= m->first_position)
    return error_set(e, STATUS_CONFIG, "first_position: %zu is outside the %zu rows of the table",
                     m->first_position, m->position_rows);
  z->stack->positions = m->position_rows - m->first_position;
  if (p->said.max_positions > z->stack->positions)
    return error_set(e, STATUS_CONFIG, "max_positions: %zu, but the table has %zu",
                     p->said.max_positions, z->stack->positions);
  return STATUS_OK;
}

static enum status set_positions(const struct whole_sizing *z, struct error *e) {
  struct whole_plan *p = z->p;
  struct whole_stack *s = z->stack;
  struct stack_embedding *m = &s->form.embedding;
  m->positions = s->places & WHOLE_PLACES_LEARNED    ? POSITIONS_LEARNED
                 : s->places & WHOLE_PLACES_SINUSOID ? s->family->positions
                                                     : POSITIONS_NONE;
  m->first_position = p->said.first_position;
  if (m->positions == POSITIONS_LEARNED) {
    if (set_position_rows(z, e)) return e->status;
  } else {
    drop_table(z, WHOLE_POSITION);
    if (s->family->rotary || s->family->alibi || s->family->disentangled)
      s->positions = p->words.positions;
  }
  const bool computed = m->positions != POSITIONS_LEARNED && m->positions != POSITIONS_NONE;
  if (computed && (s->form.width % 2 != 0 || s->form.width < 4))
    return error_set(e, STATUS_CONFIG,
                     "positions: sinusoids need an even width of 4 at least, not %zu",
                     s->form.width);
  if (p->said.max_positions && p->said.max_positions < s->positions && p->source.file)
    notes_add(&p->notes, "the table has %zu positions, but here max_positions is %zu", s->positions,
              p->said.max_positions);
  if (p->said.max_positions) s->positions = p->said.max_positions;
  return STATUS_OK;
}

/* --- pooling --- */

static enum status set_pooling(const struct whole_sizing *z, struct error *e) {
  struct whole_plan *p = z->p;
  struct stack_form *f = &z->stack->form;
  const struct whole_source *s = &p->source;
  if (!is_reader(z)) return STATUS_OK;
  p->pool = p->said.has_pool ? p->said.pool : s->pool;
  p->normalize = p->said.normalize == TOGGLE_UNSAID ? s->normalize : p->said.normalize == TOGGLE_ON;
  const bool says = s->modules && s->pool != STACK_POOL_NONE; /* does modules.json choose a pool? */
  if (says && p->pool != s->pool)
    notes_add(&p->notes, "modules.json says pool %s, but here it is %s", stack_pool_names[s->pool],
              stack_pool_names[p->pool]);
  if (says && p->normalize != s->normalize)
    notes_add(&p->notes, "modules.json says normalize %s, but here it is %s",
              s->normalize ? "true" : "false", p->normalize ? "true" : "false");
  f->sparse = s->sparse;
  f->pooling.each = s->each;
  if (p->pool == STACK_POOL_SPARSE && !p->masked && !s->weigher)
    return error_set(e, STATUS_CONFIG,
                     "pool: \"sparse\" requires a masked language modeling head or sparse_linear, "
                     "which the model does not have");
  if (p->pool == STACK_POOL_MULTI_VECTOR && !s->each)
    return error_set(e, STATUS_CONFIG,
                     "pool: \"multi_vector\" requires colbert_linear or a dense layer for token "
                     "embeddings, which the model does not have");
  if (z->stack->family->ends) {
    const struct whole_tokens *t = &p->said.token;
    if (t->ends != 1 || t->end[0] > INT32_MAX)
      return error_set(e, STATUS_CONFIG, "end: the pooler of this model needs one token");
    /* Configurations with 2 are older than the key: they mean the greatest token. */
    f->pooling.ends = true;
    f->pooling.end = t->end[0] == 2 ? -1 : (int32_t)t->end[0];
  }
  if (p->pool == STACK_POOL_POOLER && !z->stack->part[WHOLE_POOLER].found && !f->pooling.ends)
    return error_set(e, STATUS_CONFIG, "pool: the model has no pooler");
  const struct layout_matrix *own = &z->stack->part[WHOLE_DENSE];
  /* Published code pools after this dense layer: before or after a linear layer gives the same. */
  const bool fits =
      s->pool_width == f->width || (own->found && s->pool_width == layout_matrix_out(own));
  if (s->pool_width && !fits)
    return error_set(e, STATUS_CONFIG,
                     "word_embedding_dimension: %zu for the pooling, but the width is %zu",
                     s->pool_width, f->width);
  if (own->found && !s->dense[0].file)
    f->pooling.dense[0] = (struct stack_dense){.size = layout_matrix_out(own)};
  if (own->found && s->late.size && s->late.size != layout_matrix_out(own))
    return error_set(e, STATUS_CONFIG, "%s: dim: %zu, but tensor \"%.120s\" has %zu rows",
                     s->late.file, s->late.size, own->weight.tensor->name, layout_matrix_out(own));
  for (size_t i = 0; i < STACK_DENSE_MOST && s->dense[i].file; i++) {
    const struct whole_dense *d = &s->dense[i];
    const size_t in = stack_form_dense(f);
    if (d->in != in)
      return error_set(e, STATUS_CONFIG,
                       "in_features: %zu for the dense layer, but the width is %zu", d->in, in);
    f->pooling.dense[i] =
        (struct stack_dense){.size = d->out, .tanh = d->tanh, .residual = d->residual};
  }
  return STATUS_OK;
}

/* --- do the parts agree? --- */

/* Checks the sizes of a part, and counts its numbers; those that both stacks share count once. */
static enum status check_part(const struct whole_sizing *z, enum whole_role role, size_t layer,
                              struct error *e) {
  const struct layout_matrix *m = whole_plan_part(z->stack, role, layer);
  size_t out, in;
  if (!m->found) return STATUS_OK;
  whole_plan_size(z->stack, role, &out, &in);
  const size_t bias = whole_role_is_norm(role) ? in : out;
  if (layout_matrix_out(m) != out || layout_matrix_in(m) != in)
    return error_set(e, STATUS_CONFIG,
                     "tensor \"%.120s\" has %zu times %zu numbers here, not %zu times %zu",
                     m->weight.tensor->name, m->weight.rows, m->weight.columns,
                     m->transposed ? in : out, m->transposed ? out : in);
  if (m->has_bias && m->bias.columns != bias)
    return error_set(e, STATUS_CONFIG, "tensor \"%.120s\" has %zu numbers here, not %zu",
                     m->bias.tensor->name, m->bias.columns, bias);
  const bool repeats =
      role < WHOLE_LAYER_ROLES && whole_plan_origin(z->p, z->stack, layer) != layer;
  if (!whole_plan_is_lent(z->p, z->stack, role) && !repeats)
    z->p->count += (uint64_t)out * in + (m->has_bias ? bias : 0);
  return STATUS_OK;
}

static enum status set_sizes(const struct whole_sizing *z, struct error *e) {
  const size_t encoded = z->p->stack[WHOLE_ENCODER].form.width;
  if (set_widths(z, e) || set_places(z, e) || set_self(z, e)) return e->status;
  if (!is_reader(z) && make_shape(z, WHOLE_CROSS_QUERY, encoded, &z->stack->form.cross, e))
    return e->status;
  if (set_kinds(z, e) || set_positions(z, e) || set_pooling(z, e)) return e->status;
  if (is_reader(z) && whole_classifier_complete(z->p, e)) return e->status;
  return is_random(z) ? whole_random_list(z->p, z->stack, e) : STATUS_OK;
}

enum status whole_sizes_find(struct whole_plan *p, struct error *e) {
  for (enum whole_side i = 0; i < WHOLE_SIDES; i++) {
    const struct whole_sizing z = {p, &p->stack[i], &p->said.of[i]};
    if (!z.stack->family || set_sizes(&z, e) == STATUS_OK) continue;
    /* An error about a size that each stack has begins with the name of the stack. */
    char word[16];
    const size_t length = strcspn(e->detail, ":");
    if (e->status != STATUS_CONFIG || length >= sizeof word) return e->status;
    snprintf(word, sizeof word, "%.*s", (int)length, e->detail);
    return whole_settings_is_size(word) ? text_before(e, "%s: ", whole_settings_side(i))
                                        : e->status;
  }
  for (enum whole_side i = 0; i < WHOLE_SIDES; i++) {
    const struct whole_sizing z = {p, &p->stack[i], NULL};
    const size_t layers = z.stack->family ? z.stack->form.layers : 0;
    for (size_t layer = 0; layer < layers; layer++)
      for (enum whole_role role = 0; role < WHOLE_LAYER_ROLES; role++)
        if (check_part(&z, role, layer, e)) return e->status;
    for (enum whole_role role = WHOLE_LAYER_ROLES; role < WHOLE_ROLES && z.stack->family; role++)
      if (check_part(&z, role, 0, e)) return e->status;
  }
  return STATUS_OK;
}
