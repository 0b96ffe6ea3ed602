/* part: parts by their types, and sequences of parts. */
#include "config/document/part.h"

#include <stdlib.h>
#include <string.h>

#include "config/document/text.h"

enum { DEEPEST = 32 }; /* sequences within one another */

static void read_part(const struct part_kinds *kinds, const json_t *json, size_t depth, void *to,
                      struct error *e) {
  struct member_type types[PART_KINDS_MAX];
  must(kinds->count <= PART_KINDS_MAX);
  for (size_t i = 0; i < kinds->count; i++) types[i] = kinds->kind[i].type;
  const size_t type = member_type(json, types, kinds->count, e);
  if (e->status) return;
  const struct part_kind *kind = &kinds->kind[type];
  if (kind->read) {
    kind->read(to, json, e);
  } else {
    const json_t *list = member_list(json, kinds->list, e);
    if (depth == DEEPEST)
      error_set(e, STATUS_CONFIG, "more than %d sequences in one another", DEEPEST);
    for (size_t i = 0; i < json_array_size(list) && e->status == STATUS_OK; i++) {
      read_part(kinds, json_array_get(list, i), depth + 1, to, e);
      if (e->status == STATUS_CONFIG) text_before(e, "%s, %zu: ", kinds->list, i);
    }
    if (kinds->unnamed) return;
  }
  if (e->status == STATUS_CONFIG) text_before(e, "%s: ", kind->type.name);
}

enum status part_read(const struct part_kinds *kinds, const json_t *json, void *to,
                      struct error *e) {
  read_part(kinds, json, 0, to, e);
  return e->status;
}

void *part_list_add(struct part_list *l, size_t size, struct error *e) {
  if (l->count == l->room) {
    const size_t room = 2 * l->room + 4;
    void *moved = realloc(l->item, room * size);
    if (!moved) {
      error_no_memory(e);
      return NULL;
    }
    l->item = moved;
    l->room = room;
  }
  return memset((char *)l->item + l->count++ * size, 0, size);
}
