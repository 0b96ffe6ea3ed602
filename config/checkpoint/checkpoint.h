/* checkpoint: the tensors of one file or of several shards, read on demand.
 *
 * Opening reads the descriptions of the tensors and checks the rules of the format. Numbers are
 * read a stretch at a time: a tensor that is not used costs nothing. Files are read, never mapped:
 * weights in service must not change with the file. One thread at a time uses a checkpoint, except
 * for reading numbers (checkpoint_reads_anywhere). */
#ifndef CONFIG_CHECKPOINT_H
#define CONFIG_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/checkpoint/safetensors.h"
#include "core/base/status.h"

struct checkpoint_entry {
  const char *name;  /* owned by the checkpoint */
  const char *dtype; /* name in safetensors, "F32", "BF16", ..., or in NumPy: ">f4" */
  size_t rank;
  uint64_t dim[SAFETENSORS_RANK_MAX];
  uint64_t count;  /* product of the dimensions; 1 for rank 0 */
  bool by_columns; /* Fortran order: the first dimension is contiguous */
  /* The place of the numbers, private to the checkpoint. */
  size_t file;
  uint64_t begin, bytes;
};

struct checkpoint;

/* Opens a safetensors file, an .npz archive or a PyTorch file, by its first bytes; all files of an
 * index of shards, whose path ends with .index.json; or the one of these in a folder. NULL with
 * STATUS_CONFIG naming the path and the reason, or STATUS_OUT_OF_MEMORY. */
struct checkpoint *checkpoint_open(const char *path, struct error *e);

/* Opens a safetensors file in memory, whose bytes outlive the checkpoint. `name` is used as its
 * path. */
struct checkpoint *checkpoint_view(const char *name, const void *bytes, size_t size,
                                   struct error *e);
void checkpoint_free(struct checkpoint *c);

/* The path of the file or the index, also if a folder was opened. */
const char *checkpoint_path(const struct checkpoint *c);

/* The kind of container in words: "a safetensors file". */
const char *checkpoint_container(const struct checkpoint *c);

size_t checkpoint_count(const struct checkpoint *c);
const struct checkpoint_entry *checkpoint_at(const struct checkpoint *c, size_t index);
const struct checkpoint_entry *checkpoint_find(const struct checkpoint *c, const char *name);

/* The tensors whose names begin with `beginning`, in the order of their names. */
const struct checkpoint_entry *const *checkpoint_behind(const struct checkpoint *c,
                                                        const char *beginning, size_t *count);

/* Marks the tensors for whose names `is` returns true, for code that goes through the names of very
 * many tensors again and again. Before the first call all are marked. */
enum status checkpoint_mark(struct checkpoint *c, bool (*is)(const char *name), struct error *e);
size_t checkpoint_marked_count(const struct checkpoint *c);
const struct checkpoint_entry *checkpoint_marked_at(const struct checkpoint *c, size_t index);

/* Rejects a tensor that checkpoint_read_floats cannot read: because of its type, or because it is
 * in Fortran order and not a matrix. STATUS_CONFIG naming it. */
enum status checkpoint_check_tensor(const struct checkpoint_entry *t, struct error *e);

/* Edits numbers first .. first + count - 1 of a tensor after they are read, in the order in which
 * they are stored. Several threads may edit at the same time. */
struct checkpoint_edit {
  void (*edit)(const void *of, uint64_t first, size_t count, float *numbers);
  const void *of;
};

/* Has all numbers of the tensor edited from now on; `edit` outlives the checkpoint's use, and
 * replaces an earlier one. STATUS_OUT_OF_MEMORY. */
enum status checkpoint_set_edit(struct checkpoint *c, const struct checkpoint_entry *t,
                                struct checkpoint_edit edit, struct error *e);

/* Reads numbers first .. first + count - 1 of the tensor, in the order in which they are stored, as
 * float32 (F32, F16, BF16 or F64, rounded to nearest, ties to even), and edits them. STATUS_CONFIG
 * naming the tensor for any other type, for a number that is not a finite float32, also after the
 * edit, or if the file cannot be read. In an archive all numbers before `first` are read again,
 * unless the last call for this tensor stopped there: read a tensor from its first number to its
 * last. */
enum status checkpoint_read_floats(struct checkpoint *c, const struct checkpoint_entry *t,
                                   uint64_t first, size_t count, float *out, struct error *e);

/* May several threads read any numbers at the same time? False for an .npz archive, and for a
 * PyTorch file with tensors whose numbers do not follow each other. */
bool checkpoint_reads_anywhere(const struct checkpoint *c);

/* Rejects a checkpoint if one of its files was written to since it was opened: its numbers may
 * belong to two versions. STATUS_CONFIG with the reason. */
enum status checkpoint_check_unchanged(const struct checkpoint *c, struct error *e);

#endif
