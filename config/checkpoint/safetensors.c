/* safetensors: parses the header strictly. The steps of safetensors_parse are the rules of the
 * format, in the order in which they are checked. */
#include "config/checkpoint/safetensors.h"

#include <endian.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/json_reserve.h"
#include "config/document/text.h"

/* Larger integers are not exact in every JSON library. */
static const json_int_t integer_max = (json_int_t)1 << 53;

struct safetensors_tensor {
  struct safetensors_entry entry;
  uint64_t end; /* offset in the data after its bytes */
};

struct safetensors_text {
  const char *key, *value;
};

struct safetensors {
  json_t *header; /* owns all names */
  uint64_t data_size;
  size_t texts;
  struct safetensors_text *text; /* of __metadata__ */
  size_t count;
  struct safetensors_tensor tensors[]; /* in the order of their data */
};

/* Bytes of a number; 0 for an unknown type, whose tensors can neither be checked nor used. */
static uint64_t type_size(const char *name) {
  static const struct {
    const char *name;
    uint64_t size;
  } types[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},   {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"I16", 2},
               {"U16", 2},  {"F16", 2}, {"BF16", 2}, {"I32", 4},     {"U32", 4},     {"F32", 4},
               {"I64", 8},  {"U64", 8}, {"F64", 8},  {"C64", 8},     {"F8_E8M0", 1}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(types[i].name, name) == 0) return types[i].size;
  return 0;
}

/* --- the header's text --- */

static json_t *parse_header_json(const char *text, size_t size, struct error *e) {
  json_error_t fault;
  bool no_memory;
  if (size == 0 || text[0] != '{') {
    error_set(e, STATUS_CONFIG, "the header does not begin with '{'");
    return NULL;
  }
  if (!text_is_utf8(text, size)) {
    error_set(e, STATUS_CONFIG, "the header is not UTF-8");
    return NULL;
  }
  /* Jansson takes a NUL for the end of the text, and allows white space after it, which the format
   * does not. */
  if (memchr(text, '\0', size)) {
    error_set(e, STATUS_CONFIG, "the header holds a NUL byte");
    return NULL;
  }
  size_t used = size;
  while (text[used - 1] == ' ') used--;
  json_t *header = json_reserve_load(text, used, &fault, &no_memory);
  if (no_memory) {
    error_no_memory(e);
  } else if (!header) {
    error_set(e, STATUS_CONFIG, "the header is not valid JSON at byte %d: %s", fault.position,
              fault.text);
  } else if (text[used - 1] != '}') {
    error_set(e, STATUS_CONFIG, "the header is followed by something other than spaces");
    json_decref(header);
    header = NULL;
  }
  return header;
}

static bool read_integer(const json_t *value, uint64_t *out) {
  json_int_t number = json_integer_value(value);
  if (!json_is_integer(value) || number < 0 || number > integer_max) return false;
  *out = (uint64_t)number;
  return true;
}

static enum status read_tensor_entry(const char *name, json_t *value, struct safetensors_tensor *t,
                                     struct error *e) {
  const char *dtype = json_string_value(json_object_get(value, "dtype"));
  const json_t *shape = json_object_get(value, "shape");
  const json_t *offsets = json_object_get(value, "data_offsets");
  if (!dtype || !json_is_array(shape) || !json_is_array(offsets) || json_object_size(value) != 3)
    return error_set(
        e, STATUS_CONFIG,
        "tensor \"%.100s\" is not described by a dtype, a shape and data_offsets alone", name);
  t->entry = (struct safetensors_entry){.name = name, .dtype = dtype};
  t->entry.rank = json_array_size(shape);
  if (t->entry.rank > SAFETENSORS_RANK_MAX)
    return error_set(e, STATUS_CONFIG, "tensor \"%.100s\" has more than %d dimensions", name,
                     SAFETENSORS_RANK_MAX);
  for (size_t i = 0; i < t->entry.rank; i++)
    if (!read_integer(json_array_get(shape, i), &t->entry.dim[i]))
      return error_set(e, STATUS_CONFIG,
                       "tensor \"%.100s\": dimension %zu is not an integer from 0 to 2^53", name,
                       i);
  if (json_array_size(offsets) != 2 || !read_integer(json_array_get(offsets, 0), &t->entry.begin) ||
      !read_integer(json_array_get(offsets, 1), &t->end))
    return error_set(e, STATUS_CONFIG,
                     "tensor \"%.100s\": data_offsets are not two integers from 0 to 2^53", name);
  if (t->entry.begin > t->end)
    return error_set(e, STATUS_CONFIG, "tensor \"%.100s\": its data end before they begin", name);
  return STATUS_OK;
}

static enum status read_metadata_texts(struct safetensors *s, json_t *metadata, struct error *e) {
  const char *key;
  json_t *value;
  if (!json_is_object(metadata))
    return error_set(e, STATUS_CONFIG, "__metadata__ is not an object");
  s->text = calloc(json_object_size(metadata) + 1, sizeof *s->text);
  if (!s->text) return error_no_memory(e);
  json_object_foreach(metadata, key, value) {
    if (!json_is_string(value))
      return error_set(e, STATUS_CONFIG, "__metadata__: \"%.100s\" is not a string", key);
    s->text[s->texts++] = (struct safetensors_text){.key = key, .value = json_string_value(value)};
  }
  return STATUS_OK;
}

/* --- offsets and sizes of the data --- */

/* By offset; an empty tensor precedes the one that begins at the same offset. */
static int compare_offsets(const void *left, const void *right) {
  const struct safetensors_tensor *a = left, *b = right;
  if (a->entry.begin != b->entry.begin) return a->entry.begin < b->entry.begin ? -1 : 1;
  if (a->end != b->end) return a->end < b->end ? -1 : 1;
  return strcmp(a->entry.name, b->entry.name);
}

static enum status check_offsets(struct safetensors *s, struct error *e) {
  uint64_t end = 0;
  qsort(s->tensors, s->count, sizeof *s->tensors, compare_offsets);
  for (size_t i = 0; i < s->count; i++) {
    const struct safetensors_tensor *t = &s->tensors[i];
    if (t->entry.begin < end)
      return error_set(e, STATUS_CONFIG, "tensor \"%.100s\" overlaps \"%.100s\"", t->entry.name,
                       s->tensors[i - 1].entry.name);
    if (t->entry.begin > end)
      return error_set(e, STATUS_CONFIG, "%ju bytes before tensor \"%.100s\" belong to no tensor",
                       (uintmax_t)(t->entry.begin - end), t->entry.name);
    end = t->end;
  }
  return STATUS_OK;
}

static enum status check_data(struct safetensors *s, struct error *e) {
  if (check_offsets(s, e)) return e->status;
  for (size_t i = 0; i < s->count; i++) {
    struct safetensors_entry *entry = &s->tensors[i].entry;
    entry->count = 1;
    for (size_t d = 0; d < entry->rank; d++)
      if (__builtin_mul_overflow(entry->count, entry->dim[d], &entry->count))
        return error_set(e, STATUS_CONFIG, "tensor \"%.100s\": the product of its shape overflows",
                         entry->name);
  }
  for (size_t i = 0; i < s->count; i++) {
    struct safetensors_entry *entry = &s->tensors[i].entry;
    uint64_t size = type_size(entry->dtype), needed;
    entry->bytes = s->tensors[i].end - entry->begin;
    if (size == 0) continue;
    if (__builtin_mul_overflow(entry->count, size, &needed) || needed != entry->bytes)
      return error_set(e, STATUS_CONFIG,
                       "tensor \"%.100s\": %ju numbers of type %s do not fill its %ju bytes",
                       entry->name, (uintmax_t)entry->count, entry->dtype, (uintmax_t)entry->bytes);
  }
  const uint64_t end = s->count > 0 ? s->tensors[s->count - 1].end : 0;
  if (s->data_size == SAFETENSORS_UNKNOWN) s->data_size = end;
  if (end > s->data_size)
    return error_set(e, STATUS_CONFIG,
                     "cut short: the tensors need %ju bytes of data, there are %ju", (uintmax_t)end,
                     (uintmax_t)s->data_size);
  if (end < s->data_size)
    return error_set(e, STATUS_CONFIG, "%ju bytes follow the last tensor",
                     (uintmax_t)(s->data_size - end));
  return STATUS_OK;
}

/* --- the public part --- */

enum status safetensors_measure(const void *prefix, uint64_t size, size_t most, size_t *out,
                                struct error *e) {
  uint64_t length;
  memcpy(&length, prefix, sizeof length);
  length = le64toh(length);
  if (length > most)
    return error_set(e, STATUS_CONFIG,
                     "the header's length, %ju, is over %zu bytes; is this safetensors?",
                     (uintmax_t)length, most);
  if (size != SAFETENSORS_UNKNOWN && length > size - SAFETENSORS_PREFIX)
    return error_set(e, STATUS_CONFIG,
                     "the header's length, %ju, is over that of the file; is this safetensors?",
                     (uintmax_t)length);
  *out = (size_t)length;
  return STATUS_OK;
}

struct safetensors *safetensors_parse(const char *text, size_t size, uint64_t data_size,
                                      struct error *e) {
  json_t *header = parse_header_json(text, size, e);
  if (!header) return NULL;
  struct safetensors *s = calloc(1, sizeof *s + json_object_size(header) * sizeof *s->tensors);
  if (!s) {
    error_no_memory(e);
    json_decref(header);
    return NULL;
  }
  s->header = header;
  s->data_size = data_size;
  const char *name;
  json_t *value;
  json_object_foreach(header, name, value) {
    const bool metadata = strcmp(name, "__metadata__") == 0;
    if (metadata ? read_metadata_texts(s, value, e)
                 : read_tensor_entry(name, value, &s->tensors[s->count++], e))
      break;
  }
  if (e->status == STATUS_OK && check_data(s, e) == STATUS_OK) return s;
  text_plain(e);
  safetensors_free(s);
  return NULL;
}

void safetensors_free(struct safetensors *s) {
  if (!s) return;
  json_decref(s->header);
  free(s->text);
  free(s);
}

size_t safetensors_count(const struct safetensors *s) { return s->count; }

const struct safetensors_entry *safetensors_at(const struct safetensors *s, size_t index) {
  return &s->tensors[index].entry;
}

size_t safetensors_metadata_count(const struct safetensors *s) { return s->texts; }

const char *safetensors_metadata_at(const struct safetensors *s, size_t index, const char **value) {
  *value = s->text[index].value;
  return s->text[index].key;
}
