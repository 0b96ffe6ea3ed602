/* sha256_portable: SHA-256 of four messages side by side, for any processor. */
#define LANES 4
#define LEVEL sha256_portable

#include "config/document/sha256_lanes.h"
