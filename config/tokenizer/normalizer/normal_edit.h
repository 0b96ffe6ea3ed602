/* normal_edit: a change of a text from its beginning to its end, which copies nothing where nothing
 * changes.
 *
 * Bytes are replaced in the order in which they stand. What is between two replacements stays, and
 * so does what is behind the last: a text without one is left as it is. */
#ifndef CONFIG_NORMAL_EDIT_H
#define CONFIG_NORMAL_EDIT_H

#include "config/tokenizer/normalizer/passage.h"

struct normal_edit {
  struct passage *p;
  size_t done; /* bytes of the text up to here are put down or replaced */
  bool changed;
};

static inline struct normal_edit normal_edit_begin(struct passage *p) {
  return (struct normal_edit){.p = p};
}

/* Puts bytes in the place of those from `from` to before `to`, unless they are the same. */
void normal_edit_replace(struct normal_edit *edit, size_t from, size_t to, const char *bytes,
                         size_t length);

/* The same with several calls of passage_put between these two. */
void normal_edit_open(struct normal_edit *edit, size_t from);
void normal_edit_close(struct normal_edit *edit, size_t to);

/* The changed text is the passage's. */
void normal_edit_end(struct normal_edit *edit);

/* What becomes of each byte: another character of ASCII, or one of these. */
enum { NORMAL_EDIT_REMOVED = 0xfe, NORMAL_EDIT_OTHER = 0xff };
struct normal_edit_table {
  unsigned char of[256];
};

/* A table in which ASCII stays as it is, and all else is another's. */
void normal_edit_table_init(struct normal_edit_table *t);

/* Changes the text by a table, from `at` to before the first byte that is NORMAL_EDIT_OTHER, or the
 * end; returns where that is. */
size_t normal_edit_ascii(struct normal_edit *edit, const struct normal_edit_table *t, size_t at);

#endif
