/* prefix_copy: the first step of a run that generates, and its last one: what is known of the
 * beginnings of its texts is fetched, of a text that is another one's all of it, and what comes to
 * be known is kept.
 *
 * Keys and values are copied: those of a sequence lie together, and a block of 64 rows takes a
 * fraction of a percent of the time in which it is computed. Which units there are depends on the
 * round alone, and not on what other requests have kept meanwhile. */
#include <string.h>

#include "core/base/size.h"
#include "core/generate/generate_parts.h"
#include "core/generate/prefix.h"

/* Numbers of a block: of each layer the greatest magnitudes so far, of keys and of values, as their
 * bits; then keys and values, head by head. */
enum { TOPS = 2 };

static size_t rows_floats(const struct stack *s, size_t size) {
  return s->form.self.kv_heads * STACK_PREFIX_ROWS * size;
}

static size_t block_floats(const struct stack *s) {
  const struct layer_shape *a = &s->form.self;
  const size_t layer = TOPS + rows_floats(s, a->key_head_size) + rows_floats(s, a->value_head_size);
  return layer * s->form.layers;
}

/* --- between a block and the rows of a sequence --- */

struct recall_copy {
  const struct stack *s;
  size_t block; /* of the sequence */
  bool back;    /* from the sequence into the block */
};

_Static_assert((int)STACK_PREFIX_ROWS == (int)KERNEL_KEYS, "a block is turned as a whole");

/* Keys are turned in what is known, also those of a block that is not turned yet. */
static void copy_rows(const struct recall_copy *c, const struct kept *k, size_t size, bool keys,
                      float *number) {
  const size_t floats = STACK_PREFIX_ROWS * size;
  const bool turns = keys && c->block * STACK_PREFIX_ROWS >= k->rows.turned;
  for (size_t head = 0; head < c->s->form.self.kv_heads; head++, number += floats) {
    float *rows = k->rows.row + head * k->rows.head_step + c->block * floats;
    must(k->rows.row_step == size && (c->back || !turns));
    if (turns)
      c->s->kernel->turn_keys(size, rows, number);
    else
      memcpy(c->back ? number : rows, c->back ? rows : number, floats * sizeof *rows);
  }
}

static void copy_top(const struct recall_copy *c, struct kept *k, float *number) {
  uint32_t known = atomic_load_explicit(&k->top, memory_order_relaxed), stored;
  memcpy(&stored, number, sizeof stored);
  if (c->back)
    memcpy(number, &known, sizeof known);
  else if (stored > known)
    atomic_store_explicit(&k->top, stored, memory_order_relaxed);
}

static void copy_block(const struct recall_copy *c, const struct stack_rounds *o, size_t item,
                       float *number) {
  const struct layer_shape *a = &c->s->form.self;
  for (size_t l = 0; l < c->s->form.layers; l++) {
    struct kept_pair *pair = &o->kept[l][item];
    copy_top(c, &pair->key, number);
    copy_top(c, &pair->value, number + 1);
    number += TOPS;
    copy_rows(c, &pair->key, a->key_head_size, true, number);
    number += rows_floats(c->s, a->key_head_size);
    copy_rows(c, &pair->value, a->value_head_size, false, number);
    number += rows_floats(c->s, a->value_head_size);
  }
}

/* --- before the first round --- */

/* The parent of the first block of a prompt: no id of a block, and of no other stack. */
static uint64_t prefix_root(const struct stack *s) { return UINT64_MAX - s->serial; }

enum status prefix_copy_prepare(const struct stack_preparing *p, size_t item) {
  struct stack_generation *g = p->r->generation;
  struct stack_advance *at = &g->rounds->advance[item];
  const size_t most = (at->text - 1) / STACK_PREFIX_ROWS; /* the last token is fed in any case */
  if (at->twin != STACK_NO_TWIN) { /* what it has is kept, and not what comes behind this copy */
    g->sequence[item].recalled = g->sequence[at->twin].recalled;
    return STATUS_OK;
  }
  at->known = prefix_root(p->s);
  if (!g->prefixes || most == 0) return STATUS_OK;
  at->recalled = stack_alloc(p, most, sizeof(struct prefix_block *));
  if (!at->recalled) return p->e->status;
  at->recalls = at->held = prefixes_find(g->prefixes, at->known, at->token, most, at->recalled);
  if (at->recalls) at->known = at->recalled[at->recalls - 1]->id;
  at->kept = at->turned = at->turns = at->recalls * STACK_PREFIX_ROWS;
  g->sequence[item].recalled = at->kept;
  return STATUS_OK;
}

static void give_back(struct stack_generation *g, struct stack_advance *at) {
  while (at->held > 0) prefixes_give_back(g->prefixes, at->recalled[--at->held]);
}

void stack_generation_end(struct stack_generation *g, size_t items) {
  for (size_t i = 0; g->rounds && g->rounds->advance && i < items; i++)
    give_back(g, &g->rounds->advance[i]);
}

/* --- units: items --- */

static struct stack_advance *advance_of(const struct unit *u) {
  return &stack_run_of(u->run)->generation->rounds->advance[u->item];
}

/* Are there rows to copy before this round's first layer? */
static bool begins_with_rows(const struct stack_rounds *o, const struct stack_advance *at) {
  return at->copies == o->number;
}

static bool recall_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_rounds *o = r->generation->rounds;
  (void)step;
  if (o->copied != o->number) return false;
  while (at->item < r->geometry.items && !begins_with_rows(o, &o->advance[at->item])) at->item++;
  if (at->item == r->geometry.items) return false;
  u->item = at->item++;
  return true;
}

/* Blocks of an item that are whole since this round. */
static size_t whole_blocks(const struct stack_run *r, size_t item, size_t *first) {
  const size_t kept = r->generation->rounds->advance[item].kept;
  *first = (kept - r->geometry.item[item].q) / STACK_PREFIX_ROWS;
  return kept / STACK_PREFIX_ROWS - *first;
}

static bool keep_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  size_t first;
  (void)step;
  if (!r->generation->prefixes) return false;
  while (at->item < r->geometry.items && whole_blocks(r, at->item, &first) == 0) at->item++;
  if (at->item == r->geometry.items) return false;
  u->item = at->item++;
  return true;
}

static double copy_work(const struct step *step, const struct unit *u) {
  (void)u;
  return stack_step_of(step)->row_work;
}

double prefix_copy_work(const struct stack *s) { return (double)block_floats(s); }

/* --- what they do --- */

static void copy_kept(struct kept *to, const struct kept *from, size_t heads, size_t rows) {
  const size_t size = to->rows.row_step;
  for (size_t head = 0; head < heads; head++)
    memcpy(to->rows.row + head * to->rows.head_step, from->rows.row + head * from->rows.head_step,
           rows * size * sizeof(float));
  to->count = rows;
  atomic_store_explicit(&to->top, atomic_load_explicit(&from->top, memory_order_relaxed),
                        memory_order_relaxed);
}

/* The rows of a twin's text that stack_rounds has chosen. */
static void copy_twin(const struct stack *s, struct stack_rounds *o, size_t item) {
  struct stack_advance *at = &o->advance[item];
  at->turned = at->turns = size_min(o->advance[at->twin].turned, at->kept);
  const size_t heads = s->form.self.kv_heads;
  for (size_t l = 0; l < s->form.layers; l++) {
    struct kept_pair *to = &o->kept[l][item], *from = &o->kept[l][at->twin];
    copy_kept(&to->key, &from->key, heads, at->kept);
    copy_kept(&to->value, &from->value, heads, at->kept);
    to->key.rows.turned = at->turned;
  }
}

static void recall_each(const struct stack_step *step, const struct unit *u, void *scratch) {
  struct stack_generation *g = stack_run_of(u->run)->generation;
  struct stack_advance *at = advance_of(u);
  (void)scratch;
  if (at->twin != STACK_NO_TWIN) copy_twin(step->stack, g->rounds, u->item);
  for (size_t b = 0; b < at->recalls; b++) {
    const struct recall_copy c = {.s = step->stack, .block = b};
    copy_block(&c, g->rounds, u->item, at->recalled[b]->number);
  }
  give_back(g, at);
}

/* Where there is no room the rest of the text is not kept: what comes behind would not be found. */
static void keep_block(const struct stack *s, struct stack_run *r, size_t item, size_t block) {
  struct stack_generation *g = r->generation;
  struct stack_advance *at = &g->rounds->advance[item];
  const struct recall_copy c = {.s = s, .block = block, .back = true};
  const int32_t *token = at->token + block * STACK_PREFIX_ROWS;
  if (at->known == 0) return;
  const uint64_t there = prefixes_behind(g->prefixes, at->known, token);
  struct prefix_block *b =
      there ? NULL : prefixes_make(g->prefixes, at->known, token, block_floats(s));
  if (b) copy_block(&c, g->rounds, item, b->number);
  at->known = there ? there : b ? prefixes_add(g->prefixes, b) : 0;
}

static void keep_each(const struct stack_step *step, const struct unit *u, void *scratch) {
  struct stack_run *r = stack_run_of(u->run);
  size_t first, count = whole_blocks(r, u->item, &first);
  (void)scratch;
  for (size_t b = first; b < first + count; b++) keep_block(step->stack, r, u->item, b);
}

const struct stack_step stack_step_prefix_fetch = {
    .step = {.unit = recall_unit, .work = copy_work, .compute = stack_compute},
    .each = recall_each};
const struct stack_step stack_step_prefix_store = {
    .step = {.unit = keep_unit, .work = copy_work, .compute = stack_compute}, .each = keep_each};
