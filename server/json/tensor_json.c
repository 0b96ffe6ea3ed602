/* tensor_json: the text of a tensor, chunk by chunk; tensor_nest has the meaning of its brackets.
 *
 * A chunk is read in place as far as its numbers surely end in it and the fast reader may look
 * ahead. The few remaining bytes are copied before some zeros and read in the same way; a number or
 * literal that the chunk's end cuts is read byte by byte, over as many chunks as it takes. */
#include "server/json/tensor_json.h"

#include <string.h>

#include "core/base/size.h"
#include "server/json/json_skim.h"
#include "server/json/tensor_nest.h"
#include "server/number/number.h"
#include "server/number/number_fast.h"
#include "server/number/number_scan.h"
#include "server/text/flag.h"

enum {
  FIRST_CAPACITY = 4096, /* bytes of the first allocation */
  STRETCH_SHORT = 4,     /* a stretch of fewer numbers is slower than reading them alone */
  STRETCH_LONG = 16,     /* a stretch of this many is surely faster */
  STRETCH_PAUSE = 64     /* most numbers read alone before a stretch is tried again */
};

enum tensor_json_mode {
  MODE_PLAIN,
  MODE_NUMBER,   /* inside a number that is read byte by byte */
  MODE_LITERAL,  /* inside true, false or null */
  MODE_TOO_DEEP, /* after a bracket deeper than the rule allows */
  MODE_COMPLETE
};

enum tensor_json_expect { EXPECT_VALUE, EXPECT_VALUE_OR_END, EXPECT_COMMA_OR_END };

struct tensor_json {
  struct tensor_nest nest;
  enum tensor_json_mode mode;
  enum tensor_json_expect expect;
  struct number_scan scan;  /* MODE_NUMBER */
  const char *literal;      /* MODE_LITERAL: the word, */
  size_t literal_read;      /* and how many bytes of it have been read */
  unsigned brackets_beyond; /* MODE_TOO_DEEP: brackets deeper than the rule */
  bool surplus;    /* the row is too long: its values are only counted, so that the error can
                      say how long it is */
  size_t capacity; /* numbers that fit into tensor.data */
  size_t alone;    /* numbers to be read alone before the next stretch */
  size_t distrust; /* `alone` after the last short stretch */
  struct tensor tensor;
};

/* A stretch of text and its offset in the body. */
struct tensor_json_stretch {
  const char *text, *end;
  size_t offset;
  bool whole_numbers; /* each number ends before `end`, and NUMBER_READ_MARGIN bytes follow it */
};

static const size_t ITEM_SIZE[] = {
    [TENSOR_FLOAT] = sizeof(float),
    [TENSOR_FLAG] = sizeof(uint8_t),
    [TENSOR_INTEGER] = sizeof(int32_t),
};

struct tensor_json *tensor_json_new(const struct tensor_rule *rule, struct arena *a,
                                    struct error *e) {
  must(rule->depth_min <= rule->depth_max && rule->depth_max <= TENSOR_DEPTH_MAX);
  struct tensor_json *r = arena_alloc(a, 1, sizeof *r, e);
  if (!r) return NULL;
  *r = (struct tensor_json){.mode = MODE_PLAIN, .expect = EXPECT_VALUE};
  tensor_nest_init(&r->nest, rule, a);
  return r;
}

const struct tensor *tensor_json_view(const struct tensor_json *r) {
  must(r->mode == MODE_COMPLETE);
  return &r->tensor;
}

/* --- failures: they return NULL; success returns the byte to continue from --- */

static const char *refuse_byte(const struct tensor_json_stretch *s, const char *p,
                               struct error *e) {
  size_t offset = s->offset + (size_t)(p - s->text);
  unsigned char c = (unsigned char)*p;
  if (c > ' ' && c < 0x7f)
    error_json(e, offset, "unexpected '%c'%s", c, json_hint((char)c));
  else
    error_json(e, offset, "unexpected byte 0x%02x", c);
  return NULL;
}

static const char *refuse_found(const struct tensor_json *r, const char *found, struct error *e) {
  static const char *const wanted[] = {[TENSOR_FLOAT] = "a number",
                                       [TENSOR_FLAG] = "true, false, 1 or 0",
                                       [TENSOR_INTEGER] = "an integer"};
  const struct tensor_nest *n = &r->nest;
  tensor_nest_refuse(n, n->depth, e, "expected %s, got %s",
                     n->depth < n->rule.depth_min ? "an array" : wanted[n->rule.type], found);
  return NULL;
}

static const char *refuse_large(const struct tensor_json *r, struct error *e) {
  bool integer = r->nest.rule.type == TENSOR_INTEGER;
  tensor_nest_refuse(&r->nest, r->nest.depth, e, "the number exceeds the %s range",
                     integer ? "32-bit integer" : "float32");
  return NULL;
}

/* --- values --- */

/* Makes room for at least one more number. Only here is max_count checked: a list that is a little
 * too long is read to its end, so that its error can say how long it is. */
static bool grow_data(struct tensor_json *r, struct error *e) {
  const struct tensor_rule *rule = &r->nest.rule;
  if (rule->max_count && r->capacity > 0 && r->tensor.count >= rule->max_count) {
    tensor_nest_refuse(&r->nest, 0, e,
                       "%s has more than %zu numbers; beside the fields before it at most %zu "
                       "can be right",
                       rule->field, r->tensor.count, rule->max_count);
    return false;
  }
  size_t size = ITEM_SIZE[rule->type];
  size_t capacity = size_max(FIRST_CAPACITY / size, r->capacity + r->capacity / 2);
  void *data = arena_grow(r->nest.arena, r->tensor.data, &capacity, size, e);
  if (!data) return false;
  r->tensor.data = data;
  r->capacity = capacity;
  return true;
}

/* Called before a value is read, so that errors do not depend on how much of it the chunk has. */
static inline bool reserve_number(struct tensor_json *r, struct error *e) {
  return r->tensor.count < r->capacity || grow_data(r, e);
}

/* Counts values of the row that are not stored. */
static void pass_values(struct tensor_json *r, size_t count) {
  r->nest.index[r->nest.depth] += count;
  r->expect = EXPECT_COMMA_OR_END;
  r->mode = MODE_PLAIN;
}

/* Counts values of the row that have been stored. */
static void count_values(struct tensor_json *r, size_t count) {
  r->tensor.count += count;
  pass_values(r, count);
}

/* Ends the value, outside of all brackets. */
static bool end_tensor(struct tensor_json *r, struct error *e) {
  if (tensor_nest_finish(&r->nest, e) != STATUS_OK) return false;
  struct tensor *t = &r->tensor;
  t->depth = r->nest.leaf;
  t->elements = t->depth > 0 ? r->nest.index[1] : 0;
  t->common = r->nest.common;
  t->ragged = r->nest.ragged;
  r->mode = MODE_COMPLETE;
  return true;
}

/* Stores the number that was read byte by byte. */
static bool store_scanned(struct tensor_json *r, struct error *e) {
  if (r->surplus) {
    pass_values(r, 1);
    return true;
  }
  size_t at = r->tensor.count;
  enum number_verdict verdict;
  if (r->nest.rule.type == TENSOR_FLOAT) {
    verdict = number_scan_float(&r->scan, (float *)r->tensor.data + at);
  } else {
    int32_t integer;
    verdict = number_scan_integer(&r->scan, &integer);
    bool flags = r->nest.rule.type == TENSOR_FLAG;
    if (flags && (verdict != NUMBER_OK || r->scan.negative || integer > 1))
      return refuse_found(r, "another number", e);
    if (verdict == NUMBER_MALFORMED)
      return refuse_found(r, "a number with a fraction or an exponent", e);
    if (verdict == NUMBER_OK && flags)
      ((uint8_t *)r->tensor.data)[at] = (uint8_t)integer;
    else if (verdict == NUMBER_OK)
      ((int32_t *)r->tensor.data)[at] = integer;
  }
  if (verdict == NUMBER_TOO_LARGE) return refuse_large(r, e);
  count_values(r, 1);
  return r->nest.depth > 0 || end_tensor(r, e);
}

static inline bool starts_number(char c) { return number_is_digit(c) || c == '-'; }

/* Stretches read many numbers at a time; a short one is slower than reading its numbers alone.
 * After one that ended early, the next number is read alone because the stretch could not read it;
 * if they keep ending early, more and more numbers are read alone before the next stretch. */
static void judge_stretch(struct tensor_json *r, size_t count, bool ended_early) {
  r->alone = ended_early;
  if (!ended_early || count >= STRETCH_LONG)
    r->distrust = 0;
  else if (count < STRETCH_SHORT)
    r->alone = r->distrust = size_min(2 * r->distrust + STRETCH_SHORT, STRETCH_PAUSE);
}

/* Reads floats separated by commas, the first at p; stops after a number, or before another byte.
 * Most of the time is spent here. */
static const char *read_floats(struct tensor_json *r, const char *p,
                               const struct tensor_json_stretch *s, size_t room, struct error *e) {
  size_t count = r->tensor.count, most = size_min(room, r->capacity - count);
  float *first = (float *)r->tensor.data + count, *out = first, *stop = first + most;
  enum tensor_json_expect expect = EXPECT_COMMA_OR_END;
  for (;;) {
    size_t read = 0;
    const char *next = p;
    if (r->alone == 0 && stop - out >= STRETCH_SHORT) {
      read = number_read_stretch(p, s->end, out, (size_t)(stop - out), &next);
      judge_stretch(r, read, out + read != stop && (read == 0 || *next != ']'));
    } else if (r->alone > 0) {
      r->alone--;
    }
    if (read == 0) {
      const enum number_verdict verdict = number_read(p, &next, out);
      if (verdict == NUMBER_MALFORMED) return refuse_byte(s, next, e);
      if (verdict == NUMBER_TOO_LARGE) {
        count_values(r, (size_t)(out - first));
        return refuse_large(r, e);
      }
      read = 1;
    }
    out += read;
    p = next;
    if (*p != ',' || out == stop) break;
    do p++;
    while (p < s->end && is_blank(*p));
    if (p >= s->end || !starts_number(*p)) {
      expect = EXPECT_VALUE;
      break;
    }
  }
  count_values(r, (size_t)(out - first));
  r->expect = expect;
  return p;
}

/* Reads flags as read_floats does, possibly none. Their place is checked only if there is a flag:
 * another word is not JSON anywhere. */
static const char *read_flags(struct tensor_json *r, const char *p,
                              const struct tensor_json_stretch *s, struct error *e) {
  size_t room;
  if (flag_length(p) == 0) return p;
  if (tensor_nest_number(&r->nest, &room, e) != STATUS_OK) return NULL;
  if (room == 0) return p;
  if (!reserve_number(r, e)) return NULL;
  size_t count = r->tensor.count, most = size_min(room, r->capacity - count);
  size_t read = flag_read_stretch(p, s->end, (uint8_t *)r->tensor.data + count, most, &p);
  if (read > 0) count_values(r, read);
  return p;
}

/* Reads numbers from the first byte of one on, or begins a number to be read byte by byte. */
static const char *begin_number(struct tensor_json *r, const char *p,
                                const struct tensor_json_stretch *s, struct error *e) {
  size_t room;
  if (tensor_nest_number(&r->nest, &room, e) != STATUS_OK) return NULL;
  r->surplus = room == 0;
  if (!r->surplus && !reserve_number(r, e)) return NULL;
  const char *first = p;
  const bool stretch = s->whole_numbers && !r->surplus;
  if (stretch && r->nest.rule.type == TENSOR_FLOAT)
    p = read_floats(r, p, s, room, e);
  else if (stretch && r->nest.rule.type == TENSOR_INTEGER && r->nest.depth > 0) {
    /* Malformed numbers, other numbers and those beyond 32 bits are left to be read byte by byte.
     */
    size_t count = r->tensor.count, most = size_min(room, r->capacity - count);
    size_t read = number_read_integers(p, s->end, (int32_t *)r->tensor.data + count, most, &p);
    if (read > 0) count_values(r, read);
  }
  if (p == first) {
    number_scan_begin(&r->scan);
    r->mode = MODE_NUMBER;
    return p;
  }
  if (!p || r->nest.depth > 0) return p;
  return end_tensor(r, e) ? p : NULL;
}

static const char *continue_number(struct tensor_json *r, const char *p,
                                   const struct tensor_json_stretch *s, struct error *e) {
  for (; p < s->end; p++) {
    enum number_scanned scanned = number_scan_byte(&r->scan, *p);
    if (scanned == NUMBER_SCAN_MALFORMED) return refuse_byte(s, p, e);
    if (scanned == NUMBER_SCAN_END) return store_scanned(r, e) ? p : NULL;
  }
  return p;
}

/* Reads true, false or null, and its meaning after the last byte. */
static const char *continue_literal(struct tensor_json *r, const char *p,
                                    const struct tensor_json_stretch *s, struct error *e) {
  const char *literal = r->literal;
  for (; p < s->end && literal[r->literal_read]; p++, r->literal_read++)
    if (*p != literal[r->literal_read]) return refuse_byte(s, p, e);
  if (literal[r->literal_read]) return p;
  if (*literal == 'n') {
    if (r->nest.depth > 0 || !r->nest.rule.nullable) return refuse_found(r, "null", e);
    r->tensor.null = true;
    r->mode = MODE_COMPLETE;
    return p;
  }
  if (r->nest.rule.type != TENSOR_FLAG) return refuse_found(r, literal, e);
  size_t room;
  if (tensor_nest_number(&r->nest, &room, e) != STATUS_OK) return NULL;
  r->surplus = room == 0;
  if (r->surplus) {
    pass_values(r, 1);
    return p;
  }
  if (!reserve_number(r, e)) return NULL;
  ((uint8_t *)r->tensor.data)[r->tensor.count] = *literal == 't';
  count_values(r, 1);
  return r->nest.depth > 0 || end_tensor(r, e) ? p : NULL;
}

/* A bracket deeper than the rule is an invalid request, but one deeper than any tensor is invalid
 * JSON: brackets are counted until it is clear which of them it is. */
static const char *continue_too_deep(struct tensor_json *r, const char *p,
                                     const struct tensor_json_stretch *s, struct error *e) {
  switch (*p) {
  case ' ':
  case '\t':
  case '\n':
  case '\r':
    return p + 1;
  case '[':
    r->brackets_beyond++;
    if (r->nest.depth + r->brackets_beyond <= TENSOR_DEPTH_MAX) return p + 1;
    error_json(e, s->offset + (size_t)(p - s->text), "nested too deeply");
    return NULL;
  default:
    return refuse_found(r, "an array", e);
  }
}

static const char *begin_literal(struct tensor_json *r, const char *p, const char *literal) {
  r->literal = literal;
  r->literal_read = 0;
  r->mode = MODE_LITERAL;
  return p;
}

/* --- text --- */

/* Reads a bracket, a comma or blanks, or begins a value, which a chunk may cut. */
static const char *read_plain(struct tensor_json *r, const char *p,
                              const struct tensor_json_stretch *s, struct error *e) {
  switch (*p) {
  case ' ':
  case '\t':
  case '\n':
  case '\r':
    return p + 1;
  case ',':
    if (r->expect != EXPECT_COMMA_OR_END) return refuse_byte(s, p, e);
    r->expect = EXPECT_VALUE;
    return p + 1;
  case ']':
    if (r->expect == EXPECT_VALUE) return refuse_byte(s, p, e);
    if (tensor_nest_close(&r->nest, e) != STATUS_OK) return NULL;
    r->expect = EXPECT_COMMA_OR_END;
    if (r->nest.depth == 0 && !end_tensor(r, e)) return NULL;
    return p + 1;
  default:
    break;
  }
  if (r->expect == EXPECT_COMMA_OR_END) return refuse_byte(s, p, e);
  if (r->nest.rule.type == TENSOR_FLAG && s->whole_numbers && r->nest.depth > 0) {
    const char *next = read_flags(r, p, s, e);
    if (next != p) return next;
  }
  if (r->surplus && (*p == '[' || *p == '{' || *p == '"')) {
    tensor_nest_refuse_length(&r->nest, e);
    return NULL;
  }
  switch (*p) {
  case '[':
    if (tensor_nest_full_depth(&r->nest)) {
      r->mode = MODE_TOO_DEEP;
      return p;
    }
    if (tensor_nest_open(&r->nest, e) != STATUS_OK) return NULL;
    r->expect = EXPECT_VALUE_OR_END;
    return p + 1;
  case 't':
    return begin_literal(r, p, "true");
  case 'f':
    return begin_literal(r, p, "false");
  case 'n':
    return begin_literal(r, p, "null");
  case '"':
    return refuse_found(r, "a string", e);
  case '{':
    return refuse_found(r, "an object", e);
  default:
    return starts_number(*p) ? begin_number(r, p, s, e) : refuse_byte(s, p, e);
  }
}

/* Reads the stretch. Returns where it stopped: at its end, somewhat after it before a value, or at
 * the end of the tensor. Returns NULL after a failure. */
static const char *read_stretch(struct tensor_json *r, const struct tensor_json_stretch *s,
                                struct error *e) {
  const char *p = s->text;
  while (p && p < s->end && r->mode != MODE_COMPLETE) {
    switch (r->mode) {
    case MODE_NUMBER:
      p = continue_number(r, p, s, e);
      break;
    case MODE_LITERAL:
      p = continue_literal(r, p, s, e);
      break;
    case MODE_TOO_DEEP:
      p = continue_too_deep(r, p, s, e);
      break;
    default:
      p = read_plain(r, p, s, e);
    }
  }
  return p;
}

static bool is_number_byte(char c) {
  return number_is_digit(c) || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

enum status tensor_json_feed(struct tensor_json *r, const char *text, size_t length, size_t offset,
                             size_t *used, bool *complete, struct error *e) {
  const char *end = text + length, *whole = end;
  while (whole > text && is_number_byte(whole[-1])) whole--;
  const char *p = text;

  /* In place: numbers that begin 64 bytes before the end, and end before `whole`. */
  if (length > NUMBER_READ_MARGIN) {
    const char *safe = end - NUMBER_READ_MARGIN;
    struct tensor_json_stretch s = {p, whole < safe ? whole : safe, offset, true};
    p = read_stretch(r, &s, e);
  }
  if (p && p < whole && r->mode != MODE_COMPLETE) {
    char tail[2 * NUMBER_READ_MARGIN] = {0};
    size_t left = (size_t)(whole - p);
    memcpy(tail, p, left);
    struct tensor_json_stretch s = {tail, tail + left, offset + (size_t)(p - text), true};
    const char *stopped = read_stretch(r, &s, e);
    p = stopped ? p + (stopped - tail) : NULL;
  }
  if (p && p < end && r->mode != MODE_COMPLETE) {
    struct tensor_json_stretch s = {p, end, offset + (size_t)(p - text), false};
    p = read_stretch(r, &s, e);
  }
  if (!p) return e->status;
  *used = (size_t)(p - text);
  *complete = r->mode == MODE_COMPLETE;
  return STATUS_OK;
}
