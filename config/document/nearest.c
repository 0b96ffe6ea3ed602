/* nearest: edit distance between a word and the known names. */
#include "config/document/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/base/size.h"

enum { LONGEST = 64 }; /* characters that are compared: enough for a hint in a message */

void nearest_init(struct nearest *n, const char *word) { *n = (struct nearest){.word = word}; }

static char folded(char c) { return c == '-' ? '_' : (char)tolower((unsigned char)c); }

/* Optimal string alignment. Three rows of the usual table are kept, the third for swapped
 * neighbors. */
static size_t edit_distance(const char *a, const char *b) {
  size_t rows = strnlen(a, LONGEST), columns = strnlen(b, LONGEST);
  size_t table[3][LONGEST + 1] = {0};
  size_t *above2 = table[0], *above = table[1], *row = table[2];
  for (size_t j = 0; j <= columns; j++) row[j] = j;
  for (size_t i = 1; i <= rows; i++) {
    size_t *free_row = above2;
    above2 = above;
    above = row;
    row = free_row;
    row[0] = i;
    for (size_t j = 1; j <= columns; j++) {
      char x = folded(a[i - 1]), y = folded(b[j - 1]);
      size_t best = size_min(above[j], row[j - 1]) + 1;
      best = size_min(best, above[j - 1] + (x != y));
      if (i > 1 && j > 1 && x == folded(b[j - 2]) && folded(a[i - 2]) == y)
        best = size_min(best, above2[j - 2] + 1);
      row[j] = best;
    }
  }
  return row[columns];
}

/* Does `name` have `part` between underscores, or at an end? */
static bool has_part(const char *name, const char *part) {
  const size_t length = strlen(part);
  for (bool begins = true; *name; name++) {
    size_t same = 0;
    while (begins && same < length && name[same] && folded(name[same]) == folded(part[same]))
      same++;
    if (same > 0 && same == length && (!name[same] || folded(name[same]) == '_')) return true;
    begins = folded(*name) == '_';
  }
  return false;
}

void nearest_offer(struct nearest *n, const char *candidate) {
  enum { RANK_SLIP, RANK_PART, RANK_ALIKE, RANK_FAR } rank = RANK_FAR; /* the nearest first */
  const size_t distance = edit_distance(n->word, candidate);
  const size_t length = size_max(strnlen(n->word, LONGEST), strnlen(candidate, LONGEST));
  if (distance <= 1 && distance < length)
    rank = RANK_SLIP;
  else if (has_part(n->word, candidate) || has_part(candidate, n->word))
    rank = RANK_PART;
  else if (distance <= (length + 2) / 3)
    rank = RANK_ALIKE;
  if (rank == RANK_FAR && !n->any) return;
  if (n->name && (rank > n->rank || (rank == n->rank && distance >= n->distance))) return;
  *n = (struct nearest){n->word, candidate, distance, rank, n->any};
}

const char *nearest_hint(const struct nearest *n, char out[NEAREST_HINT]) {
  out[0] = '\0';
  if (n->name) snprintf(out, NEAREST_HINT, " (did you mean \"%.100s\"?)", n->name);
  return out;
}
