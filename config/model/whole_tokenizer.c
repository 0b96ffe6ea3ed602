/* whole_tokenizer: finds the tokenizer of a whole model. */
#include "config/model/whole_tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/file.h"
#include "config/document/text.h"
#include "config/tokenizer/tokenizer_folder.h"

/* A new string: where it would lie; NULL: nowhere, or no memory. */
static char *find_folder(const struct whole_plan *p, const json_t *said, const char *directory,
                         struct error *e) {
  char *folder = NULL;
  if (said)
    folder = file_path(directory, json_string_value(said));
  else if (p->source.file && !p->source.builtin)
    folder = file_beside(checkpoint_path(p->source.file), ".");
  else
    return NULL;
  if (!folder) error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a path");
  return folder;
}

/* Every token that it makes must be in the model's table. */
static enum status check_size(const struct whole *w, struct error *e) {
  const size_t size = tokenizer_size(w->tokenizer);
  const size_t least = w->target_vocabulary < w->vocabulary ? w->target_vocabulary : w->vocabulary;
  if (size <= least) return STATUS_OK;
  return error_set(e, STATUS_CONFIG,
                   "%s: has %zu tokens, and the model %zu: it belongs to another one",
                   w->tokenizer_file, size, least);
}

/* The definition does not name this tokenizer: it may be left out. */
static void tell_the_way_out(struct error *e) {
  const size_t used = strlen(e->detail);
  snprintf(e->detail + used, sizeof e->detail - used,
           " (\"tokenizer\": false serves the model without it)");
}

enum status whole_tokenizer_find(struct whole *w, const struct whole_plan *p,
                                 const json_t *definition, const char *directory, struct error *e) {
  const json_t *said = json_object_get(definition, "tokenizer");
  if (json_is_false(said)) return STATUS_OK;
  if (said && !json_is_string(said))
    return error_set(e, STATUS_CONFIG, "tokenizer: needs the path of a folder, or false");
  if (said && !w->vocabulary)
    return error_set(e, STATUS_CONFIG, "tokenizer: the model has no table of tokens");
  char *folder = w->vocabulary ? find_folder(p, said, directory, e) : NULL;
  if (!folder) return e->status;
  w->tokenizer = tokenizer_folder(folder, &w->tokenizer_file, e);
  if (said && !w->tokenizer && !e->status)
    error_set(e, STATUS_CONFIG,
              "tokenizer: %.100s: has no tokenizer.json, vocab.json with merges.txt, vocab.txt or "
              "words.txt",
              text_tail(folder));
  if (w->tokenizer) check_size(w, e);
  if (e->status == STATUS_CONFIG && !said) tell_the_way_out(e);
  free(folder);
  return e->status;
}
