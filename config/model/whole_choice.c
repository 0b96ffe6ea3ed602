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

/* How many ways on are followed, and when that is over. */
static void read_search(struct whole_choice *c, const json_t *json, struct error *e) {
  struct stack_choice *s = &c->choice;
  const json_t *early = json_object_get(json, "early_stopping");
  definition_value_count(json, "beams", 1, STACK_BEAMS_MAX, &s->beams, e);
  read_number(json, "length_penalty", -INFINITY, false, INFINITY, &s->length_penalty, e);
  if (json_is_boolean(early))
    s->early = json_is_true(early) ? STACK_EARLY_YES : STACK_EARLY_NOT;
  else if (json_is_string(early) && strcmp(json_string_value(early), "never") == 0)
    s->early = STACK_EARLY_NEVER;
  else if (early)
    definition_value_refuse("early_stopping", "true, false or \"never\"", early, e);
  if (s->beams > 1 && s->temperature > 0)
    error_set(e, STATUS_CONFIG, "beams: %zu ways are searched for, but a temperature draws",
              s->beams);
}

enum status whole_choice_read(struct whole_choice *c, const json_t *json, struct error *e) {
  static const char *const known[] = {"max_tokens",      "min_tokens",     "temperature",
                                      "top_k",           "top_p",          "repetition_penalty",
                                      "no_repeat_ngram", "banned_tokens",  "beams",
                                      "length_penalty",  "early_stopping", NULL};
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
  read_search(c, json, e);
  return e->status;
}

/* --- the library's documents --- */

/* A translation under way. */
struct choice_translation {
  json_t *words;
  const json_t *document;
  const char *from;
  struct error *e;
};

/* A value that is checked as that of the word is; an error begins with the file's key instead. */
static void put(const struct choice_translation *t, const char *word, const char *key,
                json_t *value) {
  struct whole_choice unused;
  struct error one = {0};
  json_t *alone = json_object();
  whole_choice_init(&unused);
  if (!value || json_object_set_new(alone, word, value) || json_object_update(t->words, alone))
    error_set(t->e, STATUS_OUT_OF_MEMORY, "no memory for what %s says", t->from);
  else if (whole_choice_read(&unused, alone, &one))
    error_set(t->e, one.status, "%s: %s%.400s", t->from, key, one.detail + strlen(word));
  json_decref(alone);
}

static void put_said(const struct choice_translation *t, const char *word, const char *key) {
  json_t *value = json_object_get(t->document, key);
  if (value && !json_is_null(value)) put(t, word, key, json_incref(value));
}

/* A length that counts the token of the beginning, which is not one of those that are chosen. Of
 * both keys the newer one goes before. */
static void put_length(const struct choice_translation *t, const char *word, const char *key,
                       const char *older, bool begins) {
  const json_t *value = json_object_get(t->document, older);
  const json_int_t length = json_integer_value(value) - 1;
  if (begins && json_is_integer(value) && length >= (strcmp(word, "max_tokens") == 0))
    put(t, word, older, json_integer(length));
  put_said(t, word, key);
}

static bool draws(const struct choice_translation *t) {
  const json_t *said = json_object_get(t->document, "do_sample");
  if (said && !json_is_boolean(said) && !json_is_null(said))
    error_set(t->e, STATUS_CONFIG, "%s: do_sample: needs true or false", t->from);
  return json_is_true(said);
}

/* The library draws only where it is told to; the temperature is 1 then, unless it says another. To
 * draw while it searches is not served: it searches then. */
static void put_drawing(const struct choice_translation *t) {
  const bool searches = json_integer_value(json_object_get(t->document, "num_beams")) > 1;
  if (!draws(t) || searches) return;
  put(t, "temperature", "temperature", json_real(1));
  put_said(t, "temperature", "temperature");
  put_said(t, "top_k", "top_k");
  put_said(t, "top_p", "top_p");
}

/* Tokens that are not wanted, and words of one token; words of several are not kept out. */
static void put_banned(const struct choice_translation *t) {
  struct error *e = t->e;
  static const char tokens[] = "suppress_tokens", stretches[] = "bad_words_ids";
  json_t *suppressed = json_object_get(t->document, tokens);
  const json_t *list = json_object_get(t->document, stretches), *one;
  const bool listed = list && !json_is_null(list), said = suppressed && !json_is_null(suppressed);
  if (said && !json_is_array(suppressed)) {
    put(t, "banned_tokens", tokens, json_incref(suppressed));
    return;
  }
  json_t *banned = said ? json_copy(suppressed) : json_array();
  size_t i;
  bool good = banned != NULL;
  if (listed && !json_is_array(list))
    error_set(e, STATUS_CONFIG, "%s: %s: needs a list of lists", t->from, stretches);
  json_array_foreach(list, i, one) {
    if (!json_is_array(one))
      error_set(e, STATUS_CONFIG, "%s: %s: needs a list of lists", t->from, stretches);
    if (json_array_size(one) == 1)
      good = good && json_array_append(banned, json_array_get(one, 0)) == 0;
  }
  if (!good) error_set(e, STATUS_OUT_OF_MEMORY, "no memory for what %s says", t->from);
  if (good && !e->status && (said || json_array_size(banned) > 0))
    put(t, "banned_tokens", said ? tokens : stretches, json_incref(banned));
  json_decref(banned);
}

/* "never" is a word in both; numbers and flags are theirs. */
static void put_search(const struct choice_translation *t) {
  put_said(t, "beams", "num_beams");
  put_said(t, "length_penalty", "length_penalty");
  put_said(t, "early_stopping", "early_stopping");
}

json_t *whole_choice_translate(const json_t *document, const char *from, bool begins,
                               struct error *e) {
  const struct choice_translation t = {json_object(), document, from, e};
  put_length(&t, "max_tokens", "max_new_tokens", "max_length", begins);
  put_length(&t, "min_tokens", "min_new_tokens", "min_length", begins);
  put_said(&t, "repetition_penalty", "repetition_penalty");
  put_said(&t, "no_repeat_ngram", "no_repeat_ngram_size");
  put_drawing(&t);
  put_search(&t);
  put_banned(&t);
  if (!t.words) error_set(e, STATUS_OUT_OF_MEMORY, "no memory for what %s says", from);
  if (!e->status) return t.words;
  json_decref(t.words);
  return NULL;
}
