/* sgemm: the yardstick of products: cblas_sgemm of 2048^3, by OpenBLAS's kernels for this level. */
#ifndef TESTS_SGEMM_H
#define TESTS_SGEMM_H

/* OpenBLAS can be told its kernels only before main: where it has taken others than are right for
 * the processor, or for ATTEND_CPU=avx2 (Haswell's), starts the program again, once. */
void sgemm_correct_kernels(char **argv);

/* One product, on as many threads as OpenBLAS has been told. The context is not looked at. */
void sgemm_multiply(void *context);

/* Operations per nanosecond where a product takes so many nanoseconds. */
double sgemm_rate(double time);

#endif
