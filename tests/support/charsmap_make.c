/* charsmap_make: a trie in which each node has a block of its own for what follows it. */
#include "tests/support/charsmap_make.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"

enum { NODES = 64, BLOCK = 256, UNITS = NODES * BLOCK, TEXTS = 1000 };

struct charsmap_made {
  uint32_t unit[1 + UNITS]; /* before them, their bytes */
  char text[TEXTS];
  size_t nodes, length;
};

/* The two ways to write how far a node's followers are take turns. Their block begins at a place
 * whose lowest byte is the node's own in the second, which has no room for it. */
static size_t open_node(struct charsmap_made *m, size_t place) {
  uint32_t *unit = &m->unit[1 + place];
  const size_t block = ++m->nodes * BLOCK;
  must(m->nodes < NODES);
  const bool far = m->nodes % 2;
  const size_t base = far ? block | (place % BLOCK) : block, distance = place ^ base;
  *unit |= (uint32_t)(far ? distance / BLOCK << 10 | 1 << 9 : distance << 10);
  return base;
}

/* Where what follows the unit at a place is. */
static size_t base_of(struct charsmap_made *m, size_t place) {
  const uint32_t unit = m->unit[1 + place];
  if (unit >> 9 == 0) return open_node(m, place);
  return place ^ (size_t)(unit >> 10) << ((unit >> 6) & 8);
}

static void add_rule(struct charsmap_made *m, const struct charsmap_rule *rule) {
  size_t place = 0;
  for (const char *at = rule->from; *at; at++) {
    place = base_of(m, place) ^ (unsigned char)*at;
    m->unit[1 + place] |= (unsigned char)*at;
  }
  const size_t base = base_of(m, place);
  m->unit[1 + place] |= 1 << 8;
  m->unit[1 + base] = (uint32_t)m->length | UINT32_C(1) << 31;
  must(m->length + strlen(rule->to) < TEXTS);
  memcpy(m->text + m->length, rule->to, strlen(rule->to) + 1);
  m->length += strlen(rule->to) + 1;
}

char *charsmap_base64(const void *bytes, size_t size) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const unsigned char *from = bytes;
  char *text = malloc(size / 3 * 4 + 5), *to = text;
  must(text);
  for (size_t i = 0; i < size; i += 3) {
    uint32_t three = 0;
    for (size_t j = 0; j < 3; j++) three = three << 8 | (i + j < size ? from[i + j] : 0u);
    for (size_t j = 0; j < 4; j++)
      *to++ = j > 0 && i + j - 1 >= size ? '=' : digits[three >> (18 - 6 * j) & 63];
  }
  *to = '\0';
  return text;
}

char *charsmap_make(const struct charsmap_rule *rule, size_t count) {
  struct charsmap_made *m = calloc(1, sizeof *m);
  must(m);
  for (size_t i = 0; i < count; i++) add_rule(m, &rule[i]);
  const size_t units = (m->nodes + 1) * BLOCK, bytes = (1 + units) * sizeof *m->unit;
  m->unit[0] = (uint32_t)(units * sizeof *m->unit);
  char *whole = malloc(bytes + m->length);
  must(whole);
  memcpy(whole, m->unit, bytes);
  memcpy(whole + bytes, m->text, m->length);
  char *text = charsmap_base64(whole, bytes + m->length);
  free(whole);
  free(m);
  return text;
}
