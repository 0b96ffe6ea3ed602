/* whole_choice: the words of `generate`, and the keys of transformers for them. */
#include "config/describe/whole_choice.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "config/describe/definition_value.h"
#include "config/family/whole_family.h"
#include "core/base/size.h"

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

/* --- options --- */

#define ROW(id, word, type, least, most) \
  {#word, type, least, most, offsetof(struct stack_choice, word)},
const struct whole_option whole_options[WHOLE_OPTION_COUNT] = {WHOLE_OPTIONS(ROW)};

bool whole_option_has(const struct whole_option *o, double number) {
  return (o->type == WHOLE_ABOVE ? number > o->least : number >= o->least) && number <= o->most;
}

bool whole_option_early(const json_t *value, enum stack_early *out) {
  const bool never = json_is_string(value) && strcmp(json_string_value(value), "never") == 0;
  if (!never && !json_is_boolean(value)) return false;
  *out = never ? STACK_EARLY_NEVER : json_is_true(value) ? STACK_EARLY_YES : STACK_EARLY_NOT;
  return true;
}

static size_t least_count(const struct whole_option *o) {
  return o->least > 0 ? (size_t)o->least : 0;
}

json_t *whole_option_json(const struct whole_option *o, const struct stack_choice *c) {
  const void *value = (const char *)c + o->at;
  switch (o->type) {
  case WHOLE_COUNT: /* a choice of 0 beams has one */
    return json_integer((json_int_t)size_max(*(const size_t *)value, least_count(o)));
  case WHOLE_EARLY:
    if (*(const enum stack_early *)value == STACK_EARLY_NEVER) return json_string("never");
    return json_boolean(*(const enum stack_early *)value == STACK_EARLY_YES);
  default:
    return json_real(*(const double *)value);
  }
}

/* --- names of transformers, for the hints of errors --- */

struct whole_called {
  const char *key, *word; /* of transformers, NULL if it has none; of definitions */
};

static const struct whole_called members[] = {{"decoder_start_token_id", "begin"},
                                              {"bos_token_id", "begin"},
                                              {"eos_token_id", "end"},
                                              {"pad_token_id", "pad"},
                                              {"forced_bos_token_id", "forced_begin"},
                                              {"forced_eos_token_id", "forced_end"},
                                              {"tie_word_embeddings", "tie_output"},
                                              {"is_encoder_decoder", "kind"},
                                              {"is_decoder", "kind"},
                                              {"id2label", "labels"},
                                              {"num_labels", "classes"},
                                              {"problem_type", "function"},
                                              {"torch_dtype", "weights"},
                                              {"dtype", "weights"}};

/* Words that are equal in both are listed for definitions that have them in the wrong place. */
#define SAME(id, word, ...) {#word, #word},
static const struct whole_called generating[] = {
    {"max_new_tokens", "max_tokens"},     {"max_length", "max_tokens"},
    {"max_tokens", "max_tokens"},         {"min_new_tokens", "min_tokens"},
    {"min_length", "min_tokens"},         {"num_beams", "beams"},
    {"do_sample", "temperature"},         {"no_repeat_ngram_size", "no_repeat_ngram"},
    {"suppress_tokens", "banned_tokens"}, {"bad_words_ids", "banned_tokens"},
    {"banned_tokens", "banned_tokens"},   WHOLE_OPTIONS(SAME)};

/* The word of a key; NULL: unknown. */
static const char *find(const struct whole_called *all, size_t count, const char *key) {
  for (size_t i = 0; i < count; i++)
    if (all[i].key && strcmp(all[i].key, key) == 0) return all[i].word;
  return NULL;
}

#define FIND(all, key) find(all, sizeof all / sizeof *all, key)

/* The word for a size of the model in a family's config.json. */
static const char *find_size(const struct whole_keys *k, const char *key) {
  const struct whole_called sizes[] = {
      {k->width, "width"},           {k->head_size, "head_size"},
      {k->vocabulary, "vocabulary"}, {k->positions, "max_positions"},
      {k->kv_heads, "kv_heads"},     {k->epsilon, "norm_eps"},
      {k->activation, "activation"}};
  return FIND(sizes, key);
}

/* The word for a size that each stack has. */
static const char *find_side_size(const struct whole_side_keys *k, const char *key) {
  const struct whole_called sizes[] = {{k->layers, "layers"},
                                       {k->heads, "heads"},
                                       {k->forward_size, "feed_forward"}};
  return FIND(sizes, key);
}

/* Writes `"layers"`, or `"layers" in "decoder"`. */
static bool write_word(const char *word, const char *within, char out[DEFINITION_CALLED]) {
  if (!word) return false;
  snprintf(out, DEFINITION_CALLED, "\"%s\"%s%s%s", word, within ? " in \"" : "",
           within ? within : "", within ? "\"" : "");
  return true;
}

bool whole_called(const char *key, char out[DEFINITION_CALLED]) {
  if (write_word(FIND(members, key), NULL, out) ||
      write_word(FIND(generating, key), "generate", out))
    return true;
  for (size_t i = 0; i < whole_family_count(); i++) {
    const struct whole_keys *k = whole_family_at(i)->keys;
    if (!k) continue;
    if (write_word(find_size(k, key), NULL, out) ||
        write_word(find_side_size(&k->own, key), k->decoder.heads ? "encoder" : NULL, out) ||
        write_word(find_side_size(&k->decoder, key), "decoder", out))
      return true;
  }
  return false;
}

bool whole_called_generating(const char *key, char out[DEFINITION_CALLED]) {
  return write_word(FIND(generating, key), NULL, out);
}

/* --- a definition's words --- */

static void read_number(const json_t *json, const struct whole_option *o, double *out,
                        struct error *e) {
  const json_t *value = json_object_get(json, o->word);
  const double x = json_number_value(value);
  char most[32] = "";
  if (!value) return;
  if (o->most < INFINITY) snprintf(most, sizeof most, " and at most %g", o->most);
  if (!json_is_number(value))
    definition_value_refuse(o->word, "a number", value, e);
  else if (!whole_option_has(o, x))
    error_set(e, STATUS_CONFIG, "%s: %g is not %s %g%s", o->word, x,
              o->type == WHOLE_ABOVE ? "above" : "at least", o->least, most);
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
#define WORD(id, word, ...) #word,
  static const char *const known[] = {"max_tokens", "banned_tokens", WHOLE_OPTIONS(WORD) NULL};
  struct stack_choice *s = &c->choice;
  definition_value_names_called(json, known, whole_called_generating, e);
  definition_value_count(json, "max_tokens", 1, COUNT_MOST, &c->max_tokens, e);
  for (size_t i = 0; i < WHOLE_OPTION_COUNT; i++) {
    const struct whole_option *o = &whole_options[i];
    const json_t *value = json_object_get(json, o->word);
    void *out = (char *)s + o->at;
    if (o->type == WHOLE_EARLY) {
      if (value && !whole_option_early(value, out))
        error_set(e, STATUS_CONFIG, "%s: needs true, false or \"never\"", o->word);
    } else if (o->type != WHOLE_COUNT) {
      read_number(json, o, out, e);
    } else if (json_is_integer(value) && json_integer_value(value) < 0 &&
               whole_option_has(o, (double)json_integer_value(value))) {
      *(size_t *)out = 0;
    } else {
      definition_value_count(json, o->word, least_count(o),
                             o->most < COUNT_MOST ? (size_t)o->most : COUNT_MOST, out, e);
    }
  }
  if (json_object_get(json, "temperature")) c->says_temperature = true;
  read_banned(c, json, e);
  if (e->status == STATUS_OK && s->beams > 1 && s->temperature > 0)
    error_set(e, STATUS_CONFIG, "beams: %zu and a temperature above 0 cannot be combined",
              s->beams);
  return e->status;
}

enum status whole_choice_override(json_t *known, json_t *said, struct error *e) {
  const bool searches = json_integer_value(json_object_get(said, "beams")) > 1;
  const bool draws = json_number_value(json_object_get(said, "temperature")) > 0;
  if (searches && !draws) json_object_del(known, "temperature");
  if (draws && !searches) json_object_del(known, "beams");
  if (json_object_update(known, said)) error_no_memory(e);
  return e->status;
}

/* --- generation_config.json --- */

/* A translation into words. The first mistake is kept in `e`. */
struct whole_choosing {
  const struct whole_generating *from;
  json_t *words;
  struct notes *notes;
  struct error *e;
};

/* The value of a key; NULL: absent or null. */
static json_t *said_of(const struct whole_choosing *c, const char *key) {
  json_t *value = json_object_get(c->from->said, key);
  return json_is_null(value) ? NULL : value;
}

static void refuse(const struct whole_choosing *c, const char *key, const char *why) {
  error_set(c->e, STATUS_CONFIG, "%s: %s: %s", c->from->document, key, why);
}

/* Sets a word, whose value's reference is taken, and checks it as a definition's; an error begins
 * with the file's key instead. */
static void put(const struct whole_choosing *c, const char *word, const char *key, json_t *value) {
  struct whole_choice unused;
  struct error one = {0};
  json_t *alone = json_object();
  whole_choice_init(&unused);
  if (!value || json_object_set_new(alone, word, value) || json_object_update(c->words, alone))
    error_set(c->e, STATUS_OUT_OF_MEMORY, "out of memory for %s", c->from->document);
  else if (whole_choice_read(&unused, alone, &one))
    error_set(c->e, one.status, "%s: %s%.400s", c->from->document, key, one.detail + strlen(word));
  json_decref(alone);
}

static void put_said(const struct whole_choosing *c, const char *word, const char *key) {
  json_t *value = said_of(c, key);
  if (value) put(c, word, key, json_incref(value));
}

/* Sets a number of generated tokens: the key `come`; or, in an encoder-decoder model, the key
 * `all`, which counts the start token too. In a decoder-only model `all` counts the prompt, and is
 * ignored. */
static void put_tokens(const struct whole_choosing *c, const char *word, const char *come,
                       const char *all) {
  json_t *value = said_of(c, all);
  const json_int_t count = json_integer_value(value);
  put_said(c, word, come);
  if (said_of(c, come) || !value || !c->from->pair) return;
  if (!json_is_integer(value) || count < 0 || count > COUNT_MOST)
    refuse(c, all, "needs an integer of at least 0");
  else if (count > 1)
    put(c, word, all, json_integer(count - 1));
}

/* Sets sampling or beam search. The file samples only if do_sample is true, with a temperature of 1
 * unless it has another; greedy decoding is a choice of the file only if do_sample is false. It can
 * combine both: then only sampling is kept. */
static void put_sampling(const struct whole_choosing *c) {
  const json_t *draws = json_object_get(c->from->said, "do_sample"),
               *beams = said_of(c, "num_beams");
  if (draws && !json_is_boolean(draws)) refuse(c, "do_sample", "needs true or false");
  if (!json_is_true(draws)) {
    if (json_is_false(draws)) put(c, "temperature", "do_sample", json_integer(0));
    put_said(c, "beams", "num_beams");
    return;
  }
  put(c, "temperature", "temperature", json_real(1));
  put_said(c, "temperature", "temperature");
  put_said(c, "top_k", "top_k");
  put_said(c, "top_p", "top_p");
  put_said(c, "min_p", "min_p");
  if (json_integer_value(beams) > 1)
    notes_add(c->notes, "%s: num_beams is ignored, because do_sample is true", c->from->document);
}

/* Sets the banned tokens: suppressed tokens, and bad words of one token. Longer
 * words are ignored. */
static void put_banned(const struct whole_choosing *c) {
  static const char tokens[] = "suppress_tokens", stretches[] = "bad_words_ids";
  json_t *suppressed = said_of(c, tokens);
  const json_t *list = said_of(c, stretches), *one;
  if (suppressed && !json_is_array(suppressed)) {
    put(c, "banned_tokens", tokens, json_incref(suppressed));
    return;
  }
  json_t *banned = suppressed ? json_copy(suppressed) : json_array();
  size_t i, longer = 0;
  bool good = banned != NULL;
  if (list && !json_is_array(list)) refuse(c, stretches, "needs a list of lists");
  json_array_foreach(list, i, one) {
    if (!json_is_array(one)) refuse(c, stretches, "needs a list of lists");
    if (json_array_size(one) == 1)
      good = good && json_array_append(banned, json_array_get(one, 0)) == 0;
    longer += json_array_size(one) > 1;
  }
  if (!good) error_set(c->e, STATUS_OUT_OF_MEMORY, "out of memory for %s", c->from->document);
  if (good && !c->e->status && (suppressed || json_array_size(banned) > 0))
    put(c, "banned_tokens", suppressed ? tokens : stretches, json_incref(banned));
  if (longer > 0)
    notes_add(c->notes, "%s: %s of several tokens are ignored", c->from->document, stretches);
  json_decref(banned);
}

/* Keys that would change the generated tokens, unless they have the neutral value or are empty. */
static const struct {
  const char *key;
  double neutral;
  bool drawing; /* has an effect only with sampling */
} unserved[] = {{"num_beam_groups", 1, false},
                {"diversity_penalty", 0, false},
                {"encoder_repetition_penalty", 1, false},
                {"encoder_no_repeat_ngram_size", 0, false},
                {"penalty_alpha", 0, false},
                {"guidance_scale", 1, false},
                {"exponential_decay_length_penalty", 0, false},
                {"sequence_bias", 0, false},
                {"force_words_ids", 0, false},
                {"constraints", 0, false},
                {"begin_suppress_tokens", 0, false},
                {"forced_decoder_ids", 0, false},
                {"renormalize_logits", 0, false},
                {"stop_strings", 0, false},
                {"typical_p", 1, true},
                {"epsilon_cutoff", 0, true},
                {"eta_cutoff", 0, true}};

static bool is_neutral(const json_t *value, double neutral) {
  if (json_is_number(value)) return json_number_value(value) == neutral;
  return !json_is_true(value) && json_object_size(value) + json_array_size(value) == 0 &&
         !json_is_string(value);
}

json_t *whole_choice_translate(const struct whole_generating *g, struct notes *n, struct error *e) {
  const struct whole_choosing c = {g, json_object(), n, e};
  if (!c.words) error_set(e, STATUS_OUT_OF_MEMORY, "out of memory for %s", g->document);
  put_tokens(&c, "max_tokens", "max_new_tokens", "max_length");
  put_tokens(&c, "min_tokens", "min_new_tokens", "min_length");
  put_said(&c, "repetition_penalty", "repetition_penalty");
  put_said(&c, "no_repeat_ngram", "no_repeat_ngram_size");
  put_said(&c, "length_penalty", "length_penalty");
  put_said(&c, "early_stopping", "early_stopping");
  put_sampling(&c);
  put_banned(&c);
  const bool draws = json_is_true(json_object_get(g->said, "do_sample"));
  for (size_t i = 0; i < sizeof unserved / sizeof *unserved; i++) {
    const json_t *value = json_object_get(g->said, unserved[i].key);
    if (!is_neutral(value, unserved[i].neutral) && (draws || !unserved[i].drawing))
      notes_add(n, "%s: %s is ignored", g->document, unserved[i].key);
  }
  if (!e->status) return c.words;
  json_decref(c.words);
  return NULL;
}
