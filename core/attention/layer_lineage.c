/* layer_lineage: keys and values of items that share rows, as sequences do that went on from one
 * another.
 *
 * Whole blocks are read where they lie. The rows behind them, up to KERNEL_KEYS, may each lie with
 * another member: they are laid end to end for the head at hand, which reads them anyway.
 */
#include <string.h>

#include "core/attention/layer_parts.h"
#include "core/base/size.h"

static size_t key_floats(const struct layer *l) { return KERNEL_KEYS * l->compare_size; }

size_t lineage_floats(const struct layer *l) {
  return size_round_up(key_floats(l) + KERNEL_KEYS * l->shape.value_head_size, 16);
}

/* The first member's rows of a head. */
static float *first_row(const struct kept *k, size_t head) {
  return k->rows.row - k->lineage->own * k->member_step + head * k->rows.head_step;
}

void kept_gather(const struct kept *k, size_t head, size_t rows, float *to) {
  const struct kept_lineage *lineage = k->lineage;
  const size_t size = k->rows.row_step;
  const float *from = first_row(k, head) + (lineage->whole + KERNEL_KEYS) * size;
  for (size_t first = 0, end; first < rows; first = end) {
    const uint32_t member = lineage->row[first];
    for (end = first + 1; end < rows && lineage->row[end] == member;) end++;
    memcpy(to + first * size, from + member * k->member_step + first * size,
           (end - first) * size * sizeof *to);
  }
}

void lineage_set_inputs(struct kernel_tile *t, struct tile_kept *kept, size_t head) {
  const struct kept *key = &kept->shared->key, *value = &kept->shared->value;
  const struct kept_lineage *lineage = key->lineage;
  const size_t rows = t->keys - size_min(lineage->whole, t->keys);
  float *values = kept->gathered + KERNEL_KEYS * key->rows.row_step;
  kept_gather(key, head, rows, kept->gathered);
  kept_gather(value, head, rows, values);
  kept->blocks = (struct kernel_blocks){.place = lineage->block,
                                        .key_step = key->member_step,
                                        .value_step = value->member_step,
                                        .key = kept->gathered,
                                        .value = values};
  t->key = first_row(key, head);
  t->value = first_row(value, head);
  t->turned = lineage->whole;
  t->blocks = &kept->blocks;
}
