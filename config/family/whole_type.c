/* whole_type: the table of types. */
#include "config/family/whole_type.h"

#include <stdio.h>
#include <string.h>

#define NO_TOKENS .begin = -1, .end = -1, .pad = -1, .forced_end = -1
#define ROBERTA                                                                                    \
  .family = "bert", .heads = 12, .epsilon = 1e-12, .activation = "gelu", .first_behind_pad = true, \
  .begin = 0, .end = 2, .pad = 1, .forced_end = -1
#define LLAMA                                                                               \
  .family = "llama", .rope_base = 10000, .epsilon = 1e-6, .activation = "silu", .begin = 1, \
  .end = 2, .pad = -1, .forced_end = -1
#define QWEN                                                                                    \
  .family = "llama", .rope_base = 10000, .epsilon = 1e-6, .activation = "silu", .untied = true, \
  .windows = true, .window_asked = true, .window = 4096, .window_from = 28, .both_ways = true,  \
  NO_TOKENS
/* Gemma 2 and 3. */
#define GEMMA                                                                                 \
  .heads = 8, .head_size = 256, .epsilon = 1e-6, .activation = "gelu_new",                    \
  .scaled_embedding = true, .windows = true, .window = 4096, .score_scalar = 256, .begin = 2, \
  .end = 1, .pad = 0, .forced_end = -1
#define GEMMA3                                                                       \
  GEMMA, .family = "gemma3", .rope_base = 1e6, .rope_local = 10000, .full_every = 6, \
         .head_norms = true, .both_ways = true, .window_halved = true
#define GTE                                                                                 \
  .family = "gte", .heads = 12, .rope_base = 10000, .epsilon = 1e-12, .activation = "gelu", \
  .pad = 0, .begin = -1, .end = -1, .forced_end = -1
#define CLIP_TEXT                                                                           \
  .family = "clip_text", .heads = 8, .epsilon = 1e-5, .activation = "quick_gelu", .pad = 1, \
  .begin = 49406, .end = 49407, .forced_end = -1
#define OTHER .why = "is not supported: it computes something else than similar models"

static const struct whole_type types[] = {
    {.name = "transformer", .epsilon = 1e-5, .family = "plain", NO_TOKENS},
    {.name = "bert",
     .variant = "alibi",
     .family = "jina_bert",
     .heads = 12,
     .epsilon = 1e-12,
     .activation = "gelu",
     .begin = -1,
     .end = -1,
     .pad = 0,
     .forced_end = -1},
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
    {.name = "electra",
     .family = "electra",
     .heads = 4,
     .epsilon = 1e-12,
     .activation = "gelu",
     .begin = -1,
     .end = -1,
     .pad = 0,
     .forced_end = -1},
    {.name = "albert",
     .family = "albert",
     .heads = 64,
     .epsilon = 1e-12,
     .activation = "gelu_new",
     .begin = 2,
     .end = 3,
     .pad = 0,
     .forced_end = -1},
    {.name = "mpnet",
     .family = "mpnet",
     .heads = 12,
     .epsilon = 1e-12,
     .activation = "gelu",
     .first_position = 2,
     .begin = 0,
     .end = 2,
     .pad = 1,
     .forced_end = -1},
    {.name = "deberta-v2",
     .family = "deberta-v2",
     .heads = 24,
     .epsilon = 1e-7,
     .activation = "gelu",
     .begin = -1,
     .end = -1,
     .pad = 0,
     .forced_end = -1},
    {.name = "deberta", OTHER},
    {.name = "jina_embeddings_v3",
     .family = "jina_v3",
     .heads = 16,
     .rope_base = 20000,
     .epsilon = 1e-5,
     .activation = "gelu",
     .begin = 0,
     .end = 2,
     .pad = 1,
     .forced_end = -1},
    {.name = "nomic_bert",
     .family = "nomic_bert",
     .heads = 12,
     .rope_base = 10000,
     .epsilon = 1e-5,
     .activation = "gelu_new",
     .begin = -1,
     .end = -1,
     .pad = 0,
     .forced_end = -1},
    {.name = "new", GTE},
    {.name = "gte", GTE},
    {.name = "eurobert",
     .family = "eurobert",
     .rope_base = 250000,
     .epsilon = 1e-5,
     .activation = "silu",
     .untied = true,
     .begin = 128000,
     .end = 128001,
     .pad = 128001,
     .forced_end = -1},
    {.name = "modernbert",
     .family = "modernbert",
     .heads = 12,
     .rope_base = 160000,
     .rope_local = 10000,
     .windows = true,
     .window_halved = true,
     .window = 128,
     .full_every = 3,
     .full_first = true,
     .epsilon = 1e-5,
     .activation = "gelu",
     .begin = 50281,
     .end = 50282,
     .pad = 50283,
     .forced_end = -1},
    {.name = "static", .family = "static", .epsilon = 1e-5, .activation = "relu", NO_TOKENS},
    {.name = "model2vec", .family = "static", .epsilon = 1e-5, .activation = "relu", NO_TOKENS},
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
     .untied = true, /* transformers ties T5 by default, but not this one */
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
     .pad_banned = true,
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
    {.name = "clip", .variant = "text", .tower = "text_config", CLIP_TEXT},
    {.name = "clip_text_model", CLIP_TEXT},
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
    {.name = "gpt2",
     .family = "gpt2",
     .heads = 12,
     .epsilon = 1e-5,
     .activation = "gelu_new",
     .begin = 50256,
     .end = 50256,
     .pad = -1,
     .forced_end = -1},
    {.name = "llama", LLAMA, .untied = true},
    {.name = "mistral", LLAMA, .untied = true, .windows = true, .window = 4096, .both_ways = true},
    {.name = "ministral", LLAMA, .untied = true, .windows = true, .window = 4096},
    {.name = "qwen2", QWEN},
    {.name = "qwen3", QWEN, .head_size = 128, .head_norms = true},
    {.name = "smollm3",
     .family = "smollm3",
     .rope_base = 2000000,
     .epsilon = 1e-6,
     .activation = "silu",
     .window_asked = true,
     .unrotated_every = 4,
     .begin = 128000,
     .end = 128001,
     .pad = 128004,
     .forced_end = -1},
    {.name = "gemma",
     .family = "gemma",
     .heads = 16,
     .head_size = 256,
     .rope_base = 10000,
     .epsilon = 1e-6,
     .activation = "gelu_new",
     .scaled_embedding = true,
     .both_ways = true,
     .begin = 2,
     .end = 1,
     .pad = 0,
     .forced_end = -1},
    {.name = "gemma2",
     .family = "gemma2",
     GEMMA,
     .rope_base = 10000,
     .full_every = 2,
     .score_cap = 50,
     .logit_cap = 30},
    {.name = "gemma3_text", GEMMA3},
    {.name = "gemma3", .tower = "text_config", .within = "language_model.", GEMMA3},
    {.name = "umt5", OTHER},
    {.name = "longt5", OTHER},
};

const struct whole_type *whole_type_find(const char *name, const char *variant) {
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    const char *own = types[i].variant;
    if (strcmp(types[i].name, name) == 0 && (!own || (variant && strcmp(own, variant) == 0)))
      return &types[i];
  }
  return NULL;
}

void whole_type_list(char *out, size_t size) {
  size_t used = 0;
  *out = '\0';
  for (size_t i = 0; i < sizeof types / sizeof *types && used < size; i++)
    if (types[i].family && !types[i].variant)
      used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", types[i].name);
}

/* --- types of which only the attention is known --- */

/* The types of a layout, with blanks between them. */
static const struct {
  const char *layout, *types;
} layers[] = {
    {"bert", "xlm-roberta-xl electra ernie esm layoutlm data2vec-text roberta-prelayernorm "
             "megatron-bert bert-generation splinter visual_bert vilt dpr clap_text_model "
             "chinese_clip_text_model deit vit_mae vit_msn dinov2 yolos dpt beit "
             "data2vec-vision audio-spectrogram-transformer ijepa"},
    {"clip", "clip_text_model siglip siglip_text_model siglip_vision_model owlvit "
             "owlvit_text_model owlvit_vision_model clipseg clipseg_text_model "
             "clipseg_vision_model"},
    {"gpt2", "openai-gpt imagegpt decision_transformer"},
    {"t5", "umt5 switch_transformers"},
    {"llama", "mixtral qwen2_moe starcoder2 olmo granite"},
    {"whisper", "blenderbot blenderbot-small opt plbart speech_to_text trocr"},
};

bool whole_type_has_layers(const char *name, const char *layout) {
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
    const char *word = strcmp(layers[i].layout, layout) == 0 ? layers[i].types : "";
    for (size_t n; *word; word += n, word += *word == ' ') {
      n = strcspn(word, " ");
      if (n == strlen(name) && strncmp(word, name, n) == 0) return true;
    }
  }
  return false;
}
