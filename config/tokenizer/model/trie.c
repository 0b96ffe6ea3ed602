/* trie: makes a double array from strings. */
#include "config/tokenizer/model/trie.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/size.h"

enum { BYTES = 256, ROOTLESS = INT32_MAX };

/* Strings with the same first `depth` bytes, and the node of these bytes. */
struct trie_stretch {
  size_t begin, end, depth;
  int32_t node;
};

/* A trie that is being made. Free places are a doubly linked list in their order. The search for
 * places begins at `from`: those before it have failed too often. */
struct trie_making {
  struct trie *t;
  const struct trie_string *string;
  int32_t *next, *last; /* [t->count]; -1: none */
  int32_t from, tail;
  struct trie_stretch *stretch; /* [stretches] a stack of those that still need children */
  size_t stretches, room;
  struct error *e;
};

static int compare(const void *a, const void *b) {
  const struct trie_string *x = a, *y = b;
  const int order = memcmp(x->bytes, y->bytes, size_min(x->length, y->length));
  if (order) return order;
  if (x->length != y->length) return x->length < y->length ? -1 : 1;
  return x->value < y->value ? -1 : x->value > y->value;
}

/* --- places --- */

/* Resizes *array to `count` items; false: no memory. */
static bool resize(struct trie_making *m, void *array, size_t count, size_t size) {
  void **at = array, *moved = realloc(*at, count * size);
  if (moved) *at = moved;
  if (!moved) error_no_memory(m->e);
  return moved;
}

static bool grow(struct trie_making *m, size_t count) {
  struct trie *t = m->t;
  if (count > INT32_MAX / 2) {
    error_set(m->e, STATUS_CONFIG, "the vocabulary is too large");
    return false;
  }
  if (!resize(m, &t->node, count, sizeof *t->node) ||
      !resize(m, &t->value, count, sizeof *t->value) ||
      !resize(m, &m->next, count, sizeof *m->next) || !resize(m, &m->last, count, sizeof *m->last))
    return false;
  for (size_t i = t->count; i < count; i++) {
    t->node[i] = (struct trie_node){0, -1};
    t->value[i] = -1;
    m->next[i] = -1;
    m->last[i] = m->tail;
    if (m->tail >= 0) m->next[m->tail] = (int32_t)i;
    if (m->from < 0) m->from = (int32_t)i;
    m->tail = (int32_t)i;
  }
  t->count = count;
  return true;
}

/* Makes a free place the child of a node. */
static void occupy(struct trie_making *m, int32_t at, int32_t parent) {
  const int32_t next = m->next[at], last = m->last[at];
  if (last >= 0) m->next[last] = next;
  if (next >= 0) m->last[next] = last;
  if (m->tail == at) m->tail = last;
  if (m->from == at) m->from = next;
  m->t->node[at].check = parent;
}

/* A base whose places are free for all these children, and exist for all bytes; -1: no memory. */
static int32_t find_base(struct trie_making *m, const unsigned char *byte, size_t bytes) {
  enum { TRIES = 32 };
  for (int32_t at = m->from, tries = 0; at >= 0; at = m->next[at], tries++) {
    const int32_t base = at - byte[0];
    if (tries == TRIES) m->from = at;
    if (base < 0) continue;
    if ((size_t)base + BYTES > m->t->count) break;
    size_t free = 0;
    while (free < bytes && m->t->node[base + byte[free]].check < 0) free++;
    if (free == bytes) return base;
  }
  const size_t base = m->t->count;
  return grow(m, base + size_max(base, BYTES)) ? (int32_t)base : -1;
}

/* --- nodes --- */

static bool push(struct trie_making *m, struct trie_stretch s) {
  if (m->stretches == m->room) {
    const size_t room = 2 * m->room + BYTES;
    if (!resize(m, &m->stretch, room, sizeof *m->stretch)) return false;
    m->room = room;
  }
  m->stretch[m->stretches++] = s;
  return true;
}

/* The end of the strings whose next byte is the same as that of the one at `begin`. */
static size_t find_end(const struct trie_making *m, const struct trie_stretch *s, size_t begin) {
  const char byte = m->string[begin].bytes[s->depth];
  size_t end = begin + 1;
  while (end < s->end && m->string[end].bytes[s->depth] == byte) end++;
  return end;
}

/* Makes the children of a stretch's node, and pushes their stretches. */
static bool make_children(struct trie_making *m, struct trie_stretch *s) {
  unsigned char byte[BYTES];
  size_t bytes = 0;
  for (; s->begin < s->end && m->string[s->begin].length == s->depth; s->begin++)
    m->t->value[s->node] = m->string[s->begin].value;
  for (size_t i = s->begin; i < s->end; i = find_end(m, s, i))
    byte[bytes++] = (unsigned char)m->string[i].bytes[s->depth];
  if (bytes == 0) return true;
  const int32_t base = find_base(m, byte, bytes);
  if (base < 0) return false;
  m->t->node[s->node].base = base;
  for (size_t i = 0; i < bytes; i++) occupy(m, base + byte[i], s->node);
  for (size_t i = s->begin, end; i < s->end; i = end) {
    end = find_end(m, s, i);
    const int32_t node = base + (unsigned char)m->string[i].bytes[s->depth];
    if (!push(m, (struct trie_stretch){i, end, s->depth + 1, node})) return false;
  }
  return true;
}

enum status trie_init(struct trie *t, struct trie_string *string, size_t count, struct error *e) {
  struct trie_making m = {.t = t, .string = string, .from = -1, .tail = -1, .e = e};
  *t = (struct trie){0};
  if (count) qsort(string, count, sizeof *string, compare);
  bool good = grow(&m, 2 * BYTES);
  if (good) {
    occupy(&m, TRIE_ROOT, ROOTLESS);
    good = push(&m, (struct trie_stretch){0, count, 0, TRIE_ROOT});
  }
  while (good && m.stretches > 0) {
    struct trie_stretch s = m.stretch[--m.stretches];
    good = make_children(&m, &s);
  }
  free(m.next);
  free(m.last);
  free(m.stretch);
  if (!good) return e->status;
  /* The places after the last node are freed, except those that trie_step may read. */
  while (t->count > BYTES && t->node[t->count - 1 - BYTES].check < 0) t->count--;
  void *node = realloc(t->node, t->count * sizeof *t->node);
  if (node) t->node = node;
  void *value = realloc(t->value, t->count * sizeof *t->value);
  if (value) t->value = value;
  return e->status;
}

void trie_done(struct trie *t) {
  free(t->node);
  free(t->value);
  *t = (struct trie){0};
}

size_t trie_bytes(const struct trie *t) { return t->count * (sizeof *t->node + sizeof *t->value); }

int32_t trie_longest(const struct trie *t, int32_t node, const char *text, size_t length,
                     size_t *found, size_t *steps) {
  int32_t value = -1;
  size_t i = 0;
  for (; i < length; i++) {
    node = trie_step(t, node, (unsigned char)text[i]);
    if (node < 0) break;
    if (t->value[node] < 0) continue;
    value = t->value[node];
    *found = i + 1;
  }
  *steps = i + 1;
  return value;
}
