/* builtin: the assembler includes the files of config/checkpoint/builtin in the program. */
#include "config/checkpoint/builtin.h"

#include <string.h>

/* The paths begin at the top of the repository, where the compiler runs. The symbols are global
 * (though hidden), as C takes them to be: with -flto the assembler may see them in another file
 * than the compiler. */
__asm__(".pushsection .rodata\n"
        ".globl builtin_sort_config, builtin_sort_config_end\n"
        ".hidden builtin_sort_config, builtin_sort_config_end\n"
        ".globl builtin_sort_tensors, builtin_sort_tensors_end\n"
        ".hidden builtin_sort_tensors, builtin_sort_tensors_end\n"
        "builtin_sort_config: .incbin \"config/checkpoint/builtin/sort/config.json\"\n"
        "builtin_sort_config_end:\n"
        "builtin_sort_tensors: .incbin \"config/checkpoint/builtin/sort/model.safetensors\"\n"
        "builtin_sort_tensors_end:\n"
        ".popsection\n");

extern const char builtin_sort_config[], builtin_sort_config_end[];
extern const char builtin_sort_tensors[], builtin_sort_tensors_end[];

static const struct {
  const char *name, *config, *config_end, *tensors, *tensors_end;
} models[] = {
    {"sort", builtin_sort_config, builtin_sort_config_end, builtin_sort_tensors,
     builtin_sort_tensors_end},
};

enum { MODELS = sizeof models / sizeof *models };

const char *builtin_name(size_t index) { return index < MODELS ? models[index].name : NULL; }

bool builtin_find(const char *name, struct builtin *out) {
  for (size_t i = 0; i < MODELS; i++) {
    if (strcmp(models[i].name, name) != 0) continue;
    *out = (struct builtin){.name = models[i].name,
                            .config = models[i].config,
                            .config_size = (size_t)(models[i].config_end - models[i].config),
                            .tensors = models[i].tensors,
                            .tensors_size = (size_t)(models[i].tensors_end - models[i].tensors)};
    return true;
  }
  return false;
}
