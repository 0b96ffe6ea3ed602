/* family_decoders: the families of decoders without an encoder, and of encoders that are built like
 * them. */
#include "config/family/whole_family_rows.h"

static const struct whole_keys gpt2_keys = {.own = {"n_layer", "n_head", "n_inner"},
                                            .width = "n_embd",
                                            .vocabulary = "vocab_size",
                                            .positions = "n_positions",
                                            .epsilon = "layer_norm_epsilon",
                                            .activation = "activation_function"};
#define LLAMA_KEYS                                                                               \
  .own = {"num_hidden_layers", "num_attention_heads", "intermediate_size"},                      \
  .width = "hidden_size", .head_size = "head_dim", .kv_heads = "num_key_value_heads",            \
  .vocabulary = "vocab_size", .positions = "max_position_embeddings", .rope_base = "rope_theta", \
  .epsilon = "rms_norm_eps", .window = "sliding_window"
static const struct whole_keys llama_keys = {LLAMA_KEYS, .activation = "hidden_act"};
static const struct whole_keys smollm3_keys = {LLAMA_KEYS, .activation = "hidden_act",
                                               .rotated = "no_rope_layers",
                                               .unrotated_every = "no_rope_layer_interval"};
static const struct whole_keys gemma_keys = {LLAMA_KEYS, .activation = "hidden_activation",
                                             .activation_open = true};

static const struct whole_keys gemma2_keys = {LLAMA_KEYS,
                                              .activation = "hidden_activation",
                                              .activation_open = true,
                                              .score_scalar = "query_pre_attn_scalar",
                                              .score_cap = "attn_logit_softcapping",
                                              .logit_cap = "final_logit_softcapping"};
static const struct whole_keys gemma3_keys = {LLAMA_KEYS,
                                              .activation = "hidden_activation",
                                              .activation_open = true,
                                              .score_scalar = "query_pre_attn_scalar",
                                              .rope_local = "rope_local_base_freq",
                                              .full_every = "sliding_window_pattern"};

/* Llama and similar models; only some of them have norms of heads. The arguments are the stems of
 * the norms of branches. */
#define LLAMA_NAMES(...)                                                                        \
  .layer = "layers.{i}.", .self = "self_attn.",                                                 \
  .stem = {[WHOLE_QUERY] = "q_proj",       [WHOLE_KEY] = "k_proj",                              \
           [WHOLE_VALUE] = "v_proj",       [WHOLE_OUTPUT] = "o_proj",                           \
           [WHOLE_UP] = "mlp.up_proj",     [WHOLE_GATE] = "mlp.gate_proj",                      \
           [WHOLE_DOWN] = "mlp.down_proj", __VA_ARGS__,                                         \
           [WHOLE_NORM_QUERY] = "q_norm",  [WHOLE_NORM_KEY] = "k_norm",                         \
           [WHOLE_NORM_LAST] = "norm",     [WHOLE_DENSE] = "linear",                            \
           [WHOLE_CLASS_FIRST] = "dense",  [WHOLE_CLASSES] = "classifier"},                     \
  .table = {"embed_tokens"}, .head = "lm_head", .scope = {"layers.", "embed_tokens.", "norm."}, \
  .buffer = {"self_attn.rotary_emb.inv_freq"}, .gated = true, .rotary = true, .tied = true,     \
  .lasting = true, .norm = NORM_RMS, .place = NORM_PRE

#define LLAMA_NORMS \
  [WHOLE_NORM_SELF] = "input_layernorm", [WHOLE_NORM_FORWARD] = "post_attention_layernorm"
#define GEMMA_NORMS                                                                            \
  [WHOLE_NORM_SELF] = "input_layernorm", [WHOLE_NORM_SELF_AFTER] = "post_attention_layernorm", \
  [WHOLE_NORM_FORWARD] = "pre_feedforward_layernorm",                                          \
  [WHOLE_NORM_FORWARD_AFTER] = "post_feedforward_layernorm"

const struct whole_family whole_family_gpt2 = {
    .name = "gpt2",
    .layer = "h.{i}.",
    .self = "attn.",
    .packed = {QUERIES_KEYS_VALUES("c_attn.")},
    .stem = {[WHOLE_OUTPUT] = "c_proj",
             [WHOLE_UP] = "mlp.c_fc",
             [WHOLE_DOWN] = "mlp.c_proj",
             [WHOLE_NORM_SELF] = "ln_1",
             [WHOLE_NORM_FORWARD] = "ln_2",
             [WHOLE_POSITION] = "wpe",
             [WHOLE_NORM_LAST] = "ln_f"},
    .table = {"wte"},
    .head = "lm_head",
    .scope = {"h.", "wte.", "wpe.", "ln_f."},
    .buffer = {"attn.bias", "attn.masked_bias"},
    .keys = &gpt2_keys,
    .decodes = true,
    .across = true,
    .bias = WHOLE_BIAS_ALWAYS,
    .tied = true,
    .lasting = true,
    .place = NORM_PRE,
    .positions = POSITIONS_LEARNED,
};
const struct whole_family whole_family_llama = {
    .name = "llama",
    LLAMA_NAMES(LLAMA_NORMS),
    .bare_classes = "score",
    .decodes = true,
    .keys = &llama_keys,
};
static const struct whole_family smollm3 = {
    .name = "smollm3",
    LLAMA_NAMES(LLAMA_NORMS),
    .bare_classes = "score",
    .decodes = true,
    .keys = &smollm3_keys,
};
static const struct whole_family gemma = {
    .name = "gemma",
    LLAMA_NAMES(LLAMA_NORMS),
    .bare_classes = "score",
    .decodes = true,
    .keys = &gemma_keys,
    .above_one = true,
};
static const struct whole_family gemma2 = {
    .name = "gemma2",
    LLAMA_NAMES(GEMMA_NORMS),
    .bare_classes = "score",
    .decodes = true,
    .keys = &gemma2_keys,
    .above_one = true,
};
static const struct whole_family gemma3 = {
    .name = "gemma3",
    LLAMA_NAMES(GEMMA_NORMS),
    .bare_classes = "score",
    .decodes = true,
    .keys = &gemma3_keys,
    .above_one = true,
};
static const struct whole_family eurobert = {
    .name = "eurobert",
    LLAMA_NAMES(LLAMA_NORMS),
    .class_activation = "gelu",
    .class_vectors = STACK_VECTORS_LATE,
    .bare_classes = "classifier",
    .masked = {{.matrix = "lm_head"}},
    .keys = &llama_keys,
};

const struct whole_family *const whole_families_decoders[] = {
    &whole_family_gpt2, &whole_family_llama, &smollm3, &gemma, &gemma2, &gemma3, &eurobert, NULL,
};
