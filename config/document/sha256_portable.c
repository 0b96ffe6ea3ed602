/* sha256_portable: SHA-256 of four messages side by side, for any x86-64. */
#if defined(__x86_64__)

#define LANES 4
#define LEVEL sha256_portable

#include "config/document/sha256_lanes.h"

#endif
