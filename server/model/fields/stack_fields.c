/* stack_fields: the table of the fields that requests to models have, which of them belong to which
 * request, and readers of small values. stack_names and stack_choice_fields have the others. */
#include "server/model/fields/stack_fields.h"

#include <jansson.h>
#include <stddef.h>
#include <string.h>

#include "core/base/size.h"
#include "server/json/json_small.h"
#include "server/model/fields/stack_choice_fields.h"
#include "server/model/fields/stack_names.h"

/* --- small values --- */

static enum status read_pool(const json_t *value, const struct contract_field *field, void *to,
                             struct error *e) {
  for (unsigned i = 0; stack_pool_names[i]; i++) {
    if (!json_small_is_text(value, stack_pool_names[i])) continue;
    *(enum stack_pool *)to = (enum stack_pool)i;
    return STATUS_OK;
  }
  return error_at(e, field->pointer,
                  "pool must be \"none\", \"cls\", \"mean\", \"max\", \"last\", "
                  "\"mean_sqrt_len\", \"weighted_mean\" or \"pooler\"");
}

static enum status read_function(const json_t *value, const struct contract_field *field, void *to,
                                 struct error *e) {
  for (unsigned i = 0; whole_function_names[i]; i++) {
    if (!json_small_is_text(value, whole_function_names[i])) continue;
    *(enum stack_function *)to = (enum stack_function)i;
    return STATUS_OK;
  }
  return error_at(e, field->pointer, "function must be \"none\", \"softmax\" or \"sigmoid\"");
}

static enum status read_top(const json_t *value, const struct contract_field *field, void *to,
                            struct error *e) {
  if (!json_is_integer(value) || json_integer_value(value) < 0 ||
      json_integer_value(value) > STACK_TOP_MAX)
    return error_at(e, field->pointer, "%s must be an integer from 0 to %d", contract_name(field),
                    STACK_TOP_MAX);
  *(size_t *)to = (size_t)json_integer_value(value);
  return STATUS_OK;
}

enum status stack_fields_truncate(const json_t *value, const struct contract_field *field, void *to,
                                  struct error *e) {
  const bool number = json_is_integer(value) && json_integer_value(value) >= 1;
  if (!json_is_boolean(value) && !number)
    return error_at(e, field->pointer,
                    "truncate must be true or false, or an integer of at least 1");
  *(size_t *)to = number ? (size_t)json_integer_value(value) : json_is_true(value) ? SIZE_MAX : 0;
  return STATUS_OK;
}

/* --- the table --- */

enum { ANY_SIZE, ROW_SIZE }; /* ROW_SIZE: the model's width */

/* The longest text of names of parts, or of masks of heads, in bytes: room for some hundred layers.
 * In a larger model `*` names all, and further names need several requests. */
enum { NAMES_LONGEST = 32 * 1024 };

#define NAMED(name)     .pointer = "/" name, .name_length = sizeof name - 1
#define VALUE_AT(value) .at = offsetof(struct stack_values, value)

/* INTEGERS: a list of integers, or a list for each item of a batch. LENGTHS: an integer for each
 * item. */
#define INTEGERS .rule = {.type = TENSOR_INTEGER, .depth_min = 1, .depth_max = 2, .ragged_depth = 2}
#define LENGTHS \
  .rule = {.type = TENSOR_INTEGER, .nullable = true, .depth_max = 1, .ragged_depth = 2}

/* The error for a field of another endpoint. */
#define OF_ENCODE .elsewhere = "it is supported by POST /v1/models/NAME/encode"
#define OF_ENCODED                                                        \
  .elsewhere = "it is supported by POST /v1/models/NAME/encode and POST " \
               "/v1/models/NAME/classify: use \"text\" for texts"
#define OF_CLASSIFY .elsewhere = "it is supported by POST /v1/models/NAME/classify"
#define OF_BOTH \
  .elsewhere = "it is supported by POST /v1/models/NAME/score and POST /v1/models/NAME/generate"
#define OF_SCORE    .elsewhere = "it is supported by POST /v1/models/NAME/score"
#define OF_GENERATE .elsewhere = "it is supported by POST /v1/models/NAME/generate"
#define OF_STREAMS \
  .elsewhere = "it is supported by POST /v1/models/NAME/generate and POST /v1/models/NAME/heads"
#define OF_HEADS .elsewhere = "it is supported by POST /v1/models/NAME/heads"
#define OF_ANSWERS                                                                         \
  .elsewhere = "POST /v1/models/NAME/heads returns only a number for each head: use POST " \
               "/v1/models/NAME/encode or POST /v1/models/NAME/score"
#define SCORED "use \"targets\" of POST /v1/models/NAME/score, without the decoder start token"
#define OF_TARGETS                                                                                 \
  .elsewhere = "it is supported by POST /v1/models/NAME/score, and for encoder-decoder models by " \
               "POST /v1/models/NAME/generate"

#define CHOSEN(word) \
  { NAMED(#word), OF_GENERATE, .read = stack_read_option, VALUE_AT(choice.word) }
#define OPTION(id, word, ...) [STACK_FIELD_##id] = CHOSEN(word),

const struct contract_field stack_fields[STACK_FIELD_COUNT] = {
    [STACK_FIELD_TOKENS] = {NAMED("tokens"), INTEGERS},
    [STACK_FIELD_EMBEDDINGS] = {NAMED("embeddings"),
                                .rule = {.type = TENSOR_FLOAT,
                                         .depth_min = 2,
                                         .depth_max = 3,
                                         .ragged_depth = 3,
                                         .width_name = "width"},
                                .width = ROW_SIZE, OF_ENCODE ": use \"tokens\" for token ids"},
    [STACK_FIELD_VALID_LENS] = {NAMED("valid_lens"), LENGTHS},
    [STACK_FIELD_TOKEN_TYPES] = {NAMED("token_types"), INTEGERS, OF_ENCODE},
    [STACK_FIELD_ATTENTION_MASK] = {NAMED("attention_mask"), INTEGERS,
                                    .elsewhere =
                                        "use \"valid_lens\", the number of valid tokens of each "
                                        "item: attention_mask is an input of /v2 only"},
    [STACK_FIELD_TARGETS] = {NAMED("targets"), INTEGERS, OF_TARGETS},
    [STACK_FIELD_TARGET_LENS] = {NAMED("target_lens"), LENGTHS, OF_TARGETS},
    [STACK_FIELD_DECODER_TOKENS] = {NAMED("decoder_input_ids"), INTEGERS, .elsewhere = SCORED},
    [STACK_FIELD_DECODER_MASK] =
        {NAMED("decoder_attention_mask"), INTEGERS,
         .elsewhere = "use \"target_lens\", the number of valid targets of each item"},

    [STACK_FIELD_POOL] = {NAMED("pool"), OF_ENCODE, .read = read_pool, VALUE_AT(pool)},
    [STACK_FIELD_DIMENSIONS] = {NAMED("dimensions"), OF_ENCODE, .read = stack_read_number,
                                VALUE_AT(dimensions)},
    [STACK_FIELD_NORMALIZE] = {NAMED("normalize"), OF_ENCODE, .read = contract_read_flag,
                               VALUE_AT(normalize)},
    [STACK_FIELD_RETURN_TOP] = {NAMED("return_top"), OF_BOTH, .read = read_top, VALUE_AT(top)},
    [STACK_FIELD_RETURN_LENS] = {NAMED("return_lens"), OF_SCORE, .read = read_top,
                                 VALUE_AT(logit_lens)},
    [STACK_FIELD_RETURN_HIDDEN] = {NAMED("return_hidden"), OF_ANSWERS, .read = stack_names_hidden,
                                   .longest = NAMES_LONGEST},
    [STACK_FIELD_RETURN_ATTENTION] = {NAMED("return_attention"), OF_ANSWERS,
                                      .read = stack_names_attention, .longest = NAMES_LONGEST},
    [STACK_FIELD_HEAD_MASK] = {NAMED("head_mask"), .read = stack_names_head_mask,
                               .longest = NAMES_LONGEST},
    [STACK_FIELD_ENCODING_FORMAT] = {NAMED("encoding_format"), OF_ANSWERS,
                                     .read = contract_read_base64, VALUE_AT(base64)},
    [STACK_FIELD_TRACE] = {NAMED("trace"),
                           .elsewhere =
                               "it is supported by POST /v1/models/NAME/encode and POST "
                               "/v1/models/NAME/score (send generated tokens as \"targets\")",
                           .read = stack_names_trace},
    [STACK_FIELD_TEXT] = {NAMED("text"), .texts = true},
    [STACK_FIELD_SPECIAL_TOKENS] = {NAMED("special_tokens"), .read = contract_read_flag,
                                    VALUE_AT(special)},
    [STACK_FIELD_TRUNCATE] = {NAMED("truncate"), .read = stack_fields_truncate, VALUE_AT(truncate)},
    [STACK_FIELD_RETURN_TOKENS] = {NAMED("return_tokens"), OF_ANSWERS, .read = contract_read_flag,
                                   VALUE_AT(tokens)},
    [STACK_FIELD_MAX_TOKENS] = {NAMED("max_tokens"), OF_GENERATE, .read = stack_read_number,
                                VALUE_AT(max_tokens)},
    [STACK_FIELD_STOP_TOKENS] = {NAMED("stop_tokens"), OF_GENERATE, .read = stack_read_stops,
                                 .longest = NAMES_LONGEST},
    [STACK_FIELD_BEAMS] = {NAMED("beams"), OF_GENERATE, .read = stack_read_beams,
                           VALUE_AT(choice.beams)},
    [STACK_FIELD_RETURNS] = {NAMED("returns"), OF_GENERATE, .read = stack_read_number,
                             VALUE_AT(returns)},
    [STACK_FIELD_LENGTH_PENALTY] = {NAMED("length_penalty"), OF_GENERATE, .read = stack_read_power,
                                    VALUE_AT(choice.length_penalty)},
    [STACK_FIELD_EARLY_STOPPING] = {NAMED("early_stopping"), OF_GENERATE, .read = stack_read_early,
                                    VALUE_AT(choice.early)},
    [STACK_FIELD_RETURN_SEARCH] = {NAMED("return_search"), OF_GENERATE, .read = contract_read_flag,
                                   VALUE_AT(search)},
    [STACK_FIELD_SEED] = {NAMED("seed"), OF_GENERATE, .read = contract_read_seed,
                          VALUE_AT(choice.seed)},
    [STACK_FIELD_LOGIT_BIAS] = {NAMED("logit_bias"), OF_GENERATE, .read = stack_read_bias,
                                .longest = STACK_BIAS_LONGEST},
    [STACK_FIELD_IGNORE_EOS] = {NAMED("ignore_eos"), OF_GENERATE, .read = contract_read_flag,
                                VALUE_AT(ignores_end)},
    [STACK_FIELD_BANNED_TOKENS] = {NAMED("banned_tokens"), OF_GENERATE, .read = stack_read_banned,
                                   .longest = NAMES_LONGEST},
    [STACK_FIELD_STREAM] = {NAMED("stream"), OF_STREAMS, .read = contract_read_flag,
                            VALUE_AT(stream)},
    [STACK_FIELD_FUNCTION] = {NAMED("function"), OF_CLASSIFY, .read = read_function,
                              VALUE_AT(function)},
    [STACK_FIELD_STOP] = {NAMED("stop"), OF_GENERATE, .read = stack_read_stop_texts,
                          .longest = STACK_STOPS_LONGEST},
    [STACK_FIELD_RETURN_TEXT] = {NAMED("return_text"), OF_GENERATE, .read = contract_read_flag,
                                 VALUE_AT(text)},
    [STACK_FIELD_ATTENTIONS] = {NAMED("attentions"), OF_HEADS, .read = stack_names_ablation,
                                .longest = NAMES_LONGEST},
    [STACK_FIELD_PROMPT] = {NAMED("prompt"), OF_ENCODED, .read = contract_read_text,
                            VALUE_AT(prompt), .longest = STACK_PROMPT_LONGEST},
    [STACK_FIELD_PROMPT_NAME] = {NAMED("prompt_name"), OF_ENCODED, .read = contract_read_text,
                                 VALUE_AT(prompt_name)},
    WHOLE_OPTIONS(OPTION)};

static const struct contract_input inputs[] = {
    {"input_ids", STACK_FIELD_TOKENS, DTYPE_I64, DTYPE_I32, .depth_min = 2},
    {"attention_mask", STACK_FIELD_ATTENTION_MASK, DTYPE_I64, DTYPE_I32, .depth_min = 2},
    {"token_type_ids", STACK_FIELD_TOKEN_TYPES, DTYPE_I64, DTYPE_I32, .depth_min = 2},
    {"inputs_embeds", STACK_FIELD_EMBEDDINGS, DTYPE_F32, DTYPE_F32, .depth_min = 3},
    {"decoder_input_ids", STACK_FIELD_DECODER_TOKENS, DTYPE_I64, DTYPE_I32, .depth_min = 2},
    {"decoder_attention_mask", STACK_FIELD_DECODER_MASK, DTYPE_I64, DTYPE_I32, .depth_min = 2},
};
enum { INPUTS = sizeof inputs / sizeof *inputs, INPUTS_OF_ONE = INPUTS - 2 };

static const char *const outputs[STACK_V2_OUTPUTS] = {
    [STACK_V2_LAST_HIDDEN_STATE] = "last_hidden_state",
    [STACK_V2_POOLER_OUTPUT] = "pooler_output",
    [STACK_V2_LOGITS] = "logits",
    [STACK_V2_ENCODER_ROWS] = "encoder_last_hidden_state"};

static const struct contract_v2 protocol = {
    .input = inputs, .inputs = INPUTS_OF_ONE, .output = outputs, .outputs = STACK_V2_ENCODER_ROWS};
static const struct contract_v2 protocol_of_pairs = {
    .input = inputs, .inputs = INPUTS, .output = outputs, .outputs = STACK_V2_OUTPUTS};

const char *stack_output_name(enum stack_v2_output output) { return outputs[output]; }

const char *stack_field_shown(enum stack_field field, enum body_form form) {
  for (size_t i = 0; form == BODY_V2 && i < INPUTS; i++)
    if (inputs[i].field == (unsigned)field) return inputs[i].name;
  return stack_field_name(field);
}

/* Names of other services and libraries, and what to send instead. */
static const char model_in_path[] =
    "name the model in the path: POST /v1/models/NAME/encode (GET /v1/models lists all models)";
static const char tokens_instead[] = "use \"text\" for texts and \"tokens\" for token ids";
static const char one_attention[] =
    "use POST /v1/models/NAME/layers/encoder.0.self/attention for a single attention of this model";
static const char by_names[] = "layers are named in \"return_hidden\" and \"return_attention\"";
static const char generated[] = "POST /v1/models/NAME/generate calls it \"max_tokens\"";
static const char classified[] = "POST /v1/models/NAME/classify calls it \"function\"";
static const char greedy[] =
    "set \"temperature\" above 0 for sampling, or to 0 for greedy decoding";
static const char searched[] = "POST /v1/models/NAME/generate calls it \"beams\"";
static const char grouped[] = "beam groups are not supported: POST /v1/models/NAME/generate "
                              "supports \"beams\", \"length_penalty\" and \"early_stopping\"";
static const char begun[] =
    "the model's own start token applies (GET /v1/models/NAME: \"tokens\"); send the tokens after "
    "it, such as a language token, as \"targets\"";
static const char closed[] = "the model's own token applies (GET /v1/models/NAME: \"tokens\")";
static const char ended[] =
    "the model's own end tokens apply, and \"stop_tokens\" of POST /v1/models/NAME/generate";
static const char scored[] = SCORED;
static const char return_top[] = "use \"return_top\" of POST /v1/models/NAME/score";
static const struct contract_stray strays[] = {
    {"model", model_in_path},
    {"model_name", model_in_path},
    {"input_ids", "use \"tokens\""},
    {"input", tokens_instead},
    {"inputs", tokens_instead},
    {"texts", tokens_instead},
    {"sentences", tokens_instead},
    {"add_special_tokens", "use \"special_tokens\""},
    {"truncation", "use \"truncate\""},
    {"inputs_embeds", "use \"embeddings\""},
    {"token_type_ids", "use \"token_types\""},
    {"mask", "use \"valid_lens\", the number of valid tokens of each item"},
    {"padding_mask", "use \"valid_lens\", the number of valid tokens of each item"},
    {"queries", one_attention},
    {"keys", one_attention},
    {"values", one_attention},
    {"causal",
     "the model defines the attention mask: bidirectional in an encoder, causal in a decoder"},
    {"layer", by_names},
    {"layers", by_names},
    {"output_hidden_states", "use \"return_hidden\": true for the last, \"all\", or names"},
    {"output_attentions", "use \"return_attention\": true, \"average\", or names"},
    {"pooling", "use \"pool\""},
    {"pooling_mode", "use \"pool\""},
    {"normalize_embeddings", "use \"normalize\""},
    {"truncate_dim", "use \"dimensions\""},
    {"function_to_apply", classified},
    {"raw_scores", classified},
    {"max_new_tokens", generated},
    {"max_length", generated},
    {"max_completion_tokens", generated},
    {"min_new_tokens", "POST /v1/models/NAME/generate calls it \"min_tokens\""},
    {"min_length", "POST /v1/models/NAME/generate calls it \"min_tokens\""},
    {"n", "POST /v1/models/NAME/generate calls it \"returns\""},
    {"num_return_sequences", "POST /v1/models/NAME/generate calls it \"returns\""},
    {"do_sample", greedy},
    {"stop_sequences", "POST /v1/models/NAME/generate calls it \"stop\""},
    {"stop_strings", "POST /v1/models/NAME/generate calls it \"stop\""},
    {"stop_token_ids", ended},
    {"eos_token_id", ended},
    {"no_repeat_ngram_size", "POST /v1/models/NAME/generate calls it \"no_repeat_ngram\""},
    {"bad_words_ids", "POST /v1/models/NAME/generate calls it \"banned_tokens\""},
    {"suppress_tokens", "POST /v1/models/NAME/generate calls it \"banned_tokens\""},
    {"streaming", "POST /v1/models/NAME/generate calls it \"stream\""},
    {"num_beams", searched},
    {"beam_size", searched},
    {"num_beam_groups", grouped},
    {"diversity_penalty", grouped},
    {"decoder_start_token_id", begun},
    {"bos_token_id", begun},
    {"forced_bos_token_id", begun},
    {"forced_begin", begun},
    {"begin", begun},
    {"tgt_lang", begun},
    {"forced_eos_token_id", closed},
    {"forced_end", closed},
    {"labels", scored},
    {"target_ids", scored},
    {"completion", scored},
    {"continuation", scored},
    {"logprobs", return_top},
    {"top_logprobs", return_top},
    {"prompt_logprobs", return_top},
};

/* --- sizes and costs --- */

/* The array that says which items there are, and the depth of one item in it; NULL: none has been
 * read. */
static const struct tensor *find_rows(const struct contract_reading *r, unsigned *depth) {
  const struct tensor *tokens = r->tensor[STACK_FIELD_TOKENS];
  *depth = tokens ? 1 : 2;
  return tokens ? tokens : r->tensor[STACK_FIELD_EMBEDDINGS];
}

static size_t max_count(const struct contract_reading *r, unsigned field) {
  unsigned depth;
  const struct tensor *t = find_rows(r, &depth);
  if (!t) return 0;
  if (field == STACK_FIELD_VALID_LENS || field == STACK_FIELD_TARGET_LENS)
    return stack_is_unbatched(t, depth) ? 1 : size_max(t->elements, 1);
  if (field != STACK_FIELD_TOKEN_TYPES) return 0;
  return size_max(depth == 1 ? t->count : t->count / r->size[ROW_SIZE], 1);
}

enum { ARRAY_NS = 45 }; /* to plan one item of one array of the response */

/* Nanoseconds to prepare one side's layers for each item and to plan its arrays; `ablation`: and to
 * prepare a forward pass without each head. */
static uint64_t side_cost(const struct stack_side *s, size_t items, bool ablation) {
  enum { LAYER_NS = 300, ITEM_NS = 15, PASS_NS = 1000 };
  if (!s->stack) return 0;
  const size_t attentions = stack_form_attentions(s->form);
  size_t arrays = s->embedded;
  uint64_t heads = 0;
  for (size_t i = 0; i < attentions; i++) {
    arrays += s->wish[i].hidden + s->wish[i].input + (s->wish[i].weights != STACK_WEIGHTS_NONE);
    heads += ablation ? stack_side_shape(s, i)->heads : 0;
  }
  return LAYER_NS * (uint64_t)attentions +
         items * (ITEM_NS * (uint64_t)attentions + ARRAY_NS * arrays) +
         heads * (PASS_NS + ITEM_NS * (uint64_t)items);
}

uint64_t stack_sequences_cost(size_t texts, size_t each, size_t layers) {
  enum { SEQUENCE_NS = 10000, LAYER_NS = 1000, MANY = 1 << 20 /* more would be rejected */ };
  size_t sequences;
  if (!size_mul(texts, each, &sequences)) sequences = MANY;
  return size_min(sequences, MANY) * (uint64_t)(SEQUENCE_NS + LAYER_NS * layers);
}

static uint64_t plan_cost(const struct contract_reading *r) {
  const struct stack_values *v = r->values;
  unsigned depth;
  const struct tensor *t = find_rows(r, &depth);
  const size_t items = r->texts                       ? r->texts->items
                       : !t                           ? 0
                       : stack_is_unbatched(t, depth) ? 1
                                                      : t->elements;
  const bool ablation = !(r->contract->elsewhere >> STACK_FIELD_ATTENTIONS & 1);
  uint64_t cost = side_cost(&v->source, items, ablation) + side_cost(&v->main, items, ablation);
  if (r->texts) cost += CONTRACT_TEXT_NS * (uint64_t)v->prompt.length * items;
  if (v->logit_lens > 0) cost += ARRAY_NS * items * (v->main.form->layers + 1);
  if (!(r->contract->elsewhere >> STACK_FIELD_RETURNS & 1))
    cost +=
        stack_sequences_cost(items, size_max(v->returns, v->choice.beams), v->main.form->layers);
  return cost;
}

/* --- which fields belong to which request --- */

#define BIT(field)      (UINT64_C(1) << STACK_FIELD_##field)
#define OR_BIT(id, ...) | BIT(id)
#define CHOICE_BITS                                                                           \
  (BIT(MAX_TOKENS) | BIT(STOP_TOKENS) | BIT(BEAMS) | BIT(RETURNS) | BIT(LENGTH_PENALTY) |     \
   BIT(EARLY_STOPPING) | BIT(RETURN_SEARCH) | BIT(SEED) | BIT(LOGIT_BIAS) | BIT(IGNORE_EOS) | \
   BIT(BANNED_TOKENS) | BIT(STREAM) | BIT(STOP) | BIT(RETURN_TEXT) WHOLE_OPTIONS(OR_BIT))
#define POOL_BITS   (BIT(POOL) | BIT(DIMENSIONS) | BIT(NORMALIZE))
#define CLASS_BITS  BIT(FUNCTION)
#define READER_BITS (BIT(EMBEDDINGS) | BIT(TOKEN_TYPES))
#define TARGET_BITS (BIT(TARGETS) | BIT(TARGET_LENS))
#define V2_BITS     (BIT(ATTENTION_MASK) | BIT(DECODER_TOKENS) | BIT(DECODER_MASK))

#define CONTRACT                                                                     \
  .field = stack_fields, .arrays = STACK_FIELD_ARRAYS, .fields = STACK_FIELD_COUNT,  \
  .stray = strays, .strays = sizeof strays / sizeof *strays, .max_count = max_count, \
  .plan_cost = plan_cost

#define HEAD_BITS      BIT(ATTENTIONS)
#define PROMPT_BITS    (BIT(PROMPT) | BIT(PROMPT_NAME))
#define FOLLOWING_BITS (TARGET_BITS | BIT(RETURN_TOP) | BIT(RETURN_LENS) | CHOICE_BITS)
#define ENCODE_BITS    (V2_BITS | FOLLOWING_BITS | CLASS_BITS | HEAD_BITS)
/* OTHER_BITS: fields that neither /score nor /generate has. SCORE_BITS: fields of /score that have
 * no place in generated sequences. */
#define OTHER_BITS (V2_BITS | POOL_BITS | CLASS_BITS | HEAD_BITS | PROMPT_BITS)
#define SCORE_BITS (BIT(TRACE) | BIT(RETURN_LENS))

/* SHOWN_BITS: fields of results, which /heads does not return. */
#define SHOWN_BITS                                                                   \
  (BIT(RETURN_TOP) | BIT(RETURN_LENS) | BIT(RETURN_HIDDEN) | BIT(RETURN_ATTENTION) | \
   BIT(ENCODING_FORMAT) | BIT(TRACE) | BIT(RETURN_TOKENS))
#define ABLATION_BITS(bits) (((bits) | SHOWN_BITS) & ~(HEAD_BITS | BIT(STREAM)))

/* An encoder-decoder model scores and generates from anything that its encoder reads, and from
 * targets: the contracts named `_pair`. */
static const struct contract encode = {CONTRACT, .v2 = &protocol, .elsewhere = ENCODE_BITS};
static const struct contract classify = {CONTRACT, .elsewhere = V2_BITS | FOLLOWING_BITS |
                                                                POOL_BITS | HEAD_BITS};
static const struct contract score = {CONTRACT,
                                      .elsewhere = OTHER_BITS | READER_BITS | CHOICE_BITS};
static const struct contract generate = {CONTRACT, .elsewhere = OTHER_BITS | READER_BITS |
                                                                TARGET_BITS | SCORE_BITS};
static const struct contract encode_pair = {CONTRACT, .v2 = &protocol_of_pairs,
                                            .elsewhere = ENCODE_BITS};
static const struct contract score_pair = {CONTRACT, .elsewhere = OTHER_BITS | CHOICE_BITS};
static const struct contract generate_pair = {CONTRACT, .elsewhere = OTHER_BITS | SCORE_BITS};
static const struct contract ablation_encoded = {CONTRACT, .elsewhere = ABLATION_BITS(ENCODE_BITS)};
static const struct contract ablation_scored = {
    CONTRACT, .elsewhere = ABLATION_BITS(OTHER_BITS | READER_BITS | CHOICE_BITS)};
static const struct contract ablation_scored_pair = {CONTRACT, .elsewhere = ABLATION_BITS(
                                                                   OTHER_BITS | CHOICE_BITS)};

_Static_assert((int)STACK_FIELD_ARRAYS <= (int)CONTRACT_ARRAYS_MAX, "the arrays have room");
_Static_assert((int)STACK_FIELD_COUNT <= (int)CONTRACT_FIELDS_MAX, "a bit for each field");
_Static_assert((int)INPUTS <= (int)CONTRACT_INPUTS_MAX, "the inputs have room");
_Static_assert((int)STACK_V2_OUTPUTS <= (int)CONTRACT_OUTPUTS_MAX, "the outputs have room");

/* --- a request to a model --- */

void stack_fields_prompt(struct contract_text *to, const json_t *text) {
  to->bytes = json_string_value(text);
  to->length = json_string_length(text);
}

/* Makes a side that goes through this stack, or through none, without wishes. */
static enum status init_side(struct stack_side *s, const struct stack *stack, struct arena *a,
                             struct error *e) {
  *s = (struct stack_side){.stack = stack};
  if (!stack) return STATUS_OK;
  s->form = stack_form(stack);
  const size_t attentions = stack_form_attentions(s->form);
  s->wish = arena_alloc(a, attentions, sizeof *s->wish, e);
  for (size_t i = 0; s->wish && i < attentions; i++) s->wish[i] = (struct stack_wish){0};
  return e->status;
}

static const struct contract *find_contract(const struct body_terms *terms, bool both) {
  static const struct contract *const contracts[] = {[ASK_ENCODE] = &encode,
                                                     [ASK_CLASSIFY] = &classify,
                                                     [ASK_SCORE] = &score,
                                                     [ASK_GENERATE] = &generate};
  static const struct contract *const of_pairs[] = {
      [ASK_ENCODE] = &encode_pair, [ASK_SCORE] = &score_pair, [ASK_GENERATE] = &generate_pair};
  if (!terms->ablation) return (both ? of_pairs : contracts)[terms->ask];
  if (terms->ask == ASK_ENCODE) return &ablation_encoded;
  return both ? &ablation_scored_pair : &ablation_scored;
}

enum status stack_fields_init(struct contract_reading *r, struct stack_values *values,
                              const struct body_terms *terms, const struct whole *w,
                              size_t max_items, struct arena *a, struct error *e) {
  const bool encodes = terms->ask == ASK_ENCODE, classifies = terms->ask == ASK_CLASSIFY;
  const bool both = whole_is_pair(w) && (!body_ask_encodes(terms->ask) || terms->form == BODY_V2);
  *values = (struct stack_values){.arena = a,
                                  .pool = encodes      ? w->pool
                                          : classifies ? STACK_POOL_CLASSES
                                                       : STACK_POOL_NONE,
                                  .normalize = encodes && w->normalize,
                                  .function = w->function,
                                  .special = true,
                                  .truncate = w->truncate,
                                  .prompt = {.arena = a},
                                  .prompt_name = {.arena = a},
                                  .choice = w->choice,
                                  .usual_tokens = w->max_tokens,
                                  .returns = 1};
  if (encodes || classifies) stack_fields_prompt(&values->prompt, w->prompt);
  if (init_side(&values->source, both ? w->encoder : NULL, a, e) ||
      init_side(&values->main, both ? w->decoder : whole_reader(w), a, e))
    return e->status;
  *r = (struct contract_reading){.contract = find_contract(terms, both),
                                 .size = {[ROW_SIZE] = stack_form(whole_reader(w))->width},
                                 .max_items = max_items,
                                 .prompt = w->longest_prompt,
                                 .values = values};
  return STATUS_OK;
}
