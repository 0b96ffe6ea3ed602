/* spell_parts: the steps in which pieces become text.
 *
 * A step goes over the pieces that there are, puts others down one behind the other, and has them
 * take their place. Where there is no memory, what is put down is lost, and the error says so. */
#ifndef CONFIG_SPELL_PARTS_H
#define CONFIG_SPELL_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "config/tokenizer/pattern/pattern.h"
#include "config/tokenizer/pretokenizer/blanks.h"
#include "core/base/arena.h"

struct spell_list {
  char *bytes; /* of all pieces */
  size_t length, room;
  size_t *end; /* [count] of the bytes of each */
  size_t count, end_room;
};

struct spell_work {
  struct spell_list now, next;
  bool open; /* bytes that became text ended with what may be the beginning of a character */
  struct arena *arena;
  struct error *e;
};

/* Bytes of the piece that is being put down; the piece is at its end; all that was put down takes
 * the place of what there is. */
void spell_put(struct spell_work *w, const char *bytes, size_t length);
void spell_end_piece(struct spell_work *w);
void spell_take(struct spell_work *w);

/* Puts down the bytes that a piece's letters stand for, or the piece if it has other characters. */
void spell_put_letters(struct spell_work *w, const char *bytes, size_t length);

/* All bytes that were put down are one piece, well-formed from now on. */
void spell_take_bytes(struct spell_work *w);

/* The byte that a piece is, which the vocabulary has no character for; -1: it is none. */
int spell_byte_of(const char *piece, size_t length);

struct spell_step {
  void (*apply)(const struct spell_step *s, struct spell_work *w);
  char *text, *other; /* its own: a prefix, a suffix, what is put down in the place of matches */
  size_t length, other_length;
  bool cleanup;
  struct pattern *pattern; /* its own */
  struct blanks blanks;
  uint32_t character;
  size_t start, stop; /* so many characters at most */
};

void spell_byte_level(const struct spell_step *s, struct spell_work *w);
void spell_word_piece(const struct spell_step *s, struct spell_work *w);
void spell_metaspace(const struct spell_step *s, struct spell_work *w);
void spell_bpe(const struct spell_step *s, struct spell_work *w);
void spell_ctc(const struct spell_step *s, struct spell_work *w);
void spell_replace(const struct spell_step *s, struct spell_work *w);
void spell_byte_fallback(const struct spell_step *s, struct spell_work *w);
void spell_fuse(const struct spell_step *s, struct spell_work *w);
void spell_strip(const struct spell_step *s, struct spell_work *w);

#endif
