/* npy: reads the header of a .npy file strictly: it accepts only the literals that NumPy writes. */
#include "config/checkpoint/npy.h"

#include <string.h>

#include "core/base/size.h"

struct npy_reader {
  const char *start, *at, *end;
};

enum status npy_measure(const unsigned char *bytes, size_t size, size_t *prefix, size_t *literal,
                        struct error *e) {
  if (size < NPY_PREFIX_LEAST || memcmp(bytes, "\x93NUMPY", 6) != 0)
    return error_set(e, STATUS_CONFIG, "does not begin as a .npy file");
  const unsigned major = bytes[6], minor = bytes[7];
  if (major < 1 || major > 3 || minor != 0)
    return error_set(e, STATUS_CONFIG, "is of .npy version %u.%u; supported: 1.0, 2.0, 3.0", major,
                     minor);
  *prefix = major == 1 ? NPY_PREFIX_LEAST : NPY_PREFIX_MOST;
  if (size < *prefix) return error_set(e, STATUS_CONFIG, "does not begin as a .npy file");
  uint32_t length = bytes[8] | (uint32_t)bytes[9] << 8;
  if (major > 1) length |= (uint32_t)bytes[10] << 16 | (uint32_t)bytes[11] << 24;
  if (length > NPY_LITERAL_MOST)
    return error_set(e, STATUS_CONFIG, "has a .npy header of %ju bytes, more than %d",
                     (uintmax_t)length, NPY_LITERAL_MOST);
  *literal = length;
  return STATUS_OK;
}

/* --- parts of a literal --- */

static enum status refuse_at(const struct npy_reader *r, const char *at, const char *what,
                             struct error *e) {
  return error_set(e, STATUS_CONFIG, "its .npy header has no %s at byte %zu", what,
                   (size_t)(at - r->start));
}

static enum status refuse_here(const struct npy_reader *r, const char *what, struct error *e) {
  return refuse_at(r, r->at, what, e);
}

static void skip_blanks(struct npy_reader *r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\n')) r->at++;
}

/* Reads this character if it is the next one, and the spaces on both sides of it. */
static bool accept_character(struct npy_reader *r, char c) {
  skip_blanks(r);
  if (r->at == r->end || *r->at != c) return false;
  r->at++;
  skip_blanks(r);
  return true;
}

/* Reads a string without escapes, in quotes of either kind. */
static enum status read_quoted(struct npy_reader *r, const char **text, size_t *length,
                               struct error *e) {
  skip_blanks(r);
  if (r->at == r->end || (*r->at != '\'' && *r->at != '"')) return refuse_here(r, "string", e);
  const char *begin = r->at + 1, *end = begin;
  while (end < r->end && *end != *r->at && *end != '\\') end++;
  if (end == r->end || *end == '\\') return refuse_here(r, "string without escapes", e);
  *text = begin;
  *length = (size_t)(end - begin);
  r->at = end + 1;
  return STATUS_OK;
}

static bool is_word(const char *text, size_t length, const char *other) {
  return length == strlen(other) && memcmp(text, other, length) == 0;
}

/* Skips a structured type: a list of fields, up to its closing bracket. */
static enum status skip_structured_type(struct npy_reader *r, struct error *e) {
  const char *text;
  size_t length, depth = 0;
  do {
    skip_blanks(r);
    if (r->at == r->end) return refuse_here(r, "closing bracket", e);
    if (*r->at == '\'' || *r->at == '"') {
      if (read_quoted(r, &text, &length, e)) return e->status;
      continue;
    }
    if (*r->at == '[' || *r->at == '(') depth++;
    if (*r->at == ']' || *r->at == ')') depth--;
    r->at++;
  } while (depth > 0);
  return STATUS_OK;
}

/* --- the three values --- */

static enum status read_descr(struct npy_reader *r, struct npy *out, struct error *e) {
  static const struct {
    const char *numpy, *name;
    size_t size;
  } types[] = {{"<f4", "F32", 4}, {"<f2", "F16", 2}, {"<f8", "F64", 8}};
  const char *text;
  size_t length;
  skip_blanks(r);
  if (r->at < r->end && *r->at == '[') {
    memcpy(out->dtype, "structured", sizeof "structured");
    return skip_structured_type(r, e);
  }
  if (read_quoted(r, &text, &length, e)) return e->status;
  /* A name begins with the byte order: it is never a name of safetensors. */
  if (length > 0 && !strchr("<>|=", text[0])) length = 0;
  for (size_t i = 0; i < length; i++)
    if (text[i] <= ' ' || text[i] > '~') length = 0;
  if (length == 0 || length >= NPY_DTYPE_SIZE) return refuse_at(r, text - 1, "plain type", e);
  memcpy(out->dtype, text, length);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (is_word(text, length, types[i].numpy)) {
      memcpy(out->dtype, types[i].name, 4);
      out->number = types[i].size;
    }
  return STATUS_OK;
}

static enum status read_fortran_order(struct npy_reader *r, struct npy *out, struct error *e) {
  const size_t left = (size_t)(r->end - r->at);
  out->by_columns = left >= 4 && memcmp(r->at, "True", 4) == 0;
  const bool by_rows = left >= 5 && memcmp(r->at, "False", 5) == 0;
  if (!out->by_columns && !by_rows) return refuse_here(r, "True or False", e);
  r->at += by_rows ? 5 : 4;
  return STATUS_OK;
}

/* Reads a tuple. A single dimension is followed by a comma: in Python, (3) is a number. */
static enum status read_shape_tuple(struct npy_reader *r, struct npy *out, struct error *e) {
  if (!accept_character(r, '(')) return refuse_here(r, "tuple", e);
  out->count = 1;
  while (!accept_character(r, ')')) {
    if (out->rank == SAFETENSORS_RANK_MAX)
      return error_set(e, STATUS_CONFIG, "has more than %d dimensions", SAFETENSORS_RANK_MAX);
    uint64_t *dim = &out->dim[out->rank];
    const char *begin = r->at;
    for (*dim = 0; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
      if (__builtin_mul_overflow(*dim, 10u, dim) ||
          __builtin_add_overflow(*dim, (uint64_t)(*r->at - '0'), dim))
        return error_set(e, STATUS_CONFIG, "its .npy header has a dimension beyond 64 bits");
    if (r->at == begin) return refuse_here(r, "dimension", e);
    if (__builtin_mul_overflow(out->count, *dim, &out->count))
      return error_set(e, STATUS_CONFIG, "the product of its shape overflows");
    const bool first = out->rank++ == 0;
    if (accept_character(r, ',')) continue;
    if (!first && accept_character(r, ')')) break;
    return refuse_here(r, first ? "comma" : "comma or closing bracket", e);
  }
  return STATUS_OK;
}

enum status npy_parse(const char *literal, size_t size, struct npy *out, struct error *e) {
  static const char *const names[] = {"descr", "fortran_order", "shape"};
  static enum status (*const readers[])(struct npy_reader *, struct npy *, struct error *) = {
      read_descr, read_fortran_order, read_shape_tuple};
  struct npy_reader r = {.start = literal, .at = literal, .end = literal + size};
  bool seen[3] = {false};
  *out = (struct npy){0};
  if (!accept_character(&r, '{')) return refuse_here(&r, "dictionary", e);
  while (!accept_character(&r, '}')) {
    const char *key;
    size_t length, which = 0;
    if (read_quoted(&r, &key, &length, e)) return e->status;
    while (which < 3 && !is_word(key, length, names[which])) which++;
    if (which == 3) return refuse_at(&r, key - 1, "known key", e);
    if (seen[which])
      return error_set(e, STATUS_CONFIG, "its .npy header has %s twice", names[which]);
    seen[which] = true;
    if (!accept_character(&r, ':')) return refuse_here(&r, "colon", e);
    if (readers[which](&r, out, e)) return e->status;
    if (accept_character(&r, ',')) continue;
    if (accept_character(&r, '}')) break;
    return refuse_here(&r, "comma or closing brace", e);
  }
  if (r.at < r.end)
    return error_set(e, STATUS_CONFIG, "its .npy header has bytes after its dictionary");
  if (!seen[0] || !seen[1] || !seen[2])
    return error_set(e, STATUS_CONFIG,
                     "its .npy header does not have all of descr, fortran_order and shape");
  if (out->rank < 2) out->by_columns = false; /* both orders are the same */
  return STATUS_OK;
}
