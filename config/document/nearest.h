/* nearest: which known name did the user mean?
 *
 * Candidates are offered one by one; the closest by edit distance (an insertion, a deletion, a
 * replacement or a swap of neighbours each cost one) is kept, the first on a tie. Beyond a distance
 * of one, a name that has the other as a part comes before those that have not: `num_heads` is near
 * `heads`. Case and the difference between '-' and '_' cost nothing. Nothing is copied: names must
 * outlive the struct. */
#ifndef CONFIG_NEAREST_H
#define CONFIG_NEAREST_H

#include <stddef.h>

struct nearest {
  const char *word; /* what was written */
  const char *name; /* the closest so far, or NULL */
  size_t distance;  /* of `name` */
  unsigned rank;    /* of `name`; less is nearer, whatever the distance */
};

void nearest_init(struct nearest *n, const char *word);
void nearest_offer(struct nearest *n, const char *candidate);

#endif
