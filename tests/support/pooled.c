/* pooled: runs that a pool computes beside each other. */
#include "tests/support/pooled.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "tests/support/patience.h"

struct pooled {
  struct job job; /* the first member */
  atomic_int done;
};

static void count_done(struct job *job) { atomic_fetch_add(&((struct pooled *)job)->done, 1); }

void pooled_compute(size_t workers, size_t seats, size_t scratch_bytes, struct run *const *run,
                    size_t runs) {
  struct error e = {0};
  struct pooled *all = calloc(runs, sizeof *all);
  struct pool *p = pool_new(&(struct pool_options){.workers = workers,
                                                   .seats = seats,
                                                   .max_queue = runs,
                                                   .scratch_bytes = scratch_bytes,
                                                   .merge = true},
                            &e);
  assert_true(all && p);
  for (size_t i = 0; i < runs; i++) {
    all[i].job = (struct job){.run = run[i], .done = count_done};
    pool_submit(p, &all[i].job);
  }
  assert_true(pool_drain(p, clock_now() + PATIENCE_NS));
  pool_free(p);
  for (size_t i = 0; i < runs; i++) {
    assert_int_equal(atomic_load(&all[i].done), 1);
    assert_int_equal(all[i].job.error.status, STATUS_OK);
  }
  free(all);
}
