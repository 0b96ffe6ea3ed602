/* trie: byte strings with a number each, to be found as beginnings of a text, byte by byte.
 *
 * A double array: a node and a byte lead to one place, which either belongs to that node or means
 * that no string goes on so. Behind every node there are places for all bytes. Immutable once made.
 */
#ifndef CONFIG_TRIE_H
#define CONFIG_TRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

struct trie_node {
  int32_t base;  /* where its children begin */
  int32_t check; /* whose child it is; -1: nothing is here */
};

struct trie {
  struct trie_node *node;
  int32_t *value; /* [count] of the string that ends at a node; -1: none does */
  size_t count;
};

struct trie_string {
  const char *bytes;
  size_t length; /* above 0 */
  int32_t value; /* not negative */
};

/* Sorts the strings; of equal ones the last one counts. STATUS_OK, or no memory. */
enum status trie_init(struct trie *t, struct trie_string *string, size_t count, struct error *e);
void trie_done(struct trie *t);
size_t trie_bytes(const struct trie *t); /* of memory */

enum { TRIE_ROOT = 0 };

/* The node behind `node` by this byte; -1: there is none. */
static inline int32_t trie_step(const struct trie *t, int32_t node, unsigned char byte) {
  const size_t to = (size_t)t->node[node].base + byte;
  return t->node[to].check == node ? (int32_t)to : -1;
}

/* The number of the longest string with which a text begins, behind what led to `node`; -1: none.
 * *found is its length, without that; *steps how many bytes were looked at. */
int32_t trie_longest(const struct trie *t, int32_t node, const char *text, size_t length,
                     size_t *found, size_t *steps);

#endif
