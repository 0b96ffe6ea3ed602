/* body_v2_input: one input of a v2 request: its name, shape and datatype, and its numbers. */
#include <string.h>

#include "core/base/size.h"
#include "server/number/number.h"
#include "server/v2/body_v2_parts.h"

/* Checks name, shape and datatype, which are known, against each other. */
static enum status prepare_input(struct body_v2 *b, struct body_v2_input *in) {
  const struct contract_input *is = in->is;
  const bool two = is->other != is->dtype;
  if (in->prepared) return STATUS_OK;
  if (in->dtype != is->dtype && in->dtype != is->other)
    return body_v2_refuse(b, body_v2_at_input(in, "datatype"), "the datatype must be %s%s%s",
                          body_v2_datatype_name(is->dtype), two ? " or " : "",
                          two ? body_v2_datatype_name(is->other) : "");
  in->rule = contract_rule(b->into, is->field);
  in->rule.nullable = false;
  in->rule.depth_min = is->depth_min;
  in->form.dtype = in->dtype;
  in->prepared = !tensor_form_check(&in->form, &in->rule, &in->expected, b->e);
  return b->e->status;
}

/* --- numbers in the JSON --- */

/* Returns how many numbers the shape has. */
static size_t numbers_of(const struct body_v2_input *in) {
  return in->expected / tensor_dtype_size(in->dtype);
}

/* Makes the reader. The first byte after the opening bracket tells flat from nested data. */
static enum status open_data(struct body_v2 *b, struct body_v2_input *in, char first,
                             size_t offset) {
  struct tensor_rule rule = in->rule;
  const unsigned rank = in->form.rank;
  in->nested = rank > 1 && first == '[';
  if (!in->nested && numbers_of(in) == 0 && first != ']')
    return body_v2_refuse(b, body_v2_at_input(in, "data"), "data, but the shape has no elements");
  rule.depth_min = rule.depth_max = in->nested ? rank : 1;
  rule.ragged_depth = rule.depth_max + 1;
  rule.width = in->nested ? in->form.dim[rank - 1] : numbers_of(in);
  rule.width_name = NULL;
  if (!in->nested) rule.max_elements = 0;
  in->reader = tensor_json_new(&rule, b->arena, b->e);
  size_t used;
  bool complete;
  if (in->reader) tensor_json_feed(in->reader, "[", 1, offset, &used, &complete, b->e);
  return b->e->status;
}

/* Checks the lengths of nested data against the shape, and makes the tensor. An array without
 * elements hides all levels below it. */
static enum status close_data(struct body_v2 *b, struct body_v2_input *in) {
  const struct tensor *t = tensor_json_view(in->reader);
  bool hidden = !in->nested;
  for (unsigned level = 0; level < in->form.rank && !hidden; level++) {
    const size_t wanted = in->form.dim[level];
    const size_t length = level == 0         ? t->elements
                          : level < t->depth ? t->common.dim[level - 1]
                                             : 0;
    if (length != wanted)
      return body_v2_refuse(b, body_v2_at_input(in, "data"),
                            "dimension %u of the data has length %zu, but the shape says %zu",
                            level, length, wanted);
    hidden = wanted == 0;
  }
  must(t->count == numbers_of(in));
  in->tensor = *t;
  in->tensor.depth = in->form.rank;
  in->tensor.elements = in->form.dim[0];
  in->tensor.shaped = true;
  for (unsigned i = 1; i < in->form.rank; i++) in->tensor.common.dim[i - 1] = in->form.dim[i];
  return STATUS_OK;
}

size_t body_v2_data_feed(struct body_v2 *b, const char *text, size_t length, size_t offset,
                         bool *complete) {
  struct body_v2_input *in = body_v2_input(b);
  size_t at = 0, used = 0;
  if (!in->opened) {
    in->opened = true;
    if (prepare_input(b, in)) return 1;
    at = 1; /* the bracket */
  }
  if (!in->reader) {
    while (at < length && is_blank(text[at])) at++;
    if (at == length || open_data(b, in, text[at], offset)) return at;
  }
  if (tensor_json_feed(in->reader, text + at, length - at, offset + at, &used, complete, b->e))
    return at;
  if (*complete) close_data(b, in);
  return at + used;
}

enum status body_v2_text_keep(struct body_v2 *b, struct body_v2_text *t, const char *text,
                              size_t length) {
  if (t->capacity - t->length < length) {
    size_t capacity = size_max(t->length + length, t->capacity / 2 * 3);
    char *grown = arena_grow(b->arena, t->text, &capacity, 1, b->e);
    if (!grown) return b->e->status;
    t->text = grown;
    t->capacity = capacity;
  }
  memcpy(t->text + t->length, text, length);
  t->length += length;
  return STATUS_OK;
}

/* --- the complete object --- */

static enum status check_input(struct body_v2 *b, struct body_v2_input *in) {
  const struct body_v2_place whole = body_v2_at_input(in, NULL);
  if (!in->is) return body_v2_refuse(b, whole, "the input's \"name\" is missing");
  for (size_t i = 0; i < in->index; i++)
    if (b->input[i].is == in->is)
      return body_v2_refuse(b, body_v2_at_input(in, "name"), "duplicate input \"%s\"",
                            in->is->name);
  if (!in->typed) return body_v2_refuse(b, whole, "the input's \"datatype\" is missing");
  if (!in->shaped) return body_v2_refuse(b, whole, "the input's \"shape\" is missing");
  if (in->has_data && in->has_size)
    return body_v2_refuse(b, whole,
                          "\"data\" and \"binary_data_size\" exclude each other: send one");
  if (!in->has_data && !in->has_size)
    return body_v2_refuse(b, whole, "\"data\" or the parameter \"binary_data_size\" is missing");
  if (prepare_input(b, in) || !in->has_size) return b->e->status;
  const struct body_v2_place at = {V2_INPUT_PARAMETERS, in->index, "binary_data_size"};
  if (b->json_bytes == BODY_UNKNOWN)
    return body_v2_refuse(
        b, at, "\"binary_data_size\" without the header Inference-Header-Content-Length");
  if (in->size != in->expected)
    return body_v2_refuse(b, at, "\"binary_data_size\" is %zu, but the shape needs %zu bytes",
                          in->size, in->expected);
  return STATUS_OK;
}

enum status body_v2_end_input(struct body_v2 *b) {
  struct body_v2_input *in = body_v2_input(b);
  bool complete = false;
  if (check_input(b, in)) return b->e->status;
  if (in->has_size) tensor_bytes_init(&in->bytes, in->dtype, in->expected, b->arena);
  if (in->kept.text)
    body_v2_data_feed(b, in->kept.text, in->kept.length, in->kept_offset, &complete);
  if (b->e->status) return b->e->status;
  must(!in->kept.text || complete);
  b->into->tensor[in->is->field] = &in->tensor; /* filled later from binary data */
  return STATUS_OK;
}

/* --- numbers after the JSON --- */

/* Returns the first input, in the JSON's order, whose binary data is incomplete, and makes the
 * tensors of those before it. Returns NULL if there is none, or after a failure. */
static struct body_v2_input *next_block(struct body_v2 *b) {
  for (; b->block < b->inputs; b->block++) {
    struct body_v2_input *in = &b->input[b->block];
    if (!in->has_size) continue;
    if (!tensor_bytes_whole(&in->bytes)) return in;
    if (tensor_bytes_finish(&in->bytes, &in->form, &in->rule, &in->tensor, b->e)) return NULL;
  }
  return NULL;
}

enum status body_v2_blocks_feed(struct body_v2 *b, const char *bytes, size_t size) {
  for (size_t at = 0; at < size && !b->e->status;) {
    struct body_v2_input *in = next_block(b);
    if (in)
      at += tensor_bytes_feed(&in->bytes, bytes + at, size - at, b->e);
    else
      error_at(b->e, "", "extra bytes after the binary data of the last input");
  }
  return b->e->status;
}

enum status body_v2_end_blocks(struct body_v2 *b) {
  struct body_v2_input *in = next_block(b);
  if (!in || b->e->status) return b->e->status;
  return body_v2_refuse(b, body_v2_at_input(in, NULL),
                        "the body ends after %zu of the %zu bytes of its binary data",
                        in->bytes.came, in->expected);
}
