/* attention_section: the members of an answer: which there are, what shape they have, and how their
 * rows are written. Private to answer. */
#ifndef SERVER_ATTENTION_SECTION_H
#define SERVER_ATTENTION_SECTION_H

#include <string.h>

#include "server/answer/answer.h"
#include "server/text/number.h"

enum {
  SECTIONS_MAX = 6,
  RANK_MAX = 4,
  COUNT_ROOM = 20,                      /* of a size_t as text */
  SHAPE_ROOM = 2 + RANK_MAX * (1 + 20), /* of a shape as text */
  NUMBER_ROOM = NUMBER_TEXT_MAX + 1,    /* with what parts it from the next */
  GROUP = 3                             /* floats that are whole groups of base64 */
};

/* How a member is written. */
enum style {
  STYLE_LISTS,        /* as lists of numbers in lists */
  STYLE_BASE64_ITEMS, /* its items, each an object with its shape and bytes */
  STYLE_BASE64_WHOLE, /* one such object for all items, which agree in their shape */
  STYLE_FLAT,         /* of v2: an object with its shape and one list of all numbers */
  STYLE_BEHIND        /* of v2: an object with its shape; the bytes follow the JSON */
};

struct rows;

/* How many numbers a row has. */
enum width { WIDTH_FIXED, WIDTH_KEYS, WIDTH_SEGMENTS };

/* An array of the answer, or of one item. Of 4 bytes each: floats, or the pointers' integers. */
struct array {
  const void *data;
  size_t count, rank, dim[RANK_MAX];
};

/* One member: lists of rows. Of a batch there is a list for each item and head, [b][h][q] rows,
 * heads being 1 where that level is missing. What is said of the whole layer is one list alone. */
struct section {
  const char *name;
  const char *instead; /* of any lists; or NULL */
  bool batch;
  bool per_head;   /* has the level of the heads */
  bool is_integer; /* each row is one integer, and no list */
  size_t items;    /* 0: nothing follows the name but the brackets of a batch */
  size_t heads;
  size_t rows; /* of the list, where it is not of a batch */
  enum width width_of;
  size_t width;    /* WIDTH_FIXED */
  size_t row_room; /* bytes that a row may need beside its numbers */
  const void *data;
  char *(*write)(const struct rows *rows, char *out);
  enum style style;
  struct array whole; /* of the batch, unless its style is of lists or of items */
};

/* Some rows of one list. Of base64 a row is a group of floats, the last one may have fewer. */
struct rows {
  const struct section *section;
  const struct call *call;
  size_t item, head, first, count;
  size_t width; /* numbers in each */
};

static inline size_t size_groups(size_t floats) { return floats / GROUP + (floats % GROUP != 0); }

/* How many numbers the rows of an item have. */
static inline size_t section_width(const struct section *s, const struct item *item) {
  if (s->width_of == WIDTH_FIXED) return s->width;
  return s->width_of == WIDTH_KEYS ? item->k : item->segments;
}

/* The array of one item; of all items, which agree in their shape. */
struct array section_array(const struct section *s, const struct call *c, size_t item);
struct array section_whole(const struct section *s, const struct attention_request *d);

char *array_write_shape(char *out, const struct array *a); /* [1,2,3] */

static inline char *write_text(char *out, const char *text) {
  size_t length = strlen(text);
  memcpy(out, text, length);
  return out + length;
}

/* The members that the answer to a prepared call has, in their order. Returns how many. */
size_t sections_of(const struct model *m, const struct call *c,
                   struct section section[SECTIONS_MAX]);

#endif
