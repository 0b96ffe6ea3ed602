/* tei_predict: POST /predict: the classes of texts, the most likely first. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/base/size.h"
#include "server/dialect/dialect_answer.h"
#include "server/dialect/ranking.h"
#include "server/dialect/tei/tei.h"
#include "server/text/json_string.h"

/* --- the contract --- */

static const struct contract_field fields[] = {
    {DIALECT_NAMED("inputs"), .texts = true, .texts_form = TEXTS_MIXED},
    DIALECT_MODEL,
    {DIALECT_VALUE("raw_scores", contract_read_flag, raw)},
    {DIALECT_VALUE("truncate", tei_read_truncate, truncate), .nullable = true},
    {DIALECT_NAMED("truncation_direction"), .read = tei_pass_direction},
};

static const struct contract_stray strays[] = {
    {"input", "use \"inputs\""},
    {"text", "use \"inputs\""},
    {"texts", "use \"inputs\""},
    {"parameters", "\"raw_scores\" and \"truncate\" are fields next to \"inputs\""},
};

static const struct contract contract = {DIALECT_CONTRACT, .plan_cost = dialect_plan_cost};

/* --- the request --- */

/* Whether it is one text or one pair, and not a list of them. Only a list of pairs has pairs. */
static bool is_alone(const struct texts *t) { return t->of_item == 1; }

static enum status ask(struct dialect_stack *s, const struct contract_reading *read,
                       struct stack_request *out) {
  static const struct dialect_name names[] = {{"/text", "/inputs"},
                                              {"/tokens", "/inputs"},
                                              {NULL, NULL}};
  const struct dialect_values *v = read->values;
  const struct texts *t = read->texts;
  if (!t) return error_at(read->e, "/inputs", "the field \"inputs\" is missing");
  if (t->items == 0) return error_at(read->e, "/inputs", "the list is empty");
  if (is_alone(t) && t->items > TEXTS_PAIR)
    return error_at(read->e, "/inputs/2",
                    "a list of strings is one pair of at most two texts: for several texts, send "
                    "lists of one: [[\"a\"], [\"b\"], [\"c\"]]");
  s->reading.texts = t;
  if (is_alone(t)) {
    /* A list of two texts is a pair, and a list of one is that text. */
    struct texts *alone = arena_alloc(read->arena, 1, sizeof *alone, read->e);
    if (!alone) return read->e->status;
    *alone = *t;
    alone->of_item = (unsigned)t->items;
    alone->items = 1;
    s->reading.texts = alone;
  }
  dialect_stack_mark(s, STACK_FIELD_TEXT);
  dialect_stack_truncate(s, v->truncate, SIZE_MAX);
  if (v->raw) s->values.function = STACK_FUNCTION_NONE;
  return dialect_stack_check(s, names, out);
}

/* --- the response --- */

static const char SCORE[] = "{\"score\":", LABEL[] = ",\"label\":";

struct predictions {
  const struct stack_request *request;
  struct ranked *place; /* [items × classes] */
  bool alone;
};

static char *write_item(const struct predictions *p, size_t item, char *out) {
  const struct whole *w = p->request->classes_of;
  const float *score = p->request->main.run->outputs + item * w->classes;
  struct ranked *place = p->place + item * w->classes;
  for (size_t i = 0; i < w->classes; i++) place[i] = (struct ranked){score[i], (unsigned)i};
  ranked_sort(place, w->classes);
  for (size_t i = 0; i < w->classes; i++) {
    const char *label = w->label[place[i].index];
    if (i > 0) *out++ = ',';
    out = answer_write_text(out, SCORE);
    out = number_write(out, place[i].score);
    out = answer_write_text(out, LABEL);
    out = json_string_write(label, strlen(label), out);
    *out++ = '}';
  }
  return out;
}

/* Writes a row for each item: its list of classes. */
static char *write_rows(const struct answer_rows *rows, char *out) {
  const struct predictions *p = rows->section->data;
  for (size_t i = rows->first; i < rows->first + rows->count; i++) {
    if (i > rows->first) *out++ = ',';
    if (!p->alone) *out++ = '[';
    out = write_item(p, i, out);
    if (!p->alone) *out++ = ']';
  }
  return out;
}

/* The most bytes of a row. Labels come from the files of a model: the sum does not overflow. */
static size_t row_room(const struct whole *w) {
  enum { AROUND = sizeof SCORE + NUMBER_ROOM + sizeof LABEL + sizeof "\"\"}," };
  size_t room = ROW_ROOM;
  for (size_t i = 0; i < w->classes; i++) room += AROUND + JSON_STRING_ROOM * strlen(w->label[i]);
  return room;
}

static enum status answer(struct answer *a, const struct contract_reading *read, const char *model,
                          const struct stack_request *r, size_t max_bytes) {
  const size_t *items = &r->main.run->geometry.items, classes = r->classes_of->classes;
  struct predictions *p = arena_alloc(read->arena, 1, sizeof *p, read->e);
  size_t places;
  (void)model;
  if (!size_mul(*items, classes, &places))
    return error_set(read->e, STATUS_TOO_LARGE, "the classes exceed the address space");
  struct ranked *place = arena_alloc(read->arena, places, sizeof *place, read->e);
  if (read->e->status) return read->e->status;
  *p = (struct predictions){r, place, is_alone(read->texts)};
  struct answer_section list =
      dialect_answer_list(NULL, items, NULL, row_room(r->classes_of), write_rows, p);
  return tei_answer(a, &list, read, r, max_bytes);
}

const struct dialect tei_predict = {.contract = &contract, .ask = ask, .answer = answer};
