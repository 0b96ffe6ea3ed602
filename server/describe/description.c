/* description: the JSON in which the server describes itself and its models. */
#include "server/describe/description.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "config/build/whole.h"
#include "server/describe/description_parts.h"
#include "server/model/fields/stack_fields.h"
#include "server/text/real.h"
#include "server/watch/version.h"

/* The assembler puts openapi.json into the program, so that no array of its bytes has to be
 * generated and compiled. Its path begins at the top of the repository, where the compiler runs.
 * The symbols are global (though hidden), as C takes them to be: with -flto the assembler may see
 * them in another file than the compiler. */
__asm__(".pushsection .rodata\n"
        ".globl openapi_begin, openapi_end\n"
        ".hidden openapi_begin, openapi_end\n"
        "openapi_begin: .incbin \"server/describe/openapi.json\"\n"
        "openapi_end:\n"
        ".popsection\n");

extern const char openapi_begin[], openapi_end[];

const char *description_openapi(size_t *length) {
  *length = (size_t)(openapi_end - openapi_begin);
  return openapi_begin;
}

/* The text is measured first and then written, because json_dumps leaves a key out where it has no
 * memory for it. */
char *description_write(json_t *value, size_t *length) {
  *length = value ? json_dumpb(value, NULL, 0, JSON_COMPACT) : 0;
  char *text = *length ? calloc(*length + 1, 1) : NULL;
  if (text && json_dumpb(value, text, *length, JSON_COMPACT) != *length) {
    free(text);
    text = NULL;
  }
  json_decref(value);
  if (text) *length = real_shorten(text);
  return text;
}

/* A list of what `describe` makes of each model; NULL: no memory. */
static json_t *list_models(const struct registry *r, json_t *describe(const struct model *)) {
  json_t *list = json_array();
  bool good = list != NULL;
  for (size_t i = 0; good && i < registry_count(r); i++)
    good = json_array_append_new(list, describe(registry_at(r, i))) == 0;
  if (good) return list;
  json_decref(list);
  return NULL;
}

/* --- /v1/models --- */

/* Adds a member and drops the value. False: no memory, now or when the value was made. */
static bool add_member(json_t *object, const char *key, json_t *value) {
  return json_object_set_new(object, key, value) == 0;
}

/* Adds the members that only some layers have. */
static bool add_optional_members(json_t *description, const struct model *m) {
  const struct layer_shape *s = &m->shape;
  if (m->place && !add_member(description, "place", json_string(m->place))) return false;
  if (s->score == SCORE_DOT &&
      !add_member(description, "scale", json_real(real_of_float(s->scale))))
    return false;
  if (s->score == SCORE_ADDITIVE &&
      !add_member(description, "score_size", json_integer((json_int_t)s->score_size)))
    return false;
  if (s->rope_base > 0 &&
      !add_member(description, "rope", json_pack("{s:f}", "base", s->rope_base)))
    return false;
  return s->relative_buckets == 0 ||
         add_member(description, "relative_bias",
                    json_pack("{s:I, s:I, s:b}", "buckets", (json_int_t)s->relative_buckets,
                              "max_distance", (json_int_t)s->relative_distance, "bidirectional",
                              s->relative_both));
}

/* --- whole models --- */

/* Adds the prompts by their names, and the text of the default one. */
static bool add_prompts(json_t *description, const struct whole *w) {
  return (!w->prompts || add_member(description, "prompts", json_deep_copy(w->prompts))) &&
         (!w->prompt || add_member(description, "prompt", json_copy(w->prompt)));
}

/* Adds a number that only some models have: 0 is none. */
static bool add_size(json_t *description, const char *key, size_t size) {
  return size == 0 || add_member(description, key, json_integer((json_int_t)size));
}

static json_t *describe_parts(const struct whole *w) {
  json_t *names = json_array();
  for (size_t i = 0; names && i < w->parts; i++)
    if (json_array_append_new(names, json_string(w->part[i].name))) {
      json_decref(names);
      names = NULL;
    }
  return names;
}

static bool add_token(json_t *ids, const char *key, int64_t token) {
  return token < 0 || add_member(ids, key, json_integer((json_int_t)token));
}

/* The tokens that mean something. */
static json_t *describe_tokens(const struct whole_tokens *t) {
  json_t *ids = json_object(), *ends = json_array();
  bool good = ids && ends;
  for (size_t i = 0; good && i < t->ends; i++)
    good = json_array_append_new(ends, json_integer((json_int_t)t->end[i])) == 0;
  good = good && add_token(ids, "begin", t->begin) && add_token(ids, "pad", t->pad) &&
         add_token(ids, "forced_begin", t->forced_begin) &&
         add_token(ids, "forced_end", t->forced_end);
  if (good && t->ends > 0) good = json_object_set(ids, "end", ends) == 0;
  json_decref(ends);
  if (good) return ids;
  json_decref(ids);
  return NULL;
}

static json_t *describe_notes(const struct notes *n) {
  json_t *list = json_array();
  for (size_t i = 0; list && i < n->count; i++)
    if (json_array_append_new(list, json_string(n->text[i]))) {
      json_decref(list);
      list = NULL;
    }
  return list;
}

/* The sizes of one of its stacks. */
static bool add_sizes(json_t *to, const struct stack_form *f) {
  const size_t kv_heads = f->self.kv_heads == f->self.heads ? 0 : f->self.kv_heads;
  const size_t head_size = f->self.heads * f->self.head_size == f->width ? 0 : f->self.head_size;
  return add_size(to, "layers", f->layers) && add_size(to, "heads", f->self.heads) &&
         add_size(to, "kv_heads", kv_heads) && add_size(to, "width", f->width) &&
         add_size(to, "head_size", head_size) && add_size(to, "window", f->window) &&
         add_size(to, "feed_forward", f->forward_size);
}

static json_t *describe_stack(const struct stack *s) {
  json_t *description = json_object();
  if (description && add_sizes(description, stack_form(s))) return description;
  json_decref(description);
  return NULL;
}

/* What reads the tokens; and each stack by itself, where there are two. */
static bool add_stacks(json_t *description, const struct whole *w) {
  const struct stack *reader = whole_reader(w);
  const bool dense = stack_form(reader)->pooling.dense[0].size > 0;
  return add_sizes(description, stack_form(reader)) &&
         (!whole_is_pair(w) || (add_member(description, "encoder", describe_stack(w->encoder)) &&
                                add_member(description, "decoder", describe_stack(w->decoder)))) &&
         add_size(description, "dimensions", dense ? stack_form_pooled(stack_form(reader)) : 0) &&
         add_member(description, "pooler", json_boolean(stack_has_pooler(reader))) &&
         add_member(description, "pool", json_string(stack_pool_names[w->pool])) &&
         add_member(description, "normalize", json_boolean(w->normalize));
}

/* The tokens and positions of what reads, and of the decoder where it has others. */
static bool add_tables(json_t *description, const struct whole *w) {
  const bool pair = whole_is_pair(w);
  return add_size(description, "vocabulary", w->vocabulary) &&
         add_size(description, "target_vocabulary", pair ? w->target_vocabulary : 0) &&
         add_size(description, "token_types", w->types) &&
         add_size(description, "positions", w->positions) &&
         add_size(description, "target_positions", pair ? w->target_positions : 0);
}

static const char *describe_weights(const struct whole *w) {
  const char *of = stack_weights(whole_reader(w));
  return whole_is_pair(w) && strcmp(of, stack_weights(w->decoder)) != 0 ? "mixed" : of;
}

static size_t bytes_of(const struct whole *w) {
  return stack_bytes(whole_reader(w)) + (whole_is_pair(w) ? stack_bytes(w->decoder) : 0);
}

static json_t *describe_early(enum stack_early early) {
  return early == STACK_EARLY_NEVER ? json_string("never") : json_boolean(early == STACK_EARLY_YES);
}

/* NULL: no memory. */
static json_t *describe_banned(const struct stack_choice *c) {
  json_t *list = json_array();
  for (size_t i = 0; list && i < c->banned_count; i++)
    if (json_array_append_new(list, json_integer(c->banned[i]))) {
      json_decref(list);
      list = NULL;
    }
  return list;
}

static json_t *describe_option(const struct whole_option *o, const struct stack_choice *c) {
  const void *value = (const char *)c + o->at;
  return o->type == WHOLE_COUNT ? json_integer((json_int_t) * (const size_t *)value)
                                : json_real(*(const double *)value);
}

/* How it goes on from a text where a request does not say otherwise. */
static json_t *describe_choice(const struct whole *w) {
  const struct stack_choice *c = &w->choice;
  json_t *choice = json_pack("{s:I, s:I, s:f, s:o}", "max_tokens", (json_int_t)w->max_tokens,
                             "beams", (json_int_t)(c->beams ? c->beams : 1), "length_penalty",
                             c->length_penalty, "early_stopping", describe_early(c->early));
  bool good = choice != NULL;
  for (size_t i = 0; good && i < WHOLE_OPTION_COUNT; i++)
    good = add_member(choice, whole_options[i].word, describe_option(&whole_options[i], c));
  if (good && add_member(choice, "banned_tokens", describe_banned(c))) return choice;
  json_decref(choice);
  return NULL;
}

/* The names of its classes. NULL: no memory. */
static json_t *describe_labels(const struct whole *w) {
  json_t *list = json_array();
  for (size_t i = 0; list && i < w->classes; i++)
    if (json_array_append_new(list, json_string(w->label[i]))) {
      json_decref(list);
      list = NULL;
    }
  return list;
}

static bool add_classes(json_t *description, const struct whole *w) {
  return w->classes == 0 ||
         (add_member(description, "labels", describe_labels(w)) &&
          add_member(description, "function", json_string(whole_function_names[w->function])));
}

static json_t *describe_tokenizer(const struct whole *w) {
  return json_pack("{s:s, s:s, s:I}", "kind", tokenizer_kind(w->tokenizer), "file",
                   w->tokenizer_file, "tokens", (json_int_t)tokenizer_size(w->tokenizer));
}

static json_t *describe_whole(const struct model *m) {
  const struct whole *w = m->whole;
  json_t *description =
      json_pack("{s:s, s:s, s:s, s:I, s:s, s:s, s:s, s:o, s:o}", "name", m->name, "kind",
                model_kind_name(m->kind), "family", w->family, "parameters",
                (json_int_t)m->parameters, "weights", describe_weights(w), "source", m->source,
                m->digest_name, m->digest, "attentions", describe_parts(w), "tokens",
                describe_tokens(&w->token));
  if (description && add_stacks(description, w) && add_tables(description, w) &&
      add_classes(description, w) &&
      (!w->tokenizer || add_member(description, "tokenizer", describe_tokenizer(w))) &&
      add_prompts(description, w) &&
      (!whole_can_generate(w) || add_member(description, "generate", describe_choice(w))) &&
      add_size(description, "tensors_aside", w->aside) &&
      add_size(description, "bytes", bytes_of(w)) &&
      (m->notes.count == 0 || add_member(description, "notes", describe_notes(&m->notes))))
    return description;
  json_decref(description);
  return NULL;
}

/* --- the pieces of whole models --- */

static json_t *describe_widths(const struct whole_block *b) {
  json_t *list = json_array();
  for (size_t i = 0; list && i < b->widths; i++)
    if (json_array_append_new(list, json_integer((json_int_t)b->width[i]))) {
      json_decref(list);
      list = NULL;
    }
  return list;
}

static json_t *describe_costs(const struct whole_block *b) {
  const bool pairs = b->kind == BLOCK_ATTENTION;
  json_t *costs = json_pack("{s:I}", "token", (json_int_t)b->token);
  if (costs && (!pairs || add_member(costs, "pair", json_integer((json_int_t)b->pair))) &&
      (b->key == 0 || add_member(costs, "key", json_integer((json_int_t)b->key))))
    return costs;
  json_decref(costs);
  return NULL;
}

static json_t *describe_piece(const struct whole_block *b) {
  const bool inside = b->layer != WHOLE_NO_LAYER;
  json_t *piece = json_pack("{s:s, s:s, s:s}", "name", b->name, "kind", whole_block_kinds[b->kind],
                            "side", b->side);
  if (piece && (!inside || add_member(piece, "layer", json_integer((json_int_t)b->layer))) &&
      add_member(piece, "shape", describe_widths(b)) &&
      add_member(piece, "parameters", json_integer((json_int_t)b->parameters)) &&
      add_member(piece, "multiply_adds", describe_costs(b)) &&
      (!b->tied || add_member(piece, "tied", json_true())))
    return piece;
  json_decref(piece);
  return NULL;
}

static json_t *describe_pieces(const struct whole *w) {
  json_t *list = json_array();
  for (size_t i = 0; list && i < w->blocks; i++)
    if (json_array_append_new(list, describe_piece(&w->block[i]))) {
      json_decref(list);
      list = NULL;
    }
  return list;
}

/* Takes the description; NULL was a failed allocation, and is one. A list of models goes without:
 * of a large one these are many. */
static json_t *with_pieces(json_t *description, const struct model *m) {
  if (!m->whole) return description;
  if (description && add_member(description, "pieces", describe_pieces(m->whole)))
    return description;
  json_decref(description);
  return NULL;
}

/* --- one layer --- */

static json_t *describe_model(const struct model *m) {
  const struct layer_shape *s = &m->shape;
  if (m->whole) return describe_whole(m);
  json_t *description = json_pack(
      "{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:I, s:s, s:s, s:s, s:s}",
      "name", m->name, "score", m->score, "weighting", m->weighting, "projection", m->projection,
      "heads", (json_int_t)s->heads, "kv_heads", (json_int_t)s->kv_heads, "query_size",
      (json_int_t)s->query_size, "key_size", (json_int_t)s->key_size, "value_size",
      (json_int_t)s->value_size, "hidden", (json_int_t)(s->heads * s->head_size), "output_size",
      (json_int_t)s->output_size, "bias", m->bias, "causal", m->causal, "parameters",
      (json_int_t)m->parameters, "source", m->source, "layout", m->layout, m->digest_name,
      m->digest, "engine", layer_engine(m->layer));
  if (description && add_optional_members(description, m)) return description;
  json_decref(description);
  return NULL;
}

/* --- as OpenAI has it --- */

static bool add_openai(json_t *description, const struct model *m) {
  return add_member(description, "id", json_string(m->name)) &&
         add_member(description, "object", json_string("model")) &&
         add_member(description, "created", json_integer((json_int_t)m->loaded)) &&
         add_member(description, "owned_by", json_string("attend")) &&
         (!m->alias || add_member(description, "root", json_string(m->root->name)));
}

/* Takes the description; NULL was a failed allocation, and is one. */
static json_t *with_openai(json_t *description, const struct model *m) {
  if (description && add_openai(description, m)) return description;
  json_decref(description);
  return NULL;
}

static json_t *describe_openai(const struct model *m) { return with_openai(json_object(), m); }

char *description_model(const struct model *m, size_t *length) {
  return description_write(with_pieces(with_openai(describe_model(m), m), m), length);
}

char *description_models(const struct registry *r, size_t *length) {
  return description_write(json_pack("{s:o, s:s, s:o}", "models", list_models(r, describe_model),
                                     "object", "list", "data", list_models(r, describe_openai)),
                           length);
}

/* --- /v2, the Open Inference Protocol --- */

char *description_v2_server(size_t *length) {
  return description_write(json_pack("{s:s, s:s, s:[s]}", "name", "attend", "version",
                                     version_number(), "extensions", "binary_tensor_data"),
                           length);
}

static json_t *describe_name(const struct model *m) { return json_string(m->name); }

char *description_v2_models(const struct registry *r, size_t *length) {
  return description_write(json_pack("{s:o}", "models", list_models(r, describe_name)), length);
}

/* One tensor of a model. A length that each request chooses is -1. The protocol has no word for an
 * input that may be left out: that is a parameter, which clients may ignore. */
static json_t *describe_tensor(const char *name, const char *datatype, json_t *shape,
                               bool optional) {
  json_t *t = json_pack("{s:s, s:s, s:o}", "name", name, "datatype", datatype, "shape", shape);
  if (!optional || json_object_set_new(t, "parameters", json_pack("{s:b}", "optional", 1)) == 0)
    return t;
  json_decref(t);
  return NULL;
}

static json_t *describe_rows(const char *name, size_t width, bool optional) {
  return describe_tensor(name, "FP32", json_pack("[i, i, I]", -1, -1, (json_int_t)width), optional);
}

static json_t *describe_inputs(const struct layer_shape *s) {
  return json_pack("[o, o, o, o, o]", describe_rows("queries", s->query_size, false),
                   describe_rows("keys", s->key_size, s->key_size == s->query_size),
                   describe_rows("values", s->value_size, s->value_size == s->key_size),
                   describe_tensor("valid_lens", "INT32", json_pack("[i]", -1), true),
                   describe_tensor("mask", "BOOL", json_pack("[i, i, i]", -1, -1, -1), true));
}

static json_t *describe_outputs(const struct layer_shape *s) {
  json_t *shape = json_pack("[i, I, i, i]", -1, (json_int_t)s->heads, -1, -1);
  return json_pack("[o, o]", describe_rows("outputs", s->output_size, false),
                   describe_tensor("attention_weights", "FP32", shape, true));
}

/* Appends a tensor to a list, and drops both if that fails. NULL: no memory. */
static json_t *append_tensor(json_t *list, json_t *tensor) {
  if (json_array_append_new(list, tensor) == 0) return list;
  json_decref(list);
  return NULL;
}

static json_t *describe_ids(const char *name, bool optional) {
  return describe_tensor(name, "INT64", json_pack("[i, i]", -1, -1), optional);
}

/* Of a model without tokens, rows are what enters it. */
static json_t *describe_whole_inputs(const struct whole *w) {
  const bool ids = w->vocabulary > 0;
  json_t *list = json_array();
  if (ids) list = append_tensor(list, describe_ids("input_ids", false));
  list = append_tensor(list, describe_ids("attention_mask", true));
  if (w->types) list = append_tensor(list, describe_ids("token_type_ids", true));
  list =
      append_tensor(list, describe_rows("inputs_embeds", stack_form(whole_reader(w))->width, ids));
  if (!whole_is_pair(w)) return list;
  list = append_tensor(list, describe_ids("decoder_input_ids", true));
  return append_tensor(list, describe_ids("decoder_attention_mask", true));
}

static json_t *describe_whole_outputs(const struct whole *w) {
  const struct stack_form *f = stack_form(whole_reader(w));
  json_t *list = append_tensor(json_array(), describe_rows("last_hidden_state", f->width, false));
  if (stack_has_pooler(whole_reader(w)))
    list =
        append_tensor(list, describe_tensor("pooler_output", "FP32",
                                            json_pack("[i, I]", -1, (json_int_t)f->width), true));
  const struct stack *last = whole_is_pair(w) ? w->decoder : whole_reader(w);
  if (stack_has_output(last))
    list = append_tensor(list, describe_rows("logits", stack_form(last)->embedding.tokens, true));
  if (!whole_is_pair(w)) return list;
  return append_tensor(list, describe_rows("encoder_last_hidden_state", f->width, true));
}

char *description_v2_model(const struct model *m, size_t *length) {
  json_t *inputs = m->whole ? describe_whole_inputs(m->whole) : describe_inputs(&m->shape);
  json_t *outputs = m->whole ? describe_whole_outputs(m->whole) : describe_outputs(&m->shape);
  return description_write(json_pack("{s:s, s:[s], s:s, s:o, s:o}", "name", m->name, "versions",
                                     "1", "platform", "attend", "inputs", inputs, "outputs",
                                     outputs),
                           length);
}

char *description_v2_ready(const struct model *m, size_t *length) {
  return description_write(json_pack("{s:s, s:b}", "name", m->name, "ready", 1), length);
}
