/* family_encoders: the families of encoders: a row of a table each, which refers to the keys of its
 * config.json. */
#include "config/family/whole_family_rows.h"

#define BERT_KEYS                                                                 \
  .own = {"num_hidden_layers", "num_attention_heads", "intermediate_size"},       \
  .width = "hidden_size", .vocabulary = "vocab_size", .types = "type_vocab_size", \
  .positions = "max_position_embeddings", .epsilon = "layer_norm_eps", .activation = "hidden_act"
static const struct whole_keys bert_keys = {BERT_KEYS};
static const struct whole_keys electra_keys = {BERT_KEYS, .embedded = "embedding_size"};
static const struct whole_keys albert_keys = {BERT_KEYS, .embedded = "embedding_size",
                                              .groups = "num_hidden_groups",
                                              .inner = "inner_group_num"};
static const struct whole_keys deberta2_keys = {BERT_KEYS, .head_size = "attention_head_size",
                                                .embedded = "embedding_size"};
static const struct whole_keys jina3_keys = {BERT_KEYS, .rope_base = "rope_theta"};
static const struct whole_keys gte_keys = {BERT_KEYS, .rope_base = "rope_theta", .ntk = true};
static const struct whole_alias nomic_aliases[] = {
    {"swiglu", "gated-silu"}, {"geglu", "gated-gelu"},       {"gelu_new", "gelu"},
    {"gelu_fast", "gelu"},    {"gelu_pytorch_tanh", "gelu"}, {NULL, NULL}};
/* Published code rounds n_inner up: the size of a feed-forward is that of its tensors. */
static const struct whole_keys nomic_keys = {.own = {.layers = "n_layer", .heads = "n_head"},
                                             .width = "n_embd",
                                             .vocabulary = "vocab_size",
                                             .types = "type_vocab_size",
                                             .positions = "n_positions",
                                             .rope_base = "rotary_emb_base",
                                             .rope_factor = "rotary_scaling_factor",
                                             .trained = "max_trained_positions",
                                             .dynamic = "max_position_embeddings",
                                             .epsilon = "layer_norm_epsilon",
                                             .activation = "activation_function",
                                             .gated = "gated-",
                                             .alias = nomic_aliases};
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
static const struct whole_keys modernbert_keys = {
    .own = {"num_hidden_layers", "num_attention_heads", "intermediate_size"},
    .width = "hidden_size",
    .vocabulary = "vocab_size",
    .positions = "max_position_embeddings",
    .rope_base = "global_rope_theta",
    .rope_local = "local_rope_theta",
    .window = "local_attention",
    .full_every = "global_attn_every_n_layers",
    .epsilon = "norm_eps",
    .activation = "hidden_activation",
    .head_activation = "classifier_activation"};
static const struct whole_keys vit_keys = {.own = {"num_hidden_layers", "num_attention_heads",
                                                   "intermediate_size"},
                                           .width = "hidden_size",
                                           .epsilon = "layer_norm_eps",
                                           .activation = "hidden_act"};

/* The masked language modeling heads of BERT and RoBERTa. */
#define MASKED_BERT                                                                            \
  {                                                                                            \
    .dense = "cls.predictions.transform.dense", .norm = "cls.predictions.transform.LayerNorm", \
    .matrix = "cls.predictions.decoder", .bias = "cls.predictions.bias",                       \
  }
#define MASKED_ROBERTA                                                                   \
  {                                                                                      \
    .dense = "lm_head.dense", .norm = "lm_head.layer_norm", .matrix = "lm_head.decoder", \
    .bias = "lm_head.bias", .gelu = true,                                                \
  }

/* BERT and similar models. */
#define BERT_EMBEDDED                                  \
  [WHOLE_TYPE] = "embeddings.token_type_embeddings",   \
  [WHOLE_POSITION] = "embeddings.position_embeddings", \
  [WHOLE_NORM_EMBEDDED] = "embeddings.LayerNorm"
#define BERT_STEMS                                                                     \
  "self.query", "self.key", "self.value", "output.dense", "intermediate.dense",        \
      [WHOLE_DOWN] = "output.dense", [WHOLE_NORM_SELF] = "attention.output.LayerNorm", \
      [WHOLE_NORM_FORWARD] = "output.LayerNorm", BERT_EMBEDDED, CLASSIFIER

const struct whole_family whole_family_bert = {
    .name = "bert",
    .layer = "encoder.layer.{i}.",
    .self = "attention.",
    .stem = {BERT_STEMS, [WHOLE_POOLER] = "pooler.dense"},
    .behind_pooler = "classifier",
    .bare_classes = "classifier",
    .masked = {MASKED_BERT, MASKED_ROBERTA},
    .table = {"embeddings.word_embeddings"},
    .scope = {"embeddings.", "encoder.", "pooler."},
    .ignored = {"embeddings.position_ids", "embeddings.token_type_ids"},
    .keys = &bert_keys,
    .bias = WHOLE_BIAS_ALWAYS,
    .positions = POSITIONS_LEARNED,
};
/* JinaBERT, as of jina-embeddings-v2. That of code also normalizes queries and keys. */
static const struct whole_family jina = {
    .name = "jina_bert",
    .layer = "encoder.layer.{i}.",
    .self = "attention.",
    .packed = {{"mlp.gated_layers.", 2, {WHOLE_GATE, WHOLE_UP}}},
    .stem =
        {"self.query", "self.key", "self.value",
         "output.dense", [WHOLE_DOWN] = "mlp.wo", [WHOLE_NORM_SELF] = "attention.output.LayerNorm",
         [WHOLE_NORM_FORWARD] = "mlp.layernorm", [WHOLE_TYPE] = "embeddings.token_type_embeddings",
         [WHOLE_NORM_EMBEDDED] = "embeddings.LayerNorm", [WHOLE_POOLER] = "pooler.dense",
         CLASSIFIER},
    .obstacle =
        {"attention.self.layer_norm_q.weight",
         "queries and keys are normalized over all heads, as in jina-embeddings-v2-base-code: "
         "this is not supported"},
    .behind_pooler = "classifier",
    .bare_classes = "classifier",
    .masked = {MASKED_BERT},
    .table = {"embeddings.word_embeddings"},
    .scope = {"embeddings.", "encoder.", "pooler."},
    .ignored = {"embeddings.position_ids", "embeddings.token_type_ids"},
    .keys = &bert_keys,
    .gated = true,
    .alibi = true,
    .bias = WHOLE_BIAS_ALWAYS,
    .unbiased = ROLE_BIT(WHOLE_UP) | ROLE_BIT(WHOLE_GATE),
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
/* Its heads have the same first layer and norm: before the classes of texts and of tokens, and
 * before the logits. */
static const struct whole_family modernbert = {
    .name = "modernbert",
    .layer = "layers.{i}.",
    .self = "attn.",
    .packed = {QUERIES_KEYS_VALUES("Wqkv."), {"mlp.Wi.", 2, {WHOLE_GATE, WHOLE_UP}}},
    .stem = {[WHOLE_OUTPUT] = "Wo",
             [WHOLE_DOWN] = "mlp.Wo",
             [WHOLE_NORM_SELF] = "attn_norm",
             [WHOLE_NORM_FORWARD] = "mlp_norm",
             [WHOLE_NORM_EMBEDDED] = "embeddings.norm",
             [WHOLE_NORM_LAST] = "final_norm",
             [WHOLE_CLASS_FIRST] = "head.dense",
             [WHOLE_NORM_CLASS] = "head.norm",
             [WHOLE_CLASSES] = "classifier"},
    .class_activation = "gelu",
    .masked =
        {{.dense = "head.dense", .norm = "head.norm", .matrix = "decoder", .bias = "decoder.bias"}},
    .table = {"embeddings.tok_embeddings"},
    .scope = {"embeddings.", "layers.", "final_norm."},
    .keys = &modernbert_keys,
    .gated = true,
    .rotary = true,
    .lasting = true,
    .bare_zero = true,
    .row_heads = true,
    .place = NORM_PRE,
};
/* DeBERTa v2 and v3. Files of pretrained models have tables of positions that are not used. */
static const struct whole_family deberta2 = {
    .name = "deberta-v2",
    .layer = "encoder.layer.{i}.",
    .self = "attention.",
    .stem =
        {"self.query_proj", "self.key_proj", "self.value_proj", "output.dense",
         "intermediate.dense", [WHOLE_DOWN] = "output.dense",
         [WHOLE_NORM_SELF] = "attention.output.LayerNorm",
         [WHOLE_NORM_FORWARD] = "output.LayerNorm", [WHOLE_POSITION_KEY] = "self.pos_key_proj",
         [WHOLE_POSITION_QUERY] = "self.pos_query_proj",
         [WHOLE_DISTANCES] = "encoder.rel_embeddings", [WHOLE_NORM_DISTANCES] = "encoder.LayerNorm",
         [WHOLE_CONVOLUTION] = "encoder.conv.conv",
         [WHOLE_NORM_CONVOLUTION] = "encoder.conv.LayerNorm",
         BERT_EMBEDDED, [WHOLE_CLASS_FIRST] = "pooler.dense", [WHOLE_CLASSES] = "classifier"},
    .class_activation = "gelu",
    .bare_classes = "classifier",
    .masked = {MASKED_BERT,
               {.dense = "lm_predictions.lm_head.dense",
                .norm = "lm_predictions.lm_head.LayerNorm",
                .matrix = "lm_predictions.lm_head.decoder",
                .bias = "lm_predictions.lm_head.bias"}},
    .table = {"embeddings.word_embeddings"},
    .scope = {"embeddings.", "encoder."},
    .ignored = {"embeddings.position_ids", "embeddings.position_embeddings.weight"},
    .keys = &deberta2_keys,
    .bias = WHOLE_BIAS_ALWAYS,
    .disentangled = true,
    .positions = POSITIONS_LEARNED,
};
/* NomicBERT, without its experts. */
static const struct whole_family nomic = {
    .name = "nomic_bert",
    .layer = "encoder.layers.{i}.",
    .self = "attn.",
    .packed = {QUERIES_KEYS_VALUES("Wqkv.")},
    .stem = {[WHOLE_OUTPUT] = "out_proj",
             [WHOLE_UP] = "mlp.fc1",
             [WHOLE_GATE] = "mlp.fc12",
             [WHOLE_DOWN] = "mlp.fc2",
             [WHOLE_NORM_SELF] = "norm1",
             [WHOLE_NORM_FORWARD] = "norm2",
             [WHOLE_TYPE] = "embeddings.token_type_embeddings",
             [WHOLE_NORM_EMBEDDED] = "emb_ln",
             [WHOLE_POOLER] = "pooler.dense"},
    .gated_up = "mlp.fc11",
    .behind_pooler = "classifier",
    .bare_classes = "classifier",
    .masked = {{.dense = "cls.predictions.transform.dense",
                .norm = "cls.predictions.transform.layer_norm",
                .matrix = "cls.predictions.decoder"}},
    .table = {"embeddings.word_embeddings"},
    .scope = {"embeddings.", "emb_ln.", "encoder.", "pooler."},
    .buffer = {"attn.rotary_emb.inv_freq", "attn.norm_factor"},
    .keys = &nomic_keys,
    .rotary = true,
    .bias = WHOLE_BIAS_ALWAYS,
    .unbiased = QUERY_KEY_VALUE | ROLE_BIT(WHOLE_OUTPUT) | ROLE_BIT(WHOLE_UP) |
                ROLE_BIT(WHOLE_GATE) | ROLE_BIT(WHOLE_DOWN),
};
/* GTE v1.5 and multilingual. */
static const struct whole_family gte = {
    .name = "gte",
    .layer = "encoder.layer.{i}.",
    .self = "attention.",
    .packed = {QUERIES_KEYS_VALUES("qkv_proj."), {"mlp.up_gate_proj.", 2, {WHOLE_UP, WHOLE_GATE}}},
    .stem = {[WHOLE_OUTPUT] = "o_proj",
             [WHOLE_DOWN] = "mlp.down_proj",
             [WHOLE_NORM_SELF] = "attn_ln",
             [WHOLE_NORM_FORWARD] = "mlp_ln",
             [WHOLE_TYPE] = "embeddings.token_type_embeddings",
             [WHOLE_NORM_EMBEDDED] = "embeddings.LayerNorm",
             [WHOLE_POOLER] = "pooler.dense"},
    .behind_pooler = "classifier",
    .bare_classes = "classifier",
    .masked = {{.dense = "lm_head.dense", .norm = "lm_head.norm", .matrix = "lm_head.decoder"}},
    .table = {"embeddings.word_embeddings"},
    .scope = {"embeddings.", "encoder.", "pooler."},
    .ignored = {"embeddings.position_ids", "embeddings.rotary_emb.inv_freq"},
    .keys = &gte_keys,
    .gated = true,
    .rotary = true,
    .bias = WHOLE_BIAS_ALWAYS,
    .unbiased = ROLE_BIT(WHOLE_UP) | ROLE_BIT(WHOLE_GATE),
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
const struct whole_family whole_family_vit = {
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
const struct whole_family whole_family_clip = {
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
static const struct whole_keys clip_text_keys = {.own = {"num_hidden_layers", "num_attention_heads",
                                                         "intermediate_size"},
                                                 .width = "hidden_size",
                                                 .vocabulary = "vocab_size",
                                                 .positions = "max_position_embeddings",
                                                 .epsilon = "layer_norm_eps",
                                                 .activation = "hidden_act"};
static const struct whole_family clip_text = {
    .name = "clip_text",
    .layer = "text_model.encoder.layers.{i}.",
    .self = "self_attn.",
    .stem =
        {"q_proj", "k_proj", "v_proj", "out_proj",
         "mlp.fc1", [WHOLE_DOWN] = "mlp.fc2", [WHOLE_NORM_SELF] = "layer_norm1",
         [WHOLE_NORM_FORWARD] = "layer_norm2", [WHOLE_NORM_LAST] = "text_model.final_layer_norm",
         [WHOLE_POSITION] = "text_model.embeddings.position_embedding",
         [WHOLE_DENSE] = "text_projection"},
    .table = {"text_model.embeddings.token_embedding"},
    .scope = {"text_model.", "text_projection."},
    .ignored = {"text_model.embeddings.position_ids"},
    .keys = &clip_text_keys,
    .bias = WHOLE_BIAS_ALWAYS,
    .unbiased = ROLE_BIT(WHOLE_DENSE),
    .lasting = true,
    .aside = true,
    .looks_back = true,
    .ends = true,
    .place = NORM_PRE,
    .positions = POSITIONS_LEARNED,
};
/* Static embeddings: of sentence-transformers, and of model2vec, whose name has no end. */
static const struct whole_family fixed = {
    .name = "static",
    .table = {"embedding", "embeddings"},
    .scope = {"embedding", "weights", "mapping"},
    .keys = &fixed_keys,
};

const struct whole_family *const whole_families_encoders[] = {
    &whole_family_bert,
    &jina,
    &electra,
    &albert,
    &mpnet,
    &deberta2,
    &jina3,
    &modernbert,
    &nomic,
    &gte,
    &distilbert,
    &whole_family_vit,
    &whole_family_clip,
    &clip_text,
    &fixed,
    NULL,
};
