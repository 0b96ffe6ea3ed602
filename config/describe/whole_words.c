/* whole_words: the words of a model by stack and name, each with its origin. */
#include "config/describe/whole_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/describe/whole_settings.h"
#include "config/document/text.h"

enum { WORD_SIZE = 32, FROM_SIZE = 96 };

/* --- words and their sources --- */

static bool is_side(const char *word) {
  return strcmp(word, whole_settings_side(WHOLE_ENCODER)) == 0 ||
         strcmp(word, whole_settings_side(WHOLE_DECODER)) == 0;
}

/* Writes "encoder: heads", or "heads". */
static void write_word(const struct whole_word *at, char out[2 * WORD_SIZE]) {
  snprintf(out, 2 * WORD_SIZE, "%.20s%s%.40s", at->side ? at->side : "", at->side ? ": " : "",
           at->word);
}

/* Is the word known for this stack alone? */
static bool is_own(const struct whole_words *w, const struct whole_word *at) {
  return at->side && json_object_get(json_object_get(w->words, at->side), at->word);
}

/* The value of a word for a stack; NULL: unknown. */
static json_t *known_of(const struct whole_words *w, const struct whole_word *at) {
  return json_object_get(is_own(w, at) ? json_object_get(w->words, at->side) : w->words, at->word);
}

/* The file and key of that value; NULL: no file has it. */
static const char *from_of(const struct whole_words *w, const struct whole_word *at) {
  char whole[2 * WORD_SIZE];
  write_word(is_own(w, at) ? at : &(struct whole_word){NULL, at->word}, whole);
  return json_string_value(json_object_get(w->from, whole));
}

enum status whole_words_init(struct whole_words *w, struct error *e) {
  *w = (struct whole_words){.words = json_object(), .from = json_object()};
  return w->words && w->from ? STATUS_OK : error_no_memory(e);
}

void whole_words_free(struct whole_words *w) {
  json_decref(w->words);
  json_decref(w->from);
  free(w->local);
  *w = (struct whole_words){0};
}

void whole_words_put(struct whole_words *w, const struct whole_word *at, json_t *value,
                     const struct whole_by *by, struct error *e) {
  char from[FROM_SIZE], whole[2 * WORD_SIZE];
  json_t *place = at->side ? json_object_get(w->words, at->side) : w->words;
  if (!place && (place = json_object()) && json_object_set_new(w->words, at->side, place) != 0)
    place = NULL;
  write_word(at, whole);
  snprintf(from, sizeof from, "%s: %s", by->document ? by->document : "", by->key ? by->key : "");
  json_object_del(w->from, whole);
  if (!place) json_decref(value);
  if (!place || json_object_set_new(place, at->word, value) != 0 ||
      (by->key && json_object_set_new(w->from, whole, json_string(from)) != 0))
    error_no_memory(e);
}

/* Calls `put` for each word of a definition, those about one stack alone last. */
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

/* A document whose words are set. */
struct whole_putting {
  struct whole_words *w;
  const json_t *said;
  struct notes *notes;
  struct error *e;
};

static void put_own(void *of, const struct whole_word *at, json_t *value) {
  const struct whole_putting *p = of;
  char key[2 * WORD_SIZE];
  write_word(at, key);
  whole_words_put(p->w, at, json_incref(value), &(struct whole_by){"config.json", key}, p->e);
}

enum status whole_words_copy(struct whole_words *w, const json_t *config, struct error *e) {
  struct whole_settings read;
  json_t *own = json_object(); /* json_copy may leave out members if memory runs out */
  if (!own || json_object_update(own, (json_t *)config)) {
    json_decref(own);
    return error_no_memory(e);
  }
  json_object_del(own, "model_type");
  if (whole_settings_read(&read, own, e) == STATUS_OK)
    each_word(own, put_own, &(struct whole_putting){.w = w, .said = own, .e = e});
  else
    text_before(e, "config.json: ");
  json_decref(own);
  return e->status;
}

/* --- a definition --- */

static void write_value(const json_t *value, char *out, size_t size) {
  char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9) | JSON_COMPACT);
  snprintf(out, size, "%s", text ? text : "?");
  free(text);
}

/* Notes that the definition's `said` differs from the known value of `at`. */
static void compare(const struct whole_putting *p, const struct whole_word *at,
                    const struct whole_word *said, const json_t *value) {
  const json_t *known = known_of(p->w, at);
  const char *from = from_of(p->w, at);
  char here[40], there[40], word[2 * WORD_SIZE];
  const bool same = json_is_number(known) && json_is_number(value)
                        ? json_number_value(known) == json_number_value(value)
                        : json_equal(known, value);
  if (!known || same) return;
  write_value(value, here, sizeof here);
  write_value(known, there, sizeof there);
  write_word(said, word);
  if (from)
    notes_add(p->notes, "%s is %s, but here %s is %s", from, there, word, here);
  else
    notes_add(p->notes, "the family's %s is %s, but here it is %s", word, there, here);
}

static void override(void *of, const struct whole_word *at, json_t *value) {
  const struct whole_putting *p = of;
  json_t *known = known_of(p->w, at);
  if (json_is_object(known) && json_is_object(value)) { /* `generate` keeps its other members */
    whole_choice_override(known, value, p->e);
    return;
  }
  if (!at->side || !json_object_get(p->said, at->word)) compare(p, at, at, value);
  for (enum whole_side i = 0; i < WHOLE_SIDES; i++) {
    const struct whole_word own = {whole_settings_side(i), at->word};
    if (at->side || !whole_settings_is_size(at->word) || !is_own(p->w, &own)) continue;
    compare(p, &own, at, value);
    json_object_del(json_object_get(p->w->words, own.side), own.word);
  }
  whole_words_put(p->w, at, json_incref(value), &(struct whole_by){0}, p->e);
}

enum status whole_words_override(struct whole_words *w, const json_t *definition, struct notes *n,
                                 struct error *e) {
  each_word(definition, override, &(struct whole_putting){w, definition, n, e});
  return e->status;
}

/* --- kinds of layers --- */

bool whole_words_is_kind(const json_t *entry, const char *name) {
  return json_is_string(entry) && strcmp(json_string_value(entry), name) == 0;
}

/* In double, as Hugging Face transformers computes it. */
size_t whole_words_group(const struct whole_words *w, size_t layer) {
  return (size_t)((double)layer / ((double)w->outer / (double)w->groups));
}

unsigned whole_words_kind(const struct whole_words *w, size_t layer) {
  return w->local && w->local[layer];
}

/* --- errors --- */

/* Reads the word before the next colon of the error, from byte `at` on; empty: none. */
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
