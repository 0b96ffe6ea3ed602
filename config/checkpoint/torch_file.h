/* torch_file: the tensors of a file that torch.save has written since PyTorch 1.6: a zip archive
 * whose member data.pkl describes them and whose other members, data/0 and so on, are the storages
 * that hold their numbers.
 *
 * Opening reads the description and checks that each tensor is within its storage; nothing in the
 * pickle is executed. A tensor is a view of a storage: an offset, sizes and strides. */
#ifndef CONFIG_TORCH_FILE_H
#define CONFIG_TORCH_FILE_H

#include "config/checkpoint/archive.h"
#include "config/checkpoint/safetensors.h"

struct torch_tensor {
  const char *name;  /* owned by the file */
  const char *dtype; /* name in safetensors */
  size_t rank;
  uint64_t dim[SAFETENSORS_RANK_MAX];
  uint64_t count; /* product of the dimensions; 1 for rank 0 */
  uint64_t bytes; /* of its numbers, one after the other */
};

struct torch_file;

/* Has the archive the member in which torch.save describes its tensors? False with `e` set if it
 * cannot be read. */
bool torch_file_is(struct archive *archive, struct error *e);

/* Reads the descriptions of the tensors of an archive of `size` bytes, which is needed no longer;
 * the file stays open. NULL with STATUS_CONFIG and the reason, or STATUS_OUT_OF_MEMORY. */
struct torch_file *torch_file_open(struct archive *archive, int fd, uint64_t size, struct error *e);
void torch_file_free(struct torch_file *f);

size_t torch_file_count(const struct torch_file *f);
const struct torch_tensor *torch_file_at(const struct torch_file *f, size_t index);

/* May several threads read any numbers at the same time? Not if one of the tensors is a view whose
 * numbers do not follow each other: these are gathered from a copy of a storage. */
bool torch_file_reads_anywhere(const struct torch_file *f);

/* Reads `size` bytes of the tensor's numbers, from byte `from` on, both multiples of the size of a
 * number. STATUS_CONFIG with the reason, or STATUS_OUT_OF_MEMORY. */
enum status torch_file_read(struct torch_file *f, size_t index, uint64_t from, void *out,
                            size_t size, struct error *e);

#endif
