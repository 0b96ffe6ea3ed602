/* random: weights from a seed, the same on every machine.
 *
 * The numbers of a matrix are a stream of Philox words: key = the low and the high 32 bits of the
 * seed, counter = (low and high 32 bits of i / 4, role, 0 for the weight or 1 for the bias), word i
 * mod 4 for the number at index i, row-major. A word w becomes (2w + 1) / 2^32 - 1, which is exact
 * in double, lies between -1 and 1 and is never 0; this is multiplied by the bound and rounded to
 * float. */
#ifndef CONFIG_RANDOM_H
#define CONFIG_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* weight [out, in], uniform within sqrt(6 / (in + out)) of zero. `role` is an enum role of
 * core/attention/layer.h. */
void random_weight(uint64_t seed, uint32_t role, size_t out, size_t in, float *weight);

/* bias [count], uniform within 0.1 of zero. */
void random_bias(uint64_t seed, uint32_t role, size_t count, float *bias);

#endif
