/* tokenize_answer: tokens and what they stand for, or texts. */
#include "server/tokenize/tokenize_answer.h"

#include "core/base/size.h"
#include "server/text/json_string.h"
#include "server/tokenize/tokenize_told.h"

const char *tokenize_answer_texts(const struct tokenize_request *r, struct arena *a,
                                  struct error *e) {
  enum { QUOTES = 3, BRACKETS = 3 };
  size_t room = BRACKETS, each;
  for (size_t i = 0; i < r->items; i++)
    if (!size_mul(r->text[i].length, JSON_STRING_ROOM, &each) || !size_add(each, QUOTES, &each) ||
        !size_add(room, each, &room)) {
      error_set(e, STATUS_TOO_LARGE, "the texts exceed the address space");
      return NULL;
    }
  char *text = arena_alloc(a, room, 1, e), *out = text;
  if (!text) return NULL;
  if (!r->alone) *out++ = '[';
  for (size_t i = 0; i < r->items; i++) {
    if (i > 0) *out++ = ',';
    out = json_string_write(r->text[i].bytes, r->text[i].length, out);
  }
  if (!r->alone) *out++ = ']';
  *out = '\0';
  return text;
}

static enum status add_sections(struct answer_content *c, const struct tokenize_request *r,
                                struct arena *arena, struct error *e) {
  if (!r->back) {
    c->sections = TOKENIZE_TOLD_SECTIONS;
    return tokenize_told(&r->texts, c->section, arena, e);
  }
  const char *value = tokenize_answer_texts(r, arena, e);
  c->sections = 1;
  c->section[0] = answer_section_text("text", value);
  return e->status;
}

enum status tokenize_answer_plan(struct answer *a, const char *model,
                                 const struct tokenize_request *r, size_t max_bytes,
                                 struct arena *arena, struct error *e) {
  struct answer_content *content = arena_alloc(arena, 1, sizeof *content, e);
  struct answer_section *section = arena_alloc(arena, TOKENIZE_TOLD_SECTIONS, sizeof *section, e);
  *a = (struct answer){.form = ANSWER_JSON};
  if (e->status) return e->status;
  *content = (struct answer_content){.model = model, .section = section};
  if (add_sections(content, r, arena, e)) return e->status;
  return answer_plan(a, ANSWER_JSON, content, max_bytes, arena, e);
}
