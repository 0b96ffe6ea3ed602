/* contract: names and small values of a contract's fields. */
#include "server/body/contract.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "config/document/nearest.h"
#include "core/base/size.h"
#include "server/json/json_small.h"

/* Every byte of the name may have to be escaped. */
_Static_assert(1 + 2 * CONTRACT_NAME_SHOWN < ERROR_POINTER_SIZE, "a name fits into a pointer");

/* --- names --- */

unsigned contract_find(const struct contract *c, const char *name, size_t length) {
  unsigned f = 0;
  while (f < c->fields && (c->field[f].name_length != length ||
                           memcmp(contract_name(&c->field[f]), name, length) != 0))
    f++;
  return f;
}

void contract_show_name(const char *name, size_t length, char shown[CONTRACT_NAME_SHOWN + 1],
                        char *pointer, size_t room) {
  if (length > CONTRACT_NAME_SHOWN) {
    length = CONTRACT_NAME_SHOWN;
    while (length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80) length--;
  }
  size_t p = 0, whole = 0; /* bytes of the pointer, and those before its last character */
  bool fits = true;
  pointer[p++] = '/';
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)name[i];
    bool harmless = c >= 0x20 && c != 0x7f;
    bool escape = c == '~' || c == '/';
    shown[i] = harmless ? name[i] : '?';
    if (!fits) continue;
    if ((c & 0xc0) != 0x80) whole = p;
    fits = p + 1 + escape < room;
    if (!fits) p = whole;
    if (fits) pointer[p++] = escape ? '~' : shown[i];
    if (fits && escape) pointer[p++] = c == '~' ? '0' : '1';
  }
  shown[length] = '\0';
  pointer[p] = '\0';
}

static enum status refuse_name(const struct contract *c, const char *name, size_t length,
                               struct error *e) {
  char shown[CONTRACT_NAME_SHOWN + 1], pointer[ERROR_POINTER_SIZE];
  contract_show_name(name, length, shown, pointer, sizeof pointer);
  for (const struct contract_stray *stray = c->stray; stray < c->stray + c->strays; stray++)
    if (strcmp(shown, stray->name) == 0)
      return error_at(e, pointer, "unknown field \"%s\": %s", shown, stray->instead);
  char hint[NEAREST_HINT];
  struct nearest known;
  nearest_init(&known, shown);
  for (unsigned f = 0; f < c->fields; f++) nearest_offer(&known, contract_name(&c->field[f]));
  return error_at(e, pointer, "unknown field \"%s\"%s", shown, nearest_hint(&known, hint));
}

enum status contract_refuse_long(const struct contract *c, const char *raw, size_t length,
                                 struct error *e) {
  return refuse_name(c, raw + 1, length - 1, e);
}

/* Reports that only other requests have the field: those of the list that all have it. */
static enum status refuse_request(const struct contract *c, const struct contract_field *f,
                                  struct error *e) {
  enum { LONGEST = 200 };
  char paths[LONGEST];
  size_t used = 0;
  if (f->elsewhere) return error_at(e, f->pointer, "%s", f->elsewhere);
  must(c->requests);
  for (const struct contract_request *r = c->requests; r->bits && used < sizeof paths; r++)
    if ((f->of & r->bits) == r->bits)
      used +=
          (size_t)snprintf(paths + used, sizeof paths - used, "%s%s", used ? " and " : "", r->path);
  must(used > 0);
  return error_at(e, f->pointer, "it is supported by %s", paths);
}

/* Records that the request has the field. */
static enum status mark_field(struct contract_reading *r, unsigned field, struct error *e) {
  const struct contract_field *f = &r->contract->field[field];
  const uint64_t bit = UINT64_C(1) << field;
  if (r->seen & bit) return error_at(e, f->pointer, "duplicate field \"%s\"", contract_name(f));
  if (f->of && !(f->of & r->contract->request)) return refuse_request(r->contract, f, e);
  r->seen |= bit;
  return STATUS_OK;
}

enum status contract_meet(struct contract_reading *r, const char *name, size_t length,
                          unsigned *field, struct error *e) {
  *field = contract_find(r->contract, name, length);
  if (*field == r->contract->fields) return refuse_name(r->contract, name, length, e);
  return mark_field(r, *field, e);
}

enum status contract_meet_raw(struct contract_reading *r, const char *raw, size_t length,
                              size_t offset, unsigned *field, struct error *e) {
  *field = contract_find(r->contract, raw + 1, length - 2);
  if (*field < r->contract->fields) return mark_field(r, *field, e);
  /* The name is escaped or unknown. */
  json_t *name = json_small_parse(raw, length, offset, "", e);
  if (!name) return e->status;
  enum status status =
      contract_meet(r, json_string_value(name), json_string_length(name), field, e);
  json_decref(name);
  return status;
}

/* --- small values --- */

size_t contract_longest(const struct contract_field *field) {
  return field->longest ? field->longest : JSON_SMALL_MAX;
}

enum status contract_read(struct contract_reading *r, unsigned field, const char *text,
                          size_t length, size_t offset, struct error *e) {
  const struct contract_field *f = &r->contract->field[field];
  must(contract_is_small(f));
  json_t *value = length > JSON_SMALL_MAX
                      ? json_small_parse_long(text, length, offset, f->pointer, r->arena, e)
                      : json_small_parse(text, length, offset, f->pointer, e);
  if (!value) return e->status;
  const bool absent = f->nullable && json_is_null(value);
  enum status status = absent ? STATUS_OK : f->read(value, f, (char *)r->values + f->at, e);
  if (absent) r->null |= UINT64_C(1) << field;
  json_decref(value);
  return status;
}

enum status contract_read_kept(struct contract_reading *r, unsigned field, const char *text,
                               size_t length, size_t offset, struct error *e) {
  const struct contract_field *f = &r->contract->field[field];
  if (!f->read_text || length <= JSON_SMALL_MAX)
    return contract_read(r, field, text, length, offset, e);
  return f->read_text(text, length, offset, f, (char *)r->values + f->at, e);
}

enum status contract_read_flag(const json_t *value, const struct contract_field *field, void *to,
                               struct error *e) {
  if (!json_is_boolean(value))
    return error_at(e, field->pointer, "%s must be true or false", contract_name(field));
  *(bool *)to = json_is_true(value);
  return STATUS_OK;
}

enum status contract_integer(const json_t *value, const struct contract_field *field, int64_t least,
                             int64_t most, size_t *to, struct error *e) {
  const json_int_t n = json_integer_value(value);
  if (json_is_integer(value) && n >= least && n <= most) {
    *to = n < 0 ? 0 : (size_t)n;
    return STATUS_OK;
  }
  if (most == INT64_MAX)
    return error_at(e, field->pointer, "%s must be an integer of at least %lld",
                    contract_name(field), (long long)least);
  return error_at(e, field->pointer, "%s must be an integer from %lld to %lld",
                  contract_name(field), (long long)least, (long long)most);
}

enum status contract_read_seed(const json_t *value, const struct contract_field *field, void *to,
                               struct error *e) {
  size_t seed = 0;
  if (contract_integer(value, field, 0, (INT64_C(1) << 53) - 1, &seed, e)) return e->status;
  *(uint64_t *)to = seed;
  return STATUS_OK;
}

/* Reads one of these words, whose index goes to *to. The error lists all. */
static enum status read_word(const json_t *value, const struct contract_field *field,
                             const char *const *words, unsigned *to, struct error *e) {
  enum { LONGEST = 200 };
  char all[LONGEST] = "";
  size_t used = 0;
  for (unsigned i = 0; words[i] && used < sizeof all; i++) {
    if (json_small_is_text(value, words[i])) {
      *to = i;
      return STATUS_OK;
    }
    const char *before = i == 0 ? "" : words[i + 1] ? ", " : " or ";
    used += (size_t)snprintf(all + used, sizeof all - used, "%s\"%s\"", before, words[i]);
  }
  return error_at(e, field->pointer, "%s must be %s", contract_name(field), all);
}

enum status contract_read_word(const json_t *value, const struct contract_field *field, void *to,
                               struct error *e) {
  return read_word(value, field, field->words, to, e);
}

enum status contract_read_base64(const json_t *value, const struct contract_field *field, void *to,
                                 struct error *e) {
  static const char *const words[] = {"float", "base64", NULL};
  unsigned word = 0;
  read_word(value, field, words, &word, e);
  *(bool *)to = word == 1;
  return e->status;
}

enum status contract_read_text(const json_t *value, const struct contract_field *field, void *to,
                               struct error *e) {
  struct contract_text *text = to;
  const size_t length = json_string_length(value);
  if (!json_is_string(value))
    return error_at(e, field->pointer, "%s must be a string", contract_name(field));
  char *bytes = arena_alloc(text->arena, length + 1, 1, e);
  if (!bytes) return e->status;
  memcpy(bytes, json_string_value(value), length + 1);
  text->bytes = bytes;
  text->length = length;
  return STATUS_OK;
}

/* --- arrays --- */

struct tensor_rule contract_rule(const struct contract_reading *r, unsigned field) {
  const struct contract_field *f = &r->contract->field[field];
  must(contract_is_array(r->contract, field));
  struct tensor_rule rule = f->rule;
  rule.field = contract_name(f);
  rule.width = r->size[f->width];
  rule.max_elements = size_max(r->max_items, r->size[f->outermost]);
  return rule;
}

uint64_t contract_reading_cost(const struct contract_reading *r) {
  enum { ELEMENT_NS = 40, FLOATS_IN_NS = 8 };
  uint64_t cost = r->contract->plan_cost ? r->contract->plan_cost(r) : 0;
  for (unsigned i = 0; i < r->contract->arrays; i++) {
    const struct tensor *t = r->tensor[i];
    if (!t) continue;
    /* The shapes of the elements are compared one by one. Lengths, masks and floats that came as
     * bytes are checked number by number; other floats are at most copied. */
    const bool checked = r->contract->field[i].rule.type != TENSOR_FLOAT || t->unjudged || t->late;
    cost += ELEMENT_NS * (uint64_t)t->elements + (checked ? t->count : t->count / FLOATS_IN_NS);
  }
  if (r->texts) cost += contract_texts_cost(r->texts, r->prompt);
  if (r->second) cost += contract_texts_cost(r->second, 0);
  return cost;
}
