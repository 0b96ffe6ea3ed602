/* bytes_portable: products of bytes for any processor. */
#define BYTES         bytes_portable
#define LANES         4
#define VECTORS       2
#define BLOCK_VECTORS 2

#include "core/kernel/bytes/bytes_loops.h"
