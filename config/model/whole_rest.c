/* whole_rest: judges the tensors of a file that no role of the family has. */
#include "config/model/whole_rest.h"

#include <stdio.h>
#include <string.h>

#include "config/document/text.h"
#include "config/layer/definition.h"
#include "config/model/whole_find.h"

static bool begins_with(const char *name, const char *beginning) {
  return strncmp(name, beginning, strlen(beginning)) == 0;
}

static bool is_ignored(const struct whole_plan *p, const char *name) {
  const struct whole_family *f = p->family;
  for (size_t i = 0; i < WHOLE_NAMES_MOST && f->ignored[i]; i++)
    if (strcmp(name, f->ignored[i]) == 0) return true;
  for (size_t i = 0; i < WHOLE_TABLES_MOST && f->table[i]; i++) {
    const size_t length = strlen(f->table[i]);
    if (strncmp(name, f->table[i], length) == 0 && strcmp(name + length, ".weight") == 0)
      return true;
  }
  return false;
}

/* Is the name, behind the prefix, one of a layer's buffers? */
static bool is_buffer(const struct whole_plan *p, const char *name) {
  const size_t before = strcspn(p->family->layer, "{");
  if (strncmp(name, p->family->layer, before) != 0) return false;
  name += before + strspn(name + before, "0123456789");
  for (size_t i = 0; i < WHOLE_NAMES_MOST && p->family->buffer[i]; i++)
    if (*name == '.' && strcmp(name + 1, p->family->buffer[i]) == 0) return true;
  return false;
}

/* Is the name, behind the prefix, one of a layer that is not used? A number that no layer can have
 * is none. */
static bool is_behind(const struct whole_plan *p, const char *name) {
  const size_t before = (size_t)(strstr(p->family->layer, "{i}") - p->family->layer);
  const size_t digits =
      strncmp(name, p->family->layer, before) == 0 ? strspn(name + before, "0123456789") : 0;
  char number[24];
  uint64_t layer;
  if (digits == 0 || digits >= sizeof number || name[before + digits] != '.') return false;
  snprintf(number, sizeof number, "%.*s", (int)digits, name + before);
  return text_decimal(number, &layer) && layer >= p->form.layers && layer <= DEFINITION_LAYER_MAX;
}

/* A layer that the count of layers did not reach, where no key gives their number. */
static enum status refuse_gap(const struct whole_plan *p, const char *name, struct error *e) {
  char lacking[LAYOUT_ADDRESS_SIZE];
  whole_find_name(p, WHOLE_QUERY, p->form.layers, lacking);
  return error_set(e, STATUS_CONFIG, "there is no tensor \"%.150s%sweight\", but \"%.150s\"",
                   lacking, p->family->joint ? "" : ".", name);
}

/* Would the tensor, behind the prefix, change what the encoder computes? */
static bool is_meant(const struct whole_plan *p, const char *name) {
  for (size_t i = 0; i < WHOLE_NAMES_MOST && p->family->scope[i]; i++)
    if (begins_with(name, p->family->scope[i]))
      return !is_ignored(p, name) && !is_buffer(p, name) && !(p->said.layers && is_behind(p, name));
  return false;
}

enum status whole_rest_check(struct whole_plan *p, struct error *e) {
  const size_t length = strlen(p->prefix);
  for (size_t i = 0; i < checkpoint_count(p->source.file); i++) {
    const char *name = checkpoint_at(p->source.file, i)->name;
    if (p->used[i]) continue;
    p->aside++;
    if (!begins_with(name, p->prefix) || !is_meant(p, name + length)) continue;
    if (is_behind(p, name + length)) return refuse_gap(p, name, e);
    return error_set(e, STATUS_CONFIG,
                     "tensor \"%.150s\" is not known in %s: with it the model computes something "
                     "else",
                     name, p->family->name);
  }
  return STATUS_OK;
}
