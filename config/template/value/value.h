/* value: what an expression of a template is: Python's kinds of values, as far as templates see
 * them.
 *
 * A value is a small struct. Texts, lists and objects of a request stay Jansson's and are never
 * copied; what a template makes is in the memory of its bounds. Nothing is changed after it was
 * made, except for namespaces and for what an iterator has left. */
#ifndef CONFIG_VALUE_H
#define CONFIG_VALUE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/template/value/bounds.h"

enum value_kind {
  VALUE_MISSING, /* none at all: a failure, which the bounds have, or the end of an iterator */
  VALUE_UNDEFINED,
  VALUE_NONE,
  VALUE_BOOL,
  VALUE_INTEGER,
  VALUE_REAL,
  VALUE_TEXT,
  VALUE_LIST,
  VALUE_TUPLE,
  VALUE_DICT,
  VALUE_VIEW, /* the keys, values or items of a dict */
  VALUE_RANGE,
  VALUE_ITERATOR, /* a generator of Python: what was read is gone */
  VALUE_NAMESPACE,
  VALUE_LOOP,
  VALUE_MACRO,
  VALUE_METHOD, /* of a value that is not called yet */
  VALUE_FUNCTION
};

enum value_part { VALUE_KEYS, VALUE_VALUES, VALUE_ITEMS };

struct value {
  enum value_kind kind;
  enum value_part part; /* of a view */
  bool foreign;         /* a list, dict or view whose content is `json` */
  union {
    bool truth;
    int64_t integer;
    double real;
    const char *text; /* UTF-8, and a zero after it */
    const json_t *json;
    const struct value_undefined *undefined;
    struct value_list *list; /* of lists and tuples */
    struct value_dict *dict; /* of dicts, views and namespaces */
    struct value_range *range;
    struct iterator *iterator;
    const void *object; /* of the kinds that only this knows: loops, macros, methods, functions */
  };
  size_t length; /* bytes of a text */
};

struct value_list {
  struct value *item;
  size_t count, room;
};

/* In the order of the first insertions; a key occurs once. */
struct value_dict {
  struct value *key, *value;
  size_t count, room, value_room;
};

struct value_range {
  int64_t start, stop, step;
};

/* Why a value is undefined, for the message if it is used. */
struct value_undefined {
  const char *hint;  /* the message; NULL: it is made of the others */
  struct value name; /* of the variable, attribute or element */
  struct value of;   /* MISSING: a variable */
  bool unsafe;       /* an attribute that would change a value, or reach beyond templates */
};

static const struct value VALUE_FAILED = {.kind = VALUE_MISSING};

static inline struct value value_none(void) { return (struct value){.kind = VALUE_NONE}; }
static inline struct value value_bool(bool truth) {
  return (struct value){.kind = VALUE_BOOL, .truth = truth};
}
static inline struct value value_integer(int64_t integer) {
  return (struct value){.kind = VALUE_INTEGER, .integer = integer};
}
static inline struct value value_real(double real) {
  return (struct value){.kind = VALUE_REAL, .real = real};
}
/* A text that outlives the value, and has a zero after it. */
static inline struct value value_text(const char *text, size_t length) {
  return (struct value){.kind = VALUE_TEXT, .text = text, .length = length};
}
struct value value_word(const char *text);
struct value value_of_json(const json_t *json);

/* These allocate; they return VALUE_FAILED after a failure. */
struct value value_copy(struct bounds *b, const char *text, size_t length);
struct value value_undefined(struct bounds *b, struct value name, struct value of);
struct value value_unsafe(struct bounds *b, struct value name, struct value of);
struct value value_hint(struct bounds *b, const char *hint);
struct value value_list(struct bounds *b, enum value_kind kind); /* empty; or a tuple */
struct value value_pair(struct bounds *b, struct value first, struct value second); /* a tuple */
struct value value_dict(struct bounds *b, enum value_kind kind); /* empty; or a namespace */
struct value value_range(struct bounds *b, int64_t start, int64_t stop, int64_t step);

/* Fills a list that value_list has made. compare.h fills dicts. False after a failure. */
bool value_append(struct bounds *b, struct value list, struct value item);

/* --- what a value is --- */

/* Python's name of its type: "str", "dict". */
const char *value_type(struct value v);

/* Fails because an undefined value is used. Returns VALUE_FAILED. */
struct value value_fail_undefined(struct bounds *b, struct value v);

/* Does it count as true? */
bool value_truth(struct value v);

static inline bool value_is_integer(struct value v) {
  return v.kind == VALUE_INTEGER || v.kind == VALUE_BOOL;
}
static inline int64_t value_as_integer(struct value v) {
  return v.kind == VALUE_BOOL ? v.truth : v.integer;
}
static inline bool value_is_number(struct value v) {
  return value_is_integer(v) || v.kind == VALUE_REAL;
}
double value_as_real(struct value v);

/* May it be a key? False after a failure, too. */
bool value_is_hashable(struct bounds *b, struct value v);

/* How many items. False: it is neither a list, dict, view nor range, nor undefined. */
bool value_items(struct value v, size_t *count);

/* How many items, or characters of a text. False: it has no length, or after a failure. */
bool value_length(struct bounds *b, struct value v, size_t *length);

/* --- its parts --- */

/* Item `i` of a list, tuple or range. */
struct value value_at(struct value v, size_t i);

/* Characters of UTF-8; the byte at which character `count` begins, or the end. The steps of this
 * work are the caller's to take. */
size_t value_characters(const char *text, size_t length);
size_t value_skip(const char *text, size_t length, size_t count);

/* A position of Python, from the end if it is negative, as an index below `count`. */
bool value_index(int64_t at, size_t count, size_t *index);

#endif
