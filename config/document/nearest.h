/* nearest: which known name did the user mean?
 *
 * Candidates are offered one by one; the closest by edit distance (an insertion, a deletion, a
 * replacement or a swap of neighbours each cost one) is kept, the first on a tie. Beyond a distance
 * of one, a name that has the other as a part comes before those that have not: `num_heads` is near
 * `heads`; and one that differs in more than a third of its characters, rounded up, is not near. Case and
 * the difference between '-' and '_' cost nothing. Names must outlive it: none is copied. */
#ifndef CONFIG_NEAREST_H
#define CONFIG_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

struct nearest {
  const char *word; /* what was written */
  const char *name; /* the closest so far; NULL: none is near */
  size_t distance;  /* of `name` */
  unsigned rank;    /* of `name`; less is nearer, whatever the distance */
  bool any;         /* a name is kept however far it is; set before one is offered */
};

void nearest_init(struct nearest *n, const char *word);
void nearest_offer(struct nearest *n, const char *candidate);

/* Writes what a message says after the word: ` (did you mean "NAME"?)`, or nothing where no name
 * is near. Returns it. */
enum { NEAREST_HINT = 128 };
const char *nearest_hint(const struct nearest *n, char out[NEAREST_HINT]);

#endif
