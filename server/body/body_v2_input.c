/* body_v2_input: one input of a v2 request: what it says of itself, and its numbers. */
#include <string.h>

#include "core/run/size.h"
#include "server/body/body_v2_parts.h"
#include "server/text/blank.h"

/* --- what it is --- */

/* The types that a field takes. */
static const struct {
  enum tensor_dtype type, other;
  const char *names;
} datatypes[V2_INPUTS_MAX] = {
    [FIELD_QUERIES] = {DTYPE_F32, DTYPE_F32, "FP32"},
    [FIELD_KEYS] = {DTYPE_F32, DTYPE_F32, "FP32"},
    [FIELD_VALUES] = {DTYPE_F32, DTYPE_F32, "FP32"},
    [FIELD_VALID_LENS] = {DTYPE_I32, DTYPE_I64, "INT32 or INT64"},
    [FIELD_MASK] = {DTYPE_BOOL, DTYPE_BOOL, "BOOL"},
};

/* The rule of the native form, but for what that leaves open: here, a batch is a batch. */
static struct tensor_rule rule_of(const struct body_v2 *d, enum attention_field field) {
  struct tensor_rule rule = field_rule(field, d->model, &d->limits);
  rule.nullable = false;
  if (field <= FIELD_VALUES) rule.depth_min = 3;
  if (field == FIELD_VALID_LENS) rule.depth_min = 1;
  return rule;
}

/* Its name, shape and type are known: do they go together? */
static enum status prepare(struct body_v2 *d, struct v2_input *in) {
  struct error *e = d->e;
  if (in->prepared) return STATUS_OK;
  if (in->dtype != datatypes[in->field].type && in->dtype != datatypes[in->field].other)
    return v2_refuse(d, v2_at_input(in, "datatype"), "the datatype must be %s",
                     datatypes[in->field].names);
  in->rule = rule_of(d, in->field);
  in->form.dtype = in->dtype;
  in->prepared = !tensor_form_check(&in->form, &in->rule, &in->expected, e);
  return e->status;
}

/* --- numbers in the JSON --- */

/* Numbers of the shape, which do not overflow together. */
static size_t count_of(const struct v2_input *in) {
  return in->expected / tensor_dtype_size(in->dtype);
}

/* The first byte behind the opening bracket says whether the data are flat or nested. */
static enum status open_data(struct body_v2 *d, struct v2_input *in, char first, size_t offset) {
  struct tensor_rule rule = in->rule;
  const unsigned rank = in->form.rank;
  in->nested = rank > 1 && first == '[';
  if (!in->nested && count_of(in) == 0 && first != ']')
    return v2_refuse(d, v2_at_input(in, "data"), "data, but the shape has no elements");
  rule.depth_min = rule.depth_max = in->nested ? rank : 1;
  rule.ragged_depth = rule.depth_max + 1;
  rule.width = in->nested ? in->form.dim[rank - 1] : count_of(in);
  rule.width_name = NULL;
  if (!in->nested) rule.max_elements = 0;
  in->reader = tensor_reader_new(&rule, d->arena, d->e);
  size_t used;
  bool complete;
  if (in->reader) tensor_reader_feed(in->reader, "[", 1, offset, &used, &complete, d->e);
  return d->e->status;
}

/* Nested data whose lengths are not the shape's. An array without elements hides what would be in
 * it, and may stand for any number of levels. */
static enum status check_nested(struct body_v2 *d, const struct v2_input *in,
                                const struct tensor *t) {
  bool hidden = false;
  for (unsigned level = 0; level < in->form.rank && !hidden; level++) {
    const size_t wanted = in->form.dim[level];
    const size_t length = level == 0         ? t->elements
                          : level < t->depth ? t->common.dim[level - 1]
                                             : 0;
    if (length != wanted)
      return v2_refuse(d, v2_at_input(in, "data"),
                       "the length of the data's dimension %u is %zu, and %zu in the shape", level,
                       length, wanted);
    hidden = wanted == 0;
  }
  return STATUS_OK;
}

static enum status close_data(struct body_v2 *d, struct v2_input *in) {
  const struct tensor *t = tensor_reader_view(in->reader);
  if (in->nested && check_nested(d, in, t)) return d->e->status;
  must(t->count == count_of(in));
  in->tensor = *t;
  in->tensor.depth = in->form.rank;
  in->tensor.elements = in->form.dim[0];
  in->tensor.shaped = true;
  for (unsigned i = 1; i < in->form.rank; i++) in->tensor.common.dim[i - 1] = in->form.dim[i];
  return STATUS_OK;
}

static size_t feed_data(struct body_v2 *d, struct v2_input *in, const char *text, size_t length,
                        size_t offset, bool *complete) {
  size_t at = 0, used = 0;
  if (!in->opened) {
    in->opened = true;
    if (prepare(d, in)) return 1;
    at = 1; /* the bracket */
  }
  if (!in->reader) {
    while (at < length && is_blank(text[at])) at++;
    if (at == length || open_data(d, in, text[at], offset)) return at;
  }
  if (tensor_reader_feed(in->reader, text + at, length - at, offset + at, &used, complete, d->e))
    return at;
  if (*complete) close_data(d, in);
  return at + used;
}

size_t v2_data_feed(struct body_v2 *d, const char *text, size_t length, size_t offset,
                    bool *complete) {
  return feed_data(d, v2_input(d), text, length, offset, complete);
}

enum status v2_text_keep(struct body_v2 *d, struct v2_text *t, const char *text, size_t length) {
  if (t->capacity - t->length < length) {
    size_t capacity = size_max(t->length + length, t->capacity / 2 * 3);
    char *grown = arena_grow(d->arena, t->text, &capacity, 1, d->e);
    if (!grown) return d->e->status;
    t->text = grown;
    t->capacity = capacity;
  }
  memcpy(t->text + t->length, text, length);
  t->length += length;
  return STATUS_OK;
}

/* --- the whole object --- */

static enum status check_size(struct body_v2 *d, const struct v2_input *in) {
  const struct v2_place at = {V2_INPUT_PARAMETERS, in->index, "binary_data_size"};
  if (d->head.json_bytes == BODY_UNKNOWN)
    return v2_refuse(d, at,
                     "\"binary_data_size\" without the header Inference-Header-Content-Length");
  if (in->size != in->expected)
    return v2_refuse(d, at, "\"binary_data_size\" is %zu, but the shape needs %zu bytes", in->size,
                     in->expected);
  return STATUS_OK;
}

static enum status check_whole(struct body_v2 *d, struct v2_input *in) {
  const struct v2_place whole = v2_at_input(in, NULL);
  if (!in->named) return v2_refuse(d, whole, "the input's \"name\" is missing");
  for (size_t i = 0; i < in->index; i++)
    if (d->input[i].field == in->field)
      return v2_refuse(d, v2_at_input(in, "name"), "the input \"%s\" stands twice",
                       field_name(in->field));
  if (!in->typed) return v2_refuse(d, whole, "the input's \"datatype\" is missing");
  if (!in->shaped) return v2_refuse(d, whole, "the input's \"shape\" is missing");
  if (in->has_data && in->has_size)
    return v2_refuse(d, whole, "both \"data\" and \"binary_data_size\": only one can be");
  if (!in->has_data && !in->has_size)
    return v2_refuse(d, whole, "neither \"data\" nor the parameter \"binary_data_size\"");
  if (prepare(d, in)) return d->e->status;
  return in->has_size ? check_size(d, in) : STATUS_OK;
}

enum status v2_input_ended(struct body_v2 *d) {
  struct v2_input *in = v2_input(d);
  bool complete = false;
  if (check_whole(d, in)) return d->e->status;
  if (in->has_size) tensor_bytes_init(&in->bytes, in->expected, d->arena);
  if (in->kept.text) feed_data(d, in, in->kept.text, in->kept.length, in->kept_offset, &complete);
  if (d->e->status) return d->e->status;
  must(!in->kept.text || complete);
  d->fields.tensor[in->field] = &in->tensor; /* binary data come into it later */
  return STATUS_OK;
}

/* --- numbers behind the JSON --- */

/* The input whose block is not whole yet, in the JSON's order. Blocks that have become whole are
 * made into their tensors. NULL: there is none, or a block was refused. */
static struct v2_input *next_block(struct body_v2 *d) {
  for (; d->block < d->inputs; d->block++) {
    struct v2_input *in = &d->input[d->block];
    if (!in->has_size) continue;
    if (in->bytes.size < in->expected) return in;
    if (tensor_bytes_settle(&in->bytes, &in->form, &in->rule, &in->tensor, d->e)) return NULL;
  }
  return NULL;
}

enum status v2_blocks_feed(struct body_v2 *d, const char *bytes, size_t size) {
  for (size_t at = 0; at < size && !d->e->status;) {
    struct v2_input *in = next_block(d);
    if (in)
      at += tensor_bytes_feed(&in->bytes, bytes + at, size - at, d->e);
    else
      error_at(d->e, "", "the body goes on behind the binary data of the last input");
  }
  return d->e->status;
}

enum status v2_blocks_ended(struct body_v2 *d) {
  struct v2_input *in = next_block(d);
  if (!in || d->e->status) return d->e->status;
  return v2_refuse(d, v2_at_input(in, NULL),
                   "the body ends after %zu of the %zu bytes of its binary data", in->bytes.size,
                   in->expected);
}
