/* layout_family: the table of attentions that are layers by themselves, and what follows from it.
 */
#include "config/family/layout_family.h"

#include <stdio.h>
#include <string.h>

#include "config/family/whole_family_rows.h"
#include "config/family/whole_type.h"

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
                                                .packed = {QUERIES_KEYS_VALUES("in_proj_")},
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
    {.layout = "torch",
     .label = "layer",
     .names = &whole_family_torch_layers,
     .obstacle = TORCH_OBSTACLES},
    {.layout = "torch",
     .label = "layer",
     .names = &whole_family_torch_decoder,
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
     .names = &whole_family_bert,
     .may_decode = true,
     .frequencies = "self.rotary_embeddings.inv_freq",
     .obstacle = {{"self.distance_embedding.weight", "embedded distances are not supported"}},
     .beyond = {{"encoder.embed_positions.weight", "positions that turn pairs are not supported"},
                {"encoder.rel_pos_bias.weight", "relative positions of LayoutLM are not supported"},
                {"encoder.rel_pos_x_bias.weight", "positions in two dimensions are not supported"}},
     .harmless = {"output.LayerNorm.", "LayerNorm.", "ln.", "self_attn_layer_norm."}},
    {.layout = "bert",
     .label = "layer",
     .names = &whole_family_vit,
     .may_decode = true,
     .obstacle = {{"attention.relative_position_bias.relative_position_bias_table",
                   "positions in two dimensions are not supported"}},
     .beyond = {{"encoder.relative_position_bias.relative_position_bias_table",
                 "positions in two dimensions are not supported"}},
     .harmless = {"output.LayerNorm."}},

    {.layout = "clip",
     .label = "text",
     .names = &whole_family_clip,
     .layer = "text_model.encoder.layers.{i}.",
     .causal = true,
     .not_causal = "siglip",
     .sees_all = "text_model.head.weight"}, /* SigLIP's */
    {.layout = "clip", .label = "vision", .names = &whole_family_clip},

    /* GPT-2. Its attn.bias and attn.masked_bias are masks and not biases. */
    {.layout = "gpt2",
     .label = "layer",
     .names = &whole_family_gpt2,
     .harmless = {"bias", "masked_bias"}},

    {.layout = "t5", .label = "encoder", .names = &whole_family_t5_encoder, .harmless = {T5_TABLE}},
    {.layout = "t5", .label = "decoder", .names = &whole_family_t5_decoder, .harmless = {T5_TABLE}},
    {.layout = "t5",
     .label = "decoder",
     .names = &whole_family_t5_decoder,
     .cross = true,
     .harmless = {T5_TABLE}},

    /* Llama, Mistral, Qwen2. */
    {.layout = "llama",
     .label = "layer",
     .names = &whole_family_llama,
     .frequencies = "rotary_emb.inv_freq",
     .harmless = {"rotary_emb.cos_cached", "rotary_emb.sin_cached"},
     .obstacle = {{"q_norm.weight", "queries and keys that are normalised are not supported"},
                  {"k_norm.weight", "queries and keys that are normalised are not supported"},
                  {"sinks", "attention sinks are not supported"}}},

    /* Whisper, BART and others. */
    {.layout = "whisper",
     .label = "encoder",
     .names = &whole_family_bart_encoder,
     .bare_keys = true},
    {.layout = "whisper",
     .label = "decoder",
     .names = &whole_family_bart_decoder,
     .bare_keys = true},
    {.layout = "whisper",
     .label = "decoder",
     .names = &whole_family_bart_decoder,
     .cross = true,
     .bare_keys = true},
};

_Static_assert(sizeof layers / sizeof *layers <= LAYOUT_FAMILIES_MOST, "too many");

/* --- functions --- */

size_t layout_family_count(void) { return sizeof layers / sizeof *layers; }

const struct layout_family *layout_family_at(size_t index) { return &layers[index]; }

const char *const layout_family_separate[3] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};

void layout_family_list(const char *out[LAYOUT_FAMILIES_MOST + 1]) {
  size_t count = 0;
  for (size_t i = 0; i < layout_family_count(); i++)
    if (count == 0 || strcmp(out[count - 1], layout_family_at(i)->layout) != 0)
      out[count++] = layout_family_at(i)->layout;
  out[count] = NULL;
}

const char *layout_family_layer(const struct layout_family *f) {
  return f->layer ? f->layer : f->names->layer;
}

const char *layout_family_within(const struct layout_family *f) {
  return whole_family_within(f->names, f->cross ? WHOLE_CROSS_QUERY : WHOLE_QUERY);
}

const char *layout_family_stem(const struct layout_family *f, enum role role) {
  const unsigned first = f->cross ? WHOLE_CROSS_QUERY : WHOLE_QUERY;
  return role < ROLE_PROJECTIONS ? f->names->stem[first + (unsigned)role] : f->parameter[role];
}

const char *layout_family_packed(const struct layout_family *f) {
  const struct whole_packed *packed =
      whole_family_packed(f->names, f->cross ? WHOLE_CROSS_QUERY : WHOLE_QUERY);
  return packed ? packed->stem : NULL;
}

struct definition_customs layout_family_customs(const struct layout_family *f) {
  const struct whole_family *n = f->names;
  return (struct definition_customs){.causal = f->causal || (n->decodes && !f->cross),
                                     .unscaled = n->unscaled,
                                     .rope = n->rotary,
                                     .relative = n->relative && !f->cross,
                                     .relative_both = n->relative && !f->cross && !n->decodes};
}

/* Do the attentions of both families have the same names? */
static bool share_names(const struct whole_family *a, const struct whole_family *b) {
  if (strcmp(a->layer, b->layer) != 0) return false;
  if (strcmp(whole_family_within(a, WHOLE_QUERY), whole_family_within(b, WHOLE_QUERY)) != 0)
    return false;
  for (enum whole_role role = WHOLE_QUERY; role <= WHOLE_OUTPUT; role++) {
    const char *one = a->stem[role] ? a->stem[role] : "",
               *other = b->stem[role] ? b->stem[role] : "";
    if (strcmp(one, other) != 0) return false;
  }
  return true;
}

bool layout_family_fits(const struct layout_family *f, const char *type) {
  const struct whole_type *whole = whole_type_find(type, NULL);
  if (!f->names->keys || whole_type_has_layers(type, f->layout)) return true;
  if (!whole || !whole->family || whole->head_norms) return false;
  for (size_t i = 0; i < whole_family_count(); i++) {
    const struct whole_family *one = whole_family_at(i);
    if (strcmp(one->name, whole->family) != 0) continue;
    for (size_t j = 0; j < layout_family_count(); j++)
      if (strcmp(layout_family_at(j)->layout, f->layout) == 0 &&
          share_names(one, layout_family_at(j)->names))
        return true;
  }
  return false;
}

bool layout_family_path(const char *path, size_t layer, char *out, size_t size) {
  const char *number = strstr(path, "{i}");
  const int length =
      !number ? snprintf(out, size, "%s", path)
              : snprintf(out, size, "%.*s%zu%s", (int)(number - path), path, layer, number + 3);
  return length >= 0 && (size_t)length < size;
}
