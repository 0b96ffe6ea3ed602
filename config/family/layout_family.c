/* layout_family: the table of names. */
#include "config/family/layout_family.h"

#include <stdio.h>
#include <string.h>

#define PLAIN_STEMS                                                                                \
  {                                                                                                \
    "query", "key", "value", "output", "score.query", "score.key", "score.vector", "score.weight", \
        "relative_bias"                                                                            \
  }
#define TORCH_OBSTACLES                                        \
  {                                                            \
    {"bias_k", "a learned key and value are not supported"}, { \
      "bias_v", "a learned key and value are not supported"    \
    }                                                          \
  }
#define PROJ_STEMS \
  { "q_proj", "k_proj", "v_proj", "out_proj" }
#define T5_TABLE         "relative_attention_bias.weight"
#define T5_DECODER_TABLE "decoder.block.0.layer.0.SelfAttention." T5_TABLE

/* Models whose attention is that of the layout, except for what config.json says. */
static const char *const berts[] = {"bert",
                                    "roberta",
                                    "xlm-roberta",
                                    "xlm-roberta-xl",
                                    "camembert",
                                    "electra",
                                    "ernie",
                                    "esm",
                                    "layoutlm",
                                    "data2vec-text",
                                    "roberta-prelayernorm",
                                    "megatron-bert",
                                    "bert-generation",
                                    "splinter",
                                    "visual_bert",
                                    "vilt",
                                    "dpr",
                                    "clap_text_model",
                                    "chinese_clip_text_model",
                                    "vit",
                                    "deit",
                                    "vit_mae",
                                    "vit_msn",
                                    "dinov2",
                                    "yolos",
                                    "dpt",
                                    "beit",
                                    "data2vec-vision",
                                    "audio-spectrogram-transformer",
                                    "ijepa",
                                    NULL};
static const char *const clips[] = {"clip",    "clip_text_model",    "clip_vision_model",
                                    "siglip",  "siglip_text_model",  "siglip_vision_model",
                                    "owlvit",  "owlvit_text_model",  "owlvit_vision_model",
                                    "clipseg", "clipseg_text_model", "clipseg_vision_model",
                                    NULL};
static const char *const gpts[] = {"gpt2", "openai-gpt", "imagegpt", "decision_transformer", NULL};
static const char *const t5s[] = {"t5", "mt5", "umt5", "switch_transformers", NULL};
static const char *const llamas[] = {"llama", "mistral",    "mixtral", "qwen2",   "qwen2_moe",
                                     "gemma", "starcoder2", "olmo",    "granite", NULL};
static const char *const whispers[] = {"whisper", "bart",    "mbart",          "marian",
                                       "pegasus", "m2m_100", "blenderbot",     "blenderbot-small",
                                       "opt",     "plbart",  "speech_to_text", "trocr",
                                       NULL};

static const struct layout_family families[] = {
    {.layout = "plain", .label = "layer", .path = "", .stem = PLAIN_STEMS, .unprojected = true},

    /* PyTorch's nn.MultiheadAttention: by itself, and in the layers of nn.Transformer. */
    {.layout = "torch",
     .label = "layer",
     .path = "",
     .stem = {[ROLE_OUTPUT] = "out_proj"},
     .mark = {"in_proj_weight", "q_proj_weight"},
     .joint = LAYOUT_TORCH,
     .nested = true,
     .unprojected = true,
     .obstacle = TORCH_OBSTACLES},
    {.layout = "torch",
     .label = "layer",
     .path = "layers.{i}.self_attn.",
     .stem = {[ROLE_OUTPUT] = "out_proj"},
     .mark = {"in_proj_weight", "q_proj_weight"},
     .joint = LAYOUT_TORCH,
     .nested = true,
     .obstacle = TORCH_OBSTACLES},
    {.layout = "torch",
     .label = "layer",
     .path = "layers.{i}.multihead_attn.",
     .stem = {[ROLE_OUTPUT] = "out_proj"},
     .mark = {"in_proj_weight", "q_proj_weight"},
     .joint = LAYOUT_TORCH,
     .nested = true,
     .cross = true,
     .obstacle = TORCH_OBSTACLES},

    /* Dive into Deep Learning (d2l). Its additive attention projects nothing: W_q and W_k belong to
     * the score. */
    {.layout = "d2l",
     .label = "layer",
     .path = "",
     .stem = {"W_q", "W_k", "W_v", "W_o"},
     .nested = true},
    {.layout = "d2l",
     .label = "pooling",
     .path = "",
     .stem = {[ROLE_OUTPUT] = "W_o",
              [ROLE_SCORE_QUERY] = "W_q.weight",
              [ROLE_SCORE_KEY] = "W_k.weight",
              [ROLE_SCORE_VECTOR] = "w_v.weight"},
     .mark = {""},
     .nested = true,
     .unprojected = true},

    /* BERT, RoBERTa; ViT. */
    {.layout = "bert",
     .models = berts,
     .label = "layer",
     .path = "encoder.layer.{i}.attention.",
     .stem = {"self.query", "self.key", "self.value", "output.dense"},
     .nested = true,
     .frequencies = "self.rotary_embeddings.inv_freq",
     .obstacle = {{"self.distance_embedding.weight", "embedded distances are not supported"}},
     .beyond = {{"encoder.embed_positions.weight", "positions that turn pairs are not supported"},
                {"encoder.rel_pos_bias.weight", "relative positions of LayoutLM are not supported"},
                {"encoder.rel_pos_x_bias.weight", "positions in two dimensions are not supported"}},
     .harmless = {"output.LayerNorm.", "LayerNorm.", "ln.", "self_attn_layer_norm."}},
    {.layout = "bert",
     .models = berts,
     .label = "layer",
     .path = "encoder.layer.{i}.attention.",
     .stem = {"attention.query", "attention.key", "attention.value", "output.dense"},
     .nested = true,
     .obstacle = {{"attention.relative_position_bias.relative_position_bias_table",
                   "positions in two dimensions are not supported"}},
     .beyond = {{"encoder.relative_position_bias.relative_position_bias_table",
                 "positions in two dimensions are not supported"}},
     .harmless = {"output.LayerNorm."}},

    /* CLIP. */
    {.layout = "clip",
     .models = clips,
     .label = "text",
     .path = "text_model.encoder.layers.{i}.self_attn.",
     .stem = PROJ_STEMS,
     .nested = true,
     .customs = {.causal = true},
     .sees_all = "text_model.head.weight"}, /* SigLIP's */
    {.layout = "clip",
     .models = clips,
     .label = "vision",
     .path = "vision_model.encoder.layers.{i}.self_attn.",
     .stem = PROJ_STEMS,
     .nested = true},

    /* GPT-2. Its attn.bias and attn.masked_bias are masks and not biases. */
    {.layout = "gpt2",
     .models = gpts,
     .label = "layer",
     .path = "h.{i}.attn.",
     .stem = {[ROLE_OUTPUT] = "c_proj"},
     .mark = {"c_attn.weight"},
     .joint = LAYOUT_CONV1D,
     .nested = true,
     .customs = {.causal = true},
     .harmless = {"bias", "masked_bias"}},

    /* T5. A block without a table uses that of the first block. */
    {.layout = "t5",
     .models = t5s,
     .label = "encoder",
     .path = "encoder.block.{i}.layer.0.SelfAttention.",
     .stem = {"q", "k", "v", "o"},
     .nested = true,
     .customs = {.unscaled = true, .relative = true, .relative_both = true},
     .table = {"encoder.block.{i}.layer.0.SelfAttention." T5_TABLE,
               "encoder.block.0.layer.0.SelfAttention." T5_TABLE},
     .harmless = {T5_TABLE}},
    {.layout = "t5",
     .models = t5s,
     .label = "decoder",
     .path = "decoder.block.{i}.layer.0.SelfAttention.",
     .stem = {"q", "k", "v", "o"},
     .nested = true,
     .customs = {.causal = true, .unscaled = true, .relative = true},
     .table = {"decoder.block.{i}.layer.0.SelfAttention." T5_TABLE, T5_DECODER_TABLE},
     .harmless = {T5_TABLE}},
    {.layout = "t5",
     .models = t5s,
     .label = "decoder",
     .path = "decoder.block.{i}.layer.1.EncDecAttention.",
     .stem = {"q", "k", "v", "o"},
     .nested = true,
     .cross = true,
     .customs = {.unscaled = true},
     .table = {T5_DECODER_TABLE}, /* only for the number of heads */
     .harmless = {T5_TABLE}},

    /* Llama, Mistral, Qwen2. */
    {.layout = "llama",
     .models = llamas,
     .label = "layer",
     .path = "layers.{i}.self_attn.",
     .stem = {"q_proj", "k_proj", "v_proj", "o_proj"},
     .nested = true,
     .shared = true,
     .customs = {.causal = true, .rope = true},
     .frequencies = "rotary_emb.inv_freq",
     .harmless = {"rotary_emb.cos_cached", "rotary_emb.sin_cached"},
     .obstacle = {{"q_norm.weight", "queries and keys that are normalised are not supported"},
                  {"k_norm.weight", "queries and keys that are normalised are not supported"},
                  {"sinks", "attention sinks are not supported"}}},

    /* Whisper, BART and others. */
    {.layout = "whisper",
     .models = whispers,
     .label = "encoder",
     .path = "encoder.layers.{i}.self_attn.",
     .stem = PROJ_STEMS,
     .nested = true},
    {.layout = "whisper",
     .models = whispers,
     .label = "decoder",
     .path = "decoder.layers.{i}.self_attn.",
     .stem = PROJ_STEMS,
     .nested = true,
     .customs = {.causal = true}},
    {.layout = "whisper",
     .models = whispers,
     .label = "decoder",
     .path = "decoder.layers.{i}.encoder_attn.",
     .stem = PROJ_STEMS,
     .nested = true,
     .cross = true},
};

size_t layout_family_count(void) { return sizeof families / sizeof *families; }

const struct layout_family *layout_family_at(size_t index) { return &families[index]; }

bool layout_family_path(const char *path, size_t layer, char *out, size_t size) {
  const char *number = strstr(path, "{i}");
  const int length =
      !number ? snprintf(out, size, "%s", path)
              : snprintf(out, size, "%.*s%zu%s", (int)(number - path), path, layer, number + 3);
  return length >= 0 && (size_t)length < size;
}
