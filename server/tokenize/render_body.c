/* render_body: the body of a request to render a conversation with the model's chat template. */
#include "server/tokenize/render_body.h"

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* --- the contract --- */

enum render_field {
  RENDER_MESSAGES,
  RENDER_TOOLS,
  RENDER_DOCUMENTS,
  RENDER_VARIABLES,
  RENDER_PROMPTS,
  RENDER_NOW,
  RENDER_FIELDS
};

/* Most bytes of a field. As Jansson has them, its values take several times that: they are charged.
 */
enum { CONVERSATION_LONGEST = 4 << 20 };

struct render_values {
  json_t *messages, *tools, *documents, *variables; /* references, or NULL */
  bool prompts;
  bool timed; /* is `now` given? */
  struct format_time now;
  struct budget *budget;
  size_t charged; /* bytes of the budget */
};

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

/* Keeps a value of the conversation, which is never copied. */
static enum status keep(const json_t *value, struct render_values *v, json_t **to,
                        struct error *e) {
  const size_t bytes = bytes_of(value);
  if (v->budget && !budget_charge(v->budget, bytes))
    return error_set(e, STATUS_OVERLOADED,
                     "other requests use the memory budget of %zu bytes: send the request again "
                     "later",
                     v->budget->limit);
  v->charged += bytes;
  *to = json_incref((json_t *)value);
  return STATUS_OK;
}

static enum status read_list(const json_t *value, const struct contract_field *field, void *to,
                             struct error *e) {
  struct render_values *v = to;
  json_t **const list = field->pointer[1] == 'm'   ? &v->messages
                        : field->pointer[1] == 't' ? &v->tools
                                                   : &v->documents;
  if (!json_is_array(value))
    return error_at(e, field->pointer, "%s must be a list", contract_name(field));
  return keep(value, v, list, e);
}

static enum status read_variables(const json_t *value, const struct contract_field *field, void *to,
                                  struct error *e) {
  struct render_values *v = to;
  if (!json_is_object(value))
    return error_at(e, field->pointer, "%s must be an object", contract_name(field));
  return keep(value, v, &v->variables, e);
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
static enum status read_now(const json_t *value, const struct contract_field *field, void *to,
                            struct error *e) {
  struct render_values *v = to;
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
  v->now = t;
  v->timed = true;
  return STATUS_OK;
}

#define NAMED(name) .pointer = "/" name, .name_length = sizeof name - 1
#define CONVERSATION(name, reader) \
  { NAMED(name), .read = reader, .nullable = true, .longest = CONVERSATION_LONGEST }

static const struct contract_request requests[] = {{1, "POST /v1/models/NAME/render"}, {0, NULL}};

static const struct contract_field fields[RENDER_FIELDS] = {
    [RENDER_MESSAGES] = {NAMED("messages"), .read = read_list, .longest = CONVERSATION_LONGEST},
    [RENDER_TOOLS] = CONVERSATION("tools", read_list),
    [RENDER_DOCUMENTS] = CONVERSATION("documents", read_list),
    [RENDER_VARIABLES] = CONVERSATION("chat_template_kwargs", read_variables),
    [RENDER_PROMPTS] = {NAMED("add_generation_prompt"), .read = contract_read_flag,
                        .at = offsetof(struct render_values, prompts)},
    [RENDER_NOW] = {NAMED("now"), .read = read_now, .nullable = true},
};

static const struct contract_stray strays[] = {
    {"text", "use \"messages\", a list of {\"role\", \"content\"}"},
    {"prompt", "use \"messages\", a list of {\"role\", \"content\"}"},
    {"conversation", "use \"messages\""},
    {"chat_template", "set \"chat_template\" in the model's definition"},
    {"model", "name the model in the path: POST /v1/models/NAME/render"},
};

/* A template may take long: a worker renders it, whatever it is. */
static uint64_t render_cost(const struct contract_reading *r) {
  enum { RENDER_NS = 1000000 };
  (void)r;
  return RENDER_NS;
}

static const struct contract contract = {.field = fields,
                                         .fields = RENDER_FIELDS,
                                         .stray = strays,
                                         .strays = sizeof strays / sizeof *strays,
                                         .requests = requests,
                                         .request = 1,
                                         .plan_cost = render_cost};

/* --- the body --- */

struct render_body {
  struct body body;
  const struct whole *whole;
  struct render_values values;
};

struct render_body *render_body_new(const struct whole *w, const struct body_terms *terms,
                                    struct arena *a, struct error *e) {
  struct render_body *b = arena_alloc(a, 1, sizeof *b, e);
  if (!b) return NULL;
  *b = (struct render_body){.whole = w, .values = {.budget = a->budget}};
  b->body.reading = (struct contract_reading){.contract = &contract, .values = &b->values};
  return body_init(&b->body, terms, a, e) ? NULL : b;
}

void render_body_done(struct render_body *b) {
  struct render_values *v = &b->values;
  json_decref(v->messages);
  json_decref(v->tools);
  json_decref(v->documents);
  json_decref(v->variables);
  if (v->budget) budget_return(v->budget, v->charged);
  *v = (struct render_values){0};
}

struct body *render_body_of(struct render_body *b) {
  return &b->body;
}

/* --- the work --- */

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
static struct texts *texts_of_one(const struct decoder_text *text, struct arena *a,
                                  struct error *e) {
  struct texts *t = arena_alloc(a, 1, sizeof *t, e);
  struct texts_part *part = arena_alloc(a, 1, sizeof *part, e);
  if (!t || !part) return NULL;
  *part = (struct texts_part){0, text->length};
  *t = (struct texts){.bytes = (char *)text->bytes,
                      .part = part,
                      .items = 1,
                      .of_item = 1,
                      .alone = true,
                      .length = text->length};
  return t;
}

enum status render_body_finish(struct render_body *b, struct tokenize_request *out) {
  const struct contract_reading *r = &b->body.reading;
  const struct render_values *v = &b->values;
  struct body_v2_asked none;
  const char *text;
  size_t length;
  memset(out, 0, sizeof *out);
  if (body_finish(&b->body, &none)) return b->body.e->status;
  if (!v->messages) return error_at(r->e, "/messages", "the field \"messages\" is missing");
  const struct chat_ask ask = {.messages = v->messages,
                               .tools = v->tools,
                               .documents = v->documents,
                               .variables = v->variables,
                               .prompts = v->prompts,
                               .now = v->timed ? v->now : local_time(),
                               .patience = r->patience};
  if (chat_render(b->whole->chat, &ask, r->arena, &text, &length, r->e)) return r->e->status;
  struct decoder_text *rendered = arena_alloc(r->arena, 1, sizeof *rendered, r->e);
  if (!rendered) return r->e->status;
  *rendered = (struct decoder_text){.bytes = (char *)text, .length = length};
  out->alone = true;
  out->items = 1;
  out->text = rendered;
  return tokenize_rendered(r, b->whole, texts_of_one(rendered, r->arena, r->e), out);
}
