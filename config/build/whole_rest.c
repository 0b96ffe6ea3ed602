/* whole_rest: judges the tensors of a file that no role of the family has. */
#include "config/build/whole_rest.h"

#include <stdio.h>
#include <string.h>

#include "config/build/whole_find.h"
#include "config/describe/definition.h"
#include "config/document/text.h"

static bool begins_with(const char *name, const char *beginning) {
  return strncmp(name, beginning, strlen(beginning)) == 0;
}

static bool is_ignored(const struct whole_family *f, const char *name) {
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
static bool is_buffer(const struct whole_family *f, const char *name) {
  const size_t before = strcspn(f->layer, "{");
  if (strncmp(name, f->layer, before) != 0) return false;
  name += before + strspn(name + before, "0123456789");
  for (size_t i = 0; i < WHOLE_NAMES_MOST && f->buffer[i]; i++)
    if (*name == '.' && strcmp(name + 1, f->buffer[i]) == 0) return true;
  return false;
}

/* Is the name, behind the prefix, one of a layer that is not used? A number that no layer can have
 * is none. */
static bool is_behind(const struct whole_stack *stack, const char *name) {
  const char *path = stack->family->layer;
  const size_t before = strcspn(path, "{");
  const size_t digits = strncmp(name, path, before) == 0 ? strspn(name + before, "0123456789") : 0;
  char number[24];
  uint64_t layer;
  if (digits == 0 || digits >= sizeof number || name[before + digits] != '.') return false;
  snprintf(number, sizeof number, "%.*s", (int)digits, name + before);
  return text_decimal(number, &layer) && layer >= stack->form.layers &&
         layer <= DEFINITION_LAYER_MAX;
}

/* A layer that the count of layers did not reach, where no key gives their number. */
static enum status refuse_gap(const struct whole_plan *p, const struct whole_stack *stack,
                              const char *name, struct error *e) {
  char lacking[LAYOUT_ADDRESS_SIZE];
  const struct whole_place at = {WHOLE_QUERY, stack->form.layers};
  const char *dot = whole_find_name(p, stack, &at, lacking);
  return error_set(e, STATUS_CONFIG, "there is no tensor \"%.150s%sweight\", but \"%.150s\"",
                   lacking, dot, name);
}

/* Would the tensor, behind the prefix, change what the stack computes? */
static bool is_meant(const struct whole_plan *p, const struct whole_stack *stack,
                     const char *name) {
  const struct whole_family *f = stack->family;
  const bool counted = p->said.of[f->decodes ? WHOLE_DECODER : WHOLE_ENCODER].layers;
  for (size_t i = 0; i < WHOLE_NAMES_MOST && f->scope[i]; i++)
    if (begins_with(name, f->scope[i]))
      return !is_ignored(f, name) && !is_buffer(f, name) && !(counted && is_behind(stack, name));
  return false;
}

/* A tensor that the plan leaves unused. */
static enum status check_rest(const struct whole_plan *p, const char *name, struct error *e) {
  const size_t length = strlen(p->prefix);
  if (!begins_with(name, p->prefix)) return STATUS_OK;
  for (enum whole_side i = 0; i < WHOLE_SIDES; i++) {
    const struct whole_stack *stack = &p->stack[i];
    if (!stack->family || !is_meant(p, stack, name + length)) continue;
    if (is_behind(stack, name + length)) return refuse_gap(p, stack, name, e);
    return error_set(e, STATUS_CONFIG,
                     "unexpected tensor \"%.150s\" in a %s model: attend would compute a different "
                     "function, so it does not load the model",
                     name, stack->family->name);
  }
  return STATUS_OK;
}

enum status whole_rest_check(struct whole_plan *p, struct error *e) {
  for (size_t i = 0; i < checkpoint_count(p->source.file); i++) {
    if (p->used[i]) continue;
    p->aside++;
    if (check_rest(p, checkpoint_at(p->source.file, i)->name, e)) return e->status;
  }
  return STATUS_OK;
}
