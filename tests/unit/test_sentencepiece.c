/* test_sentencepiece: the golden texts of tests/golden/tokenizers, and models that are refused. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/document/file.h"
#include "config/tokenizer/tokenizer_folder.h"
#include "config/tokenizer/tokenizer_parts.h"
#include "config/tokenizer/tokenizer_sentence.h"
#include "tests/support/poisoned.h"

/* --- golden texts --- */

static void encode(const struct tokenizer *t, const struct tokenizer_text *text, bool traced,
                   struct tokens *out, struct arena *a, struct error *e) {
  const struct tokenizer_options ask = {.special = true, .traced = traced};
  struct tokenizer_work work;
  tokenizer_work_init(&work, a, e);
  tokens_init(out, a, e);
  if (tokenizer_encode(t, &work, text, 1, &ask, out)) fail_msg("%s", e->detail);
}

/* Places cover the text in order, up to blanks that are removed. */
static void check_places(const struct tokens *tokens, const struct tokenizer_text *text) {
  uint32_t at = 0;
  for (size_t i = 0; i < tokens->count; i++) {
    const struct token *t = &tokens->token[i];
    assert_true(t->begin <= t->end && t->end <= text->length && t->end >= at);
    at = t->end;
  }
}

static void check_case(const struct tokenizer *t, const json_t *one, const char *folder) {
  const json_t *ids = json_object_get(one, "ids"), *given = json_object_get(one, "text"),
               *decoded = json_object_get(one, "decoded");
  const struct tokenizer_text text = {json_string_value(given), json_string_length(given)};
  struct error e = {0};
  struct arena a;
  struct tokens tokens, traced;
  arena_init(&a, NULL);
  encode(t, &text, false, &tokens, &a, &e);
  encode(t, &text, true, &traced, &a, &e);
  int32_t *id = arena_alloc(&a, tokens.count + 1, sizeof *id, &e);
  if (tokens.count != json_array_size(ids) || traced.count != tokens.count)
    fail_msg("%s: \"%s\": %zu tokens, not %zu", folder, text.bytes, tokens.count,
             json_array_size(ids));
  for (size_t i = 0; i < tokens.count; i++) {
    id[i] = tokens.token[i].id;
    if (id[i] != json_integer_value(json_array_get(ids, i)) || traced.token[i].id != id[i])
      fail_msg("%s: \"%s\": token %zu is %d", folder, text.bytes, i, id[i]);
  }
  check_places(&traced, &text);
  struct decoder_text out;
  assert_int_equal(tokenizer_decode(t, id, tokens.count, true, &a, &out, &e), STATUS_OK);
  if (out.length != json_string_length(decoded) ||
      memcmp(out.bytes ? out.bytes : "", json_string_value(decoded), out.length) != 0)
    fail_msg("%s: \"%s\": decoded to \"%.*s\"", folder, text.bytes, (int)out.length, out.bytes);
  arena_free(&a);
}

static void golden_texts_have_their_tokens(void **state) {
  (void)state;
  glob_t found;
  assert_int_equal(glob("tests/golden/tokenizers/spm-*", 0, NULL, &found), 0);
  assert_int_equal(found.gl_pathc, 6);
  for (size_t i = 0; i < found.gl_pathc; i++) {
    struct error e = {0};
    const char *file;
    struct tokenizer *t = tokenizer_folder(found.gl_pathv[i], false, &file, &e);
    if (!t) fail_msg("%s: %s", found.gl_pathv[i], e.detail);
    assert_string_equal(file, "spiece.model");
    char *path = file_path(found.gl_pathv[i], "cases.json");
    json_t *cases = file_json(path, &e), *one;
    free(path);
    assert_int_equal(json_array_size(cases), 300);
    size_t k;
    json_array_foreach(cases, k, one) check_case(t, one, found.gl_pathv[i]);
    json_decref(cases);
    tokenizer_free(t);
  }
  globfree(&found);
}

/* --- models of our own --- */

/* A message that is being written. */
struct message {
  unsigned char bytes[1 << 14];
  size_t size;
};

static void put_number(struct message *m, uint64_t value) {
  for (; value >= 0x80; value >>= 7) m->bytes[m->size++] = (unsigned char)(value | 0x80);
  m->bytes[m->size++] = (unsigned char)value;
}

static void put_int(struct message *m, unsigned field, uint64_t value) {
  put_number(m, (uint64_t)field << 3);
  put_number(m, value);
}

static void put_bytes(struct message *m, unsigned field, const void *bytes, size_t size) {
  put_number(m, (uint64_t)field << 3 | 2);
  put_number(m, size);
  memcpy(m->bytes + m->size, bytes, size);
  m->size += size;
}

static void put_text(struct message *m, unsigned field, const char *text) {
  put_bytes(m, field, text, strlen(text));
}

static void put_float(struct message *m, unsigned field, float value) {
  put_number(m, (uint64_t)field << 3 | 5);
  memcpy(m->bytes + m->size, &value, sizeof value);
  m->size += sizeof value;
}

static void put_piece(struct message *m, const char *text, float score, int type) {
  struct message piece = {.size = 0};
  put_text(&piece, 1, text);
  put_float(&piece, 2, score);
  put_int(&piece, 3, (uint64_t)type);
  put_bytes(m, 1, piece.bytes, piece.size);
}

enum { NORMAL = 1, UNKNOWN, CONTROL, USER, UNUSED, BYTE };
#define BLANK "\xe2\x96\x81"

/* <unk> <s> </s>, then pieces of an alphabet. */
static void put_pieces(struct message *m) {
  static const struct {
    const char *text;
    float score;
  } list[] = {{BLANK, -2}, {"a", -3},  {"b", -3}, {BLANK "a", -2.5f},
              {"ab", -1},  {"1,", -1}, {"1", -4}, {",", -4}};
  put_piece(m, "<unk>", 0, UNKNOWN);
  put_piece(m, "<s>", 0, CONTROL);
  put_piece(m, "</s>", 0, CONTROL);
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    put_piece(m, list[i].text, list[i].score, NORMAL);
}

static void put_trainer(struct message *m, unsigned field, uint64_t value) {
  struct message trainer = {.size = 0};
  put_int(&trainer, field, value);
  put_bytes(m, 2, trainer.bytes, trainer.size);
}

static void refused(const struct message *m, const char *words) {
  struct error e = {0};
  struct sentencepiece s;
  struct subword_model *model = NULL;
  if (sentencepiece_read(&s, m->bytes, m->size, &e) == STATUS_OK)
    model = subword_new_sentence(&s, NULL, NULL, &e);
  sentencepiece_done(&s);
  subword_free(model);
  assert_int_equal(e.status, STATUS_CONFIG);
  if (!strstr(e.detail, words)) fail_msg("%s, not %s", e.detail, words);
}

static void bytes_that_are_no_message(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t size;
    const char *words;
  } list[] = {
      {"", 0, "there is no piece of type UNKNOWN"},
      {"\x80", 1, "byte 0: the message ends within a number"},
      {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, "byte 0: a number of more than 64 bits"},
      {"\x00", 1, "byte 0: a field whose number is not from 1 to 536870911"},
      {"\xf8\xff\xff\xff\xff\x01", 6, "byte 0: a field whose number is not from 1"},
      {"\x30\x01\x0b", 3, "byte 2: wire type 3 is not supported"},
      {"\x0a\x05\x0a", 3, "byte 1: a field of 5 bytes, but the message has 1 left"},
      {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11,
       "byte 1: a field of 18446744073709551615 bytes"},
      {"\x0d\x01", 2, "byte 1: the message ends within a number"},
      {"\x09\x01\x02\x03\x04\x05\x06\x07", 8, "byte 1: the message ends within a number"},
      {"\x08\x01", 2, "byte 0: pieces: wire type 0 instead of 2"},
      {"\x0a\x00", 2, "byte 2: piece 0 is empty"},
      {"\x0a\x03\x0a\x01\xff", 5, "byte 4: piece: is not UTF-8"},
      {"\x0a\x07\x0a\x00\x15\x00\x00\x80\x7f", 9, "byte 4: score: is not finite"},
      {"\x0a\x05\x0a\x01\x61\x18\x07", 7, "byte 5: type of a piece: 7 is not supported"},
      {"\x0a\x0a\x0a\x01\x61\x18\x80\x80\x80\x80\x80\x01", 12, "is outside 32 bits"},
      {"\x12\x02\x18\x03", 4, "byte 2: model_type: WORD is not supported"},
      {"\x12\x02\x18\x04", 4, "byte 2: model_type: CHAR is not supported"},
      {"\x12\x02\x18\x09", 4, "byte 2: model_type: 9 is not supported"},
      {"\x12\x03\x1a\x01\x61", 5, "byte 2: model_type: wire type 2 instead of 0"},
      {"\x12\x04\xe2\x02\x01\xff", 6, "unk_surface: is not UTF-8"},
      {"\x1a\x02\x10\x01", 4, "byte 2: precompiled_charsmap: wire type 0 instead of 2"},
      {"\x1a\x03\x1a\x01\x61", 5, "byte 2: add_dummy_prefix: wire type 2 instead of 0"},
      {"\x2a\x03\x12\x01\x61", 5, "byte 2: denormalizer_spec: rules are not supported"},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct message m = {.size = list[i].size};
    memcpy(m.bytes, list[i].bytes, list[i].size);
    refused(&m, list[i].words);
  }
}

static void pieces_that_are_refused(void **state) {
  (void)state;
  struct message m = {.size = 0};
  put_pieces(&m);
  const struct message good = m;
  put_piece(&m, "<x>", 0, UNKNOWN);
  refused(&m, "piece 11: is a second one of type UNKNOWN");
  m = good;
  put_piece(&m, "<0x0A>", 0, BYTE);
  refused(&m, "piece 11: type BYTE, but byte_fallback is off");
  put_trainer(&m, 35, 1);
  refused(&m, "byte_fallback is on, but there are 1 pieces of bytes");
  put_piece(&m, "<0x0A>", 0, BYTE);
  refused(&m, "piece 12: type BYTE: needs <0x00> to <0xFF>, each once");
  m = good;
  put_piece(&m, "<0x0a>", 0, BYTE);
  put_trainer(&m, 35, 1);
  refused(&m, "piece 11: type BYTE: needs");
  m = good;
  put_piece(&m, "ab", 0, NORMAL);
  refused(&m, "piece 7: \"ab\" is the text of another piece, too");
  m = good;
  put_trainer(&m, 3, 2);
  put_piece(&m, "ba", 0, UNUSED);
  refused(&m, "piece 11: type UNUSED is not supported in a BPE model");
  m = good;
  put_trainer(&m, 3, 2);
  char longest[514];
  memset(longest, 'a', sizeof longest);
  longest[513] = '\0';
  put_piece(&m, longest, 0, NORMAL);
  refused(&m, "piece 11: has more than 512 characters");
}

/* --- families --- */

/* A folder with these files. */
struct folder {
  char path[64];
};

static struct folder folder_make(const struct message *model, const char *name) {
  struct folder f = {"/tmp/attend-sentencepiece-XXXXXX"};
  assert_non_null(mkdtemp(f.path));
  char *path = file_path(f.path, name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(model->bytes, 1, model->size, file), model->size);
  fclose(file);
  free(path);
  return f;
}

static void folder_put(const struct folder *f, const char *name, const char *text) {
  char *path = file_path(f->path, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
  free(path);
}

static void folder_remove(const struct folder *f) {
  glob_t found;
  char pattern[80];
  snprintf(pattern, sizeof pattern, "%s/*", f->path);
  assert_int_equal(glob(pattern, 0, NULL, &found), 0);
  for (size_t i = 0; i < found.gl_pathc; i++) remove(found.gl_pathv[i]);
  globfree(&found);
  assert_int_equal(remove(f->path), 0);
}

/* Writes the ids of a text, or of a pair, each of a pair with its type behind a slash. */
static void write_ids(const struct tokenizer *t, const char *first, const char *second,
                      char out[400]) {
  const struct tokenizer_text text[] = {{first, strlen(first)},
                                        {second, second ? strlen(second) : 0}};
  const struct tokenizer_options ask = {.special = true};
  struct tokenizer_work work;
  struct tokens tokens;
  struct arena a;
  struct error e = {0};
  size_t used = 0;
  arena_init(&a, NULL);
  tokenizer_work_init(&work, &a, &e);
  tokens_init(&tokens, &a, &e);
  assert_int_equal(tokenizer_encode(t, &work, text, second ? 2 : 1, &ask, &tokens), STATUS_OK);
  out[0] = '\0';
  for (size_t i = 0; i < tokens.count && used < 360; i++)
    used += (size_t)snprintf(out + used, 400 - used, second ? "%s%d/%d" : "%s%d", i ? " " : "",
                             tokens.token[i].id, tokens.token[i].type);
  arena_free(&a);
}

struct family_case {
  const char *config, *tokenizer, *special, *added; /* files; NULL: none */
  const char *first, *second, *ids;
};

static struct tokenizer *family_load(const struct message *m, const struct family_case *c,
                                     struct error *e) {
  const struct folder f = folder_make(m, "spiece.model");
  const char *file;
  if (c->config) folder_put(&f, "config.json", c->config);
  if (c->tokenizer) folder_put(&f, "tokenizer_config.json", c->tokenizer);
  if (c->special) folder_put(&f, "special_tokens_map.json", c->special);
  if (c->added) folder_put(&f, "added_tokens.json", c->added);
  struct tokenizer *t = tokenizer_folder(f.path, false, &file, e);
  folder_remove(&f);
  return t;
}

/* The pieces: <unk> 0 <s> 1 </s> 2 the mark 3, a 4, b 5, marked a 6, ab 7, "1," 8, 1 9, "," 10. */
static void each_family_has_its_tokens(void **state) {
  (void)state;
  static const struct family_case list[] = {
      {.first = "a ab", .ids = "6 3 7"},
      {.first = "<s>a", .ids = "3 0 4"}, /* control symbols are found in no text */
      {"{\"model_type\":\"xlm-roberta\"}", NULL, NULL, NULL, "a ab?", NULL, "0 7 4 8 3 2"},
      {"{\"model_type\":\"xlm-roberta\"}", NULL, NULL, NULL, "a", "ab",
       "0/0 7/0 2/0 2/0 4/0 8/0 2/0"},
      {"{\"model_type\":\"xlm-roberta\"}", NULL, NULL, NULL, "a <mask>", NULL, "0 7 12 2"},
      {"{\"model_type\":\"bert\"}", "{\"tokenizer_class\":\"XLMRobertaTokenizerFast\"}", NULL, NULL,
       "a", NULL, "0 7 2"},
      {"{\"model_type\":\"camembert\"}", NULL, NULL, NULL, "a?", NULL, "5 10 3 6"},
      {"{\"model_type\":\"t5\"}", NULL, NULL, NULL, "a", "ab", "6/0 2/0 3/0 7/0 2/0"},
      {"{\"model_type\":\"t5\"}", NULL, NULL, NULL, "a<extra_id_0>b<extra_id_99>", NULL,
       "6 110 3 5 11 2"},
      {"{\"model_type\":\"mt5\"}", "{\"extra_ids\":0,\"additional_special_tokens\":null}", NULL,
       NULL, "a", NULL, "6 2"},
      {"{\"model_type\":\"albert\"}", NULL,
       "{\"cls_token\":\"<s>\",\"sep_token\":{\"content\":\"</s>\",\"lstrip\":false}}", NULL,
       "\xc3\x81 1,", "A", "1/0 6/0 3/0 9/0 10/0 2/0 6/1 2/1"},
      {"{\"model_type\":\"albert\"}",
       "{\"do_lower_case\":false,\"keep_accents\":true,\"cls_token\":\"<s>\",\"sep_token\":\"</"
       "s>\"}",
       NULL, NULL, "A", NULL, "1 3 0 2"},
      {"{\"model_type\":\"deberta-v2\"}", "{\"cls_token\":\"<s>\",\"sep_token\":\"</s>\"}", NULL,
       "{\"[MASK]\":20}", "a [MASK]", "a", "1/0 6/0 20/0 2/0 6/1 2/1"},
      {"{\"model_type\":\"llama\"}", NULL, NULL, NULL, "a<s>a", NULL, "1 6 1 6"},
      {"{\"model_type\":\"llama\"}", "{\"legacy\":false}", NULL, NULL, "a<s>a", NULL, "1 6 1 4"},
      {"{\"model_type\":\"llama\"}", "{\"add_bos_token\":false,\"add_eos_token\":true}", NULL, NULL,
       "a", NULL, "6 2"},
      {"{\"model_type\":\"llama\"}", "{\"add_prefix_space\":false}", NULL, NULL, "a", "b",
       "1/0 4/0 1/1 5/1"},
      {"{\"model_type\":\"gemma\"}",
       "{\"bos_token\":\"<s>\",\"added_tokens_decoder\":{\"30\":{\"content\":\"<x>\",\"rstrip\":"
       "true,\"special\":true}}}",
       NULL, NULL, "<x> a", NULL, "1 30 6"},
      {"{\"model_type\":\"gemma\"}", "{\"bos_token\":null,\"add_bos_token\":false}", NULL, NULL,
       "a", NULL, "6"},
  };
  struct message m = {.size = 0};
  put_pieces(&m);
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct error e = {0};
    char found[400];
    struct tokenizer *t = family_load(&m, &list[i], &e);
    if (!t) fail_msg("%zu: %s", i, e.detail);
    write_ids(t, list[i].first, list[i].second, found);
    if (strcmp(found, list[i].ids) != 0) fail_msg("%zu: %s, not %s", i, found, list[i].ids);
    tokenizer_free(t);
  }
}

static void files_of_families_that_are_refused(void **state) {
  (void)state;
  static const struct family_case list[] = {
      {.config = "{\"model_type\":\"xlnet\"}",
       .ids = "model_type \"xlnet\" is not supported with a sentencepiece model alone"},
      {.tokenizer = "{\"tokenizer_class\":\"XLNetTokenizer\"}",
       .ids = "tokenizer_class \"XLNetTokenizer\" is not supported"},
      {.config = "{\"model_type\":\"llama\"}",
       .tokenizer = "{\"tokenizer_class\":\"Qwen2Tokenizer\"}",
       .ids = "tokenizer_class \"Qwen2Tokenizer\" is not supported"},
      {.config = "{\"model_type\":\"llama\"}",
       .tokenizer = "{\"bos_token\":1}",
       .ids = "bos_token: needs a token"},
      {.config = "{\"model_type\":\"llama\"}",
       .tokenizer = "{\"bos_token\":null}",
       .ids = "bos_token: is needed around texts"},
      {.config = "{\"model_type\":\"t5\"}",
       .tokenizer = "{\"extra_ids\":-1}",
       .ids = "extra_ids: needs a number from 0 to 10000"},
      {.config = "{\"model_type\":\"t5\"}",
       .added = "{\"<x>\":\"1\"}",
       .ids = "added_tokens.json: \"<x>\": needs an id"},
      {.config = "{\"model_type\":\"t5\"}",
       .tokenizer = "{\"added_tokens_decoder\":{\"x\":{\"content\":\"y\"}}}",
       .ids = "added_tokens_decoder: \"x\": needs an id and a content"},
      {.config = "{\"model_type\":\"deberta-v2\"}",
       .tokenizer = "{\"split_by_punct\":true}",
       .ids = "split_by_punct: true is not supported"},
      {.config = "[", .ids = "config.json"},
  };
  struct message m = {.size = 0};
  put_pieces(&m);
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct error e = {0};
    assert_null(family_load(&m, &list[i], &e));
    assert_int_equal(e.status, STATUS_CONFIG);
    if (!strstr(e.detail, list[i].ids)) fail_msg("%s, not %s", e.detail, list[i].ids);
  }
}

/* --- hostile models --- */

/* A trie of one text: the first byte of characters such as U+4E2D. */
static void put_half_character(struct message *m) {
  enum { UNITS = 256, BYTE_HAS_VALUE = 1 << 8, OFFSET = 10, PLACE = 1, WHICH = 0xe4 };
  struct {
    uint32_t size, unit[UNITS];
    char text[4];
  } map = {.size = sizeof map.unit, .text = "b"};
  struct message normalizer = {.size = 0};
  map.unit[WHICH] = WHICH | BYTE_HAS_VALUE | (uint32_t)(WHICH ^ PLACE) << OFFSET;
  map.unit[PLACE] = UINT32_C(1) << 31;
  put_bytes(&normalizer, 2, &map, sizeof map);
  put_bytes(m, 3, normalizer.bytes, normalizer.size);
}

/* The rest of the character would be read as the beginning of another one, and beyond the text. */
static void a_rule_for_half_a_character_is_ignored(void **state) {
  (void)state;
  struct message m = {.size = 0};
  put_pieces(&m);
  put_half_character(&m);
  for (int bpe = 0; bpe < 2; bpe++) {
    if (bpe) put_trainer(&m, 3, 2);
    struct error e = {0};
    char found[400];
    struct tokenizer *t = family_load(&m, &(struct family_case){.config = NULL}, &e);
    if (!t) fail_msg("%s", e.detail);
    write_ids(t, "a\xe4\xb8\xad", NULL, found);
    assert_string_equal(found, "6 0");
    tokenizer_free(t);
  }
}

static enum status has_left(struct patience *p) {
  (void)p;
  return STATUS_GONE;
}

/* The client is there when it is asked first. */
static enum status leaves(struct patience *p) {
  p->ask = has_left;
  return STATUS_OK;
}

/* At each of few bytes, thousands are compared. */
static void a_long_search_ends_when_nobody_waits(void **state) {
  (void)state;
  enum { LONG = 12000 };
  char text[LONG + 1];
  struct message m = {.size = 0};
  put_pieces(&m);
  memset(text, 'a', LONG);
  text[LONG] = '\0';
  text[LONG - 1] = 'b';
  put_piece(&m, text, 0, USER);
  text[LONG - 1] = 'a';
  struct error e = {0};
  struct tokenizer *t = family_load(&m, &(struct family_case){.config = NULL}, &e);
  if (!t) fail_msg("%s", e.detail);
  struct patience patience = {.ask = leaves};
  struct arena a;
  struct passage p;
  arena_init(&a, NULL);
  passage_init(&p, &a, &e);
  p.patience = &patience;
  passage_begin(&p, text, LONG, 0, false);
  assert_int_equal(normalizer_apply(t->normalizer, &p), STATUS_GONE);
  arena_free(&a);
  tokenizer_free(t);
}

/* All of them would be compared with all pieces, and with all of added_tokens.json. */
static void special_tokens_are_few(void **state) {
  (void)state;
  enum { COUNT = 4097 };
  static const char begin[] = "{\"additional_special_tokens\":[\"a\"";
  char *config = malloc(sizeof begin + 4 * COUNT + 2);
  assert_non_null(config);
  size_t used = (size_t)sprintf(config, "%s", begin);
  for (size_t i = 1; i < COUNT; i++) used += (size_t)sprintf(config + used, ",\"a\"");
  snprintf(config + used, 3, "]}");
  const struct family_case c = {.config = "{\"model_type\":\"t5\"}", .tokenizer = config};
  struct message m = {.size = 0};
  struct error e = {0};
  put_pieces(&m);
  assert_null(family_load(&m, &c, &e));
  assert_int_equal(e.status, STATUS_CONFIG);
  assert_string_equal(e.detail, "spiece.model: additional_special_tokens: more than 4096");
  free(config);
}

/* --- files --- */

static void a_tokenizer_is_a_file(void **state) {
  (void)state;
  struct message m = {.size = 0};
  put_pieces(&m);
  const struct folder f = folder_make(&m, "source.spm");
  const char *file;
  struct error e = {0};
  assert_null(tokenizer_folder(f.path, false, &file, &e)); /* that name is none in a folder */
  assert_int_equal(e.status, STATUS_OK);
  char *path = file_path(f.path, "source.spm");
  struct tokenizer *t = tokenizer_folder(path, true, &file, &e);
  assert_non_null(t);
  assert_string_equal(file, "*.spm");
  char found[400];
  write_ids(t, "A", NULL, found);
  assert_string_equal(found, "6");
  tokenizer_free(t);
  free(path);
  folder_put(&f, "bad.model", "\xff");
  folder_put(&f, "notes.txt", "a");
  path = file_path(f.path, "bad.model");
  assert_null(tokenizer_folder(path, false, &file, &e));
  assert_non_null(strstr(e.detail, "bad.model: byte 0: the message ends within a number"));
  free(path);
  e = (struct error){0};
  path = file_path(f.path, "notes.txt");
  assert_null(tokenizer_folder(path, false, &file, &e));
  assert_non_null(
      strstr(e.detail, "is not a folder, and its name does not end in .json, .model or .spm"));
  free(path);
  folder_remove(&f);
}

static void no_memory_at_every_step(void **state) {
  (void)state;
  struct message m = {.size = 0};
  put_pieces(&m);
  for (int bpe = 0; bpe < 2; bpe++) {
    if (bpe) put_trainer(&m, 3, 2);
    for (size_t n = 1;; n++) {
      struct sentencepiece s;
      struct error e = {0};
      const struct tokenizer_beside none = {NULL};
      poisoned_fail(n);
      struct tokenizer *t = sentencepiece_read(&s, m.bytes, m.size, &e) == STATUS_OK
                                ? tokenizer_of_family(&s, &none, &e)
                                : NULL;
      poisoned_fail(0);
      sentencepiece_done(&s);
      tokenizer_free(t);
      if (t) break;
      assert_int_equal(e.status, STATUS_OUT_OF_MEMORY);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(golden_texts_have_their_tokens),
      cmocka_unit_test(bytes_that_are_no_message),
      cmocka_unit_test(pieces_that_are_refused),
      cmocka_unit_test(each_family_has_its_tokens),
      cmocka_unit_test(files_of_families_that_are_refused),
      cmocka_unit_test(a_rule_for_half_a_character_is_ignored),
      cmocka_unit_test(a_long_search_ends_when_nobody_waits),
      cmocka_unit_test(special_tokens_are_few),
      cmocka_unit_test(a_tokenizer_is_a_file),
      cmocka_unit_test(no_memory_at_every_step),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
