/* random: weights from a seed. */
#include "config/model/random.h"

#include <math.h>

#include "core/kernel/philox.h"
#include "core/run/size.h"

static void fill_uniform(uint64_t seed, uint32_t role, uint32_t kind, double bound, size_t count,
                         float *out) {
  const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  for (uint64_t block = 0; 4 * block < count; block++) {
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), role, kind};
    struct philox_block four = philox(key, counter);
    size_t first = 4 * (size_t)block, n = size_min(4, count - first);
    for (size_t i = 0; i < n; i++) {
      double unit = (2.0 * four.word[i] + 1.0) * 0x1p-32 - 1.0;
      out[first + i] = (float)(bound * unit);
    }
  }
}

void random_weight(uint64_t seed, uint32_t role, size_t out, size_t in, float *weight) {
  fill_uniform(seed, role, 0, sqrt(6.0 / ((double)in + (double)out)), out * in, weight);
}

void random_bias(uint64_t seed, uint32_t role, size_t count, float *bias) {
  fill_uniform(seed, role, 1, 0.1, count, bias);
}
