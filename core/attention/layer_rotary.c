/* layer_rotary: the angles of rotary positions.
 *
 * Angles are computed in double: at positions up to 2^31 they are exact to 4e-7 in every pair. They
 * depend only on the position, so a row's bits do not depend on the rows computed with it. */
#include <math.h>
#include <stdlib.h>

#include "core/attention/layer_parts.h"
#include "core/base/size.h"

/* The frequency of a pair after context extension (struct layer_stretch). */
static double stretched(const struct layer_stretch *s, double by) {
  const double turns = s->positions * by / (2 * M_PI);
  if (s->factor == 0 || (s->positions > 0 && turns > s->high)) return by;
  if (s->positions == 0 || turns < s->low) return by / s->factor;
  const double stays = (turns - s->low) / (s->high - s->low);
  return (1 - stays) * by / s->factor + stays * by;
}

void rotary_make(struct layer *l, struct error *e) {
  const struct layer_shape *s = &l->shape;
  const size_t half = s->head_size / 2;
  if (s->rope_base <= 0 || e->status) return;
  l->rotary = calloc(size_round_up(half, KERNEL_LANES_MAX) + 1, sizeof *l->rotary);
  if (!l->rotary) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a layer");
    return;
  }
  for (size_t t = 0; t < half; t++)
    l->rotary[t] =
        stretched(&s->rope_stretch, pow(s->rope_base, -2.0 * (double)t / (double)s->head_size));
}

void rotary_angles(const struct layer *l, int64_t position, float *angle) {
  const size_t half = l->shape.head_size / 2;
  const double p = (double)position, *by = l->rotary;
  if (half == 0) return;
  /* Frequencies rise or fall from pair to pair: the greatest is the first or the last. */
  if (fmax(by[0], by[half - 1]) * fabs(p) <= KERNEL_ANGLE_MAX) {
    l->kernel->angles(p, half, by, angle);
    return;
  }
  for (size_t t = 0; t < half; t++) {
    angle[t] = (float)cos(p * by[t]);
    angle[half + t] = (float)sin(p * by[t]);
  }
}
