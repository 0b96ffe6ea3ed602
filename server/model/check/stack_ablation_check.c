/* stack_ablation_check: which heads of a whole model are measured, and how much work that is. */
#include "server/model/check/stack_ablation_check.h"

#include "core/base/size.h"

static void take_all(struct stack_side *s) {
  for (size_t i = 0; s->stack && i < stack_form_attentions(s->form); i++)
    s->wish[i].ablation = true;
}

void stack_ablation_take(struct stack_check *k) {
  struct stack_request *out = k->out;
  out->weighs = true;
  out->stream = k->values->stream;
  if (stack_field_is_seen(k->reading, STACK_FIELD_ATTENTIONS)) return;
  take_all(&out->main);
  take_all(&out->source);
}

/* Of the rounds without the heads of a side, whose pairs in all its layers are `own`. Whatever they
 * are, in each of them `beside` are met elsewhere. */
static bool add_side(const struct stack_side *s, size_t own, size_t beside, size_t *pairs) {
  for (size_t i = 0; s->stack && i < stack_form_attentions(s->form); i++) {
    const size_t layers = s->form->layers, left = layers - stack_side_layer(s, i);
    size_t round;
    if (!s->wish[i].ablation) continue;
    if (!size_add(own / layers * left, beside, &round) ||
        !size_mul(round, stack_side_shape(s, i)->heads, &round) || !size_add(*pairs, round, pairs))
      return false;
  }
  return true;
}

bool stack_ablation_pairs(const struct stack_check *k, size_t source, size_t own, size_t *pairs) {
  return size_add(source, own, pairs) && add_side(&k->out->main, own, 0, pairs) &&
         add_side(&k->out->source, source, own, pairs);
}
