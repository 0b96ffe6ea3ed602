/* attention_ref_trace: how the twin shows the way to one query's weights in one head. */
#include <math.h>
#include <string.h>

#include "core/attention/trace.h"
#include "core/reference/attention_ref_parts.h"

/* A row, or zeros instead of one that is not seen. */
static void write_row(bool there, size_t size, const double *from, double *to) {
  memset(to, 0, size * sizeof *to);
  if (there) memcpy(to, from, size * sizeof *to);
}

/* The context of the head itself, whatever head_mask makes of it. */
static void write_context(struct ref_work *r, size_t key_head, double *context) {
  const size_t size = r->s->value_head_size;
  memset(context, 0, size * sizeof *context);
  for (size_t j = 0; j < r->item->k; j++)
    if (r->weights[j] != 0)
      ref_add(context, r->weights[j], ref_projected(r, ROLE_VALUE, j, key_head), size);
  ref_check(r, context, size);
}

/* The query, its scores and its weights are those that the formulas have just been through. */
void ref_write_trace(struct ref_work *r, size_t head, size_t i) {
  const struct trace *asked = r->item->trace;
  struct ref_trace *t = r->answer->trace;
  const size_t k = r->item->k, n = ref_side_size(r->s), key_head = ref_key_head(r->s, head);
  if (!t || !asked || asked->item != r->item->number || asked->head != head || asked->row != i)
    return;
  const size_t size = r->s->value_head_size;
  write_row(ref_greatest(r->scores, k) >= 0, n, ref_side(r, ROLE_QUERY, i, head), t->query);
  for (size_t j = 0; j < k; j++) {
    const bool seen = r->scores[j] != -INFINITY;
    const double *key = ref_side(r, ROLE_KEY, j, key_head);
    write_row(seen, n, key, t->keys + j * n);
    write_row(seen || r->weights[j] != 0, size, ref_projected(r, ROLE_VALUE, j, key_head),
              t->values + j * size);
    t->products[j] = seen ? ref_compare(r, t->query, key) : 0;
    t->scores[j] = seen ? r->scores[j] : 0;
    t->weights[j] = r->weights[j];
  }
  ref_check(r, t->products, k);
  write_context(r, key_head, t->context);
}
