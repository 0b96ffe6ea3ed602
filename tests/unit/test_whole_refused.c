/* test_whole_refused: definitions and files of whole models that are not served, and why not. */
#include "config/family/whole_type.h"
#include "tests/support/whole_place.h"

/* The config.json of a golden model, with these members, is refused. */
static void config_is_refused(const struct place *p, const char *golden, const char *change,
                              const char *detail) {
  whole_place_tensors(p, golden, NULL);
  whole_place_config(p, golden, change);
  whole_place_refused(p, "", detail);
}

static void tensors_are_refused(const struct place *p, const char *golden,
                                const struct whole_edit *edit, const char *detail) {
  whole_place_tensors(p, golden, edit);
  whole_place_config(p, golden, "{}");
  whole_place_refused(p, "", detail);
}

static void definitions(void **unused) {
  (void)unused;
  ill("{\"transformer\":1}", "transformer: needs the path of a folder");
  ill("{\"transformer\":\"\"}", "transformer: needs a path");
  ill("{\"transformer\":{}}", "transformer: needs the path of a folder");
  ill("{\"transformer\":{\"seed\":1}}", "transformer: unknown key \"seed\"");
  ill("{\"transformer\":{\"builtin\":\"sart\"}}",
      "transformer: builtin: there is no \"sart\" (did you mean \"sort\"?)");
  ill("{\"transformer\":{\"builtin\":1}}", "transformer: builtin: must be a name");
  ill("{\"transformer\":{\"builtin\":\"sort\",\"random\":{\"seed\":1}}}",
      "transformer: random and builtin cannot be combined");
  ill("{\"transformer\":{\"random\":{\"sed\":1}}}", "transformer: random: needs {\"seed\": n}");
  ill("{\"transformer\":\"x\",\"head\":1}", "unknown key \"head\" (did you mean \"heads\"?)");
  ill("{\"transformer\":\"x\",\"checkpoint\":\"y\"}", "unknown key \"checkpoint\"");
  ill("{\"transfomer\":\"x\"}", "unknown key \"transfomer\" (did you mean \"transformer\"?)");
  ill("{\"transformer\":\"nowhere\"}", "nowhere");
  ill("{\"transformer\":\"x\",\"kind\":\"bert\"}", "kind: \"bert\" is not one of encoder, decoder");
  ill("{\"transformer\":\"x\",\"heads\":0}", "heads: 0 is outside 1 to 4096");
  ill("{\"transformer\":\"x\",\"norm\":\"mid\"}", "norm: \"mid\" is not one of post, pre");
  ill("{\"transformer\":\"x\",\"norm_eps\":0}", "norm_eps: needs a number from 1e-30 to 1");
  ill("{\"transformer\":\"x\",\"activation\":\"tanh\"}", "activation: \"tanh\" is not one of relu");
  ill("{\"transformer\":\"x\",\"positions\":\"alib\"}", "positions: \"alib\" is not one of none");
  static const char *const sets[] = {"[]",
                                     "[\"learned\"]",
                                     "[\"learned\",\"sinusoid\"]",
                                     "[\"none\",\"relative\"]",
                                     "[\"learned\",1]",
                                     "[\"learned\",\"relative\",\"rotary\"]"};
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
    char definition[100];
    snprintf(definition, sizeof definition, "{\"transformer\":\"x\",\"positions\":%s}", sets[i]);
    ill(definition, "positions: a list needs sinusoid or learned, and rotary, relative or alibi");
  }
  ill("{\"transformer\":\"x\",\"begin\":-1}", "begin: needs a token");
  ill("{\"transformer\":\"x\",\"end\":[1,null]}", "end: null is no token of a list");
  ill("{\"transformer\":\"x\",\"end\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}",
      "end: 17 tokens are more than 16");
  ill("{\"transformer\":\"x\",\"weights\":\"int8\"}",
      "weights: \"int8\" is not one of auto, float32");
  ill("{\"transformer\":\"x\",\"generate\":1}", "generate: needs an object");
  ill("{\"transformer\":\"x\",\"generate\":{\"max_new_tokens\":1}}",
      "generate: unknown key \"max_new_tokens\"; here it is \"max_tokens\"");
  ill("{\"transformer\":\"x\",\"generate\":{\"max_tokens\":0}}",
      "generate: max_tokens: 0 is outside");
  ill("{\"transformer\":\"x\",\"generate\":{\"temperature\":-1}}",
      "generate: temperature: -1 is not at least 0");
  ill("{\"transformer\":\"x\",\"generate\":{\"top_p\":1.5}}",
      "generate: top_p: 1.5 is not above 0 and at most 1");
  ill("{\"transformer\":\"x\",\"generate\":{\"top_p\":\"1\"}}", "generate: top_p: needs a number");
  ill("{\"transformer\":\"x\",\"generate\":{\"repetition_penalty\":0}}",
      "generate: repetition_penalty: 0 is not above 0");
  ill("{\"transformer\":\"x\",\"generate\":{\"frequency_penalty\":2.5}}",
      "generate: frequency_penalty: 2.5 is not at least -2 and at most 2");
  ill("{\"transformer\":\"x\",\"generate\":{\"banned_tokens\":1}}",
      "generate: banned_tokens: needs a list of tokens");
  ill("{\"transformer\":\"x\",\"generate\":{\"banned_tokens\":[-1]}}",
      "generate: banned_tokens: needs tokens");
  ill("{\"transformer\":\"x\",\"pool\":\"sum\"}", "pool: \"sum\" is not one of none, cls");
  ill("{\"transformer\":\"x\",\"encoder\":1}", "encoder: needs an object");
  ill("{\"transformer\":\"x\",\"encoder\":{\"width\":1}}", "encoder: unknown key \"width\"");
}

/* What the library calls otherwise is not told by the nearest name, but by what it is here. */
static void words_of_the_library(void **unused) {
  (void)unused;
  static const char *const words[][2] = {{"decoder_start_token_id", "\"begin\""},
                                         {"eos_token_id", "\"end\""},
                                         {"forced_bos_token_id", "\"forced_begin\""},
                                         {"num_beams", "\"beams\" in \"generate\""},
                                         {"beams", "\"beams\" in \"generate\""},
                                         {"d_model", "\"width\""},
                                         {"vocab_size", "\"vocabulary\""},
                                         {"num_hidden_layers", "\"layers\""},
                                         {"num_decoder_layers", "\"layers\" in \"decoder\""},
                                         {"encoder_ffn_dim", "\"feed_forward\" in \"encoder\""},
                                         {"decoder_attention_heads", "\"heads\" in \"decoder\""}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    char definition[128], detail[128];
    snprintf(definition, sizeof definition, "{\"transformer\":\"x\",\"%s\":1}", words[i][0]);
    snprintf(detail, sizeof detail, "unknown key \"%s\"; here it is %s", words[i][0], words[i][1]);
    ill(definition, detail);
  }
  ill("{\"transformer\":\"x\",\"generate\":{\"bad_words_ids\":[]}}",
      "generate: unknown key \"bad_words_ids\"; here it is \"banned_tokens\"");
  ill("{\"transformer\":\"x\",\"decoder\":{\"num_hidden_layers\":2}}",
      "decoder: unknown key \"num_hidden_layers\"; here it is \"layers\"");
  ill("{\"transformer\":\"x\",\"generate\":{\"top_x\":1}}",
      "generate: unknown key \"top_x\" (did you mean \"top_k\"?)");
}

#define DRAWN "{\"transformer\":{\"random\":{\"seed\":1}}"

static void drawn_ones(void **unused) {
  (void)unused;
  static const char *const keys[] = {"\"kind\":\"encoder\"", "\"layers\":1",
                                     "\"width\":6",          "\"heads\":2",
                                     "\"feed_forward\":4",   "\"vocabulary\":5"};
  static const char *const missing[] = {"kind: required",         "layers: required",
                                        "width: required",        "heads: required",
                                        "feed_forward: required", "vocabulary: required"};
  for (size_t i = 0; i < 6; i++) {
    char definition[300] = DRAWN;
    for (size_t j = 0; j < 6; j++)
      if (j != i)
        snprintf(definition + strlen(definition), sizeof definition - strlen(definition), ",%s",
                 keys[j]);
    snprintf(definition + strlen(definition), sizeof definition - strlen(definition), "}");
    ill(definition, missing[i]);
  }
#define WHOLE \
  DRAWN ",\"kind\":\"encoder\",\"layers\":1,\"width\":6,\"feed_forward\":4,\"vocabulary\":5"
  ill(WHOLE ",\"heads\":4}", "heads: 4 do not match the 6 rows");
  ill(WHOLE ",\"heads\":2,\"kv_heads\":4}", "kv_heads: 4 does not divide 2 heads");
  ill(WHOLE ",\"heads\":2,\"positions\":\"rotary\"}", "rotary positions need an even head size");
  ill(WHOLE ",\"heads\":2,\"positions\":\"learned\"}", "max_positions: required");
  ill(WHOLE ",\"heads\":2,\"begin\":5}", "begin: 5 is outside the vocabulary of 5");
  ill(WHOLE ",\"heads\":2,\"end\":[2,7]}", "end: 7 is outside the vocabulary of 5");
  ill(WHOLE ",\"heads\":2,\"pool\":\"pooler\"}", "pool: the model has no pooler");
  ill(DRAWN ",\"kind\":\"encoder\",\"layers\":1,\"width\":5,\"heads\":1,\"feed_forward\":4,"
            "\"vocabulary\":5}",
      "positions: sinusoids need an even width");
}

static void what_config_says(void **state) {
  const struct place *p = *state;
  config_is_refused(p, "bert-a", "{\"model_type\":\"-\"}", "config.json: no model_type");
  config_is_refused(p, "bert-a", "{\"model_type\":\"gpt2\"}",
                    "no tensor's name ends with \"h.0.attn.c_attn.weight\"");
  config_is_refused(p, "bert-a", "{\"model_type\":\"umt5\"}", "model_type: umt5 is not supported");
  config_is_refused(p, "bert-a", "{\"model_type\":\"bort\"}",
                    "unsupported model_type \"bort\"; supported: transformer, bert, roberta, ");
  char known[2 * WHOLE_TYPE_LIST_SIZE], told[sizeof known + 40]; /* all of the list is told */
  whole_type_list(known, sizeof known);
  snprintf(told, sizeof told, "unsupported model_type \"bort\"; supported: %s", known);
  config_is_refused(p, "bert-a", "{\"model_type\":\"bort\"}", told);
  config_is_refused(p, "bert-a", "{\"model_type\":\"bart\"}",
                    "no tensor's name ends with \"encoder.layers.0.self_attn.q_proj.weight\"");
  config_is_refused(p, "bert-a", "{\"position_embedding_type\":\"relative_key\"}",
                    "config.json: position_embedding_type: has an unsupported value");
  config_is_refused(p, "bert-a", "{\"is_decoder\":true}", "is_decoder: has an unsupported value");
  config_is_refused(p, "bert-a", "{\"add_cross_attention\":true}", "add_cross_attention: has");
  config_is_refused(p, "bert-a", "{\"is_causal\":true}", "is_causal: has an unsupported value");
  config_is_refused(p, "bert-a", "{\"is_causal\":[]}", "is_causal: has an unsupported value");
  config_is_refused(p, "bert-a", "{\"is_causal\":{}}", "is_causal: has an unsupported value");
  config_is_refused(p, "bert-a", "{\"sliding_window\":128}",
                    "sliding_window: has an unsupported value");
  config_is_refused(p, "bert-a", "{\"num_experts\":4}", "num_experts: has an unsupported value");
  config_is_refused(p, "bert-a", "{\"pruned_heads\":{\"0\":[1]}}",
                    "pruned_heads: has an unsupported value");
  config_is_refused(p, "bert-a", "{\"hidden_act\":\"mish\"}",
                    "config.json: hidden_act: \"mish\" is not a supported activation");
  config_is_refused(p, "bert-a", "{\"hidden_act\":3}",
                    "hidden_act: needs a string, not an integer");
  config_is_refused(p, "bert-a", "{\"num_attention_heads\":null}",
                    "config.json: num_attention_heads: needs an integer, not null");
  config_is_refused(p, "bert-a", "{\"num_attention_heads\":5}",
                    "config.json: num_attention_heads: 5 do not match the 32 rows");
  config_is_refused(p, "bert-a", "{\"num_attention_heads\":5000}",
                    "config.json: num_attention_heads: 5000 is outside 1 to 4096");
  config_is_refused(p, "bert-a", "{\"num_hidden_layers\":0}",
                    "config.json: num_hidden_layers: 0 is outside");
  config_is_refused(p, "bert-a", "{\"max_position_embeddings\":0}",
                    "max_position_embeddings: needs an integer from 1 to 16777216");
  config_is_refused(p, "bert-a", "{\"type_vocab_size\":20000000}",
                    "type_vocab_size: needs an integer from 0 to 16777216");
  config_is_refused(p, "bert-a", "{\"quantization_config\":{\"bits\":4}}",
                    "config.json: quantization_config: has an unsupported value");
  config_is_refused(p, "bert-a", "{\"hidden_size\":16}",
                    "config.json: hidden_size: 16 in the configuration, but tensor "
                    "\"encoder.layer.0.attention.self.query");
  config_is_refused(p, "bert-a", "{\"vocab_size\":81}",
                    "vocab_size: 81 in the configuration, but tensor");
  config_is_refused(p, "bert-a", "{\"intermediate_size\":32}",
                    "intermediate_size: 32 in the configuration");
  config_is_refused(p, "bert-a", "{\"num_hidden_layers\":4}",
                    "there is no tensor \"encoder.layer.3.attention.self.query.weight\"");
  config_is_refused(p, "bert-a", "{\"max_position_embeddings\":30}",
                    "max_position_embeddings: 30, but tensor");
  config_is_refused(p, "bert-a", "{\"type_vocab_size\":3}", "type_vocab_size: 3, but the table");
  config_is_refused(p, "bert-a", "{\"layer_norm_eps\":\"x\"}", "layer_norm_eps: needs a number");
  config_is_refused(p, "bert-a", "{\"layer_norm_eps\":0}",
                    "config.json: layer_norm_eps: needs a number");
  config_is_refused(p, "bert-a", "{\"pad_token_id\":-5}",
                    "config.json: pad_token_id: needs a token");
  config_is_refused(p, "roberta-b", "{\"pad_token_id\":null}", "pad_token_id: needs a token");
  config_is_refused(p, "roberta-b", "{\"pad_token_id\":17}",
                    "first_position: 18 is outside the 18 rows of the table");
  config_is_refused(p, "bart-b", "{\"scale_embedding\":1}", "scale_embedding: needs true or false");
  config_is_refused(p, "bart-b", "{\"normalize_before\":true}",
                    "normalize_before: has an unsupported value");
  config_is_refused(p, "bart-b", "{\"max_position_embeddings\":42}", "has 42 rows, not 44");
  config_is_refused(p, "t5-b", "{\"d_kv\":12}", "num_heads: 3 of the configured head_size do not");
  config_is_refused(p, "t5-b", "{\"feed_forward_proj\":\"gated-gelu\"}",
                    "there is no tensor \"encoder.block.0.layer.1.DenseReluDense.wi_1.weight\"");
  config_is_refused(p, "t5-b", "{\"feed_forward_proj\":\"gated-tanh\"}", "\"gated-tanh\" is no");
  config_is_refused(p, "t5-b", "{\"dense_act_fn\":\"gelu\"}",
                    "config.json: dense_act_fn: is not what feed_forward_proj says");
  config_is_refused(p, "t5-b", "{\"dense_act_fn\":1}", "config.json: dense_act_fn: is not");
  config_is_refused(p, "t5-b", "{\"is_gated_act\":true}",
                    "config.json: is_gated_act: is not what feed_forward_proj says");
  whole_place_write(p, "generation_config.json", "{\"eos_token_id\":\"x\"}");
  config_is_refused(p, "t5-b", "{}", "generation_config.json: eos_token_id: needs a token");
  char detail[200];
  snprintf(detail, sizeof detail, "%s/generation_config.json: is not an object", p->folder);
  whole_place_write(p, "generation_config.json", "[]");
  config_is_refused(p, "t5-b", "{}", detail);
  whole_place_write(p, "generation_config.json", NULL);
  config_is_refused(p, "t5-b", "{\"relative_attention_num_buckets\":32}", "but the table has 12");
  config_is_refused(p, "t5-b", "{\"relative_attention_max_distance\":3}",
                    "max_distance: 3 is within");
  config_is_refused(p, "vit-a", "{\"pooler_act\":\"relu\"}",
                    "pooler_act: has an unsupported value");
}

/* Keys that single layers note and whole models reject, each with its value that is supported. The
 * heads of llama-b have 8 columns. */
static void what_layers_note(void **state) {
  const struct place *p = *state;
  static const char *const cases[][3] = {
      {"query_pre_attn_scalar", "16", "8"},
      {"attention_multiplier", "1", "0.3535534"},
      {"rotary_pct", "0.25", "1.0"},
      {"no_rope_layers", "[1,0]", "[1,1]"},
      {"attention_chunk_size", "8192", "0"},
      {"attention_type", "\"block_sparse\"", "\"original_full\""},
      {"clip_qkv", "8", "false"},
      {"rope_parameters", "{\"rope_theta\":1e4,\"partial_rotary_factor\":0.5}",
       "{\"rope_theta\":1e4,\"partial_rotary_factor\":1}"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char change[128], detail[128];
    snprintf(change, sizeof change, "{\"%s\":%s}", cases[i][0], cases[i][1]);
    snprintf(detail, sizeof detail, "config.json: %s: has an unsupported value",
             *cases[i][1] == '{' ? "partial_rotary_factor" : cases[i][0]);
    config_is_refused(p, "llama-b", change, detail);
    snprintf(change, sizeof change, "{\"%s\":%s}", cases[i][0], cases[i][2]);
    whole_place_config(p, "llama-b", change);
    model_free(whole_place_load(p, ""));
  }
  config_is_refused(p, "llama-b", "{\"layer_types\":[\"chunked_attention\"]}",
                    "config.json: layer_types: only \"full_attention\" and");
  config_is_refused(p, "bert-a", "{\"query_pre_attn_scalar\":1}", "supported: the size of a head");
}

static void what_a_config_of_ours_says(void **state) {
  const struct place *p = *state;
  config_is_refused(p, "torch-encoder-b", "{\"head\":3}", "config.json: unknown key \"head\"");
  config_is_refused(p, "torch-encoder-b", "{\"heads\":\"-\"}", "heads: required");
  config_is_refused(p, "torch-encoder-b", "{\"kind\":\"seq2seq\"}", "there is no decoder");
  config_is_refused(p, "torch-encoder-b", "{\"gated\":true}",
                    "there is no tensor \"layers.0.linear_gate.weight\"");
  config_is_refused(p, "torch-encoder-b", "{\"positions\":\"learned\"}",
                    "there is no tensor \"positions.weight\"");
  config_is_refused(p, "torch-encoder-b", "{\"positions\":\"relative\"}",
                    "there is no tensor \"relative_bias.weight\"");
  config_is_refused(p, "torch-encoder-b", "{\"vocabulary\":5}", "there are no token embeddings");
  config_is_refused(p, "torch-encoder-b", "{\"kv_heads\":1}", "here, not 8 times 24");
  config_is_refused(
      p, "torch-encoder-b", "{\"norm_kind\":\"rms\"}",
      "norm_kind: an RMS norm has no bias, but there is tensor \"layers.0.norm1.bias\"");
  config_is_refused(p, "d2l-a", "{\"gated\":true}", "gated: cannot be changed for d2l");
  config_is_refused(p, "d2l-a", "{\"begin\":70}", "begin: 70 is outside the vocabulary of 60");
  whole_place_write(p, "config.json", "[]");
  whole_place_refused(p, "", "config.json: is not an object");
  whole_place_write(p, "config.json", "{");
  whole_place_refused(p, "", "config.json, line 1");
  whole_place_write(p, "config.json", NULL);
  whole_place_tensors(p, "bert-a", NULL);
  whole_place_refused(p, "", "there is no config.json beside the tensors, and their names");
}

static void what_a_decoder_says(void **state) {
  const struct place *p = *state;
  static const char *const said[][2] = {
      {"{\"max_new_tokens\":0}", "generation_config.json: max_new_tokens: 0 is outside 1 to"},
      {"{\"do_sample\":1}", "generation_config.json: do_sample: needs true or false"},
      {"{\"do_sample\":true,\"top_p\":0}", "generation_config.json: top_p: 0 is not above 0"},
      {"{\"suppress_tokens\":[2.5]}", "generation_config.json: suppress_tokens: needs tokens"},
      {"{\"suppress_tokens\":3}",
       "generation_config.json: suppress_tokens: needs a list of tokens"},
      {"{\"bad_words_ids\":3}", "generation_config.json: bad_words_ids: needs a list of lists"},
      {"{\"bad_words_ids\":[5]}", "generation_config.json: bad_words_ids: needs a list of lists"},
      {"{\"min_new_tokens\":-1}", "generation_config.json: min_new_tokens: -1 is outside 0 to"},
      {"{\"repetition_penalty\":0}", "generation_config.json: repetition_penalty: 0 is not above"},
      {"{\"do_sample\":true,\"temperature\":-1}", "temperature: -1 is not at least 0"}};
  for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
    whole_place_write(p, "generation_config.json", said[i][0]);
    config_is_refused(p, "gpt2-a", "{}", said[i][1]);
  }
  whole_place_write(p, "generation_config.json", NULL);
  config_is_refused(p, "gpt2-a", "{\"scale_attn_weights\":false}",
                    "scale_attn_weights: has an unsupported value");
  config_is_refused(p, "gpt2-a", "{\"scale_attn_by_inverse_layer_idx\":true}",
                    "scale_attn_by_inverse_layer_idx: has an unsupported value");
  config_is_refused(p, "gpt2-a", "{\"add_cross_attention\":true}", "add_cross_attention: has");
  config_is_refused(p, "gpt2-a", "{\"n_positions\":30}",
                    "tensor \"transformer.wpe.weight\" has 40 rows");
  config_is_refused(p, "gpt2-a", "{\"n_inner\":61}",
                    "but tensor \"transformer.h.0.mlp.c_fc.weight\" implies 128");
  config_is_refused(p, "gpt2-a", "{\"n_embd\":25}",
                    "tensor \"transformer.h.0.attn.c_attn.weight\" implies 32");
  config_is_refused(p, "llama-b", "{\"sliding_window\":16}",
                    "sliding_window: has an unsupported value");
  config_is_refused(p, "qwen2-a",
                    "{\"use_sliding_window\":true,\"layer_types\":[\"sliding_attention\"]}",
                    "config.json: layer_types: has 1 entries for 2 layers");
  config_is_refused(p, "qwen2-a",
                    "{\"use_sliding_window\":true,\"layer_types\":\"full_attention\"}",
                    "config.json: layer_types: needs an array, not a string");
  config_is_refused(p, "qwen2-a", "{\"use_sliding_window\":true,\"layer_types\":[\"linear\"]}",
                    "config.json: layer_types: only \"full_attention\" and");
  config_is_refused(p, "smollm3-a", "{\"no_rope_layers\":[1,1,1,2]}",
                    "config.json: no_rope_layers: entry 3: must be 0 or 1");
  config_is_refused(p, "smollm3-a", "{\"no_rope_layers\":[1,1,1]}",
                    "config.json: no_rope_layers: has 3 entries for 4 layers");
  config_is_refused(p, "smollm3-a", "{\"no_rope_layers\":7}",
                    "config.json: no_rope_layers: needs an array, not");
  config_is_refused(p, "smollm3-b", "{\"no_rope_layer_interval\":0}",
                    "config.json: no_rope_layer_interval: needs an integer from 1");
  config_is_refused(p, "smollm3-a", "{\"use_sliding_window\":true,\"sliding_window\":4}",
                    "config.json: sliding_window: has an unsupported value");
  config_is_refused(p, "qwen2-a", "{\"use_sliding_window\":true,\"sliding_window\":0}",
                    "config.json: sliding_window: needs an integer from 1");
  config_is_refused(p, "qwen2-a", "{\"model_type\":\"qwen3\",\"head_dim\":8}",
                    "there is no tensor \"model.layers.0.self_attn.q_norm.weight\"");
  config_is_refused(p, "llama-b", "{\"model_type\":\"gemma\",\"hidden_activation\":7}",
                    "config.json: hidden_activation: needs a string");
  config_is_refused(p, "llama-b",
                    "{\"model_type\":\"gemma\",\"use_bidirectional_attention\":\"x\"}",
                    "use_bidirectional_attention: needs true or false, not a string");
  config_is_refused(p, "llama-b", "{\"use_bidirectional_attention\":true}",
                    "use_bidirectional_attention: has an unsupported value");
  config_is_refused(p, "electra-a", "{\"embedding_size\":24}",
                    "config.json: embedding_size: 24 in the configuration, but tensor "
                    "\"embeddings.word_embeddings.weight\" implies 16");
  tensors_are_refused(p, "electra-a", &(struct whole_edit){.drop = "embeddings_project."},
                      "has 54 times 16 numbers here, not 54 times 24");
  config_is_refused(p, "jina-bert-a", "{\"feed_forward_type\":\"reglu\"}",
                    "config.json: feed_forward_type: has an unsupported value, which would change "
                    "the outputs; supported: \"geglu\"");
  config_is_refused(p, "jina-bert-a", "{\"hidden_act\":\"relu\"}", "hidden_act: has an unsupp");
  config_is_refused(p, "jina-bert-a", "{\"is_decoder\":true}", "is_decoder: has an unsupported");
  config_is_refused(p, "jina-bert-a", "{\"add_cross_attention\":true}", "add_cross_attention: has");
  config_is_refused(p, "jina-bert-a", "{\"position_embedding_type\":\"absolute\"}",
                    "there is no tensor \"encoder.layer.0.intermediate.dense.weight\"");
  config_is_refused(p, "bert-a", "{\"position_embedding_type\":\"alibi\"}",
                    "there is no tensor \"encoder.layer.0.mlp.gated_layers.weight\"");
  config_is_refused(p, "jina-bert-a", "{\"model_type\":\"roberta\"}",
                    "position_embedding_type: has an unsupported value");
  tensors_are_refused(
      p, "jina-bert-a",
      &(struct whole_edit){.add = "encoder.layer.0.attention.self.layer_norm_q.weight", .rows = 24},
      "tensor \"encoder.layer.0.attention.self.layer_norm_q.weight\": queries and keys "
      "are normalized over all heads");
  config_is_refused(p, "electra-a", "{\"position_embedding_type\":\"relative_key\"}",
                    "position_embedding_type: has an unsupported value");
  config_is_refused(p, "albert-a", "{\"num_hidden_groups\":5}",
                    "config.json: num_hidden_groups: 5 for 4 layers");
  config_is_refused(p, "albert-a", "{\"num_hidden_groups\":3}",
                    "there is no tensor \"encoder.albert_layer_groups.2.albert_layers.0.");
  config_is_refused(p, "albert-a", "{\"num_hidden_groups\":1}",
                    "unexpected tensor \"encoder.albert_layer_groups.1.albert_layers.0.");
  config_is_refused(p, "albert-a", "{\"inner_group_num\":2}",
                    "there is no tensor \"encoder.albert_layer_groups.0.albert_layers.1.");
  config_is_refused(p, "albert-a", "{\"inner_group_num\":5000}", "layers: 20000 are more than");
  config_is_refused(p, "mpnet-a", "{\"relative_attention_num_buckets\":16}",
                    "relative_attention_num_buckets: has an unsupported value");
  config_is_refused(p, "deberta-v3-a", "{\"conv_kernel_size\":3}",
                    "there is no tensor \"encoder.conv.conv.weight\"");
  config_is_refused(p, "deberta-v2-conv", "{\"conv_kernel_size\":0}",
                    "unexpected tensor \"encoder.conv.");
  config_is_refused(p, "deberta-v2-conv", "{\"conv_kernel_size\":5}",
                    "config.json: conv_kernel_size: 5 in the configuration, but tensor "
                    "\"encoder.conv.conv.weight\" implies 3");
  config_is_refused(p, "deberta-v2-conv", "{\"conv_kernel_size\":2}",
                    "config.json: conv_kernel_size: 2 is not supported: needs an odd number");
  config_is_refused(p, "deberta-v2-conv", "{\"conv_kernel_size\":\"3\"}",
                    "config.json: conv_kernel_size: needs an integer");
  config_is_refused(p, "deberta-v2-conv", "{\"conv_groups\":2}",
                    "conv_groups: has an unsupported value");
  config_is_refused(p, "deberta-v2-conv", "{\"conv_act\":\"soft\"}",
                    "config.json: conv_act: \"soft\" is not a supported activation");
  config_is_refused(p, "deberta-v2-conv", "{\"conv_act\":null}",
                    "config.json: conv_act: \"null\" is not a supported activation");
  tensors_are_refused(p, "deberta-v2-conv",
                      &(struct whole_edit){.drop = "encoder.conv.conv.weight",
                                           .add = "encoder.conv.conv.weight",
                                           .rows = 24,
                                           .columns = 72},
                      "\"encoder.conv.conv.weight\" has 2 dimensions, but must have 3");
  tensors_are_refused(p, "deberta-v2-conv", &(struct whole_edit){.drop = "encoder.conv.conv.bias"},
                      "there is no tensor \"encoder.conv.conv.bias\"");
  tensors_are_refused(p, "deberta-v2-conv", &(struct whole_edit){.drop = "encoder.conv.LayerNorm"},
                      "there is no tensor \"encoder.conv.LayerNorm.");
  config_is_refused(p, "modernbert-a", "{\"add_cross_attention\":true}",
                    "add_cross_attention: has an unsupported value");
  config_is_refused(p, "deberta-v3-a", "{\"is_decoder\":true}",
                    "is_decoder: has an unsupported value");
  config_is_refused(p, "deberta-v3-a", "{\"pooler_hidden_act\":\"tanh\"}",
                    "pooler_hidden_act: has an unsupported value");
  config_is_refused(p, "deberta-v3-a", "{\"model_type\":\"deberta\"}",
                    "model_type: deberta is not supported");
  config_is_refused(p, "deberta-v3-a", "{\"position_buckets\":7}",
                    "config.json: position_buckets: 7 is not supported: needs an even number");
  config_is_refused(p, "deberta-v3-a", "{\"position_buckets\":\"x\"}",
                    "config.json: position_buckets: needs an integer");
  config_is_refused(p, "deberta-v3-a", "{\"max_relative_positions\":5}",
                    "config.json: max_relative_positions: 5 is within the 5 distances");
  config_is_refused(p, "deberta-v3-a", "{\"embedding_size\":16}",
                    "config.json: embedding_size: has an unsupported value, which would change the "
                    "outputs; supported: hidden_size");
  config_is_refused(p, "deberta-v3-a", "{\"max_relative_positions\":16777216}",
                    "config.json: max_relative_positions: 16777216 exceeds the 65536 that are");
  config_is_refused(p, "deberta-v3-a", "{\"max_position_embeddings\":65537}",
                    "config.json: max_position_embeddings: 65537 exceeds the 65536 that are");
  config_is_refused(p, "deberta-v3-a", "{\"max_relative_positions\":16777217}",
                    "config.json: max_relative_positions: needs an integer from 1 to 16777216");
  config_is_refused(p, "deberta-v3-a", "{\"position_buckets\":200}",
                    "config.json: max_position_embeddings: 64 is within the 101 distances");
  config_is_refused(p, "deberta-v3-a", "{\"position_buckets\":10}",
                    "\"encoder.rel_embeddings.weight\" has 16 times 24 numbers here, not 20 times");
  config_is_refused(p, "deberta-v3-a", "{\"pos_att_type\":\"p2c|p2p\"}",
                    "would change the outputs; supported: \"c2p\", \"p2c\" and both");
  config_is_refused(p, "deberta-v3-a", "{\"pos_att_type\":[\"c2p\",1]}",
                    "pos_att_type: has an unsupported value");
  config_is_refused(p, "deberta-v3-a", "{\"pos_att_type\":7}",
                    "pos_att_type: has an unsupported value");
  config_is_refused(p, "deberta-v3-a", "{\"pos_att_type\":null}",
                    "pos_att_type: has an unsupported value");
  config_is_refused(p, "deberta-v3-a", "{\"norm_rel_ebd\":\"batch_norm\"}",
                    "norm_rel_ebd: has an unsupported value");
  config_is_refused(p, "deberta-v3-a", "{\"norm_rel_ebd\":\"none\"}",
                    "unexpected tensor \"encoder.LayerNorm.");
  config_is_refused(p, "deberta-v3-a", "{\"relative_attention\":false}",
                    "unexpected tensor \"encoder.");
  config_is_refused(p, "deberta-v3-a", "{\"share_att_key\":false}",
                    "there is no tensor \"encoder.layer.0.attention.self.pos_key_proj.weight\"");
  config_is_refused(p, "deberta-v2-separate", "{\"share_att_key\":true}",
                    "unexpected tensor \"encoder.layer.0.attention.self.pos_");
  config_is_refused(p, "deberta-v3-a", "{\"position_biased_input\":true}",
                    "there is no tensor \"embeddings.position_embeddings.weight\"");
  tensors_are_refused(p, "deberta-v3-a", &(struct whole_edit){.drop = "encoder.rel_embeddings."},
                      "there is no tensor \"encoder.rel_embeddings.weight\"");
  config_is_refused(p, "eurobert-a", "{\"is_causal\":true}", "is_causal: has an unsupported value");
  whole_place_tensors(p, "qwen2-bidirectional", NULL);
  whole_place_config(p, "qwen2-bidirectional", "{}");
  whole_place_refused(p, ",\"kind\":\"decoder\"",
                      "kind: this model of llama attends in both directions: it is an encoder");
  config_is_refused(p, "llama-b", "{\"is_causal\":0}", "is_causal: needs true or false");
  config_is_refused(p, "gpt2-a", "{\"is_causal\":false}", "supported: true");
  config_is_refused(p, "llama-b", "{\"partial_rotary_factor\":0.5}", "partial_rotary_factor: has");
  config_is_refused(p, "llama-b", "{\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2}}",
                    "config.json: rope_scaling: has an unsupported kind");
  config_is_refused(p, "llama-b", "{\"rope_scaling\":{\"type\":\"linear\",\"factor\":0.5}}",
                    "config.json: rope_scaling: factor: needs a number of at least 1");
  config_is_refused(p, "llama-b", "{\"rope_scaling\":{\"type\":\"linear\"}}",
                    "factor: needs a number");
  config_is_refused(p, "llama-b", "{\"rope_scaling\":{\"factor\":2}}",
                    "rope_scaling: has an unsupported kind");
  config_is_refused(p, "llama-b",
                    "{\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"default\"}}}",
                    "config.json: rope_parameters: full_attention: all layers of this model");
  config_is_refused(p, "llama-b", "{\"rope_parameters\":{\"rope_type\":\"longrope\"}}",
                    "config.json: rope_parameters: has an unsupported kind");
  config_is_refused(
      p, "llama-b",
      "{\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":4,"
      "\"high_freq_factor\":4,\"original_max_position_embeddings\":8192}}",
      "config.json: rope_scaling: high_freq_factor: is not above low_freq_factor");
  config_is_refused(
      p, "llama-b",
      "{\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,"
      "\"high_freq_factor\":4}}",
      "original_max_position_embeddings: needs a number of at least 1");
  config_is_refused(p, "llama-b", "{\"rope_parameters\":1.5}",
                    "config.json: rope_parameters: needs an object, not a number with a fraction");
  config_is_refused(p, "llama-b", "{\"rope_scaling\":\"linear\"}",
                    "config.json: rope_scaling: needs an object, not a string");
  config_is_refused(p, "llama-b",
                    "{\"rope_theta\":0,\"rope_parameters\":{\"rope_type\":\"default\"}}",
                    "rope_theta: needs a number above 1");
  config_is_refused(p, "llama-b", "{\"rope_theta\":0}", "rope_theta: needs a number above 1");
  config_is_refused(p, "llama-b", "{\"rope_theta\":\"x\"}", "rope_theta: needs a number above 1");
  config_is_refused(p, "llama-b", "{\"num_key_value_heads\":2}",
                    "num_key_value_heads: 2 does not divide 3");
  config_is_refused(p, "llama-b", "{\"num_key_value_heads\":3}", "here, not 24 times 24");
  config_is_refused(p, "llama-b", "{\"head_dim\":6}", "heads: 3 of the configured head_size");
}

static void what_a_decoder_has(void **state) {
  const struct place *p = *state;
  tensors_are_refused(p, "gpt2-a",
                      &(struct whole_edit){.add = "transformer.h.1.attn.c_extra", .rows = 3},
                      "unexpected tensor \"transformer.h.1.attn.c_extra\" in a gpt2 model");
  tensors_are_refused(p, "gpt2-a", &(struct whole_edit){.drop = "transformer.h.1.attn.c_attn.bias"},
                      "there is no tensor \"transformer.h.1.attn.c_attn.bias\"");
  tensors_are_refused(p, "gpt2-a",
                      &(struct whole_edit){.add = "lm_head.weight", .rows = 96, .columns = 32},
                      "tensor \"lm_head.weight\" differs from \"transformer.wte.weight\"");
  tensors_are_refused(
      p, "llama-b",
      &(struct whole_edit){.add = "model.layers.1.self_attn.q_norm.weight", .rows = 8},
      "unexpected tensor \"model.layers.1.self_attn.q_norm.weight\" in a llama model");
  tensors_are_refused(p, "llama-b", &(struct whole_edit){.drop = "model.layers.1.mlp.gate_proj"},
                      "there is no tensor \"model.layers.1.mlp.gate_proj.weight\"");
  for (int layer = 0; layer < 2; layer++) { /* layers are alike */
    char name[64], message[96];
    snprintf(name, sizeof name, "model.layers.%d.self_attn.k_proj.bias", layer);
    snprintf(message, sizeof message, "there is no tensor \"%s\"", name);
    tensors_are_refused(p, "qwen2-a", &(struct whole_edit){.drop = name}, message);
  }
  whole_place_tensors(p, "llama-b", NULL);
  whole_place_config(p, "llama-b", "{}");
  whole_place_refused(p, ",\"gated\":false", "gated: cannot be changed for llama");
  whole_place_refused(p, ",\"kind\":\"encoder\"", "kind: a model of llama is a decoder");
  whole_place_refused(p, ",\"norm_kind\":\"layer\"", "norm_kind: cannot be changed for llama");
  whole_place_refused(p, ",\"positions\":\"none\"", "positions: cannot be changed for llama");
  whole_place_tensors(p, "bert-b", NULL);
  whole_place_config(p, "bert-b", "{}");
  whole_place_refused(p, ",\"kind\":\"decoder\"", "kind: bert: only the encoder is supported");
  whole_place_tensors(p, "bart-a", NULL);
  whole_place_config(p, "bart-a", "{}");
  whole_place_refused(p, ",\"kind\":\"decoder\"",
                      "kind: bart: a decoder is supported only with its encoder: as seq2seq");
}

static void what_a_definition_cannot_change(void **state) {
  const struct place *p = *state;
  whole_place_tensors(p, "bert-a", NULL);
  whole_place_config(p, "bert-a", "{}");
  whole_place_refused(p, ",\"norm\":\"pre\"", "norm: cannot be changed for bert");
  whole_place_refused(p, ",\"norm_kind\":\"rms\"", "norm_kind: cannot be changed for bert");
  whole_place_refused(p, ",\"positions\":\"none\"", "positions: cannot be changed for bert");
  whole_place_refused(p, ",\"gated\":true", "gated: cannot be changed for bert");
  whole_place_refused(p, ",\"max_positions\":40", "max_positions: 40, but the table has 32");
  whole_place_refused(p, ",\"head_size\":9", "heads: 4 of the configured head_size do not");
  whole_place_refused(p, ",\"kind\":\"seq2seq\"", "kind: seq2seq, but there is no decoder");
}

static void tensors(void **state) {
  const struct place *p = *state;
  tensors_are_refused(
      p, "bert-a",
      &(struct whole_edit){.add = "encoder.layer.1.attention.self.distance_embedding.weight",
                           .rows = 3,
                           .columns = 8},
      "unexpected tensor \"encoder.layer.1.attention.self.distance_embedding.weight\" in a bert "
      "model");
  /* A layer behind the last one is passed over, but these are none. */
  tensors_are_refused(p, "bert-a",
                      &(struct whole_edit){.add = "encoder.layer.99999999999.x", .rows = 3},
                      "unexpected tensor \"encoder.layer.99999999999.x\" in a bert model");
  tensors_are_refused(
      p, "bert-a",
      &(struct whole_edit){.add = "encoder.layer.99999999999999999999999999.x", .rows = 3},
      "unexpected tensor \"encoder.layer.99999999999999999999999999.x\" in a bert model");
  tensors_are_refused(p, "bert-a", &(struct whole_edit){.add = "encoder.layer.-1.x", .rows = 3},
                      "unexpected tensor \"encoder.layer.-1.x\" in a bert model");
  tensors_are_refused(p, "bert-a",
                      &(struct whole_edit){.add = "embeddings.extra.weight", .rows = 3},
                      "unexpected tensor \"embeddings.extra.weight\"");
  tensors_are_refused(p, "bert-a",
                      &(struct whole_edit){.drop = "encoder.layer.1.output.dense.bias"},
                      "there is no tensor \"encoder.layer.1.output.dense.bias\"");
  tensors_are_refused(p, "bert-a", &(struct whole_edit){.drop = "embeddings.LayerNorm"},
                      "there is no tensor \"embeddings.LayerNorm.weight\"");
  tensors_are_refused(p, "bert-a", &(struct whole_edit){.drop = "embeddings.token_type"},
                      "there is no tensor \"embeddings.token_type_embeddings.weight\"");
  tensors_are_refused(p, "bert-a", &(struct whole_edit){.drop = "embeddings.word"},
                      "there is no tensor \"embeddings.word_embeddings.weight\"");
  tensors_are_refused(p, "bert-a", &(struct whole_edit){.broken = "pooler.dense.weight"},
                      "tensor \"pooler.dense.weight\" holds a number that is not finite");
  tensors_are_refused(p, "bert-a",
                      &(struct whole_edit){.add = "b.encoder.layer.0.attention.self.query.weight",
                                           .rows = 3,
                                           .columns = 3},
                      "these are several models");
  tensors_are_refused(p, "bart-b",
                      &(struct whole_edit){.add = "lm_head.weight", .rows = 70, .columns = 24},
                      "tensor \"lm_head.weight\" differs from \"model.shared.weight\", of which");
  tensors_are_refused(
      p, "bart-b",
      &(struct whole_edit){.add = "model.decoder.embed_tokens.weight", .rows = 71, .columns = 24},
      "tensor \"model.decoder.embed_tokens.weight\" differs from");
  tensors_are_refused(p, "bart-b",
                      &(struct whole_edit){.add = "model.encoder.layer_norm.weight", .rows = 24},
                      "unexpected tensor \"model.encoder.layer_norm.weight\" in a bart model");
  tensors_are_refused(p, "t5-b",
                      &(struct whole_edit){.add = "encoder.final_layer_norm.bias", .rows = 36},
                      "unexpected tensor \"encoder.final_layer_norm.bias\" in a t5 model");
  tensors_are_refused(
      p, "t5-b",
      &(struct whole_edit){.add = "encoder.block.0.layer.0.SelfAttention.q.bias", .rows = 36},
      "unexpected tensor \"encoder.block.0.layer.0.SelfAttention.q.bias\" in a t5 model");
  tensors_are_refused(p, "vit-a",
                      &(struct whole_edit){.drop = "encoder.layer.1.intermediate.dense.bias"},
                      "there is no tensor \"encoder.layer.1.intermediate.dense.bias\"");
  tensors_are_refused(p, "d2l-a",
                      &(struct whole_edit){.drop = "encoder.blks.block1.ffn.dense1.bias"},
                      "there is no tensor \"encoder.blks.block1.ffn.dense1.bias\"");
  tensors_are_refused(p, "torch-encoder-b",
                      &(struct whole_edit){.rename = "layers.", .to = "decoder.layers."},
                      "kind: a model of plain is a decoder");
}

static void what_a_packed_encoder_says(void **state) {
  const struct place *p = *state;
  static const char *const values[][2] = {{"prenorm", "true"},
                                          {"use_rms_norm", "true"},
                                          {"parallel_block", "true"},
                                          {"causal", "true"},
                                          {"norm_mlp", "true"},
                                          {"num_heads_kv", "1"},
                                          {"num_experts", "8"},
                                          {"moe_every_n_layers", "2"},
                                          {"rotary_emb_fraction", "0.5"},
                                          {"rotary_emb_interleaved", "true"},
                                          {"rotary_emb_scale_base", "512"},
                                          {"rotary_head_dim", "true"}};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    char config[64], message[96];
    snprintf(config, sizeof config, "{\"%s\":%s}", values[i][0], values[i][1]);
    snprintf(message, sizeof message, "config.json: %s: has an unsupported value", values[i][0]);
    config_is_refused(p, "nomic-a", config, message);
  }
  config_is_refused(p, "nomic-a", "{\"activation_function\":\"glu\"}",
                    "activation_function: \"glu\" is not a supported activation");
  config_is_refused(p, "nomic-a", "{\"activation_function\":\"gelu\"}",
                    "there is no tensor \"encoder.layers.0.mlp.fc1.weight\"");
  config_is_refused(p, "nomic-ntk", "{\"n_head\":12}",
                    "a base that follows the length of an item needs a head size above 2");
  config_is_refused(p, "nomic-a", "{\"rotary_scaling_factor\":-1}",
                    "rotary_scaling_factor: needs a number above 0, or null");
  config_is_refused(p, "nomic-a", "{\"rotary_scaling_factor\":\"2\"}",
                    "rotary_scaling_factor: needs a number above 0, or null");
  config_is_refused(p, "nomic-a", "{\"rotary_scaling_factor\":2,\"max_trained_positions\":0}",
                    "max_trained_positions: needs an integer from 1");
  config_is_refused(p, "nomic-a", "{\"rope_scaling\":{\"type\":\"ntk\",\"factor\":2}}",
                    "has an unsupported kind; supported: default, linear, llama3, dynamic");
  config_is_refused(p, "llama-b", "{\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2}}",
                    "config.json: rope_scaling: \"dynamic\" is supported only in encoders");
  config_is_refused(p, "jina-v3-a", "{\"rope_parameters\":{\"type\":\"dynamic\",\"factor\":0}}",
                    "rope_parameters: factor: needs a number of at least 1");
  config_is_refused(p, "jina-v3-a",
                    "{\"rope_parameters\":{\"type\":\"dynamic\",\"factor\":2},"
                    "\"max_position_embeddings\":\"-\"}",
                    "rope_parameters: dynamic requires max_position_embeddings");
  config_is_refused(p, "gte-a", "{\"hidden_size\":\"-\"}",
                    "rope_scaling: ntk requires hidden_size");
  config_is_refused(p, "gte-a",
                    "{\"rope_scaling\":{\"type\":\"ntk\",\"factor\":2,\"mixed_b\":0.5}}",
                    "rope_scaling: mixed_b: only null is supported");
  config_is_refused(p, "gte-a", "{\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2}}",
                    "has an unsupported kind; supported: default, ntk");
  config_is_refused(p, "gte-a",
                    "{\"rope_parameters\":{},\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2}}",
                    "has an unsupported kind; supported: default, ntk");
  config_is_refused(p, "gte-a", "{\"rope_parameters\":{\"full_attention\":3}}",
                    "full_attention: all layers of this model have the same rotary positions");
  static const char *const gte[][2] = {{"pack_qkv", "false"},
                                       {"layer_norm_type", "\"rms_norm\""},
                                       {"position_embedding_type", "\"absolute\""},
                                       {"logn_attention_scale", "true"}};
  for (size_t i = 0; i < sizeof gte / sizeof *gte; i++) {
    char config[64], message[96];
    snprintf(config, sizeof config, "{\"%s\":%s}", gte[i][0], gte[i][1]);
    snprintf(message, sizeof message, "config.json: %s: has an unsupported value", gte[i][0]);
    config_is_refused(p, "gte-a", config, message);
  }
  static const char halves[] = "encoder.layer.1.mlp.up_gate_proj.weight";
  tensors_are_refused(
      p, "gte-a", &(struct whole_edit){.drop = halves, .add = halves, .rows = 71, .columns = 24},
      "\"encoder.layer.1.mlp.up_gate_proj.weight\" has 71 rows, which cannot be divided into 2 "
      "equal");
  tensors_are_refused(
      p, "gte-a", &(struct whole_edit){.drop = halves, .add = halves, .rows = 70, .columns = 24},
      "\"encoder.layer.1.mlp.up_gate_proj.weight\" has 35 times 24 numbers here, not 36 times 24");
  tensors_are_refused(p, "gte-a", &(struct whole_edit){.drop = halves},
                      "there is no tensor \"encoder.layer.1.mlp.up_gate_proj.weight\"");
  tensors_are_refused(p, "gte-a", &(struct whole_edit){.drop = "attention.qkv_proj.bias"},
                      "there is no tensor \"encoder.layer.0.attention.qkv_proj.bias\"");
  tensors_are_refused(
      p, "gte-a", &(struct whole_edit){.add = "encoder.layer.1.mlp.up_gate_proj.bias", .rows = 72},
      "there is no tensor \"encoder.layer.0.mlp.up_gate_proj.bias\"");
  tensors_are_refused(p, "nomic-gelu",
                      &(struct whole_edit){.drop = "encoder.layers.0.attn.Wqkv.bias"},
                      "there is no tensor \"encoder.layers.0.attn.Wqkv.bias\"");
  tensors_are_refused(p, "nomic-gelu",
                      &(struct whole_edit){.drop = "encoder.layers.1.attn.Wqkv.bias"},
                      "there is no tensor \"encoder.layers.1.attn.Wqkv.bias\"");
  tensors_are_refused(
      p, "nomic-a",
      &(struct whole_edit){
          .add = "embeddings.position_embeddings.weight", .rows = 64, .columns = 24},
      "unexpected tensor \"embeddings.position_embeddings.weight\" in a nomic_bert");
  tensors_are_refused(
      p, "nomic-a",
      &(struct whole_edit){.add = "encoder.layers.1.mlp.router.layer.weight", .rows = 8},
      "unexpected tensor \"encoder.layers.1.mlp.router.layer.weight\" in a nomic_bert model");
}

/* A layer that is missing in the middle does not cut the model. */
static void gaps(void **state) {
  const struct place *p = *state;
  tensors_are_refused(p, "torch-encoder-b",
                      &(struct whole_edit){.drop = "layers.1.self_attn.in_proj_weight"},
                      "there is no tensor \"layers.1.self_attn.in_proj_weight\", but \"layers.");
  static const struct whole_edit query = {.drop = "encoder.layer.1.attention.self.query.weight"};
  tensors_are_refused(p, "bert-a", &query, "there is no tensor \"encoder.layer.1.attention.self");
  whole_place_config(p, "bert-a", "{\"num_hidden_layers\":\"-\"}");
  whole_place_refused(p, "",
                      "there is no tensor \"encoder.layer.1.attention.self.query.weight\", but");
}

static void what_answers_nothing(void **state) {
  const struct place *p = *state;
  tensors_are_refused(p, "bert-a",
                      &(struct whole_edit){.huge = "encoder.layer.1.intermediate.dense.weight"},
                      "self-test failed: the output for a few tokens is not finite: ");
  tensors_are_refused(p, "torch-encoder-b", &(struct whole_edit){.huge = "layers.2.linear2.weight"},
                      "self-test failed: the output for a few tokens is not finite: ");
}

static void shapes(void **state) {
  const struct place *p = *state;
  tensors_are_refused(
      p, "bert-a",
      &(struct whole_edit){.drop = "embeddings.word_embeddings.weight",
                           .add = "embeddings.word_embeddings.weight",
                           .rows = 0,
                           .columns = 32},
      "tensor \"embeddings.word_embeddings.weight\" is empty: a dimension of it is 0");
  static const char query[] = "encoder.layer.0.attention.self.query.weight";
  static const char packed[] = "layers.1.self_attn.in_proj_weight";
  tensors_are_refused(p, "bert-a", &(struct whole_edit){.drop = query, .add = query, .rows = 32},
                      "has 1 dimensions, but must have 2");
  tensors_are_refused(
      p, "bert-a",
      &(struct whole_edit){
          .drop = "pooler.dense.w", .add = "pooler.dense.weight", .rows = 32, .columns = 31},
      "tensor \"pooler.dense.weight\" has 32 times 31 numbers here, not 32 times 32");
  tensors_are_refused(
      p, "bert-a",
      &(struct whole_edit){.drop = "pooler.dense.b", .add = "pooler.dense.bias", .rows = 31},
      "tensor \"pooler.dense.bias\" has 31 numbers here, not 32");
  tensors_are_refused(
      p, "torch-encoder-b",
      &(struct whole_edit){.drop = packed, .add = packed, .rows = 71, .columns = 24},
      "has 71 rows, which cannot be divided into 3 equal parts");
  tensors_are_refused(p, "torch-encoder-b",
                      &(struct whole_edit){.drop = "layers.1.self_attn.in_proj_bias",
                                           .add = "layers.1.self_attn.in_proj_bias",
                                           .rows = 71},
                      "has 71 numbers, not 72");
  tensors_are_refused(p, "torch-encoder-b",
                      &(struct whole_edit){.drop = "layers.1.self_attn.in_proj_bias"},
                      "there is no tensor \"layers.1.self_attn.in_proj_bias\"");
}

int main(void) {
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, whole_place_enter, whole_place_leave)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(definitions),
      cmocka_unit_test(words_of_the_library),
      cmocka_unit_test(drawn_ones),
      IN_PLACE(what_config_says),
      IN_PLACE(what_layers_note),
      IN_PLACE(what_a_config_of_ours_says),
      IN_PLACE(what_a_decoder_says),
      IN_PLACE(what_a_decoder_has),
      IN_PLACE(what_a_definition_cannot_change),
      IN_PLACE(what_a_packed_encoder_says),
      IN_PLACE(tensors),
      IN_PLACE(gaps),
      IN_PLACE(what_answers_nothing),
      IN_PLACE(shapes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
