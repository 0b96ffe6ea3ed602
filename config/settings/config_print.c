/* config_print: the settings as text: for --help, as a JSON document, and where two configurations
 * differ. */
#include <inttypes.h>
#include <string.h>

#include "config/settings/config.h"
#include "config/settings/option.h"

enum {
  COLUMN = 30,    /* wide enough for the longest switch with its placeholder */
  VALUE_SIZE = 32 /* of a number as text */
};

/* --- for --help --- */

static void print_default(const struct option *o, FILE *out) {
  if (o->kind == OPTION_IS_COUNT) {
    fprintf(out, "(default %ju %s)", (uintmax_t)o->number, o->unit);
  } else if (o->kind == OPTION_IS_FLAG) {
    fprintf(out, "(default %s)", o->number ? "on" : "off");
  } else if (o->kind == OPTION_IS_CHOICE) {
    fprintf(out, "(%s; default %s)", o->unit, o->text);
  } else {
    fprintf(out, "(default %s)", *o->text ? o->text : "none");
  }
}

void config_help(FILE *out) {
  static const char *const placeholder[] = {
      [OPTION_IS_TEXT] = " TEXT",       [OPTION_IS_ADDRESS] = " ADDRESS:PORT",
      [OPTION_IS_ORIGINS] = " ORIGINS", [OPTION_IS_CHOICE] = " WORD",
      [OPTION_IS_COUNT] = " N",         [OPTION_IS_FLAG] = "",
  };
  fprintf(out,
          "  %-*s(default none)  a JSON file with these settings (max_queue for --max-queue)\n"
          "  %-*s                and the models; else the variable ATTEND_CONFIG names it\n",
          COLUMN, "--config PATH", COLUMN, "");
  for (size_t i = 0; i < option_count(); i++) {
    const struct option *o = option_at(i);
    char name[64], left[96];
    snprintf(left, sizeof left, "--%s%s%s", o->kind == OPTION_IS_FLAG ? "[no-]" : "",
             option_switch(o, name), placeholder[o->kind]);
    fprintf(out, "  %-*s", COLUMN, left);
    print_default(o, out);
    fprintf(out, "  %s\n", o->sentence);
  }
  fprintf(out,
          "Each is also a variable: ATTEND_MAX_QUEUE for --max-queue. The command line wins over "
          "the\nenvironment, the environment over the file.\n");
}

/* --- as a JSON document --- */

static json_t *json_value(const struct option *o, struct config *c) {
  switch (o->kind) {
  case OPTION_IS_COUNT:
    return json_integer((json_int_t)*option_number(o, c));
  case OPTION_IS_FLAG:
    return json_boolean(*option_flag(o, c));
  default:
    return json_string(*option_text(o, c));
  }
}

bool config_print(const struct config *c, FILE *out) {
  struct config seen = *c; /* the accessors of options give places to write to */
  json_t *all = json_object();
  bool done = all != NULL;
  for (size_t i = 0; i < option_count(); i++)
    done =
        done && json_object_set_new(all, option_at(i)->name, json_value(option_at(i), &seen)) == 0;
  done = done && json_object_set(all, "models", c->models) == 0;
  done = done && json_dumpf(all, out, JSON_INDENT(2)) == 0 && fputc('\n', out) != EOF;
  json_decref(all);
  return done && fflush(out) == 0 && !ferror(out);
}

/* --- where two differ --- */

/* The value as a user would write it; `out` has room for a number. */
static const char *text_value(const struct option *o, struct config *c, char out[VALUE_SIZE]) {
  if (o->kind == OPTION_IS_FLAG) return *option_flag(o, c) ? "on" : "off";
  if (o->kind != OPTION_IS_COUNT) return *option_text(o, c);
  snprintf(out, VALUE_SIZE, "%" PRIu64, *option_number(o, c));
  return out;
}

void config_differ(const struct config *now, const struct config *next,
                   void (*tell)(void *of, const char *name, const char *value), void *of) {
  struct config a = *now, b = *next; /* the accessors of options give places to write to */
  char before[VALUE_SIZE], after[VALUE_SIZE];
  for (size_t i = 0; i < option_count(); i++) {
    const struct option *o = option_at(i);
    if (strcmp(o->name, "default_model") == 0) continue;
    const char *value = text_value(o, &b, after);
    if (strcmp(text_value(o, &a, before), value) != 0) tell(of, o->name, value);
  }
}

bool config_same_model(const struct config *a, const struct config *b, const char *name) {
  const json_t *first = config_definition(a, name), *second = config_definition(b, name);
  return first && second && json_equal(first, second);
}
