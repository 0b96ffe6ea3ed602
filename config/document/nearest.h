/* nearest: which known name did the user mean?
 *
 * Candidates are offered one by one; the closest by edit distance is kept, the first on a tie. An
 * insertion, a deletion, a replacement and a swap of neighbors each cost one; case and the
 * difference between '-' and '_' cost nothing. At a distance above one, a name that contains the
 * other as a part comes before all others: `num_heads` is near `heads`; and a name that differs in
 * more than a third of its characters, rounded up, is not near. No name is copied: all must outlive
 * the struct. */
#ifndef CONFIG_NEAREST_H
#define CONFIG_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

struct nearest {
  const char *word; /* as the user wrote it */
  const char *name; /* the closest so far; NULL: none is near */
  size_t distance;  /* of `name` */
  unsigned rank;    /* of `name`; less is nearer, whatever the distance */
  bool any;         /* keep a name however far it is; set before one is offered */
};

void nearest_init(struct nearest *n, const char *word);
void nearest_offer(struct nearest *n, const char *candidate);

/* Writes the hint that follows the word in a message: ` (did you mean "NAME"?)`, or an empty string
 * if no name is near. Returns it. */
enum { NEAREST_HINT = 128 };
const char *nearest_hint(const struct nearest *n, char out[NEAREST_HINT]);

#endif
