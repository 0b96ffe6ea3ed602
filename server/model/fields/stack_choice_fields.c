/* stack_choice_fields: readers of what says how tokens are chosen. */
#include "server/model/fields/stack_choice_fields.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/json/json_small.h"
#include "server/model/fields/stack_fields.h"

/* --- integers --- */

static enum status read_integer(const json_t *value, const struct contract_field *field,
                                json_int_t least, size_t *to, struct error *e) {
  if (!json_is_integer(value) || json_integer_value(value) < least)
    return error_at(e, field->pointer, "%s must be an integer of at least %lld",
                    contract_name(field), (long long)least);
  *to = json_integer_value(value) < 0 ? 0 : (size_t)json_integer_value(value);
  return STATUS_OK;
}

enum status stack_read_count(const json_t *value, const struct contract_field *field, void *to,
                             struct error *e) {
  return read_integer(value, field, 0, to, e);
}

enum status stack_read_number(const json_t *value, const struct contract_field *field, void *to,
                              struct error *e) {
  return read_integer(value, field, 1, to, e);
}

/* --- a search --- */

enum status stack_read_beams(const json_t *value, const struct contract_field *field, void *to,
                             struct error *e) {
  if (!json_is_integer(value) || json_integer_value(value) < 1 ||
      json_integer_value(value) > STACK_BEAMS_MAX)
    return error_at(e, field->pointer, "beams must be an integer from 1 to %d", STACK_BEAMS_MAX);
  *(size_t *)to = (size_t)json_integer_value(value);
  return STATUS_OK;
}

enum status stack_read_early(const json_t *value, const struct contract_field *field, void *to,
                             struct error *e) {
  enum stack_early *early = to;
  if (json_is_boolean(value))
    *early = json_is_true(value) ? STACK_EARLY_YES : STACK_EARLY_NOT;
  else if (json_small_is_text(value, "never"))
    *early = STACK_EARLY_NEVER;
  else
    return error_at(e, field->pointer, "early_stopping must be true, false or \"never\"");
  return STATUS_OK;
}

/* --- numbers --- */

/* NaN where the value is no number: it is in no range. */
static double number_of(const json_t *value) {
  return json_is_number(value) ? json_number_value(value) : NAN;
}

enum status stack_read_power(const json_t *value, const struct contract_field *field, void *to,
                             struct error *e) {
  if (!json_is_number(value))
    return error_at(e, field->pointer, "%s must be a number", contract_name(field));
  *(double *)to = json_number_value(value);
  return STATUS_OK;
}

/* --- options --- */

static const struct whole_option *find_option(const struct contract_field *field) {
  size_t i = 0;
  while (i < WHOLE_OPTION_COUNT && strcmp(whole_options[i].word, contract_name(field)) != 0) i++;
  must(i < WHOLE_OPTION_COUNT);
  return &whole_options[i];
}

static enum status refuse_option(const struct whole_option *o, const struct contract_field *field,
                                 struct error *e) {
  const bool above = o->type == WHOLE_ABOVE;
  if (o->most == INFINITY)
    return error_at(e, field->pointer, "%s must be %s %g", o->word,
                    above ? "above" : "a number of at least", o->least);
  return error_at(e, field->pointer, "%s must be %s %g %s %g", o->word,
                  above ? "above" : "a number from", o->least, above ? "and at most" : "to",
                  o->most);
}

enum status stack_read_option(const json_t *value, const struct contract_field *field, void *to,
                              struct error *e) {
  const struct whole_option *o = find_option(field);
  const double x = number_of(value);
  if (o->type == WHOLE_COUNT) return read_integer(value, field, (json_int_t)o->least, to, e);
  if (!whole_option_has(o, x)) return refuse_option(o, field, e);
  *(double *)to = x;
  return STATUS_OK;
}

/* --- biases --- */

enum { BIAS_MOST = 100 };

/* The token that the key names; -1: none. */
static int32_t token_of(const char *key) {
  const size_t digits = strspn(key, "0123456789");
  const bool good = digits > 0 && digits < 10 && !key[digits] && (key[0] != '0' || digits == 1);
  return good ? (int32_t)strtol(key, NULL, 10) : -1;
}

static enum status refuse_bias(const struct contract_field *field, const char *key,
                               struct error *e) {
  char shown[CONTRACT_NAME_SHOWN + 1], name[ERROR_POINTER_SIZE], pointer[ERROR_POINTER_SIZE];
  contract_show_name(key, strlen(key), shown, name, sizeof name - field->name_length - 1);
  snprintf(pointer, sizeof pointer, "%s%s", field->pointer, name);
  if (token_of(key) < 0) return error_at(e, pointer, "\"%s\" is not a token id", shown);
  return error_at(e, pointer, "must be a number from -%d to %d", BIAS_MOST, BIAS_MOST);
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
    const double x = number_of(one);
    if (token_of(key) < 0 || !(fabs(x) <= BIAS_MOST)) return refuse_bias(field, key, e);
    to[v->choice.biases++] = (struct stack_bias){token_of(key), x};
  }
  return STATUS_OK;
}

/* --- lists of tokens --- */

static enum status refuse_token(const struct contract_field *field, size_t at, size_t tokens,
                                struct error *e) {
  char pointer[ERROR_POINTER_SIZE];
  snprintf(pointer, sizeof pointer, "%s/%zu", field->pointer, at);
  return error_at(e, pointer, "must be a token id of the model: an integer from 0 to %zu",
                  tokens - 1);
}

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
    if (id < 0 || (uint64_t)id >= tokens) return refuse_token(field, i, tokens, e);
    to[i] = (int32_t)id;
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

/* --- texts that end one --- */

static enum status refuse_stop(const struct contract_field *field, bool alone, size_t at,
                               struct error *e) {
  char pointer[ERROR_POINTER_SIZE];
  snprintf(pointer, sizeof pointer, alone ? "%s" : "%s/%zu", field->pointer, at);
  return error_at(e, pointer, "each stop sequence must have 1 to %d bytes", STACK_STOP_LONGEST);
}

static void copy_stop(const json_t *value, struct stack_values *v, struct error *e) {
  const size_t length = json_string_length(value);
  char *bytes = arena_alloc(v->arena, length, 1, e);
  if (!bytes) return;
  memcpy(bytes, json_string_value(value), length);
  v->stop[v->stops++] = (struct tokenizer_text){bytes, length};
}

enum status stack_read_stop_texts(const json_t *value, const struct contract_field *field,
                                  void *values, struct error *e) {
  struct stack_values *v = values;
  const bool alone = json_is_string(value);
  const size_t count = alone ? 1 : json_array_size(value);
  if (!alone && (!json_is_array(value) || count > STACK_STOPS_MAX))
    return error_at(e, field->pointer, "stop must be a string, or a list of up to %d strings",
                    STACK_STOPS_MAX);
  v->stop = arena_alloc(v->arena, count, sizeof *v->stop, e);
  for (size_t i = 0; i < count && !e->status; i++) {
    const json_t *text = alone ? value : json_array_get(value, i);
    const size_t length = json_string_length(text);
    if (length == 0 || length > STACK_STOP_LONGEST) return refuse_stop(field, alone, i, e);
    copy_stop(text, v, e);
  }
  return e->status;
}
