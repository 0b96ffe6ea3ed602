/* test_trial: layers are tried before they serve, but never with a serial OpenBLAS, which another
 * thread uses. Here it is serial: this program replaces the library's function that tells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config/build/trial.h"
#include "tests/support/blas_start.h"

int openblas_get_parallel(void);
int openblas_get_parallel(void) { return 0; }

/* A layer whose biases make the scores of zeros go beyond float32. */
static struct layer *make(enum gemm_engine engine, struct error *e) {
  static float weight[16], bias[] = {3e38f, 3e38f, 3e38f, 3e38f};
  struct parameters p = {.shape = {.heads = 1,
                                   .kv_heads = 1,
                                   .head_size = 4,
                                   .key_head_size = 4,
                                   .value_head_size = 4,
                                   .query_size = 4,
                                   .key_size = 4,
                                   .value_size = 4,
                                   .output_size = 4,
                                   .scale = 1}};
  for (enum role role = ROLE_QUERY; role <= ROLE_OUTPUT; role++)
    p.matrix[role] = (struct parameters_matrix){.out = 4, .in = 4, .weight = weight, .bias = bias};
  return trial_make(&p, engine, e);
}

static void what_answers_nothing_is_refused(void **state) {
  (void)state;
  struct error e = {0};
  assert_null(make(GEMM_PACKED, &e));
  assert_int_equal(e.status, STATUS_CONFIG);
  assert_non_null(strstr(e.detail, "the output for zeros is not finite"));
}

static void a_serial_openblas_is_not_entered(void **state) {
  (void)state;
  struct error e = {0};
  assert_false(gemm_blas().threadsafe);
  struct layer *l = make(GEMM_OPENBLAS, &e);
  assert_string_equal(e.detail, "");
  assert_non_null(l);
  assert_string_equal(layer_engine(l), "openblas");
  layer_free(l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_answers_nothing_is_refused),
      cmocka_unit_test(a_serial_openblas_is_not_entered),
  };
  return cmocka_run_group_tests(tests, blas_start, NULL);
}
