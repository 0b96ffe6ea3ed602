/* heap: things in the order of a number, the least first; of equal ones the one that came first.
 *
 * A pairing heap: each thing brings its node, so that nothing is allocated. Adding takes constant
 * time, taking out the logarithm of the number of things, on average. */
#ifndef CORE_HEAP_H
#define CORE_HEAP_H

#include <stdint.h>

struct heap_node {
  double key;
  uint64_t entry;                 /* decides among equal keys */
  struct heap_node *child, *next; /* the first of those below it; the next one beside it */
  struct heap_node **link;        /* what points to it, unless it is the root */
};

struct heap {
  struct heap_node *root; /* the least; NULL: the heap is empty */
};

/* The caller has set the key and the entry. */
void heap_add(struct heap *h, struct heap_node *node);

void heap_remove(struct heap *h, struct heap_node *node); /* which is in this heap */

#endif
