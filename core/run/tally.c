/* tally: the sizes of batches. */
#include "core/run/tally.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/size.h"

struct tally *tally_new(size_t count) {
  size_t bytes;
  if (!size_mul(count, sizeof(struct tally), &bytes)) return NULL;
  struct tally *t = aligned_alloc(_Alignof(struct tally), bytes);
  if (t) memset(t, 0, bytes);
  return t;
}

void tally_free(struct tally *t) { free(t); }

/* With one writer, a load and a store are enough, and cheaper than a locked addition. */
static void add_to_counter(_Atomic uint64_t *to, uint64_t n) {
  const uint64_t was = atomic_load_explicit(to, memory_order_relaxed);
  atomic_store_explicit(to, was + n, memory_order_relaxed);
}

static void count_size(struct tally_counts *c, size_t size) {
  const size_t bits = size <= 1 ? 0 : 64 - (size_t)__builtin_clzll(size - 1);
  add_to_counter(&c->number[size_min(bits, TALLY_CLASSES - 1)], 1);
  add_to_counter(&c->sum, size);
}

void tally_batch(struct tally *t, size_t requests, size_t rows) {
  count_size(&t->requests, requests);
  count_size(&t->rows, rows);
}

static void add_counts(struct tally_sizes *sum, const struct tally_counts *c) {
  for (size_t i = 0; i < TALLY_CLASSES; i++)
    sum->number[i] += atomic_load_explicit(&c->number[i], memory_order_relaxed);
  sum->sum += atomic_load_explicit(&c->sum, memory_order_relaxed);
}

void tally_read(const struct tally *t, size_t n, struct tally_sum *sum) {
  *sum = (struct tally_sum){0};
  for (size_t i = 0; i < n; i++) {
    add_counts(&sum->requests, &t[i].requests);
    add_counts(&sum->rows, &t[i].rows);
  }
}
