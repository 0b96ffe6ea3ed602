/* Renders templates: of each line of standard input, an object with `template`, `variables` and
 * `now` (seven integers, from the year to the microsecond), a line with `text` or `error`. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/json_reserve.h"
#include "config/template/template.h"

static struct format_time time_of(const json_t *parts) {
  int part[7] = {1970, 1, 1};
  for (size_t i = 0; i < 7 && i < json_array_size(parts); i++)
    part[i] = (int)json_integer_value(json_array_get(parts, i));
  return (struct format_time){part[0], part[1], part[2], part[3], part[4], part[5], part[6]};
}

static json_t *render(const json_t *asked) {
  const json_t *text = json_object_get(asked, "template");
  const struct format_time now = time_of(json_object_get(asked, "now"));
  struct error e = {0};
  struct arena a;
  const char *rendered;
  size_t length;
  arena_init(&a, NULL);
  struct template *t =
      template_parse(json_string_value(text), json_string_length(text), &TEMPLATE_LIMITS, &e);
  if (t)
    template_render(t, json_object_get(asked, "variables"), &now, &TEMPLATE_LIMITS, &a, &rendered,
                    &length, &e);
  json_t *answer = e.status ? json_pack("{s:s}", "error", e.detail)
                            : json_pack("{s:s%}", "text", rendered, length);
  template_free(t);
  arena_free(&a);
  return answer;
}

int main(void) {
  char *line = NULL;
  size_t room = 0;
  ssize_t length;
  while ((length = getline(&line, &room, stdin)) > 0) {
    json_t *asked = json_loadb(line, (size_t)length, JSON_ALLOW_NUL, NULL);
    json_t *answer = asked ? render(asked) : NULL;
    if (!answer) return 1;
    json_dumpf(answer, stdout, 0);
    putchar('\n');
    json_decref(answer);
    json_decref(asked);
  }
  free(line);
  return 0;
}
