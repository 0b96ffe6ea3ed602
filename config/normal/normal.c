/* normal: the steps of a normalizer, in the order in which they are done. */
#include "config/normal/normal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/nearest.h"
#include "config/document/text.h"
#include "config/normal/normal_parts.h"
#include "core/run/size.h"

struct normal_step {
  const struct normal_kind *kind;
  void *made;
};

struct normal {
  struct normal_step *step;
  size_t count, room;
};

/* --- members --- */

void *normal_make(size_t size, struct error *e) {
  void *made = calloc(1, size);
  if (!made) error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a normalizer");
  return made;
}

/* A member that is missing may be there under a name that is nearly its own. */
enum status normal_refuse(const json_t *json, const char *key, const char *needs, struct error *e) {
  struct nearest near;
  const char *other;
  char hint[NEAREST_HINT] = "";
  json_t *value;
  nearest_init(&near, key);
  json_object_foreach((json_t *)json, other, value) nearest_offer(&near, other);
  if (!json_object_get(json, key)) nearest_hint(&near, hint);
  return error_set(e, STATUS_CONFIG, "%s: needs %s%s", key, needs, hint);
}

bool normal_flag(const json_t *json, const char *key, struct error *e) {
  const json_t *value = json_object_get(json, key);
  if (!json_is_boolean(value)) normal_refuse(json, key, "true or false", e);
  return json_is_true(value);
}

struct normal_text normal_text(const json_t *json, const char *key, struct error *e) {
  const json_t *value = json_object_get(json, key);
  if (!json_is_string(value)) normal_refuse(json, key, "a text", e);
  return (struct normal_text){json_string_value(value), json_string_length(value)};
}

/* --- types --- */

/* Every kind but the one that holds others. */
static const struct normal_kind *const kinds[] = {
    &normal_kind_bert,  &normal_kind_bert_old,     &normal_kind_byte_level, &normal_kind_lowercase,
    &normal_kind_nfc,   &normal_kind_nfd,          &normal_kind_nfkc,       &normal_kind_nfkd,
    &normal_kind_nmt,   &normal_kind_precompiled,  &normal_kind_prepend,    &normal_kind_replace,
    &normal_kind_strip, &normal_kind_strip_accents};

enum { KINDS = sizeof kinds / sizeof *kinds };

static const char sequence[] = "Sequence";

static enum status refuse_type(const char *type, struct error *e) {
  struct nearest near;
  char hint[NEAREST_HINT], known[KINDS * 24] = "";
  size_t used = 0;
  nearest_init(&near, type);
  for (size_t i = 0; i < KINDS; i++) {
    nearest_offer(&near, kinds[i]->name);
    used +=
        (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", kinds[i]->name);
  }
  nearest_offer(&near, sequence);
  return error_set(e, STATUS_CONFIG, "the type \"%.60s\" is not served%s; %s and %s are", type,
                   nearest_hint(&near, hint), known, sequence);
}

static const struct normal_kind *find_kind(const char *type) {
  for (size_t i = 0; i < KINDS; i++)
    if (strcmp(kinds[i]->name, type) == 0) return kinds[i];
  return NULL;
}

/* --- steps --- */

/* What has been made of a step that failed is released with the others. */
static enum status add_step(struct normal *n, const struct normal_kind *kind, const json_t *json,
                            struct error *e) {
  if (n->count == n->room) {
    const size_t room = 2 * n->room + 1;
    struct normal_step *moved = realloc(n->step, room * sizeof *moved);
    if (!moved) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a normalizer");
    n->step = moved;
    n->room = room;
  }
  struct normal_step *step = &n->step[n->count++];
  *step = (struct normal_step){kind, kind->read ? kind->read(json, e) : NULL};
  return e->status;
}

enum { DEEPEST = 32 }; /* sequences in one another */

/* Sequences leave no trace: their steps are done one behind the other anyway. */
static enum status read_steps(struct normal *n, const json_t *json, size_t depth, struct error *e) {
  const json_t *type = json_object_get(json, "type");
  const char *name = json_string_value(type);
  size_t i;
  json_t *one;
  if (!json_is_object(json)) return error_set(e, STATUS_CONFIG, "is no object");
  if (!name) return normal_refuse(json, "type", "the name of a normalizer", e);
  if (strcmp(name, sequence) != 0) {
    const struct normal_kind *kind = find_kind(name);
    if (!kind) return refuse_type(name, e);
    add_step(n, kind, json, e);
    return e->status == STATUS_CONFIG ? text_before(e, "%s: ", name) : e->status;
  }
  const json_t *list = json_object_get(json, "normalizers");
  if (depth == DEEPEST)
    return error_set(e, STATUS_CONFIG, "more than %d sequences in one another", DEEPEST);
  if (!json_is_array(list)) normal_refuse(json, "normalizers", "a list", e);
  json_array_foreach((json_t *)list, i, one) {
    if (read_steps(n, one, depth + 1, e) == STATUS_CONFIG) text_before(e, "normalizers, %zu: ", i);
    if (e->status) break;
  }
  return e->status;
}

struct normal *normal_new(const json_t *json, struct error *e) {
  struct normal *n = normal_make(sizeof *n, e);
  if (n && read_steps(n, json, 0, e) == STATUS_OK) return n;
  normal_free(n);
  if (e->status == STATUS_CONFIG) text_plain(e);
  return NULL;
}

void normal_free(struct normal *n) {
  for (size_t i = 0; n && i < n->count; i++) {
    const struct normal_step *step = &n->step[i];
    (step->kind->release ? step->kind->release : free)(step->made);
  }
  if (n) free(n->step);
  free(n);
}

enum status normal_apply(const struct normal *n, struct passage *p) {
  for (size_t i = 0; i < n->count && p->now.length > 0 && p->e->status == STATUS_OK; i++)
    n->step[i].kind->apply(n->step[i].made, p);
  return p->e->status;
}
