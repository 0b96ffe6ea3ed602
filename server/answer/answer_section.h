/* answer_section: one section of an answer: its lists of rows, where their numbers lie, and how
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
  COUNT_ROOM = 20,                             /* of a size_t as text */
  SHAPE_ROOM = 2 + ANSWER_RANK_MAX * (1 + 20), /* of a shape as text */
  ROW_ROOM = 3,                                /* a comma, opened, closed */
  NAME_ROOM = 16,                              /* a short name, with its quotes and colon */
  NUMBER_ROOM = NUMBER_TEXT_MAX + 1,           /* with what parts it from the next */
  GROUP = 3                                    /* numbers that are whole groups of base64 */
};

/* What a section is made of. */
enum answer_number {
  NUMBER_FLOAT,
  NUMBER_INTEGER, /* 32 bits, and 64 as bytes */
  NUMBER_TOKEN,   /* 32 bits */
  NUMBER_LENGTH,  /* 32 bits */
  NUMBER_BYTE     /* 8 bits; in JSON as base64 in any case */
};

/* How a section is written. */
enum answer_style {
  STYLE_LISTS,        /* as lists of numbers in lists */
  STYLE_BASE64_ITEMS, /* its items, each an object with its shape and bytes */
  STYLE_BASE64_WHOLE, /* one such object for all items, which agree in their shape */
  STYLE_FLAT,         /* of v2: an object with its shape and one list of all numbers */
  STYLE_BEHIND        /* of v2: an object with its shape; the bytes follow the JSON */
};

struct answer_rows;

/* A size of each item: the first one's address, and the bytes from one to the next; 0: all have the
 * same. Without items the first one is what each would have. */
struct answer_sizes {
  const size_t *first;
  size_t stride;
};

/* A size or place of each item: a member of `struct item`. Without items it is *none. */
#define ANSWER_OF_ITEMS(geometry, member, none)                                      \
  (struct answer_sizes) {                                                            \
    (geometry)->items ? &(geometry)->item->member : (none), sizeof *(geometry)->item \
  }

/* The same of a list, [items] of the geometry. */
static inline struct answer_sizes answer_of_list(const struct geometry *g, const size_t *list,
                                                 const size_t *none) {
  return g->items ? (struct answer_sizes){list, sizeof *list} : (struct answer_sizes){none, 0};
}

static inline size_t answer_size(struct answer_sizes s, size_t item) {
  return *(const size_t *)((const char *)s.first + item * s.stride);
}

/* An array of the answer, or of one item. */
struct answer_array {
  const void *data;
  size_t count, rank, dim[ANSWER_RANK_MAX];
};

/* One section: lists of rows. A batch has a list for each item and head, [b][h][q] rows; heads is 1
 * where that level is missing. Numbers about all items together are one list; or an object, of
 * which each "item" is a member. */
struct answer_section {
  /* From its maker. */
  const char
      *group; /* the object that it is a member of, with its neighbours of the same; or NULL */
  const char *name;           /* NULL: it is all that the answer has */
  const char *instead;        /* of any lists; or NULL */
  const char *const *members; /* [items] of an object, their names; NULL: it is none */
  enum answer_number number;  /* each row of integers or lengths is one, and no list */
  bool batch;
  bool per_head; /* has the level of the heads */
  bool single;   /* a batch whose only item has a row for each of its items, and no lists of rows */
  bool several;  /* its items are more than the request has: an array of them all keeps its first
                    dimension, where the answer is of one item */
  bool bare;     /* each row of floats is one number, and no list */
  bool scalar;   /* of lengths: one, without a list */
  bool alike;    /* all items agree in their shape */
  bool padded;   /* they do not: an array of them all has zeros behind their rows and numbers, of
                    which it has so many: */
  size_t padded_rows, padded_width;
  bool binary;  /* of v2: the bytes follow the JSON */
  size_t items; /* 0: nothing follows the name but the brackets of a batch */
  size_t heads;
  struct answer_sizes rows; /* of a list */
  /* How many of these there are, of a section that is text in any case: asked once all is computed.
   * NULL: all of them. */
  size_t (*there)(const struct answer_section *s, size_t item);
  struct answer_sizes width; /* numbers in a row */
  struct answer_sizes begin; /* of an item of a batch: its first number is data[times * begin] */
  size_t times;
  size_t row_room; /* bytes that a row may need beside its numbers */
  const void *data;
  char *(*write)(const struct answer_rows *rows, char *out);

  /* From the answer's plan. */
  enum answer_style style;
  struct answer_array whole; /* of the batch, unless its style is of lists or of items */
};

/* A section that is this text, the value of a member. */
static inline struct answer_section answer_section_text(const char *name, const char *value) {
  return (struct answer_section){.name = name, .instead = value, .heads = 1, .scalar = true};
}

/* Some rows of one list. Of base64 a row is a group of floats, the last one may have fewer. */
struct answer_rows {
  const struct answer_section *section;
  size_t item, head, first, count;
  size_t width; /* numbers in each */
};

static inline size_t answer_groups(size_t numbers) {
  return numbers / GROUP + (numbers % GROUP != 0);
}

/* Bytes of a number, where it was computed. */
static inline size_t answer_section_size(const struct answer_section *s) {
  return s->number == NUMBER_BYTE ? 1 : sizeof(float);
}

/* The numbers of one item. */
static inline size_t answer_section_count(const struct answer_section *s, size_t item) {
  return s->heads * answer_size(s->rows, item) * answer_size(s->width, item);
}

/* The array of one item; of all items, which agree in their shape, or are padded: then it has no
 * data, and answer_section_copy makes them. */
struct answer_array answer_section_array(const struct answer_section *s, size_t item);
struct answer_array answer_section_whole(const struct answer_section *s, bool unbatched);

/* Writes `count` numbers of the array of all items, from the one at `from` on. */
void answer_section_copy(const struct answer_section *s, size_t from, size_t count, void *out);

char *answer_write_shape(char *out, const struct answer_array *a); /* [1,2,3] */

/* Where such rows begin in their array. */
size_t answer_rows_index(const struct answer_rows *rows);

/* Writers of a batch's rows: of floats; of floats that are bare; of 32-bit integers. */
char *answer_write_floats(const struct answer_rows *rows, char *out);
char *answer_write_bare(const struct answer_rows *rows, char *out);
char *answer_write_integers(const struct answer_rows *rows, char *out);

static inline char *answer_write_text(char *out, const char *text) {
  size_t length = strlen(text);
  memcpy(out, text, length);
  return out + length;
}

/* How many tokens a request used. */
struct answer_usage {
  size_t tokens, cached;
  size_t (*generated)(
      const void *of); /* called after the computation; NULL: no tokens are generated */
  const void *of;
  char *(*write)(char *out, const struct answer_usage *u); /* another format, no longer; or NULL */
};

/* Writes it as a JSON object of at most ANSWER_USAGE_ROOM bytes. */
enum { ANSWER_USAGE_ROOM = 144 };
char *answer_usage_write(char *out, const struct answer_usage *u);

#endif
