/* whole_choice: the words of `generate`, and those of generation_config.json. */
#include "config/model/whole_choice.h"

#include <math.h>
#include <string.h>

#include "config/layer/definition_value.h"

enum { COUNT_MOST = 1 << 24, MAX_TOKENS = 64 };

void whole_choice_init(struct whole_choice *c) {
  memset(c, 0, sizeof *c);
  c->max_tokens = MAX_TOKENS;
  c->choice = (struct stack_choice){.top_p = 1,
                                    .repetition_penalty = 1,
                                    .forced_begin = -1,
                                    .forced_end = -1,
                                    .length_penalty = 1};
}

/* --- a definition's words --- */

/* A number that is above `low`, or may be that, up to `high`. */
static void read_number(const json_t *json, const char *key, double low, bool open, double high,
                        double *out, struct error *e) {
  const json_t *value = json_object_get(json, key);
  const double x = json_number_value(value);
  if (!value) return;
  if (!json_is_number(value))
    definition_value_refuse(key, "a number", value, e);
  else if (x < low || (open && x == low) || x > high)
    error_set(e, STATUS_CONFIG, "%s: %g is not %s %g%s", key, x, open ? "above" : "at least", low,
              high < INFINITY ? " and at most 1" : "");
  else
    *out = x;
}

static void read_banned(struct whole_choice *c, const json_t *json, struct error *e) {
  const json_t *list = json_object_get(json, "banned_tokens");
  const size_t count = json_array_size(list);
  if (!list) return;
  if (!json_is_array(list)) definition_value_refuse("banned_tokens", "a list of tokens", list, e);
  if (count > WHOLE_BANNED_MAX)
    error_set(e, STATUS_CONFIG, "banned_tokens: %zu tokens are more than %d", count,
              WHOLE_BANNED_MAX);
  c->banned = 0;
  for (size_t i = 0; i < count && !e->status; i++) {
    const json_t *token = json_array_get(list, i);
    const json_int_t id = json_is_integer(token) ? json_integer_value(token) : -1;
    if (id < 0 || id >= COUNT_MOST)
      error_set(e, STATUS_CONFIG, "banned_tokens: needs tokens, integers from 0 to %d",
                COUNT_MOST - 1);
    c->ban[c->banned++] = (int32_t)id;
  }
}

enum status whole_choice_read(struct whole_choice *c, const json_t *json, struct error *e) {
  static const char *const known[] = {"max_tokens",      "min_tokens",    "temperature",
                                      "top_k",           "top_p",         "repetition_penalty",
                                      "no_repeat_ngram", "banned_tokens", NULL};
  struct stack_choice *s = &c->choice;
  definition_value_names(json, known, e);
  definition_value_count(json, "max_tokens", 1, COUNT_MOST, &c->max_tokens, e);
  definition_value_count(json, "min_tokens", 0, COUNT_MOST, &s->min_tokens, e);
  definition_value_count(json, "top_k", 0, COUNT_MOST, &s->top_k, e);
  definition_value_count(json, "no_repeat_ngram", 0, COUNT_MOST, &s->no_repeat_ngram, e);
  read_number(json, "temperature", 0, false, INFINITY, &s->temperature, e);
  read_number(json, "top_p", 0, true, 1, &s->top_p, e);
  read_number(json, "repetition_penalty", 0, true, INFINITY, &s->repetition_penalty, e);
  read_banned(c, json, e);
  return e->status;
}

/* --- generation_config.json --- */

/* A value that is checked as that of the word is; an error begins with the file's key instead. */
static void put(json_t *words, const char *word, const char *key, json_t *value, struct error *e) {
  struct whole_choice unused;
  struct error one = {0};
  json_t *alone = json_object();
  whole_choice_init(&unused);
  if (!value || json_object_set_new(alone, word, value) || json_object_update(words, alone))
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for what generation_config.json says");
  else if (whole_choice_read(&unused, alone, &one))
    error_set(e, one.status, "generation_config.json: %s%.400s", key, one.detail + strlen(word));
  json_decref(alone);
}

static void put_said(json_t *words, const char *word, const char *key, const json_t *generation,
                     struct error *e) {
  json_t *value = json_object_get(generation, key);
  if (value && !json_is_null(value)) put(words, word, key, json_incref(value), e);
}

/* The library draws only where it is told to; the temperature is 1 then, unless it says another. */
static void put_drawing(json_t *words, const json_t *generation, struct error *e) {
  const json_t *draws = json_object_get(generation, "do_sample");
  if (draws && !json_is_boolean(draws))
    error_set(e, STATUS_CONFIG, "generation_config.json: do_sample: needs true or false");
  if (!json_is_true(draws)) return;
  put(words, "temperature", "temperature", json_real(1), e);
  put_said(words, "temperature", "temperature", generation, e);
  put_said(words, "top_k", "top_k", generation, e);
  put_said(words, "top_p", "top_p", generation, e);
}

/* Tokens that are not wanted, and words of one token; words of several are not kept out. */
static void put_banned(json_t *words, const json_t *generation, struct error *e) {
  static const char tokens[] = "suppress_tokens", stretches[] = "bad_words_ids";
  json_t *suppressed = json_object_get(generation, tokens);
  const json_t *list = json_object_get(generation, stretches), *one;
  const bool listed = list && !json_is_null(list), said = suppressed && !json_is_null(suppressed);
  if (said && !json_is_array(suppressed)) {
    put(words, "banned_tokens", tokens, json_incref(suppressed), e);
    return;
  }
  json_t *banned = said ? json_copy(suppressed) : json_array();
  size_t i;
  bool good = banned != NULL;
  if (listed && !json_is_array(list))
    error_set(e, STATUS_CONFIG, "generation_config.json: %s: needs a list of lists", stretches);
  json_array_foreach(list, i, one) {
    if (!json_is_array(one))
      error_set(e, STATUS_CONFIG, "generation_config.json: %s: needs a list of lists", stretches);
    if (json_array_size(one) == 1)
      good = good && json_array_append(banned, json_array_get(one, 0)) == 0;
  }
  if (!good) error_set(e, STATUS_OUT_OF_MEMORY, "no memory for generation_config.json");
  if (good && !e->status && (said || json_array_size(banned) > 0))
    put(words, "banned_tokens", said ? tokens : stretches, json_incref(banned), e);
  json_decref(banned);
}

json_t *whole_choice_translate(const json_t *generation, struct error *e) {
  json_t *words = json_object();
  put_said(words, "max_tokens", "max_new_tokens", generation, e);
  put_said(words, "min_tokens", "min_new_tokens", generation, e);
  put_said(words, "repetition_penalty", "repetition_penalty", generation, e);
  put_said(words, "no_repeat_ngram", "no_repeat_ngram_size", generation, e);
  put_drawing(words, generation, e);
  put_banned(words, generation, e);
  if (!words) error_set(e, STATUS_OUT_OF_MEMORY, "no memory for generation_config.json");
  if (!e->status) return words;
  json_decref(words);
  return NULL;
}
