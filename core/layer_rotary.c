/* layer_rotary: by how much a position turns the heads of queries and keys.
 *
 * Angles are made in double: at positions up to 2^31 they are right to 4e-7, whatever the pair.
 * Nothing but the position enters into them, so a row's bits do not depend on what is computed
 * beside it. */
#include <math.h>
#include <stdlib.h>

#include "core/layer_parts.h"

void rotary_make(struct layer *l, struct error *e) {
  const struct layer_shape *s = &l->shape;
  const size_t half = s->head_size / 2;
  if (s->rope_base <= 0 || e->status) return;
  l->rotary = malloc(half * sizeof *l->rotary + 1);
  if (!l->rotary) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a layer");
    return;
  }
  for (size_t t = 0; t < half; t++)
    l->rotary[t] = pow(s->rope_base, -2.0 * (double)t / (double)s->head_size);
}

void rotary_angles(const struct layer *l, int64_t p, float *angle) {
  const size_t half = l->shape.head_size / 2;
  for (size_t t = 0; t < half; t++) {
    double sine, cosine;
    sincos((double)p * l->rotary[t], &sine, &cosine);
    angle[t] = (float)cosine;
    angle[half + t] = (float)sine;
  }
}
