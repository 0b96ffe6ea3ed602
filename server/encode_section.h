/* encode_section: the members of an answer: which there are, and how their rows are written.
 * Private to encode. */
#ifndef SERVER_ENCODE_SECTION_H
#define SERVER_ENCODE_SECTION_H

#include <string.h>

#include "server/encode.h"
#include "server/text/number.h"

enum {
  SECTIONS_MAX = 6,
  NUMBER_ROOM = NUMBER_TEXT_MAX + 1 /* with what parts it from the next */
};

struct rows;

/* How many numbers a row has. */
enum width { WIDTH_FIXED, WIDTH_KEYS, WIDTH_SEGMENTS };

/* One member: lists of rows. Of a batch there is a list for each item and head, [b][h][q] rows,
 * heads being 1 where that level is missing. What is said of the whole layer is one list alone. */
struct section {
  const char *open; /* what stands before its first bracket */
  bool batch;
  bool per_head; /* has the level of the heads */
  size_t items;  /* 0: nothing follows `open` but the brackets of a batch */
  size_t heads;
  size_t rows; /* of the list, where it is not of a batch */
  enum width width_of;
  size_t width;    /* WIDTH_FIXED */
  size_t row_room; /* bytes that a row may need beside its numbers */
  const void *data;
  char *(*write)(const struct rows *rows, char *out);
};

/* Some rows of one list. */
struct rows {
  const struct section *section;
  const struct call *call;
  size_t item, head, first, count;
  size_t width; /* numbers in each */
};

static inline size_t section_rows(const struct section *s, const struct call *c, size_t item) {
  return s->batch ? c->item[item].q : s->rows;
}

static inline size_t section_width(const struct section *s, const struct call *c, size_t item) {
  if (s->width_of == WIDTH_FIXED) return s->width;
  return s->width_of == WIDTH_KEYS ? c->item[item].k : c->item[item].segments;
}

static inline char *write_text(char *out, const char *text) {
  size_t length = strlen(text);
  memcpy(out, text, length);
  return out + length;
}

/* The members that the answer to a prepared call has, in their order. Returns how many. */
size_t sections_of(const struct model *m, const struct call *c,
                   struct section section[SECTIONS_MAX]);

#endif
