/* answer_plan: an answer's plan: its sections, and pieces of text or bytes. Private to answer. */
#ifndef SERVER_ANSWER_PLAN_H
#define SERVER_ANSWER_PLAN_H

#include "server/answer/answer.h"

/* A point of the walk through the text: a section is opened, its rows follow, it is closed. */
enum answer_phase { AT_OPENING, AT_ROWS, AT_CLOSING };

struct answer_point {
  size_t section;
  enum answer_phase phase;
  size_t item, head, row;
};

enum answer_piece_kind {
  PIECE_TEXT,  /* a stretch of the walk */
  PIECE_BYTES, /* of the sections behind the text, one after the other */
  PIECE_READY  /* there is nothing to write */
};

struct answer_piece {
  enum answer_piece_kind kind;
  struct answer_point from; /* of the text */
  size_t stretches;         /* of the text */
  size_t behind, first;     /* of bytes: in which section they begin, at which number */
};

struct answer_plan {
  enum answer_form form;
  struct answer_content *content;
  size_t sections; /* of the text: the first of the content, or none */
  size_t behinds;  /* sections whose bytes follow the text, or make the answer */
  const struct answer_section **behind;
  size_t piece_numbers; /* about so many in each */
  size_t room;          /* bytes that the answer may still have */
  size_t most;          /* pieces that there is room for */
  struct answer_piece *piece;
};

/* Subtracts bytes from the answer's limit. False: it has not as many left. */
static inline bool answer_plan_spend(struct answer_plan *p, size_t bytes) {
  if (bytes > p->room) return false;
  p->room -= bytes;
  return true;
}

/* Appends a piece; there is room for it. Returns it; its iovec is empty. */
static inline struct answer_piece *answer_plan_append(struct answer *a,
                                                      enum answer_piece_kind kind) {
  must(a->pieces < a->plan->most);
  struct answer_piece *piece = &a->plan->piece[a->pieces];
  *piece = (struct answer_piece){.kind = kind};
  a->piece[a->pieces++] = (struct iovec){0};
  return piece;
}

#endif
