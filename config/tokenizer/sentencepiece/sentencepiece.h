/* sentencepiece: a model of sentencepiece as its file (a ModelProto) has it: spiece.model,
 * tokenizer.model, *.spm.
 *
 * Immutable once it is read. */
#ifndef CONFIG_SENTENCEPIECE_H
#define CONFIG_SENTENCEPIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/status.h"

/* The numbers are the file's. */
enum sentencepiece_type {
  SENTENCEPIECE_NORMAL = 1,
  SENTENCEPIECE_UNKNOWN = 2,
  SENTENCEPIECE_CONTROL = 3, /* found in no text, and decoded to none */
  SENTENCEPIECE_USER = 4,    /* a text that is always one token */
  SENTENCEPIECE_UNUSED = 5,
  SENTENCEPIECE_BYTE = 6 /* "<0x00>" to "<0xFF>" */
};

struct sentencepiece_text {
  const char *bytes; /* in the file, or static */
  size_t length;
};

struct sentencepiece_piece {
  struct sentencepiece_text text; /* not empty; UTF-8 */
  float score;
  enum sentencepiece_type type;
};

struct sentencepiece {
  struct sentencepiece_piece *piece; /* [count] owned; one of them is the unknown one */
  size_t count, room;
  size_t unknown; /* its place */
  bool bpe;       /* else Unigram */
  bool fallback;  /* whether an unknown character becomes the pieces of its bytes: all 256 exist */
  bool suffix;    /* whether the mark of a blank ends a word, and does not begin it */
  struct sentencepiece_text unknown_surface; /* the unknown piece, decoded */
  struct sentencepiece_text charsmap;        /* compiled rules of the normalizer; empty: none */
  bool prefix;  /* whether a blank is added to the text (add_dummy_prefix) */
  bool removes; /* whether blanks at both ends, and repeated ones, are removed */
  bool escapes; /* whether a blank becomes SENTENCEPIECE_BLANK */
  char *file;   /* owned; or NULL */
};

#define SENTENCEPIECE_BLANK "\xe2\x96\x81" /* U+2581 */
enum { SENTENCEPIECE_BLANK_SIZE = sizeof SENTENCEPIECE_BLANK - 1 };

/* Does the text, of which `left` bytes are left, begin with that mark? */
static inline bool sentencepiece_is_blank(const char *text, size_t left) {
  return left >= SENTENCEPIECE_BLANK_SIZE &&
         memcmp(text, SENTENCEPIECE_BLANK, SENTENCEPIECE_BLANK_SIZE) == 0;
}

/* Reads a model from `size` bytes, which must outlive it. STATUS_CONFIG that names the offset of
 * the byte or the piece at fault, or STATUS_OUT_OF_MEMORY. To be ended by sentencepiece_done in any
 * case. */
enum status sentencepiece_read(struct sentencepiece *s, const void *bytes, size_t size,
                               struct error *e);

/* The same from a file of at most 256 MiB. */
enum status sentencepiece_open(struct sentencepiece *s, const char *path, struct error *e);
void sentencepiece_done(struct sentencepiece *s);

/* The byte that a text such as <0x0A> stands for; -1: none. */
int sentencepiece_byte(struct sentencepiece_text text);

#endif
