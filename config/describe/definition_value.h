/* definition_value: values of a model's definition, read strictly one by one.
 *
 * Each of these records the first mistake in `e`, STATUS_CONFIG with a detail that begins with the
 * key, and goes on: the values of a definition that is refused are not used. Where a key is absent
 * `out` stays as it is. Strings belong to the JSON. */
#ifndef CONFIG_DEFINITION_VALUE_H
#define CONFIG_DEFINITION_VALUE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

enum toggle { TOGGLE_UNSAID, TOGGLE_OFF, TOGGLE_ON };

/* Refuses a value that is not `wanted`, "an integer". */
void definition_value_refuse(const char *key, const char *wanted, const json_t *value,
                             struct error *e);

void definition_value_count(const json_t *json, const char *key, size_t low, size_t high,
                            size_t *out, struct error *e);
void definition_value_toggle(const json_t *json, const char *key, enum toggle *out,
                             struct error *e);
void definition_value_string(const json_t *json, const char *key, const char **out,
                             struct error *e);

/* *out becomes one of the choices, which end with NULL: the first where the key is absent. */
void definition_value_choice(const json_t *json, const char *key, const char *const *choices,
                             const char **out, struct error *e);

/* `random`: {"seed": n}. */
void definition_value_seed(const json_t *json, bool *random, uint64_t *out, struct error *e);

/* Refuses a key that is none of these, which end with NULL, and names the nearest. */
void definition_value_names(const json_t *json, const char *const *known, struct error *e);

/* The same; but of a key that `called` knows from elsewhere, it says what that writes: the key as
 * it is called here. */
enum { DEFINITION_CALLED = 64 };
typedef bool definition_value_called(const char *key, char out[DEFINITION_CALLED]);
void definition_value_names_called(const json_t *json, const char *const *known,
                                   definition_value_called *called, struct error *e);

#endif
