/* fuzz_template: a chat template, and the variables that it is rendered with.
 *
 * Before FUZZ_PART is the template, after it the variables as JSON; without one, those of a small
 * conversation. What is not UTF-8 is no template. A template ends within its limits, with a text
 * that is UTF-8 or with an error that names its place, and twice with the same. */
#include <stdlib.h>
#include <string.h>

#include "config/document/json_reserve.h"
#include "config/document/text.h"
#include "config/template/template.h"
#include "tests/fuzz/fuzz.h"

static const struct template_limits limits = {
    .source = 1 << 16, .memory = 1 << 20, .output = 1 << 16, .steps = 20000, .depth = 100};

static const char conversation[] =
    "{\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":"
    "\" Hi \\u00df\\n\\nyou "
    "\"},{\"role\":\"assistant\",\"content\":null,\"calls\":[{\"name\":\"f\","
    "\"arguments\":{\"a\":1,\"b\":[1.5,true,null]}}]}],\"bos_token\":\"<s>\",\"tools\":null}";

struct outcome {
  struct arena arena;
  struct error e;
  const char *text;
  size_t length;
};

static void render(const struct template *t, const json_t *variables, struct outcome *o) {
  static const struct format_time now = {2026, 11, 28, 9, 5, 7, 1234};
  *o = (struct outcome){.text = NULL};
  arena_init(&o->arena, NULL);
  const enum status s =
      template_render(t, variables, &now, &limits, &o->arena, &o->text, &o->length, &o->e);
  must(s == o->e.status);
  must(s == STATUS_OK ? o->text[o->length] == '\0' && text_is_utf8(o->text, o->length)
                      : s == STATUS_INVALID_REQUEST && strncmp(o->e.detail, "line ", 5) == 0 &&
                            text_is_utf8(o->e.detail, strlen(o->e.detail)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {(const char *)data, size};
  const struct input source = input_part(&in);
  const char *json = in.size ? in.bytes : conversation;
  json_error_t why;
  bool no_memory = false;
  struct error e = {0};
  if (!text_is_utf8(source.bytes, source.size)) return 0;
  char *copy = input_copy(source);
  struct template *t = template_parse(copy, source.size, &limits, &e);
  free(copy);
  must(t ? !e.status : e.status == STATUS_INVALID_REQUEST && e.detail[0]);
  json_t *variables =
      json_reserve_load(json, in.size ? in.size : sizeof conversation - 1, &why, &no_memory);
  if (t && json_is_object(variables)) {
    struct outcome one, other;
    render(t, variables, &one);
    render(t, variables, &other);
    must(one.e.status == other.e.status && strcmp(one.e.detail, other.e.detail) == 0);
    must(one.e.status || (one.length == other.length && !memcmp(one.text, other.text, one.length)));
    arena_free(&one.arena);
    arena_free(&other.arena);
  }
  json_decref(variables);
  template_free(t);
  return 0;
}
