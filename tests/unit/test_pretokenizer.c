/* test_pretokenizer: texts cut by every type of pre-tokenizer, where their pieces came from, and
 * every way to get one wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/tokenizer/pretokenizer/pretokenizer.h"
#include "tests/support/poisoned.h"

enum { WRITTEN = 2000 };

static struct pretokenizer *make(const char *json) {
  struct error e = {0};
  json_error_t why;
  json_t *document = json_loads(json, 0, &why);
  if (!document) fail_msg("%s: %s", json, why.text);
  struct pretokenizer *s = pretokenizer_new(document, &e);
  if (!s) fail_msg("%s: %s", json, e.detail);
  json_decref(document);
  return s;
}

/* Writes the pieces, each with the bytes that it came from if those are traced. */
static void write_pieces(const struct passage *p, char out[WRITTEN]) {
  size_t used = 0;
  uint32_t from, to;
  out[0] = '\0';
  for (size_t i = 0; i < p->pieces.count && used < WRITTEN; i++) {
    const struct passage_piece piece = p->pieces.piece[i];
    assert_true(piece.begin < piece.end && piece.end <= p->now.length);
    used += (size_t)snprintf(out + used, WRITTEN - used, "[%.*s", (int)(piece.end - piece.begin),
                             p->now.bytes + piece.begin);
    if (p->traced && used < WRITTEN) {
      passage_origin(p, piece.begin, piece.end, &from, &to);
      used += (size_t)snprintf(out + used, WRITTEN - used, " %u-%u", from, to);
    }
    if (used < WRITTEN) used += (size_t)snprintf(out + used, WRITTEN - used, "]");
  }
  assert_true(used < WRITTEN);
}

static void check(const struct pretokenizer *s, const char *name, const char *text, size_t at,
                  bool traced, const char *expected) {
  struct arena a;
  struct error e = {0};
  struct passage p;
  char found[WRITTEN];
  arena_init(&a, NULL);
  passage_init(&p, &a, &e);
  for (int again = 0; again < 2; again++) { /* the memory of one text serves the next */
    assert_int_equal(passage_begin(&p, text, strlen(text), at, traced), STATUS_OK);
    assert_int_equal(pretokenizer_apply(s, &p), STATUS_OK);
    write_pieces(&p, found);
    if (strcmp(found, expected) != 0)
      fail_msg("%s on \"%s\": %s, not %s", name, text, found, expected);
  }
  arena_free(&a);
}

static void cuts(const char *json, const char *text, const char *expected) {
  struct pretokenizer *s = make(json);
  check(s, json, text, 0, true, expected);
  pretokenizer_free(s);
}

/* The same without what the pieces came from. */
static void gives(const char *json, const char *text, const char *expected) {
  struct pretokenizer *s = make(json);
  check(s, json, text, 0, false, expected);
  pretokenizer_free(s);
}

/* --- classes of characters --- */

#define E_ACUTE "\xc3\xa9"
#define WIDE    "\xe3\x80\x80" /* a blank as wide as a Han character */
#define HAN     "\xe6\xbc\xa2"

static void blanks_are_left_out(void **state) {
  (void)state;
  static const char json[] = "{\"type\":\"WhitespaceSplit\"}";
  cuts(json, " Hey," WIDE "you \t" E_ACUTE "\n", "[Hey, 1-5][you 8-11][" E_ACUTE " 13-15]");
  cuts(json, "", "");
  cuts(json, " \n" WIDE, "");
  cuts(json,
       "a\xe1\xa0\x8e"
       "b",
       "[a\xe1\xa0\x8e"
       "b 0-5]"); /* U+180E is no blank any more */
}

static void words_and_what_is_between(void **state) {
  (void)state;
  cuts("{\"type\":\"Whitespace\"}", "Hey_1 there, " E_ACUTE "!? " HAN "\xe2\x80\x8dz",
       "[Hey_1 0-5][there 6-11][, 11-12][" E_ACUTE " 13-15][!? 15-17][" HAN "\xe2\x80\x8dz 18-25]");
}

static void words_as_bert_has_them(void **state) {
  (void)state;
  cuts("{\"type\":\"BertPreTokenizer\"}", "Hey  there$~ \xe2\x80\x9c" HAN "a\xc2\xb0",
       "[Hey 0-3][there 5-10][$ 10-11][~ 11-12][\xe2\x80\x9c 13-16][" HAN "a\xc2\xb0 16-22]");
}

static void at_one_character(void **state) {
  (void)state;
  cuts("{\"type\":\"CharDelimiterSplit\",\"delimiter\":\"x\"}", "xaxxbx", "[a 1-2][b 4-5]");
  cuts("{\"type\":\"CharDelimiterSplit\",\"delimiter\":\"" HAN "\"}", HAN "a" HAN, "[a 3-4]");
}

static void digits(void **state) {
  (void)state;
  static const char text[] = "a12\xc2\xbd"
                             "b\xd9\xa3";
  cuts("{\"type\":\"Digits\",\"individual_digits\":true}", text,
       "[a 0-1][1 1-2][2 2-3][\xc2\xbd 3-5][b 5-6][\xd9\xa3 6-8]");
  cuts("{\"type\":\"Digits\",\"individual_digits\":false}", text,
       "[a 0-1][12\xc2\xbd 1-5][b 5-6][\xd9\xa3 6-8]");
}

static void punctuation_behaves(void **state) {
  (void)state;
  static const struct {
    const char *behavior, *expected;
  } list[] = {{"Removed", "[a 1-2][b 4-5]"},
              {"Isolated", "[, 0-1][a 1-2][! 2-3][! 3-4][b 4-5][. 5-6]"},
              {"MergedWithPrevious", "[, 0-1][a! 1-3][! 3-4][b. 4-6]"},
              {"MergedWithNext", "[,a 0-2][! 2-3][!b 3-5][. 5-6]"},
              {"Contiguous", "[, 0-1][a 1-2][!! 2-4][b 4-5][. 5-6]"}};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    char json[100];
    snprintf(json, sizeof json, "{\"type\":\"Punctuation\",\"behavior\":\"%s\"}", list[i].behavior);
    cuts(json, ",a!!b.", list[i].expected);
  }
  cuts("{\"type\":\"Punctuation\"}", ",a", "[, 0-1][a 1-2]");
}

static void so_many_characters(void **state) {
  (void)state;
  cuts("{\"type\":\"FixedLength\",\"length\":2}", "a" HAN "bcd", "[a" HAN " 0-4][bc 4-6][d 6-7]");
  cuts("{\"type\":\"FixedLength\"}", "abcdefg", "[abcde 0-5][fg 5-7]");
  cuts("{\"type\":\"FixedLength\",\"length\":9}", "abc", "[abc 0-3]");
}

/* --- patterns --- */

/* Of "abba-b" by "b". */
static void matches_behave(void **state) {
  (void)state;
  static const struct {
    const char *behavior, *expected, *inverted;
  } list[] = {{"Removed", "[a 0-1][a- 3-5]", "[b 1-2][b 2-3][b 5-6]"},
              {"Isolated", "[a 0-1][b 1-2][b 2-3][a- 3-5][b 5-6]",
               "[a 0-1][b 1-2][b 2-3][a- 3-5][b 5-6]"},
              {"MergedWithPrevious", "[ab 0-2][b 2-3][a-b 3-6]", "[a 0-1][b 1-2][ba- 2-5][b 5-6]"},
              {"MergedWithNext", "[a 0-1][b 1-2][ba- 2-5][b 5-6]", "[ab 0-2][b 2-3][a-b 3-6]"},
              {"Contiguous", "[a 0-1][bb 1-3][a- 3-5][b 5-6]", "[a 0-1][bb 1-3][a- 3-5][b 5-6]"}};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    for (int inverted = 0; inverted < 2; inverted++)
      for (int regex = 0; regex < 2; regex++) {
        char json[200];
        snprintf(json, sizeof json,
                 "{\"type\":\"Split\",\"pattern\":{\"%s\":\"b\"},\"behavior\":\"%s\","
                 "\"invert\":%s}",
                 regex ? "Regex" : "String", list[i].behavior, inverted ? "true" : "false");
        cuts(json, "abba-b", inverted ? list[i].inverted : list[i].expected);
      }
}

#define SPLIT(kind, pattern, behavior)                                                      \
  "{\"type\":\"Split\",\"pattern\":{\"" kind "\":\"" pattern "\"},\"behavior\":\"" behavior \
  "\",\"invert\":false}"

static void matches_of_nothing_cut(void **state) {
  (void)state;
  static const char *const behaviors[] = {"Removed", "Isolated", "MergedWithPrevious",
                                          "MergedWithNext", "Contiguous"};
  for (size_t i = 0; i < sizeof behaviors / sizeof *behaviors; i++) {
    char json[200];
    snprintf(json, sizeof json,
             "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?=b)\"},\"behavior\":\"%s\","
             "\"invert\":false}",
             behaviors[i]);
    cuts(json, "abba", "[a 0-1][b 1-2][ba 2-4]");
  }
  cuts(SPLIT("String", "", "Isolated"), "a" HAN, "[a 0-1][" HAN " 1-4]");
}

/* What is looked for sees the piece alone. */
static void patterns_see_a_piece(void **state) {
  (void)state;
  cuts("{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"WhitespaceSplit\"}," SPLIT(
           "Regex", "^.", "Isolated") "," SPLIT("Regex", "(?<!b)c", "Removed") "]}",
       "abc bc", "[a 0-1][bc 1-3][b 4-5]");
}

/* --- other texts --- */

static void blanks_are_replaced(void **state) {
  (void)state;
#define LOW "\xe2\x96\x81"
  static const char text[] = "Hey  you";
  cuts("{\"type\":\"Metaspace\",\"replacement\":\"" LOW "\"}", text,
       "[" LOW "Hey 0-3][" LOW " 3-4][" LOW "you 4-8]");
  cuts("{\"type\":\"Metaspace\",\"replacement\":\"" LOW "\",\"split\":false}", text,
       "[" LOW "Hey" LOW LOW "you 0-8]");
  cuts("{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"never\"}", text,
       "[Hey 0-3][_ 3-4][_you 4-8]");
  cuts("{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"always\"}", " a",
       "[_a 0-2]");
  cuts("{\"type\":\"Metaspace\",\"replacement\":\"_\",\"str_rep\":\"_\"}", "_a", "[_a 0-2]");
  cuts("{\"type\":\"Metaspace\",\"replacement\":\"_\"}", HAN "a", "[_" HAN "a 0-4]");
  cuts("{\"type\":\"Metaspace\",\"replacement\":\"_\"}", "", "");
}

static void only_the_first_piece_has_a_blank(void **state) {
  (void)state;
#define FIRST "{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"first\"}"
  static const char after[] =
      "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"WhitespaceSplit\"}," FIRST "]}";
  static const char twice[] = "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Metaspace\","
                              "\"replacement\":\"-\"},{\"type\":\"Punctuation\"}," FIRST "]}";
  cuts(after, HAN "a b", "[_" HAN "a 0-4][b 5-6]");
  cuts(after, " a b", "[a 1-2][b 3-4]");
  gives(after, HAN "a b", "[_" HAN "a][b]");
  gives(after, " a b", "[a][b]");
  cuts(twice, "ab", "[_- 0-1][_ab 0-2]"); /* both begin with what came from the first character */
  gives(twice, "ab", "[_-][_ab]");
  struct pretokenizer *s = make(FIRST);
  check(s, "a later text", "a b", 7, true, "[a 7-8][_b 8-10]");
  check(s, "a later text", "a b", 7, false, "[a][_b]");
  pretokenizer_free(s);
}

static void old_words_for_blanks(void **state) {
  (void)state;
#define OLD(more) "{\"type\":\"Metaspace\",\"replacement\":\"_\"," more "}"
  gives(OLD("\"add_prefix_space\":true"), "a b", "[_a][_b]");
  gives(OLD("\"add_prefix_space\":false"), "a b", "[a][_b]");
  gives(OLD("\"add_prefix_space\":null,\"split\":null"), "a b", "[_a][_b]");
  gives(OLD("\"add_prefix_space\":true,\"prepend_scheme\":\"never\""), "a b", "[a][_b]");
  gives(OLD("\"add_prefix_space\":false,\"prepend_scheme\":\"never\""), "a b", "[a][_b]");
}

#define BYTES(prefix, regex)                             \
  "{\"type\":\"ByteLevel\",\"add_prefix_space\":" prefix \
  ",\"trim_offsets\":true,\"use_regex\":" regex "}"
#define BLANK "\xc4\xa0" /* how a blank is written */

static void bytes_are_written(void **state) {
  (void)state;
  static const char text[] = "It's " E_ACUTE "  \n" HAN;
  cuts(BYTES("false", "true"), text,
       "[It 0-2]['s 2-4][" BLANK "\xc3\x83\xc2\xa9 4-7][" BLANK BLANK " 7-9][\xc4\x8a 9-10]"
       "[\xc3\xa6\xc2\xbc\xc2\xa2 10-13]");
  cuts(BYTES("true", "false"), text,
       "[" BLANK "It's" BLANK "\xc3\x83\xc2\xa9" BLANK BLANK "\xc4\x8a\xc3\xa6\xc2\xbc\xc2\xa2 "
       "0-13]");
  cuts("{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":false}", " a b",
       "[" BLANK "a 0-2][" BLANK "b 2-4]");
  cuts(BYTES("true", "false"), "\x7f\xc2\xad\xc2\xa0\x01", /* each byte has a letter */
       "[" BLANK "\xc4\xa1\xc3\x82\xc5\x83\xc3\x82\xc5\x82\xc4\x81 0-6]");
}

static void bytes_may_be_left(void **state) {
  (void)state;
  static const char *const none[] = {"{\"type\":\"Whitespace\"}",
                                     "{\"type\":\"Sequence\",\"pretokenizers\":[]}",
                                     "{\"type\":\"Sequence\",\"pretokenizers\":[" BYTES(
                                         "true", "true") ",{\"type\":\"Whitespace\"}]}"};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    struct pretokenizer *s = make(none[i]);
    assert_false(pretokenizer_writes_bytes(s));
    pretokenizer_free(s);
  }
  struct pretokenizer *s = make("{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\","
                                "\"individual_digits\":true}," BYTES("true", "true") "]}");
  assert_true(pretokenizer_writes_bytes(s));
  check(s, "letters", E_ACUTE "1b c", 0, true,
        "[" BLANK "\xc3\x83\xc2\xa9 0-2][" BLANK "1 2-3][" BLANK "b 3-4][" BLANK "c 4-6]");
  pretokenizer_leave_bytes(s);
  assert_false(pretokenizer_writes_bytes(s));
  check(s, "bytes", E_ACUTE "1b c", 0, true, "[ " E_ACUTE " 0-2][ 1 2-3][ b 3-4][ c 4-6]");
  pretokenizer_free(s);
}

static void sequences(void **state) {
  (void)state;
  cuts("{\"type\":\"Sequence\",\"pretokenizers\":[]}", "a b", "[a b 0-3]");
  cuts("{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Sequence\",\"pretokenizers\":[{"
       "\"type\":\"Whitespace\"}]},{\"type\":\"FixedLength\",\"length\":2}," BYTES(
           "true", "false") "," BYTES("false", "true") "]}",
       "a! bcd",
       "[\xc3\x84\xc5\x82"
       "a 0-1][\xc3\x84\xc5\x82 1-2][! 1-2][\xc3\x84\xc5\x82"
       "bc 3-5]"
       "[\xc3\x84\xc5\x82"
       "d 5-6]");
}

/* --- what is refused --- */

static void mistakes_are_named(void **state) {
  (void)state;
  static const struct {
    const char *json, *detail;
  } list[] = {
      {"[]", "is not an object"},
      {"{}", "type: needs a name, and is missing"},
      {"{\"type\":1}", "type: needs a name"},
      {"{\"type\":\"UnicodeScripts\"}",
       "the type \"UnicodeScripts\" is not supported; supported: BertPreTokenizer, ByteLevel, "
       "CharDelimiterSplit, Digits, FixedLength, Metaspace, Punctuation, Sequence, Split, "
       "Whitespace and WhitespaceSplit"},
      {"{\"type\":\"Digit\"}",
       "the type \"Digit\" is not supported (did you mean \"Digits\"?); supported:"},
      {"{\"type\":\"Punctuation\",\"behaviour\":1}",
       "the member \"behaviour\" is not known (did you mean \"behavior\"?)"},
      {"{\"type\":\"Whitespace\",\"x\":1}", "the member \"x\" is not known"},
      {"{\"type\":\"Punctuation\",\"behavior\":\"Merged\"}",
       "Punctuation: behavior: needs one of Removed, Isolated, MergedWithPrevious, "
       "MergedWithNext, Contiguous"},
      {"{\"type\":\"Punctuation\",\"behavior\":null}", "Punctuation: behavior: needs a string"},
      {"{\"type\":\"Digits\"}", "Digits: individual_digits: needs true or false, and is missing"},
      {"{\"type\":\"Digits\",\"individual_digits\":1}",
       "Digits: individual_digits: needs true or false"},
      {"{\"type\":\"ByteLevel\",\"trim_offsets\":true}",
       "ByteLevel: add_prefix_space: needs true or false, and is missing"},
      {"{\"type\":\"ByteLevel\",\"add_prefix_space\":true}", "ByteLevel: trim_offsets: needs"},
      {BYTES("true", "null"), "ByteLevel: use_regex: needs true or false"},
      {"{\"type\":\"CharDelimiterSplit\",\"delimiter\":\"ab\"}",
       "CharDelimiterSplit: delimiter: needs a string of one character"},
      {"{\"type\":\"CharDelimiterSplit\",\"delimiter\":\"\"}",
       "CharDelimiterSplit: delimiter: needs a string of one character"},
      {"{\"type\":\"FixedLength\",\"length\":0}",
       "FixedLength: length: needs an integer from 1 to 2147483647"},
      {"{\"type\":\"FixedLength\",\"length\":\"1\"}", "FixedLength: length: needs an integer"},
      {"{\"type\":\"Metaspace\"}", "Metaspace: replacement: needs a string, and is missing"},
      {OLD("\"split\":1"), "Metaspace: split: needs true or false"},
      {OLD("\"prepend_scheme\":\"some\""),
       "Metaspace: prepend_scheme: needs one of never, first, always"},
      {OLD("\"add_prefix_space\":false,\"prepend_scheme\":\"first\""),
       "Metaspace: add_prefix_space: is false, but prepend_scheme is not never"},
      {"{\"type\":\"Split\",\"pattern\":\"a\",\"behavior\":\"Removed\",\"invert\":true}",
       "Split: pattern: needs {\"String\": text} or {\"Regex\": expression}"},
      {"{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"Removed\"}",
       "Split: invert: needs true or false, and is missing"},
      {"{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"invert\":true}",
       "Split: behavior: needs a string, and is missing"},
      {SPLIT("Regex", "(", "Removed"),
       "Split: pattern: \"(\" at byte 0 of the expression has no end"},
      {"{\"type\":\"Sequence\"}", "Sequence: pretokenizers: needs a list, and is missing"},
      {"{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Whitespace\"},null]}",
       "Sequence: pretokenizers, 1: is not an object"},
      {"{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\"}]}",
       "Sequence: pretokenizers, 0: Digits: individual_digits: needs"},
      {"{\"type\":\"a\\nb\"}", "the type \"a?b\" is not supported"},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct error e = {0};
    json_t *json = json_loads(list[i].json, 0, NULL);
    assert_non_null(json);
    assert_null(pretokenizer_new(json, &e));
    assert_int_equal(e.status, STATUS_CONFIG);
    if (strncmp(e.detail, list[i].detail, strlen(list[i].detail)) != 0)
      fail_msg("%s: %s, not %s", list[i].json, e.detail, list[i].detail);
    json_decref(json);
  }
  pretokenizer_free(NULL);
}

static void sequences_nest_too_deep(void **state) {
  (void)state;
  struct error e = {0};
  json_t *json = json_pack("{ss}", "type", "Whitespace");
  for (int i = 0; i < 40; i++)
    json = json_pack("{sss[o]}", "type", "Sequence", "pretokenizers", json);
  assert_null(pretokenizer_new(json, &e));
  assert_int_equal(e.status, STATUS_CONFIG);
  json_decref(json);
}

/* --- memory and time --- */

#define ALL                                                                                     \
  "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Metaspace\",\"replacement\":\"" LOW    \
  "\"}," SPLIT("Regex", "\\\\p{L}+[a&&b[^c]]", "MergedWithNext") "," SPLIT(                     \
      "String", "it", "Isolated") ","                                                           \
                                  "{\"type\":\"Digits\",\"individual_digits\":true},{\"type\":" \
                                  "\"BertPreTokenizer\"},"                                      \
                                  "{\"type\":\"FixedLength\",\"length\":3}," BYTES("true",      \
                                                                                   "true") "]}"

static void no_memory_at_any_step(void **state) {
  (void)state;
  json_t *json = json_loads(ALL, 0, NULL);
  assert_non_null(json);
  size_t n = 0;
  for (struct pretokenizer *s = NULL; !s;) {
    struct error e = {0};
    poisoned_fail(++n);
    s = pretokenizer_new(json, &e);
    poisoned_fail(0);
    assert_true(s || e.status == STATUS_OUT_OF_MEMORY);
    pretokenizer_free(s);
  }
  assert_true(n > 5);
  json_decref(json);
}

static void a_full_budget_at_every_step(void **state) {
  (void)state;
  enum { TIMES = 400 };
  static const char *const list[] = {ALL, BYTES("true", "true"), "{\"type\":\"WhitespaceSplit\"}"};
  char text[TIMES * 9 + 1] = "";
  for (size_t i = 0; i < TIMES; i++) memcpy(text + 9 * i, "it's 12\xc2\xa0", 9);
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct pretokenizer *s = make(list[i]);
    bool done = false;
    for (size_t limit = 100; !done; limit += 1000) {
      struct budget budget;
      struct arena a;
      struct error e = {0};
      struct passage p;
      budget_init(&budget, limit);
      arena_init(&a, &budget);
      passage_init(&p, &a, &e);
      if (passage_begin(&p, text, strlen(text), 0, true) == STATUS_OK) pretokenizer_apply(s, &p);
      if (e.status) assert_string_equal(e.limit, "memory_budget_bytes");
      done = !e.status;
      arena_free(&a);
      assert_int_equal(atomic_load(&budget.used), 0);
      assert_true(limit < 1 << 20);
    }
    pretokenizer_free(s);
  }
}

static enum status has_left(struct patience *p) {
  (void)p;
  return STATUS_GONE;
}

static void a_step_ends_when_nobody_waits(void **state) {
  (void)state;
  enum { TIMES = 200000, LITTLE = 1 << 17 };
  static const char *const list[] = {"{\"type\":\"BertPreTokenizer\"}",
                                     BYTES("true", "true"),
                                     BYTES("false", "false"),
                                     "{\"type\":\"Digits\",\"individual_digits\":true}",
                                     "{\"type\":\"FixedLength\",\"length\":2}",
                                     "{\"type\":\"Metaspace\",\"replacement\":\"_\"}",
                                     "{\"type\":\"Whitespace\"}",
                                     "{\"type\":\"WhitespaceSplit\"}",
                                     SPLIT("Regex", " ", "Isolated"),
                                     SPLIT("Regex", "[^x]*x", "Isolated")};
  char *text = malloc(TIMES * 9);
  assert_non_null(text);
  for (size_t i = 0; i < TIMES; i++) memcpy(text + 9 * i, "it's 12\xc2\xa0", 9);
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct pretokenizer *s = make(list[i]);
    struct arena a;
    struct error e = {0};
    struct passage p;
    struct patience patience = {.ask = has_left};
    arena_init(&a, NULL);
    passage_init(&p, &a, &e);
    p.patience = p.watch.patience = &patience;
    passage_begin(&p, text, TIMES * 9, 0, true);
    if (pretokenizer_apply(s, &p) != STATUS_GONE || a.bytes > LITTLE)
      fail_msg("%s: status %d, %zu bytes", list[i], (int)e.status, a.bytes);
    arena_free(&a);
    pretokenizer_free(s);
  }
  free(text);
}

static void a_text_that_takes_too_long(void **state) {
  (void)state;
  enum { LONG = 100000 };
  char *text = malloc(LONG + 1);
  assert_non_null(text);
  memset(text, 'a', LONG);
  text[LONG] = '\0';
  struct pretokenizer *s = make("{\"type\":\"Sequence\",\"pretokenizers\":[" SPLIT(
      "Regex", "(?:a|b)*z|y", "Removed") "," BYTES("true", "true") "]}");
  struct arena a;
  struct error e = {0};
  struct passage p;
  arena_init(&a, NULL);
  passage_init(&p, &a, &e);
  assert_int_equal(passage_begin(&p, text, LONG, 0, false), STATUS_OK);
  assert_int_equal(pretokenizer_apply(s, &p), STATUS_INVALID_REQUEST);
  arena_free(&a);
  pretokenizer_free(s);
  free(text);
}

/* Each byte is a piece, or none is: neither takes long. */
static void long_texts(void **state) {
  (void)state;
  enum { LONG = 1000000 };
  static const char *const list[] = {
      "{\"type\":\"WhitespaceSplit\"}",          "{\"type\":\"Punctuation\"}",
      "{\"type\":\"FixedLength\",\"length\":1}", SPLIT("String", "", "Isolated"),
      OLD("\"prepend_scheme\":\"always\""),      BYTES("true", "true"),
      "{\"type\":\"BertPreTokenizer\"}"};
  char *text = malloc(LONG + 1);
  assert_non_null(text);
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    for (const char *of = " !a\n"; *of; of++) {
      struct pretokenizer *s = make(list[i]);
      struct arena a;
      struct error e = {0};
      struct passage p;
      memset(text, *of, LONG);
      arena_init(&a, NULL);
      passage_init(&p, &a, &e);
      assert_int_equal(passage_begin(&p, text, LONG, 0, true), STATUS_OK);
      assert_int_equal(pretokenizer_apply(s, &p), STATUS_OK);
      arena_free(&a);
      pretokenizer_free(s);
    }
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blanks_are_left_out),
      cmocka_unit_test(words_and_what_is_between),
      cmocka_unit_test(words_as_bert_has_them),
      cmocka_unit_test(at_one_character),
      cmocka_unit_test(digits),
      cmocka_unit_test(punctuation_behaves),
      cmocka_unit_test(so_many_characters),
      cmocka_unit_test(matches_behave),
      cmocka_unit_test(matches_of_nothing_cut),
      cmocka_unit_test(patterns_see_a_piece),
      cmocka_unit_test(blanks_are_replaced),
      cmocka_unit_test(only_the_first_piece_has_a_blank),
      cmocka_unit_test(old_words_for_blanks),
      cmocka_unit_test(bytes_are_written),
      cmocka_unit_test(bytes_may_be_left),
      cmocka_unit_test(sequences),
      cmocka_unit_test(mistakes_are_named),
      cmocka_unit_test(sequences_nest_too_deep),
      cmocka_unit_test(no_memory_at_any_step),
      cmocka_unit_test(a_full_budget_at_every_step),
      cmocka_unit_test(a_text_that_takes_too_long),
      cmocka_unit_test(a_step_ends_when_nobody_waits),
      cmocka_unit_test(long_texts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
