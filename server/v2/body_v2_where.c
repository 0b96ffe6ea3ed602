/* body_v2_where: JSON Pointers of failures into a v2 request. */
#include <stdio.h>
#include <string.h>

#include "server/v2/body_v2_parts.h"

void body_v2_point(const struct body_v2_place *at, char pointer[ERROR_POINTER_SIZE]) {
  static const struct {
    const char *list, *below;
  } places[] = {
      [V2_REQUEST] = {NULL, ""},
      [V2_PARAMETERS] = {NULL, "/parameters"},
      [V2_INPUTS] = {NULL, "/inputs"},
      [V2_INPUT] = {"/inputs", ""},
      [V2_INPUT_PARAMETERS] = {"/inputs", "/parameters"},
      [V2_OUTPUTS] = {NULL, "/outputs"},
      [V2_OUTPUT] = {"/outputs", ""},
      [V2_OUTPUT_PARAMETERS] = {"/outputs", "/parameters"},
  };
  const char *list = places[at->level].list, *below = places[at->level].below;
  char element[ERROR_POINTER_SIZE / 2] = "";
  if (list) snprintf(element, sizeof element, "%s/%zu", list, at->index);
  snprintf(pointer, ERROR_POINTER_SIZE, "%s%s%s%s", element, below, at->key ? "/" : "",
           at->key ? at->key : "");
}

enum status body_v2_refuse(struct body_v2 *b, struct body_v2_place at, const char *format, ...) {
  char pointer[ERROR_POINTER_SIZE];
  va_list args;
  body_v2_point(&at, pointer);
  va_start(args, format);
  error_at_v(b->e, pointer, format, args);
  va_end(args);
  return b->e->status;
}

/* --- failures found by code that all formats of a body share --- */

/* Points at `index` ("/0/1") of the input's array, or at the whole input. */
static void point_into(const struct body_v2_input *in, const char *index, struct error *e) {
  const bool reading = in->reader && in->tensor.depth == 0;
  /* Flat data has indices of its own, and data after the JSON has none. */
  const bool same = reading || (in->reader && (in->nested || in->form.rank == 1));
  struct body_v2_place at = body_v2_at_input(in, NULL);
  if (!in->prepared)
    at.key = "shape";
  else if (reading || (same && index[0]))
    at.key = "data";
  body_v2_point(&at, e->pointer);
  if (!index[0]) return;
  char *to = same ? e->pointer : e->detail;
  const size_t size = same ? sizeof e->pointer : sizeof e->detail, used = strlen(to);
  snprintf(to + used, size - used, same ? "%s" : ", at %s of the array", index);
}

void body_v2_locate(const struct body_v2 *b, struct error *e) {
  char native[ERROR_POINTER_SIZE];
  memcpy(native, e->pointer, sizeof native);
  if (!native[0]) return;
  const size_t length = strcspn(native + 1, "/");
  const struct contract *c = b->into->contract;
  const unsigned field = contract_find(c, native + 1, length);
  if (field == c->fields) return; /* a pointer into this body already */
  /* The last input of that field: if two have one name, the second is being read. */
  for (size_t i = b->inputs; i-- > 0;)
    if (b->input[i].is && b->input[i].is->field == field) {
      point_into(&b->input[i], native + 1 + length, e);
      return;
    }
  bool is_input = false;
  for (size_t i = 0; i < c->v2->inputs; i++) is_input |= c->v2->input[i].field == field;
  if (is_input)
    snprintf(e->pointer, sizeof e->pointer, "/inputs");
  else
    snprintf(e->pointer, sizeof e->pointer, "/parameters%.80s", native);
}
