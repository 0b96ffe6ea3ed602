/* whole_family: the table. */
#include "config/model/whole_family.h"

static const struct whole_keys bert_keys = {.layers = "num_hidden_layers",
                                            .width = "hidden_size",
                                            .heads = "num_attention_heads",
                                            .forward_size = "intermediate_size",
                                            .vocabulary = "vocab_size",
                                            .types = "type_vocab_size",
                                            .positions = "max_position_embeddings",
                                            .epsilon = "layer_norm_eps",
                                            .activation = "hidden_act"};
static const struct whole_keys distilbert_keys = {.layers = "n_layers",
                                                  .width = "dim",
                                                  .heads = "n_heads",
                                                  .forward_size = "hidden_dim",
                                                  .vocabulary = "vocab_size",
                                                  .positions = "max_position_embeddings",
                                                  .activation = "activation"};
static const struct whole_keys t5_keys = {.layers = "num_layers",
                                          .width = "d_model",
                                          .heads = "num_heads",
                                          .head_size = "d_kv",
                                          .forward_size = "d_ff",
                                          .vocabulary = "vocab_size",
                                          .epsilon = "layer_norm_epsilon",
                                          .activation = "feed_forward_proj",
                                          .buckets = "relative_attention_num_buckets",
                                          .distance = "relative_attention_max_distance",
                                          .gated = "gated-"};
static const struct whole_keys bart_keys = {.layers = "encoder_layers",
                                            .width = "d_model",
                                            .heads = "encoder_attention_heads",
                                            .forward_size = "encoder_ffn_dim",
                                            .vocabulary = "vocab_size",
                                            .positions = "max_position_embeddings",
                                            .activation = "activation_function"};
static const struct whole_keys whisper_keys = {.layers = "encoder_layers",
                                               .width = "d_model",
                                               .heads = "encoder_attention_heads",
                                               .forward_size = "encoder_ffn_dim",
                                               .activation = "activation_function"};
static const struct whole_keys vit_keys = {.layers = "num_hidden_layers",
                                           .width = "hidden_size",
                                           .heads = "num_attention_heads",
                                           .forward_size = "intermediate_size",
                                           .epsilon = "layer_norm_eps",
                                           .activation = "hidden_act"};
static const struct whole_keys gpt2_keys = {.layers = "n_layer",
                                            .width = "n_embd",
                                            .heads = "n_head",
                                            .forward_size = "n_inner",
                                            .vocabulary = "vocab_size",
                                            .positions = "n_positions",
                                            .epsilon = "layer_norm_epsilon",
                                            .activation = "activation_function"};
#define LLAMA_KEYS                                                                                 \
  .layers = "num_hidden_layers", .width = "hidden_size", .heads = "num_attention_heads",           \
  .head_size = "head_dim", .kv_heads = "num_key_value_heads", .forward_size = "intermediate_size", \
  .vocabulary = "vocab_size", .positions = "max_position_embeddings", .rope_base = "rope_theta",   \
  .epsilon = "rms_norm_eps"
static const struct whole_keys llama_keys = {LLAMA_KEYS, .activation = "hidden_act"};
static const struct whole_keys gemma_keys = {LLAMA_KEYS, .activation = "hidden_activation",
                                             .activation_open = true};

enum { QUERY_KEY_VALUE = 1 << WHOLE_QUERY | 1 << WHOLE_KEY | 1 << WHOLE_VALUE };

/* The layers of nn.TransformerEncoder. */
#define TORCH_LAYER                                                                    \
  .joint = "self_attn.in_proj_",                                                       \
  .stem = {[WHOLE_OUTPUT] = "self_attn.out_proj", [WHOLE_UP] = "linear1",              \
           [WHOLE_GATE] = "linear_gate",          [WHOLE_DOWN] = "linear2",            \
           [WHOLE_NORM_SELF] = "norm1",           [WHOLE_NORM_FORWARD] = "norm2",      \
           [WHOLE_POSITION] = "positions",        [WHOLE_NORM_LAST] = TORCH_LAST_NORM, \
           [WHOLE_RELATIVE] = "relative_bias"}
/* The encoders of BART and its kin. */
#define BART_NAMES                                                                             \
  .layer = "encoder.layers.{i}.",                                                              \
  .stem = {[WHOLE_QUERY] = "self_attn.q_proj",                                                 \
           [WHOLE_KEY] = "self_attn.k_proj",                                                   \
           [WHOLE_VALUE] = "self_attn.v_proj",                                                 \
           [WHOLE_OUTPUT] = "self_attn.out_proj",                                              \
           [WHOLE_UP] = "fc1",                                                                 \
           [WHOLE_DOWN] = "fc2",                                                               \
           [WHOLE_NORM_SELF] = "self_attn_layer_norm",                                         \
           [WHOLE_NORM_FORWARD] = "final_layer_norm",                                          \
           [WHOLE_POSITION] = "encoder.embed_positions",                                       \
           [WHOLE_NORM_EMBEDDED] = BART_EMBEDDED,                                              \
           [WHOLE_NORM_LAST] = BART_LAST},                                                     \
  .table = {"shared", "encoder.embed_tokens", "decoder.embed_tokens"},                         \
  .decoder = "decoder.layers.", .scope = {"encoder."},                                         \
  .ignored = {"encoder.version", "encoder.embed_positions._float_tensor"}, .keys = &bart_keys, \
  .bias = WHOLE_BIAS_ALWAYS, .tied = true

/* Llama and its kin; the norms of heads are in some of them alone. */
#define LLAMA_NAMES                                                                             \
  .layer = "layers.{i}.",                                                                       \
  .stem = {[WHOLE_QUERY] = "self_attn.q_proj",                                                  \
           [WHOLE_KEY] = "self_attn.k_proj",                                                    \
           [WHOLE_VALUE] = "self_attn.v_proj",                                                  \
           [WHOLE_OUTPUT] = "self_attn.o_proj",                                                 \
           [WHOLE_UP] = "mlp.up_proj",                                                          \
           [WHOLE_GATE] = "mlp.gate_proj",                                                      \
           [WHOLE_DOWN] = "mlp.down_proj",                                                      \
           [WHOLE_NORM_SELF] = "input_layernorm",                                               \
           [WHOLE_NORM_FORWARD] = "post_attention_layernorm",                                   \
           [WHOLE_NORM_QUERY] = "self_attn.q_norm",                                             \
           [WHOLE_NORM_KEY] = "self_attn.k_norm",                                               \
           [WHOLE_NORM_LAST] = "norm"},                                                         \
  .table = {"embed_tokens"}, .head = "lm_head", .scope = {"layers.", "embed_tokens.", "norm."}, \
  .buffer = {"self_attn.rotary_emb.inv_freq"}, .decodes = true, .gated = true, .rotary = true,  \
  .tied = true, .lasting = true, .norm = NORM_RMS, .place = NORM_PRE

static const struct whole_family families[] = {
#define TORCH_LAST_NORM "encoder.norm"
    {.name = "plain",
     .layer = "encoder.layers.{i}.",
     TORCH_LAYER,
     .table = {"encoder.embedding", "embedding"},
     .decoder = "decoder.layers.",
     .scope = {"encoder."},
     .loose = true,
     .positions = POSITIONS_INTERLEAVED},
#undef TORCH_LAST_NORM
#define TORCH_LAST_NORM "decoder.norm"
    {.name = "plain",
     .layer = "decoder.layers.{i}.",
     TORCH_LAYER,
     .table = {"decoder.embedding", "embedding"},
     .head = "output",
     .scope = {"decoder."},
     .decodes = true,
     .loose = true,
     .positions = POSITIONS_INTERLEAVED},
#undef TORCH_LAST_NORM
#define TORCH_LAST_NORM "norm"
    {.name = "plain",
     .layer = "layers.{i}.",
     TORCH_LAYER,
     .table = {"embedding"},
     .head = "output",
     .scope = {"layers.", "norm."},
     .decodes = true,
     .by_kind = true,
     .loose = true,
     .positions = POSITIONS_INTERLEAVED},
    {.name = "plain",
     .layer = "layers.{i}.",
     TORCH_LAYER,
     .table = {"embedding"},
     .scope = {"layers.", "norm."},
     .loose = true,
     .positions = POSITIONS_INTERLEAVED},
#undef TORCH_LAST_NORM
    {.name = "d2l",
     .layer = "encoder.blks.block{i}.",
     .stem = {"attention.W_q", "attention.W_k", "attention.W_v", "attention.W_o",
              "ffn.dense1", [WHOLE_DOWN] = "ffn.dense2", [WHOLE_NORM_SELF] = "addnorm1.ln",
              [WHOLE_NORM_FORWARD] = "addnorm2.ln"},
     .table = {"encoder.embedding"},
     .decoder = "decoder.blks.block",
     .scope = {"encoder."},
     .ignored = {"encoder.pos_encoding.P"},
     .bias = WHOLE_BIAS_ALWAYS,
     .unbiased = QUERY_KEY_VALUE | 1U << WHOLE_OUTPUT,
     .positions = POSITIONS_INTERLEAVED},
    {.name = "bert",
     .layer = "encoder.layer.{i}.",
     .stem = {"attention.self.query", "attention.self.key", "attention.self.value",
              "attention.output.dense", "intermediate.dense", [WHOLE_DOWN] = "output.dense",
              [WHOLE_NORM_SELF] = "attention.output.LayerNorm",
              [WHOLE_NORM_FORWARD] = "output.LayerNorm",
              [WHOLE_TYPE] = "embeddings.token_type_embeddings",
              [WHOLE_POSITION] = "embeddings.position_embeddings",
              [WHOLE_NORM_EMBEDDED] = "embeddings.LayerNorm", [WHOLE_POOLER] = "pooler.dense"},
     .table = {"embeddings.word_embeddings"},
     .scope = {"embeddings.", "encoder.", "pooler."},
     .ignored = {"embeddings.position_ids", "embeddings.token_type_ids"},
     .keys = &bert_keys,
     .bias = WHOLE_BIAS_ALWAYS,
     .positions = POSITIONS_LEARNED},
    {.name = "distilbert",
     .layer = "transformer.layer.{i}.",
     .stem = {"attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin",
              "ffn.lin1", [WHOLE_DOWN] = "ffn.lin2", [WHOLE_NORM_SELF] = "sa_layer_norm",
              [WHOLE_NORM_FORWARD] = "output_layer_norm",
              [WHOLE_POSITION] = "embeddings.position_embeddings",
              [WHOLE_NORM_EMBEDDED] = "embeddings.LayerNorm"},
     .table = {"embeddings.word_embeddings"},
     .scope = {"embeddings.", "transformer."},
     .ignored = {"embeddings.position_ids"},
     .keys = &distilbert_keys,
     .bias = WHOLE_BIAS_ALWAYS,
     .positions = POSITIONS_LEARNED},
    {.name = "t5",
     .layer = "encoder.block.{i}.",
     .stem = {"layer.0.SelfAttention.q", "layer.0.SelfAttention.k", "layer.0.SelfAttention.v",
              "layer.0.SelfAttention.o", "layer.1.DenseReluDense.wi",
              "layer.1.DenseReluDense.wi_0", [WHOLE_DOWN] = "layer.1.DenseReluDense.wo",
              [WHOLE_NORM_SELF] = "layer.0.layer_norm", [WHOLE_NORM_FORWARD] = "layer.1.layer_norm",
              [WHOLE_NORM_LAST] = "encoder.final_layer_norm",
              [WHOLE_RELATIVE] = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias"},
     .gated_up = "layer.1.DenseReluDense.wi_1",
     .table = {"shared", "encoder.embed_tokens", "decoder.embed_tokens"},
     .decoder = "decoder.block.",
     .scope = {"encoder."},
     .keys = &t5_keys,
     .bias = WHOLE_BIAS_NEVER,
     .tied = true,
     .lasting = true,
     .unscaled = true,
     .relative = true,
     .norm = NORM_RMS,
     .place = NORM_PRE},
#define BART_EMBEDDED "encoder.layernorm_embedding"
#define BART_LAST     NULL
    {.name = "bart", BART_NAMES, .positions = POSITIONS_LEARNED, .positions_beyond = 2},
#undef BART_LAST
#define BART_LAST "encoder.layer_norm"
    {.name = "mbart",
     BART_NAMES,
     .lasting = true,
     .place = NORM_PRE,
     .positions = POSITIONS_LEARNED,
     .positions_beyond = 2},
#undef BART_EMBEDDED
#define BART_EMBEDDED NULL
    {.name = "m2m100",
     BART_NAMES,
     .lasting = true,
     .place = NORM_PRE,
     .positions = POSITIONS_HALVES_WIDE,
     .positions_beyond = 2},
    {.name = "pegasus",
     BART_NAMES,
     .lasting = true,
     .place = NORM_PRE,
     .positions = POSITIONS_HALVES},
#undef BART_LAST
#define BART_LAST NULL
    {.name = "marian", BART_NAMES, .positions = POSITIONS_HALVES},
    {.name = "vit",
     .layer = "encoder.layer.{i}.",
     .stem = {"attention.attention.query", "attention.attention.key", "attention.attention.value",
              "attention.output.dense", "intermediate.dense", [WHOLE_DOWN] = "output.dense",
              [WHOLE_NORM_SELF] = "layernorm_before", [WHOLE_NORM_FORWARD] = "layernorm_after",
              [WHOLE_NORM_LAST] = "layernorm", [WHOLE_POOLER] = "pooler.dense"},
     .scope = {"encoder.", "pooler."},
     .keys = &vit_keys,
     .bias = WHOLE_BIAS_ALWAYS,
     .unbiased = QUERY_KEY_VALUE,
     .lasting = true,
     .aside = true,
     .rows_only = true,
     .place = NORM_PRE},
    {.name = "clip",
     .layer = "vision_model.encoder.layers.{i}.",
     .stem =
         {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj",
          "mlp.fc1", [WHOLE_DOWN] = "mlp.fc2", [WHOLE_NORM_SELF] = "layer_norm1",
          [WHOLE_NORM_FORWARD] = "layer_norm2", [WHOLE_NORM_LAST] = "vision_model.post_layernorm"},
     .scope = {"vision_model.encoder."},
     .keys = &vit_keys,
     .bias = WHOLE_BIAS_ALWAYS,
     .lasting = true,
     .aside = true,
     .rows_only = true,
     .place = NORM_PRE},
    {.name = "whisper",
     .layer = "encoder.layers.{i}.",
     .stem = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj",
              "fc1", [WHOLE_DOWN] = "fc2", [WHOLE_NORM_SELF] = "self_attn_layer_norm",
              [WHOLE_NORM_FORWARD] = "final_layer_norm", [WHOLE_NORM_LAST] = "encoder.layer_norm"},
     .decoder = "decoder.layers.",
     .scope = {"encoder.layers.", "encoder.layer_norm."},
     .keys = &whisper_keys,
     .bias = WHOLE_BIAS_ALWAYS,
     .unbiased = 1U << WHOLE_KEY,
     .lasting = true,
     .rows_only = true,
     .place = NORM_PRE},
    {.name = "gpt2",
     .layer = "h.{i}.",
     .joint = "attn.c_attn.",
     .stem = {[WHOLE_OUTPUT] = "attn.c_proj",
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
     .positions = POSITIONS_LEARNED},
    {.name = "llama", LLAMA_NAMES, .keys = &llama_keys},
    {.name = "gemma", LLAMA_NAMES, .keys = &gemma_keys, .above_one = true},
};

size_t whole_family_count(void) { return sizeof families / sizeof *families; }

const struct whole_family *whole_family_at(size_t index) { return &families[index]; }
