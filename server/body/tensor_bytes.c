/* tensor_bytes: an array that came as bytes. */
#include "server/body/tensor_bytes.h"

#include <stdio.h>
#include <string.h>

#include "config/checkpoint/floats.h"
#include "core/run/size.h"

enum {
  FIRST_CAPACITY = 1 << 20, /* bytes: of what is announced, before any of it is there */
  FIRST_UNKNOWN = 4096,     /* where nothing is announced: about what a toy needs */
  STEP = 256                /* numbers that are converted at a time */
};

static const struct {
  const char *name;
  size_t size;
  enum tensor_type type;
  enum floats_type format; /* of a float */
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

static const char *const belongs[] = {
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

/* "2 or 3", "2 to 4", "1" */
static const char *ranks(const struct tensor_rule *rule, char text[32]) {
  const unsigned least = rule->depth_min, most = rule->depth_max;
  if (least == most)
    snprintf(text, 32, "%u", least);
  else
    snprintf(text, 32, "%u %s %u", least, most == least + 1 ? "or" : "to", most);
  return text;
}

enum status tensor_form_check(const struct tensor_form *form, const struct tensor_rule *rule,
                              size_t *bytes, struct error *e) {
  char text[32];
  if (form->dtype == DTYPE_NONE || dtypes[form->dtype].type != rule->type)
    return refuse_form(rule, e, "the type must be %s", belongs[rule->type]);
  if (form->rank < rule->depth_min || form->rank > rule->depth_max)
    return refuse_form(rule, e, "a shape of %u dimensions; it must be %s", form->rank,
                       ranks(rule, text));
  size_t count = 1;
  for (unsigned i = 0; i < form->rank; i++)
    if (!size_mul(count, form->dim[i], &count))
      return refuse_form(rule, e, "the product of the shape is more than the machine can address");
  if (!size_mul(count, dtypes[form->dtype].size, bytes))
    return refuse_form(rule, e, "the product of the shape is more than the machine can address");
  if (rule->width && form->rank > 0 && form->dim[form->rank - 1] != rule->width)
    return refuse_form(rule, e, "the last dimension is %zu, not %zu%s%s", form->dim[form->rank - 1],
                       rule->width, rule->width_name ? ", the model's " : "",
                       rule->width_name ? rule->width_name : "");
  /* Below that rank the first dimension counts the rows of one item. */
  const bool batch = form->rank > 0 && form->rank >= rule->ragged_depth;
  if (batch && rule->max_elements && form->dim[0] > rule->max_elements)
    return error_limit(e, "max_items", "%zu items; %zu are allowed", form->dim[0],
                       rule->max_elements);
  return STATUS_OK;
}

/* --- collecting --- */

void tensor_bytes_init(struct tensor_bytes *t, size_t most, struct arena *a) {
  *t = (struct tensor_bytes){.arena = a, .most = most};
}

unsigned char *tensor_bytes_room(struct tensor_bytes *t, size_t size, struct error *e) {
  must(size <= t->most - t->size);
  const size_t needed = t->size + size;
  if (needed <= t->capacity && t->data) return t->data + t->size;
  const size_t first = t->most == SIZE_MAX ? FIRST_UNKNOWN : FIRST_CAPACITY;
  const size_t twice = t->capacity <= t->most / 2 ? 2 * t->capacity : t->most;
  size_t capacity = size_max(needed, size_min(t->most, size_max(first, twice)));
  unsigned char *data = arena_grow(t->arena, t->data, &capacity, 1, e);
  if (!data) return NULL;
  t->data = data;
  t->capacity = capacity;
  return data + t->size;
}

size_t tensor_bytes_feed(struct tensor_bytes *t, const void *bytes, size_t size, struct error *e) {
  const size_t taken = size_min(size, t->most - t->size);
  if (taken == 0) return 0;
  unsigned char *room = tensor_bytes_room(t, taken, e);
  if (!room) return 0;
  memcpy(room, bytes, taken);
  t->size += taken;
  return taken;
}

/* --- converting --- */

/* Returns how many are within 32 bits. */
static size_t to_int32(unsigned char *at, size_t count) {
  for (size_t i = 0; i < count; i++) {
    int64_t wide;
    memcpy(&wide, at + i * sizeof wide, sizeof wide);
    const int32_t narrow = (int32_t)wide;
    if (narrow != wide) return i;
    memcpy(at + i * sizeof narrow, &narrow, sizeof narrow);
  }
  return count;
}

/* Converts through a copy, from the end at which bytes written lie upon bytes already read. */
static size_t to_floats(enum floats_type format, unsigned char *at, size_t count) {
  const size_t size = floats_type_size(format);
  float number[STEP];
  size_t good = count;
  for (size_t done = 0, n; done < count; done += n) {
    n = size_min(STEP, count - done);
    const size_t first = size < sizeof *number ? count - done - n : done;
    const size_t finite = floats_convert(format, at + first * size, n, number);
    if (finite < n) good = size_min(good, first + finite);
    memcpy(at + first * sizeof *number, number, n * sizeof *number);
  }
  return good;
}

enum status tensor_bytes_convert(struct tensor_bytes *t, size_t at, enum tensor_dtype dtype,
                                 size_t count, size_t *good, struct error *e) {
  const size_t size = dtypes[dtype].size, made = sizeof(float);
  must(at % made == 0 && t->size - at == count * size);
  *good = count;
  if (count == 0 || dtype == DTYPE_F32 || dtype == DTYPE_I32) return STATUS_OK;
  if (size < made) {
    size_t end;
    if (!size_mul(count, made, &end) || !size_add(end, at, &end))
      return error_set(e, STATUS_TOO_LARGE, "%zu numbers are more than the machine can address",
                       count);
    t->most = size_max(t->most, end);
    if (!tensor_bytes_room(t, end - t->size, e)) return e->status;
  }
  if (dtype == DTYPE_I64)
    *good = to_int32(t->data + at, count);
  else
    *good = to_floats(dtypes[dtype].format, t->data + at, count);
  t->size = at + count * made;
  return STATUS_OK;
}

/* --- the tensor --- */

/* The pointer of a number by its place among all. */
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

/* Returns how many from the first are 0 or 1. */
static size_t count_flags(const unsigned char *flag, size_t count) {
  unsigned char any = 0;
  for (size_t i = 0; i < count; i++) any |= flag[i];
  if (any <= 1) return count;
  size_t good = 0;
  while (flag[good] <= 1) good++;
  return good;
}

enum status tensor_bytes_settle(struct tensor_bytes *t, const struct tensor_form *form,
                                const struct tensor_rule *rule, struct tensor *out,
                                struct error *e) {
  size_t count = 1, good;
  for (unsigned i = 0; i < form->rank; i++)
    count *= form->dim[i]; /* as tensor_form_check has seen */
  if (rule->type == TENSOR_FLAG) {
    must(t->size == count);
    good = count_flags(t->data, count);
  } else if (tensor_bytes_convert(t, 0, form->dtype, count, &good, e)) {
    return e->status;
  }
  if (good < count && rule->type == TENSOR_FLAG)
    return refuse_number(form, rule, good, "the byte of a flag must be 0 or 1", e);
  if (good < count && rule->type == TENSOR_INTEGER)
    return refuse_number(form, rule, good, "the number is beyond 32 bits", e);
  *out = (struct tensor){.depth = form->rank,
                         .elements = form->rank > 0 ? form->dim[0] : 0,
                         .count = count,
                         .data = t->data,
                         .shaped = true};
  for (unsigned i = 1; i < form->rank; i++) out->common.dim[i - 1] = form->dim[i];
  /* Of numbers that were converted it is known whether they are finite. */
  out->unjudged = rule->type == TENSOR_FLOAT && (form->dtype == DTYPE_F32 || good < count);
  return STATUS_OK;
}
