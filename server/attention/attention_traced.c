/* attention_traced: one query whose weights are to be explained: what says which, and is it there?
 */
#include "server/attention/attention_traced.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/base/size.h"

enum { NAME_SHOWN = 40 }; /* bytes of an unknown member's name, in its error */

const char attention_traced_is_json[] =
    "a trace is available as JSON only: accept application/json, or remove \"trace\"";

/* --- reading --- */

/* Of a name that may stand in a JSON Pointer as it is, the place; of another one, the object's. */
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

static enum status read_member(const json_t *value, const char *name, const char *pointer,
                               size_t *to, struct error *e) {
  char at[ERROR_POINTER_SIZE];
  if (!value) return error_at(e, pointer, "trace requires \"%s\"", name);
  snprintf(at, sizeof at, "%s/%s", pointer, name);
  if (!json_is_integer(value) || json_integer_value(value) < 0)
    return error_at(e, at, "%s must be an integer of at least 0", name);
  *to = (size_t)json_integer_value(value);
  return STATUS_OK;
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
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (read_member(json_object_get(value, names[i]), names[i], pointer, numbers[i], e))
      return e->status;
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

/* Of each key itself, its value, product, score and weight. */
bool attention_traced_count(size_t keys, const struct layer_shape *s, size_t each, size_t *sum) {
  enum { BESIDE = 3 };
  const size_t compared = s->score == SCORE_ADDITIVE ? s->score_size : s->key_head_size;
  size_t bytes;
  return size_mul(keys, compared + s->value_head_size + BESIDE, &bytes) &&
         size_mul(bytes, each, &bytes) && size_add(*sum, bytes, sum);
}
