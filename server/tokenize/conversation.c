/* conversation: the fields of a conversation, and its prompt. */
#include "server/tokenize/conversation.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "server/json/json_small.h"

/* --- fields --- */

/* Bytes that Jansson takes for a value, about. The reader bounds the depth. */
static size_t bytes_of(const json_t *value) {
  enum { VALUE = 64, ENTRY = 96 };
  size_t bytes = VALUE + json_string_length(value), i;
  const char *key;
  json_t *one;
  json_array_foreach(value, i, one) bytes += bytes_of(one);
  json_object_foreach((json_t *)value, key, one) bytes += ENTRY + strlen(key) + bytes_of(one);
  return bytes;
}

/* Keeps a value, which is never copied. */
static enum status keep(const json_t *value, struct conversation_value *to, struct error *e) {
  const size_t bytes = bytes_of(value);
  if (!arena_charge_beside(to->arena, bytes, e)) return e->status;
  to->charged = bytes;
  to->json = json_incref((json_t *)value);
  return STATUS_OK;
}

enum status conversation_read_list(const json_t *value, const struct contract_field *field,
                                   void *to, struct error *e) {
  if (json_is_array(value)) return keep(value, to, e);
  return error_at(e, field->pointer, "%s must be a list", contract_name(field));
}

enum status conversation_read_object(const json_t *value, const struct contract_field *field,
                                     void *to, struct error *e) {
  if (json_is_object(value)) return keep(value, to, e);
  return error_at(e, field->pointer, "%s must be an object", contract_name(field));
}

enum status conversation_keep_text(const char *text, size_t length, size_t offset,
                                   const struct contract_field *field, void *to, struct error *e) {
  struct conversation_value *v = to;
  v->field = field;
  v->text = text;
  v->length = length;
  v->offset = offset;
  return e->status;
}

static bool is_time(const struct format_time *t) {
  static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (t->year % 4 == 0 && t->year % 100 != 0) || t->year % 400 == 0;
  return t->year >= 1 && t->month >= 1 && t->month <= 12 && t->day >= 1 &&
         t->day <= days[t->month - 1] + (leap && t->month == 2) && t->hour < 24 && t->minute < 60 &&
         t->second < 60;
}

/* Reads "2026-11-28T09:05:07", with a fraction, and a zone, which is ignored: it is the time there
 * that templates write. */
enum status conversation_read_now(const json_t *value, const struct contract_field *field, void *to,
                                  struct error *e) {
  struct conversation *c = to;
  struct format_time t = {0};
  const char *text = json_is_string(value) ? json_string_value(value) : "";
  int used = 0, fraction = 0, zone = 0;
  bool fits = sscanf(text, "%4d-%2d-%2d%n", &t.year, &t.month, &t.day, &used) == 3 && used == 10;
  if (fits && (text[used] == 'T' || text[used] == ' ')) {
    int more = 0;
    fits = sscanf(text + used + 1, "%2d:%2d:%2d%n", &t.hour, &t.minute, &t.second, &more) == 3 &&
           more == 8;
    used += 1 + more;
    if (fits && sscanf(text + used, ".%6d%n", &t.microsecond, &fraction) == 1) {
      for (int i = fraction; i < 7; i++) t.microsecond *= 10;
      used += fraction;
      used += (int)strspn(text + used, "0123456789");
    }
    int hours, minutes;
    if (fits && text[used] == 'Z') used++;
    if (fits && sscanf(text + used, "%*1[+-]%2d:%2d%n", &hours, &minutes, &zone) == 2) used += zone;
  }
  if (!fits || text[used] || strpbrk(text, "+- ") == text || !is_time(&t) || t.microsecond < 0)
    return error_at(e, field->pointer, "now must be a time such as \"2026-11-28T09:05:07\"");
  c->now = t;
  c->timed = true;
  return STATUS_OK;
}

void conversation_init(struct conversation *c, struct arena *a) {
  *c = (struct conversation){0};
  for (size_t i = 0; i < CONVERSATION_PARTS; i++) c->part[i].arena = a;
}

void conversation_done(struct conversation *c) {
  for (size_t i = 0; i < CONVERSATION_PARTS; i++) {
    struct conversation_value *v = &c->part[i];
    json_decref(v->json);
    arena_return_beside(v->arena, v->charged);
    *v = (struct conversation_value){.arena = v->arena};
  }
}

enum status conversation_parse(struct conversation *c, struct error *e) {
  for (size_t i = 0; i < CONVERSATION_PARTS && !e->status; i++) {
    struct conversation_value *v = &c->part[i];
    if (!v->text) continue;
    json_t *value =
        json_small_parse_long(v->text, v->length, v->offset, v->field->pointer, v->arena, e);
    v->text = NULL;
    if (value) v->field->read(value, v->field, v, e);
    json_decref(value);
  }
  return e->status;
}

/* --- the prompt --- */

static struct format_time local_time(void) {
  struct timespec now;
  struct tm t;
  clock_gettime(CLOCK_REALTIME, &now);
  localtime_r(&now.tv_sec, &t);
  return (struct format_time){t.tm_year + 1900,
                              t.tm_mon + 1,
                              t.tm_mday,
                              t.tm_hour,
                              t.tm_min,
                              t.tm_sec < 60 ? t.tm_sec : 59,
                              (int)(now.tv_nsec / 1000)};
}

/* One text as those of a request. NULL after a failure. */
static const struct texts *texts_of_one(const char *text, size_t length, struct arena *a,
                                        struct error *e) {
  struct texts *t = arena_alloc(a, 1, sizeof *t, e);
  struct texts_part *part = arena_alloc(a, 1, sizeof *part, e);
  if (!t || !part) return NULL;
  *part = (struct texts_part){0, length};
  *t = (struct texts){.bytes = (char *)text,
                      .part = part,
                      .items = 1,
                      .of_item = 1,
                      .alone = true,
                      .length = length};
  return t;
}

const struct texts *conversation_render(const struct conversation *c, const struct chat *chat,
                                        const struct contract_reading *r) {
  const char *text;
  size_t length;
  const struct chat_ask ask = {.messages = c->part[CONVERSATION_MESSAGES].json,
                               .tools = c->part[CONVERSATION_TOOLS].json,
                               .documents = c->part[CONVERSATION_DOCUMENTS].json,
                               .variables = c->part[CONVERSATION_VARIABLES].json,
                               .prompts = c->prompts,
                               .continues = c->continues,
                               .now = c->timed ? c->now : local_time(),
                               .patience = r->patience};
  if (!ask.messages)
    error_at(r->e, "/messages", "the field \"messages\" is missing");
  else if (c->continues && c->prompts)
    error_at(
        r->e, "/continue_final_message",
        "\"continue_final_message\" excludes \"add_generation_prompt\": send only one of them");
  else
    chat_render(chat, &ask, r->arena, &text, &length, r->e);
  return r->e->status ? NULL : texts_of_one(text, length, r->arena, r->e);
}
