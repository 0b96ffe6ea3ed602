/* test_tokenizer: a text's way through all parts of a tokenizer: tokens that stand in it, places
 * without the blanks at their ends, and what is cut off two texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/tokenizer/tokenizer.h"
#include "tests/support/poisoned.h"

enum { WRITTEN = 400 };

/* Pieces of letters; behind them what else a document has. */
#define BPE(vocabulary) "{\"model\":{\"type\":\"BPE\",\"vocab\":{" vocabulary "},\"merges\":[]}"
#define LETTERS         BPE("\"a\":0,\"b\":1,\"\\u0120\":2,\"\\u010a\":3,\"\\u00c3\":4,\"\\u00a9\":5")
#define LEVEL(prefix, trim)                                                        \
  "{\"type\":\"ByteLevel\",\"add_prefix_space\":" prefix ",\"trim_offsets\":" trim \
  ",\"use_regex\":false}"
#define BYTES(prefix) \
  ",\"pre_tokenizer\":" LEVEL(prefix, "true") ",\"decoder\":" LEVEL("false", "false")
#define TRIMS(prefix) ",\"post_processor\":" LEVEL(prefix, "true")
#define ADDED(tokens) ",\"added_tokens\":[" tokens "]"
#define MASK                                                                             \
  "{\"id\":6,\"content\":\"<m>\",\"special\":true,\"normalized\":false,\"lstrip\":true," \
  "\"rstrip\":"                                                                          \
  "true}"

static struct tokenizer *try(const char *text, struct error *e) {
  json_error_t why;
  json_t *json = json_loads(text, 0, &why);
  if (!json) fail_msg("%s: %s", text, why.text);
  struct tokenizer *t = tokenizer_new(json, e);
  json_decref(json);
  return t;
}

static struct tokenizer *make(const char *text) {
  struct error e = {0};
  struct tokenizer *t = try(text, &e);
  if (!t) fail_msg("%s: %s", text, e.detail);
  return t;
}

/* Writes each token as "id begin-end", in bytes. */
static void write_tokens(const struct tokens *tokens, char out[WRITTEN]) {
  size_t used = 0;
  out[0] = '\0';
  for (size_t i = 0; i < tokens->count; i++) {
    const struct token *t = &tokens->token[i];
    used += (size_t)snprintf(out + used, WRITTEN - used, "%s%d %u-%u", i ? ", " : "", t->id,
                             t->begin, t->end);
    assert_true(used < WRITTEN);
  }
}

/* `second` is NULL: one text alone. */
static void cuts(const struct tokenizer *t, const char *first, const char *second, size_t longest,
                 const char *expected) {
  const struct tokenizer_text text[] = {{first, strlen(first)},
                                        {second, second ? strlen(second) : 0}};
  const struct tokenizer_options ask = {.special = true, .traced = true, .longest = longest};
  struct tokenizer_work work;
  struct tokens tokens;
  struct arena a;
  struct error e = {0};
  char found[WRITTEN];
  arena_init(&a, NULL);
  tokenizer_work_init(&work, &a, &e);
  tokens_init(&tokens, &a, &e);
  assert_int_equal(tokenizer_encode(t, &work, text, second ? 2 : 1, &ask, &tokens), STATUS_OK);
  write_tokens(&tokens, found);
  if (strcmp(found, expected) != 0) fail_msg("%s: %s, not %s", first, found, expected);
  arena_free(&a);
}

static void spells(const struct tokenizer *t, int32_t id, const char *piece, const char *text) {
  struct decoder_text out;
  struct arena a;
  struct error e = {0};
  arena_init(&a, NULL);
  const struct tokenizer_text written = tokenizer_piece(t, id, &a, &e);
  assert_int_equal(written.length, strlen(piece));
  assert_memory_equal(written.bytes, piece, written.length);
  assert_int_equal(tokenizer_decode(t, &id, 1, false, &a, &out, &e), STATUS_OK);
  assert_int_equal(out.length, strlen(text));
  assert_memory_equal(out.length ? out.bytes : "", text, out.length);
  arena_free(&a);
}

/* --- places --- */

/* The blank that is put in front came from the first character: without it, it is nowhere. */
static void a_lone_prefix_has_no_place(void **state) {
  (void)state;
  struct tokenizer *t = make(LETTERS BYTES("true") TRIMS("true") "}");
  cuts(t, "a", NULL, 0, "2 0-0, 0 0-1");
  cuts(t, "\xc3\xa9", NULL, 0, "2 0-0, 4 0-2, 5 0-2");
  cuts(t, " a  b", NULL, 0, "2 0-0, 0 1-2, 2 3-3, 2 4-4, 1 4-5");
  tokenizer_free(t);
}

/* Of a word, only the letter of the blank's byte is one; beside an added token, all kinds are. */
static void blanks_of_added_tokens(void **state) {
  (void)state;
  struct tokenizer *t = make(LETTERS BYTES("false") TRIMS("false") ADDED(MASK) "}");
  cuts(t, "a\n", NULL, 0, "0 0-1, 3 1-2");
  cuts(t, "a\n<m>\xe3\x80\x80 b", NULL, 0, "0 0-1, 6 2-5, 1 9-10");
  cuts(t, "\xe2\x80\x83<m>", NULL, 0, "6 3-6");
  tokenizer_free(t);
  t = make(LETTERS BYTES("true") TRIMS("true") ADDED(MASK) "}");
  cuts(t, "\n<m>\n", NULL, 0, "6 0-4"); /* one at the beginning may have been put there */
  cuts(t, "\n\n<m>", NULL, 0, "6 2-5");
  tokenizer_free(t);
}

/* A piece is written as characters where bytes do not spell it: blanks of any kind are its ends. */
static void blanks_of_pieces(void **state) {
  (void)state;
  struct tokenizer *t = make("{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",0],"
                             "[\"\\u2003a\\u3000 \",-1],[\"\\u0120\",-1]]}" TRIMS("false") "}");
  cuts(t,
       "\xe2\x80\x83"
       "a\xe3\x80\x80 \xc4\xa0",
       NULL, 0, "1 3-4, 2 10-10");
  tokenizer_free(t);
}

/* What a run of unknown characters is spelled by came from all of it: no token is as long. */
static void a_run_that_bytes_spell(void **state) {
  enum { MANY = 1 << 19, BYTES_OF = 3 };
  (void)state;
  struct tokenizer *t =
      make("{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"byte_fallback\":true,\"vocab\":["
           "[\"?\",0],[\"<0xE3>\",-1],[\"<0x80>\",-1]]}" TRIMS("true") "}");
  char *bytes = malloc(MANY * BYTES_OF);
  const struct tokenizer_text text = {bytes, MANY * BYTES_OF};
  const struct tokenizer_options ask = {.traced = true};
  struct tokenizer_work work;
  struct tokens tokens;
  struct arena a;
  struct error e = {0};
  assert_non_null(bytes);
  for (size_t i = 0; i < MANY; i++) memcpy(bytes + i * BYTES_OF, "\xe3\x80\x80", BYTES_OF);
  arena_init(&a, NULL);
  tokenizer_work_init(&work, &a, &e);
  tokens_init(&tokens, &a, &e);
  assert_int_equal(tokenizer_encode(t, &work, &text, 1, &ask, &tokens), STATUS_OK);
  assert_int_equal(tokens.count, MANY * BYTES_OF);
  for (size_t i = 0; i < tokens.count; i++)
    assert_true(tokens.token[i].begin == 0 && tokens.token[i].end == MANY * BYTES_OF);
  arena_free(&a);
  free(bytes);
  tokenizer_free(t);
}

/* --- added tokens that are looked for in changed texts --- */

#define NORMAL(type) ",\"normalizer\":{\"type\":\"" type "\"}"
#define PLAIN_BYTES  ",\"decoder\":" LEVEL("false", "false")
#define NEW(content) "{\"id\":6,\"content\":\"" content "\",\"normalized\":true}"

/* It is a piece as the file says it, and a part of a text as it is looked for. */
static void they_are_put_together_as_they_are_found(void **state) {
  (void)state;
  struct tokenizer *t = make(LETTERS NORMAL("Lowercase") PLAIN_BYTES ADDED(NEW("B A")) "}");
  cuts(t, "ab ab a", NULL, 0, "0 0-1, 6 1-4, 6 4-7");
  spells(t, 6, "B A", "b a");
  tokenizer_free(t);
  t = make(LETTERS NORMAL("ByteLevel") PLAIN_BYTES ADDED(NEW("\\u00e9\\n")) "}");
  cuts(t, "a\xc3\xa9\n", NULL, 0, "0 0-1, 6 1-4");
  spells(t, 6, "\xc3\xa9\n", "\xc3\xa9\n");
  tokenizer_free(t);
}

/* One that is changed to nothing is nowhere, and stands for nothing. */
static void one_that_is_changed_to_nothing(void **state) {
  (void)state;
  struct tokenizer *t = make(LETTERS NORMAL("StripAccents") ADDED(NEW("\\u0301")) "}");
  cuts(t,
       "a\xcc\x81"
       "b",
       NULL, 0, "0 0-1, 1 3-4");
  spells(t, 6, "\xcc\x81", "");
  tokenizer_free(t);
}

static void no_memory_at_every_step_of_reading(void **state) {
  (void)state;
  static const char document[] =
      LETTERS NORMAL("Lowercase") TRIMS("true") ADDED(NEW("B A") "," MASK) "}";
  size_t failed = 0;
  struct tokenizer *t = NULL;
  json_t *json = json_loads(document, 0, NULL);
  while (!t) {
    struct error e = {0};
    poisoned_fail(failed + 1);
    t = tokenizer_new(json, &e);
    poisoned_fail(0);
    if (!t) assert_int_equal(e.status, STATUS_OUT_OF_MEMORY);
    failed++;
  }
  assert_true(failed > 20);
  tokenizer_free(t);
  json_decref(json);
}

/* --- what is cut off --- */

#define CUT(direction, strategy)                                                               \
  ",\"truncation\":{\"direction\":\"" direction "\",\"max_length\":3,\"strategy\":\"" strategy \
  "\",\"stride\":0}"

/* Of two texts that are both too long the first has the smaller half, if it is not the longer. */
static void the_longer_text_is_cut(void **state) {
  (void)state;
  struct tokenizer *t = make(LETTERS CUT("Right", "LongestFirst") "}");
  assert_int_equal(tokenizer_truncation(t), 3);
  cuts(t, "ab", "a", 3, "0 0-1, 1 1-2, 0 0-1");
  cuts(t, "abab", "a", 3, "0 0-1, 1 1-2, 0 0-1");
  cuts(t, "a", "abab", 3, "0 0-1, 0 0-1, 1 1-2");
  cuts(t, "abab", "bab", 3, "0 0-1, 1 1-2, 1 0-1");
  cuts(t, "bab", "abab", 3, "1 0-1, 0 0-1, 1 1-2");
  cuts(t, "bab", "aba", 3, "1 0-1, 0 0-1, 1 1-2");
  tokenizer_free(t);
}

/* The other one too, where that is not enough. */
static void one_of_two_texts_is_cut(void **state) {
  (void)state;
  struct tokenizer *t = make(LETTERS CUT("Left", "OnlyFirst") "}");
  cuts(t, "abab", "a", 3, "0 2-3, 1 3-4, 0 0-1");
  cuts(t, "ab", "abab", 3, "1 1-2, 0 2-3, 1 3-4");
  tokenizer_free(t);
  t = make(LETTERS CUT("Right", "OnlySecond") "}");
  cuts(t, "a", "abab", 3, "0 0-1, 0 0-1, 1 1-2");
  tokenizer_free(t);
}

/* --- documents that are refused --- */

#define REPLACE(by) "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"" by "\"},"
#define DOUBLE      REPLACE("aa") REPLACE("aa") REPLACE("aa")

static void what_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *json, *words;
  } list[] = {
      {LETTERS ",\"normaliser\":null}", "the member \"normaliser\" is not known"},
      {LETTERS ",\"truncation\":{\"max_length\":3,\"strategi\":\"OnlyFirst\"}}",
       "truncation: the member \"strategi\" is not known (did you mean \"strategy\"?)"},
      {LETTERS ",\"truncation\":{\"max_length\":-1}}", "truncation: max_length: needs"},
      {LETTERS ADDED("{\"id\":9,\"content\":\"<a>\",\"special\":\"yes\"}") "}",
       "added_tokens: \"<a>\": special: needs true or false"},
      {LETTERS ADDED("{\"id\":9,\"content\":\"<a>\",\"lstrp\":true}") "}",
       "added_tokens: \"<a>\": the member \"lstrp\" is not known"},
      {LETTERS ADDED("{\"id\":9,\"content\":\"\"}") "}", "added_tokens: content: needs a text"},
      {LETTERS
       ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[" DOUBLE DOUBLE DOUBLE DOUBLE
       "{\"type\":\"NFC\"}]}" ADDED("{\"id\":9,\"content\":\"a\",\"normalized\":true}") "}",
       "added_tokens: \"a\": the normalizer makes more than 1056 bytes of it"},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct error e = {0};
    json_t *json = json_loads(list[i].json, 0, NULL);
    assert_non_null(json);
    assert_null(tokenizer_new(json, &e));
    json_decref(json);
    if (e.status != STATUS_CONFIG || !strstr(e.detail, list[i].words))
      fail_msg("%s: %s, not %s", list[i].json, e.detail, list[i].words);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_lone_prefix_has_no_place),
      cmocka_unit_test(blanks_of_added_tokens),
      cmocka_unit_test(what_is_refused),
      cmocka_unit_test(blanks_of_pieces),
      cmocka_unit_test(a_run_that_bytes_spell),
      cmocka_unit_test(they_are_put_together_as_they_are_found),
      cmocka_unit_test(one_that_is_changed_to_nothing),
      cmocka_unit_test(no_memory_at_every_step_of_reading),
      cmocka_unit_test(the_longer_text_is_cut),
      cmocka_unit_test(one_of_two_texts_is_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
