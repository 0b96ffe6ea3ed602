/* answer_plan: an answer's plan: its members, and pieces of text or bytes. Private to answer. */
#ifndef SERVER_ANSWER_PLAN_H
#define SERVER_ANSWER_PLAN_H

#include "server/attention/attention_section.h"

/* Pieces beside those of text: bytes that lie where they were computed, and their header. */
enum { PIECES_BESIDE = 8 };

/* A place in the walk through the text: a member is opened, its rows follow, it is closed. */
enum part { OPEN, ROWS, CLOSE };

struct place {
  size_t section;
  enum part part;
  size_t item, head, row;
};

enum piece_kind {
  PIECE_TEXT,     /* a stretch of the walk */
  PIECE_POINTERS, /* integers, as 64 bits each */
  PIECE_READY     /* there is nothing to write */
};

struct piece {
  enum piece_kind kind;
  struct place from;       /* of the text */
  size_t steps;            /* of the text */
  const int32_t *pointers; /* the first */
};

struct answer_plan {
  enum answer_form form;
  const struct attention_request *request;
  const struct call *call;
  const char *model;
  size_t sections; /* of the text */
  struct section section[SECTIONS_MAX];
  size_t behinds; /* members whose bytes follow the text, or make the answer */
  struct section behind[SECTIONS_MAX];
  size_t piece_numbers; /* about so many in each */
  size_t room;          /* bytes that the answer may still have */
  size_t most;          /* pieces that there is room for */
  struct piece *piece;
};

/* Takes bytes off the answer's limit. False: it has not as many left. */
static inline bool plan_take(struct answer_plan *p, size_t bytes) {
  if (bytes > p->room) return false;
  p->room -= bytes;
  return true;
}

/* Appends a piece; there is room for it. Returns it; its iovec is empty. */
static inline struct piece *plan_add(struct answer *a, enum piece_kind kind) {
  must(a->pieces < a->plan->most);
  struct piece *piece = &a->plan->piece[a->pieces];
  *piece = (struct piece){.kind = kind};
  a->piece[a->pieces++] = (struct iovec){0};
  return piece;
}

#endif
