/* decode_limits: what a request would cost, counted before anything is allocated for it. */
#include "core/measures.h"
#include "core/size.h"
#include "server/decode_parts.h"
#include "server/text/number.h"

/* Of a query and what it is compared with, over all items. */
struct pairs {
  size_t keys, segments;
  size_t most; /* of each item the larger of the two: a segment is work even without keys */
};

static bool count_pairs(const struct call *c, struct pairs *p) {
  for (size_t i = 0; i < c->items; i++) {
    const struct item *item = &c->item[i];
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
static enum status check_work(struct check *k, struct pairs *p) {
  const size_t heads = k->m->shape.heads;
  const bool compared = k->c->want_measures && !k->m->shape.sigmoid;
  const size_t times = compared ? heads * (heads + 1) / 2 : heads; /* of at most some thousand */
  size_t work;
  if (count_pairs(k->c, p) && size_mul(p->most, times, &work) && work <= k->limits->max_pairs)
    return STATUS_OK;
  return error_limit(k->e, "max_pairs",
                     "more than %zu pairs of a query and a key%s, counted for each of %zu %s",
                     k->limits->max_pairs, k->c->segment_end ? " or segment" : "", times,
                     compared ? "pairs of heads, which are compared" : "heads");
}

static bool count_more(size_t a, size_t b, size_t *sum) {
  size_t product;
  return size_mul(a, b, &product) && size_add(*sum, product, sum);
}

/* The numbers of the answer. */
static bool count_numbers(const struct check *k, const struct pairs *p, size_t *numbers) {
  const struct call *c = k->c;
  const size_t heads = k->m->shape.heads;
  /* Of each head its measures and its place in the ranking, and how far it is from each other. */
  const size_t measures =
      sizeof(struct head_measures) / sizeof(double) + 1 + (k->m->shape.sigmoid ? 0 : heads);
  *numbers = 0;
  bool fits = c->want_measures ? count_more(heads, measures, numbers)
                               : count_more(c->q_rows, k->m->shape.output_size, numbers);
  if (c->want == WEIGHTS_AVERAGE) fits = fits && count_more(p->keys, 1, numbers);
  if (c->want == WEIGHTS_PER_HEAD) fits = fits && count_more(p->keys, heads, numbers);
  if (c->want == WEIGHTS_PER_HEAD) fits = fits && count_more(p->segments, heads, numbers);
  if (c->want_pointers) fits = fits && count_more(c->q_rows, heads, numbers);
  return fits;
}

enum status check_limits(struct check *k) {
  struct pairs pairs = {0};
  size_t numbers, bytes;
  if (check_work(k, &pairs)) return k->e->status;
  /* Without the brackets: all of the text is counted when it is planned. */
  if (count_numbers(k, &pairs, &numbers) && size_mul(numbers, NUMBER_TEXT_MAX + 1, &bytes) &&
      bytes <= k->limits->max_answer_bytes)
    return STATUS_OK;
  return error_limit(k->e, "max_answer_bytes", "the answer may need more than %zu bytes",
                     k->limits->max_answer_bytes);
}
