/* checkpoint_other: what was named in place of a checkpoint, in words that say what to do. */
#ifndef CONFIG_CHECKPOINT_OTHER_H
#define CONFIG_CHECKPOINT_OTHER_H

#include <stddef.h>

#include "core/run/status.h"

enum { CHECKPOINT_OTHER_BYTES = 64 }; /* of a file's first, as far as they are looked at */

/* Of a file whose first bytes are no length of a header, and no archive's: puts what its first
 * bytes look like in place of the reason that `e` holds, if they are known. */
enum status checkpoint_other_file(const void *bytes, size_t size, struct error *e);

/* If the path is a folder, adds to the reason that `e` holds which file in it could be meant. */
enum status checkpoint_other_folder(const char *path, struct error *e);

#endif
