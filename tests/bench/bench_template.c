/* bench_template: the time to render a conversation of 40 messages with each golden chat template.
 *
 * Prints a line for each, as tests/bench/table.py has them. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "config/document/file.h"
#include "config/template/template.h"
#include "core/base/clock.h"

enum { MESSAGES = 40, TURNS = 200 };

static json_t *make_conversation(void) {
  json_t *messages = json_array();
  for (int i = 0; i < MESSAGES; i++)
    json_array_append_new(
        messages,
        json_pack(
            "{s:s, s:s}", "role", i % 2 ? "assistant" : "user", "content",
            "What does the interpreter do with a message of some eighty characters, on average?"));
  return json_pack("{s:o, s:b, s:s, s:s, s:n, s:n}", "messages", messages, "add_generation_prompt",
                   1, "bos_token", "<s>", "eos_token", "</s>", "tools", "documents");
}

/* The least time of a rendering, in microseconds; 0: it failed. */
static double measure(const struct template *t, const json_t *variables) {
  static const struct format_time now = {2026, 11, 28, 9, 5, 7, 0};
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < TURNS; i++) {
    struct error e = {0};
    struct arena a;
    const char *text;
    size_t length;
    arena_init(&a, NULL);
    const uint64_t begun = clock_now();
    template_render(t, variables, &now, &TEMPLATE_LIMITS, &a, &text, &length, &e);
    const uint64_t took = clock_now() - begun;
    arena_free(&a);
    if (e.status) return 0;
    if (took < best) best = took;
  }
  return (double)best / 1e3;
}

int main(void) {
  struct error e = {0};
  json_t *texts = file_json("tests/golden/chat-templates/templates.json", &e), *text;
  json_t *variables = make_conversation();
  const char *name;
  json_object_foreach(texts, name, text) {
    struct template *t =
        template_parse(json_string_value(text), json_string_length(text), &TEMPLATE_LIMITS, &e);
    const double us = t ? measure(t, variables) : 0;
    /* The one of macros calls two of them and most filters for each message, as none of a model
     * does. */
    const char *target = strcmp(name, "macros") == 0 ? "-" : "<= 200 us";
    if (us > 0)
      printf("template: %s, %d messages | %.1f us | | | %s\n", name, MESSAGES, us, target);
    template_free(t);
  }
  json_decref(variables);
  json_decref(texts);
  return e.status != STATUS_OK;
}
