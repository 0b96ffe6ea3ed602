/* normalizer_letters: the characters that a few of a text's become: decomposed, put in canonical
 * order, composed, and then put in the place of those.
 *
 * It belongs to one step of one text. A few characters lie in it, many in memory that the passage
 * lends. */
#ifndef CONFIG_NORMALIZER_LETTERS_H
#define CONFIG_NORMALIZER_LETTERS_H

#include "config/tokenizer/normalizer/normalizer_edit.h"

struct normalizer_letter {
  uint32_t c;        /* NORMALIZER_LETTERS_NONE: was removed, but parts the marks around it */
  uint32_t from, to; /* the bytes of the text that it came from */
  uint8_t order;     /* canonical combining class; 0: none, marks do not pass it */
};

#define NORMALIZER_LETTERS_NONE UINT32_MAX

enum { NORMALIZER_LETTERS_FEW = 32 };

struct normalizer_letters {
  struct normalizer_edit *edit;
  struct normalizer_letter *letter;
  size_t count, room;
  struct normalizer_letter few[NORMALIZER_LETTERS_FEW];
};

void normalizer_letters_init(struct normalizer_letters *l, struct normalizer_edit *edit);

/* Without memory it is left out, and the passage's error says so. */
void normalizer_letters_add(struct normalizer_letters *l, const struct normalizer_letter *letter);

/* Sorts the marks between two letters by their class; those of one class stay as they are. */
void normalizer_letters_sort(struct normalizer_letters *l);

/* Composes what is sorted. */
void normalizer_letters_compose(struct normalizer_letters *l);

/* Puts them in the place of the bytes from `from` to before `to`; then there are none. */
void normalizer_letters_put(struct normalizer_letters *l, size_t from, size_t to);

#endif
