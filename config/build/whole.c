/* whole: frees whole models, says what they can do, and finds their attentions. */
#include "config/build/whole.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/size.h"

void whole_free(struct whole *w) {
  if (!w) return;
  stack_free(w->encoder);
  stack_free(w->decoder);
  free(w->part);
  free(w->block);
  free(w->banned);
  for (size_t i = 0; w->label && i < w->classes; i++) free(w->label[i]);
  free(w->label);
  tokenizer_free(w->tokenizer);
  json_decref(w->prompts);
  json_decref(w->prompt);
  free(w);
}

size_t whole_scratch_bytes(const struct whole *w) {
  const size_t encoder = w->encoder ? stack_scratch_bytes(w->encoder) : 0;
  return size_max(encoder, w->decoder ? stack_scratch_bytes(w->decoder) : 0);
}

bool whole_lacks_begin(const struct whole *w) { return whole_is_pair(w) && w->token.begin < 0; }

bool whole_has_logits(const struct whole *w) { return w->decoder && stack_has_output(w->decoder); }

bool whole_has_output(const struct whole *w) {
  return w && whole_has_logits(w) && !whole_lacks_begin(w);
}

bool whole_can_generate(const struct whole *w) {
  return w && w->decoder && !whole_lacks_begin(w) && stack_can_generate(w->decoder);
}

const struct whole_part *whole_find_part(const struct whole *w, const char *name) {
  for (size_t i = 0; i < w->parts; i++)
    if (strcmp(w->part[i].name, name) == 0) return &w->part[i];
  return NULL;
}
