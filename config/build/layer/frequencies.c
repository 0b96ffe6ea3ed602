/* frequencies: compares a table of frequencies with that of a base. */
#include "config/build/layer/frequencies.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Tolerances: tables may be stored as bfloat16, or as float16, whose smallest number is 6e-8. */
static const double coarse = 0.01, least = 6e-8;

static bool holds_base(const float *numbers, size_t count, double base) {
  for (size_t t = 0; t < count; t++) {
    const double right = pow(base, -(double)t / (double)count);
    if (fabs((double)numbers[t] - right) > coarse * right + least) return false;
  }
  return true;
}

enum status frequencies_compare(struct checkpoint *file, const struct checkpoint_entry *t,
                                size_t size, double base, bool *fits, double *other,
                                struct error *e) {
  const size_t count = size / 2;
  if (t->rank != 1 || t->count != count)
    return error_set(e, STATUS_CONFIG,
                     "tensor \"%.100s\": does not have the %zu frequencies of heads of %zu columns",
                     t->name, count, size);
  float *numbers = malloc((count ? count : 1) * sizeof *numbers);
  if (!numbers) return error_no_memory(e);
  if (checkpoint_read_floats(file, t, 0, count, numbers, e) == STATUS_OK) {
    *fits = holds_base(numbers, count, base);
    *other = *fits ? base : 0;
    /* A guess to three digits by the last number, the farthest from 1. */
    const double last = count < 2 ? 0 : (double)numbers[count - 1];
    if (!*fits && last > 0 && last < 1) {
      char text[32];
      snprintf(text, sizeof text, "%.3g", pow(last, -(double)count / (double)(count - 1)));
      const double guess = strtod(text, NULL);
      if (guess > 1 && guess <= 1e12 && holds_base(numbers, count, guess)) *other = guess;
    }
  }
  free(numbers);
  return e->status;
}
