/* tokenizer_folder: finds the files of a tokenizer. Lists of words become an equivalent document,
 * so that there is one way to read a tokenizer. */
#include "config/tokenizer/tokenizer_folder.h"

#include <stdlib.h>
#include <string.h>

#include "config/document/file.h"
#include "config/document/member.h"
#include "config/document/text.h"
#include "config/tokenizer/tokenizer_sentence.h"

/* --- files --- */

/* The path of a file in the folder, to be freed; NULL: it is absent, or no memory. */
static char *find(const char *folder, const char *name, struct error *e) {
  char *path = file_path(folder, name);
  if (!path) error_no_memory(e);
  if (path && file_is_there(path)) return path;
  free(path);
  return NULL;
}

json_t *tokenizer_folder_json(const char *folder, const char *name, struct error *e) {
  char *path = find(folder, name, e);
  json_t *json = path ? file_json_reals(path, e) : NULL;
  free(path);
  return json;
}

/* The lines of a text, as a list of strings without blanks at their ends. An empty last line is
 * ignored; others count, since the number of a line is an id. */
static json_t *split_lines(const char *text, size_t length, struct error *e) {
  json_t *lines = json_array();
  if (!lines) error_no_memory(e);
  for (size_t at = 0, end; lines && at < length && !e->status; at = end + 1) {
    const char *newline = memchr(text + at, '\n', length - at);
    end = newline ? (size_t)(newline - text) : length;
    size_t last = end;
    while (last > at && (text[last - 1] == '\r' || text[last - 1] == ' ' || text[last - 1] == '\t'))
      last--;
    if (json_array_append_new(lines, json_stringn(text + at, last - at))) error_no_memory(e);
  }
  return lines;
}

static json_t *read_lines(const char *path, struct error *e) {
  size_t length = 0;
  char *text = file_text(path, &length, e);
  json_t *lines = text ? split_lines(text, length, e) : NULL;
  free(text);
  return lines;
}

/* --- parts of a document --- */

/* {"piece": its place, ...}; of equal lines the last one counts. Empty ones are ignored. */
static json_t *number_lines(const json_t *lines, struct error *e) {
  json_t *vocabulary = json_object(), *line;
  size_t i;
  if (!vocabulary) error_no_memory(e);
  json_array_foreach((json_t *)lines, i, line) {
    if (json_string_length(line) > 0 && vocabulary &&
        json_object_setn_new(vocabulary, json_string_value(line), json_string_length(line),
                             json_integer((json_int_t)i)))
      error_no_memory(e);
  }
  return vocabulary;
}

/* The special tokens among the pieces, as a list of added tokens. `names` ends with NULL. */
static json_t *add_special(const json_t *vocabulary, const char *const *names, struct error *e) {
  json_t *list = json_array();
  for (; *names; names++) {
    const json_t *id = json_object_get(vocabulary, *names);
    if (id && json_array_append_new(list, json_pack("{s:I, s:s, s:b}", "id", json_integer_value(id),
                                                    "content", *names, "special", 1)))
      error_no_memory(e);
  }
  if (!list) error_no_memory(e);
  return list;
}

/* {"type": type, first: ["<s>", its id], second: ["</s>", its id]}, if both are among the pieces.
 */
static json_t *make_postprocessor(const char *type, const json_t *vocabulary, const char *first,
                                  const char *second) {
  const json_t *cls = json_object_get(vocabulary, first),
               *sep = json_object_get(vocabulary, second);
  if (!cls || !sep) return json_null();
  const json_int_t before = json_integer_value(cls), after = json_integer_value(sep);
  if (strcmp(type, "BertProcessing") == 0)
    return json_pack("{s:s, s:[s, I], s:[s, I]}", "type", type, "cls", first, before, "sep", second,
                     after);
  return json_pack("{s:s, s:[s, I], s:[s, I], s:b, s:b}", "type", type, "cls", first, before, "sep",
                   second, after, "trim_offsets", 1, "add_prefix_space", 0);
}

/* The tokenizer of a document; with `lower`, texts are lowercased before all else. */
static struct tokenizer *read_document(json_t *json, bool lower, struct error *e) {
  static const char list[] = "normalizers", name[] = "normalizer";
  lower = lower && json_is_object(json); /* anything else is rejected by the reader */
  json_t *lowered =
      lower ? json_pack("{s:s, s:[{s:s}]}", "type", "Sequence", list, "type", "Lowercase") : NULL;
  json_t *own = json_object_get(json, name);
  const bool failed =
      lower &&
      (!lowered ||
       (own && !json_is_null(own) && json_array_append(json_object_get(lowered, list), own)) ||
       json_object_set(json, name, lowered));
  json_decref(lowered);
  if (failed) error_no_memory(e);
  return failed ? NULL : tokenizer_new(json, e);
}

/* The tokenizer of a document of these parts, which it releases; one that is NULL means no memory.
 */
static struct tokenizer *make(json_t *normalizer, json_t *pretokenizer, json_t *model,
                              json_t *postprocessor, json_t *decoder, json_t *added, bool lower,
                              struct error *e) {
  struct tokenizer *t = NULL;
  json_t *json = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "normalizer", normalizer,
                           "pre_tokenizer", pretokenizer, "model", model, "post_processor",
                           postprocessor, "decoder", decoder, "added_tokens", added);
  if (!json) error_no_memory(e);
  if (!e->status) t = read_document(json, lower, e);
  json_decref(json);
  return t;
}

/* --- kinds of files --- */

static json_t *byte_level(void) {
  return json_pack("{s:s, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets",
                   1);
}

static const char merges_name[] = "merges.txt";

static struct tokenizer *read_merges(const char *folder, const char *path, bool lower,
                                     struct error *e) {
  static const char *const names[] = {"<|endoftext|>", "<s>",    "<pad>", "</s>",
                                      "<unk>",         "<mask>", NULL};
  json_t *vocabulary = file_json_long(path, e);
  char *merges = file_path(folder, merges_name);
  if (!merges) error_no_memory(e);
  json_t *lines = e->status ? NULL : read_lines(merges, e);
  struct tokenizer *t = NULL;
  const char *first = json_string_value(json_array_get(lines, 0));
  if (first && strncmp(first, "#version", strlen("#version")) == 0) json_array_remove(lines, 0);
  json_t *last = json_array_get(lines, 0);
  if (last && strstr(json_string_value(last), "</w>"))
    error_set(e, STATUS_CONFIG,
              "merges.txt: is not as GPT-2's: its words end in </w>; tokenizer.json is needed");
  if (!e->status)
    t = make(json_null(), byte_level(),
             json_pack("{s:s, s:O, s:O}", "type", "BPE", "vocab", vocabulary, "merges", lines),
             make_postprocessor("RobertaProcessing", vocabulary, "<s>", "</s>"), byte_level(),
             add_special(vocabulary, names, e), lower, e);
  json_decref(vocabulary);
  json_decref(lines);
  free(merges);
  return t;
}

static struct tokenizer *read_vocabulary(const char *folder, const char *path, bool lower,
                                         struct error *e) {
  static const char *const names[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", NULL};
  json_t *lines = read_lines(path, e);
  json_t *config = e->status ? NULL : tokenizer_folder_json(folder, "tokenizer_config.json", e);
  json_t *vocabulary = e->status ? NULL : number_lines(lines, e);
  struct tokenizer *t = NULL;
  if (!e->status) {
    const json_t *accents = json_object_get(config, "strip_accents");
    t = make(json_pack("{s:s, s:b, s:b, s:o, s:b}", "type", "BertNormalizer", "clean_text", 1,
                       "handle_chinese_chars", member_says(config, "tokenize_chinese_chars", true),
                       "strip_accents",
                       json_is_boolean(accents) ? json_boolean(json_is_true(accents)) : json_null(),
                       "lowercase", member_says(config, "do_lower_case", true)),
             json_pack("{s:s}", "type", "BertPreTokenizer"),
             json_pack("{s:s, s:O, s:s, s:s}", "type", "WordPiece", "vocab", vocabulary,
                       "unk_token", "[UNK]", "continuing_subword_prefix", "##"),
             make_postprocessor("BertProcessing", vocabulary, "[CLS]", "[SEP]"),
             json_pack("{s:s, s:s, s:b}", "type", "WordPiece", "prefix", "##", "cleanup", 1),
             add_special(vocabulary, names, e), lower, e);
  }
  json_decref(lines);
  json_decref(config);
  json_decref(vocabulary);
  return t;
}

/* The tokenizer of a list of words, which it releases. */
static struct tokenizer *make_words(json_t *lines, bool lower, struct error *e) {
  static const char *const names[] = {"<unk>", "<pad>", "<bos>", "<eos>", NULL};
  json_t *vocabulary = e->status ? NULL : number_lines(lines, e);
  struct tokenizer *t = NULL;
  if (!e->status) {
    const bool unknown = json_object_get(vocabulary, "<unk>");
    t = make(json_pack("{s:s}", "type", "Lowercase"), json_pack("{s:s}", "type", "Whitespace"),
             json_pack("{s:s, s:O, s:o}", "type", "WordLevel", "vocab", vocabulary, "unk_token",
                       unknown ? json_string("<unk>") : json_null()),
             json_null(), json_null(), add_special(vocabulary, names, e), lower, e);
  }
  json_decref(lines);
  json_decref(vocabulary);
  return t;
}

static struct tokenizer *read_words(const char *folder, const char *path, bool lower,
                                    struct error *e) {
  (void)folder;
  return make_words(read_lines(path, e), lower, e);
}

struct tokenizer *tokenizer_words(const char *text, size_t length, struct error *e) {
  return make_words(split_lines(text, length, e), false, e);
}

static const char source_name[] = "source.spm", target_name[] = "target.spm";

/* The tokenizer of a sentencepiece file, and of the files beside it. */
static struct tokenizer *read_sentence(const char *folder, const char *path, bool lower,
                                       struct error *e) {
  struct sentencepiece model = {0}, other = {0};
  json_t *config = tokenizer_folder_json(folder, "config.json", e);
  json_t *own = e->status ? NULL : tokenizer_folder_json(folder, "tokenizer_config.json", e);
  json_t *special = e->status ? NULL : tokenizer_folder_json(folder, "special_tokens_map.json", e);
  json_t *added = e->status ? NULL : tokenizer_folder_json(folder, "added_tokens.json", e);
  char *listed = e->status ? NULL : find(folder, "vocab.json", e);
  json_t *vocabulary = listed ? file_json_long(listed, e) : NULL;
  const bool source = strcmp(text_file_name(path), source_name) == 0;
  char *target = source && !e->status ? find(folder, target_name, e) : NULL;
  if (!e->status) sentencepiece_open(&model, path, e);
  if (!e->status && target) sentencepiece_open(&other, target, e);
  const struct tokenizer_beside beside = {.config = config,
                                          .tokenizer = own,
                                          .special = special,
                                          .added = added,
                                          .lower = lower,
                                          .vocabulary = vocabulary,
                                          .target = target ? &other : NULL};
  struct tokenizer *t = e->status ? NULL : tokenizer_of_family(&model, &beside, e);
  json_decref(config);
  json_decref(own);
  json_decref(special);
  json_decref(added);
  json_decref(vocabulary);
  sentencepiece_done(&model);
  sentencepiece_done(&other);
  free(listed);
  free(target);
  return t;
}

static struct tokenizer *read_tokenizer(const char *folder, const char *path, bool lower,
                                        struct error *e) {
  (void)folder;
  json_t *json = file_json_long(path, e);
  struct tokenizer *t = json ? read_document(json, lower, e) : NULL;
  json_decref(json);
  return t;
}

/* --- folders and files --- */

static const struct {
  const char *file, *other; /* a file that must be there, too; or NULL */
  struct tokenizer *(*read)(const char *folder, const char *path, bool lower, struct error *e);
} kinds[] = {{"tokenizer.json", NULL, read_tokenizer},
             {"spiece.model", NULL, read_sentence},
             {"sentencepiece.bpe.model", NULL, read_sentence},
             {"tokenizer.model", NULL, read_sentence},
             {"spm.model", NULL, read_sentence},
             {source_name, target_name, read_sentence},
             {"vocab.json", merges_name, read_merges}, /* alone it may be sentencepiece's */
             {"vocab.txt", NULL, read_vocabulary},
             {"words.txt", NULL, read_words}};

static const struct {
  const char *end, *shown; /* of the file's name */
  struct tokenizer *(*read)(const char *folder, const char *path, bool lower, struct error *e);
} ends[] = {{".json", "*.json", read_tokenizer},
            {".model", "*.model", read_sentence},
            {".spm", "*.spm", read_sentence}};

/* Puts the file's name before a reason that names neither it nor the other one. */
static void name_file(const char *file, const char *other, struct error *e) {
  if (e->status == STATUS_CONFIG && !strstr(e->detail, file) &&
      !(other && strstr(e->detail, other)))
    text_before(e, "%.100s: ", file);
}

/* The tokenizer of a file, by the end of its name. */
static struct tokenizer *read_file(const char *path, bool lower, const char **file,
                                   struct error *e) {
  char *folder = file_folder(path);
  struct tokenizer *t = NULL;
  if (!folder) error_no_memory(e);
  for (size_t i = 0; folder && i < sizeof ends / sizeof *ends && !*file; i++) {
    if (!text_ends_with(path, ends[i].end)) continue;
    *file = ends[i].shown;
    t = ends[i].read(folder, path, lower, e);
    name_file(text_file_name(path), NULL, e);
  }
  if (folder && !*file)
    error_set(e, STATUS_CONFIG,
              "%.100s: is not a folder, and its name does not end in .json, .model or .spm",
              text_tail(path));
  free(folder);
  return t;
}

struct tokenizer *tokenizer_folder(const char *path, bool lower, const char **file,
                                   struct error *e) {
  *file = NULL;
  if (file_is_there(path) && !file_is_folder(path)) return read_file(path, lower, file, e);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !e->status; i++) {
    char *found = find(path, kinds[i].file, e);
    char *other = found && kinds[i].other ? find(path, kinds[i].other, e) : NULL;
    struct tokenizer *t = NULL;
    if (found && (other || !kinds[i].other)) {
      *file = kinds[i].file;
      t = kinds[i].read(path, found, lower, e);
      name_file(*file, kinds[i].other, e);
    }
    free(found);
    free(other);
    if (*file) return t;
  }
  return NULL;
}
