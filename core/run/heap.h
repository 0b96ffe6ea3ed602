/* heap: things ordered by a number, the least first; a tie is ordered by entry.
 *
 * A pairing heap. A node is a member of its thing, so nothing is allocated. Adding takes constant
 * time, removing O(log n) on average. */
#ifndef CORE_HEAP_H
#define CORE_HEAP_H

#include <stdint.h>

struct heap_node {
  double key;
  uint64_t entry;                 /* orders equal keys */
  struct heap_node *child, *next; /* its first child; its next sibling */
  struct heap_node **link;        /* the pointer to this node; unused for the root */
};

struct heap {
  struct heap_node *root; /* the least; NULL: the heap is empty */
};

/* Adds a node, whose key and entry are set. */
void heap_add(struct heap *h, struct heap_node *node);

/* Removes a node, which is in this heap. */
void heap_remove(struct heap *h, struct heap_node *node);

#endif
