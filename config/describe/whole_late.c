/* whole_late: reads how the texts of late interaction become tokens, from the files of ColBERT, of
 * PyLate and of sentence-transformers. */
#include <stdlib.h>
#include <string.h>

#include "config/checkpoint/checkpoint.h"
#include "config/describe/definition_value.h"
#include "config/describe/whole_modules.h"
#include "config/document/file.h"
#include "config/document/text.h"

enum { LENGTH_MOST = 1 << 20, WORDS_MOST = 4096 };

const char *const whole_text_names[WHOLE_TEXTS + 1] = {
    [WHOLE_TEXT_DOCUMENT] = "document", [WHOLE_TEXT_QUERY] = "query"};

/* --- values --- */

/* In these files null is the same as no value. */
static json_t *drop_nulls(json_t *json) {
  const char *key;
  json_t *value;
  void *next;
  json_object_foreach_safe(json, next, key, value) if (json_is_null(value))
      json_object_del(json, key);
  return json;
}

static bool read_flag(const json_t *json, const char *key, bool missing, struct error *e) {
  enum toggle toggle = missing ? TOGGLE_ON : TOGGLE_OFF;
  definition_value_toggle(json, key, &toggle, e);
  return toggle == TOGGLE_ON;
}

static void read_length(const json_t *json, const char *key, size_t *out, struct error *e) {
  definition_value_count(json, key, 1, LENGTH_MOST, out, e);
}

/* Reads the greatest length of a text; 0: it has none. */
static void read_longest(const json_t *json, const char *key, size_t missing,
                         struct whole_late_text *text, struct error *e) {
  text->length_key = key;
  text->longest = missing;
  read_length(json, key, &text->longest, e);
}

/* Reads a token, "" if there is none. */
static void read_marker(const json_t *json, const char *key, const char *missing,
                        struct whole_late_text *text, struct error *e) {
  text->key = key;
  text->marker = missing;
  definition_value_string(json, key, &text->marker, e);
  if (text->marker && !*text->marker) text->marker = NULL;
}

/* Reads a list of strings, or of integers from 0; NULL: it is absent. */
static const json_t *read_list(const json_t *json, const char *key, bool words, struct error *e) {
  const json_t *list = json_object_get(json, key), *one;
  size_t i;
  bool good = !list || json_is_array(list);
  json_array_foreach(list, i, one) {
    const bool id = json_is_integer(one) && json_integer_value(one) >= 0;
    good = good && (words ? json_is_string(one) : id);
  }
  if (!good)
    definition_value_refuse(key, words ? "a list of words" : "a list of token ids", list, e);
  if (words && json_array_size(list) > WORDS_MOST)
    error_set(e, STATUS_CONFIG, "%s: more than %d words", key, WORDS_MOST);
  return list;
}

/* Opens the settings beside the tensors; an error names the file. They may be absent. */
static enum status open_settings(struct whole_source *s, const char *name, struct error *e) {
  char *path = file_beside(checkpoint_path(s->file), name);
  if (!path) return error_no_memory(e);
  json_t *json = file_is_there(path) ? file_json(path, e) : NULL;
  free(path);
  s->late.settings = drop_nulls(json);
  if (json && !json_is_object(json)) error_set(e, STATUS_CONFIG, "%s: is not an object", name);
  return e->status;
}

/* --- the three forms --- */

/* The settings of ColBERT, which may be within "config"; their defaults are its own. */
static void read_colbert(struct whole_source *s, const json_t *said, struct error *e) {
  static const char *const interactions[] = {"colbert", NULL}, *const similarities[] = {"cosine",
                                                                                        NULL};
  struct whole_late *late = &s->late;
  struct whole_late_text *document = &late->text[WHOLE_TEXT_DOCUMENT],
                         *query = &late->text[WHOLE_TEXT_QUERY];
  const json_t *within = json_object_get(said, "config");
  const char *word;
  if (json_is_object(within)) said = drop_nulls((json_t *)within);
  read_longest(said, "query_maxlen", 32, query, e);
  read_longest(said, "doc_maxlen", 220, document, e);
  read_marker(said, "query_token_id", "[unused0]", query, e);
  read_marker(said, "doc_token_id", "[unused1]", document, e);
  definition_value_choice(said, "interaction", interactions, &word, e);
  definition_value_choice(said, "similarity", similarities, &word, e);
  definition_value_count(said, "dim", 1, LENGTH_MOST, &late->size, e);
  late->expanded = query->longest;
  late->attends = read_flag(said, "attend_to_mask_tokens", false, e);
  late->punctuation = late->cut = true;
  document->skips = read_flag(said, "mask_punctuation", true, e);
}

/* The settings of PyLate, and its defaults. */
static void read_pylate(struct whole_source *s, const json_t *said, struct error *e) {
  struct whole_late *late = &s->late;
  struct whole_late_text *document = &late->text[WHOLE_TEXT_DOCUMENT],
                         *query = &late->text[WHOLE_TEXT_QUERY];
  read_longest(said, "query_length", 32, query, e);
  read_longest(said, "document_length", 180, document, e);
  read_marker(said, "query_prefix", "[Q] ", query, e);
  read_marker(said, "document_prefix", "[D] ", document, e);
  late->expanded = read_flag(said, "do_query_expansion", true, e) ? query->longest : 0;
  late->attends = read_flag(said, "attend_to_expansion_tokens", false, e);
  late->skipped = read_list(said, "skiplist_words", true, e);
  late->punctuation = !late->skipped;
  document->skips = true;
}

/* The settings of sentence-transformers besides those of its mask. Markers are prompts. */
static void read_sentences(struct whole_source *s, const json_t *said, struct error *e) {
  static const char *const known[] = {"strategy", "attend", "token", "length", NULL},
                           *const strategies[] = {"fixed", "min", NULL};
  struct whole_late *late = &s->late;
  struct whole_late_text *query = &late->text[WHOLE_TEXT_QUERY];
  json_t *expansion = json_object_get(said, "query_expansion");
  const char *strategy;
  read_longest(said, "query_length", 0, query, e);
  read_longest(said, "document_length", 0, &late->text[WHOLE_TEXT_DOCUMENT], e);
  if (!expansion || e->status) return;
  if (!json_is_object(expansion)) {
    definition_value_refuse("query_expansion", "an object", expansion, e);
    return;
  }
  drop_nulls(expansion);
  definition_value_names(expansion, known, e);
  if (!json_object_get(expansion, "strategy"))
    error_set(e, STATUS_CONFIG, "strategy: required: \"fixed\" or \"min\"");
  definition_value_choice(expansion, "strategy", strategies, &strategy, e);
  definition_value_string(expansion, "token", &late->filler, e);
  late->attends = read_flag(expansion, "attend", false, e);
  read_length(expansion, "length", &late->expanded, e);
  if (!late->expanded) error_set(e, STATUS_CONFIG, "length: required: an integer from 1");
  if (e->status) {
    text_before(e, "query_expansion: ");
    return;
  }
  if (!late->mask) {
    error_set(e, STATUS_CONFIG, "query_expansion: requires a MultiVectorMask in modules.json");
    return;
  }
  const bool fixed = strcmp(strategy, "fixed") == 0;
  if (fixed) query->longest = late->expanded;
  if (fixed || !query->longest) query->length_key = "query_expansion: length";
  if (query->longest && query->longest < late->expanded)
    error_set(e, STATUS_CONFIG, "query_length: %zu, less than the %zu tokens of query_expansion",
              query->longest, late->expanded);
}

enum status whole_late_mask(struct whole_late *late, json_t *config, struct error *e) {
  static const char *const known[] = {"skiplist_words", "skiplist_tasks", "keep_only_token_ids",
                                      NULL};
  const json_t *said = drop_nulls(late->masking = json_incref(config)), *one;
  const json_t *names = json_object_get(said, "skiplist_tasks");
  const char *only = json_string_value(names);
  size_t i;
  definition_value_names(said, known, e);
  late->skipped = read_list(said, "skiplist_words", true, e);
  late->only = read_list(said, "keep_only_token_ids", false, e);
  if (json_array_size(late->only) == 0) late->only = NULL;
  if (!only) read_list(said, "skiplist_tasks", true, e);
  for (unsigned t = 0; t < WHOLE_TEXTS; t++) {
    bool *skips = &late->text[t].skips;
    const char *name = whole_text_names[t];
    *skips = only ? strcmp(only, name) == 0 : !names && t == WHOLE_TEXT_DOCUMENT;
    json_array_foreach(names, i, one) if (json_is_string(one)) *skips =
        *skips || strcmp(json_string_value(one), name) == 0;
  }
  return e->status;
}

/* --- which form --- */

/* Is the configuration one that PyLate writes? */
static bool is_pylate(const struct whole_source *s) {
  static const char *const keys[] = {"query_prefix",       "document_prefix",
                                     "do_query_expansion", "attend_to_expansion_tokens",
                                     "skiplist_words",     NULL};
  const char *type = json_string_value(json_object_get(s->sentences, "model_type"));
  if (s->late.mask) return false;
  for (size_t i = 0; keys[i]; i++)
    if (json_object_get(s->sentences, keys[i])) return true;
  return s->late.pylate || (type && strcmp(type, "ColBERT") == 0);
}

enum status whole_late_read(struct whole_source *s, struct error *e) {
  static const char metadata[] = "artifact.metadata", sentences[] = "sentence_bert_config.json";
  const bool colbert =
      !s->modules && definition_value_lists(s->config, "architectures", "HF_ColBERT");
  struct whole_late *late = &s->late;
  if (!colbert && !(s->modules && s->each)) return STATUS_OK;
  s->each = true;
  s->pool = STACK_POOL_MULTI_VECTOR;
  if (colbert) {
    late->own = true;
    if (open_settings(s, metadata, e)) return e->status;
    late->file = late->settings ? metadata : "defaults of artifact.metadata";
    read_colbert(s, late->settings, e);
  } else if (is_pylate(s)) {
    late->file = "config_sentence_transformers.json";
    read_pylate(s, drop_nulls(s->sentences), e);
  } else {
    late->file = sentences;
    if (open_settings(s, sentences, e)) return e->status;
    read_sentences(s, late->settings, e);
    if (!s->normalize && !e->status)
      return error_set(e, STATUS_CONFIG,
                       "modules.json: a Normalize is required: multi-vector embeddings have length "
                       "1");
  }
  s->normalize = false; /* which is about vectors of items */
  return e->status ? text_before(e, "%s: ", late->file) : STATUS_OK;
}
