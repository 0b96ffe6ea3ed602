/* subword_merge: the pairs of pieces that become one, and the merging of a word's parts. */
#include <stdlib.h>
#include <string.h>

#include "config/tokenizer/model/byte_level.h"
#include "config/tokenizer/model/subword_parts.h"

/* --- the pairs --- */

static size_t slot_of(const struct subword_model *l, int32_t left, int32_t right) {
  enum { HALF = 32 };
  const uint64_t both = (uint64_t)(uint32_t)left << HALF | (uint32_t)right;
  const uint64_t hash = both * 0x9e3779b97f4a7c15u;
  return (hash ^ hash >> HALF) >> 7 & (l->merges - 1);
}

static struct subword_merge *find_slot(const struct subword_model *l, int32_t left, int32_t right) {
  for (size_t at = slot_of(l, left, right);; at = (at + 1) & (l->merges - 1)) {
    struct subword_merge *m = &l->merge[at];
    if (m->left < 0 || (m->left == left && m->right == right)) return m;
  }
}

const struct subword_merge *subword_find_merge(const struct subword_model *l, int32_t left,
                                               int32_t right) {
  const struct subword_merge *m = find_slot(l, left, right);
  return m->left < 0 ? NULL : m;
}

/* One side of a merge as the file writes it. */
struct subword_side {
  const char *text;
  size_t length;
};

/* Old files have one text, "a b"; newer ones a list of both. */
static bool read_sides(const json_t *one, struct subword_side side[2]) {
  if (json_is_string(one)) {
    const char *text = json_string_value(one), *blank = strchr(text, ' ');
    if (!blank || strchr(blank + 1, ' ')) return false;
    side[0] = (struct subword_side){text, (size_t)(blank - text)};
    side[1] = (struct subword_side){blank + 1, strlen(blank + 1)};
    return true;
  }
  for (size_t i = 0; i < 2; i++) {
    const json_t *value = json_array_get(one, i);
    if (!json_is_string(value)) return false;
    side[i] = (struct subword_side){json_string_value(value), json_string_length(value)};
  }
  return json_array_size(one) == 2;
}

/* Both sides as the vocabulary has them, one behind the other. */
struct subword_spelling {
  char *bytes;
  size_t room;
  size_t left, right; /* bytes of each; SIZE_MAX: bytes cannot spell it */
};

static bool spell(const struct subword_model *l, const struct subword_side side[2],
                  struct subword_spelling *s) {
  const size_t needed = side[0].length + side[1].length;
  if (needed >= s->room) { /* of two empty sides, too */
    char *moved = realloc(s->bytes, 2 * needed + 1);
    if (!moved) return false;
    s->bytes = moved;
    s->room = 2 * needed + 1;
  }
  s->left = side[0].length;
  s->right = side[1].length;
  if (l->raw) {
    s->left = byte_level_decode(side[0].text, side[0].length, s->bytes);
    if (s->left == SIZE_MAX) return true;
    s->right = byte_level_decode(side[1].text, side[1].length, s->bytes + s->left);
  } else {
    memcpy(s->bytes, side[0].text, s->left);
    memcpy(s->bytes + s->left, side[1].text, s->right);
  }
  return true;
}

/* The merge that two spelled sides are. Of words that are bytes no part can be what bytes cannot
 * spell: such a merge is none. */
static bool find_ids(const struct subword_model *l, struct subword_spelling *s,
                     struct subword_merge *m) {
  const size_t inside = l->inside.length;
  m->left = vocabulary_find(&l->vocabulary, s->bytes, s->left);
  m->right = vocabulary_find(&l->vocabulary, s->bytes + s->left, s->right);
  if (m->left < 0 || m->right < 0 || s->right < inside) return false;
  memmove(s->bytes + s->left, s->bytes + s->left + inside, s->right - inside);
  m->id = vocabulary_find(&l->vocabulary, s->bytes, s->left + s->right - inside);
  return m->id >= 0;
}

static enum status read_merge(struct subword_model *l, const json_t *one, size_t rank,
                              struct subword_spelling *s, struct error *e) {
  struct subword_side side[2];
  struct subword_merge m = {.rank = (uint32_t)rank};
  if (!read_sides(one, side))
    return error_set(e, STATUS_CONFIG, "merges: %zu: needs two pieces, \"a b\" or [\"a\",\"b\"]",
                     rank);
  if (!spell(l, side, s)) return error_no_memory(e);
  if (s->left == SIZE_MAX || s->right == SIZE_MAX) return STATUS_OK;
  if (!find_ids(l, s, &m))
    return error_set(e, STATUS_CONFIG,
                     "merges: %zu: \"%.40s\": a piece of it, or what it becomes, is not in the "
                     "vocabulary",
                     rank, side[0].text);
  *find_slot(l, m.left, m.right) = m;
  return STATUS_OK;
}

enum status subword_read_merges(struct subword_model *l, const json_t *json, struct error *e) {
  json_t *list = json_object_get(json, "merges"), *one;
  struct subword_spelling s = {0};
  size_t rank;
  if (!json_is_array(list)) return error_set(e, STATUS_CONFIG, "merges: needs a list of pairs");
  l->merges = 2;
  while (l->merges < 2 * json_array_size(list)) l->merges *= 2;
  l->merge = malloc(l->merges * sizeof *l->merge);
  if (!l->merge) return error_no_memory(e);
  for (size_t i = 0; i < l->merges; i++) l->merge[i].left = -1;
  json_array_foreach(list, rank, one) {
    if (read_merge(l, one, rank, &s, e)) break;
  }
  free(s.bytes);
  return e->status;
}

/* --- a word's parts: few --- */

/* Up to so many the least rank is looked for again after each merge. */
enum { FEW = 48 };
#define NEVER UINT32_MAX

/* The rank of the pair that begins with this symbol, and what it becomes. */
static uint32_t rank_of(const struct subword_model *l, const struct subword_symbol *symbol,
                        int32_t *id) {
  const struct subword_merge *m = subword_find_merge(l, symbol[0].id, symbol[1].id);
  if (!m) return NEVER;
  *id = m->id;
  return m->rank;
}

static size_t merge_few(const struct subword_model *l, struct subword_symbol *symbol,
                        size_t count) {
  uint32_t rank[FEW];
  int32_t id[FEW];
  for (size_t i = 0; i + 1 < count; i++) rank[i] = rank_of(l, symbol + i, &id[i]);
  while (count > 1) {
    size_t at = 0;
    for (size_t i = 1; i + 1 < count; i++)
      if (rank[i] < rank[at]) at = i;
    if (rank[at] == NEVER) break;
    symbol[at] = (struct subword_symbol){id[at], symbol[at].length + symbol[at + 1].length};
    count--;
    for (size_t i = at + 1; i < count; i++) {
      symbol[i] = symbol[i + 1];
      rank[i] = rank[i + 1];
      id[i] = id[i + 1];
    }
    if (at > 0) rank[at - 1] = rank_of(l, symbol + at - 1, &id[at - 1]);
    if (at + 1 < count) rank[at] = rank_of(l, symbol + at, &id[at]);
  }
  return count;
}

/* --- many --- */

/* A pair that may be merged: it counts only if both neighbours are still what they were. */
struct subword_pair {
  uint32_t rank, at; /* of the left one */
  int32_t left, right;
};

/* The neighbours that are left of a symbol's: a list of both directions. */
struct subword_link {
  uint32_t last, next;
};

struct subword_merging {
  const struct subword_model *l;
  struct subword_symbol *symbol; /* of a length of 0: merged into the one before */
  struct subword_link *link;
  struct subword_pair *pair; /* a heap, the least one first */
  size_t pairs;
};

static bool is_less(const struct subword_pair *a, const struct subword_pair *b) {
  return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void push(struct subword_merging *g, struct subword_pair pair) {
  size_t at = g->pairs++;
  for (size_t up; at > 0 && is_less(&pair, &g->pair[up = (at - 1) / 2]); at = up)
    g->pair[at] = g->pair[up];
  g->pair[at] = pair;
}

static struct subword_pair pop(struct subword_merging *g) {
  const struct subword_pair top = g->pair[0], last = g->pair[--g->pairs];
  size_t at = 0;
  for (size_t down; (down = 2 * at + 1) < g->pairs; at = down) {
    if (down + 1 < g->pairs && is_less(&g->pair[down + 1], &g->pair[down])) down++;
    if (!is_less(&g->pair[down], &last)) break;
    g->pair[at] = g->pair[down];
  }
  g->pair[at] = last;
  return top;
}

static void offer(struct subword_merging *g, uint32_t at, size_t count) {
  const uint32_t next = g->link[at].next;
  if (next >= count) return;
  const int32_t left = g->symbol[at].id, right = g->symbol[next].id;
  const struct subword_merge *m = subword_find_merge(g->l, left, right);
  if (m) push(g, (struct subword_pair){m->rank, at, left, right});
}

static bool is_there(const struct subword_merging *g, const struct subword_pair *p, size_t count) {
  const uint32_t next = g->link[p->at].next;
  return g->symbol[p->at].length > 0 && next < count && g->symbol[p->at].id == p->left &&
         g->symbol[next].id == p->right;
}

static void merge_pair(struct subword_merging *g, const struct subword_pair *p, size_t count) {
  const uint32_t at = p->at, next = g->link[at].next, behind = g->link[next].next;
  g->symbol[at].id = subword_find_merge(g->l, p->left, p->right)->id;
  g->symbol[at].length += g->symbol[next].length;
  g->symbol[next].length = 0;
  g->link[at].next = behind;
  if (behind < count) g->link[behind].last = at;
  if (at > 0) offer(g, g->link[at].last, count);
  offer(g, at, count);
}

static size_t merge_many(const struct subword_model *l, struct subword_symbol *symbol, size_t count,
                         void *scratch, struct subword_work *w) {
  struct subword_merging g = {.l = l, .symbol = symbol, .pair = scratch};
  g.link = (struct subword_link *)(g.pair + 3 * count);
  for (size_t i = 0; i < count; i++)
    g.link[i] = (struct subword_link){i ? (uint32_t)i - 1 : 0, (uint32_t)i + 1};
  for (size_t i = 0; i < count && !subword_ends(w, 1); i++) offer(&g, (uint32_t)i, count);
  while (g.pairs > 0 && !(w && w->out->e->status) && !subword_ends(w, 1)) {
    const struct subword_pair p = pop(&g);
    if (is_there(&g, &p, count)) merge_pair(&g, &p, count);
  }
  size_t left = 0;
  for (size_t i = 0; i < count; i++)
    if (symbol[i].length) symbol[left++] = symbol[i];
  return left;
}

/* Each merge leaves one symbol less and two pairs more. */
size_t subword_merge_scratch(size_t count) {
  if (count <= FEW) return 0;
  return count * (3 * sizeof(struct subword_pair) + sizeof(struct subword_link));
}

size_t subword_merge_all(const struct subword_model *l, struct subword_symbol *symbol, size_t count,
                         void *scratch, struct subword_work *w) {
  return count <= FEW ? merge_few(l, symbol, count) : merge_many(l, symbol, count, scratch, w);
}
