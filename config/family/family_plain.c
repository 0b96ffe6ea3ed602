/* family_plain: the families of nn.Transformer and of Dive into Deep Learning (d2l), whose
 * config.json is a definition. */
#include "config/family/whole_family_rows.h"

/* nn.Transformer. */
#define TORCH \
  .name = "plain", .self = "self_attn.", .loose = true, .positions = POSITIONS_INTERLEAVED
#define TORCH_STEMS                                                                  \
  [WHOLE_OUTPUT] = "out_proj", [WHOLE_UP] = "linear1", [WHOLE_GATE] = "linear_gate", \
  [WHOLE_DOWN] = "linear2", [WHOLE_NORM_SELF] = "norm1", [WHOLE_POSITION] = "positions"
/* Stems of layers without a cross-attention. */
#define TORCH_ALONE \
  TORCH_STEMS, [WHOLE_NORM_FORWARD] = "norm2", [WHOLE_RELATIVE] = "relative_bias", CLASSIFIER

const struct whole_family whole_family_torch_decoder = {
    TORCH,
    .packed = {QUERIES_KEYS_VALUES("in_proj_"), CROSS_QUERIES_KEYS_VALUES("in_proj_")},
    .layer = "decoder.layers.{i}.",
    .cross = "multihead_attn.",
    .stem = {TORCH_STEMS, [WHOLE_CROSS_OUTPUT] = "out_proj", [WHOLE_NORM_CROSS] = "norm2",
             [WHOLE_NORM_FORWARD] = "norm3", [WHOLE_NORM_LAST] = "decoder.norm",
             [WHOLE_RELATIVE] = "decoder.relative_bias"},
    .table = {"decoder.embedding", "embedding"},
    .head = "output",
    .scope = {"decoder."},
    .decodes = true,
};
static const struct whole_family torch_encoder = {
    TORCH,
    .packed = {QUERIES_KEYS_VALUES("in_proj_")},
    .layer = "encoder.layers.{i}.",
    .stem = {TORCH_ALONE, [WHOLE_NORM_LAST] = "encoder.norm"},
    .table = {"encoder.embedding", "embedding"},
    .decoder = &whole_family_torch_decoder,
    .scope = {"encoder."},
};
static const struct whole_family torch_decoder_alone = {
    TORCH,
    .packed = {QUERIES_KEYS_VALUES("in_proj_")},
    .layer = "decoder.layers.{i}.",
    .stem = {TORCH_ALONE, [WHOLE_NORM_LAST] = "decoder.norm"},
    .table = {"decoder.embedding", "embedding"},
    .head = "output",
    .scope = {"decoder."},
    .decodes = true,
};
static const struct whole_family torch_decoder_layers = {
    TORCH,
    .packed = {QUERIES_KEYS_VALUES("in_proj_")},
    .layer = "layers.{i}.",
    .stem = {TORCH_ALONE, [WHOLE_NORM_LAST] = "norm"},
    .table = {"embedding"},
    .head = "output",
    .scope = {"layers.", "norm."},
    .decodes = true,
    .by_kind = true,
};
const struct whole_family whole_family_torch_layers = {
    TORCH,
    .packed = {QUERIES_KEYS_VALUES("in_proj_")},
    .layer = "layers.{i}.",
    .stem = {TORCH_ALONE, [WHOLE_NORM_LAST] = "norm"},
    .table = {"embedding"},
    .scope = {"layers.", "norm."},
};

/* Dive into Deep Learning (d2l). */
#define D2L                                                           \
  .name = "d2l", .bias = WHOLE_BIAS_ALWAYS, .unbiased = D2L_UNBIASED, \
  .positions = POSITIONS_INTERLEAVED
#define D2L_STEMS(last_norm)                                                        \
  "W_q", "W_k", "W_v", "W_o",                                                       \
      "ffn.dense1", [WHOLE_DOWN] = "ffn.dense2", [WHOLE_NORM_SELF] = "addnorm1.ln", \
                    [WHOLE_NORM_FORWARD] = last_norm ".ln"
#define D2L_UNBIASED \
  (QUERY_KEY_VALUE | ROLE_BIT(WHOLE_OUTPUT) | CROSS_QUERY_KEY_VALUE | ROLE_BIT(WHOLE_CROSS_OUTPUT))

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

/* The order in which a file is compared with them. */
const struct whole_family *const whole_families_plain[] = {
    &torch_encoder,        &torch_decoder_alone,
    &torch_decoder_layers, &whole_family_torch_layers,
    &d2l_encoder,          NULL,
};
