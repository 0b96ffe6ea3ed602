/* attention_limits: what a request would cost, counted before anything is allocated for it. */
#include "core/attention/measures.h"
#include "core/base/size.h"
#include "server/answer/answer.h"
#include "server/attention/attention_checking.h"
#include "server/number/number.h"

/* Pairs of a query and what it is compared with, over all items. */
struct attention_pairs {
  size_t keys, segments;
  size_t most; /* of each item the larger of the two: a segment is work even without keys */
};

static bool count_pairs(const struct geometry *g, struct attention_pairs *p) {
  for (size_t i = 0; i < g->items; i++) {
    const struct item *item = &g->item[i];
    size_t n;
    if (!size_mul(item->q, size_max(item->k, item->segments), &n) ||
        !size_add(p->most, n, &p->most))
      return false;
    /* No more than what has just been added. */
    p->keys += item->q * item->k;
    p->segments += item->q * item->segments;
  }
  return true;
}

/* Every head meets every pair. To be measured, heads are compared with each other as well, two by
 * two, at every pair; a head beside itself stands for its own work. */
static enum status check_work(struct attention_check *k, struct attention_pairs *p) {
  const size_t heads = k->m->shape.heads;
  const bool compared = k->c->want_measures && !k->m->shape.sigmoid;
  const size_t times = compared ? heads * (heads + 1) / 2 : heads; /* of at most some thousand */
  size_t work;
  const bool counted = count_pairs(k->g, p) && size_mul(p->most, times, &work);
  if (counted && work <= k->limits->max_pairs) return STATUS_OK;
  return error_limit(k->e, "max_pairs",
                     "the request has %s%zu query-key%s pairs, counted for each of %zu %s; the "
                     "limit is %zu: send fewer or shorter items",
                     counted ? "" : "more than ", counted ? work : k->limits->max_pairs,
                     k->g->segment_end ? " or query-segment" : "", times,
                     compared ? "pairs of heads, which are compared" : "heads",
                     k->limits->max_pairs);
}

/* At most so many bytes for each number of the answer. */
struct attention_number_bytes {
  size_t output, weight; /* floats */
  size_t pointer, measure, trace;
};

/* An answer that has no form as safetensors is sent as JSON, or not at all. */
static struct attention_number_bytes bytes_of_numbers(const struct attention_check *k) {
  enum { TEXT = NUMBER_TEXT_MAX + 1, BASE64 = 6, FLOAT = 4, INDEX = 8 };
  struct attention_number_bytes n = {TEXT, TEXT, TEXT, TEXT, TEXT};
  if (k->terms->form == BODY_V2) {
    n.output = n.weight = 0; /* what is not asked for is not sent */
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

/* The bytes of the answer's numbers. */
static bool count_bytes(const struct attention_check *k, const struct attention_pairs *p,
                        size_t *bytes) {
  const struct call *c = k->c;
  const size_t heads = k->m->shape.heads;
  const struct attention_number_bytes n = bytes_of_numbers(k);
  /* Of each head its measures and its place in the ranking, and how far it is from each other. */
  const size_t measures =
      sizeof(struct head_measures) / sizeof(double) + 1 + (k->m->shape.sigmoid ? 0 : heads);
  *bytes = 0;
  bool fits = c->want_measures ? count_more(heads, measures, n.measure, bytes)
                               : count_more(k->g->q_rows, k->m->shape.output_size, n.output, bytes);
  if (c->want == WEIGHTS_AVERAGE) fits = fits && count_more(p->keys, 1, n.weight, bytes);
  if (c->want == WEIGHTS_PER_HEAD) fits = fits && count_more(p->keys, heads, n.weight, bytes);
  if (c->want == WEIGHTS_PER_HEAD) fits = fits && count_more(p->segments, heads, n.weight, bytes);
  if (c->want_pointers) fits = fits && count_more(k->g->q_rows, heads, n.pointer, bytes);
  if (c->trace)
    fits =
        fits && attention_traced_count(k->g->item[c->trace->item].k, &k->m->shape, n.trace, bytes);
  return fits;
}

enum status attention_check_limits(struct attention_check *k) {
  struct attention_pairs pairs = {0};
  size_t bytes;
  if (check_work(k, &pairs)) return k->e->status;
  /* Brackets are not counted here: the whole text is counted when it is planned. */
  const bool counted = count_bytes(k, &pairs, &bytes);
  if (counted && bytes <= k->limits->max_answer_bytes) return STATUS_OK;
  return answer_refuse_size(counted, bytes, k->limits->max_answer_bytes, k->e);
}
