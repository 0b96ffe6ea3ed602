/* attention_limits: the cost of a request, counted before anything is allocated for it. */
#include "core/attention/measures.h"
#include "core/base/size.h"
#include "server/attention/attention_answer.h"
#include "server/attention/attention_checking.h"
#include "server/number/number.h"

/* Pairs of a query and a key or segment, over all items. */
struct attention_pairs {
  size_t keys, segments;
};

/* Counts the pairs, which are computed for every head. Measures compare heads as well, two by two,
 * at every pair; a head paired with itself counts for its own work. */
static enum status check_work(struct attention_check *k, struct attention_pairs *p) {
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
    if (!counted) break;
    p->keys += item->q * item->k; /* neither sum exceeds `most` */
    p->segments += item->q * item->segments;
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

/* The most bytes that each number of the response takes. */
struct attention_number_bytes {
  size_t output, weight; /* floats */
  size_t pointer, measure, trace;
};

/* A response that cannot be safetensors is sent as JSON, or rejected. */
static struct attention_number_bytes bytes_of_numbers(const struct attention_check *k) {
  enum { TEXT = NUMBER_TEXT_MAX + 1, BASE64 = 6, FLOAT = 4, INDEX = 8 };
  struct attention_number_bytes n = {TEXT, TEXT, TEXT, TEXT, TEXT};
  if (k->terms->form == BODY_V2) {
    n.output = n.weight = 0; /* outputs that are not requested are not sent */
    for (size_t i = 0; i < k->out->v2.outputs; i++)
      *(k->out->v2.output[i].which == OUTPUT_WEIGHTS ? &n.weight : &n.output) =
          k->out->v2.output[i].binary ? FLOAT : TEXT;
  } else if (k->terms->wants_binary && attention_request_has_binary(k->out)) {
    n = (struct attention_number_bytes){FLOAT, FLOAT, INDEX, TEXT, TEXT};
  } else if (k->out->base64) {
    n.output = n.weight = BASE64;
  }
  return n;
}

static bool count_more(size_t a, size_t b, size_t each, size_t *sum) {
  size_t product;
  return size_mul(a, b, &product) && size_mul(product, each, &product) &&
         size_add(*sum, product, sum);
}

enum status attention_check_limits(struct attention_check *k) {
  const struct call *c = k->c;
  const struct layer_shape *s = &k->m->shape;
  struct attention_pairs p = {0};
  if (check_work(k, &p)) return k->e->status;
  /* The bytes of the response's numbers; its whole text is counted when it is planned. For each
   * head its measures, its place in the ranking, and its distance from each other head. */
  const struct attention_number_bytes n = bytes_of_numbers(k);
  const size_t measures =
      sizeof(struct head_measures) / sizeof(double) + 1 + (s->sigmoid ? 0 : s->heads);
  size_t bytes = 0;
  bool fits = c->want_measures ? count_more(s->heads, measures, n.measure, &bytes)
                               : count_more(k->g->q_rows, s->output_size, n.output, &bytes);
  if (c->want == WEIGHTS_AVERAGE) fits = fits && count_more(p.keys, 1, n.weight, &bytes);
  if (c->want == WEIGHTS_PER_HEAD)
    fits = fits && count_more(p.keys, s->heads, n.weight, &bytes) &&
           count_more(p.segments, s->heads, n.weight, &bytes);
  if (c->want_pointers) fits = fits && count_more(k->g->q_rows, s->heads, n.pointer, &bytes);
  if (c->trace)
    fits = fits && attention_traced_count(k->g->item[c->trace->item].k, s, n.trace, &bytes);
  if (fits && bytes <= k->limits->max_answer_bytes) return STATUS_OK;
  return answer_refuse_size(fits, bytes, k->limits->max_answer_bytes, k->e);
}
