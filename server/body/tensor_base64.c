/* tensor_base64: the objects of arrays in base64, chunk by chunk. */
#include "server/body/tensor_base64.h"

#include <stdio.h>
#include <string.h>

#include "core/base/size.h"
#include "server/body/base64_text.h"
#include "server/json/json_skim.h"
#include "server/json/tensor_bytes.h"
#include "server/number/number.h"
#include "server/number/number_scan.h"
#include "server/text/json_string.h"

/* Characters of a key or type that are stored; the longest known one has 6. */
enum { WORD_MAX = 24 };

enum tensor_base64_key { KEY_DTYPE, KEY_SHAPE, KEY_BASE64, KEYS };
static const char *const key_names[KEYS] = {"dtype", "shape", "base64"};

enum tensor_base64_state {
  OBJECT,       /* an object begins */
  FIRST_KEY,    /* after '{' */
  KEY,          /* after ',' in an object */
  IN_KEY,       /* within a key */
  COLON,        /* after a key */
  VALUE,        /* after ':' */
  IN_DTYPE,     /* within the type's name */
  IN_TEXT,      /* within the base64 */
  FIRST_DIM,    /* in the shape, after '[' */
  NEXT_DIM,     /* in the shape, after ',' */
  IN_DIM,       /* within a dimension */
  AFTER_DIM,    /* in the shape, after a dimension */
  AFTER_VALUE,  /* ',' or '}' */
  AFTER_OBJECT, /* in a list: ',' or ']' */
  COMPLETE
};

/* The bytes of an object whose type follows them: they are not yet converted. */
struct tensor_base64_raw {
  size_t at, size;
  enum tensor_dtype dtype;
};

struct tensor_base64 {
  struct tensor_rule rule;        /* the field's rule */
  struct tensor_rule object_rule; /* rule of one object's array; its `field` is shape_field */
  char shape_field[64];           /* "keys/3/shape" */
  struct arena *arena;
  bool list;
  enum tensor_base64_state state;
  struct tensor tensor;
  struct tensor_bytes bytes;     /* all objects: floats, except the raw ones */
  size_t shapes;                 /* elements that tensor.ragged has memory for */
  struct tensor_base64_raw *raw; /* [raws] in the order of their bytes */
  size_t raws, raw_room;

  /* The object that is being read. */
  size_t from;                /* where it begins in `bytes` */
  unsigned seen;              /* a bit per key */
  enum tensor_base64_key key; /* the key whose value is read */
  bool judged;                /* its type and shape are known, and satisfy the rule */
  size_t expected;            /* bytes that type and shape require */
  struct tensor_form form;    /* dimensions beyond TENSOR_DEPTH_MAX are only counted */
  struct json_string string;  /* the key or type being read */
  char word[WORD_MAX];
  size_t word_length; /* counts beyond WORD_MAX as well */
  struct number_scan dim;
  struct base64_text text;
  char value_pointer[64]; /* "/keys/3/base64" */
};

/* A stretch of text and its offset in the body. */
struct tensor_base64_stretch {
  const char *text, *end;
  size_t offset;
};

static size_t offset_of(const struct tensor_base64_stretch *s, const char *p) {
  return s->offset + (size_t)(p - s->text);
}

static void begin_object(struct tensor_base64 *r) {
  r->state = OBJECT;
  tensor_bytes_next(&r->bytes, DTYPE_NONE, SIZE_MAX);
  r->from = r->bytes.size;
  r->seen = 0;
  r->judged = false;
  r->form = (struct tensor_form){.dtype = DTYPE_NONE};
}

struct tensor_base64 *tensor_base64_new(const struct tensor_rule *rule, bool list, struct arena *a,
                                        struct error *e) {
  must(rule->type == TENSOR_FLOAT && rule->depth_min > 0);
  struct tensor_base64 *r = arena_alloc(a, 1, sizeof *r, e);
  if (!r) return NULL;
  *r = (struct tensor_base64){
      .rule = *rule, .object_rule = *rule, .arena = a, .list = list, .tensor = {.shaped = true}};
  r->object_rule.field = r->shape_field;
  if (list) {
    /* One element of an array that may be ragged: its first dimension counts rows. */
    r->object_rule.depth_min = rule->ragged_depth - 1;
    r->object_rule.depth_max = rule->depth_max - 1;
    r->object_rule.max_elements = 0;
  }
  tensor_bytes_init(&r->bytes, DTYPE_NONE, SIZE_MAX, a);
  r->bytes.margin = BASE64_TEXT_MARGIN;
  begin_object(r);
  return r;
}

const struct tensor *tensor_base64_view(const struct tensor_base64 *r) {
  must(r->state == COMPLETE);
  return &r->tensor;
}

/* --- failures: they return NULL; success returns the byte to continue from --- */

/* Fails with invalid-request at the object, or below it. */
__attribute__((format(printf, 4, 5))) static const char *
refuse_object(const struct tensor_base64 *r, const char *below, struct error *e, const char *format,
              ...) {
  char pointer[ERROR_POINTER_SIZE];
  size_t n = (size_t)snprintf(pointer, sizeof pointer, "/%s", r->rule.field);
  if (r->list) n += (size_t)snprintf(pointer + n, sizeof pointer - n, "/%zu", r->tensor.elements);
  if (below[0]) snprintf(pointer + n, sizeof pointer - n, "/%s", below);
  va_list args;
  va_start(args, format);
  error_at_v(e, pointer, format, args);
  va_end(args);
  return NULL;
}

static const char *refuse_byte(const struct tensor_base64_stretch *s, const char *p,
                               const char *wanted, struct error *e) {
  json_unexpected(e, offset_of(s, p), *p, wanted);
  return NULL;
}

/* Fails at a byte that does not begin the expected value. */
static const char *refuse_found(const struct tensor_base64 *r, const char *below,
                                const char *wanted, const struct tensor_base64_stretch *s,
                                const char *p, struct error *e) {
  if (!json_starts_value(*p)) return refuse_byte(s, p, wanted, e);
  return refuse_object(r, below, e, "expected %s", wanted);
}

/* --- the object's array --- */

/* Checks the form once both type and shape are known. */
static bool judge_form(struct tensor_base64 *r, struct error *e) {
  const unsigned both = 1u << KEY_DTYPE | 1u << KEY_SHAPE;
  if ((r->seen & both) != both) return true;
  if (r->list)
    snprintf(r->shape_field, sizeof r->shape_field, "%s/%zu/shape", r->rule.field,
             r->tensor.elements);
  else
    snprintf(r->shape_field, sizeof r->shape_field, "%s/shape", r->rule.field);
  if (tensor_form_check(&r->form, &r->object_rule, &r->expected, e)) return false;
  size_t end;
  if (!size_add(r->from, r->expected, &end))
    return refuse_object(r, "shape", e, "the arrays are too large for the address space");
  if (r->list && r->tensor.elements > 0 && r->form.rank + 1 != r->tensor.depth)
    return refuse_object(r, "shape", e, "%u dimensions, but the first object has %u", r->form.rank,
                         r->tensor.depth - 1);
  r->judged = true;
  return true;
}

/* Adds the shape of element `i` of a list. As in tensor_nest, the list of shapes starts when the
 * first one differs. */
static bool add_shape(struct tensor_base64 *r, size_t i, struct error *e) {
  struct tensor *t = &r->tensor;
  struct tensor_shape shape = {{0}};
  memcpy(shape.dim, r->form.dim, r->form.rank * sizeof *shape.dim);
  if (i == 0) t->common = shape;
  if (!t->ragged && memcmp(&shape, &t->common, sizeof shape) == 0) return true;
  if (!t->ragged || i >= r->shapes) {
    const bool first = !t->ragged;
    size_t capacity = size_max(16, i + i / 2 + 1);
    struct tensor_shape *ragged = arena_grow(r->arena, t->ragged, &capacity, sizeof *ragged, e);
    if (!ragged) return false;
    for (size_t k = 0; first && k < i; k++) ragged[k] = t->common;
    t->ragged = ragged;
    r->shapes = capacity;
  }
  t->ragged[i] = shape;
  return true;
}

/* Adds the array of a complete object to the tensor. */
static bool add_array(struct tensor_base64 *r, struct error *e) {
  struct tensor *t = &r->tensor;
  const enum tensor_dtype dtype = r->form.dtype;
  if (r->bytes.came != r->expected)
    return refuse_object(r, "base64", e, "%zu bytes, but dtype and shape require %zu",
                         r->bytes.came, r->expected);
  const size_t count = r->expected / tensor_dtype_size(dtype);
  if (r->bytes.dtype != dtype && dtype != DTYPE_F32 && count > 0) {
    if (r->raws == r->raw_room) {
      size_t room = size_max(4, r->raws + r->raws / 2);
      struct tensor_base64_raw *grown = arena_grow(r->arena, r->raw, &room, sizeof *grown, e);
      if (!grown) return false;
      r->raw = grown;
      r->raw_room = room;
    }
    r->raw[r->raws++] = (struct tensor_base64_raw){r->from, r->bytes.came, dtype};
    t->late = r;
  }
  t->count += count;
  t->data = r->bytes.data;
  t->unjudged |= count > 0 && (dtype == DTYPE_F32 || r->bytes.bad);
  if (!r->list) {
    t->depth = r->form.rank;
    t->elements = r->form.dim[0];
    memcpy(t->common.dim, r->form.dim + 1, (r->form.rank - 1) * sizeof *r->form.dim);
    return true;
  }
  if (!add_shape(r, t->elements, e)) return false;
  t->depth = r->form.rank + 1;
  t->elements++;
  return true;
}

/* Appends the numbers of `size` bytes at `from`. */
static enum status append_numbers(struct tensor_bytes *to, enum tensor_dtype dtype,
                                  const unsigned char *from, size_t size, struct error *e) {
  tensor_bytes_next(to, dtype, size);
  tensor_bytes_feed(to, from, size, e);
  return e->status;
}

enum status tensor_base64_convert(struct tensor_base64 *r, struct error *e) {
  struct tensor *t = &r->tensor;
  const unsigned char *from = r->bytes.data;
  struct tensor_bytes made;
  size_t done = 0;
  tensor_bytes_init(&made, DTYPE_F32, 0, r->arena);
  if (!tensor_bytes_room(&made, t->count * sizeof(float), e)) return e->status;
  for (const struct tensor_base64_raw *raw = r->raw; raw < r->raw + r->raws; raw++) {
    if (append_numbers(&made, DTYPE_F32, from + done, raw->at - done, e) ||
        append_numbers(&made, raw->dtype, from + raw->at, raw->size, e))
      return e->status;
    t->unjudged |= made.bad;
    done = size_round_up(raw->at + raw->size, sizeof(float));
  }
  const size_t rest = r->bytes.size > done ? r->bytes.size - done : 0;
  if (append_numbers(&made, DTYPE_F32, from + done, rest, e)) return e->status;
  must(made.size == t->count * sizeof(float));
  t->data = made.data;
  t->late = NULL;
  return STATUS_OK;
}

static const char *end_object(struct tensor_base64 *r, const char *p, struct error *e) {
  for (enum tensor_base64_key key = 0; key < KEYS; key++)
    if (!(r->seen & 1u << key))
      return refuse_object(
          r, "", e,
          "an array in base64 requires \"dtype\", \"shape\" and \"base64\": %s is missing",
          key_names[key]);
  if (!add_array(r, e)) return NULL;
  r->state = r->list ? AFTER_OBJECT : COMPLETE;
  return p + 1;
}

/* --- keys and types --- */

static void begin_word(struct tensor_base64 *r, enum tensor_base64_state state) {
  r->string = (struct json_string){0};
  r->word_length = 0;
  r->state = state;
}

/* Returns whether the word needs no escaping in a JSON Pointer and an error message. */
static bool is_harmless(const char *word, size_t length) {
  for (size_t i = 0; i < length; i++)
    if (word[i] <= ' ' || (unsigned char)word[i] >= 0x7f || word[i] == '~' || word[i] == '/')
      return false;
  return length > 0;
}

static bool end_key(struct tensor_base64 *r, struct error *e) {
  const size_t length = size_min(r->word_length, WORD_MAX);
  for (r->key = 0; r->key < KEYS; r->key++)
    if (strlen(key_names[r->key]) == r->word_length &&
        memcmp(key_names[r->key], r->word, length) == 0)
      break;
  if (r->key == KEYS) {
    char shown[WORD_MAX + 1] = "";
    if (is_harmless(r->word, length)) snprintf(shown, sizeof shown, "%.*s", (int)length, r->word);
    return refuse_object(r, shown, e,
                         "unknown key: an array in base64 has \"dtype\", \"shape\" and \"base64\"");
  }
  if (r->seen & 1u << r->key)
    return refuse_object(r, key_names[r->key], e, "duplicate key \"%s\"", key_names[r->key]);
  r->seen |= 1u << r->key;
  r->state = COLON;
  return true;
}

static bool end_dtype(struct tensor_base64 *r, struct error *e) {
  if (r->word_length <= WORD_MAX) r->form.dtype = tensor_dtype_of(r->word, r->word_length);
  r->state = AFTER_VALUE;
  switch (r->form.dtype) {
  case DTYPE_F32:
  case DTYPE_F16:
  case DTYPE_BF16:
  case DTYPE_F64:
    return judge_form(r, e);
  default:
    return refuse_object(r, "dtype", e, "the type must be \"F32\", \"F16\", \"BF16\" or \"F64\"");
  }
}

/* Reads a byte of a key or of a type's name. */
static const char *read_word(struct tensor_base64 *r, const char *p,
                             const struct tensor_base64_stretch *s, struct error *e) {
  const int c = json_string_byte(&r->string, *p);
  if (c == JSON_STRING_BAD) {
    json_bad_string(e, offset_of(s, p), *p);
    return NULL;
  }
  if (c == JSON_STRING_END) {
    const bool fine = r->state == IN_KEY ? end_key(r, e) : end_dtype(r, e);
    return fine ? p + 1 : NULL;
  }
  if (c == JSON_STRING_WITHIN) return p + 1;
  if (r->word_length < WORD_MAX) r->word[r->word_length] = (char)c;
  r->word_length++;
  return p + 1;
}

/* --- shapes --- */

/* Fails at the dimension that is being read. */
static const char *refuse_dim(const struct tensor_base64 *r, const char *why, struct error *e) {
  char pointer[ERROR_POINTER_SIZE];
  snprintf(pointer, sizeof pointer, "%s/%u", r->value_pointer, r->form.rank);
  error_at(e, pointer, "%s", why);
  return NULL;
}

/* Reads the list of dimensions after its opening bracket. */
static const char *read_dims(struct tensor_base64 *r, const char *p,
                             const struct tensor_base64_stretch *s, struct error *e) {
  for (; p < s->end; p++) {
    if (r->state == IN_DIM) {
      const enum number_scanned scanned = number_scan_byte(&r->dim, *p);
      if (scanned == NUMBER_SCAN_TAKEN) continue;
      if (scanned == NUMBER_SCAN_MALFORMED) return refuse_byte(s, p, "a digit", e);
      int32_t dim;
      const enum number_verdict verdict = number_scan_integer(&r->dim, &dim);
      if (verdict == NUMBER_MALFORMED)
        return refuse_dim(r, "a dimension must be an integer without fraction or exponent", e);
      if (verdict == NUMBER_OK && dim < 0)
        return refuse_dim(r, "a dimension must not be negative", e);
      if (verdict != NUMBER_OK)
        return refuse_dim(r, "the dimension exceeds the 32-bit integer range", e);
      if (r->form.rank < TENSOR_DEPTH_MAX) r->form.dim[r->form.rank] = (size_t)dim;
      r->form.rank++;
      r->state = AFTER_DIM; /* where this byte, which ended the dimension, is read */
    }
    if (is_blank(*p)) continue;
    if (*p == ']' && r->state != NEXT_DIM) {
      r->state = AFTER_VALUE;
      return judge_form(r, e) ? p + 1 : NULL;
    }
    if (r->state == AFTER_DIM) {
      if (*p != ',') return refuse_byte(s, p, "',' or ']'", e);
      r->state = NEXT_DIM;
      continue;
    }
    if (!json_starts_value(*p)) return refuse_byte(s, p, "an integer", e);
    if (*p != '-' && (*p < '0' || *p > '9')) return refuse_dim(r, "expected an integer", e);
    number_scan_begin(&r->dim);
    number_scan_byte(&r->dim, *p);
    r->state = IN_DIM;
  }
  return p;
}

/* --- objects --- */

/* Begins the value of a key. */
static const char *begin_value(struct tensor_base64 *r, const char *p,
                               const struct tensor_base64_stretch *s, struct error *e) {
  const bool shape = r->key == KEY_SHAPE;
  if (*p != (shape ? '[' : '"'))
    return refuse_found(r, key_names[r->key], shape ? "an array of integers" : "a string", s, p, e);
  if (r->key == KEY_DTYPE) {
    begin_word(r, IN_DTYPE);
    return p + 1;
  }
  char item[24] = "";
  if (r->list) snprintf(item, sizeof item, "/%zu", r->tensor.elements);
  snprintf(r->value_pointer, sizeof r->value_pointer, "/%s%s/%s", r->rule.field, item,
           key_names[r->key]);
  if (shape) {
    r->state = FIRST_DIM;
    return p + 1;
  }
  /* If type and shape are known, the bytes become numbers as they arrive. */
  if (r->judged) tensor_bytes_next(&r->bytes, r->form.dtype, r->expected);
  r->state = IN_TEXT;
  base64_text_init(&r->text, &r->bytes, r->value_pointer);
  return p + 1;
}

/* Reads `c`, and continues with the state `next`. */
static const char *expect_byte(struct tensor_base64 *r, const char *p,
                               const struct tensor_base64_stretch *s, char c, const char *wanted,
                               enum tensor_base64_state next, struct error *e) {
  if (*p != c) return refuse_byte(s, p, wanted, e);
  r->state = next;
  return p + 1;
}

/* Reads a byte between words and numbers that is not blank. */
static const char *read_between(struct tensor_base64 *r, const char *p,
                                const struct tensor_base64_stretch *s, struct error *e) {
  switch (r->state) {
  case OBJECT:
    if (*p != '{') return refuse_found(r, "", "an object", s, p, e);
    r->state = FIRST_KEY;
    return p + 1;
  case FIRST_KEY:
    if (*p == '}') return end_object(r, p, e);
    /* fall through */
  case KEY:
    begin_word(r, IN_KEY);
    return *p == '"' ? p + 1 : refuse_byte(s, p, "a key", e);
  case COLON:
    return expect_byte(r, p, s, ':', "':'", VALUE, e);
  case VALUE:
    return begin_value(r, p, s, e);
  case AFTER_VALUE:
    return *p == '}' ? end_object(r, p, e) : expect_byte(r, p, s, ',', "',' or '}'", KEY, e);
  default: /* AFTER_OBJECT */
    if (*p == ']') {
      r->state = COMPLETE;
      return p + 1;
    }
    if (*p != ',') return refuse_byte(s, p, "',' or ']'", e);
    if (r->rule.max_elements && r->tensor.elements >= r->rule.max_elements) {
      error_limit(e, "max_items", "%s has more than %zu items", r->rule.field,
                  r->rule.max_elements);
      return NULL;
    }
    begin_object(r);
    return p + 1;
  }
}

enum status tensor_base64_feed(struct tensor_base64 *r, const char *text, size_t length,
                               size_t offset, size_t *used, bool *complete, struct error *e) {
  const struct tensor_base64_stretch s = {text, text + length, offset};
  const char *p = text;
  while (p && p < s.end && r->state != COMPLETE) {
    bool ended = false;
    switch (r->state) {
    case IN_TEXT:
      p = base64_text_feed(&r->text, p, (size_t)(s.end - p), offset_of(&s, p), &ended, e);
      if (ended) r->state = AFTER_VALUE;
      break;
    case IN_KEY:
    case IN_DTYPE:
      p = read_word(r, p, &s, e);
      break;
    case FIRST_DIM:
    case NEXT_DIM:
    case IN_DIM:
    case AFTER_DIM:
      p = read_dims(r, p, &s, e);
      break;
    default:
      p = is_blank(*p) ? p + 1 : read_between(r, p, &s, e);
    }
  }
  if (!p) return e->status;
  *used = (size_t)(p - text);
  *complete = r->state == COMPLETE;
  return STATUS_OK;
}
