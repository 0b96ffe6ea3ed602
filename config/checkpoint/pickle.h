/* pickle: reads Python's pickles as plain data: nothing in them is ever called, imported or made.
 *
 * A pickle is a program for a stack of values. What it may do is a table of instructions, and what
 * it may name is a table of the caller: numbers, texts, lists, tuples and dictionaries become
 * values; a call of a global becomes a value that says what would be called with which arguments.
 * Everything else is rejected by its name and its offset. Memory is at most some dozens of bytes
 * for each byte of the pickle, and nothing recurses. */
#ifndef CONFIG_PICKLE_H
#define CONFIG_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

enum {
  PICKLE_MOST = 1 << 24,       /* bytes of a pickle */
  PICKLE_STACK_MOST = 1 << 16, /* values on its stack */
};

enum pickle_kind {
  PICKLE_NONE,
  PICKLE_BOOL,
  PICKLE_INTEGER,
  PICKLE_FLOAT, /* its number is not kept */
  PICKLE_TEXT,  /* UTF-8 */
  PICKLE_GLOBAL,
  PICKLE_LIST,
  PICKLE_TUPLE,
  PICKLE_DICT,       /* its items: key, value, key, value, ... */
  PICKLE_CALL,       /* its items: the global, the tuple of arguments */
  PICKLE_PERSISTENT, /* its item: what the pickle names outside itself */
};

struct pickle_value {
  uint32_t kind, next; /* the item after it, in a list of items */
  union {
    int64_t integer; /* also of PICKLE_BOOL */
    size_t global;   /* index in the caller's table */
    struct {
      uint32_t at, size; /* in the pickle */
    } text;
    uint32_t items; /* where the pickle keeps the items */
  };
};

/* A global that a pickle may name, as Python writes it: "collections OrderedDict". */
struct pickle_global {
  const char *name;
  bool dict; /* a call of it without arguments makes a dictionary, whose attributes are ignored */
};

struct pickle;

/* Reads a pickle of protocols 2 to 5, whose bytes and globals outlive it. NULL with STATUS_CONFIG
 * and the reason, which has the offset, or STATUS_OUT_OF_MEMORY. */
struct pickle *pickle_read(const unsigned char *bytes, size_t size,
                           const struct pickle_global *globals, size_t count, struct error *e);
void pickle_free(struct pickle *p);

/* The value that the pickle leaves. A value may hold itself: a reader that descends must count its
 * steps. */
struct pickle_value pickle_top(const struct pickle *p);

/* The number of items of a list, tuple, dictionary, call or persistent name; 0 for other kinds. */
size_t pickle_count(const struct pickle *p, struct pickle_value v);

/* The offset in the pickle of the instruction that made such a value; 0 for other kinds. */
size_t pickle_offset(const struct pickle *p, struct pickle_value v);

/* Takes the items one after the other: *at begins as pickle_first(). False after the last one. */
uint32_t pickle_first(const struct pickle *p, struct pickle_value v);
bool pickle_next(const struct pickle *p, uint32_t *at, struct pickle_value *out);

/* Is it this text? */
bool pickle_is_text(const struct pickle *p, struct pickle_value v, const char *text);

/* The bytes of a text, which are followed by something else. */
const char *pickle_text(const struct pickle *p, struct pickle_value v, size_t *size);

/* The kind in words: "a list". */
const char *pickle_kind_name(enum pickle_kind kind);

#endif
