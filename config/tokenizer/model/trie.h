/* trie: byte strings with a value each, found as beginnings of a text, byte by byte.
 *
 * A double array: a node and a byte lead to one place, which belongs to that node, or else no
 * string continues by that byte. There are places for all bytes of the last node. Immutable once
 * made. */
#ifndef CONFIG_TRIE_H
#define CONFIG_TRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

struct trie_node {
  int32_t base;  /* its child by a byte is at base + byte */
  int32_t check; /* its parent; -1: the place is free */
};

struct trie {
  struct trie_node *node;
  int32_t *value; /* [count] of the string that ends at each node; -1: none */
  size_t count;
};

struct trie_string {
  const char *bytes;
  size_t length; /* above 0 */
  int32_t value; /* not negative */
};

/* Sorts the strings; of equal ones the one with the greatest value is found. STATUS_OUT_OF_MEMORY,
 * or STATUS_CONFIG for too many nodes. */
enum status trie_init(struct trie *t, struct trie_string *string, size_t count, struct error *e);
void trie_done(struct trie *t);
size_t trie_bytes(const struct trie *t); /* of memory */

enum { TRIE_ROOT = 0 };

/* The child of `node` by this byte; -1: none. */
static inline int32_t trie_step(const struct trie *t, int32_t node, unsigned char byte) {
  const size_t to = (size_t)t->node[node].base + byte;
  return t->node[to].check == node ? (int32_t)to : -1;
}

/* The value of the longest string below `node` that a text begins with; -1: none. *found: the bytes
 * of the text that it has; *steps: how many bytes were read. */
int32_t trie_longest(const struct trie *t, int32_t node, const char *text, size_t length,
                     size_t *found, size_t *steps);

#endif
