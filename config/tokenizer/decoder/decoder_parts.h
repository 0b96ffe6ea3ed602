/* decoder_parts: the steps in which pieces become text.
 *
 * A step goes over the pieces that there are, puts others down one behind the other, and has them
 * take their place. Where there is no memory, what is put down is lost, and the error says so. */
#ifndef CONFIG_DECODER_PARTS_H
#define CONFIG_DECODER_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "config/tokenizer/pattern/pattern.h"
#include "config/tokenizer/pretokenizer/metaspace.h"
#include "core/base/arena.h"

struct decoder_list {
  char *bytes; /* of all pieces */
  size_t length, room;
  size_t *end; /* [count] of the bytes of each */
  size_t count, end_room;
};

struct decoder_work {
  struct decoder_list now, next;
  bool open; /* bytes that became text ended with what may be the beginning of a character */
  struct arena *arena;
  struct error *e;
};

/* Bytes of the piece that is being put down; the piece is at its end; all that was put down takes
 * the place of what there is. */
void decoder_append(struct decoder_work *w, const char *bytes, size_t length);
void decoder_end_piece(struct decoder_work *w);
void decoder_commit(struct decoder_work *w);

/* Puts down the bytes that a piece's letters stand for, or the piece if it has other characters. */
void decoder_append_letters(struct decoder_work *w, const char *bytes, size_t length);

/* All bytes that were put down are one piece, well-formed from now on. */
void decoder_commit_bytes(struct decoder_work *w);

/* The byte that a piece is, which the vocabulary has no character for; -1: it is none. */
int decoder_byte_of(const char *piece, size_t length);

struct decoder_step {
  void (*apply)(const struct decoder_step *s, struct decoder_work *w);
  char *text, *other; /* its own: a prefix, a suffix, what is put down in the place of matches */
  size_t length, other_length;
  bool cleanup;
  struct pattern *pattern; /* its own */
  struct metaspace metaspace;
  uint32_t character;
  size_t start, stop; /* so many characters at most */
};

void decoder_byte_level(const struct decoder_step *s, struct decoder_work *w);
void decoder_word_piece(const struct decoder_step *s, struct decoder_work *w);
void decoder_metaspace(const struct decoder_step *s, struct decoder_work *w);
void decoder_bpe(const struct decoder_step *s, struct decoder_work *w);
void decoder_ctc(const struct decoder_step *s, struct decoder_work *w);
void decoder_replace(const struct decoder_step *s, struct decoder_work *w);
void decoder_byte_fallback(const struct decoder_step *s, struct decoder_work *w);
void decoder_fuse(const struct decoder_step *s, struct decoder_work *w);
void decoder_strip(const struct decoder_step *s, struct decoder_work *w);

#endif
