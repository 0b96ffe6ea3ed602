/* dialect_fields: fields that several dialects have. */
#include "server/dialect/dialect_fields.h"

#include <jansson.h>
#include <string.h>

#include "server/model/fields/stack_choice_fields.h"
#include "server/model/fields/stack_fields.h"

enum status dialect_read_model(const json_t *value, const struct contract_field *field, void *to,
                               struct error *e) {
  struct dialect_values *v = to;
  const size_t length = json_string_length(value);
  if (!json_is_string(value))
    return error_at(e, field->pointer, "model must be a string: the name of a model");
  v->names_model = true;
  v->model[0] = '\0';
  if (length < sizeof v->model && !memchr(json_string_value(value), 0, length))
    memcpy(v->model, json_string_value(value), length + 1);
  return STATUS_OK;
}

enum status dialect_pass_text(const json_t *value, const struct contract_field *field, void *to,
                              struct error *e) {
  (void)to;
  if (json_is_string(value)) return STATUS_OK;
  return error_at(e, field->pointer, "%s must be a string", contract_name(field));
}

enum status dialect_pass_nothing(const json_t *value, const struct contract_field *field, void *to,
                                 struct error *e) {
  const bool off = (json_is_number(value) && json_number_value(value) == 0) ||
                   json_is_false(value) ||
                   (json_is_string(value) && json_string_length(value) == 0) ||
                   (json_is_object(value) && json_object_size(value) == 0);
  (void)to;
  if (off) return STATUS_OK;
  return error_at(e, field->pointer, "%s is not supported: remove it", contract_name(field));
}

enum status dialect_read_stream_options(const json_t *value, const struct contract_field *field,
                                        void *to, struct error *e) {
  const json_t *usage = json_object_get(value, "include_usage");
  if (!json_is_object(value) || (usage && !json_is_boolean(usage)))
    return error_at(e, field->pointer,
                    "stream_options must be an object, with \"include_usage\" true or false");
  *(bool *)to = json_is_true(usage);
  return STATUS_OK;
}

/* Reads how many of the most likely tokens are shown; `or` is what else the field may be. */
static enum status read_top(const json_t *value, const struct contract_field *field,
                            const char * or, size_t *to, struct error *e) {
  if (!json_is_integer(value) || json_integer_value(value) < 0 ||
      json_integer_value(value) > STACK_TOP_MAX)
    return error_at(e, field->pointer, "%s must be an integer from 0 to %d%s", contract_name(field),
                    STACK_TOP_MAX, or);
  *to = (size_t)json_integer_value(value);
  return STATUS_OK;
}

enum status dialect_read_top_logprobs(const json_t *value, const struct contract_field *field,
                                      void *to, struct error *e) {
  return read_top(value, field, "", to, e);
}

enum status dialect_read_logprobs(const json_t *value, const struct contract_field *field, void *to,
                                  struct error *e) {
  struct dialect_logprobs *l = to;
  *l = (struct dialect_logprobs){.wanted = !json_is_false(value)};
  return l->wanted ? read_top(value, field, ", or false", &l->top, e) : STATUS_OK;
}

/* Clients of other services send 0 to get the log probabilities of a prompt. */
enum status dialect_read_max_tokens(const json_t *value, const struct contract_field *field,
                                    void *to, struct error *e) {
  if (json_is_integer(value) && json_integer_value(value) == 0)
    return error_at(e, field->pointer,
                    "%s must be an integer of at least 1: POST /v1/models/NAME/score returns the "
                    "log probabilities of a prompt",
                    contract_name(field));
  return stack_read_number(value, field, to, e);
}

/* Assumes a large model. */
uint64_t dialect_plan_cost(const struct contract_reading *r) {
  enum { LAYERS = 48, LAYER_NS = 300, ITEM_NS = 15 };
  const struct tensor *t = r->tensor[0];
  const size_t items = r->texts ? r->texts->items : t && t->depth > 1 ? t->elements : 1;
  return LAYERS * (LAYER_NS + ITEM_NS * (uint64_t)items);
}
