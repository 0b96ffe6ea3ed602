/* turn_keys: lays keys out as later rounds read them: a whole block of keys is transposed (turned),
 * so that the scores of its keys with one query are computed side by side. */
#include <string.h>

#include "core/base/size.h"
#include "core/generate/generate_parts.h"

/* The rows of keys that are turned in this round: of an item, or across of a source. */
struct turn_rows {
  size_t from, to;
};

static struct turn_rows rows_of(const struct stack *s, const struct stack_run *r, size_t number,
                                size_t item) {
  const struct stack_rounds *o = r->generation->rounds;
  const struct stack_sequence *at = &r->generation->sequence[item];
  if (!stack_is_across(s, number)) return (struct turn_rows){at->turned, at->turns};
  return (struct turn_rows){0, o->source[item].rows / KERNEL_KEYS * KERNEL_KEYS};
}

static void turn_rows(const struct stack *s, const struct layer_shape *a, struct turn_rows rows,
                      struct kept *k, float *scratch) {
  const size_t size = a->key_head_size, block = KERNEL_KEYS * size;
  must(k->rows.row_step == size && k->rows.turned == rows.from);
  for (size_t head = 0; head < a->kv_heads; head++)
    for (size_t row = rows.from; row < rows.to; row += KERNEL_KEYS) {
      float *at = k->rows.row + head * k->rows.head_step + row * size;
      s->kernel->turn_keys(size, at, scratch);
      memcpy(at, scratch, block * sizeof *at);
    }
  k->rows.turned = rows.to;
}

/* --- rows that hypotheses share --- */

/* Copies the rows after the last whole block of a prompt to where all hypotheses look for them. */
static void open_rows(const struct stack_sequence *at, const struct kept *k, size_t heads) {
  const size_t size = k->rows.row_step, whole = at->lineage.whole;
  for (size_t head = 0; head < heads; head++) {
    float *from = k->rows.row + head * k->rows.head_step + whole * size;
    memcpy(from + KERNEL_KEYS * size, from, (at->kept - whole) * size * sizeof *from);
  }
}

/* Makes a block of the rows after the last block, whichever sequences own them. */
static void weave(const struct stack *s, const struct kept *k, size_t heads, bool keys,
                  float *scratch) {
  const size_t size = k->rows.row_step;
  for (size_t head = 0; head < heads; head++) {
    float *to = k->rows.row + head * k->rows.head_step + k->lineage->whole * size;
    kept_gather(k, head, KERNEL_KEYS, keys ? scratch : to);
    if (keys) s->kernel->turn_keys(size, scratch, to);
  }
}

/* --- the step: units are an attention of an item; in the first round across of a source --- */

static bool turn_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_rounds *o = r->generation->rounds;
  const size_t items = r->geometry.items, layers = stack_step_of(step)->stack->form.layers;
  const size_t all = items + (o->source && o->number == 1 ? r->across.items : 0);
  for (; at->item < all; at->item++, at->head = 0) {
    if (at->head == layers) continue;
    if (at->item < items) {
      const struct stack_sequence *a = &r->generation->sequence[at->item];
      const bool weaves = a->weaves && a->woven == a->lineage.own;
      if (a->turns == a->turned && !a->opens && !weaves) continue;
    }
    u->item = at->item < items ? at->item : at->item - items;
    u->head = at->head++ + (at->item < items ? 0 : layers);
    u->heads = 1;
    return true;
  }
  return false;
}

/* Bound by memory. */
static double turn_work(const struct step *step, const struct unit *u) {
  const struct stack *s = stack_step_of(step)->stack;
  const struct layer_shape *a = stack_shape(s, u->head);
  const struct turn_rows rows = rows_of(s, stack_run_of(u->run), u->head, u->item);
  return 4.0 * (double)(rows.to - rows.from) * (double)(a->kv_heads * a->key_head_size);
}

static void turn_each(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack *s = step->stack;
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_rounds *o = r->generation->rounds;
  const struct stack_sequence *at = &r->generation->sequence[u->item];
  const struct layer_shape *a = stack_shape(s, u->head);
  struct kept_pair *pair = &o->kept[u->head][u->item];
  turn_rows(s, a, rows_of(s, r, u->head, u->item), &pair->key, scratch);
  if (stack_is_across(s, u->head)) {
    pair->key.count = pair->value.count = o->source[u->item].rows;
    return;
  }
  if (at->opens) {
    open_rows(at, &pair->key, a->kv_heads);
    open_rows(at, &pair->value, a->kv_heads);
  }
  if (!at->weaves || at->woven != at->lineage.own) return;
  weave(s, &pair->key, a->kv_heads, true, scratch);
  weave(s, &pair->value, a->kv_heads, false, scratch);
}

static size_t turn_floats(const struct stack *s) {
  return KERNEL_KEYS * size_max(s->form.kind->self.key_head_size, s->form.cross.key_head_size);
}

const struct stack_step stack_step_turn_keys = {
    .step = {.unit = turn_unit, .work = turn_work, .compute = stack_compute},
    .floats = turn_floats,
    .each = turn_each};
