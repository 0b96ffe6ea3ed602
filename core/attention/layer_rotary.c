/* layer_rotary: the angles of rotary positions.
 *
 * Angles are computed in double: at positions up to 2^31 they are exact to 4e-7 in every pair. They
 * depend only on the position and, in some layers, on the item's number of keys, so a row's bits do
 * not depend on the rows computed with it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/attention/layer_parts.h"
#include "core/base/size.h"

/* The frequency of a pair after context extension (struct layer_stretch). */
static double stretched(const struct layer_stretch *s, double by) {
  const double turns = s->positions * by / (2 * M_PI);
  if (s->factor == 0 || s->trained > 0 || (s->positions > 0 && turns > s->high)) return by;
  if (s->positions == 0 || turns < s->low) return by / s->factor;
  const double stays = (turns - s->low) / (s->high - s->low);
  return (1 - stays) * by / s->factor + stays * by;
}

static void fill_frequencies(const struct layer_shape *s, double base, double *out) {
  for (size_t t = 0; t < s->head_size / 2; t++)
    out[t] = stretched(&s->rope_stretch, pow(base, -2.0 * (double)t / (double)s->head_size));
}

void rotary_make(struct layer *l, struct error *e) {
  const struct layer_shape *s = &l->shape;
  if (s->rope_base <= 0 || e->status) return;
  l->rotary = calloc(rotary_pairs(l), sizeof *l->rotary);
  if (!l->rotary) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a layer");
    return;
  }
  fill_frequencies(s, s->rope_base, l->rotary);
}

size_t rotary_length(const struct layer *l, size_t keys) {
  const size_t trained = l->shape.rope_stretch.trained;
  return trained > 0 && keys > trained ? keys : 0;
}

const double *rotary_frequencies(const struct layer *l, size_t length, double *room) {
  const struct layer_stretch *s = &l->shape.rope_stretch;
  const double d = (double)l->shape.head_size;
  if (length == 0) return l->rotary;
  memset(room, 0, rotary_pairs(l) * sizeof *room);
  const double factor = s->factor > 0 ? s->factor : 1;
  const double longer = factor * (double)length / (double)s->trained - (factor - 1);
  fill_frequencies(&l->shape, l->shape.rope_base * pow(longer, d / (d - 2)), room);
  return room;
}

void rotary_angles(const struct layer *l, const double *by, int64_t position, float *angle) {
  const size_t half = l->shape.head_size / 2;
  const double p = (double)position;
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
