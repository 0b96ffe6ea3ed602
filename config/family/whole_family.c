/* whole_family: the table of families, and that of the attentions that are also layers. */
#include "config/family/whole_family.h"

#include <string.h>

#include "config/family/layout_family.h"

#define BERT_KEYS                                                                 \
  .own = {"num_hidden_layers", "num_attention_heads", "intermediate_size"},       \
  .width = "hidden_size", .vocabulary = "vocab_size", .types = "type_vocab_size", \
  .positions = "max_position_embeddings", .epsilon = "layer_norm_eps", .activation = "hidden_act"
static const struct whole_keys bert_keys = {BERT_KEYS};
static const struct whole_keys electra_keys = {BERT_KEYS, .embedded = "embedding_size"};
static const struct whole_keys albert_keys = {BERT_KEYS, .embedded = "embedding_size",
                                              .groups = "num_hidden_groups",
                                              .inner = "inner_group_num"};
static const struct whole_keys jina3_keys = {BERT_KEYS, .rope_base = "rope_theta"};
static const struct whole_keys mpnet_keys = {.own = {"num_hidden_layers", "num_attention_heads",
                                                     "intermediate_size"},
                                             .width = "hidden_size",
                                             .vocabulary = "vocab_size",
                                             .positions = "max_position_embeddings",
                                             .epsilon = "layer_norm_eps",
                                             .activation = "hidden_act",
                                             .buckets = "relative_attention_num_buckets"};
static const struct whole_keys fixed_keys = {.positions = NULL};
static const struct whole_keys distilbert_keys = {.own = {"n_layers", "n_heads", "hidden_dim"},
                                                  .width = "dim",
                                                  .vocabulary = "vocab_size",
                                                  .positions = "max_position_embeddings",
                                                  .activation = "activation"};
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
                                          .gated = "gated-"};
#define BART_SIZES                                                         \
  .own = {"encoder_layers", "encoder_attention_heads", "encoder_ffn_dim"}, \
  .decoder = {"decoder_layers", "decoder_attention_heads", "decoder_ffn_dim"}, .width = "d_model"
static const struct whole_keys bart_keys = {BART_SIZES, .vocabulary = "vocab_size",
                                            .positions = "max_position_embeddings",
                                            .activation = "activation_function"};
static const struct whole_keys whisper_keys = {BART_SIZES, .activation = "activation_function"};
static const struct whole_keys vit_keys = {.own = {"num_hidden_layers", "num_attention_heads",
                                                   "intermediate_size"},
                                           .width = "hidden_size",
                                           .epsilon = "layer_norm_eps",
                                           .activation = "hidden_act"};
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
  .epsilon = "rms_norm_eps"
static const struct whole_keys llama_keys = {LLAMA_KEYS, .activation = "hidden_act"};
static const struct whole_keys gemma_keys = {LLAMA_KEYS, .activation = "hidden_activation",
                                             .activation_open = true};

enum {
  QUERY_KEY_VALUE = 1U << WHOLE_QUERY | 1U << WHOLE_KEY | 1U << WHOLE_VALUE,
  CROSS_QUERY_KEY_VALUE = 1U << WHOLE_CROSS_QUERY | 1U << WHOLE_CROSS_KEY | 1U << WHOLE_CROSS_VALUE
};

/* Llama and similar models; only some of them have norms of heads. */
#define LLAMA_NAMES                                                                             \
  .layer = "layers.{i}.", .self = "self_attn.",                                                 \
  .stem = {[WHOLE_QUERY] = "q_proj",                                                            \
           [WHOLE_KEY] = "k_proj",                                                              \
           [WHOLE_VALUE] = "v_proj",                                                            \
           [WHOLE_OUTPUT] = "o_proj",                                                           \
           [WHOLE_UP] = "mlp.up_proj",                                                          \
           [WHOLE_GATE] = "mlp.gate_proj",                                                      \
           [WHOLE_DOWN] = "mlp.down_proj",                                                      \
           [WHOLE_NORM_SELF] = "input_layernorm",                                               \
           [WHOLE_NORM_FORWARD] = "post_attention_layernorm",                                   \
           [WHOLE_NORM_QUERY] = "q_norm",                                                       \
           [WHOLE_NORM_KEY] = "k_norm",                                                         \
           [WHOLE_NORM_LAST] = "norm",                                                          \
           [WHOLE_DENSE] = "linear",                                                            \
           [WHOLE_CLASS_FIRST] = "dense",                                                       \
           [WHOLE_CLASSES] = "classifier"},                                                     \
  .table = {"embed_tokens"}, .head = "lm_head", .scope = {"layers.", "embed_tokens.", "norm."}, \
  .buffer = {"self_attn.rotary_emb.inv_freq"}, .gated = true, .rotary = true, .tied = true,     \
  .lasting = true, .norm = NORM_RMS, .place = NORM_PRE

/* The usual names of the layers of a classifier. */
#define CLASSIFIER [WHOLE_CLASS_FIRST] = "classifier.dense", [WHOLE_CLASSES] = "classifier.out_proj"

/* The masked language modeling head of RoBERTa. */
#define MASKED_ROBERTA                                                                   \
  {                                                                                      \
    .dense = "lm_head.dense", .norm = "lm_head.layer_norm", .matrix = "lm_head.decoder", \
    .bias = "lm_head.bias", .gelu = true,                                                \
  }

/* --- encoder-decoder families: the common part, and the decoders --- */

/* nn.Transformer. */
#define TORCH                                                                \
  .name = "plain", .self = "self_attn.", .joint = "in_proj_", .loose = true, \
  .positions = POSITIONS_INTERLEAVED
#define TORCH_STEMS                                                                  \
  [WHOLE_OUTPUT] = "out_proj", [WHOLE_UP] = "linear1", [WHOLE_GATE] = "linear_gate", \
  [WHOLE_DOWN] = "linear2", [WHOLE_NORM_SELF] = "norm1", [WHOLE_POSITION] = "positions"
/* Stems of layers without a cross-attention. */
#define TORCH_ALONE \
  TORCH_STEMS, [WHOLE_NORM_FORWARD] = "norm2", [WHOLE_RELATIVE] = "relative_bias", CLASSIFIER

static const struct whole_family torch_decoder = {
    TORCH,
    .layer = "decoder.layers.{i}.",
    .cross = "multihead_attn.",
    .cross_joint = "in_proj_",
    .stem = {TORCH_STEMS, [WHOLE_CROSS_OUTPUT] = "out_proj", [WHOLE_NORM_CROSS] = "norm2",
             [WHOLE_NORM_FORWARD] = "norm3", [WHOLE_NORM_LAST] = "decoder.norm",
             [WHOLE_RELATIVE] = "decoder.relative_bias"},
    .table = {"decoder.embedding", "embedding"},
    .head = "output",
    .scope = {"decoder."},
    .decodes = true,
};

/* Dive into Deep Learning (d2l). */
#define D2L                                                           \
  .name = "d2l", .bias = WHOLE_BIAS_ALWAYS, .unbiased = D2L_UNBIASED, \
  .positions = POSITIONS_INTERLEAVED
#define D2L_STEMS(last_norm)                                                        \
  "W_q", "W_k", "W_v", "W_o",                                                       \
      "ffn.dense1", [WHOLE_DOWN] = "ffn.dense2", [WHOLE_NORM_SELF] = "addnorm1.ln", \
                    [WHOLE_NORM_FORWARD] = last_norm ".ln"
enum {
  D2L_UNBIASED =
      QUERY_KEY_VALUE | 1U << WHOLE_OUTPUT | CROSS_QUERY_KEY_VALUE | 1U << WHOLE_CROSS_OUTPUT
};

static const struct whole_family d2l_decoder = {
    D2L,
    .layer = "decoder.blks.block{i}.",
    .self = "attention1.",
    .cross = "attention2.",
    .stem = {D2L_STEMS("addnorm3"), [WHOLE_CROSS_QUERY] = "W_q", [WHOLE_CROSS_KEY] = "W_k",
             [WHOLE_CROSS_VALUE] = "W_v", [WHOLE_CROSS_OUTPUT] = "W_o",
             [WHOLE_NORM_CROSS] = "addnorm2.ln"},
    .table = {"decoder.embedding"},
    .head = "decoder.dense",
    .scope = {"decoder."},
    .ignored = {"decoder.pos_encoding.P"},
    .decodes = true,
    .headed = true,
};

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
static const struct whole_family t5_decoder = {
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

static const struct whole_family bart_decoder = {
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

/* --- families with an encoder, or with a decoder alone --- */

static const struct whole_family torch_encoder = {
    TORCH,
    .layer = "encoder.layers.{i}.",
    .stem = {TORCH_ALONE, [WHOLE_NORM_LAST] = "encoder.norm"},
    .table = {"encoder.embedding", "embedding"},
    .decoder = &torch_decoder,
    .scope = {"encoder."},
};
static const struct whole_family torch_decoder_alone = {
    TORCH,
    .layer = "decoder.layers.{i}.",
    .stem = {TORCH_ALONE, [WHOLE_NORM_LAST] = "decoder.norm"},
    .table = {"decoder.embedding", "embedding"},
    .head = "output",
    .scope = {"decoder."},
    .decodes = true,
};
static const struct whole_family torch_decoder_layers = {
    TORCH,
    .layer = "layers.{i}.",
    .stem = {TORCH_ALONE, [WHOLE_NORM_LAST] = "norm"},
    .table = {"embedding"},
    .head = "output",
    .scope = {"layers.", "norm."},
    .decodes = true,
    .by_kind = true,
};
static const struct whole_family torch_layers = {
    TORCH,
    .layer = "layers.{i}.",
    .stem = {TORCH_ALONE, [WHOLE_NORM_LAST] = "norm"},
    .table = {"embedding"},
    .scope = {"layers.", "norm."},
};
static const struct whole_family d2l_encoder = {
    D2L,
    .layer = "encoder.blks.block{i}.",
    .self = "attention.",
    .stem = {D2L_STEMS("addnorm2")},
    .table = {"encoder.embedding"},
    .decoder = &d2l_decoder,
    .scope = {"encoder."},
    .ignored = {"encoder.pos_encoding.P"},
};
/* BERT and similar models. */
#define BERT_EMBEDDED                                  \
  [WHOLE_TYPE] = "embeddings.token_type_embeddings",   \
  [WHOLE_POSITION] = "embeddings.position_embeddings", \
  [WHOLE_NORM_EMBEDDED] = "embeddings.LayerNorm"
#define BERT_STEMS                                                                     \
  "self.query", "self.key", "self.value", "output.dense", "intermediate.dense",        \
      [WHOLE_DOWN] = "output.dense", [WHOLE_NORM_SELF] = "attention.output.LayerNorm", \
      [WHOLE_NORM_FORWARD] = "output.LayerNorm", BERT_EMBEDDED, CLASSIFIER

static const struct whole_family bert = {
    .name = "bert",
    .layer = "encoder.layer.{i}.",
    .self = "attention.",
    .stem = {BERT_STEMS, [WHOLE_POOLER] = "pooler.dense"},
    .behind_pooler = "classifier",
    .bare_classes = "classifier",
    .masked = {{.dense = "cls.predictions.transform.dense",
                .norm = "cls.predictions.transform.LayerNorm",
                .matrix = "cls.predictions.decoder",
                .bias = "cls.predictions.bias"},
               MASKED_ROBERTA},
    .table = {"embeddings.word_embeddings"},
    .scope = {"embeddings.", "encoder.", "pooler."},
    .ignored = {"embeddings.position_ids", "embeddings.token_type_ids"},
    .keys = &bert_keys,
    .bias = WHOLE_BIAS_ALWAYS,
    .positions = POSITIONS_LEARNED,
};
static const struct whole_family electra = {
    .name = "electra",
    .layer = "encoder.layer.{i}.",
    .self = "attention.",
    .stem = {BERT_STEMS, [WHOLE_PROJECT] = "embeddings_project"},
    .class_activation = "gelu",
    .bare_classes = "classifier",
    .masked = {{.dense = "generator_predictions.dense",
                .norm = "generator_predictions.LayerNorm",
                .matrix = "generator_lm_head",
                .bias = "generator_lm_head.bias",
                .gelu = true}},
    .table = {"embeddings.word_embeddings"},
    .scope = {"embeddings.", "embeddings_project.", "encoder."},
    .ignored = {"embeddings.position_ids", "embeddings.token_type_ids"},
    .keys = &electra_keys,
    .bias = WHOLE_BIAS_ALWAYS,
    .positions = POSITIONS_LEARNED,
};
static const struct whole_family albert = {
    .name = "albert",
    .layer = "encoder.albert_layer_groups.{i}.albert_layers.{j}.",
    .self = "attention.",
    .stem = {"query", "key", "value", "dense",
             "ffn", [WHOLE_DOWN] = "ffn_output", [WHOLE_NORM_SELF] = "attention.LayerNorm",
             [WHOLE_NORM_FORWARD] = "full_layer_layer_norm", BERT_EMBEDDED,
             [WHOLE_PROJECT] = "encoder.embedding_hidden_mapping_in", [WHOLE_POOLER] = "pooler",
             CLASSIFIER},
    .behind_pooler = "classifier",
    .bare_classes = "classifier",
    .masked = {{.dense = "predictions.dense",
                .norm = "predictions.LayerNorm",
                .matrix = "predictions.decoder",
                .bias = "predictions.bias"}},
    .table = {"embeddings.word_embeddings"},
    .scope = {"embeddings.", "encoder.", "pooler."},
    .ignored = {"embeddings.position_ids", "embeddings.token_type_ids"},
    .keys = &albert_keys,
    .shared = true,
    .bias = WHOLE_BIAS_ALWAYS,
    .positions = POSITIONS_LEARNED,
};
static const struct whole_family mpnet = {
    .name = "mpnet",
    .layer = "encoder.layer.{i}.",
    .self = "attention.attn.",
    .stem = {"q", "k", "v", "o", "intermediate.dense", [WHOLE_DOWN] = "output.dense",
             [WHOLE_NORM_SELF] = "attention.LayerNorm", [WHOLE_NORM_FORWARD] = "output.LayerNorm",
             [WHOLE_POSITION] = "embeddings.position_embeddings",
             [WHOLE_NORM_EMBEDDED] = "embeddings.LayerNorm", [WHOLE_POOLER] = "pooler.dense",
             [WHOLE_RELATIVE] = "encoder.relative_attention_bias", CLASSIFIER},
    .bare_classes = "classifier",
    .masked = {MASKED_ROBERTA},
    .table = {"embeddings.word_embeddings"},
    .scope = {"embeddings.", "encoder.", "pooler."},
    .ignored = {"embeddings.position_ids"},
    .keys = &mpnet_keys,
    .bias = WHOLE_BIAS_ALWAYS,
    .relative = true,
    .positions = POSITIONS_LEARNED,
};
/* jina-embeddings-v3 as transformers has it: without the adapters of its tasks. */
static const struct whole_family jina3 = {
    .name = "jina_v3",
    .layer = "layers.{i}.",
    .self = "self_attn.",
    .stem = {"q_proj", "k_proj", "v_proj", "o_proj",
             "mlp.fc1", [WHOLE_DOWN] = "mlp.fc2", [WHOLE_NORM_SELF] = "post_attention_layernorm",
             [WHOLE_NORM_FORWARD] = "post_mlp_layernorm",
             [WHOLE_TYPE] = "embeddings.token_type_embeddings",
             [WHOLE_NORM_EMBEDDED] = "embeddings.LayerNorm", [WHOLE_POOLER] = "pooler.dense",
             CLASSIFIER},
    .bare_classes = "classifier",
    .masked = {MASKED_ROBERTA},
    .table = {"embeddings.word_embeddings"},
    .scope = {"embeddings.", "layers.", "pooler."},
    .ignored = {"embeddings.token_type_ids"},
    .buffer = {"self_attn.rotary_emb.inv_freq"},
    .keys = &jina3_keys,
    .bias = WHOLE_BIAS_ALWAYS,
    .rotary = true,
};
/* Static embeddings: of sentence-transformers, and of model2vec, whose name has no end. */
static const struct whole_family fixed = {
    .name = "static",
    .table = {"embedding", "embeddings"},
    .scope = {"embedding", "weights", "mapping"},
    .keys = &fixed_keys,
};
static const struct whole_family distilbert = {
    .name = "distilbert",
    .layer = "transformer.layer.{i}.",
    .self = "attention.",
    .stem = {"q_lin", "k_lin", "v_lin", "out_lin", "ffn.lin1", [WHOLE_DOWN] = "ffn.lin2",
             [WHOLE_NORM_SELF] = "sa_layer_norm", [WHOLE_NORM_FORWARD] = "output_layer_norm",
             [WHOLE_POSITION] = "embeddings.position_embeddings",
             [WHOLE_NORM_EMBEDDED] = "embeddings.LayerNorm", [WHOLE_CLASS_FIRST] = "pre_classifier",
             [WHOLE_CLASSES] = "classifier"},
    .class_activation = "relu",
    .bare_classes = "classifier",
    .masked = {{.dense = "vocab_transform",
                .norm = "vocab_layer_norm",
                .matrix = "vocab_projector",
                .bias = "vocab_projector.bias"}},
    .table = {"embeddings.word_embeddings"},
    .scope = {"embeddings.", "transformer."},
    .ignored = {"embeddings.position_ids"},
    .keys = &distilbert_keys,
    .bias = WHOLE_BIAS_ALWAYS,
    .positions = POSITIONS_LEARNED,
};
static const struct whole_family t5_encoder = {
    T5("encoder", "1"),
    .stem = {T5_STEMS("encoder", "1")},
    .decoder = &t5_decoder,
};
static const struct whole_family bart_encoder = {
    BART("encoder"),
    .stem = {BART_STEMS("encoder"), BART_EMBEDDED("encoder")},
    .decoder = &bart_decoder,
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
static const struct whole_family vit = {
    .name = "vit",
    .layer = "encoder.layer.{i}.",
    .self = "attention.",
    .stem = {"attention.query", "attention.key", "attention.value", "output.dense",
             "intermediate.dense", [WHOLE_DOWN] = "output.dense",
             [WHOLE_NORM_SELF] = "layernorm_before", [WHOLE_NORM_FORWARD] = "layernorm_after",
             [WHOLE_NORM_LAST] = "layernorm", [WHOLE_POOLER] = "pooler.dense"},
    .scope = {"encoder.", "pooler."},
    .keys = &vit_keys,
    .bias = WHOLE_BIAS_ALWAYS,
    .unbiased = QUERY_KEY_VALUE,
    .lasting = true,
    .aside = true,
    .rows_only = true,
    .place = NORM_PRE,
};
static const struct whole_family clip = {
    .name = "clip",
    .layer = "vision_model.encoder.layers.{i}.",
    .self = "self_attn.",
    .stem =
        {"q_proj", "k_proj", "v_proj", "out_proj",
         "mlp.fc1", [WHOLE_DOWN] = "mlp.fc2", [WHOLE_NORM_SELF] = "layer_norm1",
         [WHOLE_NORM_FORWARD] = "layer_norm2", [WHOLE_NORM_LAST] = "vision_model.post_layernorm"},
    .scope = {"vision_model.encoder."},
    .keys = &vit_keys,
    .bias = WHOLE_BIAS_ALWAYS,
    .lasting = true,
    .aside = true,
    .rows_only = true,
    .place = NORM_PRE,
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
    .unbiased = 1U << WHOLE_KEY,
    .lasting = true,
    .rows_only = true,
    .place = NORM_PRE,
};
static const struct whole_family gpt2 = {
    .name = "gpt2",
    .layer = "h.{i}.",
    .self = "attn.",
    .joint = "c_attn.",
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
static const struct whole_family llama = {
    .name = "llama",
    LLAMA_NAMES,
    .bare_classes = "score",
    .decodes = true,
    .keys = &llama_keys,
};
static const struct whole_family gemma = {
    .name = "gemma",
    LLAMA_NAMES,
    .bare_classes = "score",
    .decodes = true,
    .keys = &gemma_keys,
    .above_one = true,
};

static const struct whole_family eurobert = {
    .name = "eurobert",
    LLAMA_NAMES,
    .class_activation = "gelu",
    .class_vectors = STACK_VECTORS_LATE,
    .bare_classes = "classifier",
    .masked = {{.matrix = "lm_head"}},
    .keys = &llama_keys,
};

/* The order in which a file is compared with them. */
static const struct whole_family *const families[] = {
    &torch_encoder,
    &torch_decoder_alone,
    &torch_decoder_layers,
    &torch_layers,
    &d2l_encoder,
    &bert,
    &t5_encoder,
    &bart_encoder,
    &mbart_encoder,
    &m2m100_encoder,
    &pegasus_encoder,
    &marian_encoder,
    &vit,
    &clip,
    &whisper_encoder,
    &gpt2,
    &distilbert,
    &fixed,
    &electra,
    &albert,
    &mpnet,
    &jina3,
    &llama,
    &gemma,
    &eurobert,
};

/* --- attentions --- */

#define TORCH_OBSTACLES                                        \
  {                                                            \
    {"bias_k", "a learned key and value are not supported"}, { \
      "bias_v", "a learned key and value are not supported"    \
    }                                                          \
  }
#define T5_TABLE "relative_attention_bias.weight"

/* Attentions that are a file of their own. Additive attention of Dive into Deep Learning (d2l)
 * projects nothing: W_q and W_k belong to the score. */
static const struct whole_family plain_alone = {.layer = "",
                                                .stem = {"query", "key", "value", "output"}};
static const struct whole_family torch_alone = {.layer = "",
                                                .joint = "in_proj_",
                                                .stem = {[WHOLE_OUTPUT] = "out_proj"}};
static const struct whole_family d2l_alone = {.layer = "", .stem = {"W_q", "W_k", "W_v", "W_o"}};
static const struct whole_family d2l_pooling = {.layer = "", .stem = {[WHOLE_OUTPUT] = "W_o"}};

static const struct layout_family layers[] = {
    {.layout = "plain",
     .label = "layer",
     .names = &plain_alone,
     .parameter = {[ROLE_SCORE_QUERY] = "score.query",
                   [ROLE_SCORE_KEY] = "score.key",
                   [ROLE_SCORE_VECTOR] = "score.vector",
                   [ROLE_SCORE_WEIGHT] = "score.weight",
                   [ROLE_RELATIVE] = "relative_bias"},
     .alone = true,
     .unprojected = true},

    /* PyTorch's nn.MultiheadAttention: by itself, and in the layers of nn.Transformer. */
    {.layout = "torch",
     .label = "layer",
     .names = &torch_alone,
     .unprojected = true,
     .obstacle = TORCH_OBSTACLES},
    {.layout = "torch", .label = "layer", .names = &torch_layers, .obstacle = TORCH_OBSTACLES},
    {.layout = "torch",
     .label = "layer",
     .names = &torch_decoder,
     .cross = true,
     .layer = "layers.{i}.",
     .obstacle = TORCH_OBSTACLES},

    {.layout = "d2l", .label = "layer", .names = &d2l_alone},
    {.layout = "d2l",
     .label = "pooling",
     .names = &d2l_pooling,
     .parameter = {[ROLE_SCORE_QUERY] = "W_q.weight",
                   [ROLE_SCORE_KEY] = "W_k.weight",
                   [ROLE_SCORE_VECTOR] = "w_v.weight"},
     .unprojected = true},

    /* BERT, RoBERTa; ViT. */
    {.layout = "bert",
     .label = "layer",
     .names = &bert,
     .may_decode = true,
     .frequencies = "self.rotary_embeddings.inv_freq",
     .obstacle = {{"self.distance_embedding.weight", "embedded distances are not supported"}},
     .beyond = {{"encoder.embed_positions.weight", "positions that turn pairs are not supported"},
                {"encoder.rel_pos_bias.weight", "relative positions of LayoutLM are not supported"},
                {"encoder.rel_pos_x_bias.weight", "positions in two dimensions are not supported"}},
     .harmless = {"output.LayerNorm.", "LayerNorm.", "ln.", "self_attn_layer_norm."}},
    {.layout = "bert",
     .label = "layer",
     .names = &vit,
     .may_decode = true,
     .obstacle = {{"attention.relative_position_bias.relative_position_bias_table",
                   "positions in two dimensions are not supported"}},
     .beyond = {{"encoder.relative_position_bias.relative_position_bias_table",
                 "positions in two dimensions are not supported"}},
     .harmless = {"output.LayerNorm."}},

    {.layout = "clip",
     .label = "text",
     .names = &clip,
     .layer = "text_model.encoder.layers.{i}.",
     .causal = true,
     .not_causal = "siglip",
     .sees_all = "text_model.head.weight"}, /* SigLIP's */
    {.layout = "clip", .label = "vision", .names = &clip},

    /* GPT-2. Its attn.bias and attn.masked_bias are masks and not biases. */
    {.layout = "gpt2", .label = "layer", .names = &gpt2, .harmless = {"bias", "masked_bias"}},

    {.layout = "t5", .label = "encoder", .names = &t5_encoder, .harmless = {T5_TABLE}},
    {.layout = "t5", .label = "decoder", .names = &t5_decoder, .harmless = {T5_TABLE}},
    {.layout = "t5",
     .label = "decoder",
     .names = &t5_decoder,
     .cross = true,
     .harmless = {T5_TABLE}},

    /* Llama, Mistral, Qwen2. */
    {.layout = "llama",
     .label = "layer",
     .names = &llama,
     .frequencies = "rotary_emb.inv_freq",
     .harmless = {"rotary_emb.cos_cached", "rotary_emb.sin_cached"},
     .obstacle = {{"q_norm.weight", "queries and keys that are normalised are not supported"},
                  {"k_norm.weight", "queries and keys that are normalised are not supported"},
                  {"sinks", "attention sinks are not supported"}}},

    /* Whisper, BART and others. */
    {.layout = "whisper", .label = "encoder", .names = &bart_encoder, .bare_keys = true},
    {.layout = "whisper", .label = "decoder", .names = &bart_decoder, .bare_keys = true},
    {.layout = "whisper",
     .label = "decoder",
     .names = &bart_decoder,
     .cross = true,
     .bare_keys = true},
};

_Static_assert(sizeof layers / sizeof *layers <= LAYOUT_FAMILIES_MOST, "too many");

/* --- functions --- */

/* The lists of stems, and those who count from the first role of an attention, know this order. */
#define SAME_ORDER(first)                                 \
  ((int)first##KEY == (int)first##QUERY + ROLE_KEY &&     \
   (int)first##VALUE == (int)first##QUERY + ROLE_VALUE && \
   (int)first##OUTPUT == (int)first##QUERY + ROLE_OUTPUT)
_Static_assert(ROLE_QUERY == 0 && SAME_ORDER(WHOLE_) && SAME_ORDER(WHOLE_CROSS_),
               "the roles of an attention are in the order of enum role");
_Static_assert(WHOLE_ROLES <= 64 && WHOLE_CROSS_OUTPUT < 32, "a bit of `unbiased` for each role");
_Static_assert(WHOLE_DENSE_SKIP == WHOLE_DENSE + 1 &&
                   WHOLE_DENSE_END == WHOLE_DENSE + 2 * STACK_DENSE_MOST - 1,
               "two roles for each dense layer");

const char *whole_family_within(const struct whole_family *f, enum whole_role role) {
  const bool cross = role >= WHOLE_CROSS_QUERY && role <= WHOLE_CROSS_OUTPUT;
  const bool self = role <= WHOLE_OUTPUT || role == WHOLE_NORM_QUERY || role == WHOLE_NORM_KEY;
  const char *path = cross ? f->cross : self ? f->self : NULL;
  return path ? path : "";
}

const struct whole_family *whole_family_find(const char *name) {
  size_t row = 0;
  while (row < whole_family_count() && strcmp(families[row]->name, name) != 0) row++;
  return row < whole_family_count() ? families[row] : NULL;
}

size_t whole_family_count(void) { return sizeof families / sizeof *families; }

const struct whole_family *whole_family_at(size_t index) { return families[index]; }

size_t layout_family_count(void) { return sizeof layers / sizeof *layers; }

const struct layout_family *layout_family_at(size_t index) { return &layers[index]; }
