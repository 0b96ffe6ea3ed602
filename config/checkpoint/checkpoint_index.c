/* checkpoint_index: reads the index of a sharded checkpoint, strictly. */
#include "config/checkpoint/checkpoint_index.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/file.h"
#include "config/document/text.h"

struct checkpoint_index {
  json_t *document; /* owns all names */
  const json_t *map;
  size_t count, files;
  const char **tensor; /* [count], in the order of the document */
  const char **file;   /* [files], each once */
};

bool checkpoint_index_is(const char *path) { return text_ends_with(path, ".index.json"); }

static enum status check_index_members(struct checkpoint_index *x, const char *shown,
                                       struct error *e) {
  const char *key;
  json_t *value;
  if (!json_is_object(x->document))
    return error_set(e, STATUS_CONFIG, "%s: is not a JSON object", shown);
  json_object_foreach(x->document, key, value) {
    if (strcmp(key, "metadata") != 0 && strcmp(key, "weight_map") != 0)
      return error_set(e, STATUS_CONFIG,
                       "%s: has a key \"%.100s\"; an index has metadata and weight_map", shown,
                       key);
    if (!json_is_object(value))
      return error_set(e, STATUS_CONFIG, "%s: %s is not an object", shown, key);
  }
  x->map = json_object_get(x->document, "weight_map");
  if (json_object_size(x->map) == 0)
    return error_set(e, STATUS_CONFIG, "%s: its weight_map names no tensor", shown);
  return STATUS_OK;
}

static int compare_file_names(const void *left, const void *right) {
  return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static enum status read_weight_map(struct checkpoint_index *x, const char *shown, struct error *e) {
  const size_t most = json_object_size(x->map);
  const char *tensor;
  json_t *value;
  x->tensor = calloc(most, sizeof *x->tensor);
  x->file = calloc(most, sizeof *x->file);
  if (!x->tensor || !x->file) return error_no_memory(e);
  json_object_foreach((json_t *)x->map, tensor, value) {
    const char *file = json_string_value(value);
    /* A path could open any file of the machine. */
    if (!file || !*file || strcmp(file, ".") == 0 || strchr(file, '/') || strstr(file, ".."))
      return error_set(
          e, STATUS_CONFIG,
          "%s: the file of \"%.100s\" must be named without a folder: it lies beside the index",
          shown, tensor);
    x->tensor[x->count] = tensor;
    x->file[x->count++] = file;
  }
  qsort(x->file, x->count, sizeof *x->file, compare_file_names);
  for (size_t i = 0; i < x->count; i++)
    if (x->files == 0 || strcmp(x->file[x->files - 1], x->file[i]) != 0)
      x->file[x->files++] = x->file[i];
  return STATUS_OK;
}

struct checkpoint_index *checkpoint_index_read(const char *path, struct error *e) {
  struct checkpoint_index *x = calloc(1, sizeof *x);
  if (!x) {
    error_no_memory(e);
    return NULL;
  }
  const char *shown = text_tail(path);
  x->document = file_json(path, e);
  if (x->document && check_index_members(x, shown, e) == STATUS_OK &&
      read_weight_map(x, shown, e) == STATUS_OK)
    return x;
  checkpoint_index_free(x);
  return NULL;
}

void checkpoint_index_free(struct checkpoint_index *x) {
  if (!x) return;
  json_decref(x->document);
  free(x->tensor);
  free(x->file);
  free(x);
}

size_t checkpoint_index_files(const struct checkpoint_index *x) { return x->files; }

const char *checkpoint_index_file(const struct checkpoint_index *x, size_t file) {
  return x->file[file];
}

size_t checkpoint_index_count(const struct checkpoint_index *x) { return x->count; }

const char *checkpoint_index_at(const struct checkpoint_index *x, size_t index, const char **file) {
  *file = checkpoint_index_find(x, x->tensor[index]);
  return x->tensor[index];
}

const char *checkpoint_index_find(const struct checkpoint_index *x, const char *tensor) {
  return json_string_value(json_object_get(x->map, tensor));
}
