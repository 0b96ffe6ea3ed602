/* attention_hidden: a bias of minus infinity, which only bytes can say, becomes a mask. */
#include <math.h>

#include "server/attention/attention_parts.h"

enum { LOOK = 64 }; /* numbers at a time: a loop of fixed length is made of vectors */

static bool has_hidden(const float *bias, size_t count) {
  size_t i = 0;
  for (; i + LOOK <= count; i += LOOK) {
    int any = 0;
    for (size_t j = 0; j < LOOK; j++) any |= bias[i + j] == -INFINITY;
    if (any) return true;
  }
  while (i < count && bias[i] != -INFINITY) i++;
  return i < count;
}

/* `to` becomes what both masks let through; `from` may be `to`, or NULL: everything. */
static void hide(uint8_t *to, const uint8_t *from, const float *bias, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] = (from ? from[i] : 1) & (bias[i] != -INFINITY);
}

/* Does the mask of the request have room for what the bias hides? It has none for heads, and one
 * that all items share none for what differs between them. */
static bool mask_serves(const struct call *c, bool mask_shared, bool bias_shared) {
  return c->mask && !c->bias_per_head && (!mask_shared || bias_shared);
}

enum status check_hidden(struct check *k, const struct tensor *bias, bool shared) {
  struct call *c = k->c;
  float *number = bias->data;
  if (!bias->unjudged || !has_hidden(number, bias->count)) return STATUS_OK;
  const struct tensor *given = check_tensor(k, FIELD_MASK);
  const bool mask_shared = !c->mask || given->depth == 2;
  const size_t grids = c->bias_per_head ? k->m->shape.heads : 1;
  const bool in_place = mask_serves(c, mask_shared, shared);
  uint8_t *made = in_place ? given->data : arena_alloc(k->a, bias->count, sizeof *made, k->e);
  if (!made) return k->e->status;
  /* What all items share is done once, unless each has a mask of its own to change. */
  const size_t items = shared && mask_shared ? 1 : c->items;
  for (size_t i = 0; i < items; i++) {
    struct item *item = &c->item[i];
    const size_t grid = item->q * item->k;
    const uint8_t *from = c->mask ? c->mask + item->mask_at : NULL;
    const size_t to = in_place ? item->mask_at : item->bias_at;
    for (size_t h = 0; h < grids; h++)
      hide(made + to + h * grid, from, number + item->bias_at + h * grid, grid);
    item->mask_at = to;
  }
  c->mask = made;
  c->mask_per_head = c->bias_per_head;
  for (size_t i = 0; i < bias->count; i++)
    if (number[i] == -INFINITY) number[i] = 0;
  return STATUS_OK;
}
