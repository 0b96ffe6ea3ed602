/* checkpoint: one list of the tensors of all files. */
#include "config/checkpoint/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "config/checkpoint/checkpoint_file.h"
#include "config/checkpoint/checkpoint_folder.h"
#include "config/checkpoint/checkpoint_index.h"
#include "config/checkpoint/floats.h"
#include "config/document/file.h"
#include "config/document/text.h"
#include "core/base/size.h"

enum { CHUNK = 32 * 1024 }; /* bytes converted at a time: a stack may be small */

struct checkpoint {
  char *path;                     /* of the file or the index */
  struct checkpoint_index *index; /* NULL: a single file */
  size_t files;
  struct checkpoint_file **file; /* [files] */
  size_t count;
  struct checkpoint_entry *entry;          /* [count], in the order of the files */
  const struct checkpoint_entry **by_name; /* [count] */
  size_t marked_count;
  const struct checkpoint_entry **marked; /* [marked_count], in the order of `entry`; NULL: all */
  struct checkpoint_edit *edit;           /* [count]; NULL: no tensor is edited */
};

/* --- the files --- */

/* Opens all files at once: a missing shard is reported at start, not when it is used. */
static enum status open_files(struct checkpoint *c, struct error *e) {
  const size_t files = c->index ? checkpoint_index_files(c->index) : 1;
  c->file = calloc(files, sizeof *c->file);
  if (!c->file) return error_no_memory(e);
  c->files = files;
  if (!c->index) c->file[0] = checkpoint_file_open(c->path, e);
  for (size_t i = 0; c->index && i < files; i++) {
    const char *name = checkpoint_index_file(c->index, i);
    char *shard = file_beside(c->path, name);
    if (!shard) return error_no_memory(e);
    c->file[i] = checkpoint_file_open(shard, e);
    free(shard);
    if (!c->file[i]) return text_before(e, "shard \"%.120s\": ", name);
  }
  return e->status;
}

/* --- the tensors --- */

static int compare_names(const void *left, const void *right) {
  const struct checkpoint_entry *const *a = left, *const *b = right;
  return strcmp((*a)->name, (*b)->name);
}

static enum status list_tensors(struct checkpoint *c, struct error *e) {
  size_t most = 0;
  for (size_t i = 0; i < c->files; i++) most += checkpoint_file_count(c->file[i]);
  c->entry = calloc(most + 1, sizeof *c->entry);
  c->by_name = calloc(most + 1, sizeof(void *));
  if (!c->entry || !c->by_name) return error_no_memory(e);
  for (size_t i = 0; i < c->files; i++) {
    for (size_t j = 0; j < checkpoint_file_count(c->file[i]); j++) {
      struct checkpoint_entry entry = checkpoint_file_entry(c->file[i], j);
      entry.file = i;
      /* A tensor of another shard is ignored. */
      const char *place = c->index ? checkpoint_index_find(c->index, entry.name) : NULL;
      if (!c->index || (place && strcmp(place, checkpoint_index_file(c->index, i)) == 0))
        c->entry[c->count++] = entry;
    }
  }
  for (size_t i = 0; i < c->count; i++) c->by_name[i] = &c->entry[i];
  qsort(c->by_name, c->count, sizeof(void *), compare_names);
  return STATUS_OK;
}

/* Checks that each tensor of the index is in its shard. */
static enum status check_index_complete(const struct checkpoint *c, struct error *e) {
  const size_t count = c->index ? checkpoint_index_count(c->index) : c->count;
  if (c->count == count) return STATUS_OK;
  for (size_t i = 0; i < count; i++) {
    const char *file, *tensor = checkpoint_index_at(c->index, i, &file);
    if (!checkpoint_find(c, tensor))
      return error_set(e, STATUS_CONFIG, "%s: shard \"%.120s\" has no tensor \"%.100s\"",
                       text_tail(c->path), file, tensor);
  }
  return STATUS_OK;
}

/* --- the public part --- */

static struct checkpoint *new_checkpoint(struct error *e) {
  struct checkpoint *c = calloc(1, sizeof *c);
  if (!c) error_no_memory(e);
  return c;
}

struct checkpoint *checkpoint_view(const char *name, const void *bytes, size_t size,
                                   struct error *e) {
  struct checkpoint *c = new_checkpoint(e);
  if (!c) return NULL;
  c->path = strdup(name);
  c->file = calloc(1, sizeof *c->file);
  if (!c->path || !c->file) {
    error_no_memory(e);
  } else {
    c->files = 1;
    c->file[0] = checkpoint_file_view(bytes, size, e);
  }
  if (e->status == STATUS_OK && list_tensors(c, e) == STATUS_OK) return c;
  text_before(e, "%s: ", text_tail(name));
  text_plain(e);
  checkpoint_free(c);
  return NULL;
}

struct checkpoint *checkpoint_open(const char *path, struct error *e) {
  struct checkpoint *c = new_checkpoint(e);
  if (!c) return NULL;
  /* Every message begins with the name of the folder, the file or the index. */
  c->path = checkpoint_folder_file(path, e);
  if (!c->path)
    text_before(e, "%s: ", text_tail(path));
  else if (checkpoint_index_is(c->path))
    c->index = checkpoint_index_read(c->path, e);
  if (e->status == STATUS_OK && open_files(c, e)) text_before(e, "%s: ", text_tail(c->path));
  if (e->status == STATUS_OK && list_tensors(c, e) == STATUS_OK &&
      check_index_complete(c, e) == STATUS_OK)
    return c;
  text_plain(e);
  checkpoint_free(c);
  return NULL;
}

void checkpoint_free(struct checkpoint *c) {
  if (!c) return;
  for (size_t i = 0; i < c->files; i++) checkpoint_file_free(c->file[i]);
  checkpoint_index_free(c->index);
  free(c->file);
  free(c->entry);
  free(c->by_name);
  free(c->marked);
  free(c->edit);
  free(c->path);
  free(c);
}

const char *checkpoint_path(const struct checkpoint *c) { return c->path; }

const char *checkpoint_container(const struct checkpoint *c) {
  if (c->index) return "an index of shards";
  return checkpoint_file_container(c->file[0]);
}

size_t checkpoint_count(const struct checkpoint *c) { return c->count; }

const struct checkpoint_entry *checkpoint_at(const struct checkpoint *c, size_t index) {
  return &c->entry[index];
}

const struct checkpoint_entry *checkpoint_find(const struct checkpoint *c, const char *name) {
  size_t low = 0, high = c->count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const int order = strcmp(name, c->by_name[middle]->name);
    if (order == 0) return c->by_name[middle];
    if (order < 0) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return NULL;
}

/* The first name in their order that is not before `beginning`; with `past`, that also does not
 * begin with it. */
static size_t find_bound(const struct checkpoint *c, const char *beginning, bool past) {
  const size_t length = strlen(beginning);
  size_t low = 0, high = c->count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const int order = strncmp(c->by_name[middle]->name, beginning, length);
    if (order < 0 || (past && order == 0)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

const struct checkpoint_entry *const *checkpoint_behind(const struct checkpoint *c,
                                                        const char *beginning, size_t *count) {
  const size_t first = find_bound(c, beginning, false);
  *count = find_bound(c, beginning, true) - first;
  return c->by_name + first;
}

enum status checkpoint_mark(struct checkpoint *c, bool (*is)(const char *name), struct error *e) {
  const struct checkpoint_entry **marked = malloc((c->count + 1) * sizeof *marked);
  if (!marked) return error_no_memory(e);
  free(c->marked);
  c->marked = marked;
  c->marked_count = 0;
  for (size_t i = 0; i < c->count; i++)
    if (is(c->entry[i].name)) marked[c->marked_count++] = &c->entry[i];
  return STATUS_OK;
}

size_t checkpoint_marked_count(const struct checkpoint *c) {
  return c->marked ? c->marked_count : c->count;
}

const struct checkpoint_entry *checkpoint_marked_at(const struct checkpoint *c, size_t index) {
  return c->marked ? c->marked[index] : &c->entry[index];
}

enum status checkpoint_check_tensor(const struct checkpoint_entry *t, struct error *e) {
  if (floats_type_of(t->dtype) == FLOAT_NONE)
    return error_set(e, STATUS_CONFIG,
                     "tensor \"%.100s\" is of type %.20s; supported: F32, F16, BF16, F64", t->name,
                     t->dtype);
  if (t->by_columns && t->rank != 2)
    return error_set(e, STATUS_CONFIG,
                     "tensor \"%.100s\" has %zu dimensions in Fortran's order, which is supported "
                     "only for matrices",
                     t->name, t->rank);
  return STATUS_OK;
}

enum status checkpoint_set_edit(struct checkpoint *c, const struct checkpoint_entry *t,
                                struct checkpoint_edit edit, struct error *e) {
  if (!c->edit) c->edit = calloc(c->count, sizeof *c->edit);
  if (!c->edit) return error_no_memory(e);
  c->edit[t - c->entry] = edit;
  return STATUS_OK;
}

enum status checkpoint_read_floats(struct checkpoint *c, const struct checkpoint_entry *t,
                                   uint64_t first, size_t count, float *out, struct error *e) {
  if (checkpoint_check_tensor(t, e)) return e->status;
  const enum floats_type type = floats_type_of(t->dtype);
  const size_t size = floats_type_size(type);
  const struct checkpoint_edit *edit = c->edit ? &c->edit[t - c->entry] : NULL;
  unsigned char bytes[CHUNK];
  for (size_t n; count > 0; first += n, out += n, count -= n) {
    n = size_min(count, CHUNK / size);
    if (checkpoint_file_read(c->file[t->file], t, first * size, bytes, n * size, e))
      return c->index ? text_before(e, "tensor \"%.120s\" in shard \"%.120s\": ", t->name,
                                    checkpoint_index_file(c->index, t->file))
                      : text_before(e, "tensor \"%.120s\": ", t->name);
    if (floats_convert(type, bytes, n, out) < n)
      return error_set(e, STATUS_CONFIG, "tensor \"%.100s\" holds a number that is %s", t->name,
                       type == FLOAT_F64 ? "not finite or outside the float32 range"
                                         : "not finite");
    if (!edit || !edit->edit) continue;
    edit->edit(edit->of, first, n, out);
    if (!floats_are_finite(out, n))
      return error_set(e, STATUS_CONFIG,
                       "tensor \"%.100s\" holds a number that is not finite with its adapter",
                       t->name);
  }
  return STATUS_OK;
}

bool checkpoint_reads_anywhere(const struct checkpoint *c) {
  for (size_t i = 0; i < c->files; i++)
    if (!checkpoint_file_reads_anywhere(c->file[i])) return false;
  return true;
}

enum status checkpoint_check_unchanged(const struct checkpoint *c, struct error *e) {
  for (size_t i = 0; i < c->files; i++)
    if (checkpoint_file_check_unchanged(c->file[i], e)) return e->status;
  return STATUS_OK;
}
