/* normalizer_edit: a change of a text from its beginning to its end, which copies nothing where
 * nothing changes.
 *
 * Bytes are replaced in the order in which they stand. What is between two replacements stays, and
 * so does what is behind the last: a text without one is left as it is. */
#ifndef CONFIG_NORMALIZER_EDIT_H
#define CONFIG_NORMALIZER_EDIT_H

#include "config/tokenizer/normalizer/passage.h"

struct normalizer_edit {
  struct passage *p;
  size_t done; /* bytes of the text up to here are put down or replaced */
  bool changed;
};

static inline struct normalizer_edit normalizer_edit_begin(struct passage *p) {
  return (struct normalizer_edit){.p = p};
}

/* Puts bytes in the place of those from `from` to before `to`, unless they are the same. */
void normalizer_edit_replace(struct normalizer_edit *edit, size_t from, size_t to,
                             const char *bytes, size_t length);

/* The same with several calls of passage_append between these two. */
void normalizer_edit_open(struct normalizer_edit *edit, size_t from);
void normalizer_edit_close(struct normalizer_edit *edit, size_t to);

/* The changed text is the passage's. */
void normalizer_edit_end(struct normalizer_edit *edit);

/* What becomes of each byte: another character of ASCII, or one of these. */
enum { NORMALIZER_EDIT_REMOVED = 0xfe, NORMALIZER_EDIT_OTHER = 0xff };
struct normalizer_edit_table {
  unsigned char of[256];
};

/* A table in which ASCII stays as it is, and all else is another's. */
void normalizer_edit_table_init(struct normalizer_edit_table *t);

/* Changes the text by a table, from `at` to before the first byte that is NORMALIZER_EDIT_OTHER, or
 * the end; returns where that is. */
size_t normalizer_edit_ascii(struct normalizer_edit *edit, const struct normalizer_edit_table *t,
                             size_t at);

#endif
