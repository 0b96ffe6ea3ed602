/* answer_plan: the plan of a response: which sections are text and which are arrays of bytes, and
 * the pieces of both. Private to answer, answer_text and answer_raw. */
#ifndef SERVER_ANSWER_PLAN_H
#define SERVER_ANSWER_PLAN_H

#include "server/answer/answer.h"

/* A position in the text: a section is opened, its rows follow, it is closed. */
enum answer_phase { AT_OPENING, AT_ROWS, AT_CLOSING };

struct answer_point {
  size_t section;
  enum answer_phase phase;
  size_t item, head, row;
};

enum answer_piece_kind {
  PIECE_TEXT,  /* some stretches of the text */
  PIECE_BYTES, /* numbers of the arrays, one array after the other */
  PIECE_READY  /* nothing has to be written */
};

struct answer_piece {
  enum answer_piece_kind kind;
  struct answer_point from; /* PIECE_TEXT: its first stretch */
  size_t stretches;         /* PIECE_TEXT: how many */
  size_t array, first;      /* PIECE_BYTES: its first array, and the first number of that */
};

struct answer_plan {
  enum answer_form form;
  struct answer_content *content;
  size_t sections; /* sections of the text: all of the content, or none */
  size_t arrays;   /* sections whose bytes follow the text, or are the response */
  const struct answer_section **array;
  size_t piece_numbers; /* numbers in each piece of text, about */
  size_t room;          /* bytes left of the response's limit */
  size_t most;          /* pieces that there is memory for */
  struct answer_piece *piece;
};

/* Subtracts bytes from the response's limit. Returns false if fewer are left. */
static inline bool answer_plan_spend(struct answer_plan *p, size_t bytes) {
  if (bytes > p->room) return false;
  p->room -= bytes;
  return true;
}

/* Appends a piece, for which there must be memory, with an empty iovec. */
static inline struct answer_piece *answer_plan_append(struct answer *a,
                                                      enum answer_piece_kind kind) {
  must(a->pieces < a->plan->most);
  struct answer_piece *piece = &a->plan->piece[a->pieces];
  *piece = (struct answer_piece){.kind = kind};
  a->piece[a->pieces++] = (struct iovec){0};
  return piece;
}

/* --- the text (answer_text.c) --- */

/* Chooses the size of the pieces of text and returns how many there may be: at most `most`. */
size_t answer_text_bound(struct answer_plan *p, size_t most);

/* Appends the pieces of text; their lengths are the memory that each needs. Returns false if the
 * text exceeds the limit. */
bool answer_text_cut(struct answer *a);

void answer_text_write(struct answer *a, size_t piece);

/* --- the arrays (answer_raw.c) --- */

/* Returns the bytes of a number of the section as it is sent. */
size_t answer_raw_number(const struct answer_section *s);

/* Returns how many pieces the arrays and their header may have: fewer than ANSWER_PIECES_MAX. */
size_t answer_raw_bound(const struct answer_plan *p);

/* Appends the header of safetensors, in memory of the arena; the caller spends its bytes. Returns
 * the status of `e`: STATUS_OK, or no memory. */
enum status answer_raw_header(struct answer *a, struct arena *arena, struct error *e);

/* Appends the pieces of the arrays. Returns false if they exceed the limit. */
bool answer_raw_cut(struct answer *a);

void answer_raw_write(struct answer *a, size_t piece);

#endif
