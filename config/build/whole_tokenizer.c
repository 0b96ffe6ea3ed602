/* whole_tokenizer: loads the tokenizer of a model and reads what configurations say of texts. */
#include "config/build/whole_tokenizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/build/whole.h"
#include "config/checkpoint/builtin.h"
#include "config/document/file.h"
#include "config/document/text.h"
#include "config/tokenizer/tokenizer_folder.h"
#include "core/base/size.h"

#define LENGTH_MOST 1e15 /* a length from here on means no limit */

enum { PROMPTS_MOST = 256, PROMPT_LONGEST = 16 * 1024 /* bytes */ };

/* --- the length of a text --- */

/* Reads an optional length; no limit leaves *out as it is. */
static enum status read_length(const json_t *json, const char *file, const char *key, size_t *out,
                               struct error *e) {
  const json_t *value = json_object_get(json, key);
  const double said = json_number_value(value);
  if (!value || json_is_null(value)) return STATUS_OK;
  if (!json_is_number(value) || said < 1 || said != floor(said))
    return error_set(e, STATUS_CONFIG, "%s: %s: needs an integer from 1", file, key);
  if (said < LENGTH_MOST) *out = (size_t)said;
  return STATUS_OK;
}

/* Reads the longest text of sentence-transformers, and whether it is put in lower case. */
static enum status read_sentences(struct whole *w, const struct whole_plan *p, bool *lower,
                                  struct error *e) {
  static const char file[] = "sentence_bert_config.json";
  char *folder = file_folder(checkpoint_path(p->source.file));
  if (!folder) return error_no_memory(e);
  json_t *json = tokenizer_folder_json(folder, file, e);
  const json_t *said = json_object_get(json, "do_lower_case");
  if (json && !json_is_object(json)) error_set(e, STATUS_CONFIG, "%s: is not an object", file);
  if (said && !json_is_null(said) && !json_is_boolean(said))
    error_set(e, STATUS_CONFIG, "%s: do_lower_case: needs true or false", file);
  if (!e->status) read_length(json, file, "max_seq_length", &w->longest, e);
  *lower = json_is_true(said);
  json_decref(json);
  free(folder);
  return e->status;
}

/* Reads `truncate` of the definition, the default of requests. */
static enum status read_truncate(struct whole *w, const json_t *said, struct error *e) {
  const json_int_t count = json_integer_value(said);
  if (!said) return STATUS_OK;
  if (!json_is_boolean(said) && count < 1)
    return error_set(e, STATUS_CONFIG, "truncate: needs true, false or an integer from 1");
  if (!w->tokenizer) return error_set(e, STATUS_CONFIG, "truncate: the model has no tokenizer");
  const size_t around = tokenizer_special_count(w->tokenizer, w->classes > 0);
  if (json_is_integer(said) && (uint64_t)count < around)
    return error_set(e, STATUS_CONFIG, "truncate: too small for the %zu special tokens of each %s",
                     around, w->classes > 0 ? "pair" : "text");
  w->truncates = true;
  w->truncate = json_is_integer(said) ? (size_t)count : json_is_true(said) ? SIZE_MAX : 0;
  return STATUS_OK;
}

/* --- prompts --- */

/* Reads the prompts of config_sentence_transformers.json, and their default. */
static enum status read_prompts(struct whole *w, const json_t *file, struct error *e) {
  json_t *all = json_object_get(file, "prompts"), *text;
  const json_t *said = json_object_get(file, "default_prompt_name");
  const char *name, *chosen = json_string_value(said);
  if (all && !json_is_null(all) && !json_is_object(all))
    return error_set(e, STATUS_CONFIG, "prompts: needs an object of texts");
  if (json_object_size(all) > PROMPTS_MOST)
    return error_set(e, STATUS_CONFIG, "prompts: more than %d", PROMPTS_MOST);
  json_object_foreach(all, name, text) {
    if (json_is_null(text) && json_object_set_new(all, name, json_string("")))
      return error_no_memory(e);
    if (!json_is_null(text) && !json_is_string(text))
      return error_set(e, STATUS_CONFIG, "prompts: %.60s: needs a text", name);
    if (json_string_length(text) > PROMPT_LONGEST)
      return error_set(e, STATUS_CONFIG, "prompts: %.60s: longer than %d bytes", name,
                       PROMPT_LONGEST);
  }
  if (said && !json_is_null(said) && !chosen)
    return error_set(e, STATUS_CONFIG, "default_prompt_name: needs a name");
  json_t *prompt = chosen ? json_object_get(all, chosen) : NULL;
  /* sentence-transformers writes these two names even if they have no prompt. */
  const bool usual = chosen && (strcmp(chosen, "query") == 0 || strcmp(chosen, "document") == 0);
  if (chosen && !prompt && !usual)
    return error_set(e, STATUS_CONFIG, "default_prompt_name: \"%.60s\" is not among the prompts",
                     chosen);
  w->prompt = json_incref(prompt);
  if (json_object_size(all) > 0) w->prompts = json_incref(all);
  return STATUS_OK;
}

/* Sets the prompts and their default, which `said`, the `prompt` of the definition, overrides: the
 * name of a prompt, or its text. */
static enum status find_prompts(struct whole *w, const struct whole_plan *p, json_t *said,
                                struct error *e) {
  w->prompt_left_out = p->source.prompt_left_out;
  if (w->tokenizer && read_prompts(w, p->source.sentences, e))
    return text_before(e, "config_sentence_transformers.json: ");
  if (said) {
    if (!json_is_string(said))
      return error_set(e, STATUS_CONFIG, "prompt: needs a text, or the name of one");
    if (!w->tokenizer) return error_set(e, STATUS_CONFIG, "prompt: the model has no tokenizer");
    if (json_string_length(said) > PROMPT_LONGEST)
      return error_set(e, STATUS_CONFIG, "prompt: longer than %d bytes", PROMPT_LONGEST);
    json_t *named = json_object_get(w->prompts, json_string_value(said));
    json_decref(w->prompt);
    w->prompt = json_incref(named ? named : said);
  }
  const char *name;
  json_t *text;
  w->longest_prompt = json_string_length(w->prompt);
  json_object_foreach(w->prompts, name, text) w->longest_prompt =
      size_max(w->longest_prompt, json_string_length(text));
  return STATUS_OK;
}

/* --- the tokenizer --- */

/* Checks the tokenizer against the model, and sets w->longest if it is not known yet: what the
 * tokenizer's folder, if it has one, says, and at most the number of positions. */
static enum status check_tokenizer(struct whole *w, const char *folder, struct error *e) {
  static const char file[] = "tokenizer_config.json";
  const size_t size = tokenizer_size(w->tokenizer);
  const size_t least = w->target_vocabulary < w->vocabulary ? w->target_vocabulary : w->vocabulary;
  if (size > least)
    return error_set(e, STATUS_CONFIG,
                     "%s: has %zu tokens, but the model has %zu: it is for another model",
                     w->tokenizer_file, size, least);
  json_t *json = w->longest || !folder ? NULL : tokenizer_folder_json(folder, file, e);
  if (!e->status) read_length(json, file, "model_max_length", &w->longest, e);
  json_decref(json);
  if (w->positions && (!w->longest || w->longest > w->positions)) w->longest = w->positions;
  return e->status;
}

/* The tokenizer that a builtin model brings along, if it does. */
static enum status find_builtin(struct whole *w, const char *name, struct error *e) {
  struct builtin files;
  if (!builtin_find(name, &files) || !files.words) return STATUS_OK;
  w->tokenizer_file = "words.txt";
  w->tokenizer = tokenizer_words(files.words, files.words_size, e);
  return w->tokenizer ? check_tokenizer(w, NULL, e) : e->status;
}

/* Loads the tokenizer at `path`, a folder or a file, and checks it. */
static enum status load_tokenizer(struct whole *w, const struct whole_plan *p, const char *path,
                                  struct error *e) {
  bool lower = false;
  if (p->source.file && !p->source.builtin && read_sentences(w, p, &lower, e)) return e->status;
  w->tokenizer = tokenizer_folder(path, lower, &w->tokenizer_file, e);
  if (!w->tokenizer) w->longest = 0;
  if (!w->tokenizer) return e->status;
  char *folder = file_is_folder(path) ? strdup(path) : file_folder(path);
  if (!folder) return error_no_memory(e);
  check_tokenizer(w, p->family->layer ? folder : NULL, e);
  if (!p->family->layer) tokenizer_leave_bare(w->tokenizer);
  free(folder);
  return e->status;
}

/* The path of the tokenizer's files, a folder or a file: the definition's, else the folder of the
 * model's file, else the directory. NULL: no memory. */
static char *path_of_tokenizer(const struct whole_plan *p, const json_t *definition,
                               const char *directory) {
  const json_t *said = json_object_get(definition, "tokenizer");
  if (said) return file_path(directory, json_string_value(said));
  const bool filed = p->source.file && !p->source.builtin;
  return filed ? file_folder(checkpoint_path(p->source.file)) : strdup(directory);
}

static enum status find_tokenizer(struct whole *w, const struct whole_plan *p,
                                  const json_t *definition, const char *directory,
                                  struct error *e) {
  const json_t *said = json_object_get(definition, "tokenizer");
  if (json_is_false(said)) return STATUS_OK;
  if (said && !json_is_string(said))
    return error_set(e, STATUS_CONFIG, "tokenizer: needs the path of a folder or a file, or false");
  if (said && !w->vocabulary)
    return error_set(e, STATUS_CONFIG, "tokenizer: the model has no token embeddings");
  if (!said && p->source.builtin) return find_builtin(w, p->source.builtin, e);
  if (!w->vocabulary || (!said && !p->source.file)) return STATUS_OK;
  char *path = path_of_tokenizer(p, definition, directory);
  if (!path) return error_no_memory(e);
  if (said && !file_is_there(path))
    error_set(e, STATUS_CONFIG, "tokenizer: %.120s: no such file or folder", text_tail(path));
  else
    load_tokenizer(w, p, path, e);
  if (said && !w->tokenizer && !e->status)
    error_set(e, STATUS_CONFIG,
              "tokenizer: %.100s: has no tokenizer.json, sentencepiece model (spiece.model, "
              "sentencepiece.bpe.model, tokenizer.model, spm.model, source.spm with target.spm), "
              "vocab.json with merges.txt, vocab.txt or words.txt",
              text_tail(path));
  if (e->status == STATUS_CONFIG && !said) { /* the user did not ask for this tokenizer */
    const size_t used = strlen(e->detail);
    snprintf(e->detail + used, sizeof e->detail - used,
             " (\"tokenizer\": false serves the model without it)");
  }
  free(path);
  return e->status;
}

/* Lists the special tokens, which sparse embeddings leave out: the tokenizer's, or those that
 * config.json names. */
static enum status list_special(struct whole *w, struct error *e) {
  const struct whole_tokens *t = &w->token;
  const size_t ids = w->tokenizer ? tokenizer_size(w->tokenizer) : 0;
  size_t count = 2 + t->ends;
  for (size_t id = 0; id < ids; id++) count += tokenizer_is_special(w->tokenizer, (int64_t)id);
  w->special = calloc(count, sizeof *w->special);
  if (!w->special) return error_no_memory(e);
  for (size_t id = 0; id < ids; id++)
    if (tokenizer_is_special(w->tokenizer, (int64_t)id)) w->special[w->specials++] = (int32_t)id;
  if (ids > 0) return STATUS_OK;
  if (t->begin >= 0) w->special[w->specials++] = (int32_t)t->begin;
  if (t->pad >= 0) w->special[w->specials++] = (int32_t)t->pad;
  for (size_t i = 0; i < t->ends; i++) w->special[w->specials++] = (int32_t)t->end[i];
  return STATUS_OK;
}

/* --- late interaction --- */

/* A word of the files, and its token; -1: there is none. */
struct file_word {
  const char *text;
  size_t length;
  int64_t token;
};

enum { PUNCTUATION = 32, LATE_WORDS = 2 * WHOLE_TEXTS + 1 };
static const char punctuation[PUNCTUATION + 1] = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

static void add_word(struct file_word *words, size_t *count, const char *text, size_t length) {
  words[(*count)++] = (struct file_word){text, length, -1};
}

/* Finds the tokens whose pieces are these words. */
static enum status find_words(const struct tokenizer *t, struct file_word *words, size_t count,
                              struct error *e) {
  char *piece = malloc(tokenizer_piece_max(t) + 1);
  if (!piece) return error_no_memory(e);
  for (size_t id = 0; id < tokenizer_size(t); id++) {
    const size_t length = tokenizer_write_piece(t, (int64_t)id, piece);
    for (size_t i = 0; i < count && length != SIZE_MAX; i++)
      if (words[i].length == length && memcmp(words[i].text, piece, length) == 0)
        words[i].token = (int64_t)id;
  }
  free(piece);
  return STATUS_OK;
}

/* Finds the first token of each of these texts. */
static enum status cut_words(const struct tokenizer *t, struct file_word *words, size_t count,
                             struct error *e) {
  const struct tokenizer_options options = {0};
  struct tokenizer_work work;
  struct tokens tokens;
  struct arena a;
  arena_init(&a, NULL);
  tokenizer_work_init(&work, &a, e);
  tokens_init(&tokens, &a, e);
  for (size_t i = 0; i < count && !e->status; i++) {
    const struct tokenizer_text text = {words[i].text, words[i].length};
    tokens.count = 0;
    tokenizer_encode(t, &work, &text, 1, &options, &tokens);
    if (!e->status && tokens.count > 0) words[i].token = tokens.token[0].id;
  }
  arena_free(&a);
  return e->status;
}

/* Leaves out tokens of documents that are not among the only ones with a vector. */
static enum status keep_only(struct whole *w, const struct whole_late *late, struct error *e) {
  const json_t *one;
  size_t i;
  if (late->only) memset(w->dropped, 1U << WHOLE_TEXT_DOCUMENT, w->vocabulary);
  json_array_foreach(late->only, i, one) {
    if ((uint64_t)json_integer_value(one) >= w->vocabulary)
      return error_set(e, STATUS_CONFIG,
                       "module %s: keep_only_token_ids: %lld is outside the vocabulary of %zu "
                       "tokens",
                       late->mask, (long long)json_integer_value(one), w->vocabulary);
    w->dropped[json_integer_value(one)] = 0;
  }
  return STATUS_OK;
}

/* Marks the tokens that have no vector. */
static void drop_tokens(struct whole *w, const struct whole_late *late,
                        const struct file_word *skipped, size_t count) {
  for (unsigned t = 0; t < WHOLE_TEXTS; t++)
    for (size_t i = 0; i < count && late->text[t].skips; i++)
      if (skipped[i].token >= 0) w->dropped[skipped[i].token] |= 1U << t;
}

/* Sets how a text becomes tokens; `words` are its marker, with blanks at its end and without. */
static enum status set_text(struct whole *w, const struct whole_late *late, enum whole_text of,
                            const struct file_word *words, struct error *e) {
  const struct whole_late_text *said = &late->text[of];
  struct whole_text_form *text = &w->text[of];
  const size_t around = tokenizer_special_count(w->tokenizer, false) + (said->marker != NULL);
  text->longest = said->longest;
  text->marker = !said->marker ? -1 : words[0].token >= 0 ? words[0].token : words[1].token;
  if (said->marker && text->marker < 0)
    return error_set(e, STATUS_CONFIG, "%s: \"%.60s\" is not a token of %s", said->key,
                     said->marker, w->tokenizer_file);
  if (said->longest && said->longest < around)
    return error_set(e, STATUS_CONFIG, "%s: %zu, less than the %zu special tokens of each %s",
                     said->length_key, said->longest, around, whole_text_names[of]);
  if (said->longest == 1 && said->marker)
    return error_set(e, STATUS_CONFIG, "%s: 1, the marker alone", said->length_key);
  return STATUS_OK;
}

/* Sets how queries are padded. */
static enum status set_filler(struct whole *w, const struct whole_late *late,
                              const struct file_word *word, struct error *e) {
  struct whole_text_form *query = &w->text[WHOLE_TEXT_QUERY];
  const int64_t mask = tokenizer_mask(w->tokenizer);
  const int64_t token = late->filler    ? word->token
                        : mask >= 0     ? mask
                        : w->token.ends ? w->token.end[0]
                                        : -1;
  if (!late->expanded) return STATUS_OK;
  if (w->positions && late->expanded > w->positions)
    return error_set(e, STATUS_CONFIG,
                     "%s: queries are padded to %zu tokens, but the model has %zu positions",
                     late->text[WHOLE_TEXT_QUERY].length_key, late->expanded, w->positions);
  if (late->filler && token < 0)
    return error_set(e, STATUS_CONFIG, "query_expansion: token: \"%.60s\" is not a token of %s",
                     late->filler, w->tokenizer_file);
  if (token < 0 || (uint64_t)token >= w->vocabulary)
    return error_set(e, STATUS_CONFIG,
                     "queries are padded, but the tokenizer has no mask token, and the model no "
                     "end token");
  query->filled = late->expanded;
  query->filler = (int32_t)token;
  query->attends = late->attends;
  return STATUS_OK;
}

/* Finds the tokens that the files of late interaction name. */
static enum status find_late(struct whole *w, const struct whole_plan *p, struct error *e) {
  const struct whole_late *late = &p->source.late;
  const size_t skipped = late->punctuation ? PUNCTUATION : json_array_size(late->skipped);
  size_t count = 0;
  w->interacts = late->file != NULL;
  if (!w->interacts || !w->tokenizer) return STATUS_OK;
  w->dropped = calloc(w->vocabulary, 1);
  if (!w->dropped) return error_no_memory(e);
  if (keep_only(w, late, e)) return e->status;
  struct file_word *words = calloc(LATE_WORDS + skipped, sizeof *words);
  if (!words) return error_no_memory(e);
  for (unsigned t = 0; t < WHOLE_TEXTS; t++) {
    const char *marker = late->text[t].marker ? late->text[t].marker : "";
    size_t length = strlen(marker);
    add_word(words, &count, marker, length);
    while (length > 0 && marker[length - 1] == ' ') length--;
    add_word(words, &count, marker, length);
  }
  add_word(words, &count, late->filler ? late->filler : "",
           late->filler ? strlen(late->filler) : 0);
  for (size_t i = 0; i < skipped; i++) {
    const json_t *word = json_array_get(late->skipped, i);
    if (late->punctuation)
      add_word(words, &count, &punctuation[i], 1);
    else
      add_word(words, &count, json_string_value(word), json_string_length(word));
  }
  if (find_words(w->tokenizer, words, late->cut ? LATE_WORDS : count, e) == STATUS_OK &&
      (!late->cut || cut_words(w->tokenizer, words + LATE_WORDS, skipped, e) == STATUS_OK) &&
      set_text(w, late, WHOLE_TEXT_DOCUMENT, words, e) == STATUS_OK &&
      set_text(w, late, WHOLE_TEXT_QUERY, words + 2, e) == STATUS_OK &&
      set_filler(w, late, &words[LATE_WORDS - 1], e) == STATUS_OK)
    drop_tokens(w, late, words + LATE_WORDS, skipped);
  free(words);
  return e->status == STATUS_CONFIG ? text_before(e, "%s: ", late->file) : e->status;
}

/* --- chat templates --- */

/* Finds the token that ends a message of the model besides its end tokens: the eos_token of the
 * template's folder, as in vLLM. generation_config.json may lack it. */
static enum status find_chat_end(struct whole *w, struct error *e) {
  const json_t *said = w->chat ? json_object_get(w->chat->words, "eos_token") : NULL;
  struct file_word end = {json_string_value(said), json_string_length(said), -1};
  if (said && find_words(w->tokenizer, &end, 1, e)) return e->status;
  w->chat_end = (int32_t)end.token;
  return STATUS_OK;
}

/* Finds the chat template of the tokenizer's folder, which `said`, the `chat_template` of the
 * definition, the path of a file, replaces. */
static enum status find_chat(struct whole *w, const struct whole_plan *p, const json_t *definition,
                             const char *directory, struct error *e) {
  const json_t *said = json_object_get(definition, "chat_template");
  if (said && !json_is_string(said))
    return error_set(e, STATUS_CONFIG, "chat_template: needs the path of a file");
  if (said && !w->tokenizer)
    return error_set(e, STATUS_CONFIG, "chat_template: the model has no tokenizer");
  w->chat_end = -1;
  const bool own = said || json_object_get(definition, "tokenizer");
  if (!w->tokenizer || (!own && p->source.builtin)) return STATUS_OK;
  char *path = path_of_tokenizer(p, definition, directory);
  char *folder = !path ? NULL : file_is_folder(path) ? strdup(path) : file_folder(path);
  char *file = said ? file_path(directory, json_string_value(said)) : NULL;
  if (!folder || (said && !file))
    error_no_memory(e);
  else if (chat_find(folder, file, &w->chat, e) == STATUS_OK)
    find_chat_end(w, e);
  free(path);
  free(folder);
  free(file);
  return e->status == STATUS_CONFIG && said ? text_before(e, "chat_template: ") : e->status;
}

/* --- everything --- */

enum status whole_tokenizer_find(struct whole *w, const struct whole_plan *p,
                                 const json_t *definition, const char *directory, struct error *e) {
  if (find_tokenizer(w, p, definition, directory, e) || find_chat(w, p, definition, directory, e) ||
      find_prompts(w, p, json_object_get(definition, "prompt"), e))
    return e->status;
  if (p->source.weigher && list_special(w, e)) return e->status;
  if (find_late(w, p, e)) return e->status;
  w->mask = w->tokenizer ? tokenizer_mask(w->tokenizer) : -1;
  return read_truncate(w, json_object_get(definition, "truncate"), e);
}
