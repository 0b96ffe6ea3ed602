/* prefix_copy: the first step of a round and one of its last ones: they copy keys and values from
 * the prefix cache, or from an item with the same prompt, and store complete blocks in the cache.
 *
 * A block of 64 rows is copied in a fraction of a percent of the time in which it is computed. The
 * units depend on the round alone, and not on what other requests have stored meanwhile. */
#include <string.h>

#include "core/base/size.h"
#include "core/generate/generate_parts.h"
#include "core/generate/prefix.h"

_Static_assert((int)STACK_PREFIX_ROWS == (int)KERNEL_KEYS, "a block is turned as a whole");

/* A block has for each layer the greatest magnitudes of keys and of values so far, as their bits,
 * and then keys and values, head by head. */
enum { TOPS = 2 };

static size_t block_floats(const struct stack *s) {
  const struct layer_shape *a = &s->form.kind->self;
  const size_t row = a->kv_heads * (a->key_head_size + a->value_head_size);
  return (TOPS + STACK_PREFIX_ROWS * row) * s->form.layers;
}

/* --- between the cache and a sequence --- */

/* A copy of a block of a sequence; `back`: to the cache. */
struct block_copy {
  const struct stack *s;
  size_t block;
  bool back;
};

/* Copies the keys or values of a layer; returns the number after them. Keys are turned in the
 * cache, also those of a block that is not turned yet. */
static float *copy_rows(const struct block_copy *c, struct kept *k, size_t size, bool keys,
                        float *number) {
  const size_t floats = STACK_PREFIX_ROWS * size;
  const bool turns = keys && c->block * STACK_PREFIX_ROWS >= k->rows.turned;
  for (size_t head = 0; head < c->s->form.kind->self.kv_heads; head++, number += floats) {
    float *rows = k->rows.row + head * k->rows.head_step + c->block * floats;
    must(k->rows.row_step == size && (c->back || !turns));
    if (turns)
      c->s->kernel->turn_keys(size, rows, number);
    else
      memcpy(c->back ? number : rows, c->back ? rows : number, floats * sizeof *rows);
  }
  return number;
}

static void copy_top(const struct block_copy *c, struct kept *k, float *number) {
  uint32_t known = atomic_load_explicit(&k->top, memory_order_relaxed), stored;
  memcpy(&stored, number, sizeof stored);
  if (c->back)
    memcpy(number, &known, sizeof known);
  else if (stored > known)
    atomic_store_explicit(&k->top, stored, memory_order_relaxed);
}

static void copy_block(const struct block_copy *c, const struct stack_rounds *o, size_t item,
                       float *number) {
  const struct layer_shape *a = &c->s->form.kind->self;
  for (size_t l = 0; l < c->s->form.layers; l++) {
    struct kept_pair *pair = &o->kept[l][item];
    copy_top(c, &pair->key, number);
    copy_top(c, &pair->value, number + 1);
    number = copy_rows(c, &pair->key, a->key_head_size, true, number + TOPS);
    number = copy_rows(c, &pair->value, a->value_head_size, false, number);
  }
}

/* --- before the first round, and after the last --- */

enum status prefix_copy_prepare(const struct stack_preparing *p, size_t item) {
  struct stack_generation *g = p->r->generation;
  struct stack_sequence *at = &g->sequence[item];
  const size_t most = (at->text - 1) / STACK_PREFIX_ROWS; /* the last token is fed in any case */
  if (at->twin != STACK_NO_TWIN) { /* its twin stores the blocks, and it stores none */
    at->recalled = g->sequence[at->twin].recalled;
    return STATUS_OK;
  }
  at->known = UINT64_MAX - p->s->serial; /* the root of this stack: no id of a block */
  if (!g->prefixes || most == 0) return STATUS_OK;
  at->block = stack_alloc(p, most, sizeof(struct prefix_block *));
  if (!at->block) return p->e->status;
  at->recalls = at->held = prefixes_find(g->prefixes, at->known, at->fed, most, at->block);
  if (at->recalls) at->known = at->block[at->recalls - 1]->id;
  at->kept = at->turned = at->turns = at->recalls * STACK_PREFIX_ROWS;
  at->recalled = at->kept;
  return STATUS_OK;
}

static void give_back(struct stack_generation *g, struct stack_sequence *at) {
  while (at->held > 0) prefixes_give_back(g->prefixes, at->block[--at->held]);
}

void stack_generation_end(struct stack_generation *g, size_t items) {
  for (size_t i = 0; g->rounds && i < items; i++) give_back(g, &g->sequence[i]);
}

/* --- the step that fetches: units are items --- */

static bool fetch_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_rounds *o = r->generation->rounds;
  const size_t items = r->geometry.items;
  (void)step;
  if (o->copied != o->number) return false;
  while (at->item < items && r->generation->sequence[at->item].copies != o->number) at->item++;
  if (at->item == items) return false;
  u->item = at->item++;
  return true;
}

double prefix_copy_work(const struct stack *s) { return (double)block_floats(s); }

static double copy_work(const struct step *step, const struct unit *u) {
  (void)u;
  return stack_step_of(step)->row_work;
}

static void copy_kept(struct kept *to, const struct kept *from, size_t heads, size_t rows) {
  const size_t size = to->rows.row_step;
  for (size_t head = 0; head < heads; head++)
    memcpy(to->rows.row + head * to->rows.head_step, from->rows.row + head * from->rows.head_step,
           rows * size * sizeof(float));
  to->count = rows;
  atomic_store_explicit(&to->top, atomic_load_explicit(&from->top, memory_order_relaxed),
                        memory_order_relaxed);
}

static void fetch(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack *s = step->stack;
  struct stack_generation *g = stack_run_of(u->run)->generation;
  const struct stack_rounds *o = g->rounds;
  struct stack_sequence *at = &g->sequence[u->item];
  (void)scratch;
  if (at->twin != STACK_NO_TWIN) { /* the rows that rounds.c has decided on */
    at->turned = at->turns = size_min(g->sequence[at->twin].turned, at->kept);
    for (size_t l = 0; l < s->form.layers; l++) {
      struct kept_pair *to = &o->kept[l][u->item], *from = &o->kept[l][at->twin];
      copy_kept(&to->key, &from->key, s->form.kind->self.kv_heads, at->kept);
      copy_kept(&to->value, &from->value, s->form.kind->self.kv_heads, at->kept);
      to->key.rows.turned = at->turned;
    }
  }
  for (size_t b = 0; b < at->recalls; b++) {
    const struct block_copy c = {.s = s, .block = b};
    copy_block(&c, o, u->item, at->block[b]->number);
  }
  give_back(g, at);
}

/* --- the step that stores: units are items with blocks that are complete since this round --- */

static size_t complete_blocks(const struct stack_run *r, size_t item, size_t *first) {
  const size_t kept = r->generation->sequence[item].kept;
  *first = (kept - r->geometry.item[item].q) / STACK_PREFIX_ROWS;
  return kept / STACK_PREFIX_ROWS - *first;
}

static bool store_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  size_t first;
  (void)step;
  if (!r->generation->prefixes) return false;
  while (at->item < r->geometry.items && complete_blocks(r, at->item, &first) == 0) at->item++;
  if (at->item == r->geometry.items) return false;
  u->item = at->item++;
  return true;
}

/* If there is no room for a block, later ones are not stored: they would not be found. */
static void store(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_generation *g = r->generation;
  struct stack_sequence *at = &g->sequence[u->item];
  size_t first, count = complete_blocks(r, u->item, &first);
  (void)scratch;
  for (size_t i = first; i < first + count && at->known != 0; i++) {
    const struct block_copy c = {.s = step->stack, .block = i, .back = true};
    const int32_t *token = at->fed + i * STACK_PREFIX_ROWS;
    const uint64_t there = prefixes_behind(g->prefixes, at->known, token);
    struct prefix_block *b =
        there ? NULL : prefixes_make(g->prefixes, at->known, token, block_floats(step->stack));
    if (b) copy_block(&c, g->rounds, u->item, b->number);
    at->known = there ? there : b ? prefixes_add(g->prefixes, b) : 0;
  }
}

const struct stack_step stack_step_prefix_fetch = {
    .step = {.unit = fetch_unit, .work = copy_work, .compute = stack_compute}, .each = fetch};
const struct stack_step stack_step_prefix_store = {
    .step = {.unit = store_unit, .work = copy_work, .compute = stack_compute}, .each = store};
