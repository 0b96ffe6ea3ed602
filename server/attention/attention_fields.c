/* attention_fields: names, forms and small values of a request's fields. */
#include "server/attention/attention_fields.h"

#include <jansson.h>
#include <string.h>

#include "config/document/nearest.h"
#include "core/run/size.h"
#include "server/body/json_small.h"

/* Bytes of an unknown name that an error repeats: its pointer holds them even if all are escaped.
 */
enum { NAME_SHOWN = 46 };

static const int64_t SEED_MAX = (1ll << 53) - 1;

/* Beyond any sum of a row number and an offset, and far from where adding would overflow. */
static const int64_t WINDOW_MAX = 1ll << 60;

static const char *const pointers[FIELD_COUNT] = {
    [FIELD_QUERIES] = "/queries",
    [FIELD_KEYS] = "/keys",
    [FIELD_VALUES] = "/values",
    [FIELD_VALID_LENS] = "/valid_lens",
    [FIELD_MASK] = "/mask",
    [FIELD_BIAS] = "/bias",
    [FIELD_HEAD_MASK] = "/head_mask",
    [FIELD_SEGMENTS] = "/segments",
    [FIELD_GRADIENTS] = "/gradients",
    [FIELD_CAUSAL_OFFSET] = "/causal_offset",
    [FIELD_CAUSAL] = "/causal",
    [FIELD_WINDOW] = "/window",
    [FIELD_SELECT] = "/select",
    [FIELD_SEED] = "/seed",
    [FIELD_EMPTY_ROWS] = "/empty_rows",
    [FIELD_RETURN_ATTENTION] = "/return_attention",
    [FIELD_RETURN_POINTERS] = "/return_pointers",
    [FIELD_ENCODING_FORMAT] = "/encoding_format",
};

const char *field_pointer(enum attention_field field) { return pointers[field]; }
const char *field_name(enum attention_field field) { return pointers[field] + 1; }

void fields_init(struct fields *f, const struct model *m) {
  *f = (struct fields){.causal = m->causal, .window = {-1, -1}, .want = WEIGHTS_NONE};
}

/* --- names --- */

static enum attention_field find(const char *name, size_t length) {
  for (enum attention_field f = 0; f < FIELD_COUNT; f++)
    if (strlen(field_name(f)) == length && memcmp(field_name(f), name, length) == 0) return f;
  return FIELD_COUNT;
}

/* Writes a name, which is UTF-8, as it may be shown and, escaped, as a JSON Pointer: no control
 * bytes, and cut between two characters. */
static void show(const char *name, size_t length, char shown[NAME_SHOWN + 1],
                 char pointer[ERROR_POINTER_SIZE]) {
  if (length > NAME_SHOWN) {
    length = NAME_SHOWN;
    while (length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80) length--;
  }
  size_t p = 0;
  pointer[p++] = '/';
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)name[i];
    bool harmless = c >= 0x20 && c != 0x7f;
    shown[i] = harmless ? name[i] : '?';
    bool escape = c == '~' || c == '/';
    pointer[p++] = escape ? '~' : shown[i];
    if (escape) pointer[p++] = c == '~' ? '0' : '1';
  }
  shown[length] = '\0';
  pointer[p] = '\0';
}

static enum status refuse_unknown(const char *name, size_t length, struct error *e) {
  char shown[NAME_SHOWN + 1], pointer[ERROR_POINTER_SIZE];
  show(name, length, shown, pointer);
  struct nearest known;
  nearest_init(&known, shown);
  for (enum attention_field f = 0; f < FIELD_COUNT; f++) nearest_offer(&known, field_name(f));
  return error_at(e, pointer, "unknown field \"%s\"; the nearest known one is \"%s\"", shown,
                  known.name);
}

enum status field_of_word(const char *name, size_t length, enum attention_field *out,
                          struct error *e) {
  *out = find(name, length);
  return *out < FIELD_COUNT ? STATUS_OK : refuse_unknown(name, length, e);
}

enum status field_note(uint32_t *seen, enum attention_field field, enum body_ask ask,
                       struct error *e) {
  if (*seen & 1u << field)
    return error_at(e, field_pointer(field), "the field \"%s\" stands twice", field_name(field));
  if (field == FIELD_GRADIENTS && ask != ASK_HEADS)
    return error_at(e, field_pointer(field),
                    "gradients belong to the path /v1/models/{model}/heads");
  *seen |= 1u << field;
  return STATUS_OK;
}

enum status field_name_too_long(const char *raw, size_t length, struct error *e) {
  return refuse_unknown(raw + 1, length - 1, e);
}

/* --- small JSON values --- */

/* What Jansson has against a value. As text it is JSON already, unless it comes from safetensors.
 */
static void refuse_value(size_t offset, const char *pointer, const json_error_t *why,
                         struct error *e) {
  switch (json_error_code(why)) {
  case json_error_duplicate_key:
    error_at(e, pointer, "a key stands twice in one object");
    break;
  case json_error_null_byte_in_key:
    error_at(e, pointer, "a key with a NUL character");
    break;
  case json_error_numeric_overflow:
    error_at(e, pointer, "a number is out of range");
    break;
  default:
    error_json(e, offset, "the value is not JSON");
  }
}

json_t *field_parse(const char *text, size_t length, size_t offset, const char *pointer,
                    struct error *e) {
  json_error_t why = {0};
  size_t flags = JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
  bool no_memory;
  json_t *value = json_small_load(text, length, flags, &why, &no_memory);
  if (no_memory)
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a field");
  else if (!value)
    refuse_value(offset, pointer, &why, e);
  return value;
}

enum status field_of_name(const char *raw, size_t length, size_t offset, enum attention_field *out,
                          struct error *e) {
  *out = find(raw + 1, length - 2);
  if (*out < FIELD_COUNT) return STATUS_OK;
  /* Escaped or misspelt. */
  json_t *name = field_parse(raw, length, offset, "", e);
  if (!name) return e->status;
  field_of_word(json_string_value(name), json_string_length(name), out, e);
  json_decref(name);
  return e->status;
}

static enum status read_flag(const json_t *value, enum attention_field field, bool *out,
                             struct error *e) {
  if (!json_is_boolean(value))
    return error_at(e, field_pointer(field), "%s must be true or false", field_name(field));
  *out = json_is_true(value);
  return STATUS_OK;
}

static enum status read_window(const json_t *value, int64_t window[2], struct error *e) {
  if (!json_is_array(value) || json_array_size(value) != 2)
    return error_at(e, "/window", "window must be two integers, [left, right]");
  for (size_t side = 0; side < 2; side++) {
    const json_t *n = json_array_get(value, side);
    if (!json_is_integer(n) || json_integer_value(n) < -1)
      return error_at(e, side ? "/window/1" : "/window/0",
                      "a side of the window must be an integer of at least -1");
    window[side] = json_integer_value(n) < WINDOW_MAX ? json_integer_value(n) : WINDOW_MAX;
  }
  return STATUS_OK;
}

static enum status read_select(const json_t *value, enum select *out, struct error *e) {
  static const char *const words[] = {
      [SELECT_SOFT] = "soft", [SELECT_HARD] = "hard", [SELECT_SAMPLE] = "sample"};
  for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
    if (!json_is_text(value, words[i])) continue;
    *out = (enum select)i;
    return STATUS_OK;
  }
  return error_at(e, "/select", "select must be \"soft\", \"hard\" or \"sample\"");
}

static enum status read_seed(const json_t *value, uint64_t *seed, struct error *e) {
  json_int_t n = json_is_integer(value) ? json_integer_value(value) : -1;
  if (n < 0 || n > SEED_MAX)
    return error_at(e, "/seed", "seed must be an integer from 0 to %lld", (long long)SEED_MAX);
  *seed = (uint64_t)n;
  return STATUS_OK;
}

static enum status read_empty_rows(const json_t *value, bool *uniform, struct error *e) {
  *uniform = json_is_text(value, "uniform");
  if (*uniform || json_is_text(value, "zero")) return STATUS_OK;
  return error_at(e, "/empty_rows", "empty_rows must be \"zero\" or \"uniform\"");
}

static enum status read_return_attention(const json_t *value, enum weights *want, struct error *e) {
  if (json_is_boolean(value))
    *want = json_is_true(value) ? WEIGHTS_PER_HEAD : WEIGHTS_NONE;
  else if (json_is_text(value, "average"))
    *want = WEIGHTS_AVERAGE;
  else
    return error_at(e, "/return_attention", "return_attention must be true, false or \"average\"");
  return STATUS_OK;
}

static enum status read_encoding_format(const json_t *value, bool *base64, struct error *e) {
  *base64 = json_is_text(value, "base64");
  if (*base64 || json_is_text(value, "float")) return STATUS_OK;
  return error_at(e, "/encoding_format", "encoding_format must be \"float\" or \"base64\"");
}

static enum status read_offset_word(const json_t *value, bool *end, struct error *e) {
  *end = json_is_text(value, "end");
  if (*end) return STATUS_OK;
  return error_at(e, "/causal_offset",
                  "causal_offset must be an integer, one integer per item, or \"end\"");
}

enum status field_read(struct fields *out, enum attention_field field, const char *text,
                       size_t length, size_t offset, struct error *e) {
  json_t *value = field_parse(text, length, offset, field_pointer(field), e);
  if (!value) return e->status;
  switch (field) {
  case FIELD_CAUSAL_OFFSET:
    read_offset_word(value, &out->offset_end, e);
    break;
  case FIELD_CAUSAL:
    read_flag(value, field, &out->causal, e);
    break;
  case FIELD_WINDOW:
    read_window(value, out->window, e);
    break;
  case FIELD_SELECT:
    read_select(value, &out->select, e);
    break;
  case FIELD_SEED:
    read_seed(value, &out->seed, e);
    break;
  case FIELD_EMPTY_ROWS:
    read_empty_rows(value, &out->uniform_rows, e);
    break;
  case FIELD_RETURN_ATTENTION:
    read_return_attention(value, &out->want, e);
    break;
  case FIELD_RETURN_POINTERS:
    read_flag(value, field, &out->want_pointers, e);
    break;
  case FIELD_ENCODING_FORMAT:
    read_encoding_format(value, &out->base64, e);
    break;
  default:
    must(!"a field that is not small");
  }
  json_decref(value);
  return e->status;
}

/* --- arrays --- */

struct tensor_rule field_rule(enum attention_field field, const struct model *m,
                              const struct body_limits *limits) {
  struct tensor_rule rule = {
      .field = field_name(field),
      .type = TENSOR_FLOAT,
      .depth_min = 2,
      .depth_max = 3,
      .ragged_depth = 3,
      .max_elements = limits->max_items,
  };
  switch (field) {
  case FIELD_QUERIES:
    rule.width = m->shape.query_size;
    rule.width_name = "query_size";
    break;
  case FIELD_KEYS:
    rule.width = m->shape.key_size;
    rule.width_name = "key_size";
    break;
  case FIELD_VALUES:
    rule.width = m->shape.value_size;
    rule.width_name = "value_size";
    break;
  case FIELD_MASK:
    rule.type = TENSOR_FLAG;
    break;
  case FIELD_BIAS:
    rule.depth_max = 4;
    /* Of one item alone the outermost level may be the heads. */
    rule.max_elements = size_max(limits->max_items, m->shape.heads);
    break;
  case FIELD_VALID_LENS:
    rule.type = TENSOR_INTEGER;
    rule.nullable = true;
    rule.depth_min = 0;
    rule.depth_max = rule.ragged_depth = 2;
    break;
  case FIELD_SEGMENTS:
    rule.type = TENSOR_INTEGER;
    rule.depth_min = 1;
    rule.depth_max = rule.ragged_depth = 2;
    break;
  case FIELD_GRADIENTS:
    rule.width = m->shape.output_size;
    rule.width_name = "output_size";
    break;
  case FIELD_CAUSAL_OFFSET:
    rule.type = TENSOR_INTEGER;
    rule.depth_min = 0;
    rule.depth_max = 1;
    break;
  case FIELD_HEAD_MASK:
    rule.depth_min = rule.depth_max = 1;
    rule.width = m->shape.heads;
    rule.width_name = "heads";
    break;
  default:
    must(!"a field that is no array");
  }
  return rule;
}
