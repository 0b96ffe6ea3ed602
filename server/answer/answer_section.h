/* answer_section: one section of a response: its lists of rows, where their numbers are, and how
 * rows are written. */
#ifndef SERVER_ANSWER_SECTION_H
#define SERVER_ANSWER_SECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "core/attention/geometry.h"
#include "server/number/number.h"

enum {
  ANSWER_RANK_MAX = 4,
  COUNT_ROOM = 20,                             /* a size_t as text */
  SHAPE_ROOM = 2 + ANSWER_RANK_MAX * (1 + 20), /* a shape as text */
  ROW_ROOM = 3,                                /* a comma, opened, closed */
  NAME_ROOM = 16,                              /* a short name with quotes and colon */
  NUMBER_ROOM = NUMBER_TEXT_MAX + 1,           /* a float and a comma */
  GROUP = 3                                    /* floats that are whole groups of base64 */
};

/* The type of a section's numbers. */
enum answer_number {
  NUMBER_FLOAT,
  NUMBER_INTEGER, /* 32 bits; sent as 64 bits in arrays of bytes */
  NUMBER_TOKEN,   /* 32 bits */
  NUMBER_LENGTH,  /* 32 bits */
  NUMBER_BYTE     /* 8 bits; in JSON as base64 in any case */
};

/* How a section is written. */
enum answer_style {
  STYLE_LISTS,        /* as lists of numbers in lists */
  STYLE_BASE64_ITEMS, /* an object with shape and bytes for each item */
  STYLE_BASE64_WHOLE, /* one such object for all items, which have one shape */
  STYLE_FLAT,         /* v2: an object with a shape and one list of all numbers */
  STYLE_BINARY        /* v2: an object with a shape; the bytes follow the JSON */
};

struct answer_rows;

/* A size of each item: the address of the first one, and the bytes from one to the next; 0: all are
 * the same. In an empty batch the first one is what each item would have. */
struct answer_sizes {
  const size_t *first;
  size_t stride;
};

/* A size or offset of each item that is a member of `struct item`; *none in an empty batch. */
#define ANSWER_OF_ITEMS(geometry, member, none)                                      \
  (struct answer_sizes) {                                                            \
    (geometry)->items ? &(geometry)->item->member : (none), sizeof *(geometry)->item \
  }

/* A size of each item that is in a list, [items] of the geometry; *none in an empty batch. */
static inline struct answer_sizes answer_of_list(const struct geometry *g, const size_t *list,
                                                 const size_t *none) {
  return g->items ? (struct answer_sizes){list, sizeof *list} : (struct answer_sizes){none, 0};
}

static inline size_t answer_size(struct answer_sizes s, size_t item) {
  return *(const size_t *)((const char *)s.first + item * s.stride);
}

/* An array of one item or of all items. */
struct answer_array {
  const void *data;
  size_t count, rank, dim[ANSWER_RANK_MAX];
};

/* One section: lists of rows. A batch has a list for each item and head, [b][h][q] rows; heads is 1
 * without the level of heads. Numbers about all items together are one list, or an object whose
 * members are the "items". */
struct answer_section {
  /* Set by its maker. */
  const char
      *group; /* name of the object around it and its neighbors with the same group; or NULL */
  const char *name;           /* NULL: it is the whole response */
  const char *instead;        /* JSON text written in place of lists; or NULL */
  const char *const *members; /* [items] names of an object's members; NULL: it is no object */
  enum answer_number number;  /* a row of integers or lengths is one number, not a list */
  bool batch;
  bool per_head; /* has the level of the heads */
  bool single;   /* a batch whose only item has a row for each of its items, and no lists of rows */
  bool several;  /* has more items than the request: an array of all items keeps its first dimension
                    even in an unbatched response */
  bool bare;     /* each row of floats is one number, not a list */
  bool scalar;   /* a single length without a list */
  bool alike;    /* all items have one shape */
  bool padded;   /* items differ in shape: an array of all items is filled up with zeros */
  size_t padded_rows, padded_width; /* shape of an item in that array */
  bool binary;                      /* v2: the bytes follow the JSON */
  size_t items;                     /* 0: nothing follows the name except the brackets of a batch */
  size_t heads;
  struct answer_sizes rows; /* rows in a list */
  /* How many rows exist, asked after the computation; only for a section that is always text. NULL:
   * all of them. */
  size_t (*there)(const struct answer_section *s, size_t item);
  struct answer_sizes width; /* numbers in a row */
  struct answer_sizes begin; /* the first number of a batch's item is data[times * begin] */
  size_t times;
  size_t row_room;    /* bytes that a row may need in addition to its numbers */
  size_t object_room; /* bytes of each number's object, which row_room includes; 0: no objects */
  const void *data;
  char *(*write)(const struct answer_rows *rows, char *out);

  /* Set by answer_plan. */
  enum answer_style style;
  struct answer_array whole; /* array of all items; unused with lists or one object per item */
};

/* Returns a section whose value is this JSON text. */
static inline struct answer_section answer_section_text(const char *name, const char *value) {
  return (struct answer_section){.name = name, .instead = value, .heads = 1, .scalar = true};
}

/* Some rows of one list. In base64 a row is a group of floats; the last one may have fewer. */
struct answer_rows {
  const struct answer_section *section;
  size_t item, head, first, count;
  size_t width; /* numbers in each */
};

static inline size_t answer_groups(size_t numbers) {
  return numbers / GROUP + (numbers % GROUP != 0);
}

/* Bytes of a number as it was computed. */
static inline size_t answer_section_size(const struct answer_section *s) {
  return s->number == NUMBER_BYTE ? 1 : sizeof(float);
}

/* Returns how many numbers an item has. */
static inline size_t answer_section_count(const struct answer_section *s, size_t item) {
  return s->heads * answer_size(s->rows, item) * answer_size(s->width, item);
}

/* Return the array of one item; and of all items, which have one shape or are padded. A padded
 * array has no data: answer_section_copy makes its numbers. */
struct answer_array answer_section_array(const struct answer_section *s, size_t item);
struct answer_array answer_section_whole(const struct answer_section *s, bool unbatched);

/* Copies numbers from ... from + count - 1 of the array of all items. */
void answer_section_copy(const struct answer_section *s, size_t from, size_t count, void *out);

char *answer_write_shape(char *out, const struct answer_array *a); /* [1,2,3] */

/* Returns where these rows begin in the section's data. */
size_t answer_rows_index(const struct answer_rows *rows);

/* Write a batch's rows of floats, of bare floats, of 32-bit integers. */
char *answer_write_floats(const struct answer_rows *rows, char *out);
char *answer_write_bare(const struct answer_rows *rows, char *out);
char *answer_write_integers(const struct answer_rows *rows, char *out);

static inline char *answer_write_text(char *out, const char *text) {
  size_t length = strlen(text);
  memcpy(out, text, length);
  return out + length;
}

/* The tokens that a request used. */
struct answer_usage {
  size_t tokens, cached;
  size_t (*generated)(const void *of); /* called after the computation; NULL: none are generated */
  const void *of;
  char *(*write)(char *out, const struct answer_usage *u); /* another format, no longer; or NULL */
};

/* Writes the usage as a JSON object of at most ANSWER_USAGE_ROOM bytes. */
enum { ANSWER_USAGE_ROOM = 192 };
char *answer_usage_write(char *out, const struct answer_usage *u);

#endif
