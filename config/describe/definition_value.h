/* definition_value: reads single values of a definition strictly.
 *
 * Each function records the first mistake in `e`, STATUS_CONFIG with a detail that begins with the
 * key: a definition with a mistake is not used. If a key is absent, `out` stays as it is. Strings
 * belong to the JSON. */
#ifndef CONFIG_DEFINITION_VALUE_H
#define CONFIG_DEFINITION_VALUE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"
#include "core/kernel/gemm.h"

enum toggle { TOGGLE_UNSAID, TOGGLE_OFF, TOGGLE_ON };

/* Rejects a value that is not `wanted`: "an integer". */
void definition_value_refuse(const char *key, const char *wanted, const json_t *value,
                             struct error *e);

void definition_value_count(const json_t *json, const char *key, size_t low, size_t high,
                            size_t *out, struct error *e);
void definition_value_toggle(const json_t *json, const char *key, enum toggle *out,
                             struct error *e);
void definition_value_string(const json_t *json, const char *key, const char **out,
                             struct error *e);

/* *out becomes one of the choices, which end with NULL: the first if the key is absent. */
void definition_value_choice(const json_t *json, const char *key, const char *const *choices,
                             const char **out, struct error *e);

/* Reads `compute`. Returns whether it is given, and not wrong. */
bool definition_value_compute(const json_t *json, enum compute *out, struct error *e);

/* Reads `random`: {"seed": n}. */
void definition_value_seed(const json_t *json, bool *random, uint64_t *out, struct error *e);

/* Does the list of strings have one that ends so? */
bool definition_value_lists(const json_t *json, const char *key, const char *end);

/* Rejects a key other than these, which end with NULL; the message names the nearest. */
void definition_value_names(const json_t *json, const char *const *known, struct error *e);

/* The same; if `called` knows the key, the message has what that writes: the word for it here. */
enum { DEFINITION_CALLED = 64 };
typedef bool definition_value_called(const char *key, char out[DEFINITION_CALLED]);
void definition_value_names_called(const json_t *json, const char *const *known,
                                   definition_value_called *called, struct error *e);

#endif
