/* stack_fields: the table of the fields that requests to models have, which of them belong to which
 * request, and readers of small values. stack_names and stack_choice_fields have the others. */
#include "server/model/fields/stack_fields.h"

#include <jansson.h>
#include <stddef.h>
#include <string.h>

#include "core/base/size.h"
#include "server/model/fields/stack_choice_fields.h"
#include "server/model/fields/stack_names.h"
#include "server/model/fields/stack_positions.h"

/* --- small values --- */

/* A request that has some by default would have no results with none. */
static enum status read_top(const json_t *value, const struct contract_field *field, void *to,
                            struct error *e) {
  const size_t usual = *(const size_t *)to;
  return contract_integer(value, field, usual > 0, STACK_TOP_MAX, to, e);
}

static enum status read_max_answer(const json_t *value, const struct contract_field *field,
                                   void *to, struct error *e) {
  return contract_integer(value, field, 1, STACK_ANSWER_MAX, to, e);
}

static enum status read_stride(const json_t *value, const struct contract_field *field, void *to,
                               struct error *e) {
  return contract_integer(value, field, 0, INT64_MAX, to, e);
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

static const char *const groupings[] = {
    [STACK_GROUP_NONE] = "none",   [STACK_GROUP_SIMPLE] = "simple",
    [STACK_GROUP_FIRST] = "first", [STACK_GROUP_AVERAGE] = "average",
    [STACK_GROUP_MAX] = "max",     NULL};

/* --- the table --- */

enum { ANY_SIZE, ROW_SIZE }; /* ROW_SIZE: the model's width */

/* The longest text of names of parts, or of masks of heads, in bytes: room for some hundred layers.
 * In a larger model `*` names all, and further names need several requests. */
enum { NAMES_LONGEST = 32 * 1024, POSITIONS_LONGEST = 256 * 1024 };

/* INTEGERS: a list of integers, or a list for each item of a batch. LENGTHS: an integer for each
 * item. ROWS: a list of rows, or one for each item. */
#define INTEGERS .rule = {.type = TENSOR_INTEGER, .depth_min = 1, .depth_max = 2, .ragged_depth = 2}
#define LENGTHS \
  .rule = {.type = TENSOR_INTEGER, .nullable = true, .depth_max = 1, .ragged_depth = 2}
#define ROWS                     \
  .rule = {.type = TENSOR_FLOAT, \
           .depth_min = 2,       \
           .depth_max = 3,       \
           .ragged_depth = 3,    \
           .width_name = "embedding width"}

/* The kinds of requests, and sets of them. An encoder-decoder model scores and generates from
 * anything that its encoder reads, and from targets: the kinds named PAIR. The importance of heads
 * (HEADS) is measured for the outputs of /encode or the scores of /score. */
enum {
  OF_ENCODE = 1 << 0,
  OF_CLASSIFY = 1 << 1,
  OF_SCORE = 1 << 2,
  OF_GENERATE = 1 << 3,
  OF_SCORE_PAIR = 1 << 4,
  OF_GENERATE_PAIR = 1 << 5,
  OF_HEADS_ENCODE = 1 << 6,
  OF_HEADS_SCORE = 1 << 7,
  OF_HEADS_SCORE_PAIR = 1 << 8,
  OF_FILL = 1 << 9,
  OF_CLASSIFY_TOKENS = 1 << 10,
  OF_QUESTION = 1 << 11,
  OF_V2 = 1 << 12, /* none: only the Open Inference Protocol has it, as an input */

  OF_ALL = 0,
  OF_SCORES = OF_SCORE | OF_SCORE_PAIR,
  OF_SEQUENCES = OF_GENERATE | OF_GENERATE_PAIR,
  OF_HEADS = OF_HEADS_ENCODE | OF_HEADS_SCORE | OF_HEADS_SCORE_PAIR,
  OF_CLASSES = OF_CLASSIFY | OF_CLASSIFY_TOKENS,
  OF_CLASSIFIERS = OF_CLASSES | OF_QUESTION,
  OF_RESULTS = OF_ENCODE | OF_CLASSIFIERS | OF_FILL | OF_SCORES | OF_SEQUENCES,
  OF_READERS = OF_ENCODE | OF_CLASSIFIERS | OF_FILL | OF_SCORE_PAIR | OF_GENERATE_PAIR |
               OF_HEADS_ENCODE | OF_HEADS_SCORE_PAIR,
  OF_POOLING = OF_ENCODE | OF_HEADS_ENCODE,
  OF_PROMPTS = OF_ENCODE | OF_CLASSIFY | OF_HEADS_ENCODE,
  OF_TARGETS = OF_SCORES | OF_GENERATE_PAIR | OF_HEADS_SCORE | OF_HEADS_SCORE_PAIR,
};

#define MODEL_PATH "POST /v1/models/NAME/"
static const struct contract_request requests[] = {{OF_ENCODE, MODEL_PATH "encode"},
                                                   {OF_CLASSIFY, MODEL_PATH "classify"},
                                                   {OF_CLASSIFY_TOKENS,
                                                    MODEL_PATH "classify_tokens"},
                                                   {OF_QUESTION, MODEL_PATH "question"},
                                                   {OF_FILL, MODEL_PATH "fill"},
                                                   {OF_SCORE, MODEL_PATH "score"},
                                                   {OF_GENERATE, MODEL_PATH "generate"},
                                                   {OF_HEADS, MODEL_PATH "heads"},
                                                   {0, NULL}};

/* Errors that say more than the paths that have the field. */
#define AT(path)   "it is supported by " MODEL_PATH path
#define AND(path)  " and " MODEL_PATH path
#define PROMPTS_AT AT("encode") AND("classify") ": use \"text\" for texts"
#define TARGETS_AT AT("score") ", and for encoder-decoder models by " MODEL_PATH "generate"
#define NO_RESULTS                                                                  \
  "POST /v1/models/NAME/heads returns only a number for each head: use " MODEL_PATH \
  "encode or " MODEL_PATH "score"
#define TRANSLATED "it is supported by " MODEL_PATH "generate, for encoder-decoder models"
#define SCORED     "use \"targets\" of POST /v1/models/NAME/score, without the decoder start token"

#define NAMED(name)     .pointer = "/" #name, .name_length = sizeof #name - 1
#define VALUE_AT(value) .at = offsetof(struct stack_values, value)

#define ROW(id, name, ...) [STACK_FIELD_##id] = {NAMED(name), __VA_ARGS__},
const struct contract_field stack_fields[STACK_FIELD_COUNT] = {
#define STACK_ARRAY(id, name, requests, ...) ROW(id, name, .of = requests, __VA_ARGS__)
#define STACK_VALUE(id, name, requests, type, member, reader, ...) \
  ROW(id, name, .of = requests, .read = reader, VALUE_AT(member), __VA_ARGS__)
#define STACK_VALUES(id, name, requests, reader, ...) \
  ROW(id, name, .of = requests, .read = reader, __VA_ARGS__)
#define STACK_OPTION(id, word, ...) \
  ROW(id, word, .of = OF_SEQUENCES, .read = stack_read_option, VALUE_AT(choice.word))
#define STACK_OPTIONS(list) list(STACK_OPTION)
#include "server/model/fields/stack_fields.def"
};

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
static const char translated[] = "POST /v1/models/NAME/generate calls it \"target_language\"";
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
    {"is_query", "use \"role\": \"query\" or \"document\""},
    {"input_type", "use \"role\": \"query\" or \"document\""},
    {"task", "use \"role\": \"query\" or \"document\""},
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
    {"tgt_lang", translated},
    {"src_lang", "POST /v1/models/NAME/generate calls it \"source_language\""},
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
  const bool ablation = r->contract->request & OF_HEADS;
  uint64_t cost = side_cost(&v->source, items, ablation) + side_cost(&v->main, items, ablation);
  if (r->texts) cost += CONTRACT_TEXT_NS * (uint64_t)v->prompt.length * items;
  if (v->logit_lens > 0) cost += ARRAY_NS * items * (v->main.form->layers + 1);
  if (r->contract->request & OF_SEQUENCES)
    cost +=
        stack_sequences_cost(items, size_max(v->returns, v->choice.beams), v->main.form->layers);
  return cost;
}

/* --- contracts --- */

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

#define CONTRACT(of)                                                                               \
  .field = stack_fields, .arrays = STACK_FIELD_ARRAYS, .fields = STACK_FIELD_COUNT, .request = of, \
  .requests = requests, .stray = strays, .strays = sizeof strays / sizeof *strays,                 \
  .max_count = max_count, .plan_cost = plan_cost

/* Returns the contract; `both`: a request to an encoder-decoder model goes through both stacks. */
static const struct contract *find_contract(const struct body_terms *terms, bool both) {
  static const struct contract alone[] = {[ASK_ENCODE] = {CONTRACT(OF_ENCODE), .v2 = &protocol},
                                          [ASK_CLASSIFY] = {CONTRACT(OF_CLASSIFY)},
                                          [ASK_CLASSIFY_TOKENS] = {CONTRACT(OF_CLASSIFY_TOKENS)},
                                          [ASK_QUESTION] = {CONTRACT(OF_QUESTION)},
                                          [ASK_FILL] = {CONTRACT(OF_FILL)},
                                          [ASK_SCORE] = {CONTRACT(OF_SCORE)},
                                          [ASK_GENERATE] = {CONTRACT(OF_GENERATE)}};
  static const struct contract pair[] = {[ASK_ENCODE] = {CONTRACT(OF_ENCODE),
                                                         .v2 = &protocol_of_pairs},
                                         [ASK_SCORE] = {CONTRACT(OF_SCORE_PAIR)},
                                         [ASK_GENERATE] = {CONTRACT(OF_GENERATE_PAIR)}};
  static const struct contract heads[] = {
      [ASK_ENCODE] = {CONTRACT(OF_HEADS_ENCODE)}, [ASK_SCORE] = {CONTRACT(OF_HEADS_SCORE)}};
  static const struct contract heads_pair = {CONTRACT(OF_HEADS_SCORE_PAIR)};
  if (!terms->ablation) return &(both ? pair : alone)[terms->ask];
  return both ? &heads_pair : &heads[terms->ask];
}

/* Defaults of return_top of /fill and /question, and of the latter's lengths in tokens. */
enum { FILL_TOP = 5, QUESTION_TOP = 1, MAX_ANSWER = 30, STRIDE = 128 };

enum status stack_fields_init(struct contract_reading *r, struct stack_values *values,
                              const struct body_terms *terms, const struct whole *w,
                              size_t max_items, struct arena *a, struct error *e) {
  const bool encodes = terms->ask == ASK_ENCODE, classifies = body_ask_classifies(terms->ask);
  /* The importance of heads is measured for the rows of a model whose embeddings are not dense. */
  const bool weighs = terms->ablation && !stack_pool_is_dense(w->pool);
  const bool both = whole_is_pair(w) && (!body_ask_encodes(terms->ask) || terms->form == BODY_V2);
  *values = (struct stack_values){.arena = a,
                                  .pool = encodes && !weighs ? w->pool : STACK_POOL_NONE,
                                  .classifies = classifies,
                                  .normalize = encodes && w->normalize,
                                  .function = w->function,
                                  .top = terms->ask == ASK_FILL       ? FILL_TOP
                                         : terms->ask == ASK_QUESTION ? QUESTION_TOP
                                                                      : 0,
                                  .max_answer = MAX_ANSWER,
                                  .stride = STRIDE,
                                  .special = true,
                                  .truncate = w->truncate,
                                  .prompt = {.arena = a},
                                  .prompt_name = {.arena = a},
                                  .source_language = {.arena = a},
                                  .target_language = {.arena = a},
                                  .choice = w->choice,
                                  .usual_tokens = w->max_tokens,
                                  .advice = "shorten the text or set \"truncate\": true",
                                  .returns = 1};
  if (encodes || terms->ask == ASK_CLASSIFY) stack_fields_prompt(&values->prompt, w->prompt);
  if (init_side(&values->source, both ? w->encoder : NULL, a, e) ||
      init_side(&values->main, both ? w->decoder : whole_reader(w), a, e))
    return e->status;
  *r = (struct contract_reading){.contract = find_contract(terms, both),
                                 .size = {[ROW_SIZE] =
                                              stack_form_embedded(stack_form(whole_reader(w)))},
                                 .max_items = max_items,
                                 .prompt = w->longest_prompt,
                                 .values = values};
  return STATUS_OK;
}
