/* coretype: OpenBLAS takes some new processors for old ones. */
#include "server/service/coretype.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/kernel/gemm.h"

/* There is no log yet. */
static void warn(const char *core, const char *what, const char *right, const char *end) {
  fprintf(stderr,
          "level=warning msg=\"OpenBLAS took this processor for %s: %sOPENBLAS_CORETYPE=%s%s\"\n",
          core, what, right, end);
}

void coretype_correct(const struct config *c, char **argv) {
  const struct gemm_blas blas = gemm_blas();
  if (strcmp(c->gemm, "openblas") != 0 || !blas.better) return;
  if (getenv("OPENBLAS_CORETYPE")) {
    warn(blas.core, "", blas.better, " would be faster");
    return;
  }
  warn(blas.core, "starting again with ", blas.better, "");
  setenv("OPENBLAS_CORETYPE", blas.better, 1);
  execv("/proc/self/exe", argv);
  fprintf(stderr, "level=warning msg=\"cannot start again: %s\"\n", strerror(errno));
}
