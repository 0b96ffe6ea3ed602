/* whole_words: a model in the words of a definition. */
#include "config/describe/whole_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/describe/whole_settings.h"
#include "config/describe/whole_translate.h"
#include "config/document/text.h"

enum { WORD_SIZE = 32, FROM_SIZE = 96 };

/* --- words and their sources --- */

static bool is_side(const char *word) {
  return strcmp(word, whole_settings_side(WHOLE_ENCODER)) == 0 ||
         strcmp(word, whole_settings_side(WHOLE_DECODER)) == 0;
}

/* "encoder: heads" */
static void write_word(const struct whole_word *at, char out[2 * WORD_SIZE]) {
  snprintf(out, 2 * WORD_SIZE, "%.20s%s%.40s", at->side ? at->side : "", at->side ? ": " : "",
           at->word);
}

/* Is it said of the stack alone? */
static bool is_own(const struct whole_words *w, const struct whole_word *at) {
  return at->side && json_object_get(json_object_get(w->words, at->side), at->word);
}

static json_t *known_of(const struct whole_words *w, const struct whole_word *at) {
  return json_object_get(is_own(w, at) ? json_object_get(w->words, at->side) : w->words, at->word);
}

/* NULL: no file said it. */
static const char *from_of(const struct whole_words *w, const struct whole_word *at) {
  char whole[2 * WORD_SIZE];
  write_word(is_own(w, at) ? at : &(struct whole_word){NULL, at->word}, whole);
  return json_string_value(json_object_get(w->from, whole));
}

/* The object in which it stands. NULL: no memory. */
static json_t *place_of(struct whole_words *w, const struct whole_word *at) {
  if (!at->side) return w->words;
  json_t *place = json_object_get(w->words, at->side);
  if (place) return place;
  place = json_object();
  return place && json_object_set_new(w->words, at->side, place) == 0 ? place : NULL;
}

void whole_words_put(struct whole_words *w, const struct whole_word *at, json_t *value,
                     const struct whole_by *by, struct error *e) {
  char from[FROM_SIZE], whole[2 * WORD_SIZE];
  json_t *place = place_of(w, at);
  write_word(at, whole);
  snprintf(from, sizeof from, "%s: %s", by->document ? by->document : "", by->key ? by->key : "");
  json_object_del(w->from, whole);
  if (!place) json_decref(value);
  if (!place || json_object_set_new(place, at->word, value) != 0 ||
      (by->key && json_object_set_new(w->from, whole, json_string(from)) != 0))
    error_no_memory(e);
}

/* Calls `put` of each word of a definition, those of one stack alone last. */
static void each_word(const json_t *json,
                      void (*put)(void *of, const struct whole_word *at, json_t *value), void *of) {
  const char *word;
  json_t *value;
  json_object_foreach((json_t *)json, word, value) if (!is_side(word))
      put(of, &(struct whole_word){NULL, word}, value);
  for (enum whole_side i = 0; i < WHOLE_SIDES; i++) {
    const char *side = whole_settings_side(i);
    json_object_foreach(json_object_get(json, side), word, value)
        put(of, &(struct whole_word){side, word}, value);
  }
}

/* --- config.json --- */

static const struct whole_family *first_family(const char *name) {
  for (size_t i = 0; i < whole_family_count(); i++)
    if (strcmp(whole_family_at(i)->name, name) == 0) return whole_family_at(i);
  return NULL;
}

static enum status find_type(struct whole_words *w, const json_t *config, struct error *e) {
  const json_t *value = json_object_get(config, "model_type");
  const char *name = json_string_value(value);
  if (!name)
    return error_set(e, STATUS_CONFIG,
                     "config.json: no model_type; for a custom model set it to \"transformer\"");
  w->type = whole_type_find(name);
  if (!w->type) {
    char known[300];
    whole_type_list(known, sizeof known);
    return error_set(e, STATUS_CONFIG,
                     "config.json: unsupported model_type \"%.60s\"; supported: %s", name, known);
  }
  if (!w->type->family)
    return error_set(e, STATUS_CONFIG, "config.json: model_type: %s %s", name, w->type->why);
  return STATUS_OK;
}

/* NULL: no memory, where json_copy would leave members out. */
static json_t *copy_object(const json_t *json) {
  json_t *copy = json_object();
  if (!copy || json_object_update(copy, (json_t *)json) == 0) return copy;
  json_decref(copy);
  return NULL;
}

/* What puts words of a document beside those that are known. */
struct whole_putting {
  struct whole_words *w;
  const json_t *said; /* the document */
  struct notes *notes;
  struct error *e;
};

static void put_own(void *of, const struct whole_word *at, json_t *value) {
  const struct whole_putting *p = of;
  char key[2 * WORD_SIZE];
  write_word(at, key);
  whole_words_put(p->w, at, json_incref(value), &(struct whole_by){"config.json", key}, p->e);
}

/* A config.json in the words of a definition. */
static enum status copy_words(struct whole_words *w, const json_t *config, struct error *e) {
  struct whole_settings read;
  json_t *own = copy_object(config);
  if (!own) return error_no_memory(e);
  json_object_del(own, "model_type");
  if (whole_settings_read(&read, own, e) == STATUS_OK)
    each_word(own, put_own, &(struct whole_putting){.w = w, .said = own, .e = e});
  else
    text_before(e, "config.json: ");
  json_decref(own);
  return e->status;
}

enum status whole_words_make(struct whole_words *w, const struct whole_documents *of,
                             struct notes *n, struct error *e) {
  struct whole_settings read;
  *w = (struct whole_words){.words = json_object(), .from = json_object()};
  if (!w->words || !w->from) return error_no_memory(e);
  if (!of->config || find_type(w, of->config, e)) return e->status;
  const struct whole_family *family = first_family(w->type->family);
  must(family);
  if (!family->keys) return copy_words(w, of->config, e);
  whole_translate(w, of, family, n, e);
  if (e->status == STATUS_OK && whole_settings_read(&read, w->words, e))
    whole_words_blame(w, true, e);
  return e->status;
}

void whole_words_free(struct whole_words *w) {
  json_decref(w->words);
  json_decref(w->from);
  *w = (struct whole_words){0};
}

/* --- a definition --- */

/* Writes a small value. */
static void write_value(const json_t *value, char *out, size_t size) {
  char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9) | JSON_COMPACT);
  snprintf(out, size, "%s", text ? text : "?");
  free(text);
}

/* Are both the same number, or the same value? */
static bool is_same(const json_t *a, const json_t *b) {
  if (json_is_number(a) && json_is_number(b)) return json_number_value(a) == json_number_value(b);
  return json_equal(a, b);
}

/* Notes that `said` in the definition is something else than what is known of the word. */
static void compare(const struct whole_putting *p, const struct whole_word *at,
                    const struct whole_word *said, const json_t *value) {
  const json_t *known = known_of(p->w, at);
  const char *from = from_of(p->w, at);
  char here[40], there[40], word[2 * WORD_SIZE];
  if (!known || is_same(known, value)) return;
  write_value(value, here, sizeof here);
  write_value(known, there, sizeof there);
  write_word(said, word);
  if (from)
    notes_add(p->notes, "%s is %s, but here %s is %s", from, there, word, here);
  else
    notes_add(p->notes, "the family's %s is %s, but here it is %s", word, there, here);
}

/* What is said of the model goes before what a file says of one stack alone. */
static void override_sides(const struct whole_putting *p, const struct whole_word *said,
                           const json_t *value) {
  for (enum whole_side i = 0; i < WHOLE_SIDES; i++) {
    const struct whole_word at = {whole_settings_side(i), said->word};
    if (!is_own(p->w, &at)) continue;
    compare(p, &at, said, value);
    json_object_del(json_object_get(p->w->words, at.side), at.word);
  }
}

static void override(void *of, const struct whole_word *at, json_t *value) {
  const struct whole_putting *p = of;
  json_t *known = known_of(p->w, at);
  if (json_is_object(known) && json_is_object(value)) { /* of `generate` what is not said stays */
    whole_choice_override(known, value, p->e);
    return;
  }
  if (!at->side || !json_object_get(p->said, at->word)) compare(p, at, at, value);
  if (!at->side && whole_settings_is_size(at->word)) override_sides(p, at, value);
  whole_words_put(p->w, at, json_incref(value), &(struct whole_by){0}, p->e);
}

enum status whole_words_override(struct whole_words *w, const json_t *definition, struct notes *n,
                                 struct error *e) {
  each_word(definition, override, &(struct whole_putting){w, definition, n, e});
  return e->status;
}

/* --- errors --- */

/* The word with which the error begins, behind so many bytes of it; empty: none. */
static void read_word(const struct error *e, size_t at, char out[WORD_SIZE]) {
  const size_t length = strcspn(e->detail + at, ":");
  snprintf(out, WORD_SIZE, "%.*s", length < WORD_SIZE ? (int)length : 0, e->detail + at);
}

enum status whole_words_blame(const struct whole_words *w, bool both, struct error *e) {
  char side[WORD_SIZE], word[WORD_SIZE];
  if (e->status != STATUS_CONFIG) return e->status;
  read_word(e, 0, side);
  const size_t before = is_side(side) ? strlen(side) + 2 : 0;
  read_word(e, before, word);
  const char *from = from_of(w, &(struct whole_word){before ? side : NULL, word});
  const size_t cut = from ? before + strlen(word) : both ? 0 : before;
  memmove(e->detail, e->detail + cut, strlen(e->detail + cut) + 1);
  return from ? text_before(e, "%s", from) : e->status;
}
