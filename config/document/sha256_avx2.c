/* sha256_avx2: SHA-256 of eight messages side by side, for processors with AVX2. */
#if defined(__AVX2__)

#define LANES 8
#define LEVEL sha256_avx2

#include "config/document/sha256_lanes.h"

#endif
