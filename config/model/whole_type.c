/* whole_type: the tables. */
#include "config/model/whole_type.h"

#include <stdio.h>
#include <string.h>

#define NO_TOKENS .begin = -1, .end = -1, .pad = -1, .forced_end = -1
#define ROBERTA                                                                                    \
  .family = "bert", .heads = 12, .epsilon = 1e-12, .activation = "gelu", .first_behind_pad = true, \
  .begin = 0, .end = 2, .pad = 1, .forced_end = -1
#define NOT_YET .why = "is a decoder, which is not served yet"
#define LAYERS                                                        \
  .why = "is a decoder, which is not served yet: its layers are, by " \
         "\"checkpoint\" and \"layers\": \"all\""
#define OTHER .why = "computes something else than its kin, and is not served"

static const struct whole_type types[] = {
    {.name = "transformer", .epsilon = 1e-5, .family = "plain", NO_TOKENS},
    {.name = "bert",
     .family = "bert",
     .heads = 12,
     .epsilon = 1e-12,
     .activation = "gelu",
     .begin = -1,
     .end = -1,
     .pad = 0,
     .forced_end = -1},
    {.name = "roberta", ROBERTA},
    {.name = "xlm-roberta", ROBERTA},
    {.name = "camembert", ROBERTA},
    {.name = "distilbert",
     .family = "distilbert",
     .heads = 12,
     .epsilon = 1e-12,
     .activation = "gelu",
     .begin = -1,
     .end = -1,
     .pad = 0,
     .forced_end = -1},
    {.name = "t5",
     .family = "t5",
     .heads = 8,
     .head_size = 64,
     .epsilon = 1e-6,
     .activation = "relu",
     .begin = -1,
     .end = 1,
     .pad = 0,
     .forced_end = -1},
    {.name = "mt5",
     .family = "t5",
     .heads = 6,
     .head_size = 64,
     .epsilon = 1e-6,
     .activation = "gated-gelu",
     .untied = true, /* the library ties T5 where the key is missing, but not this one */
     .begin = 0,
     .end = 1,
     .pad = 0,
     .forced_end = -1},
    {.name = "bart",
     .family = "bart",
     .heads = 16,
     .epsilon = 1e-5,
     .activation = "gelu",
     .first_position = 2,
     .begin = 2,
     .end = 2,
     .pad = 1,
     .forced_end = 2},
    {.name = "mbart",
     .family = "mbart",
     .heads = 16,
     .epsilon = 1e-5,
     .activation = "gelu",
     .first_position = 2,
     .begin = 0,
     .end = 2,
     .pad = 1,
     .forced_end = 2},
    {.name = "m2m_100",
     .family = "m2m100",
     .heads = 16,
     .epsilon = 1e-5,
     .activation = "relu",
     .scaled_embedding = true,
     .first_behind_pad = true,
     .begin = 2,
     .end = 2,
     .pad = 1,
     .forced_end = -1},
    {.name = "pegasus",
     .family = "pegasus",
     .heads = 16,
     .epsilon = 1e-5,
     .activation = "gelu",
     .begin = 0,
     .end = 1,
     .pad = 0,
     .forced_end = 1},
    {.name = "marian",
     .family = "marian",
     .may_part = true,
     .heads = 16,
     .epsilon = 1e-5,
     .activation = "gelu",
     .begin = 58100,
     .end = 0,
     .pad = 58100,
     .forced_end = 0},
    {.name = "vit",
     .family = "vit",
     .heads = 12,
     .epsilon = 1e-12,
     .activation = "gelu",
     NO_TOKENS},
    {.name = "clip",
     .family = "clip",
     .tower = "vision_config",
     .heads = 12,
     .epsilon = 1e-5,
     .activation = "quick_gelu",
     NO_TOKENS},
    {.name = "clip_vision_model",
     .family = "clip",
     .heads = 12,
     .epsilon = 1e-5,
     .activation = "quick_gelu",
     NO_TOKENS},
    {.name = "whisper",
     .family = "whisper",
     .heads = 4,
     .epsilon = 1e-5,
     .activation = "gelu",
     .begin = 50257,
     .end = 50256,
     .pad = 50256,
     .forced_end = -1},
    {.name = "gpt2", LAYERS},
    {.name = "llama", LAYERS},
    {.name = "mistral", LAYERS},
    {.name = "qwen2", LAYERS},
    {.name = "qwen3", NOT_YET},
    {.name = "gemma", NOT_YET},
    {.name = "gemma2", OTHER},
    {.name = "gemma3", OTHER},
    {.name = "gemma3_text", OTHER},
    {.name = "umt5", OTHER},
    {.name = "longt5", OTHER},
};

const struct whole_type *whole_type_find(const char *name) {
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(types[i].name, name) == 0) return &types[i];
  return NULL;
}

void whole_type_list(char *out, size_t size) {
  size_t used = 0;
  *out = '\0';
  for (size_t i = 0; i < sizeof types / sizeof *types && used < size; i++)
    if (types[i].family)
      used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", types[i].name);
}

/* --- what must not be said otherwise --- */

static const struct whole_type_guard guards[] = {
    {"bert", "position_embedding_type", "\"absolute\""},
    {"bert", "is_decoder", "false"},
    {"bert", "add_cross_attention", "false"},
    {NULL, "pruned_heads", "{}"},
    {NULL, "quantization_config", "{}"},
    {NULL, "is_causal", "false"},
    {NULL, "sliding_window", "null"},
    {NULL, "rope_scaling", "null"},
    {NULL, "attn_logit_softcapping", "null"},
    {NULL, "alibi", "false"},
    {NULL, "use_alibi", "false"},
    {NULL, "qk_norm", "false"},
    {NULL, "use_qk_norm", "false"},
    {NULL, "qk_layernorm", "false"},
    {NULL, "num_experts", "0"},
    {NULL, "num_local_experts", "0"},
    {"t5", "is_decoder", "false"},
    {"bart", "normalize_before", "false"},
    {"bart", "normalize_embedding", "true"},
    {"bart", "add_final_layer_norm", "false"},
    {"mbart", "normalize_before", "true"},
    {"mbart", "normalize_embedding", "true"},
    {"mbart", "add_final_layer_norm", "true"},
    {"m2m100", "normalize_before", "true"},
    {"m2m100", "normalize_embedding", "false"},
    {"m2m100", "add_final_layer_norm", "true"},
    {"pegasus", "normalize_before", "true"},
    {"pegasus", "normalize_embedding", "false"},
    {"pegasus", "add_final_layer_norm", "true"},
    {"marian", "normalize_before", "false"},
    {"marian", "normalize_embedding", "false"},
    {"marian", "add_final_layer_norm", "false"},
    {"bart", "extra_pos_embeddings", "2"},
    {"mbart", "extra_pos_embeddings", "2"},
    {"vit", "pooler_act", "\"tanh\""},
    {"vit", "is_decoder", "false"},
};

size_t whole_type_guard_count(void) { return sizeof guards / sizeof *guards; }

const struct whole_type_guard *whole_type_guard_at(size_t index) { return &guards[index]; }
