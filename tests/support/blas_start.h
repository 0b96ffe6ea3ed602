/* blas_start: what a group of tests begins with that makes layers: a BLAS that starts no threads.
 */
#ifndef TESTS_BLAS_START_H
#define TESTS_BLAS_START_H

#include "core/kernel/gemm.h"

/* As cmocka's group set-up wants it. */
static inline int blas_start(void **state) {
  (void)state;
  gemm_blas_init();
  return 0;
}

#endif
