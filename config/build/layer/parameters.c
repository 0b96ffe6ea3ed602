/* parameters: reads the numbers of a layer, or makes them at random. */
#include "config/build/layer/parameters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/build/layer/frequencies.h"
#include "config/build/layer/layout.h"
#include "config/build/layer/layout_doubt.h"
#include "config/build/layer/random.h"
#include "config/build/layer/sizes.h"
#include "config/document/text.h"
#include "core/base/size.h"

static float *numbers_new(size_t out, size_t in, struct error *e) {
  size_t count, bytes;
  float *numbers = NULL;
  if (size_mul(out, in, &count) && size_mul(count, sizeof *numbers, &bytes))
    numbers = malloc(bytes);
  if (!numbers)
    error_set(e, STATUS_OUT_OF_MEMORY, "out of memory for %zu times %zu numbers", out, in);
  return numbers;
}

static enum status fill_matrices(struct parameters *p, const struct definition *d,
                                 const struct layout_matrix found[ROLE_COUNT],
                                 struct checkpoint *file, struct error *e) {
  for (enum role role = 0; role < ROLE_COUNT; role++) {
    struct parameters_matrix *m = &p->matrix[role];
    if (!definition_has(d, role)) continue;
    const struct layout_matrix *from = &found[role];
    const bool biased =
        from->found ? from->has_bias : d->bias == TOGGLE_ON && role < ROLE_PROJECTIONS;
    if (!(m->weight = numbers_new(m->out, m->in, e))) return e->status;
    if (!from->found)
      random_weight(d->seed, role, m->out, m->in, m->weight);
    else if (layout_matrix_read(file, &from->weight, from->transposed, m->weight, e))
      return e->status;
    if (!biased) continue;
    if (!(m->bias = numbers_new(m->out, 1, e))) return e->status;
    if (!from->found)
      random_bias(d->seed, role, m->out, m->bias);
    else if (layout_matrix_read(file, &from->bias, false, m->bias, e))
      return e->status;
  }
  if (d->bias == TOGGLE_ON && !parameters_have_bias(p))
    return error_set(e, STATUS_CONFIG, "bias: true, but there is none");
  if (d->bias == TOGGLE_OFF && parameters_have_bias(p))
    return error_set(e, STATUS_CONFIG, "bias: false, but the checkpoint has biases");
  return STATUS_OK;
}

/* Finds the tensors and the sizes; *settled becomes the completed definition. */
static enum status measure_layer(struct parameters *p, const struct definition *said,
                                 struct definition *settled, struct layout *l,
                                 const struct checkpoint *file, struct error *e) {
  *p = (struct parameters){0};
  *settled = *said;
  if (layout_find(l, file, settled, e) || sizes_find(p, settled, l->matrix, e)) {
    if (l->hinted) text_before(e, "config.json says %zu heads: ", settled->heads);
    return e->status;
  }
  layout_doubt(l, file, said, &p->notes);
  p->layout = l->name;
  p->family = l->place.family;
  memcpy(p->address, l->place.address, sizeof p->address);
  p->numbered = l->place.numbered;
  p->layer = l->place.layer;
  p->frequencies = l->frequencies;
  p->causal = settled->causal == TOGGLE_ON;
  p->hinted = l->hinted;
  for (enum role role = 0; role < ROLE_COUNT; role++)
    if (definition_has(settled, role))
      p->weights += (uint64_t)p->matrix[role].out * p->matrix[role].in;
  return STATUS_OK;
}

/* Compares the base of rope with the checkpoint's frequencies. `d` is the definition as written:
 * its own base is used, with a note if the frequencies differ. */
static enum status check_rope_base(struct parameters *p, const struct definition *d,
                                   struct checkpoint *file, struct error *e) {
  const double base = p->shape.rope_base;
  bool fits;
  double other;
  char those[64] = "no base's";
  if (!p->frequencies || !(base > 0)) return STATUS_OK;
  if (frequencies_compare(file, p->frequencies, p->shape.head_size, base, &fits, &other, e) || fits)
    return e->status;
  if (other > 0) snprintf(those, sizeof those, "those of base %.0f", other);
  if (d->rope_base > 0) {
    notes_add(&p->notes, "tensor \"%.100s\" holds %s, not those of rope's base %.0f",
              p->frequencies->name, those, base);
    return STATUS_OK;
  }
  return error_set(e, STATUS_CONFIG,
                   "rope: base required: tensor \"%.100s\" holds %s, not those of base %.0f",
                   p->frequencies->name, those, base);
}

enum status parameters_measure(struct parameters *p, const struct definition *d,
                               const struct checkpoint *file, struct error *e) {
  struct definition settled;
  struct layout l;
  if (measure_layer(p, d, &settled, &l, file, e)) parameters_free(p);
  return e->status;
}

enum status parameters_read(struct parameters *p, const struct definition *d,
                            struct checkpoint *file, struct error *e) {
  struct definition settled;
  struct layout l;
  if (measure_layer(p, d, &settled, &l, file, e) || check_rope_base(p, d, file, e) ||
      fill_matrices(p, &settled, l.matrix, file, e) ||
      (file && checkpoint_check_unchanged(file, e)))
    parameters_free(p);
  return e->status;
}

void parameters_free(struct parameters *p) {
  for (enum role role = 0; role < ROLE_COUNT; role++) {
    free(p->matrix[role].weight);
    free(p->matrix[role].bias);
  }
  *p = (struct parameters){0};
}

bool parameters_have_bias(const struct parameters *p) {
  for (enum role role = 0; role < ROLE_COUNT; role++)
    if (p->matrix[role].bias) return true;
  return false;
}
