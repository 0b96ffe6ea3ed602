/* answer_style: how a section's text is laid out: as lists, as base64, or as in the Open Inference
 * Protocol (v2). Private to answer_text.
 *
 * In each style a section is opened, lists of rows follow, one for each item and head that the
 * style separates, and it is closed. */
#ifndef SERVER_ANSWER_STYLE_H
#define SERVER_ANSWER_STYLE_H

#include "server/answer/answer_plan.h"

enum {
  BRACKETS_ROOM = 8,             /* a comma, two opened, two closed */
  OBJECT_ROOM = 40 + SHAPE_ROOM, /* an object of base64, without its bytes */
  BASE64_SPEED = 16              /* base64 is written as fast as memory */
};

/* --- how a section is walked: its lists, their rows and the numbers in each --- */

static inline size_t answer_style_items(const struct answer_section *s) {
  if (s->style == STYLE_BASE64_WHOLE || s->style == STYLE_FLAT) return 1;
  return s->style == STYLE_BINARY ? 0 : s->items;
}

static inline size_t answer_style_heads(const struct answer_section *s) {
  return s->style == STYLE_LISTS ? s->heads : 1;
}

static inline size_t answer_style_rows(const struct answer_section *s, size_t item) {
  switch (s->style) {
  case STYLE_LISTS:
    return answer_size(s->rows, item);
  case STYLE_BASE64_ITEMS:
    return answer_groups(answer_section_count(s, item));
  case STYLE_BASE64_WHOLE:
    return answer_groups(s->whole.count);
  case STYLE_FLAT:
    return s->whole.count;
  case STYLE_BINARY:
    break;
  }
  return 0;
}

static inline size_t answer_style_width(const struct answer_section *s, size_t item) {
  if (s->style == STYLE_LISTS) return answer_size(s->width, item);
  return s->style == STYLE_FLAT ? 1 : GROUP;
}

static inline bool answer_style_is_base64(const struct answer_section *s) {
  return s->style == STYLE_BASE64_ITEMS || s->style == STYLE_BASE64_WHOLE;
}

/* Returns how many numbers are written in the time of one number as text. */
static inline size_t answer_style_speed(const struct answer_section *s) {
  return answer_style_is_base64(s) ? BASE64_SPEED : 1;
}

/* --- the bytes that may be needed --- */

size_t answer_style_section_room(const struct answer_section *s); /* an opening or a closing */

/* Rows of a list, and the brackets around them. A row of base64 is a group, or the rest of one:
 * four characters for three bytes. */
static inline size_t answer_style_rows_room(const struct answer_section *s, size_t rows,
                                            size_t width) {
  if (answer_style_is_base64(s)) return rows * 4 * answer_section_size(s) + OBJECT_ROOM;
  return rows * width * NUMBER_ROOM + rows * s->row_room + BRACKETS_ROOM +
         (s->members ? NAME_ROOM : 0);
}

/* --- how it is written --- */

char *answer_style_open(const struct answer_plan *p, const struct answer_section *s, char *out);
char *answer_style_close(const struct answer_plan *p, const struct answer_section *s, char *out);

/* Writes some rows of a list, with the list's beginning and end if they are its first and last. */
char *answer_style_write(const struct answer_rows *rows, char *out);

#endif
