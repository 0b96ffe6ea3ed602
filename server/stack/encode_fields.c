/* encode_fields: the table of an encode request's fields, and the readers of its small values but
 * those that hold names. */
#include "server/stack/encode_fields.h"

#include <jansson.h>
#include <stddef.h>
#include <string.h>

#include "core/run/size.h"
#include "server/body/json_small.h"
#include "server/stack/encode_names.h"

/* --- small values --- */

static const char *const pool_names[] = {
    [STACK_POOL_NONE] = "none", [STACK_POOL_CLS] = "cls",   [STACK_POOL_MEAN] = "mean",
    [STACK_POOL_MAX] = "max",   [STACK_POOL_LAST] = "last", [STACK_POOL_POOLER] = "pooler"};

const char *encode_pool_name(enum stack_pool pool) { return pool_names[pool]; }

static enum status read_pool(const json_t *value, const struct contract_field *field, void *to,
                             struct error *e) {
  for (unsigned i = 0; i < sizeof pool_names / sizeof *pool_names; i++) {
    if (!json_small_is_text(value, pool_names[i])) continue;
    *(enum stack_pool *)to = (enum stack_pool)i;
    return STATUS_OK;
  }
  return error_at(e, field->pointer,
                  "pool must be \"none\", \"cls\", \"mean\", \"max\", \"last\" or \"pooler\"");
}

static enum status read_dimensions(const json_t *value, const struct contract_field *field,
                                   void *to, struct error *e) {
  if (!json_is_integer(value) || json_integer_value(value) < 1)
    return error_at(e, field->pointer, "dimensions must be an integer of at least 1");
  *(size_t *)to = (size_t)json_integer_value(value);
  return STATUS_OK;
}

/* --- the table --- */

enum { ANY_SIZE, ROW_SIZE }; /* of the model: d */

/* Bytes of text that names of parts and masks of heads may have: those of some hundred layers. Of
 * more, `*` names all, and what is named one by one is asked for in several requests. */
enum { NAMES_LONGEST = 32 * 1024 };

#define NAMED(name)     .pointer = "/" name, .name_length = sizeof name - 1
#define VALUE_AT(value) .at = offsetof(struct encode_values, value)

/* Integers of one item, or of each item of a batch. */
#define INTEGERS .rule = {.type = TENSOR_INTEGER, .depth_min = 1, .depth_max = 2, .ragged_depth = 2}

const struct contract_field encode_fields[ENCODE_FIELDS] = {
    [ENCODE_TOKENS] = {NAMED("tokens"), INTEGERS},
    [ENCODE_EMBEDDINGS] = {NAMED("embeddings"),
                           .rule = {.type = TENSOR_FLOAT,
                                    .depth_min = 2,
                                    .depth_max = 3,
                                    .ragged_depth = 3,
                                    .width_name = "width"},
                           .width = ROW_SIZE},
    [ENCODE_VALID_LENS] = {NAMED("valid_lens"), .rule = {.type = TENSOR_INTEGER,
                                                         .nullable = true,
                                                         .depth_max = 1,
                                                         .ragged_depth = 2}},
    [ENCODE_TOKEN_TYPES] = {NAMED("token_types"), INTEGERS},
    [ENCODE_ATTENTION_MASK] = {NAMED("attention_mask"), INTEGERS,
                               .elsewhere =
                                   "send valid_lens, how many of each item's tokens count: "
                                   "attention_mask is an input of /v2 alone"},

    [ENCODE_POOL] = {NAMED("pool"), .read = read_pool, VALUE_AT(pool)},
    [ENCODE_DIMENSIONS] = {NAMED("dimensions"), .read = read_dimensions, VALUE_AT(dimensions)},
    [ENCODE_NORMALIZE] = {NAMED("normalize"), .read = contract_read_flag, VALUE_AT(normalize)},
    [ENCODE_RETURN_HIDDEN] = {NAMED("return_hidden"), .read = encode_names_hidden,
                              .longest = NAMES_LONGEST},
    [ENCODE_RETURN_ATTENTION] = {NAMED("return_attention"), .read = encode_names_attention,
                                 .longest = NAMES_LONGEST},
    [ENCODE_HEAD_MASK] = {NAMED("head_mask"), .read = encode_names_head_mask,
                          .longest = NAMES_LONGEST},
    [ENCODE_ENCODING_FORMAT] = {NAMED("encoding_format"), .read = contract_read_base64,
                                VALUE_AT(base64)},
    [ENCODE_TRACE] = {NAMED("trace"), .read = encode_names_trace},
};

static const struct contract_input inputs[] = {
    {"input_ids", ENCODE_TOKENS, DTYPE_I64, DTYPE_I32, .depth_min = 2},
    {"attention_mask", ENCODE_ATTENTION_MASK, DTYPE_I64, DTYPE_I32, .depth_min = 2},
    {"token_type_ids", ENCODE_TOKEN_TYPES, DTYPE_I64, DTYPE_I32, .depth_min = 2},
    {"inputs_embeds", ENCODE_EMBEDDINGS, DTYPE_F32, DTYPE_F32, .depth_min = 3},
};

static const char *const outputs[ENCODE_OUTPUTS] = {
    [ENCODE_LAST_HIDDEN_STATE] = "last_hidden_state", [ENCODE_POOLER_OUTPUT] = "pooler_output"};

static const struct contract_v2 protocol = {
    .input = inputs,
    .inputs = sizeof inputs / sizeof *inputs,
    .output = outputs,
    .outputs = ENCODE_OUTPUTS,
};

const char *encode_field_shown(enum encode_field field, enum body_form form) {
  for (size_t i = 0; form == BODY_V2 && i < sizeof inputs / sizeof *inputs; i++)
    if (inputs[i].field == (unsigned)field) return inputs[i].name;
  return encode_field_name(field);
}

/* Other services and libraries call things so. */
static const char model_in_path[] =
    "a model stands in the path: POST /v1/models/NAME/encode (GET /v1/models lists all models)";
static const char tokens_instead[] = "it is \"tokens\", the ids that the model's tokenizer gives";
static const char no_text[] = "it belongs to generating a text, which encoding does not do";
static const char one_attention[] =
    "this is a whole model: POST /v1/models/NAME/layers/encoder.0.self/attention asks one "
    "attention";
static const char by_names[] = "layers are named in \"return_hidden\" and \"return_attention\"";
static const struct contract_stray strays[] = {
    {"model", model_in_path},
    {"model_name", model_in_path},
    {"input_ids", "it is \"tokens\""},
    {"input", tokens_instead},
    {"inputs", tokens_instead},
    {"prompt", tokens_instead},
    {"text", tokens_instead},
    {"inputs_embeds", "it is \"embeddings\""},
    {"token_type_ids", "it is \"token_types\""},
    {"mask", "send \"valid_lens\", how many of each item's tokens count"},
    {"padding_mask", "it is \"valid_lens\", how many of each item's tokens count"},
    {"queries", one_attention},
    {"keys", one_attention},
    {"values", one_attention},
    {"causal", "an encoder's rows see all rows of their item, and have no such choice"},
    {"layer", by_names},
    {"layers", by_names},
    {"output_hidden_states", "it is \"return_hidden\": true for the last, \"all\", or names"},
    {"output_attentions", "it is \"return_attention\": true, \"average\", or names"},
    {"pooling", "it is \"pool\""},
    {"pooling_mode", "it is \"pool\""},
    {"normalize_embeddings", "it is \"normalize\""},
    {"truncate_dim", "it is \"dimensions\""},
    {"max_tokens", no_text},
    {"max_new_tokens", no_text},
    {"num_beams", no_text},
    {"do_sample", no_text},
    {"temperature", no_text},
    {"top_k", no_text},
    {"top_p", no_text},
    {"decoder_input_ids", no_text},
};

/* --- how many numbers there may be --- */

/* The array that says which items there are; NULL: none has been read. */
static const struct tensor *find_rows(const struct contract_reading *r, unsigned *depth) {
  const struct tensor *tokens = r->tensor[ENCODE_TOKENS];
  *depth = tokens ? 1 : 2;
  return tokens ? tokens : r->tensor[ENCODE_EMBEDDINGS];
}

static size_t max_count(const struct contract_reading *r, unsigned field) {
  unsigned depth;
  const struct tensor *t = find_rows(r, &depth);
  if (!t) return 0;
  if (field == ENCODE_VALID_LENS)
    return encode_is_unbatched(t, depth) ? 1 : size_max(t->elements, 1);
  if (field != ENCODE_TOKEN_TYPES) return 0;
  return size_max(depth == 1 ? t->count : t->count / r->size[ROW_SIZE], 1);
}

/* Every layer is prepared item by item, and so is each array of the answer planned. */
static uint64_t plan_cost(const struct contract_reading *r) {
  enum { LAYER_NS = 300, ITEM_NS = 15, ARRAY_NS = 45 };
  const struct encode_values *v = r->values;
  const size_t layers = v->form->layers;
  unsigned depth;
  const struct tensor *t = find_rows(r, &depth);
  const size_t items = !t ? 0 : encode_is_unbatched(t, depth) ? 1 : t->elements;
  size_t arrays = v->embedded;
  for (size_t l = 0; l < layers; l++)
    arrays += v->wish[l].hidden + v->wish[l].input + (v->wish[l].weights != STACK_WEIGHTS_NONE);
  return LAYER_NS * (uint64_t)layers + items * (ITEM_NS * (uint64_t)layers + ARRAY_NS * arrays);
}

#define BIT(field) (UINT64_C(1) << (field))

static const struct contract contract = {.field = encode_fields,
                                         .arrays = ENCODE_ARRAYS,
                                         .fields = ENCODE_FIELDS,
                                         .elsewhere = BIT(ENCODE_ATTENTION_MASK),
                                         .v2 = &protocol,
                                         .stray = strays,
                                         .strays = sizeof strays / sizeof *strays,
                                         .max_count = max_count,
                                         .plan_cost = plan_cost};

_Static_assert((int)ENCODE_ARRAYS <= (int)CONTRACT_ARRAYS_MAX, "the arrays have room");
_Static_assert((int)ENCODE_FIELDS <= (int)CONTRACT_FIELDS_MAX, "a bit for each field");
_Static_assert(sizeof inputs / sizeof *inputs <= CONTRACT_INPUTS_MAX, "the inputs have room");
_Static_assert((int)ENCODE_OUTPUTS <= (int)CONTRACT_OUTPUTS_MAX, "the outputs have room");

enum status encode_fields_init(struct contract_reading *r, struct encode_values *values,
                               const struct whole *w, size_t max_items, struct arena *a,
                               struct error *e) {
  const struct stack_form *form = stack_form(w->encoder);
  *values =
      (struct encode_values){.form = form, .arena = a, .pool = w->pool, .normalize = w->normalize};
  values->wish = arena_alloc(a, form->layers, sizeof *values->wish, e);
  if (!values->wish) return e->status;
  for (size_t i = 0; i < form->layers; i++) values->wish[i] = (struct stack_wish){0};
  *r = (struct contract_reading){.contract = &contract,
                                 .size = {[ROW_SIZE] = form->width},
                                 .max_items = max_items,
                                 .values = values};
  return STATUS_OK;
}
