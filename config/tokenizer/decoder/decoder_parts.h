/* decoder_parts: the steps of a decoder, from pieces to text.
 *
 * A step reads the list of pieces, appends those that replace them to another list, and commits
 * that. Without memory, what is appended is lost, and the error says so. */
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
  size_t *end; /* [count] where the bytes of each piece end */
  size_t count, end_room;
};

struct decoder_work {
  struct decoder_list now, next;
  bool open; /* whether the bytes decoded last end with what may be the beginning of a character */
  struct arena *arena;
  struct error *e;
};

/* Appends bytes to the next list's last piece; ends that piece; makes the next list the current
 * one. */
void decoder_append(struct decoder_work *w, const char *bytes, size_t length);
void decoder_end_piece(struct decoder_work *w);
void decoder_commit(struct decoder_work *w);

/* Appends the bytes that the characters of a piece stand for (byte_level.h), or the piece itself if
 * one of its characters stands for none. */
void decoder_append_letters(struct decoder_work *w, const char *bytes, size_t length);

/* Commits all appended bytes as one piece, made well-formed. */
void decoder_commit_bytes(struct decoder_work *w);

/* The byte that a piece such as <0x61> stands for; -1: none. */
int decoder_byte_of(const char *piece, size_t length);

struct decoder_step {
  void (*apply)(const struct decoder_step *s, struct decoder_work *w);
  char *text, *other; /* owned: a prefix, a suffix, a replacement */
  size_t length, other_length;
  bool cleanup;
  struct pattern *pattern; /* owned */
  struct metaspace metaspace;
  uint32_t character;
  size_t start, stop; /* how many characters are stripped at most */
  bool bytes;         /* whether pieces such as <0x0A> are bytes */
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
void decoder_sentence(const struct decoder_step *s, struct decoder_work *w);

#endif
