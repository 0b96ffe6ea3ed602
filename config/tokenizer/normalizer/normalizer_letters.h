/* normalizer_letters: a group of decomposed characters, which is sorted into canonical order,
 * composed, and then written in the place of the characters that it came from.
 *
 * It belongs to one step of one text. A few letters lie in it, many in the passage's scratch. */
#ifndef CONFIG_NORMALIZER_LETTERS_H
#define CONFIG_NORMALIZER_LETTERS_H

#include "config/tokenizer/normalizer/normalizer_edit.h"

struct normalizer_letter {
  uint32_t c;        /* NORMALIZER_LETTERS_NONE: removed, but separates the marks around it */
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

/* Without memory the letter is lost, and the passage's error says so. */
void normalizer_letters_add(struct normalizer_letters *l, const struct normalizer_letter *letter);

/* Sorts the marks between two bases by their class; marks of one class keep their order. */
void normalizer_letters_sort(struct normalizer_letters *l);

/* Composes sorted letters. */
void normalizer_letters_compose(struct normalizer_letters *l);

/* Replaces the bytes from `from` to before `to` by the letters, and empties the list. */
void normalizer_letters_write(struct normalizer_letters *l, size_t from, size_t to);

#endif
