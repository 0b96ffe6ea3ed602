/* config_print: the settings as text: for --help, as a JSON document, and the differences of two
 * configurations. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "config/document/nearest.h"
#include "config/settings/config.h"
#include "config/settings/option.h"

enum {
  COLUMN = 29,    /* of a setting's brief text in --help */
  WIDTH = 79,     /* of a line of text */
  VALUE_SIZE = 32 /* of a number as text */
};

/* --- for --help --- */

/* The setting that is not in options.def, because it has no name in the file. */
static const struct option config_option = {
    .name = "config",
    .kind = OPTION_IS_TEXT,
    .text = "",
    .unit = "FILE",
    .brief = "JSON file with settings and models",
    .details =
        "JSON file with settings and, in \"models\", the models to serve. Relative paths in it "
        "start at its folder. SIGHUP reads it again: models, default_model, compute and API keys "
        "change without a restart. Without it, the server has built-in demo models."};

static const char *placeholder(const struct option *o) {
  return o->kind == OPTION_IS_COUNT ? "N" : o->kind == OPTION_IS_FLAG ? "" : o->unit;
}

static const char *default_text(const struct option *o, char out[VALUE_SIZE]) {
  if (o->kind == OPTION_IS_FLAG) return o->number ? "on" : "off";
  if (o->kind != OPTION_IS_COUNT) return *o->text ? o->text : "none";
  snprintf(out, VALUE_SIZE, "%" PRIu64, o->number);
  return out;
}

static void print_brief(const struct option *o, FILE *out) {
  char name[64], number[VALUE_SIZE], left[128];
  const bool flag = o->kind == OPTION_IS_FLAG;
  const int used = snprintf(left, sizeof left, "  --%s%s%s%s", flag ? "[no-]" : "",
                            option_switch(o, name), flag ? "" : " ", placeholder(o));
  if (used + 1 < COLUMN)
    fprintf(out, "%-*s", COLUMN, left);
  else
    fprintf(out, "%s\n%*s", left, COLUMN, "");
  fprintf(out, "%s (default: %s)\n", o->brief, default_text(o, number));
}

void config_help(FILE *out) {
  print_brief(&config_option, out);
  for (size_t i = 0; i < option_count(); i++) {
    const char *group = option_group(option_at(i));
    if (group) fprintf(out, "\n%s:\n", group);
    print_brief(option_at(i), out);
  }
}

/* --- one setting --- */

/* Prints the text in lines that begin with two spaces. */
static void print_wrapped(const char *text, FILE *out) {
  size_t column = 0;
  while (*text) {
    const size_t word = strcspn(text, " ");
    if (column == 0 || column + 1 + word > WIDTH) {
      fputs(column ? "\n  " : "  ", out);
      column = 2;
    } else {
      fputc(' ', out);
      column++;
    }
    fwrite(text, 1, word, out);
    column += word;
    text += word + strspn(text + word, " ");
  }
  fputc('\n', out);
}

/* Does a reload apply the setting? It changes the models, and what these settings say of them. */
static bool is_reloaded(const struct option *o) {
  return strcmp(o->name, "default_model") == 0 || strcmp(o->name, "compute") == 0;
}

static void print_setting(const struct option *o, FILE *out) {
  char number[VALUE_SIZE];
  const bool count = o->kind == OPTION_IS_COUNT;
  fprintf(out, "%s: %s\n\n", o->name, o->brief);
  print_wrapped(o->details, out);
  fprintf(out, "\n  default        %s%s%s\n", default_text(o, number), count ? " " : "",
          count ? o->unit : "");
  if (count)
    fprintf(out, "  range          %" PRIu64 " to %" PRIu64 " %s\n", o->low, o->high, o->unit);

  /* Its name in each place. */
  char name[64];
  const char *value = placeholder(o), *quote = count ? "" : "\"";
  const bool flag = o->kind == OPTION_IS_FLAG;
  if (flag)
    fprintf(out, "  file           \"%s\": true or false\n", o->name);
  else if (o != &config_option)
    fprintf(out, "  file           \"%s\": %s%s%s\n", o->name, quote, value, quote);
  fprintf(out, "  environment    %s=%s\n", option_variable(o, name), flag ? "on|off" : value);
  option_switch(o, name);
  if (flag)
    fprintf(out, "  command line   --%s or --no-%s\n", name, name);
  else
    fprintf(out, "  command line   --%s %s\n", name, value);
  if (o != &config_option)
    fprintf(out, "  a change       %s\n",
            is_reloaded(o) ? "SIGHUP applies it" : "requires a restart");
}

enum status config_help_setting(const char *name, FILE *out, struct error *e) {
  char plain[64], hint[NEAREST_HINT];
  struct nearest near;
  /* The name may be written as on the command line or in the environment. */
  const char *word = name + strspn(name, "-");
  snprintf(plain, sizeof plain, "%s", strncmp(word, "ATTEND_", 7) == 0 ? word + 7 : word);
  for (char *at = plain; *at; at++) *at = *at == '-' ? '_' : (char)tolower((unsigned char)*at);
  const bool all = strcmp(plain, "settings") == 0;
  const bool config = strcmp(plain, config_option.name) == 0;
  const struct option *one = config ? &config_option : option_find(plain);
  if (!one && strncmp(plain, "no_", 3) == 0) one = option_find(plain + 3);
  if (all || one == &config_option) print_setting(&config_option, out);
  for (size_t i = 0; i < option_count(); i++) {
    if (all) fputc('\n', out);
    if (all || option_at(i) == one) print_setting(option_at(i), out);
  }
  if (all || one) return STATUS_OK;
  nearest_init(&near, plain);
  nearest_offer(&near, config_option.name);
  for (size_t i = 0; i < option_count(); i++) nearest_offer(&near, option_at(i)->name);
  return error_set(e, STATUS_CONFIG, "unknown setting \"%.60s\"%s", name,
                   nearest_hint(&near, hint));
}

/* --- as a JSON document --- */

bool config_print(const struct config *c, FILE *out) {
  struct config seen = *c; /* the accessors of options need a writable struct */
  json_t *all = json_object();
  bool done = all != NULL;
  for (size_t i = 0; i < option_count(); i++) {
    const struct option *o = option_at(i);
    json_t *value = o->kind == OPTION_IS_COUNT  ? json_integer((json_int_t)*option_number(o, &seen))
                    : o->kind == OPTION_IS_FLAG ? json_boolean(*option_flag(o, &seen))
                                                : json_string(*option_text(o, &seen));
    done = json_object_set_new(all, o->name, value) == 0 && done;
  }
  done = done && json_object_set(all, "models", c->models) == 0;
  done = done && json_dumpf(all, out, JSON_INDENT(2)) == 0 && fputc('\n', out) != EOF;
  json_decref(all);
  return done && fflush(out) == 0 && !ferror(out);
}

/* --- differences --- */

/* The value as a user would write it; `out` has room for a number. */
static const char *text_value(const struct option *o, struct config *c, char out[VALUE_SIZE]) {
  if (o->kind == OPTION_IS_FLAG) return *option_flag(o, c) ? "on" : "off";
  if (o->kind != OPTION_IS_COUNT) return *option_text(o, c);
  snprintf(out, VALUE_SIZE, "%" PRIu64, *option_number(o, c));
  return out;
}

void config_differ(const struct config *now, const struct config *next,
                   void (*report)(void *of, const char *name, const char *value), void *of) {
  struct config a = *now, b = *next; /* the accessors of options need writable structs */
  char before[VALUE_SIZE], after[VALUE_SIZE];
  for (size_t i = 0; i < option_count(); i++) {
    const struct option *o = option_at(i);
    if (is_reloaded(o)) continue;
    const char *value = text_value(o, &b, after);
    if (strcmp(text_value(o, &a, before), value) != 0) report(of, o->name, value);
  }
}

bool config_same_model(const struct config *a, const struct config *b, const char *name) {
  const json_t *first = config_definition(a, name), *second = config_definition(b, name);
  return first && second && json_equal(first, second);
}
