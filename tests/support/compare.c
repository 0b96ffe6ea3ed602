/* compare: what the fast layer computed, beside its readable twin and beside itself. */
#include "tests/support/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/attention/trace.h"
#include "core/kernel/philox.h"
#include "core/reference/attention_ref.h"

static const double weight_bound = 2e-6, choice_bound = 4e-6;

static bool differs(struct error *e, const char *what, size_t at, double got, double right) {
  error_set(e, STATUS_SYSTEM, "%s %zu: %.9g, should be %.9g", what, at, got, right);
  return false;
}

void compute(const struct layer *l, struct layer_run *first, double work) {
  const size_t bytes = (layer_scratch_bytes(l) + 64) / 64 * 64;
  void *scratch = aligned_alloc(64, bytes);
  must(scratch != NULL);
  memset(scratch, 0xff, bytes); /* NaN, where scratch is read before it is written */
  run_compute(&first->run, work, scratch);
  free(scratch);
}

/* --- what the twin says --- */

static struct ref_answer ask_twin(const struct random_layer *l, const struct layer_run *c,
                                  const int32_t *chosen, struct arena *a, struct error *e) {
  const size_t heads = l->shape.heads;
  size_t weights = 0, segment_weights = 0;
  for (size_t i = 0; i < c->geometry.items; i++) {
    weights += heads * c->geometry.item[i].q * c->geometry.item[i].k;
    segment_weights += heads * c->geometry.item[i].q * c->geometry.item[i].segments;
  }
  const struct ref_answer answer = {
      .outputs = arena_alloc(a, c->geometry.q_rows * l->shape.output_size, sizeof(double), e),
      .weights = arena_alloc(a, weights, sizeof(double), e),
      .segment_weights = arena_alloc(a, segment_weights, sizeof(double), e),
      .pointers = arena_alloc(a, c->geometry.q_rows * heads, sizeof(int32_t), e),
      .chosen = chosen};
  if (e->status == STATUS_OK) attention_ref(&l->shape, l->matrix, &c->call, &answer, e);
  return answer;
}

/* --- which keys were chosen --- */

/* The pointers that the call was asked for, or would have been; NULL where nothing hangs on them.
 */
static const int32_t *pointers_of(const struct random_layer *l, const struct layer_run *c,
                                  struct arena *a, struct error *e) {
  if (c->call.want_pointers) return c->call.pointers;
  if (c->call.select == SELECT_SOFT) return NULL;
  struct layer_run *again = call_again(c, a);
  again->call.want_pointers = true;
  if (layer_prepare(l->layer, again, a, e) != STATUS_OK) return NULL;
  compute(l->layer, again, 1e5);
  return same_bits(l, c, again, e) ? again->call.pointers : NULL;
}

static double number_drawn(const struct layer_run *c, size_t item, size_t head, size_t i) {
  const uint32_t key[2] = {(uint32_t)c->call.seed, (uint32_t)(c->call.seed >> 32)};
  const uint32_t counter[4] = {(uint32_t)item, (uint32_t)head, (uint32_t)i, 0};
  return philox(key, counter).word[0] * 0x1p-32;
}

/* Is a key as good a choice as the weights of its row allow, within `bound`? */
static bool choice_is_right(const struct layer_run *c, const double *weight, size_t k,
                            int32_t chosen, double u, double bound) {
  if (chosen < 0 || (size_t)chosen >= k || weight[chosen] == 0) return false;
  double top = 0, before = 0;
  for (size_t j = 0; j < k; j++) top = fmax(top, weight[j]);
  for (size_t j = 0; j < (size_t)chosen; j++) before += weight[j];
  if (c->call.select != SELECT_SAMPLE) return weight[chosen] >= top - bound;
  return before <= u + bound && before + weight[chosen] >= u - bound;
}

/* Checks the choices of all rows by the twin's soft weights: rounding may move these by `bound`. */
static bool choices_are_right(const struct random_layer *l, const struct layer_run *c,
                              const struct ref_answer *soft, const int32_t *chosen, double bound,
                              struct error *e) {
  const double *weight = soft->weights;
  for (size_t item = 0, row = 0; item < c->geometry.items; item++) {
    const size_t k = c->geometry.item[item].k;
    for (size_t head = 0; head < l->shape.heads; head++)
      for (size_t i = 0; i < c->geometry.item[item].q; i++, row++, weight += k) {
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
static bool all_choices_are_right(const struct random_layer *l, const struct layer_run *c,
                                  const int32_t *chosen, struct arena *a, struct error *e) {
  struct layer_run *whole = call_again(c, a), *soft = call_again(c, a);
  whole->call.want_pointers = soft->call.want_pointers =
      true; /* also of heads that count for nothing */
  soft->call.select = SELECT_SOFT;
  const struct ref_answer own = ask_twin(l, whole, NULL, a, e), by = ask_twin(l, soft, NULL, a, e);
  return e->status == STATUS_OK && choices_are_right(l, c, &by, own.pointers, 1e-12, e) &&
         choices_are_right(l, c, &by, chosen, choice_bound, e);
}

/* --- numbers --- */

static bool outputs_agree(const struct random_layer *l, const struct layer_run *c,
                          const double *right, struct error *e) {
  const struct layer_shape *s = &l->shape;
  const double bound = 2e-6 * sqrt((double)(s->heads * s->value_head_size)) + 4e-6;
  for (size_t i = 0; i < c->geometry.q_rows * s->output_size; i++)
    if (!(fabs(c->call.outputs[i] - right[i]) <= bound * (1 + fabs(right[i]))))
      return differs(e, "output", i, c->call.outputs[i], right[i]);
  return true;
}

static bool weight_agrees(const char *what, size_t at, float got, double right, struct error *e) {
  return (fabs(got - right) <= weight_bound && (right != 0 || got == 0)) ||
         differs(e, what, at, got, right);
}

/* The weights that the call wants, from the twin's weights per head. */
static double wanted_weight(const struct random_layer *l, const struct layer_run *c, size_t item,
                            const double *all, size_t at) {
  const size_t plane = c->geometry.item[item].q * c->geometry.item[item].k;
  double sum = 0;
  if (c->call.want == WEIGHTS_PER_HEAD) return all[at];
  for (size_t h = 0; h < l->shape.heads; h++) sum += all[h * plane + at];
  return sum / (double)l->shape.heads;
}

static bool weights_agree(const struct random_layer *l, const struct layer_run *c,
                          const double *right, struct error *e) {
  for (size_t item = 0; item < c->geometry.items && c->call.want != WEIGHTS_NONE; item++) {
    const size_t plane = c->geometry.item[item].q * c->geometry.item[item].k;
    const size_t count = plane * (c->call.want == WEIGHTS_AVERAGE ? 1 : l->shape.heads);
    const size_t first = c->call.weights_at[item];
    for (size_t i = 0; i < count; i++)
      if (!weight_agrees("weight", first + i, c->call.weights[first + i],
                         wanted_weight(l, c, item, right, i), e))
        return false;
    right += plane * l->shape.heads;
  }
  return true;
}

static bool segment_weights_agree(const struct random_layer *l, const struct layer_run *c,
                                  const double *right, struct error *e) {
  if (!c->geometry.segment_end || c->call.want != WEIGHTS_PER_HEAD) return true;
  for (size_t item = 0; item < c->geometry.items; item++) {
    const size_t count =
        l->shape.heads * c->geometry.item[item].q * c->geometry.item[item].segments;
    const size_t first = c->call.segment_weights_at[item];
    for (size_t i = 0; i < count; i++)
      if (!weight_agrees("segment weight", first + i, c->call.segment_weights[first + i], *right++,
                         e))
        return false;
  }
  return true;
}

bool agrees_with_twin(const struct random_layer *l, const struct layer_run *c, struct error *e) {
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

static bool same_numbers(const char *what, const float *x, const float *y, size_t count,
                         struct error *e) {
  return same(what, x, y, count * sizeof *x, e);
}

bool same_trace(const struct trace *x, const struct trace *y, struct error *e) {
  const size_t keys = x->keys == y->keys ? x->keys : 0;
  return same("trace's keys", &x->keys, &y->keys, sizeof x->keys, e) &&
         same("keys traced as seen", x->seen, y->seen, keys, e) &&
         same_numbers("query traced", x->query, y->query, x->size, e) &&
         same_numbers("keys traced", x->key, y->key, keys * x->size, e) &&
         same_numbers("values traced", x->value, y->value, keys * x->value_size, e) &&
         same_numbers("products", x->product, y->product, keys, e) &&
         same_numbers("scores", x->score, y->score, keys, e) &&
         same_numbers("weights traced", x->weight, y->weight, keys, e) &&
         same_numbers("context traced", x->context, y->context, x->value_size, e);
}

bool same_bits(const struct random_layer *l, const struct layer_run *x, const struct layer_run *y,
               struct error *e) {
  const bool weights = x->call.want == y->call.want,
             pointers = x->call.want_pointers && y->call.want_pointers;
  return same("outputs", x->call.outputs, y->call.outputs,
              x->geometry.q_rows * l->shape.output_size * sizeof *x->call.outputs, e) &&
         same("weights", x->call.weights, y->call.weights,
              weights ? x->call.weight_count * sizeof *x->call.weights : 0, e) &&
         same("segment weights", x->call.segment_weights, y->call.segment_weights,
              weights ? x->call.segment_weight_count * sizeof *x->call.segment_weights : 0, e) &&
         same("pointers", x->call.pointers, y->call.pointers,
              pointers ? x->geometry.q_rows * l->shape.heads * sizeof *x->call.pointers : 0, e) &&
         (!x->call.trace || !y->call.trace || same_trace(x->call.trace, y->call.trace, e));
}

/* Of [planes, q, size] those of some queries, against [planes, count, size]. */
static bool same_rows(const char *what, const struct item *whole, size_t first,
                      const struct item *part, size_t planes, const void *all, const void *some,
                      size_t size, struct error *e) {
  for (size_t p = 0; p < planes; p++)
    if (!same(what, (const char *)all + (p * whole->q + first) * size,
              (const char *)some + p * part->q * size, part->q * size, e))
      return false;
  return true;
}

bool same_bits_of_rows(const struct random_layer *l, const struct layer_run *whole, size_t item,
                       size_t first, const struct layer_run *part, struct error *e) {
  const struct item *all = &whole->geometry.item[item], *some = part->geometry.item;
  const size_t heads = l->shape.heads, planes = whole->call.want == WEIGHTS_AVERAGE ? 1 : heads;
  const bool weights = whole->call.want != WEIGHTS_NONE && whole->call.want == part->call.want;
  return same_rows("outputs", all, first, some, 1,
                   whole->call.outputs + all->q_row * l->shape.output_size, part->call.outputs,
                   l->shape.output_size * sizeof *part->call.outputs, e) &&
         (!weights || same_rows("weights", all, first, some, planes,
                                whole->call.weights + whole->call.weights_at[item],
                                part->call.weights, all->k * sizeof *part->call.weights, e)) &&
         (!weights || !part->call.segment_weights ||
          same_rows("segment weights", all, first, some, heads,
                    whole->call.segment_weights + whole->call.segment_weights_at[item],
                    part->call.segment_weights, all->segments * sizeof *part->call.segment_weights,
                    e)) &&
         (!whole->call.want_pointers || !part->call.want_pointers ||
          same_rows("pointers", all, first, some, heads, whole->call.pointers + heads * all->q_row,
                    part->call.pointers, sizeof *part->call.pointers, e));
}
