/* builtin: the assembler includes the files of config/checkpoint/builtin in the program. */
#include "config/checkpoint/builtin.h"

#include <string.h>

/* Every file: its model, its part, its name in the model's folder. */
#define FILES(X)                         \
  X(sort, config, "config.json")         \
  X(sort, tensors, "model.safetensors")  \
  X(words, config, "config.json")        \
  X(words, tensors, "model.safetensors") \
  X(words, words, "words.txt")           \
  X(story, config, "config.json")        \
  X(story, tensors, "model.safetensors") \
  X(story, words, "words.txt")

/* The paths begin at the top of the repository, where the compiler runs. The symbols are global
 * (though hidden), as C takes them to be: with -flto the assembler may see them in another file
 * than the compiler. */
#define INCLUDE(model, part, file) INCLUDE_AS("builtin_" #model "_" #part, #model "/" file)
#define INCLUDE_AS(symbol, path)                                                              \
  ".globl " symbol ", " symbol "_end\n"                                                       \
  ".hidden " symbol ", " symbol "_end\n" symbol ": .incbin \"config/checkpoint/builtin/" path \
  "\"\n" symbol "_end:\n"
__asm__(".pushsection .rodata\n" FILES(INCLUDE) ".popsection\n");

#define DECLARE(model, part, file) \
  extern const char builtin_##model##_##part[], builtin_##model##_##part##_end[];
FILES(DECLARE)

#define FROM(model, part) \
  { builtin_##model##_##part, builtin_##model##_##part##_end }

static const struct {
  const char *name;
  struct {
    const char *begin, *end;
  } config, tensors, words;
} models[] = {
    {"words", FROM(words, config), FROM(words, tensors), FROM(words, words)},
    {"story", FROM(story, config), FROM(story, tensors), FROM(story, words)},
    {"sort", FROM(sort, config), FROM(sort, tensors), {NULL, NULL}},
};

enum { MODELS = sizeof models / sizeof *models };

const char *builtin_name(size_t index) { return index < MODELS ? models[index].name : NULL; }

bool builtin_find(const char *name, struct builtin *out) {
  for (size_t i = 0; i < MODELS; i++) {
    if (strcmp(models[i].name, name) != 0) continue;
    *out = (struct builtin){
        .name = models[i].name,
        .config = models[i].config.begin,
        .config_size = (size_t)(models[i].config.end - models[i].config.begin),
        .tensors = models[i].tensors.begin,
        .tensors_size = (size_t)(models[i].tensors.end - models[i].tensors.begin),
        .words = models[i].words.begin,
        .words_size =
            models[i].words.begin ? (size_t)(models[i].words.end - models[i].words.begin) : 0,
    };
    return true;
  }
  return false;
}
