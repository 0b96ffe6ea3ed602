/* text_bodies: the texts that bench_text reads: bodies of plain numbers and of hostile ones, and
 * lists of integers and flags. */
#ifndef BENCH_TEXT_BODIES_H
#define BENCH_TEXT_BODIES_H

#include <stddef.h>
#include <stdint.h>

enum { BODY_FIELDS = 3, BODY_ROWS = 64, BODY_WIDTH = 512 };

enum body_kind {
  BODY_NORMAL,     /* normally distributed float32 in their shortest text */
  BODY_SPACED,     /* the same with a blank behind each comma */
  BODY_DOUBLES,    /* normally distributed, 17 digits */
  BODY_DIGITS,     /* integers 0 .. 9 */
  BODY_TIES,       /* 40 digits: exactly between two floats, or next to that */
  BODY_DENORMALS,  /* 9 digits of float32's denormals */
  BODY_TINY,       /* about 1e-400 */
  BODY_ALTERNATING /* one digit, 17 digits, one digit, ... */
};

/* {"queries":...,"keys":...,"values":...}, each [items][BODY_ROWS][BODY_WIDTH]. */
struct body {
  char *text; /* zeros behind it, as many as any reader wants */
  size_t length, count;
  size_t tensor[BODY_FIELDS]; /* where their texts begin */
  float *value;               /* what strtof reads, in order */
};

/* The same numbers each time. */
struct body body_make(enum body_kind kind, size_t items);
void body_free(struct body *b);

/* A field of integers or flags, in rows of BODY_WIDTH with a blank behind each comma. */
enum list_kind {
  LIST_INTEGERS, /* 0 .. 999 */
  LIST_DIGITS,   /* 0 or 1 */
  LIST_WORDS     /* true or false */
};
struct list {
  char *text; /* zeros behind it, as with a body */
  size_t length, count;
  int32_t *value;
};
struct list list_make(enum list_kind kind, size_t rows);
void list_free(struct list *l);

/* Normally distributed, from a fixed seed. */
void body_normals(float *out, size_t count);

#endif
