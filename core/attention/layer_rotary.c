/* layer_rotary: by how much a position turns the heads of queries and keys.
 *
 * Angles are made in double: at positions up to 2^31 they are right to 4e-7 in every pair. They
 * depend on the position alone, so a row's bits do not depend on the rows computed beside it. */
#include <math.h>
#include <stdlib.h>

#include "core/attention/layer_parts.h"
#include "core/base/size.h"

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

/* For positions so far away that the kernel does not make their angles. */
static void find_far_angles(double p, size_t half, const double *by, float *angle) {
  for (size_t t = 0; t < half; t++) {
    angle[t] = (float)cos(p * by[t]);
    angle[half + t] = (float)sin(p * by[t]);
  }
}

void rotary_angles(const struct layer *l, int64_t p, float *angle) {
  const size_t half = l->shape.head_size / 2;
  if (half == 0) return;
  /* Frequencies rise or fall from pair to pair: one of the ends is the greatest. */
  const double most = fmax(l->rotary[0], l->rotary[half - 1]) * fabs((double)p);
  if (most <= KERNEL_ANGLE_MAX)
    l->kernel->angles((double)p, half, l->rotary, angle);
  else
    find_far_angles((double)p, half, l->rotary, angle);
}
