/* completions_answer: the answer to POST /v1/completions: each text is an object in a list. */
#include <stdio.h>
#include <string.h>

#include "core/run/size.h"
#include "server/dialect/completions.h"
#include "server/stack/stack_answer.h"
#include "server/text/json_string.h"

static const char TEXT[] = "{\"text\":", INDEX[] = ",\"index\":",
                  FINISH[] = ",\"logprobs\":null,\"finish_reason\":\"";

enum { CHOICE_ROOM = sizeof TEXT + sizeof INDEX + COUNT_ROOM + sizeof FINISH + 16 + ROW_ROOM };

static const size_t zero = 0;

/* --- choices --- */

/* As if both texts were one. */
static char *write_both(const struct tokenizer_text *echo, const struct utterance *u, char *out) {
  if (echo) out = json_string_write(echo->bytes, echo->length, out) - 1;
  char *second = json_string_write(u->text, u->length, out);
  if (!echo) return second;
  memmove(out, out + 1, (size_t)(second - out) - 1);
  return second - 1;
}

/* A row is an object. */
static char *write_choices(const struct answer_rows *rows, char *out) {
  const struct completions_told *told = rows->section->data;
  const struct stack_request *r = told->request;
  for (size_t i = rows->first; i < rows->first + rows->count; i++) {
    const struct tokenizer_text *echo = told->echo ? &told->echo[i / r->each] : NULL;
    if (i > rows->first) *out++ = ',';
    out = answer_write_text(out, TEXT);
    out = write_both(echo, &r->utter->sequence[i].utterance, out);
    out = answer_write_text(out, INDEX);
    out = number_write_integer(out, (int64_t)i);
    out = answer_write_text(out, FINISH);
    out = answer_write_text(out, completions_finish(r->generation.sequence[i].finish));
    out = answer_write_text(out, "\"}");
  }
  return out;
}

/* Bytes of the longest choice. */
static size_t choice_room(const struct completions_told *told) {
  const struct stack_request *r = told->request;
  size_t room = 0;
  for (size_t i = 0; i < r->main.run->geometry.items; i++) {
    size_t text = stack_utter_room(r->utter, r->generation.sequence[i].most, false), echo = 0;
    if (told->echo && !size_mul(told->echo[i / r->each].length, JSON_STRING_ROOM, &echo))
      return SIZE_MAX;
    if (!size_add(text, echo, &text)) return SIZE_MAX;
    room = size_max(room, text);
  }
  return size_add(room, CHOICE_ROOM, &room) ? room : SIZE_MAX;
}

static struct answer_section list_choices(const struct completions_told *told) {
  const struct stack_request *r = told->request;
  return (struct answer_section){.name = "choices",
                                 .number = NUMBER_TOKEN, /* text in any case */
                                 .batch = true,
                                 .single = true,
                                 .items = 1,
                                 .heads = 1,
                                 .rows = {&r->main.run->geometry.items, 0},
                                 .width = {&zero, 0},
                                 .begin = {&zero, 0},
                                 .row_room = choice_room(told),
                                 .data = told,
                                 .write = write_choices};
}

/* --- the answer --- */

static char *quote(const char *text, struct arena *a, struct error *e) {
  const size_t room = strlen(text) + sizeof "\"\"";
  char *quoted = arena_alloc(a, room, 1, e);
  if (quoted) snprintf(quoted, room, "\"%s\"", text);
  return quoted;
}

static char *write_created(int64_t created, struct arena *a, struct error *e) {
  char *text = arena_alloc(a, COUNT_ROOM + 2, 1, e);
  if (text) snprintf(text, COUNT_ROOM + 2, "%lld", (long long)created);
  return text;
}

enum status completions_answer(struct answer *a, const struct completions_told *told,
                               size_t max_bytes, struct arena *arena, struct error *e) {
  enum { ID, OBJECT, CREATED, MODEL, CHOICES, SECTIONS };
  const struct stack_request *r = told->request;
  struct answer_content *content = arena_alloc(arena, 1, sizeof *content, e);
  struct answer_section *section = arena_alloc(arena, SECTIONS, sizeof *section, e);
  const char *id = quote(told->id, arena, e), *model = quote(told->model, arena, e);
  const char *created = write_created(told->created, arena, e);
  *a = (struct answer){.form = ANSWER_JSON};
  if (e->status) return e->status;
  *content = (struct answer_content){.left = r->main.run->left,
                                     .sections = SECTIONS,
                                     .section = section,
                                     .has_usage = true,
                                     .usage = stack_answer_usage(r)};
  content->usage.write = completions_usage;
  section[ID] = answer_section_text("id", id);
  section[OBJECT] = answer_section_text("object", "\"text_completion\"");
  section[CREATED] = answer_section_text("created", created);
  section[MODEL] = answer_section_text("model", model);
  section[CHOICES] = list_choices(told);
  return answer_plan(a, ANSWER_JSON, content, max_bytes, arena, e);
}
