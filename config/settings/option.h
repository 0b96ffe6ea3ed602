/* option: one setting: a row of options.def, and how its value is read from text and from JSON. */
#ifndef CONFIG_OPTION_H
#define CONFIG_OPTION_H

#include <jansson.h>

#include "config/settings/config.h"

enum option_kind {
  OPTION_IS_TEXT,
  OPTION_IS_ADDRESS,
  OPTION_IS_ORIGINS,
  OPTION_IS_CHOICE,
  OPTION_IS_COUNT,
  OPTION_IS_FLAG
};

struct option {
  const char *name;
  enum option_kind kind;
  size_t offset;       /* of the member in struct config */
  const char *text;    /* default of text, address, origins, choice; may be "" */
  uint64_t number;     /* default of count (and of flag: 0 or 1) */
  uint64_t low, high;  /* bounds of count */
  const char *unit;    /* of count; else the words of choice, separated by '|', or a placeholder */
  const char *brief;   /* for --help: a few words */
  const char *details; /* for `attend help SETTING`: sentences */
};

size_t option_count(void);
const struct option *option_at(size_t index);
const struct option *option_find(const char *name); /* by its name in the file; NULL: unknown */

/* The title of the group that begins with this setting; NULL: none does. */
const char *option_group(const struct option *o);

/* The member of `c` that holds the setting: by its kind a const char *, a uint64_t or a bool. */
const char **option_text(const struct option *o, struct config *c);
uint64_t *option_number(const struct option *o, struct config *c);
bool *option_flag(const struct option *o, struct config *c);

/* Is the word on, off, true or false? */
bool option_is_flag_word(const char *value);

/* Sets one value, whose text is borrowed. `where` names the setting in messages, as the user wrote
 * it. STATUS_CONFIG if the value is not of the setting's kind or out of bounds. */
enum status option_set(const struct option *o, struct config *c, const char *value,
                       const char *where, struct error *e);
enum status option_set_json(const struct option *o, struct config *c, const json_t *value,
                            const char *where, struct error *e);

/* The name on the command line, without "--", and in the environment. Returns `out`. */
const char *option_switch(const struct option *o, char out[64]);
const char *option_variable(const struct option *o, char out[64]);

/* The words of messages for a value of this JSON type: "an object". */
const char *option_json_kind(const json_t *value);

#endif
