/* tensor_bytes: an array that arrives as bytes. */
#include "server/json/tensor_bytes.h"

#include <stdio.h>
#include <string.h>

#include "config/checkpoint/floats.h"
#include "core/base/size.h"

enum {
  MADE = 4,                 /* bytes of a converted number */
  FIRST_CAPACITY = 1 << 20, /* bytes of the first allocation, if more are expected */
  FIRST_UNKNOWN = 4096      /* bytes of the first allocation for an unknown size */
};

static const struct {
  const char *name;
  size_t size;
  enum tensor_type type;
  enum floats_type format; /* if `type` is TENSOR_FLOAT */
} dtypes[DTYPE_NONE] = {
    [DTYPE_F32] = {"F32", 4, TENSOR_FLOAT, FLOAT_F32},
    [DTYPE_F16] = {"F16", 2, TENSOR_FLOAT, FLOAT_F16},
    [DTYPE_BF16] = {"BF16", 2, TENSOR_FLOAT, FLOAT_BF16},
    [DTYPE_F64] = {"F64", 8, TENSOR_FLOAT, FLOAT_F64},
    [DTYPE_I32] = {"I32", 4, TENSOR_INTEGER, FLOAT_NONE},
    [DTYPE_I64] = {"I64", 8, TENSOR_INTEGER, FLOAT_NONE},
    [DTYPE_BOOL] = {"BOOL", 1, TENSOR_FLAG, FLOAT_NONE},
    [DTYPE_U8] = {"U8", 1, TENSOR_FLAG, FLOAT_NONE},
};

static const char *const allowed[] = {
    [TENSOR_FLOAT] = "F32, F16, BF16 or F64",
    [TENSOR_FLAG] = "BOOL or U8",
    [TENSOR_INTEGER] = "I32 or I64",
};

enum tensor_dtype tensor_dtype_of(const char *name, size_t length) {
  for (enum tensor_dtype t = 0; t < DTYPE_NONE; t++)
    if (strlen(dtypes[t].name) == length && memcmp(dtypes[t].name, name, length) == 0) return t;
  return DTYPE_NONE;
}

size_t tensor_dtype_size(enum tensor_dtype dtype) { return dtypes[dtype].size; }

/* --- forms --- */

__attribute__((format(printf, 3, 4))) static enum status
refuse_form(const struct tensor_rule *rule, struct error *e, const char *format, ...) {
  char pointer[ERROR_POINTER_SIZE];
  snprintf(pointer, sizeof pointer, "/%s", rule->field);
  va_list args;
  va_start(args, format);
  error_at_v(e, pointer, format, args);
  va_end(args);
  return e->status;
}

enum status tensor_form_check(const struct tensor_form *form, const struct tensor_rule *rule,
                              size_t *bytes, struct error *e) {
  const unsigned least = rule->depth_min, most = rule->depth_max;
  if (form->dtype == DTYPE_NONE || dtypes[form->dtype].type != rule->type)
    return refuse_form(rule, e, "the type must be %s", allowed[rule->type]);
  if (form->rank < least || form->rank > most) {
    char ranks[32]; /* "1", "2 or 3", "2 to 4" */
    if (least == most)
      snprintf(ranks, sizeof ranks, "%u", least);
    else
      snprintf(ranks, sizeof ranks, "%u %s %u", least, most == least + 1 ? "or" : "to", most);
    return refuse_form(rule, e, "the shape has %u dimensions, expected %s", form->rank, ranks);
  }
  size_t count = 1;
  for (unsigned i = 0; i < form->rank; i++)
    if (!size_mul(count, form->dim[i], &count))
      return refuse_form(rule, e, "the shape is too large for the address space");
  if (!size_mul(count, dtypes[form->dtype].size, bytes))
    return refuse_form(rule, e, "the shape is too large for the address space");
  if (rule->width && form->rank > 0 && form->dim[form->rank - 1] != rule->width)
    return refuse_form(rule, e, "the last dimension is %zu, expected %zu%s%s%s",
                       form->dim[form->rank - 1], rule->width,
                       rule->width_name ? " (the model's " : "",
                       rule->width_name ? rule->width_name : "", rule->width_name ? ")" : "");
  /* Below `ragged_depth` the first dimension counts the rows of one item. */
  const bool batch = form->rank > 0 && form->rank >= rule->ragged_depth;
  if (batch && rule->max_elements && form->dim[0] > rule->max_elements)
    return error_limit(e, "max_items", "%zu items exceed the limit of %zu", form->dim[0],
                       rule->max_elements);
  return STATUS_OK;
}

/* --- memory --- */

/* Returns the size of these bytes after conversion; SIZE_MAX: unknown, or too large to address. */
static size_t made_of(const struct tensor_bytes *t, size_t bytes) {
  size_t made;
  if (!tensor_bytes_converts(t) || bytes == SIZE_MAX) return bytes;
  return size_mul(bytes / dtypes[t->dtype].size, MADE, &made) ? made : SIZE_MAX;
}

void tensor_bytes_init(struct tensor_bytes *t, enum tensor_dtype dtype, size_t expected,
                       struct arena *a) {
  *t = (struct tensor_bytes){.arena = a, .dtype = dtype, .expected = expected};
}

void tensor_bytes_next(struct tensor_bytes *t, enum tensor_dtype dtype, size_t expected) {
  t->size = size_round_up(t->size, MADE);
  t->dtype = dtype;
  t->expected = expected;
  t->came = t->good = 0;
  t->bad = false;
}

static bool is_flags(const struct tensor_bytes *t) {
  return t->dtype == DTYPE_BOOL || t->dtype == DTYPE_U8;
}

bool tensor_bytes_converts(const struct tensor_bytes *t) {
  return t->dtype != DTYPE_NONE && t->dtype != DTYPE_F32 && t->dtype != DTYPE_I32 && !is_flags(t);
}

unsigned char *tensor_bytes_room(struct tensor_bytes *t, size_t size, struct error *e) {
  const size_t needed = t->size + size;
  if (needed <= t->capacity && t->data) return t->data + t->size;
  /* Twice the memory, but not more than all arrays need as far as that is known. */
  const size_t before = t->size - made_of(t, t->came);
  size_t most = made_of(t, t->expected);
  if (!size_add(most, before, &most) || !size_add(most, t->margin, &most)) most = SIZE_MAX;
  const size_t first = most == SIZE_MAX ? FIRST_UNKNOWN : FIRST_CAPACITY;
  const size_t twice = t->capacity <= most / 2 ? 2 * t->capacity : most;
  size_t capacity = size_max(needed, size_min(most, size_max(first, twice)));
  unsigned char *data = arena_grow(t->arena, t->data, &capacity, 1, e);
  if (!data) return NULL;
  t->data = data;
  t->capacity = capacity;
  return data + t->size;
}

/* --- numbers --- */

/* Returns how many numbers, from the first, are within 32 bits. The loop has no branch, so that the
 * compiler vectorizes it. */
static size_t to_int32(const unsigned char *from, size_t count, unsigned char *to) {
  uint64_t beyond = 0;
  for (size_t i = 0; i < count; i++) {
    int64_t wide;
    memcpy(&wide, from + i * sizeof wide, sizeof wide);
    const int32_t narrow = (int32_t)wide;
    beyond |= (uint64_t)(wide ^ narrow);
    memcpy(to + i * sizeof narrow, &narrow, sizeof narrow);
  }
  if (beyond == 0) return count;
  for (size_t i = 0;; i++) {
    int64_t wide;
    memcpy(&wide, from + i * sizeof wide, sizeof wide);
    if (wide != (int32_t)wide) return i;
  }
}

/* Returns how many flags, from the first, are 0 or 1. */
static size_t count_flags(const unsigned char *flag, size_t count) {
  unsigned char any = 0;
  for (size_t i = 0; i < count; i++) any |= flag[i];
  if (any <= 1) return count;
  size_t good = 0;
  while (flag[good] <= 1) good++;
  return good;
}

/* Counts the next `count` numbers, of which the first `good` are good. */
static void count_good(struct tensor_bytes *t, size_t count, size_t good) {
  if (t->bad) return;
  t->good += good;
  t->bad = good < count;
}

void tensor_bytes_wrote(struct tensor_bytes *t, size_t size) {
  t->size += size;
  t->came += size;
}

/* Converts `count` whole numbers. */
static bool convert(struct tensor_bytes *t, const unsigned char *from, size_t count,
                    struct error *e) {
  if (count == 0) return true;
  unsigned char *to = tensor_bytes_room(t, count * MADE, e);
  if (!to) return false;
  const size_t good = t->dtype == DTYPE_I64
                          ? to_int32(from, count, to)
                          : floats_convert(dtypes[t->dtype].format, from, count, (float *)to);
  count_good(t, count, good);
  t->size += count * MADE;
  return true;
}

size_t tensor_bytes_feed(struct tensor_bytes *t, const void *bytes, size_t size, struct error *e) {
  const unsigned char *from = bytes;
  const size_t used = size_min(size, t->expected - t->came);
  if (used == 0) return 0;
  if (!tensor_bytes_converts(t)) {
    unsigned char *room = tensor_bytes_room(t, used, e);
    if (!room) return 0;
    memcpy(room, from, used);
    if (is_flags(t)) count_good(t, used, count_flags(room, used));
    tensor_bytes_wrote(t, used);
    return used;
  }
  /* The bytes may begin and end within a number. */
  const size_t wide = dtypes[t->dtype].size, kept = t->came % wide;
  const size_t head = kept ? size_min(wide - kept, used) : 0;
  memcpy(t->part + kept, from, head);
  if (kept && kept + head == wide && !convert(t, t->part, 1, e)) return 0;
  const size_t whole = (used - head) / wide, tail = (used - head) % wide;
  if (!convert(t, from + head, whole, e)) return 0;
  memcpy(t->part, from + head + whole * wide, tail);
  t->came += used;
  return used;
}

/* --- the tensor --- */

/* Fails at the number of this index among all numbers of the array. */
static enum status refuse_number(const struct tensor_form *form, const struct tensor_rule *rule,
                                 size_t number, const char *why, struct error *e) {
  size_t index[TENSOR_DEPTH_MAX] = {0};
  char pointer[ERROR_POINTER_SIZE];
  for (unsigned i = form->rank; i-- > 0; number /= form->dim[i]) index[i] = number % form->dim[i];
  size_t used = (size_t)snprintf(pointer, sizeof pointer, "/%s", rule->field);
  for (unsigned i = 0; i < form->rank && used < sizeof pointer; i++)
    used += (size_t)snprintf(pointer + used, sizeof pointer - used, "/%zu", index[i]);
  return error_at(e, pointer, "%s", why);
}

enum status tensor_bytes_finish(const struct tensor_bytes *t, const struct tensor_form *form,
                                const struct tensor_rule *rule, struct tensor *out,
                                struct error *e) {
  must(tensor_bytes_whole(t));
  if (t->bad && rule->type == TENSOR_FLAG)
    return refuse_number(form, rule, t->good, "the byte of a flag must be 0 or 1", e);
  if (t->bad && rule->type == TENSOR_INTEGER)
    return refuse_number(form, rule, t->good, "the number exceeds the 32-bit integer range", e);
  *out = (struct tensor){.depth = form->rank,
                         .elements = form->rank > 0 ? form->dim[0] : 0,
                         .count = t->expected / dtypes[form->dtype].size,
                         .data = t->data,
                         .shaped = true};
  for (unsigned i = 1; i < form->rank; i++) out->common.dim[i - 1] = form->dim[i];
  /* Converted numbers are known to be finite, or not. */
  out->unjudged = rule->type == TENSOR_FLOAT && (form->dtype == DTYPE_F32 || t->bad);
  return STATUS_OK;
}
