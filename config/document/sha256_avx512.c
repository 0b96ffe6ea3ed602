/* sha256_avx512: SHA-256 of sixteen messages side by side, for processors with AVX-512, whose
 * rotations and functions of three bits take one instruction each. */
#if defined(__AVX512F__)

#define LANES 16
#define LEVEL sha256_avx512

#include "config/document/sha256_lanes.h"

#endif
