/* description_whole: the description of a model that is no single layer. */
#include "server/describe/description_whole.h"

#include <string.h>

#include "config/build/whole.h"
#include "config/tokenizer/tokenizer_languages.h"
#include "server/describe/description_parts.h"
#include "server/model/fields/stack_fields.h"
#include "server/route/routes.h"
#include "server/text/real.h"

/* --- the members --- */

static json_t *part_name(const void *whole, size_t i) {
  return json_string(((const struct whole *)whole)->part[i].name);
}

static json_t *label_name(const void *whole, size_t i) {
  return json_string(((const struct whole *)whole)->label[i]);
}

static json_t *note_text(const void *notes, size_t i) {
  return json_string(((const struct notes *)notes)->text[i]);
}

static json_t *end_token(const void *tokens, size_t i) {
  return json_integer((json_int_t)((const struct whole_tokens *)tokens)->end[i]);
}

static json_t *banned_token(const void *choice, size_t i) {
  return json_integer(((const struct stack_choice *)choice)->banned[i]);
}

static bool add_token(json_t *ids, const char *key, int64_t token) {
  return token < 0 || add_member(ids, key, json_integer((json_int_t)token));
}

/* The tokens that have a meaning. */
static json_t *describe_tokens(const struct whole *w) {
  const struct whole_tokens *t = &w->token;
  json_t *ids = json_object();
  return complete(ids,
                  add_token(ids, "begin", t->begin) && add_token(ids, "pad", t->pad) &&
                      add_token(ids, "mask", w->mask) &&
                      (!w->chat || add_token(ids, "chat_end", w->chat_end)) &&
                      add_token(ids, "forced_begin", t->forced_begin) &&
                      add_token(ids, "forced_end", t->forced_end) &&
                      (t->ends == 0 || add_member(ids, "end", make_list(t->ends, end_token, t))));
}

/* Adds the window, and the layers that have it, unless all do. */
static bool add_window(json_t *to, const struct stack *s) {
  const size_t all = stack_form(s)->layers;
  json_t *layers = json_array();
  bool good = layers;
  size_t window = 0;
  for (size_t i = 0; i < all && good; i++) {
    const size_t own = stack_layer_kind(s, i)->window;
    if (own) window = own, good = json_array_append_new(layers, json_integer((json_int_t)i)) == 0;
  }
  const bool some = json_array_size(layers) > 0 && json_array_size(layers) < all;
  good = good && add_size(to, "window", window) &&
         (!some || json_object_set(to, "window_layers", layers) == 0);
  json_decref(layers);
  return good;
}

static bool add_cap(json_t *to, const char *key, float cap) {
  return !(cap > 0) || add_member(to, key, json_real(real_of_float(cap)));
}

static bool add_position_scores(json_t *to, const struct layer_shape *s) {
  const char *kind = s->alibi ? "alibi" : s->position_span > 0 ? "disentangled" : NULL;
  return !kind || add_member(to, "position_scores", json_string(kind));
}

/* Adds the sizes of one of its stacks. */
static bool add_sizes(json_t *to, const struct stack *s) {
  const struct stack_form *f = stack_form(s);
  const size_t kv_heads =
      f->kind->self.kv_heads == f->kind->self.heads ? 0 : f->kind->self.kv_heads;
  const size_t head_size =
      f->kind->self.heads * f->kind->self.head_size == f->width ? 0 : f->kind->self.head_size;
  return add_size(to, "layers", f->layers) && add_size(to, "heads", f->kind->self.heads) &&
         add_size(to, "kv_heads", kv_heads) && add_size(to, "width", f->width) &&
         add_size(to, "head_size", head_size) && add_window(to, s) &&
         add_cap(to, "score_cap", f->kind->self.cap) && add_cap(to, "logit_cap", f->output.cap) &&
         add_position_scores(to, &f->kind->self) && add_size(to, "feed_forward", f->forward_size);
}

static json_t *describe_stack(const struct stack *s) {
  json_t *description = json_object();
  return complete(description, add_sizes(description, s));
}

static bool can_pool(const struct whole *w, enum stack_pool pool) {
  switch (pool) {
  case STACK_POOL_POOLER:
    return stack_has_pooler(whole_reader(w));
  case STACK_POOL_SPARSE:
    return stack_has_sparse(whole_reader(w));
  case STACK_POOL_MULTI_VECTOR:
    return whole_has_rows(w);
  default:
    return true;
  }
}

/* The pools that requests may name. */
static json_t *describe_pools(const struct whole *w) {
  json_t *pools = json_array();
  bool good = pools;
  for (unsigned p = 0; good && p < STACK_POOLS; p++)
    if (can_pool(w, p)) good = json_array_append_new(pools, json_string(stack_pool_names[p])) == 0;
  return complete(pools, good);
}

/* The tokenizer, with the text of its mask token if it has one. */
static json_t *describe_tokenizer(const struct whole *w) {
  const struct tokenizer *t = w->tokenizer;
  json_t *d = json_pack("{s:s, s:s, s:I}", "kind", tokenizer_kind(t), "file", w->tokenizer_file,
                        "tokens", (json_int_t)tokenizer_size(t));
  if (w->mask < 0) return d;
  char *piece = malloc(tokenizer_piece_max(t));
  const size_t length = piece ? tokenizer_write_piece(t, w->mask, piece) : 0;
  d = complete(d, d && piece && add_member(d, "mask", json_stringn(piece, length)));
  free(piece);
  return d;
}

/* Adds the stack that reads the input, and each stack by itself if there are two. */
static bool add_stacks(json_t *description, const struct whole *w) {
  const struct stack *reader = whole_reader(w);
  const size_t width = stack_form(reader)->width,
               embedded = stack_form_embedded(stack_form(reader));
  const struct stack_form *f = stack_form(reader);
  const size_t size =
      w->pool == STACK_POOL_MULTI_VECTOR ? stack_form_dense(f) : stack_form_pooled(f);
  const bool dense = f->pooling.dense[0].size > 0 && (!f->pooling.each || size != width);
  return add_sizes(description, reader) &&
         (!whole_is_pair(w) || (add_member(description, "encoder", describe_stack(w->encoder)) &&
                                add_member(description, "decoder", describe_stack(w->decoder)))) &&
         add_size(description, "embedding_width", embedded == width ? 0 : embedded) &&
         add_size(description, "dimensions", dense ? size : 0) &&
         add_member(description, "pooler", json_boolean(stack_has_pooler(reader))) &&
         add_member(description, "pool", json_string(stack_pool_names[w->pool])) &&
         add_member(description, "pools", describe_pools(w)) &&
         add_member(description, "normalize", json_boolean(w->normalize));
}

/* The defaults of generation. */
static json_t *describe_choice(const struct whole *w) {
  const struct stack_choice *c = &w->choice;
  json_t *choice = json_pack("{s:I}", "max_tokens", (json_int_t)w->max_tokens);
  bool good = choice != NULL;
  for (const struct whole_option *o = whole_options; good && o < whole_options + WHOLE_OPTION_COUNT;
       o++)
    good = add_member(choice, o->word, whole_option_json(o, c));
  return complete(choice, good && add_member(choice, "banned_tokens",
                                             make_list(c->banned_count, banned_token, c)));
}

/* The tasks of the paths that the model has. */
static json_t *describe_tasks(const struct model *m) {
  json_t *tasks = json_array();
  bool good = tasks;
  for (unsigned r = 0; good && r < ROUTE_COUNT; r++) {
    const char *task = route_row((enum route)r)->task;
    if (task && route_serves((enum route)r, m))
      good = json_array_append_new(tasks, json_string(task)) == 0;
  }
  if (good && whole_has_rows(m->whole))
    good = json_array_append_new(tasks, json_string("multi_vector")) == 0;
  return complete(tasks, good);
}

static json_t *role_name(const void *none, size_t i) {
  (void)none;
  return json_string(whole_text_names[i]);
}

/* Adds the codes of a translator's languages, if it has tokens for them. */
static bool add_languages(json_t *description, const struct tokenizer *t) {
  struct tokenizer_language one;
  json_t *list = json_array();
  bool good = list;
  for (size_t at = 0; good && tokenizer_next_language(t, &at, &one);)
    good = json_array_append_new(list, json_stringn(one.code, one.length)) == 0;
  if (json_array_size(list) > 0) return good && add_member(description, "languages", list);
  json_decref(list);
  return good;
}

json_t *description_whole(const struct model *m) {
  const struct whole *w = m->whole;
  const bool pair = whole_is_pair(w);
  const char *weights = stack_weights(whole_reader(w));
  if (pair && strcmp(weights, stack_weights(w->decoder)) != 0) weights = "mixed";
  const size_t bytes = stack_bytes(whole_reader(w)) + (pair ? stack_bytes(w->decoder) : 0);
  json_t *d = json_pack("{s:s, s:s, s:s, s:I, s:s, s:s, s:s, s:s, s:o, s:o}", "name", m->name,
                        "kind", model_kind_name(m->kind), "family", w->family, "parameters",
                        (json_int_t)m->parameters, "compute", compute_names[m->compute], "weights",
                        weights, "source", m->source, m->digest_name, m->digest, "attentions",
                        make_list(w->parts, part_name, w), "tokens", describe_tokens(w));
  const bool roles = w->interacts && w->tokenizer;
  bool good = d && add_member(d, "tasks", describe_tasks(m)) &&
              (!roles || add_member(d, "roles", make_list(WHOLE_TEXTS, role_name, NULL))) &&
              (!w->builtin || add_member(d, "builtin", json_string(w->builtin))) &&
              (!w->adapters || add_member(d, "adapters", json_deep_copy(w->adapters))) &&
              add_stacks(d, w) && add_size(d, "vocabulary", w->vocabulary) &&
              add_size(d, "target_vocabulary", pair ? w->target_vocabulary : 0) &&
              add_size(d, "token_types", w->types) && add_size(d, "positions", w->positions) &&
              add_size(d, "target_positions", pair ? w->target_positions : 0);
  if (w->label)
    good = good && add_member(d, "labels", make_list(w->classes, label_name, w)) &&
           add_member(d, "function", json_string(whole_function_names[w->function]));
  if (w->tokenizer) good = good && add_member(d, "tokenizer", describe_tokenizer(w));
  if (w->tokenizer && pair) good = good && add_languages(d, w->tokenizer);
  if (w->prompts) good = good && add_member(d, "prompts", json_deep_copy(w->prompts));
  if (w->prompt) good = good && add_member(d, "prompt", json_copy(w->prompt));
  if (whole_can_generate(w)) good = good && add_member(d, "generate", describe_choice(w));
  good = good && add_size(d, "tensors_aside", w->aside) && add_size(d, "bytes", bytes);
  if (m->notes.count > 0)
    good = good && add_member(d, "notes", make_list(m->notes.count, note_text, &m->notes));
  return complete(d, good);
}

/* --- the pieces --- */

static json_t *block_width(const void *block, size_t i) {
  return json_integer((json_int_t)((const struct whole_block *)block)->width[i]);
}

static bool layers_differ(const struct stack *s) {
  bool differ = false;
  for (size_t i = 1; i < stack_form(s)->layers; i++)
    differ |= stack_layer_kind(s, i) != stack_layer_kind(s, 0);
  return differ;
}

/* Adds in what the layer of a self-attention differs from others. */
static bool add_layer_kind(json_t *piece, const struct whole *w, const struct whole_block *b) {
  const struct stack *s = strcmp(b->side, "decoder") == 0 ? w->decoder : w->encoder;
  if (b->kind != BLOCK_ATTENTION || b->key > 0 || !layers_differ(s)) return true;
  const struct stack_kind *kind = stack_layer_kind(s, b->layer);
  return add_size(piece, "window", kind->window) && add_rope(piece, kind->self.rope_base);
}

static json_t *describe_piece(const void *whole, size_t i) {
  const struct whole *w = whole;
  const struct whole_block *b = &w->block[i];
  json_t *costs = json_pack("{s:I}", "token", (json_int_t)b->token);
  bool good = costs;
  if (b->kind == BLOCK_ATTENTION)
    good = good && add_member(costs, "pair", json_integer((json_int_t)b->pair));
  good = good && add_size(costs, "key", b->key);
  json_t *piece = json_pack("{s:s, s:s, s:s}", "name", b->name, "kind", whole_block_kinds[b->kind],
                            "side", b->side);
  if (b->layer != WHOLE_NO_LAYER)
    good = good && add_member(piece, "layer", json_integer((json_int_t)b->layer));
  good = good && add_member(piece, "shape", make_list(b->widths, block_width, b)) &&
         add_member(piece, "parameters", json_integer((json_int_t)b->parameters)) &&
         json_object_set(piece, "multiply_adds", costs) == 0 && add_layer_kind(piece, w, b);
  json_decref(costs);
  return complete(piece, good && (!b->tied || add_member(piece, "tied", json_true())));
}

json_t *description_pieces(const struct whole *w) {
  return make_list(w->blocks, describe_piece, w);
}
