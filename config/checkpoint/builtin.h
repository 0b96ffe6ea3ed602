/* builtin: whole models that the program brings along, so that there is one without a file.
 *
 * "sort" sorts tokens. It is an encoder of the plain family for 1 to 16 tokens out of 32: row i of
 * its outputs, 32 numbers wide, has its greatest number at the token that comes i-th, and head 0 of
 * its last layer looks at the place where that token stands (of equals, the first one first).
 * tests/example/sort_train.c trained it. */
#ifndef CONFIG_BUILTIN_H
#define CONFIG_BUILTIN_H

#include <stdbool.h>
#include <stddef.h>

/* The files of its folder; static bytes, which are not changed. */
struct builtin {
  const char *name;
  const char *config; /* config.json, without a NUL */
  size_t config_size;
  const void *tensors; /* model.safetensors */
  size_t tensors_size;
};

/* The name of a model, or NULL behind the last one. */
const char *builtin_name(size_t index);

/* False: there is no such model. */
bool builtin_find(const char *name, struct builtin *out);

#endif
