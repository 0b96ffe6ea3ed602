/* normalizer: the steps of a normalizer, in the order in which they are done. */
#include "config/tokenizer/normalizer/normalizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/text.h"
#include "config/tokenizer/normalizer/normalizer_parts.h"
#include "core/base/size.h"

struct normalizer_step {
  const struct normalizer_kind *kind;
  void *made;
};

struct normalizer {
  struct normalizer_step *step;
  size_t count, room;
};

/* --- members --- */

void *normalizer_make(size_t size, struct error *e) {
  void *made = calloc(1, size);
  if (!made) error_no_memory(e);
  return made;
}

/* --- types --- */

/* Every kind but the one that holds others. */
static const struct normalizer_kind *const kinds[] = {
    &normalizer_kind_bert,        &normalizer_kind_bert_old,     &normalizer_kind_byte_level,
    &normalizer_kind_lowercase,   &normalizer_kind_nfc,          &normalizer_kind_nfd,
    &normalizer_kind_nfkc,        &normalizer_kind_nfkd,         &normalizer_kind_nmt,
    &normalizer_kind_precompiled, &normalizer_kind_prepend,      &normalizer_kind_replace,
    &normalizer_kind_strip,       &normalizer_kind_strip_accents};

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
static enum status add_step(struct normalizer *n, const struct normalizer_kind *kind,
                            const json_t *json, struct error *e) {
  if (n->count == n->room) {
    const size_t room = 2 * n->room + 1;
    struct normalizer_step *moved = realloc(n->step, room * sizeof *moved);
    if (!moved) return error_no_memory(e);
    n->step = moved;
    n->room = room;
  }
  struct normalizer_step *step = &n->step[n->count++];
  *step = (struct normalizer_step){kind, kind->read ? kind->read(json, e) : NULL};
  return e->status;
}

enum { DEEPEST = 32 }; /* sequences in one another */

/* Sequences leave no trace: their steps are done one behind the other anyway. */
static enum status read_steps(struct normalizer *n, const json_t *json, size_t depth,
                              struct error *e) {
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

struct normalizer *normalizer_new(const json_t *json, struct error *e) {
  struct normalizer *n = normalizer_make(sizeof *n, e);
  if (n && read_steps(n, json, 0, e) == STATUS_OK) return n;
  normalizer_free(n);
  if (e->status == STATUS_CONFIG) text_plain(e);
  return NULL;
}

void normalizer_free(struct normalizer *n) {
  for (size_t i = 0; n && i < n->count; i++) {
    const struct normalizer_step *step = &n->step[i];
    (step->kind->release ? step->kind->release : free)(step->made);
  }
  if (n) free(n->step);
  free(n);
}

enum status normalizer_apply(const struct normalizer *n, struct passage *p) {
  for (size_t i = 0; i < n->count && p->now.length > 0 && p->e->status == STATUS_OK; i++) {
    p->ask_at = 0;
    n->step[i].kind->apply(n->step[i].made, p);
  }
  return p->e->status;
}
