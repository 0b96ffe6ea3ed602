/* heap: a pairing heap, after Fredman, Sedgewick, Sleator and Tarjan (1986). */
#include "core/run/heap.h"

#include <stdbool.h>
#include <stddef.h>

static bool comes_first(const struct heap_node *a, const struct heap_node *b) {
  return a->key < b->key || (a->key == b->key && a->entry < b->entry);
}

/* Makes the later of two roots a child of the other and returns the other; each may be NULL. */
static struct heap_node *meld(struct heap_node *a, struct heap_node *b) {
  if (!a || !b) return a ? a : b;
  if (comes_first(b, a)) {
    struct heap_node *later = a;
    a = b;
    b = later;
  }
  b->next = a->child;
  b->link = &a->child;
  if (a->child) a->child->link = &b->next;
  a->child = b;
  a->next = NULL;
  return a;
}

/* Melds siblings into one root: first in pairs, then all pairs from the last one on, which keeps
 * the heap flat. */
static struct heap_node *meld_all(struct heap_node *first) {
  struct heap_node *pairs = NULL, *root = NULL;
  while (first) {
    struct heap_node *a = first, *b = a->next;
    first = b ? b->next : NULL;
    a->next = NULL;
    a = meld(a, b);
    a->next = pairs;
    pairs = a;
  }
  while (pairs) {
    struct heap_node *next = pairs->next;
    root = meld(root, pairs);
    pairs = next;
  }
  return root;
}

void heap_add(struct heap *h, struct heap_node *node) {
  node->child = node->next = NULL;
  h->root = meld(h->root, node);
}

void heap_remove(struct heap *h, struct heap_node *node) {
  struct heap_node *below = meld_all(node->child);
  if (node == h->root) {
    h->root = below;
    return;
  }
  *node->link = node->next;
  if (node->next) node->next->link = node->link;
  h->root = meld(h->root, below);
}
