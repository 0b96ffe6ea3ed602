/* outcome: what remains of the logits of a row. */
#include "core/forward/outcome.h"

#include <float.h>
#include <math.h>

void stack_outcome_begin(struct stack_outcome *o) {
  *o = (struct stack_outcome){.most = -INFINITY};
}

static float greatest(const float *x, size_t count) {
  float most = x[0];
  for (size_t i = 1; i < count; i++) most = x[i] > most ? x[i] : most;
  return most;
}

static void add_sum(const struct kernel *k, struct stack_outcome *o, const float *logit,
                    size_t count, float *scratch) {
  const float most = greatest(logit, count);
  double sum = 0;
  for (size_t i = 0; i < count; i++) scratch[i] = logit[i] - most;
  k->exp(count, scratch, scratch);
  for (size_t i = 0; i < count; i++) sum += scratch[i];
  if (most > o->most) {
    o->sum = o->sum * exp((double)o->most - most) + sum;
    o->most = most;
  } else {
    o->sum += sum * exp((double)most - o->most);
  }
}

/* Keeps the likeliest, the first of equals before the others. */
static void list_tokens(struct stack_outcome *o, const struct stack_likely *likely,
                        const float *logit, size_t first, size_t count) {
  float *kept = likely->log;
  for (size_t i = 0; i < count; i++) {
    if (o->listed == likely->top && !(logit[i] > kept[likely->top - 1])) continue;
    size_t at = o->listed < likely->top ? o->listed++ : likely->top - 1;
    for (; at > 0 && logit[i] > kept[at - 1]; at--)
      kept[at] = kept[at - 1], likely->token[at] = likely->token[at - 1];
    kept[at] = logit[i], likely->token[at] = (int32_t)(first + i);
  }
}

void stack_outcome_add(const struct kernel *k, struct stack_outcome *o, const float *logit,
                       size_t first, size_t count, const struct stack_likely *likely,
                       float *scratch) {
  add_sum(k, o, logit, count, scratch);
  if (likely->top > 0) list_tokens(o, likely, logit, first, count);
}

double stack_outcome_end(const struct stack_outcome *o, const struct stack_likely *likely) {
  const double log_sum = o->most + log(o->sum);
  for (size_t i = 0; i < o->listed; i++) likely->log[i] = (float)(likely->log[i] - log_sum);
  return log_sum;
}

bool stack_outcome_is_finite(const struct stack_outcome *o, const struct stack_likely *likely,
                             double log_probability) {
  return log_probability >= -FLT_MAX && (o->listed == 0 || isfinite(likely->log[o->listed - 1]));
}
