/* config_print: what --help says about the settings, and the effective configuration as JSON. */
#include <string.h>

#include "config/settings/config.h"
#include "config/settings/option.h"

/* Wide enough for the longest switch with its placeholder. */
enum { COLUMN = 30 };

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
