/* checkpoint_torch: the rejection of a file that torch.save has written. */
#ifndef CONFIG_CHECKPOINT_TORCH_H
#define CONFIG_CHECKPOINT_TORCH_H

#include "core/base/status.h"

/* Rejects the file with STATUS_CONFIG: the detail ends with the command line that converts it to an
 * .npz archive, with the file's own name, quoted for a shell. A path that leaves no room for the
 * command is shown without its folder. */
enum status checkpoint_torch_refuse(const char *path, struct error *e);

#endif
