/* normal: the steps of a normalizer, in the order in which they are done. */
#include "config/tokenizer/normalizer/normal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/text.h"
#include "config/tokenizer/normalizer/normal_parts.h"
#include "core/base/size.h"

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
  if (!made) error_no_memory(e);
  return made;
}

/* --- types --- */

/* Every kind but the one that holds others. */
static const struct normal_kind *const kinds[] = {
    &normal_kind_bert,  &normal_kind_bert_old,     &normal_kind_byte_level, &normal_kind_lowercase,
    &normal_kind_nfc,   &normal_kind_nfd,          &normal_kind_nfkc,       &normal_kind_nfkd,
    &normal_kind_nmt,   &normal_kind_precompiled,  &normal_kind_prepend,    &normal_kind_replace,
    &normal_kind_strip, &normal_kind_strip_accents};

enum { KINDS = sizeof kinds / sizeof *kinds };

/* Which of the kinds it is, with its own members alone; KINDS: a sequence of others. */
static size_t find_kind(const json_t *json, struct error *e) {
  struct member_type types[KINDS + 1];
  for (size_t i = 0; i < KINDS; i++) types[i] = kinds[i]->type;
  types[KINDS] = (struct member_type){"Sequence", "normalizers "};
  return member_type(json, types, KINDS + 1, e);
}

/* --- steps --- */

/* What has been made of a step that failed is released with the others. */
static enum status add_step(struct normal *n, const struct normal_kind *kind, const json_t *json,
                            struct error *e) {
  if (n->count == n->room) {
    const size_t room = 2 * n->room + 1;
    struct normal_step *moved = realloc(n->step, room * sizeof *moved);
    if (!moved) return error_no_memory(e);
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
  const size_t kind = find_kind(json, e);
  size_t i;
  json_t *one;
  if (e->status) return e->status;
  if (kind < KINDS) {
    add_step(n, kinds[kind], json, e);
    return e->status == STATUS_CONFIG ? text_before(e, "%s: ", kinds[kind]->type.name) : e->status;
  }
  const json_t *list = member_list(json, "normalizers", e);
  if (depth == DEEPEST)
    return error_set(e, STATUS_CONFIG, "more than %d sequences in one another", DEEPEST);
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
  for (size_t i = 0; i < n->count && p->now.length > 0 && p->e->status == STATUS_OK; i++) {
    p->ask_at = 0;
    n->step[i].kind->apply(n->step[i].made, p);
  }
  return p->e->status;
}
