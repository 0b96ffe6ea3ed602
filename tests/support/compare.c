/* compare: what the fast layer computed, beside its readable twin and beside itself. */
#include "tests/support/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/kernel/philox.h"
#include "core/reference/attention_ref.h"

static const double weight_bound = 2e-6, choice_bound = 4e-6;

static bool differs(struct error *e, const char *what, size_t at, double got, double right) {
  error_set(e, STATUS_SYSTEM, "%s %zu: %.9g, should be %.9g", what, at, got, right);
  return false;
}

void compute(const struct layer *l, struct call *first, double work) {
  const size_t bytes = (layer_scratch_bytes(l) + 64) / 64 * 64;
  void *scratch = aligned_alloc(64, bytes);
  must(scratch != NULL);
  memset(scratch, 0xff, bytes); /* NaN, where scratch is read before it is written */
  run_compute(&first->run, work, scratch);
  free(scratch);
}

/* --- what the twin says --- */

static struct ref_answer ask_twin(const struct random_layer *l, const struct call *c,
                                  const int32_t *chosen, struct arena *a, struct error *e) {
  const size_t heads = l->shape.heads;
  size_t weights = 0, segment_weights = 0;
  for (size_t i = 0; i < c->items; i++) {
    weights += heads * c->item[i].q * c->item[i].k;
    segment_weights += heads * c->item[i].q * c->item[i].segments;
  }
  const struct ref_answer answer = {
      .outputs = arena_alloc(a, c->q_rows * l->shape.output_size, sizeof(double), e),
      .weights = arena_alloc(a, weights, sizeof(double), e),
      .segment_weights = arena_alloc(a, segment_weights, sizeof(double), e),
      .pointers = arena_alloc(a, c->q_rows * heads, sizeof(int32_t), e),
      .chosen = chosen};
  if (e->status == STATUS_OK) attention_ref(&l->shape, l->matrix, c, &answer, e);
  return answer;
}

/* --- which keys were chosen --- */

/* The pointers that the call was asked for, or would have been; NULL where nothing hangs on them.
 */
static const int32_t *pointers_of(const struct random_layer *l, const struct call *c,
                                  struct arena *a, struct error *e) {
  if (c->want_pointers) return c->pointers;
  if (c->select == SELECT_SOFT) return NULL;
  struct call *again = call_again(c, a);
  again->want_pointers = true;
  if (layer_prepare(l->layer, again, a, e) != STATUS_OK) return NULL;
  compute(l->layer, again, 1e5);
  return same_bits(l, c, again, e) ? again->pointers : NULL;
}

static double number_drawn(const struct call *c, size_t item, size_t head, size_t i) {
  const uint32_t key[2] = {(uint32_t)c->seed, (uint32_t)(c->seed >> 32)};
  const uint32_t counter[4] = {(uint32_t)item, (uint32_t)head, (uint32_t)i, 0};
  return philox(key, counter).word[0] * 0x1p-32;
}

/* Is a key as good a choice as the weights of its row allow, within `bound`? */
static bool choice_is_right(const struct call *c, const double *weight, size_t k, int32_t chosen,
                            double u, double bound) {
  if (chosen < 0 || (size_t)chosen >= k || weight[chosen] == 0) return false;
  double top = 0, before = 0;
  for (size_t j = 0; j < k; j++) top = fmax(top, weight[j]);
  for (size_t j = 0; j < (size_t)chosen; j++) before += weight[j];
  if (c->select != SELECT_SAMPLE) return weight[chosen] >= top - bound;
  return before <= u + bound && before + weight[chosen] >= u - bound;
}

/* Checks the choices of all rows by the twin's soft weights: rounding may move these by `bound`. */
static bool choices_are_right(const struct random_layer *l, const struct call *c,
                              const struct ref_answer *soft, const int32_t *chosen, double bound,
                              struct error *e) {
  const double *weight = soft->weights;
  for (size_t item = 0, row = 0; item < c->items; item++) {
    const size_t k = c->item[item].k;
    for (size_t head = 0; head < l->shape.heads; head++)
      for (size_t i = 0; i < c->item[item].q; i++, row++, weight += k) {
        const double u = number_drawn(c, item, head, i);
        const bool right = soft->pointers[row] < 0
                               ? chosen[row] == -1
                               : choice_is_right(c, weight, k, chosen[row], u, bound);
        if (!right) return differs(e, "pointer", row, chosen[row], soft->pointers[row]);
      }
  }
  return true;
}

/* Those of the layer, and the twin's own. */
static bool all_choices_are_right(const struct random_layer *l, const struct call *c,
                                  const int32_t *chosen, struct arena *a, struct error *e) {
  struct call *whole = call_again(c, a), *soft = call_again(c, a);
  whole->want_pointers = soft->want_pointers = true; /* also of heads that count for nothing */
  soft->select = SELECT_SOFT;
  const struct ref_answer own = ask_twin(l, whole, NULL, a, e), by = ask_twin(l, soft, NULL, a, e);
  return e->status == STATUS_OK && choices_are_right(l, c, &by, own.pointers, 1e-12, e) &&
         choices_are_right(l, c, &by, chosen, choice_bound, e);
}

/* --- numbers --- */

static bool outputs_agree(const struct random_layer *l, const struct call *c, const double *right,
                          struct error *e) {
  const struct layer_shape *s = &l->shape;
  const double bound = 2e-6 * sqrt((double)(s->heads * s->value_head_size)) + 4e-6;
  for (size_t i = 0; i < c->q_rows * s->output_size; i++)
    if (!(fabs(c->outputs[i] - right[i]) <= bound * (1 + fabs(right[i]))))
      return differs(e, "output", i, c->outputs[i], right[i]);
  return true;
}

static bool weight_agrees(const char *what, size_t at, float got, double right, struct error *e) {
  return (fabs(got - right) <= weight_bound && (right != 0 || got == 0)) ||
         differs(e, what, at, got, right);
}

/* The weights that the call wants, from the twin's weights per head. */
static double wanted_weight(const struct random_layer *l, const struct call *c, size_t item,
                            const double *all, size_t at) {
  const size_t plane = c->item[item].q * c->item[item].k;
  double sum = 0;
  if (c->want == WEIGHTS_PER_HEAD) return all[at];
  for (size_t h = 0; h < l->shape.heads; h++) sum += all[h * plane + at];
  return sum / (double)l->shape.heads;
}

static bool weights_agree(const struct random_layer *l, const struct call *c, const double *right,
                          struct error *e) {
  for (size_t item = 0; item < c->items && c->want != WEIGHTS_NONE; item++) {
    const size_t plane = c->item[item].q * c->item[item].k;
    const size_t count = plane * (c->want == WEIGHTS_AVERAGE ? 1 : l->shape.heads);
    const size_t first = c->item[item].weights_at;
    for (size_t i = 0; i < count; i++)
      if (!weight_agrees("weight", first + i, c->weights[first + i],
                         wanted_weight(l, c, item, right, i), e))
        return false;
    right += plane * l->shape.heads;
  }
  return true;
}

static bool segment_weights_agree(const struct random_layer *l, const struct call *c,
                                  const double *right, struct error *e) {
  if (!c->segment_end || c->want != WEIGHTS_PER_HEAD) return true;
  for (size_t item = 0; item < c->items; item++) {
    const size_t count = l->shape.heads * c->item[item].q * c->item[item].segments;
    const size_t first = c->item[item].segment_weights_at;
    for (size_t i = 0; i < count; i++)
      if (!weight_agrees("segment weight", first + i, c->segment_weights[first + i], *right++, e))
        return false;
  }
  return true;
}

bool agrees_with_twin(const struct random_layer *l, const struct call *c, struct error *e) {
  struct arena a;
  arena_init(&a, NULL);
  bool agrees = run_fault(&c->run, e) == STATUS_OK;
  const int32_t *chosen = agrees ? pointers_of(l, c, &a, e) : NULL;
  agrees = e->status == STATUS_OK && (!chosen || all_choices_are_right(l, c, chosen, &a, e));
  if (agrees) {
    const struct ref_answer right = ask_twin(l, c, chosen, &a, e);
    agrees = e->status == STATUS_OK && outputs_agree(l, c, right.outputs, e) &&
             weights_agree(l, c, right.weights, e) &&
             segment_weights_agree(l, c, right.segment_weights, e);
  }
  arena_free(&a);
  return agrees;
}

/* --- bits --- */

static bool same(const char *what, const void *x, const void *y, size_t bytes, struct error *e) {
  if (bytes == 0 || memcmp(x, y, bytes) == 0) return true;
  error_set(e, STATUS_SYSTEM, "bits of the %s differ", what);
  return false;
}

bool same_bits(const struct random_layer *l, const struct call *x, const struct call *y,
               struct error *e) {
  const bool weights = x->want == y->want, pointers = x->want_pointers && y->want_pointers;
  return same("outputs", x->outputs, y->outputs,
              x->q_rows * l->shape.output_size * sizeof *x->outputs, e) &&
         same("weights", x->weights, y->weights, weights ? x->weight_count * sizeof *x->weights : 0,
              e) &&
         same("segment weights", x->segment_weights, y->segment_weights,
              weights ? x->segment_weight_count * sizeof *x->segment_weights : 0, e) &&
         same("pointers", x->pointers, y->pointers,
              pointers ? x->q_rows * l->shape.heads * sizeof *x->pointers : 0, e);
}
