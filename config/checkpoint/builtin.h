/* builtin: models that are part of the program.
 *
 * "sort" sorts tokens. It is an encoder of the plain family for 1 to 16 tokens out of 32: row i of
 * its outputs, 32 numbers wide, has its greatest number at the token that is i-th in order, and
 * head 0 of its last layer attends to the place of that token (the first one among equals).
 * tests/example/sort_train.c trained it. */
#ifndef CONFIG_BUILTIN_H
#define CONFIG_BUILTIN_H

#include <stdbool.h>
#include <stddef.h>

/* The files of a model; static bytes. */
struct builtin {
  const char *name;
  const char *config; /* config.json, without a NUL */
  size_t config_size;
  const void *tensors; /* model.safetensors */
  size_t tensors_size;
};

/* The name of a model; NULL after the last one. */
const char *builtin_name(size_t index);

/* False: there is no such model. */
bool builtin_find(const char *name, struct builtin *out);

#endif
