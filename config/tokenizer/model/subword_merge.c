/* subword_merge: the merges of a BPE: pairs of pieces that become one; and how the symbols of a
 * word are merged. */
#include <stdlib.h>
#include <string.h>

#include "config/tokenizer/model/byte_level.h"
#include "config/tokenizer/model/subword_parts.h"

/* The slot of a pair, or the empty one where it belongs. */
static struct subword_merge *find_slot(const struct subword_model *m, int32_t left, int32_t right) {
  enum { HALF = 32 };
  const uint64_t both = (uint64_t)(uint32_t)left << HALF | (uint32_t)right;
  const uint64_t hash = both * 0x9e3779b97f4a7c15u;
  for (size_t at = (hash ^ hash >> HALF) >> 7 & (m->merges - 1);; at = (at + 1) & (m->merges - 1)) {
    struct subword_merge *merge = &m->merge[at];
    if (merge->left < 0 || (merge->left == left && merge->right == right)) return merge;
  }
}

/* The merge of two neighbors; NULL: none. */
static const struct subword_merge *find_merge(const struct subword_model *m, int32_t left,
                                              int32_t right) {
  const struct subword_merge *merge = find_slot(m, left, right);
  return merge->left < 0 ? NULL : merge;
}

/* --- reading --- */

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

/* Both sides as the vocabulary has them, one after the other. */
struct subword_sides {
  char *bytes; /* [room] */
  size_t room;
  size_t left, right; /* bytes of each; SIZE_MAX: a character stands for no byte */
};

static bool convert_sides(const struct subword_model *m, const struct subword_side side[2],
                          struct subword_sides *s) {
  const size_t needed = side[0].length + side[1].length;
  if (needed >= s->room) { /* also if both sides are empty */
    char *moved = realloc(s->bytes, 2 * needed + 1);
    if (!moved) return false;
    s->bytes = moved;
    s->room = 2 * needed + 1;
  }
  s->left = side[0].length;
  s->right = side[1].length;
  if (m->raw) {
    s->left = byte_level_decode(side[0].text, side[0].length, s->bytes);
    if (s->left == SIZE_MAX) return true;
    s->right = byte_level_decode(side[1].text, side[1].length, s->bytes + s->left);
  } else {
    memcpy(s->bytes, side[0].text, s->left);
    memcpy(s->bytes + s->left, side[1].text, s->right);
  }
  return true;
}

static enum status read_merge(struct subword_model *m, const json_t *one, size_t rank,
                              struct subword_sides *s, struct error *e) {
  const struct vocabulary *v = &m->vocabulary;
  const size_t inside = m->inside.length;
  struct subword_side side[2];
  if (!read_sides(one, side))
    return error_set(e, STATUS_CONFIG, "merges: %zu: needs two pieces, \"a b\" or [\"a\",\"b\"]",
                     rank);
  if (!convert_sides(m, side, s)) return error_no_memory(e);
  /* No part of a raw word has characters that stand for no byte: such a merge is ignored. */
  if (s->left == SIZE_MAX || s->right == SIZE_MAX) return STATUS_OK;
  struct subword_merge merge = {.left = vocabulary_find(v, s->bytes, s->left),
                                .right = vocabulary_find(v, s->bytes + s->left, s->right),
                                .rank = (uint32_t)rank,
                                .id = -1};
  if (merge.left >= 0 && merge.right >= 0 && s->right >= inside) {
    memmove(s->bytes + s->left, s->bytes + s->left + inside, s->right - inside);
    merge.id = vocabulary_find(v, s->bytes, s->left + s->right - inside);
  }
  if (merge.id < 0)
    return error_set(e, STATUS_CONFIG,
                     "merges: %zu: \"%.40s\": a piece of it, or what it becomes, is not in the "
                     "vocabulary",
                     rank, side[0].text);
  subword_add_merge(m, merge);
  return STATUS_OK;
}

enum status subword_make_merges(struct subword_model *m, size_t count, struct error *e) {
  m->merges = 2;
  while (m->merges < 2 * count) m->merges *= 2;
  m->merge = malloc(m->merges * sizeof *m->merge);
  if (!m->merge) return error_no_memory(e);
  for (size_t i = 0; i < m->merges; i++) m->merge[i].left = -1;
  return STATUS_OK;
}

void subword_add_merge(struct subword_model *m, struct subword_merge merge) {
  *find_slot(m, merge.left, merge.right) = merge;
}

enum status subword_read_merges(struct subword_model *m, const json_t *json, struct error *e) {
  json_t *list = json_object_get(json, "merges"), *one;
  struct subword_sides s = {0};
  size_t rank;
  if (!json_is_array(list)) return error_set(e, STATUS_CONFIG, "merges: needs a list of pairs");
  if (subword_make_merges(m, json_array_size(list), e)) return e->status;
  json_array_foreach(list, rank, one) {
    if (read_merge(m, one, rank, &s, e)) break;
  }
  free(s.bytes);
  return e->status;
}

/* --- few symbols --- */

/* Up to FEW symbols, the least rank is searched for anew after each merge. */
enum { FEW = 48 };
#define NEVER UINT32_MAX

/* The rank of the pair that begins with this symbol, and the token that it becomes. */
static uint32_t rank_of(const struct subword_model *m, const struct subword_symbol *symbol,
                        int32_t *id) {
  const struct subword_merge *merge = find_merge(m, symbol[0].id, symbol[1].id);
  if (!merge) return NEVER;
  *id = merge->id;
  return merge->rank;
}

static size_t merge_few(const struct subword_model *m, struct subword_symbol *symbol,
                        size_t count) {
  uint32_t rank[FEW];
  int32_t id[FEW];
  for (size_t i = 0; i + 1 < count; i++) rank[i] = rank_of(m, symbol + i, &id[i]);
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
    if (at > 0) rank[at - 1] = rank_of(m, symbol + at - 1, &id[at - 1]);
    if (at + 1 < count) rank[at] = rank_of(m, symbol + at, &id[at]);
  }
  return count;
}

/* --- many symbols --- */

/* A pair that may be merged, unless one of its symbols has changed since. */
struct subword_pair {
  uint32_t rank, at; /* of the left symbol */
  int32_t left, right;
};

/* The remaining neighbors of a symbol: a doubly linked list. */
struct subword_link {
  uint32_t last, next;
};

struct subword_merging {
  const struct subword_model *m;
  struct subword_symbol *symbol; /* a length of 0: merged into the one before */
  struct subword_link *link;
  struct subword_pair *pair; /* [pairs] a heap, the least first */
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

/* Pushes the pair that begins with the symbol at `at`, if it can be merged. */
static void push_pair(struct subword_merging *g, uint32_t at, size_t count) {
  const uint32_t next = g->link[at].next;
  if (next >= count) return;
  const int32_t left = g->symbol[at].id, right = g->symbol[next].id;
  const struct subword_merge *merge = find_merge(g->m, left, right);
  if (merge) push(g, (struct subword_pair){merge->rank, at, left, right});
}

/* Each merge leaves one symbol less and pushes at most two pairs. */
size_t subword_merge_scratch(size_t count) {
  if (count <= FEW) return 0;
  return count * (3 * sizeof(struct subword_pair) + sizeof(struct subword_link));
}

static size_t merge_many(const struct subword_model *m, struct subword_symbol *symbol, size_t count,
                         void *scratch, struct subword_work *w) {
  struct subword_merging g = {.m = m, .symbol = symbol, .pair = scratch};
  g.link = (struct subword_link *)(g.pair + 3 * count);
  for (size_t i = 0; i < count; i++)
    g.link[i] = (struct subword_link){i ? (uint32_t)i - 1 : 0, (uint32_t)i + 1};
  for (size_t i = 0; i < count && !subword_is_over(w, 1); i++) push_pair(&g, (uint32_t)i, count);
  while (g.pairs > 0 && !(w && w->out->e->status) && !subword_is_over(w, 1)) {
    const struct subword_pair p = pop(&g);
    const uint32_t at = p.at, next = g.link[at].next;
    if (symbol[at].length == 0 || next >= count || symbol[at].id != p.left ||
        symbol[next].id != p.right)
      continue;
    const uint32_t after = g.link[next].next;
    symbol[at].id = find_merge(m, p.left, p.right)->id;
    symbol[at].length += symbol[next].length;
    symbol[next].length = 0;
    g.link[at].next = after;
    if (after < count) g.link[after].last = at;
    if (at > 0) push_pair(&g, g.link[at].last, count);
    push_pair(&g, at, count);
  }
  size_t left = 0;
  for (size_t i = 0; i < count; i++)
    if (symbol[i].length) symbol[left++] = symbol[i];
  return left;
}

size_t subword_merge_all(const struct subword_model *m, struct subword_symbol *symbol, size_t count,
                         void *scratch, struct subword_work *w) {
  return count <= FEW ? merge_few(m, symbol, count) : merge_many(m, symbol, count, scratch, w);
}
