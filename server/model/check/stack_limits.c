/* stack_limits: sums of pairs, each with a check for overflow, and the bytes of the response. */
#include "server/model/check/stack_limits.h"

#include <stdio.h>

#include "core/base/size.h"
#include "server/attention/attention_trace.h"
#include "server/model/answer/stack_answer.h"

/* The rows of a source that each row of main attends to; 0 for the source itself. */
static size_t source_rows(const struct stack_check *k, const struct stack_side *s, size_t item) {
  return s == k->main ? stack_request_source_rows(k->out, item) : 0;
}

/* --- work --- */

/* Adds a side's pairs of a query and a key, for each head of each layer. Sequences count with all
 * rows that they may have. */
static bool add_work(const struct stack_check *k, const struct stack_side *s, size_t *work) {
  const struct geometry *g = &s->run->geometry;
  const bool sequences = k->out->generates && s == k->main;
  size_t pairs = 0, far = 0, own, across; /* with keys of its own, and of its source */
  for (size_t i = 0; i < g->items; i++) {
    const size_t rows = sequences ? k->out->generation.sequence[i].keys : g->item[i].q;
    if (!size_mul(rows, rows, &own) || !size_mul(rows, source_rows(k, s, i), &across) ||
        !size_add(pairs, own, &pairs) || !size_add(far, across, &far))
      return false;
  }
  return size_mul(pairs, s->form->kind->self.heads, &own) && size_mul(own, s->form->layers, &own) &&
         size_mul(far, s->form->cross.heads, &across) &&
         size_mul(across, s->form->layers, &across) && size_add(own, across, &own) &&
         size_add(*work, own, work);
}

/* Adds the pairs of the forward passes without each of a side's heads that are measured. A pass
 * begins at the head's layer: the side has `own` pairs in all its layers, and the layers of the
 * other side after it have `after`. */
static bool add_ablation(const struct stack_side *s, size_t own, size_t after, size_t *work) {
  for (size_t i = 0; s->stack && i < stack_form_attentions(s->form); i++) {
    const size_t layers = s->form->layers, left = layers - stack_side_layer(s, i);
    size_t pass;
    if (!s->wish[i].ablation) continue;
    if (!size_add(own / layers * left, after, &pass) ||
        !size_mul(pass, stack_side_shape(s, i)->heads, &pass) || !size_add(*work, pass, work))
      return false;
  }
  return true;
}

enum status stack_limits_refuse_pairs(const struct stack_form *source,
                                      const struct stack_form *main, bool weighs, size_t work,
                                      size_t most, struct error *e) {
  char count[64];
  snprintf(count, sizeof count, "%s%zu", work > most ? "" : "more than ",
           work > most ? work : most);
  if (weighs)
    return error_limit(e, "max_pairs",
                       "the request has %s query-key pairs, counted for each head of all layers, "
                       "and again without each head that is measured; the limit is %zu: name fewer "
                       "\"attentions\"",
                       count, most);
  if (source)
    return error_limit(e, "max_pairs",
                       "the request has %s query-key pairs, counted for each head in %zu encoder "
                       "layers and %zu decoder layers; the limit is %zu: send fewer or shorter "
                       "items",
                       count, source->layers, main->layers, most);
  return error_limit(e, "max_pairs",
                     "the request has %s query-key pairs, counted for each of %zu heads in %zu "
                     "layers; the limit is %zu: send fewer or shorter items",
                     count, main->kind->self.heads, main->layers, most);
}

/* --- both limits --- */

enum status stack_limits_check(struct stack_check *k) {
  const struct stack_side *main = k->main;
  const struct stack_request *out = k->out;
  const bool source = stack_check_has_source(k);
  size_t of_source = 0, own = 0, work = 0;
  const bool counted = (!source || add_work(k, k->reader, &of_source)) && add_work(k, main, &own) &&
                       size_add(of_source, own, &work) &&
                       (!out->weighs || (add_ablation(&out->main, own, 0, &work) &&
                                         add_ablation(&out->source, of_source, own, &work)));
  if (!counted || work > k->limits->max_pairs)
    return stack_limits_refuse_pairs(source ? k->reader->form : NULL, main->form, out->weighs,
                                     counted ? work : 0, k->limits->max_pairs, k->e);
  if (out->stream || out->weighs) return STATUS_OK;

  /* Brackets and names are not counted here: the whole text is counted when it is planned. */
  const struct trace *t = out->trace;
  size_t bytes;
  if (stack_answer_count(body_terms_answer(k->terms, stack_request_has_binary(out)), out,
                         k->reading->arena, &bytes, k->e))
    return k->e->status;
  if (t) {
    const struct stack_side *s = k->values->traced_source ? &out->source : main;
    const size_t number = k->values->traced;
    const size_t keys = stack_side_is_across(s, number) ? source_rows(k, s, t->item)
                                                        : s->run->geometry.item[t->item].k;
    if (!attention_traced_count(keys, stack_side_shape(s, number), &bytes)) bytes = SIZE_MAX;
  }
  if (bytes <= k->limits->max_answer_bytes) return STATUS_OK;
  return answer_refuse_size(bytes, k->limits->max_answer_bytes, k->e);
}
