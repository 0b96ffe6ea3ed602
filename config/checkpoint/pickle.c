/* pickle: runs the instructions of a pickle on values that are only described. */
#include "config/checkpoint/pickle.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/text.h"
#include "core/base/size.h"

enum {
  KIND_MARK = PICKLE_PERSISTENT + 1, /* only on the stack */
  PROTOCOL_LEAST = 2,
  PROTOCOL_MOST = 5,
  GLOBAL_MOST = 200, /* bytes of the name of a global */
  LIST_END = 0,      /* of a list of items: cell 0 is unused */
};

/* The items of a container. */
struct pickle_items {
  uint32_t first, last, count; /* cells */
  uint32_t offset;             /* of the instruction that made the container */
};

/* An array that grows. */
struct pickle_array {
  void *at;
  size_t count, room;
};

struct pickle {
  const unsigned char *bytes;
  size_t size, at;
  size_t begin; /* of the instruction that runs */
  const struct pickle_global *globals;
  size_t global_count;
  struct pickle_array stack, memo, cells; /* of struct pickle_value */
  struct pickle_array items;              /* of struct pickle_items */
  bool stopped;
};

/* --- messages --- */

static enum status refuse(const struct pickle *p, struct error *e, const char *what) {
  return error_set(e, STATUS_CONFIG, "%s at byte %zu", what, p->begin);
}

const char *pickle_kind_name(enum pickle_kind kind) {
  static const char *const names[] = {
      [PICKLE_NONE] = "None",
      [PICKLE_BOOL] = "a bool",
      [PICKLE_INTEGER] = "an integer",
      [PICKLE_FLOAT] = "a float",
      [PICKLE_TEXT] = "a string",
      [PICKLE_GLOBAL] = "a global",
      [PICKLE_LIST] = "a list",
      [PICKLE_TUPLE] = "a tuple",
      [PICKLE_DICT] = "a dictionary",
      [PICKLE_CALL] = "an object",
      [PICKLE_PERSISTENT] = "a storage",
      [KIND_MARK] = "a mark",
  };
  return names[kind];
}

/* --- arrays --- */

/* Adds room for one more element. */
static void *grow(struct pickle_array *a, size_t element, struct error *e) {
  if (a->count == a->room) {
    const size_t room = a->room ? a->room + a->room / 2 : 64;
    void *at = realloc(a->at, room * element);
    if (!at) {
      error_no_memory(e);
      return NULL;
    }
    *a = (struct pickle_array){at, a->count, room};
  }
  return (char *)a->at + a->count++ * element;
}

static struct pickle_value *values_of(const struct pickle_array *a) { return a->at; }

static struct pickle_items *items_of(const struct pickle *p, struct pickle_value v) {
  return (struct pickle_items *)p->items.at + v.items;
}

static enum status push(struct pickle *p, struct pickle_value v, struct error *e) {
  if (p->stack.count == PICKLE_STACK_MOST) return refuse(p, e, "has too many values on its stack");
  struct pickle_value *to = grow(&p->stack, sizeof v, e);
  if (to) *to = v;
  return e->status;
}

/* Takes a value off the stack: not a mark. */
static enum status pop(struct pickle *p, struct pickle_value *out, struct error *e) {
  if (p->stack.count == 0 || values_of(&p->stack)[p->stack.count - 1].kind == KIND_MARK)
    return refuse(p, e, "takes a value from an empty stack");
  *out = values_of(&p->stack)[--p->stack.count];
  return STATUS_OK;
}

/* --- containers --- */

static bool holds_items(uint32_t kind) { return kind >= PICKLE_LIST && kind <= PICKLE_PERSISTENT; }

static enum status push_container(struct pickle *p, enum pickle_kind kind, struct error *e) {
  const struct pickle_value v = {.kind = kind, .items = (uint32_t)p->items.count};
  struct pickle_items *items = grow(&p->items, sizeof *items, e);
  if (!items) return e->status;
  *items = (struct pickle_items){LIST_END, LIST_END, 0, (uint32_t)p->begin};
  return push(p, v, e);
}

static enum status append(struct pickle *p, struct pickle_value to, struct pickle_value v,
                          struct error *e) {
  const uint32_t at = (uint32_t)p->cells.count;
  struct pickle_value *cell = grow(&p->cells, sizeof v, e);
  if (!cell) return e->status;
  *cell = v;
  cell->next = LIST_END;
  struct pickle_items *items = items_of(p, to);
  if (items->count++ == 0)
    items->first = at;
  else
    values_of(&p->cells)[items->last].next = at;
  items->last = at;
  return STATUS_OK;
}

/* Appends the values from `first` of the stack on, and takes them and `below` more off it. */
static enum status append_from(struct pickle *p, struct pickle_value to, size_t first, size_t below,
                               struct error *e) {
  for (size_t i = first; i < p->stack.count && !e->status; i++)
    append(p, to, values_of(&p->stack)[i], e);
  p->stack.count = first - below;
  return e->status;
}

/* The place on the stack after the last mark. */
static enum status find_mark(struct pickle *p, size_t *after, struct error *e) {
  for (size_t i = p->stack.count; i > 0; i--) {
    if (values_of(&p->stack)[i - 1].kind != KIND_MARK) continue;
    *after = i;
    return STATUS_OK;
  }
  return refuse(p, e, "looks for a mark that is not on its stack");
}

/* Makes the last `count` values of the stack, and the mark before them, a tuple. */
static enum status make_tuple(struct pickle *p, size_t count, bool mark, struct error *e) {
  const size_t first = p->stack.count - count;
  if (push_container(p, PICKLE_TUPLE, e)) return e->status;
  const struct pickle_value tuple = values_of(&p->stack)[--p->stack.count];
  if (append_from(p, tuple, first, mark, e)) return e->status;
  return push(p, tuple, e);
}

/* The container below place `first` of the stack, to which the values from there on are added. */
static enum status add_items(struct pickle *p, enum pickle_kind kind, size_t first, bool mark,
                             struct error *e) {
  const size_t below = mark ? 2 : 1;
  if (first < below || values_of(&p->stack)[first - below].kind != kind)
    return refuse(p, e,
                  kind == PICKLE_DICT ? "sets an item of what is not a dictionary"
                                      : "appends to what is not a list");
  if (kind == PICKLE_DICT && (p->stack.count - first) % 2)
    return refuse(p, e, "sets a key without a value");
  return append_from(p, values_of(&p->stack)[first - below], first, mark, e);
}

/* --- operands --- */

static enum status take(struct pickle *p, size_t size, const unsigned char **out, struct error *e) {
  if (size > p->size - p->at) return refuse(p, e, "ends within the instruction");
  *out = p->bytes + p->at;
  p->at += size;
  return STATUS_OK;
}

/* Takes an integer of `size` bytes, little-endian. */
static enum status take_integer(struct pickle *p, size_t size, bool is_signed, int64_t *out,
                                struct error *e) {
  const unsigned char *at = NULL;
  uint64_t number = 0;
  if (take(p, size, &at, e)) return e->status;
  for (size_t i = 0; i < size; i++) number |= (uint64_t)at[i] << 8 * i;
  if (is_signed && size > 0 && size < 8 && at[size - 1] >= 0x80) number |= UINT64_MAX << 8 * size;
  *out = (int64_t)number;
  return STATUS_OK;
}

static enum status push_integer(struct pickle *p, size_t size, bool is_signed, struct error *e) {
  struct pickle_value v = {.kind = PICKLE_INTEGER};
  if (take_integer(p, size, is_signed, &v.integer, e)) return e->status;
  return push(p, v, e);
}

static enum status push_text(struct pickle *p, size_t length_size, struct error *e) {
  const unsigned char *at = NULL;
  int64_t length = 0;
  if (take_integer(p, length_size, false, &length, e) || take(p, (size_t)length, &at, e))
    return e->status;
  if (!text_is_utf8(at, (size_t)length)) return refuse(p, e, "has a string that is not UTF-8");
  return push(p,
              (struct pickle_value){.kind = PICKLE_TEXT,
                                    .text = {(uint32_t)(at - p->bytes), (uint32_t)length}},
              e);
}

/* Pushes the global of this module and name, if the caller knows it. */
static enum status push_global(struct pickle *p, const char *module, size_t module_size,
                               const char *name, size_t name_size, struct error *e) {
  char whole[GLOBAL_MOST + 2] = "";
  if (module_size + name_size > GLOBAL_MOST)
    return refuse(p, e, "asks for a global with a very long name, which is not allowed,");
  memcpy(whole, module, module_size);
  whole[module_size] = ' ';
  memcpy(whole + module_size + 1, name, name_size);
  whole[module_size + 1 + name_size] = '\0';
  for (size_t i = 0; i < p->global_count; i++)
    if (strlen(p->globals[i].name) == module_size + 1 + name_size &&
        memcmp(p->globals[i].name, whole, module_size + 1 + name_size) == 0)
      return push(p, (struct pickle_value){.kind = PICKLE_GLOBAL, .global = i}, e);
  whole[module_size] = '.';
  return error_set(e, STATUS_CONFIG,
                   "asks for the global \"%.100s\" at byte %zu, which is not allowed: only tensors "
                   "are read, and nothing is executed",
                   whole, p->begin);
}

/* Takes a line without its end. */
static enum status take_line(struct pickle *p, const char **out, size_t *size, struct error *e) {
  const unsigned char *begin = p->bytes + p->at, *end = memchr(begin, '\n', p->size - p->at);
  if (!end) return refuse(p, e, "ends within the instruction");
  *out = (const char *)begin;
  *size = (size_t)(end - begin);
  p->at += *size + 1;
  return STATUS_OK;
}

/* --- the memo --- */

/* Writers number the entries one after the other: a memo has no gaps. */
static enum status put_memo(struct pickle *p, uint64_t entry, struct error *e) {
  struct pickle_value v = {0};
  if (pop(p, &v, e)) return e->status;
  p->stack.count++;
  if (entry > p->memo.count)
    return error_set(e, STATUS_CONFIG, "puts memo entry %ju after %zu others at byte %zu",
                     (uintmax_t)entry, p->memo.count, p->begin);
  if (entry == p->memo.count && !grow(&p->memo, sizeof v, e)) return e->status;
  values_of(&p->memo)[entry] = v;
  return STATUS_OK;
}

static enum status get_memo(struct pickle *p, uint64_t entry, struct error *e) {
  if (entry >= p->memo.count)
    return error_set(e, STATUS_CONFIG, "takes memo entry %ju at byte %zu, which was never put",
                     (uintmax_t)entry, p->begin);
  return push(p, values_of(&p->memo)[entry], e);
}

/* --- the instructions; the number of a row is their operand --- */

static enum status run_proto(struct pickle *p, size_t size, struct error *e) {
  int64_t protocol = 0;
  if (take_integer(p, size, false, &protocol, e)) return e->status;
  if (protocol >= PROTOCOL_LEAST && protocol <= PROTOCOL_MOST) return STATUS_OK;
  return error_set(e, STATUS_CONFIG, "is of protocol %d; supported: %d to %d", (int)protocol,
                   PROTOCOL_LEAST, PROTOCOL_MOST);
}

/* A frame says only how many bytes follow, for readers of streams. */
static enum status run_frame(struct pickle *p, size_t size, struct error *e) {
  int64_t length = 0;
  if (take_integer(p, size, false, &length, e)) return e->status;
  if ((uint64_t)length > p->size - p->at) return refuse(p, e, "has a frame beyond its end");
  return STATUS_OK;
}

static enum status run_stop(struct pickle *p, size_t unused, struct error *e) {
  (void)unused;
  if (p->stack.count != 1 || values_of(&p->stack)->kind == KIND_MARK)
    return error_set(e, STATUS_CONFIG, "leaves %zu values on its stack at byte %zu instead of one",
                     p->stack.count, p->begin);
  p->stopped = true;
  return STATUS_OK;
}

static enum status run_mark(struct pickle *p, size_t unused, struct error *e) {
  (void)unused;
  return push(p, (struct pickle_value){.kind = KIND_MARK}, e);
}

static enum status run_none(struct pickle *p, size_t unused, struct error *e) {
  (void)unused;
  return push(p, (struct pickle_value){.kind = PICKLE_NONE}, e);
}

static enum status run_bool(struct pickle *p, size_t value, struct error *e) {
  return push(p, (struct pickle_value){.kind = PICKLE_BOOL, .integer = (int64_t)value}, e);
}

static enum status run_unsigned(struct pickle *p, size_t size, struct error *e) {
  return push_integer(p, size, false, e);
}

static enum status run_signed(struct pickle *p, size_t size, struct error *e) {
  return push_integer(p, size, true, e);
}

static enum status run_long(struct pickle *p, size_t size, struct error *e) {
  int64_t length = 0;
  if (take_integer(p, size, false, &length, e)) return e->status;
  if (length > 8) return refuse(p, e, "has an integer of more than 64 bits");
  return push_integer(p, (size_t)length, true, e);
}

static enum status run_float(struct pickle *p, size_t size, struct error *e) {
  const unsigned char *at = NULL;
  if (take(p, size, &at, e)) return e->status;
  return push(p, (struct pickle_value){.kind = PICKLE_FLOAT}, e);
}

static enum status run_text(struct pickle *p, size_t length_size, struct error *e) {
  return push_text(p, length_size, e);
}

static enum status run_container(struct pickle *p, size_t kind, struct error *e) {
  return push_container(p, (enum pickle_kind)kind, e);
}

/* Makes a tuple of the values after the last mark. */
static enum status run_tuple(struct pickle *p, size_t unused, struct error *e) {
  size_t after = 0;
  (void)unused;
  if (find_mark(p, &after, e)) return e->status;
  return make_tuple(p, p->stack.count - after, true, e);
}

/* Makes a tuple of the last one, two or three values, none of which may be a mark. */
static enum status run_short_tuple(struct pickle *p, size_t count, struct error *e) {
  struct pickle_value v = {0};
  for (size_t i = 0; i < count; i++)
    if (pop(p, &v, e)) return e->status;
  p->stack.count += count;
  return make_tuple(p, count, false, e);
}

static enum status run_append(struct pickle *p, size_t kind, struct error *e) {
  struct pickle_value v = {0};
  const size_t count = kind == PICKLE_DICT ? 2 : 1;
  for (size_t i = 0; i < count; i++)
    if (pop(p, &v, e)) return e->status;
  p->stack.count += count;
  return add_items(p, (enum pickle_kind)kind, p->stack.count - count, false, e);
}

static enum status run_append_many(struct pickle *p, size_t kind, struct error *e) {
  size_t after = 0;
  if (find_mark(p, &after, e)) return e->status;
  return add_items(p, (enum pickle_kind)kind, after, true, e);
}

static enum status run_put(struct pickle *p, size_t size, struct error *e) {
  int64_t entry = 0;
  if (take_integer(p, size, false, &entry, e)) return e->status;
  return put_memo(p, (uint64_t)entry, e);
}

static enum status run_memoize(struct pickle *p, size_t unused, struct error *e) {
  (void)unused;
  return put_memo(p, p->memo.count, e);
}

static enum status run_get(struct pickle *p, size_t size, struct error *e) {
  int64_t entry = 0;
  if (take_integer(p, size, false, &entry, e)) return e->status;
  return get_memo(p, (uint64_t)entry, e);
}

static enum status run_global(struct pickle *p, size_t unused, struct error *e) {
  const char *module = NULL, *name = NULL;
  size_t module_size = 0, name_size = 0;
  (void)unused;
  if (take_line(p, &module, &module_size, e) || take_line(p, &name, &name_size, e))
    return e->status;
  return push_global(p, module, module_size, name, name_size, e);
}

static enum status run_stack_global(struct pickle *p, size_t unused, struct error *e) {
  struct pickle_value module = {0}, name = {0};
  (void)unused;
  if (pop(p, &name, e) || pop(p, &module, e)) return e->status;
  if (module.kind != PICKLE_TEXT || name.kind != PICKLE_TEXT)
    return refuse(p, e, "asks for a global whose name is not a string");
  const char *bytes = (const char *)p->bytes;
  return push_global(p, bytes + module.text.at, module.text.size, bytes + name.text.at,
                     name.text.size, e);
}

static enum status run_persistent(struct pickle *p, size_t unused, struct error *e) {
  struct pickle_value name = {0};
  (void)unused;
  if (pop(p, &name, e) || push_container(p, PICKLE_PERSISTENT, e)) return e->status;
  return append(p, values_of(&p->stack)[p->stack.count - 1], name, e);
}

/* A call becomes a value that describes it. */
static enum status run_reduce(struct pickle *p, size_t unused, struct error *e) {
  struct pickle_value arguments = {0}, global = {0};
  (void)unused;
  if (pop(p, &arguments, e) || pop(p, &global, e)) return e->status;
  if (global.kind != PICKLE_GLOBAL || arguments.kind != PICKLE_TUPLE)
    return refuse(p, e, "calls something other than a global with a tuple");
  if (p->globals[global.global].dict) {
    if (pickle_count(p, arguments) == 0) return push_container(p, PICKLE_DICT, e);
    return error_set(e, STATUS_CONFIG, "calls %s with arguments at byte %zu",
                     p->globals[global.global].name, p->begin);
  }
  if (push_container(p, PICKLE_CALL, e)) return e->status;
  const struct pickle_value call = values_of(&p->stack)[p->stack.count - 1];
  if (append(p, call, global, e)) return e->status;
  return append(p, call, arguments, e);
}

/* Attributes of a dictionary, such as _metadata, are ignored. */
static enum status run_build(struct pickle *p, size_t unused, struct error *e) {
  struct pickle_value state = {0}, object = {0};
  (void)unused;
  if (pop(p, &state, e) || pop(p, &object, e)) return e->status;
  if (object.kind != PICKLE_DICT || state.kind != PICKLE_DICT)
    return refuse(p, e, "sets attributes of what is not a dictionary");
  return push(p, object, e);
}

static const struct pickle_instruction {
  const char *name;
  enum status (*run)(struct pickle *p, size_t operand, struct error *e); /* NULL: rejected */
  size_t operand;
} instructions[UCHAR_MAX + 1] = {
    [0x80] = {"PROTO", run_proto, 1},
    [0x95] = {"FRAME", run_frame, 8},
    ['.'] = {"STOP", run_stop, 0},
    ['('] = {"MARK", run_mark, 0},
    ['N'] = {"NONE", run_none, 0},
    [0x88] = {"NEWTRUE", run_bool, true},
    [0x89] = {"NEWFALSE", run_bool, false},
    ['K'] = {"BININT1", run_unsigned, 1},
    ['M'] = {"BININT2", run_unsigned, 2},
    ['J'] = {"BININT", run_signed, 4},
    [0x8a] = {"LONG1", run_long, 1},
    ['G'] = {"BINFLOAT", run_float, 8},
    [0x8c] = {"SHORT_BINUNICODE", run_text, 1},
    ['X'] = {"BINUNICODE", run_text, 4},
    [')'] = {"EMPTY_TUPLE", run_container, PICKLE_TUPLE},
    [']'] = {"EMPTY_LIST", run_container, PICKLE_LIST},
    ['}'] = {"EMPTY_DICT", run_container, PICKLE_DICT},
    ['t'] = {"TUPLE", run_tuple, 0},
    [0x85] = {"TUPLE1", run_short_tuple, 1},
    [0x86] = {"TUPLE2", run_short_tuple, 2},
    [0x87] = {"TUPLE3", run_short_tuple, 3},
    ['a'] = {"APPEND", run_append, PICKLE_LIST},
    ['e'] = {"APPENDS", run_append_many, PICKLE_LIST},
    ['s'] = {"SETITEM", run_append, PICKLE_DICT},
    ['u'] = {"SETITEMS", run_append_many, PICKLE_DICT},
    ['q'] = {"BINPUT", run_put, 1},
    ['r'] = {"LONG_BINPUT", run_put, 4},
    [0x94] = {"MEMOIZE", run_memoize, 0},
    ['h'] = {"BINGET", run_get, 1},
    ['j'] = {"LONG_BINGET", run_get, 4},
    ['c'] = {"GLOBAL", run_global, 0},
    [0x93] = {"STACK_GLOBAL", run_stack_global, 0},
    ['Q'] = {"BINPERSID", run_persistent, 0},
    ['R'] = {"REDUCE", run_reduce, 0},
    ['b'] = {"BUILD", run_build, 0},
    /* Known by name alone: they make objects, or no writer of tensors uses them. */
    ['0'] = {"POP", NULL, 0},
    ['1'] = {"POP_MARK", NULL, 0},
    ['2'] = {"DUP", NULL, 0},
    ['F'] = {"FLOAT", NULL, 0},
    ['I'] = {"INT", NULL, 0},
    ['L'] = {"LONG", NULL, 0},
    ['P'] = {"PERSID", NULL, 0},
    ['S'] = {"STRING", NULL, 0},
    ['T'] = {"BINSTRING", NULL, 0},
    ['U'] = {"SHORT_BINSTRING", NULL, 0},
    ['V'] = {"UNICODE", NULL, 0},
    ['d'] = {"DICT", NULL, 0},
    ['g'] = {"GET", NULL, 0},
    ['i'] = {"INST", NULL, 0},
    ['l'] = {"LIST", NULL, 0},
    ['o'] = {"OBJ", NULL, 0},
    ['p'] = {"PUT", NULL, 0},
    [0x81] = {"NEWOBJ", NULL, 0},
    [0x82] = {"EXT1", NULL, 0},
    [0x83] = {"EXT2", NULL, 0},
    [0x84] = {"EXT4", NULL, 0},
    [0x8b] = {"LONG4", NULL, 0},
    ['B'] = {"BINBYTES", NULL, 0},
    ['C'] = {"SHORT_BINBYTES", NULL, 0},
    [0x8d] = {"BINUNICODE8", NULL, 0},
    [0x8e] = {"BINBYTES8", NULL, 0},
    [0x8f] = {"EMPTY_SET", NULL, 0},
    [0x90] = {"ADDITEMS", NULL, 0},
    [0x91] = {"FROZENSET", NULL, 0},
    [0x92] = {"NEWOBJ_EX", NULL, 0},
    [0x96] = {"BYTEARRAY8", NULL, 0},
    [0x97] = {"NEXT_BUFFER", NULL, 0},
    [0x98] = {"READONLY_BUFFER", NULL, 0},
};

static enum status run_instruction(struct pickle *p, struct error *e) {
  p->begin = p->at;
  if (p->at == p->size) return refuse(p, e, "ends without a STOP");
  const unsigned char code = p->bytes[p->at++];
  const struct pickle_instruction *known = &instructions[code];
  if (p->begin == 0 && known->run != run_proto) return refuse(p, e, "does not begin with PROTO");
  if (known->run) return known->run(p, known->operand, e);
  if (known->name)
    return error_set(e, STATUS_CONFIG, "has the instruction %s at byte %zu, which is not allowed",
                     known->name, p->begin);
  return error_set(e, STATUS_CONFIG, "has an unknown instruction, 0x%02x, at byte %zu", code,
                   p->begin);
}

struct pickle *pickle_read(const unsigned char *bytes, size_t size,
                           const struct pickle_global *globals, size_t count, struct error *e) {
  if (size > PICKLE_MOST) {
    error_set(e, STATUS_CONFIG, "has %zu bytes; at most %d are read", size, PICKLE_MOST);
    return NULL;
  }
  struct pickle *p = calloc(1, sizeof *p);
  if (!p) {
    error_no_memory(e);
    return NULL;
  }
  *p = (struct pickle){.bytes = bytes, .size = size, .globals = globals, .global_count = count};
  grow(&p->cells, sizeof(struct pickle_value), e); /* LIST_END */
  while (!e->status && !p->stopped) run_instruction(p, e);
  if (!e->status && p->at < p->size)
    error_set(e, STATUS_CONFIG, "has %zu bytes after its STOP at byte %zu", p->size - p->at,
              p->begin);
  if (!e->status) return p;
  text_plain(e);
  pickle_free(p);
  return NULL;
}

void pickle_free(struct pickle *p) {
  if (!p) return;
  free(p->stack.at);
  free(p->memo.at);
  free(p->cells.at);
  free(p->items.at);
  free(p);
}

/* --- the values --- */

struct pickle_value pickle_top(const struct pickle *p) {
  return *values_of(&p->stack);
}

size_t pickle_count(const struct pickle *p, struct pickle_value v) {
  return holds_items(v.kind) ? items_of(p, v)->count : 0;
}

size_t pickle_offset(const struct pickle *p, struct pickle_value v) {
  return holds_items(v.kind) ? items_of(p, v)->offset : 0;
}

uint32_t pickle_first(const struct pickle *p, struct pickle_value v) {
  return holds_items(v.kind) ? items_of(p, v)->first : LIST_END;
}

bool pickle_next(const struct pickle *p, uint32_t *at, struct pickle_value *out) {
  if (*at == LIST_END) return false;
  *out = values_of(&p->cells)[*at];
  *at = out->next;
  return true;
}

const char *pickle_text(const struct pickle *p, struct pickle_value v, size_t *size) {
  *size = v.text.size;
  return (const char *)p->bytes + v.text.at;
}

bool pickle_is_text(const struct pickle *p, struct pickle_value v, const char *text) {
  const size_t size = strlen(text);
  return v.kind == PICKLE_TEXT && v.text.size == size &&
         memcmp(p->bytes + v.text.at, text, size) == 0;
}
