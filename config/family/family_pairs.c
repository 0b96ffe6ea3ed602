/* family_pairs: the families of encoder-decoder models: a row of a table for each stack. Encoders
 * of them may be models by themselves. */
#include "config/family/whole_family_rows.h"

static const struct whole_alias t5_aliases[] = {{"gated-gelu", "gated-gelu_new"}, {NULL, NULL}};
static const struct whole_keys t5_keys = {.own = {"num_layers", "num_heads", "d_ff"},
                                          .decoder = {.layers = "num_decoder_layers"},
                                          .follows = true,
                                          .width = "d_model",
                                          .head_size = "d_kv",
                                          .vocabulary = "vocab_size",
                                          .epsilon = "layer_norm_epsilon",
                                          .activation = "feed_forward_proj",
                                          .buckets = "relative_attention_num_buckets",
                                          .distance = "relative_attention_max_distance",
                                          .gated = "gated-",
                                          .alias = t5_aliases};
#define BART_SIZES                                                         \
  .own = {"encoder_layers", "encoder_attention_heads", "encoder_ffn_dim"}, \
  .decoder = {"decoder_layers", "decoder_attention_heads", "decoder_ffn_dim"}, .width = "d_model"
static const struct whole_keys bart_keys = {BART_SIZES, .vocabulary = "vocab_size",
                                            .positions = "max_position_embeddings",
                                            .activation = "activation_function"};
static const struct whole_keys whisper_keys = {BART_SIZES, .activation = "activation_function"};

/* `forward` is the number of the feed-forward layer in a block. */
#define T5(stack, forward)                                                                     \
  .name = "t5", .layer = stack ".block.{i}.", .self = "layer.0.SelfAttention.",                \
  .gated_up = "layer." forward ".DenseReluDense.wi_1",                                         \
  .table = {"shared", "encoder.embed_tokens", "decoder.embed_tokens"}, .scope = {stack "."},   \
  .keys = &t5_keys, .bias = WHOLE_BIAS_NEVER, .tied = true, .lasting = true, .unscaled = true, \
  .relative = true, .norm = NORM_RMS, .place = NORM_PRE
#define T5_STEMS(stack, forward)                             \
  "q", "k", "v", "o", "layer." forward ".DenseReluDense.wi", \
      "layer." forward ".DenseReluDense.wi_0",               \
      [WHOLE_DOWN] = "layer." forward ".DenseReluDense.wo",  \
      [WHOLE_NORM_SELF] = "layer.0.layer_norm",              \
      [WHOLE_NORM_FORWARD] = "layer." forward ".layer_norm", \
      [WHOLE_NORM_LAST] = stack ".final_layer_norm",         \
      [WHOLE_RELATIVE] = stack ".block.0.layer.0.SelfAttention.relative_attention_bias"

/* Early files have a table of relative positions in the cross-attention, which has no effect. */
const struct whole_family whole_family_t5_decoder = {
    T5("decoder", "2"),
    .cross = "layer.1.EncDecAttention.",
    .stem = {T5_STEMS("decoder", "2"), [WHOLE_CROSS_QUERY] = "q", [WHOLE_CROSS_KEY] = "k",
             [WHOLE_CROSS_VALUE] = "v", [WHOLE_CROSS_OUTPUT] = "o",
             [WHOLE_NORM_CROSS] = "layer.1.layer_norm"},
    .head = "lm_head",
    .ignored = {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"},
    .decodes = true,
    .shrunk = true,
};
const struct whole_family whole_family_t5_encoder = {
    T5("encoder", "1"),
    .stem = {T5_STEMS("encoder", "1")},
    .decoder = &whole_family_t5_decoder,
};

/* BART and similar models differ only in norms and positions, which are the same in both stacks. */
#define BART_KIN(stack)                                                                      \
  .layer = stack ".layers.{i}.", .self = "self_attn.", .cross = "encoder_attn.",             \
  .table = {"shared", "encoder.embed_tokens", "decoder.embed_tokens"}, .scope = {stack "."}, \
  .ignored = {stack ".version", stack ".embed_positions._float_tensor"}, .keys = &bart_keys, \
  .bias = WHOLE_BIAS_ALWAYS, .tied = true
#define BART_STEMS(stack)                                               \
  "q_proj", "k_proj", "v_proj", "out_proj", "fc1",                      \
      [WHOLE_DOWN] = "fc2", [WHOLE_NORM_SELF] = "self_attn_layer_norm", \
      [WHOLE_NORM_FORWARD] = "final_layer_norm", [WHOLE_POSITION] = stack ".embed_positions"
#define BART_CROSS_STEMS                                                                        \
  [WHOLE_CROSS_QUERY] = "q_proj", [WHOLE_CROSS_KEY] = "k_proj", [WHOLE_CROSS_VALUE] = "v_proj", \
  [WHOLE_CROSS_OUTPUT] = "out_proj", [WHOLE_NORM_CROSS] = "encoder_attn_layer_norm"
#define BART_EMBEDDED(stack) [WHOLE_NORM_EMBEDDED] = stack ".layernorm_embedding"
#define BART_LAST(stack)     [WHOLE_NORM_LAST] = stack ".layer_norm"
#define BART_DECODES         .head = "lm_head", .logits_bias = "final_logits_bias", .decodes = true

#define BART(stack) \
  .name = "bart", BART_KIN(stack), .positions = POSITIONS_LEARNED, .positions_beyond = 2
#define MBART(stack)                                                    \
  .name = "mbart", BART_KIN(stack), .lasting = true, .place = NORM_PRE, \
  .positions = POSITIONS_LEARNED, .positions_beyond = 2
#define M2M100(stack)                                                    \
  .name = "m2m100", BART_KIN(stack), .lasting = true, .place = NORM_PRE, \
  .positions = POSITIONS_HALVES_WIDE, .positions_beyond = 2
#define PEGASUS(stack)                                                    \
  .name = "pegasus", BART_KIN(stack), .lasting = true, .place = NORM_PRE, \
  .positions = POSITIONS_HALVES
#define MARIAN(stack) .name = "marian", BART_KIN(stack), .positions = POSITIONS_HALVES

const struct whole_family whole_family_bart_decoder = {
    BART("decoder"),
    BART_DECODES,
    .stem = {BART_STEMS("decoder"), BART_CROSS_STEMS, BART_EMBEDDED("decoder")},
};
static const struct whole_family mbart_decoder = {
    MBART("decoder"),
    BART_DECODES,
    .stem = {BART_STEMS("decoder"), BART_CROSS_STEMS, BART_EMBEDDED("decoder"),
             BART_LAST("decoder")},
};
static const struct whole_family m2m100_decoder = {
    M2M100("decoder"),
    BART_DECODES,
    .stem = {BART_STEMS("decoder"), BART_CROSS_STEMS, BART_LAST("decoder")},
};
static const struct whole_family pegasus_decoder = {
    PEGASUS("decoder"),
    BART_DECODES,
    .stem = {BART_STEMS("decoder"), BART_CROSS_STEMS, BART_LAST("decoder")},
};
static const struct whole_family marian_decoder = {
    MARIAN("decoder"),
    BART_DECODES,
    .stem = {BART_STEMS("decoder"), BART_CROSS_STEMS},
};

const struct whole_family whole_family_bart_encoder = {
    BART("encoder"),
    .stem = {BART_STEMS("encoder"), BART_EMBEDDED("encoder")},
    .decoder = &whole_family_bart_decoder,
};
static const struct whole_family mbart_encoder = {
    MBART("encoder"),
    .stem = {BART_STEMS("encoder"), BART_EMBEDDED("encoder"), BART_LAST("encoder")},
    .decoder = &mbart_decoder,
};
static const struct whole_family m2m100_encoder = {
    M2M100("encoder"),
    .stem = {BART_STEMS("encoder"), BART_LAST("encoder")},
    .decoder = &m2m100_decoder,
};
static const struct whole_family pegasus_encoder = {
    PEGASUS("encoder"),
    .stem = {BART_STEMS("encoder"), BART_LAST("encoder")},
    .decoder = &pegasus_decoder,
};
static const struct whole_family marian_encoder = {
    MARIAN("encoder"),
    .stem = {BART_STEMS("encoder")},
    .decoder = &marian_decoder,
};
static const struct whole_family whisper_encoder = {
    .name = "whisper",
    .layer = "encoder.layers.{i}.",
    .self = "self_attn.",
    .stem = {"q_proj", "k_proj", "v_proj", "out_proj",
             "fc1", [WHOLE_DOWN] = "fc2", [WHOLE_NORM_SELF] = "self_attn_layer_norm",
             [WHOLE_NORM_FORWARD] = "final_layer_norm", [WHOLE_NORM_LAST] = "encoder.layer_norm"},
    .scope = {"encoder.layers.", "encoder.layer_norm."},
    .keys = &whisper_keys,
    .bias = WHOLE_BIAS_ALWAYS,
    .unbiased = ROLE_BIT(WHOLE_KEY),
    .lasting = true,
    .rows_only = true,
    .place = NORM_PRE,
};

const struct whole_family *const whole_families_pairs[] = {
    &whole_family_t5_encoder, &whole_family_bart_encoder,
    &mbart_encoder,           &m2m100_encoder,
    &pegasus_encoder,         &marian_encoder,
    &whisper_encoder,         NULL,
};
