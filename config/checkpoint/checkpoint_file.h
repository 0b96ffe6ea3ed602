/* checkpoint_file: one file of a checkpoint, whichever container it is; what is in it decides. */
#ifndef CONFIG_CHECKPOINT_FILE_H
#define CONFIG_CHECKPOINT_FILE_H

#include "config/checkpoint/checkpoint.h"

struct checkpoint_file;

/* NULL with STATUS_CONFIG and the reason, to which the caller adds which file it is, or
 * STATUS_OUT_OF_MEMORY. */
struct checkpoint_file *checkpoint_file_open(const char *path, struct error *e);
void checkpoint_file_free(struct checkpoint_file *f);

bool checkpoint_file_is_archive(const struct checkpoint_file *f);
size_t checkpoint_file_count(const struct checkpoint_file *f);

/* Its name and type remain the file's. */
struct checkpoint_entry checkpoint_file_entry(const struct checkpoint_file *f, size_t index);

/* Reads bytes `from` .. `from + size - 1` of a tensor. The reason alone, as above. */
enum status checkpoint_file_read(struct checkpoint_file *f, const struct checkpoint_entry *t,
                                 uint64_t from, void *out, size_t size, struct error *e);

/* Refuses a file that was written to since it was opened. */
enum status checkpoint_file_check_unchanged(const struct checkpoint_file *f, struct error *e);

#endif
