/* stack_choice_fields: readers of the fields that say how tokens are chosen, one for each sort. */
#include "server/model/fields/stack_choice_fields.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/model/fields/stack_fields.h"

/* --- single values --- */

enum status stack_read_count(const json_t *value, const struct contract_field *field, void *to,
                             struct error *e) {
  return contract_integer(value, field, 0, INT64_MAX, to, e);
}

enum status stack_read_number(const json_t *value, const struct contract_field *field, void *to,
                              struct error *e) {
  return contract_integer(value, field, 1, INT64_MAX, to, e);
}

/* NaN, which is in no range, for a value that is not a number. */
static double number_of(const json_t *value) {
  return json_is_number(value) ? json_number_value(value) : NAN;
}

enum status stack_read_option(const json_t *value, const struct contract_field *field, void *to,
                              struct error *e) {
  const struct whole_option *o = whole_options;
  while (strcmp(o->word, contract_name(field)) != 0) must(++o < whole_options + WHOLE_OPTION_COUNT);
  const bool above = o->type == WHOLE_ABOVE;
  if (o->type == WHOLE_COUNT)
    return contract_integer(value, field, (int64_t)o->least,
                            o->most < INFINITY ? (int64_t)o->most : INT64_MAX, to, e);
  if (o->type == WHOLE_EARLY) {
    if (whole_option_early(value, to)) return STATUS_OK;
    return error_at(e, field->pointer, "%s must be true, false or \"never\"", o->word);
  }
  if (whole_option_has(o, number_of(value))) {
    *(double *)to = number_of(value);
    return STATUS_OK;
  }
  if (o->least == -INFINITY) return error_at(e, field->pointer, "%s must be a number", o->word);
  if (o->most == INFINITY)
    return error_at(e, field->pointer, "%s must be %s %g", o->word,
                    above ? "above" : "a number of at least", o->least);
  return error_at(e, field->pointer, "%s must be %s %g %s %g", o->word,
                  above ? "above" : "a number from", o->least, above ? "and at most" : "to",
                  o->most);
}

/* --- biases --- */

enum { BIAS_MOST = 100 };

/* The token id that the key is; -1: it is not one. */
static int32_t token_of(const char *key) {
  const size_t digits = strspn(key, "0123456789");
  const bool good = digits > 0 && digits < 10 && !key[digits] && (key[0] != '0' || digits == 1);
  return good ? (int32_t)strtol(key, NULL, 10) : -1;
}

enum status stack_read_bias(const json_t *value, const struct contract_field *field, void *values,
                            struct error *e) {
  struct stack_values *v = values;
  const char *key;
  const json_t *one;
  if (!json_is_object(value))
    return error_at(
        e, field->pointer,
        "logit_bias must be an object of token ids and numbers: {\"TOKEN\": BIAS, ...}");
  struct stack_bias *to = arena_alloc(v->arena, json_object_size(value), sizeof *to, e);
  if (!to) return e->status;
  v->choice.bias = to;
  json_object_foreach((json_t *)value, key, one) {
    const int32_t token = token_of(key);
    const double x = number_of(one);
    if (token >= 0 && fabs(x) <= BIAS_MOST) {
      to[v->choice.biases++] = (struct stack_bias){token, x};
      continue;
    }
    char shown[CONTRACT_NAME_SHOWN + 1], name[ERROR_POINTER_SIZE], pointer[ERROR_POINTER_SIZE];
    contract_show_name(key, strlen(key), shown, name, sizeof name - field->name_length - 1);
    snprintf(pointer, sizeof pointer, "%s%s", field->pointer, name);
    if (token < 0) return error_at(e, pointer, "\"%s\" is not a token id", shown);
    return error_at(e, pointer, "must be a number from -%d to %d", BIAS_MOST, BIAS_MOST);
  }
  return STATUS_OK;
}

/* --- lists of tokens --- */

static enum status read_tokens(const json_t *value, const struct contract_field *field,
                               const struct stack_values *v, const int32_t **list, size_t *count,
                               struct error *e) {
  const size_t tokens = v->main.form->embedding.tokens;
  if (!json_is_array(value))
    return error_at(e, field->pointer, "%s must be a list of tokens", contract_name(field));
  *count = json_array_size(value);
  int32_t *to = arena_alloc(v->arena, *count, sizeof *to, e);
  for (size_t i = 0; to && i < *count; i++) {
    const json_t *token = json_array_get(value, i);
    const json_int_t id = json_is_integer(token) ? json_integer_value(token) : -1;
    if (id >= 0 && (uint64_t)id < tokens) {
      to[i] = (int32_t)id;
      continue;
    }
    char pointer[ERROR_POINTER_SIZE];
    snprintf(pointer, sizeof pointer, "%s/%zu", field->pointer, i);
    return error_at(e, pointer, "must be a token id of the model: an integer from 0 to %zu",
                    tokens - 1);
  }
  *list = to;
  return e->status;
}

enum status stack_read_stops(const json_t *value, const struct contract_field *field, void *values,
                             struct error *e) {
  struct stack_values *v = values;
  return read_tokens(value, field, v, &v->choice.stop, &v->choice.stops, e);
}

enum status stack_read_banned(const json_t *value, const struct contract_field *field, void *values,
                              struct error *e) {
  struct stack_values *v = values;
  struct stack_choice *c = &v->choice;
  const int32_t *own;
  size_t count;
  if (read_tokens(value, field, v, &own, &count, e)) return e->status;
  int32_t *all = arena_alloc(v->arena, c->banned_count + count, sizeof *all, e);
  if (!all) return e->status;
  if (c->banned_count > 0) memcpy(all, c->banned, c->banned_count * sizeof *all);
  if (count > 0) memcpy(all + c->banned_count, own, count * sizeof *all);
  c->banned = all;
  c->banned_count += count;
  return STATUS_OK;
}

/* --- stop sequences --- */

enum status stack_read_stop_texts(const json_t *value, const struct contract_field *field,
                                  void *values, struct error *e) {
  struct stack_values *v = values;
  const bool alone = json_is_string(value);
  const size_t count = alone ? 1 : json_array_size(value);
  if (!alone && (!json_is_array(value) || count > STACK_STOPS_MAX))
    return error_at(e, field->pointer, "stop must be a string, or a list of up to %d strings",
                    STACK_STOPS_MAX);
  v->stop = arena_alloc(v->arena, count, sizeof *v->stop, e);
  if (!v->stop) return e->status;
  for (size_t i = 0; i < count; i++) {
    const json_t *text = alone ? value : json_array_get(value, i);
    const size_t length = json_string_length(text);
    if (length == 0 || length > STACK_STOP_LONGEST) {
      char pointer[ERROR_POINTER_SIZE];
      snprintf(pointer, sizeof pointer, alone ? "%s" : "%s/%zu", field->pointer, i);
      return error_at(e, pointer, "each stop sequence must have 1 to %d bytes", STACK_STOP_LONGEST);
    }
    char *bytes = arena_alloc(v->arena, length, 1, e);
    if (!bytes) return e->status;
    memcpy(bytes, json_string_value(text), length);
    v->stop[v->stops++] = (struct tokenizer_text){bytes, length};
  }
  return STATUS_OK;
}
