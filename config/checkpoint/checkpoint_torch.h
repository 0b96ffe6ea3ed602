/* checkpoint_torch: what to do with a file that torch.save has written. */
#ifndef CONFIG_CHECKPOINT_TORCH_H
#define CONFIG_CHECKPOINT_TORCH_H

#include "core/base/status.h"

/* Refuses the file with STATUS_CONFIG: the detail ends with the command line that makes an .npz
 * archive of it, with the file's own name, quoted for a shell. A path that would not leave room for
 * the command is shown without its folder. */
enum status checkpoint_torch_refuse(const char *path, struct error *e);

#endif
