/* config: every setting, from defaults, then the file, then the environment, then the command line.
 *
 * options.def is the only table of settings: this struct, the parser, --help and what `attend
 * check` prints are made from it. A config does not change once it is read; it owns its strings and
 * its JSON. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/status.h"

struct config {
#define OPTION_TEXT(name, fallback, placeholder, brief, details)      const char *name;
#define OPTION_ADDRESS(name, fallback, brief, details)                const char *name;
#define OPTION_ORIGINS(name, fallback, brief, details)                const char *name;
#define OPTION_CHOICE(name, fallback, choices, brief, details)        const char *name;
#define OPTION_COUNT(name, fallback, low, high, unit, brief, details) uint64_t name;
#define OPTION_FLAG(name, fallback, brief, details)                   bool name;
#include "config/settings/options.def"
  const char *directory; /* of the file: relative paths start there; "." without a file */
  const char *file;      /* the file that was read, or NULL */
  json_t *models;        /* object: name -> definition; the built-in three if the file has none */
  bool built_in;         /* these are those that need no configuration */
  struct config_store *store; /* owns the strings */
};

/* Reads everything. `args` are the words after the command, NULL-terminated; `environment` is
 * environ. A setting that is given twice on the command line has its last value; a flag is
 * `--merge`, `--no-merge` or `--merge=on|off|true|false`. An empty ATTEND_CONFIG counts as none.
 * Variables that Kubernetes adds for a service called attend are ignored; any other unknown ATTEND_
 * variable is an error. Model definitions are checked by model_load, not here. On failure
 * (STATUS_CONFIG, STATUS_OUT_OF_MEMORY) the detail names the setting, where it came from, and of an
 * unknown one a known name that is near; the config is empty and may be freed. */
enum status config_read(struct config *c, char *const *args, char *const *environment,
                        struct error *e);
void config_free(struct config *c);

/* Calls `tell` for each setting except default_model that has another value in `next` than in
 * `now`, with its name and the value in `next`. */
void config_differ(const struct config *now, const struct config *next,
                   void (*tell)(void *of, const char *name, const char *value), void *of);

/* Refuses default_model, which is none of these models: says where it was set, and which is near.
 */
enum status config_refuse_default(const struct config *c, const json_t *models, struct error *e);

/* The definition that makes the model of this name: its own, or that with "layers" of which it is a
 * layer, NAME.NUMBER. NULL: there is none. */
const json_t *config_definition(const struct config *c, const char *name);

/* Do both have a model of this name, with the same definition? */
bool config_same_model(const struct config *a, const struct config *b, const char *name);

/* How many words the setting takes that the first of `args` begins: one or two; one where it begins
 * none. */
size_t config_words(char *const *args);

/* Prints the settings for --help, in their groups, a line or two each. */
void config_help(FILE *out);

/* Prints the setting of this name, in full: `max_queue`, `max-queue`, `--max-queue` or
 * ATTEND_MAX_QUEUE; "settings" prints all of them. STATUS_CONFIG: there is no such setting. */
enum status config_help_setting(const char *name, FILE *out, struct error *e);

/* Prints the effective configuration as a JSON document that config_read accepts. False if there is
 * no memory for it or it could not be written. */
bool config_print(const struct config *c, FILE *out);

#endif
