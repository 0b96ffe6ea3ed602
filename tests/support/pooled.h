/* pooled: runs that a pool computes beside each other. For test programs alone: it needs cmocka. */
#ifndef TESTS_POOLED_H
#define TESTS_POOLED_H

#include "core/run/pool.h"

/* Computes prepared runs, submitted one behind the other, by a pool that merges them. Fails the
 * test where one is not done once, or is at fault. With seats, tiny runs are computed by the thread
 * that submits them. */
void pooled_compute(size_t workers, size_t seats, size_t scratch_bytes, struct run *const *run,
                    size_t runs);

#endif
