/* completions_answer: the answer to POST /v1/completions: each text is an object in a list. */
#include <stdio.h>
#include <string.h>

#include "config/tokenizer/detokenizer.h"
#include "core/base/size.h"
#include "server/dialect/dialect_answer.h"
#include "server/dialect/openai/completions.h"
#include "server/model/answer/stack_answer.h"
#include "server/model/answer/stack_detokenizer.h"
#include "server/text/json_string.h"

static const char TEXT[] = "{\"text\":", INDEX[] = ",\"index\":",
                  FINISH[] = ",\"finish_reason\":\"";

enum { CHOICE_ROOM = sizeof TEXT + sizeof INDEX + COUNT_ROOM + sizeof FINISH + 16 + ROW_ROOM };

/* --- choices --- */

/* The prompt, where it is wanted, and what follows it are one string. */
static char *write_text(const struct tokenizer_text *echo, const struct detokenizer *u, char *out) {
  *out++ = '"';
  if (echo) out = json_string_write_part(echo->bytes, echo->length, out);
  out = json_string_write_part(u->text, u->length, out);
  *out++ = '"';
  return out;
}

/* A row is an object. */
static char *write_choices(const struct answer_rows *rows, char *out) {
  const struct completions_told *told = rows->section->data;
  const struct stack_request *r = told->request;
  for (size_t i = rows->first; i < rows->first + rows->count; i++) {
    const struct tokenizer_text *echo = told->echo ? &told->echo[i / r->each] : NULL;
    if (i > rows->first) *out++ = ',';
    out = answer_write_text(out, TEXT);
    out = write_text(echo, &r->detokenizer->sequence[i].detokenizer, out);
    out = answer_write_text(out, INDEX);
    out = number_write_integer(out, (int64_t)i);
    out = completions_logprobs(told, i, 0, stack_sequence_count(&r->generation.sequence[i]), out);
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
    const size_t most = r->generation.sequence[i].most;
    size_t each = stack_detokenizer_room(r->detokenizer, most, false), echo = 0;
    if (told->echo && !size_mul(told->echo[i / r->each].length, JSON_STRING_ROOM, &echo))
      return SIZE_MAX;
    if (!size_add(each, echo, &each) ||
        !size_add(each, completions_logprobs_room(told, most), &each))
      return SIZE_MAX;
    room = size_max(room, each);
  }
  return size_add(room, CHOICE_ROOM, &room) ? room : SIZE_MAX;
}

/* --- the answer --- */

static char *write_created(int64_t created, struct arena *a, struct error *e) {
  char *text = arena_alloc(a, COUNT_ROOM + 2, 1, e);
  if (text) snprintf(text, COUNT_ROOM + 2, "%lld", (long long)created);
  return text;
}

enum status completions_answer(struct answer *a, const struct completions_told *told,
                               size_t max_bytes, struct arena *arena, struct error *e) {
  enum { ID, OBJECT, CREATED, MODEL, CHOICES, SECTIONS };
  const struct stack_request *r = told->request;
  struct dialect_sheet sheet;
  const char *id = dialect_answer_quote(told->id, arena, e),
             *model = dialect_answer_quote(told->model, arena, e);
  const char *created = write_created(told->created, arena, e);
  if (e->status || dialect_answer_begin(&sheet, SECTIONS, r, arena, e)) return e->status;
  sheet.content->usage.write = completions_usage;
  sheet.section[ID] = answer_section_text("id", id);
  sheet.section[OBJECT] = answer_section_text("object", "\"text_completion\"");
  sheet.section[CREATED] = answer_section_text("created", created);
  sheet.section[MODEL] = answer_section_text("model", model);
  sheet.section[CHOICES] = dialect_answer_list("choices", &r->main.run->geometry.items, NULL,
                                               choice_room(told), write_choices, told);
  return answer_plan(a, ANSWER_JSON, sheet.content, max_bytes, arena, e);
}
