/* attention_limits: the cost of a request, counted before anything is allocated for it. */
#include "core/base/size.h"
#include "server/attention/attention_answer.h"
#include "server/attention/attention_checking.h"

/* Counts the pairs, which are computed for every head. Measures compare heads as well, two by two,
 * at every pair; a head paired with itself counts for its own work. */
static enum status check_work(struct attention_check *k) {
  const size_t heads = k->m->shape.heads;
  const bool compared = k->c->want_measures && !k->m->shape.sigmoid;
  const size_t times = compared ? heads * (heads + 1) / 2 : heads; /* at most some thousand heads */
  size_t most = 0, work = 0;
  bool counted = true;
  for (size_t i = 0; i < k->g->items && counted; i++) {
    /* Segments are work even without keys: the larger number of each item counts. */
    const struct item *item = &k->g->item[i];
    size_t n;
    counted = size_mul(item->q, size_max(item->k, item->segments), &n) && size_add(most, n, &most);
  }
  counted = counted && size_mul(most, times, &work);
  if (counted && work <= k->limits->max_pairs) return STATUS_OK;
  return error_limit(k->e, "max_pairs",
                     "the request has %s%zu query-key%s pairs, counted for each of %zu %s; the "
                     "limit is %zu: send fewer or shorter items",
                     counted ? "" : "more than ", counted ? work : k->limits->max_pairs,
                     k->g->segment_end ? " or query-segment" : "", times,
                     compared ? "pairs of heads, which are compared" : "heads",
                     k->limits->max_pairs);
}

enum status attention_check_limits(struct attention_check *k) {
  if (check_work(k)) return k->e->status;
  /* A response that cannot be safetensors is sent as JSON, or rejected. */
  const bool binary = k->terms->wants_binary && attention_request_has_binary(k->out);
  const size_t bytes = attention_answer_count(k->terms->form == BODY_V2 ? ANSWER_V2
                                              : binary                  ? ANSWER_SAFETENSORS
                                                                        : ANSWER_JSON,
                                              k->m, k->out);
  if (bytes <= k->limits->max_answer_bytes) return STATUS_OK;
  return answer_refuse_size(bytes, k->limits->max_answer_bytes, k->e);
}
