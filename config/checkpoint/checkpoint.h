/* checkpoint: the tensors of a file or of several, whatever container holds them, read where they
 * are wanted.
 *
 * Opening reads what the container says of its tensors and checks that it keeps the rules of its
 * format; numbers are read one stretch at a time, so that what is not used costs nothing. Read,
 * never mapped: what serves must not change under us. A checkpoint is used by one thread. */
#ifndef CONFIG_CHECKPOINT_H
#define CONFIG_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/checkpoint/safetensors.h"
#include "core/run/status.h"

struct checkpoint_entry {
  const char *name;  /* owned by the checkpoint */
  const char *dtype; /* as safetensors names it: "F32", "BF16", ...; else as NumPy: ">f4" */
  size_t rank;
  uint64_t dim[SAFETENSORS_RANK_MAX];
  uint64_t count;  /* product of the dimensions; 1 for rank 0 */
  bool by_columns; /* the first dimension runs fastest, as Fortran has it */
  /* Where the numbers are; for the checkpoint alone. */
  size_t file;
  uint64_t begin, bytes;
};

struct checkpoint;

/* Opens a safetensors file or an .npz archive, which is told by what is in it; or, if the path ends
 * with .index.json, all files that this index of shards names. STATUS_CONFIG naming the path and
 * the reason, or STATUS_OUT_OF_MEMORY. */
struct checkpoint *checkpoint_open(const char *path, struct error *e);
void checkpoint_free(struct checkpoint *c);

/* What it is, for people: "a safetensors file". */
const char *checkpoint_container(const struct checkpoint *c);

size_t checkpoint_count(const struct checkpoint *c);
const struct checkpoint_entry *checkpoint_at(const struct checkpoint *c, size_t index);
const struct checkpoint_entry *checkpoint_find(const struct checkpoint *c, const char *name);

/* Refuses, by its name, a tensor that checkpoint_floats does not read: for its type, or because it
 * is no matrix and lies by columns. */
enum status checkpoint_check_tensor(const struct checkpoint_entry *t, struct error *e);

/* Reads numbers first .. first + count - 1 of the tensor, in the order in which they lie, as
 * float32 (F32, F16, BF16 or F64, rounded to nearest, ties to even). STATUS_CONFIG naming the
 * tensor for any other type, for a number that is not a finite float32, or when the file cannot
 * be read. In an archive what lies before `first` is read, too, unless the last call for the tensor
 * stopped there: read a tensor from its front to its end. */
enum status checkpoint_read_floats(struct checkpoint *c, const struct checkpoint_entry *t,
                                   uint64_t first, size_t count, float *out, struct error *e);

/* Refuses a checkpoint of which a file was written to since it was opened: what was read of it may
 * be of two versions. STATUS_CONFIG with the reason. */
enum status checkpoint_check_unchanged(const struct checkpoint *c, struct error *e);

#endif
