/* whole_source: opens the files of a model. */
#include "config/describe/whole_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/checkpoint/builtin.h"
#include "config/describe/definition_value.h"
#include "config/describe/whole_modules.h"
#include "config/document/file.h"
#include "config/document/json_reserve.h"
#include "config/document/nearest.h"
#include "config/document/text.h"

/* Reads a document and frees its path; NULL without an error: it does not exist. */
static json_t *read_document(char *path, struct error *e) {
  if (!path) error_no_memory(e);
  json_t *json = path && file_is_there(path) ? file_json(path, e) : NULL;
  if (json && !json_is_object(json))
    error_set(e, STATUS_CONFIG, "%.100s: is not an object", text_tail(path));
  free(path);
  return json;
}

enum status whole_source_name_folder(const char *path, struct error *e) {
  const char *tail = text_tail(path);
  if (e->status != STATUS_CONFIG || strstr(e->detail, tail)) return e->status;
  return text_before(e, "%.120s: ", tail);
}

/* Opens a linear layer of bge-m3 in a file of its own, if a folder has it. */
static enum status open_linear(struct checkpoint **file, const char *folder, const char *stem,
                               struct error *e) {
  static const char *const endings[] = {".safetensors", ".npz", ".pt"};
  enum { NAME_SIZE = 32 };
  for (size_t i = 0; i < sizeof endings / sizeof *endings && !*file && !e->status; i++) {
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "%s%s", stem, endings[i]);
    char *path = file_path(folder, name);
    if (!path) return error_no_memory(e);
    if (file_is_there(path)) *file = checkpoint_open(path, e);
    free(path);
  }
  return e->status;
}

/* Opens colbert_linear, the projection of rows of bge-m3, as the only dense layer. */
static enum status open_projection(struct whole_source *s, const char *folder, struct error *e) {
  static const char stem[] = "colbert_linear";
  struct checkpoint *file = NULL;
  if (open_linear(&file, folder, stem, e) || !file) return e->status;
  const struct checkpoint_entry *weight = checkpoint_find(file, "weight");
  if (s->dense->file || s->each)
    error_set(e, STATUS_CONFIG, "%s beside a Dense module is not supported", stem);
  else if (!weight || weight->rank != 2 || weight->count == 0)
    error_set(e, STATUS_CONFIG, "%s: needs a matrix \"weight\"", stem);
  if (e->status) {
    checkpoint_free(file);
    return e->status;
  }
  s->each = true;
  *s->dense = (struct whole_dense){.file = file,
                                   .stem = "",
                                   .in = weight->dim[1],
                                   .out = weight->dim[0],
                                   .bias = checkpoint_find(file, "bias")};
  return STATUS_OK;
}

static enum status open_files(struct whole_source *s, const char *path, struct error *e) {
  char within[WHOLE_MODULES_PATH] = "";
  if (whole_modules_read(s, path, within, e)) return whole_source_name_folder(path, e);
  char *place = *within ? file_path(path, within) : strdup(path);
  if (!place) return error_no_memory(e);
  s->file = checkpoint_open(place, e);
  free(place);
  if (!s->file) return e->status;
  if (open_linear(&s->weigher, path, "sparse_linear", e) || open_projection(s, path, e))
    return whole_source_name_folder(path, e);
  const char *tensors = checkpoint_path(s->file);
  s->config = read_document(file_beside(tensors, "config.json"), e);
  if (!e->status) s->generation = read_document(file_beside(tensors, "generation_config.json"), e);
  if (!e->status)
    s->sentences = read_document(file_path(path, "config_sentence_transformers.json"), e);
  if (!e->status) whole_late_read(s, e);
  return whole_source_name_folder(path, e);
}

static enum status open_builtin(struct whole_source *s, struct error *e) {
  struct builtin files;
  json_error_t why;
  bool no_memory;
  if (!builtin_find(s->builtin, &files)) {
    char hint[NEAREST_HINT];
    struct nearest near;
    nearest_init(&near, s->builtin);
    for (size_t i = 0; builtin_name(i); i++) nearest_offer(&near, builtin_name(i));
    return error_set(e, STATUS_CONFIG, "transformer: builtin: there is no \"%.60s\"%s", s->builtin,
                     nearest_hint(&near, hint));
  }
  s->builtin = files.name;
  s->file = checkpoint_view(files.name, files.tensors, files.tensors_size, e);
  if (!s->file) return e->status;
  s->config = json_reserve_load(files.config, files.config_size, &why, &no_memory);
  return s->config ? STATUS_OK : error_no_memory(e);
}

enum status whole_source_open(struct whole_source *s, const json_t *definition,
                              const char *directory, struct error *e) {
  const json_t *where = json_object_get(definition, "transformer");
  *s = (struct whole_source){.path = json_string_value(where)};
  if (json_is_object(where)) { /* instead of a path */
    static const char *const known[] = {"random", "builtin", NULL};
    const json_t *builtin = json_object_get(where, "builtin");
    definition_value_names(where, known, e);
    definition_value_seed(where, &s->random, &s->seed, e);
    s->builtin = json_string_value(builtin);
    if (builtin && !s->builtin) error_set(e, STATUS_CONFIG, "builtin: must be a name");
    if (s->builtin && s->random)
      error_set(e, STATUS_CONFIG, "random and builtin cannot be combined");
  }
  if (!e->status && !s->random && !s->builtin && !s->path)
    error_set(e, STATUS_CONFIG,
              "needs the path of a folder or a file of tensors, {\"random\": {\"seed\": n}} or "
              "{\"builtin\": \"%s\"}",
              builtin_name(0));
  if (s->path && !*s->path) error_set(e, STATUS_CONFIG, "needs a path");
  if (e->status) return text_before(e, "transformer: ");
  if (s->random) return STATUS_OK;
  if (s->builtin) return open_builtin(s, e);
  char *path = file_path(directory, s->path);
  if (!path) return error_no_memory(e);
  open_files(s, path, e);
  free(path);
  return e->status;
}

void whole_source_close(struct whole_source *s) {
  checkpoint_free(s->file);
  checkpoint_free(s->weigher);
  for (size_t i = 0; i < WHOLE_DENSES; i++) checkpoint_free(s->dense[i].file);
  json_decref(s->config);
  json_decref(s->generation);
  json_decref(s->sentences);
  json_decref(s->late.settings);
  json_decref(s->late.masking);
  json_decref(s->listed);
  *s = (struct whole_source){0};
}
