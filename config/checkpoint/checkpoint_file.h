/* checkpoint_file: one file of a checkpoint: a safetensors file, an .npz archive or a PyTorch file;
 * or the bytes of a safetensors file in memory. */
#ifndef CONFIG_CHECKPOINT_FILE_H
#define CONFIG_CHECKPOINT_FILE_H

#include "config/checkpoint/checkpoint.h"

struct checkpoint_file;

/* NULL with STATUS_OUT_OF_MEMORY, or with STATUS_CONFIG and the reason, before which the caller
 * puts the file's name. For a known format that is no checkpoint, the reason names it and what to
 * do. */
struct checkpoint_file *checkpoint_file_open(const char *path, struct error *e);

/* The same for a safetensors file in memory, which is borrowed. */
struct checkpoint_file *checkpoint_file_view(const void *bytes, size_t size, struct error *e);
void checkpoint_file_free(struct checkpoint_file *f);

/* The kind of file in words: "a safetensors file". */
const char *checkpoint_file_container(const struct checkpoint_file *f);

/* May several threads read any numbers at the same time? */
bool checkpoint_file_reads_anywhere(const struct checkpoint_file *f);

size_t checkpoint_file_count(const struct checkpoint_file *f);

/* Describes a tensor; its name and type stay owned by the file. */
struct checkpoint_entry checkpoint_file_entry(const struct checkpoint_file *f, size_t index);

/* Reads bytes `from` .. `from + size - 1` of a tensor. Failures as above. */
enum status checkpoint_file_read(struct checkpoint_file *f, const struct checkpoint_entry *t,
                                 uint64_t from, void *out, size_t size, struct error *e);

/* Rejects a file that was written to since it was opened. */
enum status checkpoint_file_check_unchanged(const struct checkpoint_file *f, struct error *e);

#endif
