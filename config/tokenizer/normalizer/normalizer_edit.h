/* normalizer_edit: changes a text from its beginning to its end, and copies nothing where nothing
 * changes.
 *
 * Bytes are replaced in their order. The bytes between two replacements and after the last stay; a
 * text without a replacement is left as it is. */
#ifndef CONFIG_NORMALIZER_EDIT_H
#define CONFIG_NORMALIZER_EDIT_H

#include "config/tokenizer/normalizer/passage.h"

struct normalizer_edit {
  struct passage *p;
  size_t done; /* how many bytes of the text are copied or replaced */
  bool changed;
};

static inline struct normalizer_edit normalizer_edit_begin(struct passage *p) {
  return (struct normalizer_edit){.p = p};
}

/* Replaces the bytes from `from` to before `to`, unless the new ones are the same. */
void normalizer_edit_replace(struct normalizer_edit *edit, size_t from, size_t to,
                             const char *bytes, size_t length);

/* The same for several calls of passage_append, between these two. */
void normalizer_edit_open(struct normalizer_edit *edit, size_t from);
void normalizer_edit_close(struct normalizer_edit *edit, size_t to);

/* Makes the changed text the passage's. */
void normalizer_edit_end(struct normalizer_edit *edit);

/* Each byte becomes an ASCII character, or is one of these. */
enum { NORMALIZER_EDIT_REMOVED = 0xfe, NORMALIZER_EDIT_OTHER = 0xff };
struct normalizer_edit_table {
  unsigned char of[256];
};

/* ASCII stays as it is, and every other byte is NORMALIZER_EDIT_OTHER. */
void normalizer_edit_table_init(struct normalizer_edit_table *t);

/* Changes the text by a table from `at` on; returns the place of the first byte that is
 * NORMALIZER_EDIT_OTHER, or the length of the text. */
size_t normalizer_edit_ascii(struct normalizer_edit *edit, const struct normalizer_edit_table *t,
                             size_t at);

/* The same from *at on, which becomes that place; false: the end, or passage_is_over. */
static inline bool normalizer_edit_next(struct normalizer_edit *edit,
                                        const struct normalizer_edit_table *t, size_t *at) {
  *at = normalizer_edit_ascii(edit, t, *at);
  return *at < edit->p->now.length && !passage_is_over(edit->p, *at);
}

#endif
