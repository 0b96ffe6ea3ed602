/* random: weights from a seed. */
#include "config/build/layer/random.h"

#include <math.h>

#include "core/base/size.h"
#include "core/base/team.h"
#include "core/kernel/philox.h"

/* A stream of random numbers. */
struct random_stream {
  uint64_t seed;
  uint32_t role, kind;
  double bound;
  size_t count;
  float *out;
};

enum { PIECE = 64 * 1024 }; /* numbers that one thread makes at a time, a multiple of 4 */

static enum status fill_piece(void *of, size_t index, struct error *e) {
  const struct random_stream *s = of;
  const uint32_t key[2] = {(uint32_t)s->seed, (uint32_t)(s->seed >> 32)};
  const size_t from = index * PIECE, end = size_min(s->count, from + PIECE);
  for (uint64_t block = from / 4; 4 * block < end; block++) {
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), s->role, s->kind};
    struct philox_block four = philox(key, counter);
    size_t first = 4 * (size_t)block, n = size_min(4, end - first);
    for (size_t i = 0; i < n; i++) {
      double unit = (2.0 * four.word[i] + 1.0) * 0x1p-32 - 1.0;
      s->out[first + i] = (float)(s->bound * unit);
    }
  }
  return e->status;
}

/* A team makes the pieces together (core/base/team.h). */
static void fill_uniform(uint64_t seed, uint32_t role, uint32_t kind, double bound, size_t count,
                         float *out) {
  struct random_stream s = {seed, role, kind, bound, count, out};
  struct error none = {0};
  team_split((count + PIECE - 1) / PIECE, fill_piece, &s, &none);
}

void random_weight(uint64_t seed, uint32_t role, size_t out, size_t in, float *weight) {
  fill_uniform(seed, role, 0, sqrt(6.0 / ((double)in + (double)out)), out * in, weight);
}

void random_bias(uint64_t seed, uint32_t role, size_t count, float *bias) {
  fill_uniform(seed, role, 1, 0.1, count, bias);
}
