/* test_token_decoder: pieces decoded by every type of decoder, and every way to get one wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/document/text.h"
#include "config/tokenizer/decoder/decoder.h"
#include "tests/support/poisoned.h"
#include "tests/support/rounds.h"

enum { PIECES = 16, WRITTEN = 500 };

static struct token_decoder *make(const char *json) {
  struct error e = {0};
  json_t *document = json ? json_loads(json, JSON_DECODE_ANY, NULL) : NULL;
  if (json && !document) fail_msg("%s: is no JSON", json);
  struct token_decoder *s = decoder_new(document, &e);
  if (!s) fail_msg("%s: %s", json, e.detail);
  json_decref(document);
  return s;
}

/* `pieces` are separated by /, and none is ".": an empty piece is nothing between two. */
static size_t read_pieces(const char *pieces, bool raw, struct decoder_piece out[PIECES]) {
  size_t count = 0;
  for (const char *at = pieces; strcmp(pieces, ".") != 0; at += out[count - 1].length + 1) {
    assert_true(count < PIECES);
    out[count] = (struct decoder_piece){at, strcspn(at, "/"), raw};
    if (at[out[count++].length] == '\0') break;
  }
  return count;
}

static void check(const struct token_decoder *s, const char *name, const char *pieces, bool raw,
                  const char *expected) {
  struct decoder_piece piece[PIECES];
  struct decoder_text text;
  struct arena a;
  struct error e = {0};
  arena_init(&a, NULL);
  const size_t count = read_pieces(pieces, raw, piece);
  assert_int_equal(decoder_decode(s, piece, count, &a, &text, &e), STATUS_OK);
  assert_true(text_is_utf8(text.bytes, text.length));
  if (text.length != strlen(expected) || (text.length && memcmp(text.bytes, expected, text.length)))
    fail_msg("%s of %s: \"%.*s\", not \"%s\"", name, pieces, (int)text.length, text.bytes,
             expected);
  arena_free(&a);
}

static void spells(const char *json, const char *pieces, const char *expected) {
  struct token_decoder *s = make(json);
  check(s, json ? json : "nothing", pieces, false, expected);
  decoder_free(s);
}

#define BYTES        "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true}"
#define WORDS(clean) "{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":" clean "}"
#define LOW          "\xe2\x96\x81"
#define BLANKS(more) "{\"type\":\"Metaspace\",\"replacement\":\"" LOW "\"" more "}"
#define BPE          "{\"type\":\"BPEDecoder\",\"suffix\":\"<w>\"}"
#define CTC(clean) \
  "{\"type\":\"CTC\",\"pad_token\":\"<pad>\",\"word_delimiter_token\":\"|\",\"cleanup\":" clean "}"
#define REPLACE(kind, pattern, content) \
  "{\"type\":\"Replace\",\"pattern\":{\"" kind "\":\"" pattern "\"},\"content\":\"" content "\"}"
#define FALLBACK "{\"type\":\"ByteFallback\"}"
#define FUSE     "{\"type\":\"Fuse\"}"
#define STRIP(start, stop) \
  "{\"type\":\"Strip\",\"content\":\"a\",\"start\":" start ",\"stop\":" stop "}"
#define SEQUENCE(decoders) "{\"type\":\"Sequence\",\"decoders\":[" decoders "]}"
#define BAD                "\xef\xbf\xbd" /* U+FFFD */

/* --- types --- */

static void without_a_decoder(void **state) {
  (void)state;
  spells(NULL, "a/b//c", "a b  c");
  spells("null", "a/b", "a b");
  spells(NULL, ".", "");
  spells(NULL, "", "");
  spells(SEQUENCE(""), "a/b", "ab");
}

static void letters_are_bytes(void **state) {
  (void)state;
  spells(BYTES, "Hey/\xc4\xa0you/\xc4\x8a", "Hey you\n");
  spells(BYTES, "\xc3\xa6\xc2\xbc/\xc2\xa2", "\xe6\xbc\xa2"); /* a character in two pieces */
  spells(BYTES, "\xc3\xa6\xc2\xbc/a", BAD "a");
  spells(BYTES, "\xe6\xbc\xa2/a b\xc4\xa0",
         "\xe6\xbc\xa2"
         "a b\xc4\xa0"); /* no letters: as it is */
  spells(BYTES, "\xc5\x83/\xc5\x82/\xc4\xa1", BAD BAD "\x7f");
  spells(BYTES, ".", "");
}

static void bytes_may_be_there_already(void **state) {
  (void)state;
  struct token_decoder *s = make(BYTES);
  assert_true(decoder_reads_bytes(s));
  check(s, "raw", "a /\xe6\xbc/\xa2", true, "a \xe6\xbc\xa2");
  decoder_free(s);
  s = make(SEQUENCE(SEQUENCE(BYTES)));
  assert_true(decoder_reads_bytes(s));
  decoder_free(s);
  static const char *const others[] = {NULL, SEQUENCE(""), SEQUENCE(BYTES "," FUSE), FUSE};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    s = make(others[i]);
    assert_false(decoder_reads_bytes(s));
    decoder_free(s);
  }
}

/* As many bytes as might have begun a character become one. */
static void what_is_no_text_is_replaced(void **state) {
  (void)state;
  static const struct {
    const char *bytes, *expected;
  } list[] = {{"a\x80z", "a" BAD "z"},
              {"\xc3", BAD},
              {"\xc3(", BAD "("},
              {"\xe6\xbc(", BAD "("},
              {"\xe6(", BAD "("},
              {"\xf0\x9f\x98", BAD},
              {"\xf0\x9f\x98\xf0", BAD BAD},
              {"\xf0\x80\x80\x80", BAD BAD BAD BAD},
              {"\xe0\x80\x80", BAD BAD BAD},
              {"\xed\xa0\x80", BAD BAD BAD},
              {"\xf4\x90\x80\x80", BAD BAD BAD BAD},
              {"\xf5\x80", BAD BAD},
              {"\xc0\xaf\xff", BAD BAD BAD},
              {"\xf4\x8f\xbf\xbf\xc2\xa2", "\xf4\x8f\xbf\xbf\xc2\xa2"}};
  struct token_decoder *s = make(BYTES);
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    check(s, "raw", list[i].bytes, true, list[i].expected);
  decoder_free(s);
}

static void word_pieces(void **state) {
  (void)state;
  spells(WORDS("false"), "##He/##llo/you/./##", "##Hello you .");
  spells(WORDS("true"), "Hey/./you/##'/s/ do not/,/?/!", "Hey. you' s  don't,?!");
  spells(WORDS("true"), "a b/c ' d/ n't/ 'm/ 's/ 've/ 're", "a b c'd n't 'm 's 've 're");
  spells("{\"type\":\"WordPiece\",\"prefix\":\"\",\"cleanup\":true}", "a/b ./c", "ab.c");
  spells(WORDS("true"), ".", "");
}

static void blanks_come_back(void **state) {
  (void)state;
  spells(BLANKS(""), LOW "Hey" LOW "/" LOW "you/" LOW, "Hey you ");
  spells(BLANKS(",\"prepend_scheme\":\"first\""), LOW LOW "a/" LOW LOW "b", "a  b");
  spells(BLANKS(",\"prepend_scheme\":\"never\",\"split\":true"), LOW "a/" LOW "b", " a b");
  spells(BLANKS(",\"add_prefix_space\":false"), LOW "a", " a");
  spells(BLANKS(",\"add_prefix_space\":true,\"str_rep\":\"" LOW "\""), LOW "a", "a");
}

static void ends_of_words(void **state) {
  (void)state;
  spells(BPE, "Hey<w>/yo/u<w>/<w>", "Hey you ");
  spells(BPE, "a<w><w>b/c<w><w>", "a  bc");
  spells(BPE, ".", "");
}

static void repeated_letters(void **state) {
  (void)state;
  spells(CTC("true"), "h/h/e/<pad>/l/l/<pad>/l/o/|/|/y/o/u", "hello you");
  spells(CTC("false"), "h/<pad>/|/|/a", "h|a");
  spells(CTC("true"), "a<pad>b/ .|", "ab. ");
  spells(CTC("true"), "<pad>/<pad>", "");
}

static void matches_are_replaced(void **state) {
  (void)state;
  spells(REPLACE("String", LOW, " "), LOW "a" LOW "/" LOW, " a  ");
  spells(REPLACE("Regex", "a+", "<>"), "baab/aa/c", "b<>b<>c");
  spells(REPLACE("String", "a", ""), "aba/a", "b");
  spells(REPLACE("Regex", "x*", "-"), "ab/", "-a-b-");
}

static void bytes_of_the_fallback(void **state) {
  (void)state;
  spells(FALLBACK, "a/<0xE6>/<0xbc>/<0xA2>/b",
         "a\xe6\xbc\xa2"
         "b");
  spells(FALLBACK, "<0xE6>/<0xBC>/b/<0x61>", BAD BAD "ba");
  spells(FALLBACK, "<0xE6>/<0x61>", BAD BAD);
  spells(FALLBACK, "<0x6g>/<0x6>/<0x061>/<0x\xc3\xa9>/<0x+5>",
         "<0x6g><0x6><0x061><0x\xc3\xa9>\x05");
}

static void ends_are_stripped(void **state) {
  (void)state;
  spells(STRIP("1", "0"), "aab/ba/", "abba");
  spells(STRIP("0", "2"), "baaa/ab", "baab");
  spells(STRIP("5", "5"), "aabaa/aaa/", "b");
  spells(STRIP("1", "1"), "a/aa", "");
}

static void sequences(void **state) {
  (void)state;
  static const char llama[] = SEQUENCE(
      REPLACE("String", LOW, " ") "," FALLBACK "," FUSE
                                  ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}");
  spells(llama, LOW "Hey/" LOW "you/<0x0A>/<0xE6>/<0xBC>/<0xA2>", "Hey you\n\xe6\xbc\xa2");
  spells(SEQUENCE(FUSE "," WORDS("true")), "a/ ./ b", "a. b");
  spells(SEQUENCE(SEQUENCE(BYTES) "," REPLACE("Regex", "\\\\s+$", "")), "a\xc4\xa0/\xc4\xa0", "a");
  spells(SEQUENCE(FUSE "," BYTES), ".", "");
}

/* --- what is refused --- */

static void mistakes_are_named(void **state) {
  (void)state;
  static const struct {
    const char *json, *detail;
  } list[] = {
      {"[]", "is not an object"},
      {"{\"type\":\"BPE\"}",
       "the type \"BPE\" is not supported; supported: BPEDecoder, ByteFallback, ByteLevel, CTC, "
       "Fuse, Metaspace, Replace, Sequence, Strip and WordPiece"},
      {"{\"type\":\"Wordpiece\"}",
       "the type \"Wordpiece\" is not supported (did you mean \"WordPiece\"?)"},
      {"{\"type\":\"Fuse\",\"x\":1}", "the member \"x\" is not known"},
      {"{\"type\":\"ByteLevel\"}",
       "ByteLevel: add_prefix_space: needs true or false, and is missing"},
      {"{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":1}",
       "ByteLevel: use_regex: needs true or false"},
      {"{\"type\":\"WordPiece\",\"cleanup\":true}",
       "WordPiece: prefix: needs a string, and is missing"},
      {WORDS("1"), "WordPiece: cleanup: needs true or false"},
      {"{\"type\":\"Metaspace\",\"replacement\":\"\"}",
       "Metaspace: replacement: needs a string of one character"},
      {BLANKS(",\"prepend_scheme\":1"), "Metaspace: prepend_scheme: needs a string"},
      {"{\"type\":\"BPEDecoder\",\"suffix\":\"\"}",
       "BPEDecoder: suffix: needs a string that is not empty"},
      {"{\"type\":\"CTC\",\"pad_token\":\"\",\"word_delimiter_token\":\"|\",\"cleanup\":true}",
       "CTC: pad_token: needs a string that is not empty"},
      {"{\"type\":\"CTC\",\"pad_token\":\"a\",\"cleanup\":true}",
       "CTC: word_delimiter_token: needs a string, and is missing"},
      {"{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"}}",
       "Replace: content: needs a string, and is missing"},
      {"{\"type\":\"Replace\",\"content\":\"a\"}",
       "Replace: pattern: needs {\"String\": text} or {\"Regex\": expression}"},
      {REPLACE("Regex", "(", ""), "Replace: pattern: \"(\" at byte 0 of the expression has no end"},
      {"{\"type\":\"Strip\",\"content\":\"ab\",\"start\":0,\"stop\":0}",
       "Strip: content: needs a string of one character"},
      {STRIP("-1", "0"), "Strip: start: needs an integer from 0 to 2147483647"},
      {STRIP("0", "0.5"), "Strip: stop: needs an integer from 0 to 2147483647"},
      {"{\"type\":\"Sequence\",\"decoders\":{}}", "Sequence: decoders: needs a list"},
      {SEQUENCE(FUSE "," BPE ",{\"type\":\"CTC\"}"),
       "Sequence: decoders, 2: CTC: pad_token: needs"},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct error e = {0};
    json_t *json = json_loads(list[i].json, 0, NULL);
    assert_non_null(json);
    assert_null(decoder_new(json, &e));
    assert_int_equal(e.status, STATUS_CONFIG);
    if (strncmp(e.detail, list[i].detail, strlen(list[i].detail)) != 0)
      fail_msg("%s: %s, not %s", list[i].json, e.detail, list[i].detail);
    json_decref(json);
  }
  decoder_free(NULL);
}

static void sequences_nest_too_deep(void **state) {
  (void)state;
  struct error e = {0};
  json_t *json = json_pack("{ss}", "type", "Fuse");
  for (int i = 0; i < 40; i++) json = json_pack("{sss[o]}", "type", "Sequence", "decoders", json);
  assert_null(decoder_new(json, &e));
  assert_int_equal(e.status, STATUS_CONFIG);
  json_decref(json);
}

/* --- memory and time --- */

#define ALL                                                                  \
  SEQUENCE(WORDS("true") "," BLANKS("") "," BPE "," CTC("true") "," REPLACE( \
      "Regex", "a", "bcd") "," STRIP("1", "1") "," FALLBACK "," FUSE "," BYTES)

static void no_memory_at_any_step(void **state) {
  (void)state;
  json_t *json = json_loads(ALL, 0, NULL);
  assert_non_null(json);
  size_t n = 0;
  for (struct token_decoder *s = NULL; !s;) {
    struct error e = {0};
    poisoned_fail(++n);
    s = decoder_new(json, &e);
    poisoned_fail(0);
    assert_true(s || e.status == STATUS_OUT_OF_MEMORY);
    decoder_free(s);
  }
  assert_true(n > 10);
  json_decref(json);
}

static void a_full_budget_at_every_step(void **state) {
  (void)state;
  enum { COUNT = 4000 };
  static const char *const words[] = {"a\xe6", "##b .", LOW "c</w>", "<0x61>", "a a"};
  static const char *const list[] = {ALL, BYTES, NULL, FALLBACK};
  struct decoder_piece *piece = calloc(COUNT, sizeof *piece);
  assert_non_null(piece);
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct token_decoder *s = make(list[i]);
    const bool raw = decoder_reads_bytes(s);
    bool done = false;
    for (size_t j = 0; j < COUNT; j++) {
      const char *word = words[raw ? j % 5 : 1 + j % 4];
      piece[j] = (struct decoder_piece){word, strlen(word), raw};
    }
    for (size_t limit = 100; !done; limit += 2000) {
      struct budget budget;
      struct arena a;
      struct error e = {0};
      struct decoder_text text;
      budget_init(&budget, limit);
      arena_init(&a, &budget);
      done = decoder_decode(s, piece, COUNT, &a, &text, &e) == STATUS_OK;
      if (!done) assert_string_equal(e.limit, "memory_budget_bytes");
      arena_free(&a);
      assert_int_equal(atomic_load(&budget.used), 0);
      assert_true(limit < 1 << 20);
    }
    decoder_free(s);
  }
  free(piece);
}

/* Many pieces, and one that is long. */
static void long_texts(void **state) {
  (void)state;
  enum { LONG = 200000 };
  static const char *const list[] = {BYTES,
                                     WORDS("true"),
                                     BLANKS(""),
                                     BPE,
                                     CTC("true"),
                                     FALLBACK,
                                     REPLACE("Regex", "\\\\s+", "-"),
                                     STRIP("200000", "200000")};
  static const char *const words[] = {" ", "a", LOW, "<0xE6>", " n't", "</w>", "<pad>a"};
  const size_t count = rounds(LONG);
  struct decoder_piece *piece = calloc(count, sizeof *piece);
  assert_non_null(piece);
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    for (int fused = 0; fused < 2; fused++)
      for (size_t j = 0; j < sizeof words / sizeof *words; j++) {
        char json[400];
        struct arena a;
        struct error e = {0};
        struct decoder_text text;
        snprintf(json, sizeof json, SEQUENCE("%s%s"), fused ? FUSE "," : "", list[i]);
        struct token_decoder *s = make(json);
        for (size_t k = 0; k < count; k++)
          piece[k] = (struct decoder_piece){words[j], strlen(words[j]), false};
        arena_init(&a, NULL);
        assert_int_equal(decoder_decode(s, piece, count, &a, &text, &e), STATUS_OK);
        arena_free(&a);
        decoder_free(s);
      }
  free(piece);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_a_decoder),
      cmocka_unit_test(letters_are_bytes),
      cmocka_unit_test(bytes_may_be_there_already),
      cmocka_unit_test(what_is_no_text_is_replaced),
      cmocka_unit_test(word_pieces),
      cmocka_unit_test(blanks_come_back),
      cmocka_unit_test(ends_of_words),
      cmocka_unit_test(repeated_letters),
      cmocka_unit_test(matches_are_replaced),
      cmocka_unit_test(bytes_of_the_fallback),
      cmocka_unit_test(ends_are_stripped),
      cmocka_unit_test(sequences),
      cmocka_unit_test(mistakes_are_named),
      cmocka_unit_test(sequences_nest_too_deep),
      cmocka_unit_test(no_memory_at_any_step),
      cmocka_unit_test(a_full_budget_at_every_step),
      cmocka_unit_test(long_texts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
