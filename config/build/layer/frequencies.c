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

/* The base, to three digits, by the last number, which is the farthest from 1; 0 if the others do
 * not fit. */
static double guess_base(const float *numbers, size_t count) {
  char text[32];
  if (count < 2 || !(numbers[count - 1] > 0 && numbers[count - 1] < 1)) return 0;
  const double base = pow((double)numbers[count - 1], -(double)count / (double)(count - 1));
  snprintf(text, sizeof text, "%.3g", base);
  const double rounded = strtod(text, NULL);
  return rounded > 1 && rounded <= 1e12 && holds_base(numbers, count, rounded) ? rounded : 0;
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
    *other = *fits ? base : guess_base(numbers, count);
  }
  free(numbers);
  return e->status;
}
