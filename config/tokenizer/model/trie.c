/* trie: makes double arrays of strings. */
#include "config/tokenizer/model/trie.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/size.h"

enum { BYTES = 256, ROOTLESS = INT32_MAX };

/* Strings that begin alike, by so many bytes, and the node where they meet. */
struct trie_stretch {
  size_t begin, end, depth;
  int32_t node;
};

/* What is being made. Places without a node are a list in their order, which the search for places
 * goes through from `from` on: those before it have been tried in vain too often. */
struct trie_making {
  struct trie *t;
  const struct trie_string *string;
  int32_t *next, *last; /* [t->count]; -1: none */
  int32_t from, tail;
  struct trie_stretch *stretch; /* still to be made: a stack */
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

/* `*array` has room for so many things; false: no memory. */
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

/* A node takes a place. */
static void occupy(struct trie_making *m, int32_t at, int32_t parent) {
  const int32_t next = m->next[at], last = m->last[at];
  if (last >= 0) m->next[last] = next;
  if (next >= 0) m->last[next] = last;
  if (m->tail == at) m->tail = last;
  if (m->from == at) m->from = next;
  m->t->node[at].check = parent;
}

static bool fits(const struct trie_making *m, int32_t base, const unsigned char *byte,
                 size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    if (m->t->node[base + byte[i]].check >= 0) return false;
  return true;
}

/* A base from which the places of all children are free, and all others exist; -1: no memory. */
static int32_t find_base(struct trie_making *m, const unsigned char *byte, size_t bytes) {
  enum { TRIES = 32 };
  for (int32_t at = m->from, tries = 0; at >= 0; at = m->next[at], tries++) {
    const int32_t base = at - byte[0];
    if (tries == TRIES) m->from = at;
    if (base < 0) continue;
    if ((size_t)base + BYTES > m->t->count) break;
    if (fits(m, base, byte, bytes)) return base;
  }
  const size_t base = m->t->count;
  return grow(m, base + size_max(base, BYTES)) ? (int32_t)base : -1;
}

/* --- nodes --- */

static bool push(struct trie_making *m, const struct trie_stretch *s) {
  if (m->stretches == m->room) {
    const size_t room = 2 * m->room + BYTES;
    if (!resize(m, &m->stretch, room, sizeof *m->stretch)) return false;
    m->room = room;
  }
  m->stretch[m->stretches++] = *s;
  return true;
}

/* The end of the strings that go on by the same byte as the first one. */
static size_t find_end(const struct trie_making *m, const struct trie_stretch *s, size_t begin) {
  const char byte = m->string[begin].bytes[s->depth];
  size_t end = begin + 1;
  while (end < s->end && m->string[end].bytes[s->depth] == byte) end++;
  return end;
}

/* Gives the node of a stretch its children. */
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
    if (!push(m, &(struct trie_stretch){i, end, s->depth + 1, node})) return false;
  }
  return true;
}

/* Gives back the places behind the last node, but for those that a step may look at. */
static void shrink(struct trie *t) {
  size_t count = t->count;
  while (count > BYTES && t->node[count - 1 - BYTES].check < 0) count--;
  void *node = realloc(t->node, count * sizeof *t->node);
  if (node) t->node = node;
  void *value = realloc(t->value, count * sizeof *t->value);
  if (value) t->value = value;
  t->count = count;
}

enum status trie_init(struct trie *t, struct trie_string *string, size_t count, struct error *e) {
  struct trie_making m = {.t = t, .string = string, .from = -1, .tail = -1, .e = e};
  *t = (struct trie){0};
  if (count) qsort(string, count, sizeof *string, compare);
  bool good = grow(&m, 2 * BYTES);
  if (good) {
    occupy(&m, TRIE_ROOT, ROOTLESS);
    good = push(&m, &(struct trie_stretch){0, count, 0, TRIE_ROOT});
  }
  while (good && m.stretches > 0) {
    struct trie_stretch s = m.stretch[--m.stretches];
    good = make_children(&m, &s);
  }
  free(m.next);
  free(m.last);
  free(m.stretch);
  if (good) shrink(t);
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
