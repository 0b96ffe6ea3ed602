/* normal_letters: the characters that a few of a text's become: decomposed, put in canonical order,
 * composed, and then put in the place of those.
 *
 * It belongs to one step of one text. A few characters lie in it, many in memory that the passage
 * lends. */
#ifndef CONFIG_NORMAL_LETTERS_H
#define CONFIG_NORMAL_LETTERS_H

#include "config/tokenizer/normalizer/normal_edit.h"

struct normal_letter {
  uint32_t c;        /* NORMAL_LETTERS_NONE: was removed, but parts the marks around it */
  uint32_t from, to; /* the bytes of the text that it came from */
  uint8_t order;     /* canonical combining class; 0: none, marks do not pass it */
};

#define NORMAL_LETTERS_NONE UINT32_MAX

enum { NORMAL_LETTERS_FEW = 32 };

struct normal_letters {
  struct normal_edit *edit;
  struct normal_letter *letter;
  size_t count, room;
  struct normal_letter few[NORMAL_LETTERS_FEW];
};

void normal_letters_init(struct normal_letters *l, struct normal_edit *edit);

/* Without memory it is left out, and the passage's error says so. */
void normal_letters_add(struct normal_letters *l, const struct normal_letter *letter);

/* Sorts the marks between two letters by their class; those of one class stay as they are. */
void normal_letters_sort(struct normal_letters *l);

/* Composes what is sorted. */
void normal_letters_compose(struct normal_letters *l);

/* Puts them in the place of the bytes from `from` to before `to`; then there are none. */
void normal_letters_put(struct normal_letters *l, size_t from, size_t to);

#endif
