/* attention_trace: the trace of one query: how it is read, whether the query exists, and how it is
 * written. */
#include "server/attention/attention_trace.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/base/size.h"

enum { NAME_SHOWN = 40 }; /* bytes of an unknown member's name, in its error */

const char attention_traced_is_json[] =
    "a trace is available as JSON only: accept application/json, or remove \"trace\"";

/* --- reading --- */

/* Fails at an unknown member, or at the object if the name is not plain enough for a JSON Pointer.
 */
static enum status refuse_member(const char *name, const char *pointer, bool several,
                                 struct error *e) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
  const bool plain = strlen(name) <= NAME_SHOWN && strspn(name, letters) == strlen(name);
  const char *all = several ? "\"attention\", \"item\", \"head\" and \"query\""
                            : "\"item\", \"head\" and \"query\"";
  char at[ERROR_POINTER_SIZE];
  if (!plain || !*name) return error_at(e, pointer, "trace must have only the keys %s", all);
  snprintf(at, sizeof at, "%s/%s", pointer, name);
  if (strcmp(name, "attention") == 0)
    return error_at(e, at,
                    "this model is a single layer: \"attention\" is for models with several");
  return error_at(e, at, "unknown key \"%s\": trace has the keys %s", name, all);
}

enum status attention_traced_read(const json_t *value, const char *pointer,
                                  const json_t **attention, struct attention_traced *out,
                                  struct error *e) {
  static const char *const names[] = {"item", "head", "query"};
  size_t *const numbers[] = {&out->item, &out->head, &out->query};
  const char *name;
  json_t *member;
  if (!json_is_object(value))
    return error_at(e, pointer,
                    "trace must be an object: {%s\"item\": 0, \"head\": 0, \"query\": 0}",
                    attention ? "\"attention\": \"encoder.0.self\", " : "");
  json_object_foreach((json_t *)value, name, member) {
    const bool known = strcmp(name, names[0]) == 0 || strcmp(name, names[1]) == 0 ||
                       strcmp(name, names[2]) == 0 || (attention && strcmp(name, "attention") == 0);
    if (!known) return refuse_member(name, pointer, attention != NULL, e);
  }
  if (attention && !(*attention = json_object_get(value, "attention")))
    return error_at(e, pointer, "trace requires \"attention\"");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char at[ERROR_POINTER_SIZE];
    const json_t *number = json_object_get(value, names[i]);
    if (!number) return error_at(e, pointer, "trace requires \"%s\"", names[i]);
    snprintf(at, sizeof at, "%s/%s", pointer, names[i]);
    if (!json_is_integer(number) || json_integer_value(number) < 0)
      return error_at(e, at, "%s must be an integer of at least 0", names[i]);
    *numbers[i] = (size_t)json_integer_value(number);
  }
  out->asked = true;
  return STATUS_OK;
}

/* --- checking --- */

static struct trace *refuse(const char *member, size_t given, const char *what, size_t count,
                            struct error *e) {
  char pointer[ERROR_POINTER_SIZE];
  snprintf(pointer, sizeof pointer, "/trace/%s", member);
  error_at(e, pointer, "%s %zu is out of range: there are %zu %s, counted from 0", member, given,
           count, what);
  return NULL;
}

struct trace *attention_traced_find(const struct attention_traced *asked, const struct geometry *g,
                                    size_t heads, struct arena *a, struct error *e) {
  if (asked->item >= g->items) return refuse("item", asked->item, "items", g->items, e);
  if (asked->head >= heads) return refuse("head", asked->head, "heads", heads, e);
  const size_t queries = g->item[asked->item].q;
  if (asked->query >= queries)
    return refuse("query", asked->query, "queries in this item", queries, e);
  struct trace *t = arena_alloc(a, 1, sizeof *t, e);
  if (t) *t = (struct trace){.item = asked->item, .head = asked->head, .row = asked->query};
  return t;
}

bool attention_traced_count(size_t keys, const struct layer_shape *s, size_t *sum) {
  enum { PER_KEY = 3 }; /* product, score and weight of each key, besides the key and its value */
  const size_t compared = s->score == SCORE_ADDITIVE ? s->score_size : s->key_head_size;
  size_t bytes;
  return size_mul(keys, compared + s->value_head_size + PER_KEY, &bytes) &&
         size_mul(bytes, NUMBER_ROOM, &bytes) && size_add(*sum, bytes, sum);
}

/* --- the response --- */

/* A member of the trace: a list of numbers, or of rows of numbers. */
struct attention_trace_part {
  size_t rows, width;
  const float *data;
  bool nested;         /* each row is a list */
  const uint8_t *seen; /* [rows] a row of 0 is written as null; NULL: no row is */
};

static const char *const names[] = {"query",   "keys",   "products", "scores",
                                    "weights", "values", "context"};
enum { PARTS = sizeof names / sizeof *names };

static char *write_part(const struct answer_rows *r, char *out) {
  const struct attention_trace_part *part =
      (const struct attention_trace_part *)r->section->data + r->item;
  if (part->nested)
    return number_write_rows(out, part->data + r->first * part->width, r->count, part->width);
  for (size_t i = r->first; i < r->first + r->count; i++) {
    if (i > r->first) *out++ = ',';
    const bool hidden = part->seen && !part->seen[i];
    out = hidden ? answer_write_text(out, "null") : number_write(out, part->data[i]);
  }
  return out;
}

struct answer_section attention_trace_section(const struct trace *t, struct arena *a,
                                              struct error *e) {
  const struct attention_trace_part all[PARTS] = {
      {t->size, 1, t->query, .nested = false},
      {t->keys, t->size, t->key, .nested = true},
      {t->keys, 1, t->product, .seen = t->seen},
      {t->keys, 1, t->score, .seen = t->seen},
      {t->keys, 1, t->weight, .nested = false},
      {t->keys, t->value_size, t->value, .nested = true},
      {t->value_size, 1, t->context, .nested = false}};
  struct attention_trace_part *part = arena_alloc(a, PARTS, sizeof *part, e);
  if (!part) return (struct answer_section){.name = "trace"};
  memcpy(part, all, sizeof all);
  return (struct answer_section){.name = "trace",
                                 .members = names,
                                 .items = PARTS,
                                 .heads = 1,
                                 .rows = {&part->rows, sizeof *part},
                                 .width = {&part->width, sizeof *part},
                                 .row_room = ROW_ROOM,
                                 .data = part,
                                 .write = write_part};
}
