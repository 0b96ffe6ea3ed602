/* config: every setting, from defaults, then the file, then the environment, then the command line.
 *
 * options.def is the only table of settings: this struct, the parser, --help and the output of
 * `attend check` are made from it. A config does not change once it is read; it owns its strings
 * and its JSON. */
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
  const char *directory;      /* of the file: relative paths start there; "." without a file */
  const char *file;           /* the file that was read, or NULL */
  json_t *models;             /* object: name -> definition; built-in ones if the file has none */
  bool built_in;              /* whether these are the built-in models */
  struct config_store *store; /* owns the strings */
};

/* Reads everything. `args` are the words after the command, NULL-terminated; `environment` is
 * environ. The last value of a setting on the command line counts; a flag is `--merge`,
 * `--no-merge` or `--merge=on|off|true|false`. An empty ATTEND_CONFIG is ignored, and so are the
 * variables that Kubernetes adds for a service called attend; any other unknown ATTEND_ variable is
 * an error. Model definitions are checked by model_load, not here. On failure, STATUS_CONFIG or
 * STATUS_OUT_OF_MEMORY, the detail names the setting and its source, and for an unknown setting the
 * nearest name; the config is empty and may be freed. */
enum status config_read(struct config *c, char *const *args, char *const *environment,
                        struct error *e);
void config_free(struct config *c);

/* Calls `report` for each setting that differs in `next` from `now`, except those that a reload
 * applies, with its name and the value in `next`. */
void config_differ(const struct config *now, const struct config *next,
                   void (*report)(void *of, const char *name, const char *value), void *of);

/* Rejects default_model, which is not among these models. The message has its source and the
 * nearest name. */
enum status config_refuse_default(const struct config *c, const json_t *models, struct error *e);

/* The definition of the model of this name: its own, or one with "layers" for NAME.NUMBER. NULL:
 * there is none. */
const json_t *config_definition(const struct config *c, const char *name);

/* Do both have a model of this name, with the same definition? */
bool config_same_model(const struct config *a, const struct config *b, const char *name);

/* The number of words of the setting that `args` begins with, one or two; one if it
 * is no setting. */
size_t config_words(char *const *args);

/* Prints the settings for --help, in their groups, a line or two each. */
void config_help(FILE *out);

/* Prints the setting of this name in full: `max_queue`, `max-queue`, `--max-queue` or
 * ATTEND_MAX_QUEUE; all of them for "settings". STATUS_CONFIG: there is no such setting. */
enum status config_help_setting(const char *name, FILE *out, struct error *e);

/* Prints the effective configuration as a JSON document that config_read accepts. False if memory
 * ran out or it could not be written. */
bool config_print(const struct config *c, FILE *out);

#endif
