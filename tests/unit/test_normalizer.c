/* test_normalizer: what each normalizer makes of texts, where its bytes came from, what is refused,
 * and what happens without memory. What the texts become is what Hugging Face's library has made of
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/tokenizer/normalizer/normalizer.h"
#include "config/tokenizer/pattern/unicode.h"
#include "tests/support/charsmap_make.h"
#include "tests/support/poisoned.h"

enum { OFFSET = 100 }; /* of the texts in their originals */

static json_t *read_json(const char *text) {
  json_error_t error;
  json_t *json = json_loads(text, JSON_DECODE_ANY, &error);
  if (!json) fail_msg("%s: %s", text, error.text);
  return json;
}

static struct normalizer *make(const char *text) {
  struct error e = {0};
  json_t *json = read_json(text);
  struct normalizer *n = normalizer_new(json, &e);
  json_decref(json);
  if (!n) fail_msg("%s: %s", text, e.detail);
  return n;
}

/* --- a text and what it becomes --- */

/* The origins of each character, and that they are whole and never go back. */
static void write_origins(const struct passage *p, char *out, size_t size) {
  size_t used = 0, length;
  uint32_t last_from = 0, last_to = 0;
  *out = '\0';
  for (size_t at = 0; at < p->now.length; at += length) {
    uint32_t from, to;
    unicode_read(p->now.bytes + at, &length);
    passage_origin(p, at, at + length, &from, &to);
    assert_true(from >= last_from && to >= last_to && from <= to);
    last_from = from;
    last_to = to;
    if (used < size)
      used += (size_t)snprintf(out + used, size - used, "%s%u-%u", at ? " " : "", from - OFFSET,
                               to - OFFSET);
  }
}

static void check_pieces(const struct passage *p) {
  assert_int_equal(p->pieces.count, p->now.length > 0);
  if (p->now.length == 0) return;
  assert_int_equal(p->pieces.piece[0].begin, 0);
  assert_int_equal(p->pieces.piece[0].end, p->now.length);
}

/* The same with and without origins. Of a text that stays, nothing is copied. */
static void becomes(const char *json, const char *text, const char *wanted, const char *origins) {
  struct normalizer *n = make(json);
  struct arena arena;
  struct error e = {0};
  struct passage p;
  char found[600];
  arena_init(&arena, NULL);
  passage_init(&p, &arena, &e);
  for (int traced = 0; traced < 2; traced++) {
    assert_int_equal(passage_begin(&p, text, strlen(text), OFFSET, traced), STATUS_OK);
    assert_int_equal(normalizer_apply(n, &p), STATUS_OK);
    if (p.now.length != strlen(wanted) || memcmp(p.now.bytes, wanted, p.now.length) != 0)
      fail_msg("%s of \"%s\": \"%.*s\"", json, text, (int)p.now.length, p.now.bytes);
    if (strcmp(text, wanted) == 0) assert_true(p.whole && p.now.bytes == text);
    check_pieces(&p);
  }
  write_origins(&p, found, sizeof found);
  if (origins && strcmp(found, origins) != 0) fail_msg("%s of \"%s\": from %s", json, text, found);
  arena_free(&arena);
  normalizer_free(n);
}

static void stays(const char *json, const char *text) { becomes(json, text, text, NULL); }

#define ACUTE      "\xcc\x81"
#define DOT        "\xcc\xa3" /* below: sorted before an acute */
#define E          "\xc3\xa9" /* with an acute */
#define TYPE(name) "{\"type\":\"" name "\"}"

/* --- the four forms --- */

static void nfc_composes(void **state) {
  (void)state;
#define NFC TYPE("NFC")
  stays(NFC, "");
  stays(NFC, "plain text");
  stays(NFC, E "t" E " \xec\x95\x88\xeb\x85\x95 \xe4\xbd\xa0 \xf0\x9f\x98\x80");
  stays(NFC, "x" ACUTE " \xe0\xa4\x95\xe0\xa5\x8d \xe2\x9d\xa4\xef\xb8\x8f");
  becomes(NFC, "cafe" ACUTE "s", "caf" E "s", "0-1 1-2 2-3 3-6 6-7");
  becomes(NFC, "a" ACUTE DOT "b", "\xe1\xba\xa1" ACUTE "b", "0-5 1-5 5-6"); /* over the acute */
  becomes(NFC, "a" ACUTE ACUTE, "\xc3\xa1" ACUTE, "0-3 3-5");
  becomes(NFC, "\xc3\xa1" DOT, "\xe1\xba\xa1" ACUTE, "0-4 0-4");
  becomes(NFC, "\xe2\x84\xab", "\xc3\x85", "0-3"); /* Angstrom */
  becomes(NFC, "\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8.", "\xea\xb0\x81.", "0-9 9-10");
  becomes(NFC, "\xea\xb0\x80\xe1\x86\xa8", "\xea\xb0\x81", "0-6");
  stays(NFC, "\xea\xb0\x80\xe1\x86\xa7");                              /* no consonant */
  becomes(NFC, "\xe0\xa7\x87\xe0\xa6\xbe", "\xe0\xa7\x8b", "0-6");     /* neither has a class */
  becomes(NFC, "\xe0\xa5\x98", "\xe0\xa4\x95\xe0\xa4\xbc", "0-3 0-3"); /* excluded */
  becomes(NFC, ACUTE DOT "a", DOT ACUTE "a", "0-4 0-4 4-5"); /* a text that begins with marks */
  stays(NFC, "e\xcd\x8f" ACUTE); /* a mark without a class lies between */
  stays(NFC, "\xef\xac\x81");
}

static void nfd_decomposes(void **state) {
  (void)state;
#define NFD TYPE("NFD")
  stays(NFD, "plain text");
  stays(NFD, "e" ACUTE " \xe4\xbd\xa0 \xef\xac\x81");
  becomes(NFD, "x" E "y", "xe" ACUTE "y", "0-1 1-3 1-3 3-4");
  becomes(NFD, "a" ACUTE DOT, "a" DOT ACUTE, "0-1 1-5 1-5");
  becomes(NFD, "\xe1\xba\xad\xea\xb0\x81", "a" DOT "\xcc\x82\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8",
          "0-3 0-3 0-3 3-6 3-6 3-6");
  becomes(NFD, E DOT "z", "e" DOT ACUTE "z", "0-2 0-4 0-4 4-5");
  becomes(NFD, "\xf0\x9d\x85\x9e", "\xf0\x9d\x85\x97\xf0\x9d\x85\xa5", "0-4 0-4");
}

static void nfkc_and_nfkd_by_compatibility(void **state) {
  (void)state;
#define NFKC TYPE("NFKC")
#define NFKD TYPE("NFKD")
  stays(NFKC, "plain text " E);
  stays(NFKD, "plain text e" ACUTE);
  becomes(NFKC, "\xef\xac\x81x", "fix", "0-3 0-3 3-4");
  becomes(NFKD, "\xef\xac\x81x", "fix", "0-3 0-3 3-4");
  becomes(NFKC, "\xe2\x91\xa0\xc2\xa0\xef\xbc\xa1", "1 A", "0-3 3-5 5-8");
  becomes(NFKC, "\xef\xbd\xb6\xef\xbe\x9e", "\xe3\x82\xac", "0-6"); /* halfwidth, and its mark */
  becomes(NFKD, "\xe3\x82\xac", "\xe3\x82\xab\xe3\x82\x99", "0-3 0-3");
  becomes(NFKD, "\xc7\x84", "DZ\xcc\x8c", "0-2 0-2 0-2");
  becomes(NFKC, "\xc7\x84", "D\xc5\xbd", "0-2 0-2");
  becomes(NFKD, "\xef\xb7\xba", /* one becomes eighteen */
          "\xd8\xb5\xd9\x84\xd9\x89 \xd8\xa7\xd9\x84\xd9\x84\xd9\x87 \xd8\xb9\xd9\x84\xd9\x8a\xd9"
          "\x87 \xd9\x88\xd8\xb3\xd9\x84\xd9\x85",
          "0-3 0-3 0-3 0-3 0-3 0-3 0-3 0-3 0-3 0-3 0-3 0-3 0-3 0-3 0-3 0-3 0-3 0-3");
}

/* --- one character at a time --- */

static void lowercase(void **state) {
  (void)state;
#define LOWER TYPE("Lowercase")
  stays(LOWER, "all of it, \xc3\xa9\xce\xb1\xe4\xbd\xa0");
  becomes(LOWER, "ABC xyZ@[", "abc xyz@[", "0-1 1-2 2-3 3-4 4-5 5-6 6-7 7-8 8-9");
  becomes(LOWER, "x\xc3\x89Y", "x\xc3\xa9y", "0-1 1-3 3-4");
  becomes(LOWER, "\xc4\xb0", "i\xcc\x87", "0-2 0-2");                /* becomes two */
  becomes(LOWER, "\xce\x91\xce\xa3", "\xce\xb1\xcf\x83", "0-2 2-4"); /* the last sigma, too */
  becomes(LOWER, "\xe1\xba\x9e", "\xc3\x9f", "0-3");
}

static void strip_accents(void **state) {
  (void)state;
#define ACCENTS TYPE("StripAccents")
  stays(ACCENTS, "caf" E);
  becomes(ACCENTS, "cafe" ACUTE "s" DOT ACUTE "!", "cafes!", "0-1 1-2 2-3 3-4 6-7 11-12");
  becomes(ACCENTS, ACUTE, "", "");
  becomes(ACCENTS, "\xe0\xa4\xa8\xe0\xa4\xbf", "\xe0\xa4\xa8", "0-3"); /* spacing marks, too */
}

static void nmt(void **state) {
  (void)state;
#define NMT TYPE("Nmt")
  stays(NMT, "plain text \xe3\x80\x80 \xc2\x85");
  becomes(NMT, "a\tb\nc\x0c\r\x0b\x01\x1f\x7f.", "a b c  .", "0-1 1-2 2-3 3-4 4-5 5-6 6-7 11-12");
  becomes(NMT,
          "\xc2\x8f\xc2\x9f\xe2\x80\x8b\xe2\x80\xa8\xe2\x96\x81\xef\xbb\xbf\xef\xbf\xbd\xe1\x9a"
          "\x80",
          "      ", "4-7 7-10 10-13 13-16 16-19 19-22");
}

static void byte_level(void **state) {
  (void)state;
#define BYTES TYPE("ByteLevel")
  stays(BYTES, "text~!");
  becomes(BYTES, "a b",
          "a\xc4\xa0"
          "b",
          "0-1 1-2 2-3");
  becomes(BYTES, E, "\xc3\x83\xc2\xa9", "0-2 0-2");
  becomes(BYTES, "\n\x7f\xc2\xad", "\xc4\x8a\xc4\xa1\xc3\x82\xc5\x83", "0-1 1-2 2-4 2-4");
  becomes(BYTES, "\xf0\x9f\x98\x80", "\xc3\xb0\xc5\x81\xc4\xba\xc4\xa2", "0-4 0-4 0-4 0-4");
}

/* Each byte is another character, and none is what ASCII shows of another. */
static void all_bytes_have_letters(void **state) {
  (void)state;
  struct normalizer *n = make(BYTES);
  struct arena arena;
  struct error e = {0};
  struct passage p;
  uint32_t letter[256] = {0};
  arena_init(&arena, NULL);
  passage_init(&p, &arena, &e);
  for (uint32_t c = 0; c < 0x1000; c++) {
    char text[UNICODE_BYTES_MAX];
    const size_t size = unicode_write(c, text);
    passage_begin(&p, text, size, 0, false);
    assert_int_equal(normalizer_apply(n, &p), STATUS_OK);
    for (size_t i = 0, at = 0, length; i < size; i++, at += length)
      letter[(unsigned char)text[i]] = unicode_read(p.now.bytes + at, &length);
  }
  for (unsigned i = 0; i < 256; i++) {
    if (letter[i] == 0) continue; /* no text has the byte */
    assert_true(letter[i] > ' ' && !unicode_is_other(letter[i]) && !unicode_is_space(letter[i]));
    assert_true(letter[i] < 0x100 ? letter[i] == i : letter[i] < 0x144);
    for (unsigned j = 0; j < i; j++) assert_int_not_equal(letter[i], letter[j]);
  }
  assert_int_equal(letter[' '], 0x120);
  arena_free(&arena);
  normalizer_free(n);
}

/* --- ends, and patterns --- */

static void strip(void **state) {
  (void)state;
#define STRIP(left, right) "{\"type\":\"Strip\",\"strip_left\":" left ",\"strip_right\":" right "}"
  static const char text[] = " \t\xe3\x80\x80 a b \xc2\xa0\n";
  becomes(STRIP("true", "true"), text, "a b", "6-7 7-8 8-9");
  becomes(STRIP("true", "false"), text, "a b \xc2\xa0\n", "6-7 7-8 8-9 9-10 10-12 12-13");
  becomes(STRIP("false", "true"), "  " E " ", "  " E, "0-1 1-2 2-4");
  stays(STRIP("false", "false"), text);
  stays(STRIP("true", "true"), "a b");
  becomes(STRIP("true", "true"), " \xe2\x80\x83 ", "", "");
  becomes(STRIP("false", "true"), " \xe2\x80\x83 ", "", "");
}

static void prepend(void **state) {
  (void)state;
#define PREPEND(text) "{\"type\":\"Prepend\",\"prepend\":\"" text "\"}"
  stays(PREPEND("_"), "");
  stays(PREPEND(""), "a");
  becomes(PREPEND("_\xe2\x96\x81"), E "b", "_\xe2\x96\x81" E "b", "0-2 0-2 0-2 2-3");
}

#define REPLACE(kind, pattern, by) \
  "{\"type\":\"Replace\",\"pattern\":{\"" kind "\":\"" pattern "\"},\"content\":\"" by "\"}"

static void replace(void **state) {
  (void)state;
  stays(REPLACE("String", " ", "_"), "text");
  stays(REPLACE("String", "a", "a"), "banana");
  becomes(REPLACE("String", " ", "\xe2\x96\x81"), "a b ",
          "a\xe2\x96\x81"
          "b\xe2\x96\x81",
          "0-1 1-2 2-3 3-4");
  becomes(REPLACE("String", "a.", "\xc3\xa9\xc3\xa9"), "xa.ab", "x" E E "ab",
          "0-1 1-3 1-3 3-4 4-5");
  becomes(REPLACE("String", "an", ""), "banana", "ba", "0-1 5-6");
  becomes(REPLACE("String", "", "-"), "ab", "-a-b-", "0-0 0-1 1-1 1-2 2-2");
  becomes(REPLACE("Regex", "\\\\s+", " "),
          "a \n\xe3\x80\x80"
          "b",
          "a b", "0-1 1-6 6-7");
  becomes(REPLACE("Regex", "(?=b)", "|"), "abb", "a|b|b", "0-1 1-1 1-2 2-2 2-3");
  becomes(REPLACE("Regex", "``|''", "\\\""), "``x''", "\"x\"", "0-2 2-3 3-5");
}

/* --- BERT --- */

#define BERT_OF(clean, chinese, strips, lower)                                              \
  "{\"type\":\"BertNormalizer\",\"clean_text\":" clean ",\"handle_chinese_chars\":" chinese \
  ",\"strip_accents\":" strips ",\"lowercase\":" lower "}"
#define BERT BERT_OF("true", "true", "null", "true")

static void bert_in_one_pass(void **state) {
  (void)state;
  stays(BERT, "");
  stays(BERT, "plain text, \xd1\x82\xd0\xb5\xd0\xba\xd1\x81\xd1\x82 \xe3\x81\x82");
  becomes(BERT, "Plain\tTEXT\x01\n", "plain text ",
          "0-1 1-2 2-3 3-4 4-5 5-6 6-7 7-8 8-9 9-10 11-12");
  becomes(BERT, "\xc3\x89t" E "X", "etex", "0-2 2-3 3-5 5-6");
  becomes(BERT, "e" ACUTE DOT "f", "ef", "0-1 5-6");
  becomes(BERT, "\xc2\xad\xef\xbf\xbd\xee\x80\x80z\xe2\x80\x8b", "z", "8-9");
  becomes(BERT,
          "a\xe3\x80\x80"
          "b\xe2\x80\xa8",
          "a b ", "0-1 1-4 4-5 5-8");
  becomes(BERT, "x\xe4\xbd\xa0\xef\xa4\x80y", "x \xe4\xbd\xa0  \xe8\xb1\x88 y",
          "0-1 1-4 1-4 1-4 4-7 4-7 4-7 7-8");
  becomes(BERT, "\xf0\xa0\x80\x80", " \xf0\xa0\x80\x80 ", "0-4 0-4 0-4");
  becomes(BERT, "\xea\xb0\x81", "\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", "0-3 0-3 0-3");
  becomes(BERT, "\xc4\xb0\xe3\x81\x8c", "i\xe3\x81\x8b", "0-2 2-5");
  becomes(BERT, "\xe0\xa4\x95\xe0\xa5\x8d\xe0\xa4\xbf", "\xe0\xa4\x95\xe0\xa4\xbf", "0-3 6-9");
  becomes(BERT, "\xcd\x8f" ACUTE "\x02", "", "");
}

/* Marks that are no accents stay, and are sorted: over what is removed, but not over a mark that
 * has no class. */
static void bert_sorts_marks(void **state) {
  (void)state;
#define TONE "\xe3\x80\xae"     /* U+302E, 224 */
#define STEM "\xf0\x9d\x85\xa5" /* U+1D165, 216 */
  becomes(BERT, TONE STEM "x", STEM TONE "x", "0-7 0-7 7-8");
  becomes(BERT, "a" TONE "\x01" ACUTE "\xe2\x80\x8b" STEM, "a" STEM TONE, "0-1 1-14 1-14");
  becomes(BERT, TONE "\xcd\x8f" STEM, TONE STEM, "0-3 5-9");
  becomes(BERT, TONE "." STEM, TONE "." STEM, NULL);
  stays(BERT, STEM TONE);
  stays(BERT_OF("true", "true", "false", "true"), TONE STEM);
}

static void each_of_berts_switches(void **state) {
  (void)state;
  static const char text[] = "\xc3\x89"
                             "A\t\xe4\xbd\xa0\xc4\xb0";
  stays(BERT_OF("false", "false", "null", "false"), text);
  stays(BERT_OF("false", "false", "false", "false"), text);
  becomes(BERT_OF("true", "false", "false", "false"), text,
          "\xc3\x89"
          "A \xe4\xbd\xa0\xc4\xb0",
          "0-2 2-3 3-4 4-7 7-9");
  becomes(BERT_OF("false", "true", "false", "false"), text,
          "\xc3\x89"
          "A\t \xe4\xbd\xa0 \xc4\xb0",
          "0-2 2-3 3-4 4-7 4-7 4-7 7-9");
  becomes(BERT_OF("false", "false", "true", "false"), text, "EA\t\xe4\xbd\xa0I",
          "0-2 2-3 3-4 4-7 7-9");
  becomes(BERT_OF("false", "false", "false", "true"), text, E "a\t\xe4\xbd\xa0i\xcc\x87",
          "0-2 2-3 3-4 4-7 7-9 7-9");
  becomes(BERT_OF("false", "false", "null", "true"), text, "ea\t\xe4\xbd\xa0i",
          "0-2 2-3 3-4 4-7 7-9");
  becomes(
      "{\"type\":\"Bert\",\"clean_text\":true,\"handle_chinese_chars\":true,\"lowercase\":true}",
      text, "ea  \xe4\xbd\xa0 i", NULL); /* the older name; accents are not said */
}

/* --- SentencePiece's rules --- */

static const struct charsmap_rule rules[] = {
    {"\t", " "},
    {"\r", " "},
    {"\x01", ""},
    {"\xe2\x84\xa2", "TM"},
    {"a" ACUTE, "\xc3\xa1"},
    {"f", "f"},
    {"ab", "X"},
    {"\xe2\x91\xa0", "1"},
    {"\xef\xac\x81", "fi"},
    {"o", "0"},
    {"\xcc\x82", "^"},
    {"\xf0\x9f\x87\xa9", "D"},
};

static char *rules_json(void) {
  char *map = charsmap_make(rules, sizeof rules / sizeof *rules);
  const size_t size = strlen(map) + 80;
  char *json = malloc(size);
  assert_non_null(json);
  snprintf(json, size, "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"%s\"}", map);
  free(map);
  return json;
}

static void precompiled(void **state) {
  (void)state;
  char *json = rules_json();
  stays(json, "plain text, abab ffi");
  stays(json, E " \xe4\xbd\xa0 e" ACUTE);
  becomes(json, "p\tq\x01", "p q", "0-1 1-2 2-3");
  becomes(json, "x\xe2\x84\xa2y", "xTMy", "0-1 1-4 1-4 4-5");
  becomes(json, "ba" ACUTE "t", "b\xc3\xa1t", "0-1 1-4 4-5"); /* a cluster */
  becomes(json, "x\r\ny", "x y", "0-1 1-3 3-4");              /* another: all of it is replaced */
  becomes(json, "\n\r\ta", "\n  a", "0-1 1-2 2-3 3-4");
  becomes(json, "o" ACUTE "o", "00", "0-3 3-4"); /* by the rule of its beginning */
  becomes(json, "a" ACUTE ACUTE, "\xc3\xa1", "0-5");
  becomes(json, "a" ACUTE ACUTE "\xcc\x82", "a" ACUTE ACUTE "^", "0-1 1-3 3-5 5-7"); /* too long */
  becomes(json, "a\xcc\x82", "a^", "0-1 1-3");
  becomes(json, "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa", "D\xf0\x9f\x87\xaa", "0-4 4-8");
  becomes(json, "\xef\xac\x81\xe2\x91\xa0", "fi1", "0-3 0-3 3-6");
  becomes(json, "\x01", "", "");
  free(json);
}

/* --- sequences --- */

static void steps_one_behind_the_other(void **state) {
  (void)state;
#define SEQUENCE(steps) "{\"type\":\"Sequence\",\"normalizers\":[" steps "]}"
  stays(SEQUENCE(""), "Text");
  stays(SEQUENCE(NFC "," SEQUENCE("") "," LOWER), "text");
  becomes(SEQUENCE(NFD "," SEQUENCE(LOWER "," ACCENTS)), "\xc3\x89t" E "s", "etes",
          "0-2 2-3 3-5 5-6");
  becomes(SEQUENCE(PREPEND("_") "," REPLACE("String", "_", "\xe2\x96\x81")), "Ab",
          "\xe2\x96\x81"
          "Ab",
          "0-1 0-1 1-2");
  becomes(SEQUENCE(STRIP("true", "true") "," PREPEND("_")), "  ", "", "");
  becomes(SEQUENCE(NFD "," BYTES "," NFC), E, "e\xc3\x8c\xc4\xa3", "0-2 0-2 0-2");
  /* what is put between two bytes of one character is of that */
  becomes(SEQUENCE(NFD "," REPLACE("String", "", "-")), "a" ACUTE DOT, "-a-" DOT "-" ACUTE "-",
          "0-0 0-1 1-1 1-5 1-5 1-5 5-5");
  becomes(SEQUENCE(NFKC "," NFD), "\xef\xac\x81" ACUTE, "fi" ACUTE, "0-3 0-5 0-5");
}

/* --- what is refused --- */

static void refuse(const char *text, const char *words) {
  struct error e = {0};
  json_t *json = read_json(text);
  assert_null(normalizer_new(json, &e));
  json_decref(json);
  if (e.status != STATUS_CONFIG || !strstr(e.detail, words))
    fail_msg("%s\nstatus %d: %s", text, (int)e.status, e.detail);
}

static void wrong_types(void **state) {
  (void)state;
  refuse("[]", "is not an object");
  refuse("{}", "type: needs a name, and is missing");
  refuse("{\"typ\":\"NFC\"}", "type: needs a name, and is missing");
  refuse("{\"type\":3}", "type: needs a name");
  refuse(TYPE("NFE"), "the type \"NFE\" is not supported (did you mean \"NFC\"?); supported: "
                      "BertNormalizer, Bert, ByteLevel, Lowercase, NFC, NFD, NFKC, NFKD, Nmt, "
                      "Precompiled, Prepend, Replace, Strip, StripAccents and Sequence");
  refuse(TYPE("Secuence"), "did you mean \"Sequence\"?");
  refuse(TYPE("a\\nb"), "the type \"a?b\" is not supported");
  refuse(TYPE("Sequence"), "normalizers: needs a list");
  refuse(SEQUENCE("3"), "normalizers, 0: is not an object");
  refuse(SEQUENCE(NFC "," SEQUENCE("{}")), "normalizers, 1: normalizers, 0: type: needs");
  char deep[33 * 45] = "";
  for (int i = 0; i < 33; i++) strcat(deep, "{\"type\":\"Sequence\",\"normalizers\":[");
  for (int i = 0; i < 33; i++) strcat(deep, "]}");
  refuse(deep, "more than 32 sequences in one another");
}

static void wrong_members(void **state) {
  (void)state;
  refuse(TYPE("BertNormalizer"), "BertNormalizer: clean_text: needs true or false");
  refuse(BERT_OF("1", "true", "null", "true"), "clean_text: needs true or false");
  refuse(BERT_OF("true", "null", "null", "true"), "handle_chinese_chars: needs true or false");
  refuse(BERT_OF("true", "true", "\"no\"", "true"), "strip_accents: needs true, false or null");
  refuse(BERT_OF("true", "true", "null", "[]"), "lowercase: needs true or false");
  refuse("{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"
         "\"lower_case\":true}",
         "the member \"lower_case\" is not known (did you mean \"lowercase\"?)");
  refuse("{\"type\":\"Strip\",\"strip_left\":true}", "Strip: strip_right: needs true or false");
  refuse(STRIP("0", "true"), "strip_left: needs true or false");
  refuse(TYPE("Prepend"), "Prepend: prepend: needs a string");
  refuse("{\"type\":\"Prepend\",\"prepend\":1}", "prepend: needs a string");
  refuse("{\"type\":\"Replace\",\"content\":\"\"}", "Replace: pattern: needs {\"String\": text}");
  refuse("{\"type\":\"Replace\",\"content\":\"\",\"pattern\":\"a\"}", "Replace: pattern: needs {");
  refuse("{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"}}", "content: needs a string");
  refuse(REPLACE("Regex", "(a", ""), "Replace: pattern: ");
  refuse("{\"type\":\"NFC\",\"form\":1}", "the member \"form\" is not known");
  refuse("{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true,\"strip_rights\":1}",
         "the member \"strip_rights\" is not known (did you mean \"strip_right\"?)");
  refuse("{\"type\":\"Sequence\",\"normalizers\":[],\"n\":1}", "the member \"n\" is not known");
  refuse(SEQUENCE(LOWER "," TYPE("Prepend")), "normalizers, 1: Prepend: prepend: needs a string");
}

static void refuse_map(const void *bytes, size_t size, const char *words) {
  char json[400], *map = charsmap_base64(bytes, size);
  snprintf(json, sizeof json, "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"%s\"}", map);
  refuse(json, words);
  free(map);
}

static void wrong_maps(void **state) {
  (void)state;
#define MAP(text) "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"" text "\"}"
  refuse(TYPE("Precompiled"), "Precompiled: precompiled_charsmap: needs a string");
  static const char *const coded[] = {"AAA",  "A===",       "AA=A", "AB==",     "AAB=", "AAAA====",
                                      "A A=", "AAA\\u00e9", "====", "AAAA=AAA", "AA-_"};
  for (size_t i = 0; i < sizeof coded / sizeof *coded; i++) {
    char json[100];
    snprintf(json, sizeof json, MAP("%s"), coded[i]);
    refuse(json, "precompiled_charsmap: is not base64");
  }
  refuse(MAP(""), "a trie of 0 bytes in 0");
  refuse(MAP("AQ=="), "a trie of 0 bytes in 1");
  refuse_map((uint32_t[]){0}, 4, "a trie of 0 bytes in 4");
  refuse_map((uint32_t[]){3, 0}, 8, "a trie of 3 bytes in 8");
  refuse_map((uint32_t[]){8, 0}, 8, "a trie of 8 bytes in 8");
  refuse_map((uint32_t[]){UINT32_MAX, 0}, 8, "a trie of 4294967295 bytes in 8");
  refuse_map("\4\0\0\0\0\0\0\0a\0\xc3", 11, "the texts are not UTF-8");
  refuse_map("\10\0\0\0\0\0\0\0\3\0\0\200a\0", 14, "unit 1 of the trie points at no text");
  refuse_map("\10\0\0\0\0\0\0\0\1\0\0\200\xc3\xa9", 14, "unit 1 of the trie points at no text");
}

/* A trie that points anywhere finds nothing there. */
static void maps_that_lead_astray(void **state) {
  (void)state;
  static const uint32_t list[][4] = {{4, UINT32_MAX >> 1}, /* a place far beyond */
                                     {8, 'a' << 10, 0},
                                     {8, ('a' ^ 1) << 10, 'a' | 1 << 8 | 9 << 10},  /* its value */
                                     {8, ('a' ^ 1) << 10, 'a' | 1 << 8 | 1 << 10}}; /* is none */
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    char json[200], *map = charsmap_base64(list[i], 4 + list[i][0]);
    snprintf(json, sizeof json, MAP("%s"), map);
    stays(json, "abc" E);
    free(map);
  }
}

/* --- long texts --- */

static void apply_long(const char *json, const char *text, size_t length,
                       void (*check)(const struct passage *p)) {
  struct normalizer *n = make(json);
  struct arena arena;
  struct error e = {0};
  struct passage p;
  arena_init(&arena, NULL);
  passage_init(&p, &arena, &e);
  passage_begin(&p, text, length, 0, true);
  if (normalizer_apply(n, &p)) fail_msg("%s: %s", json, e.detail);
  check(&p);
  check_pieces(&p);
  arena_free(&arena);
  normalizer_free(n);
}

enum { LONG = 1 << 20 };

static char *repeat(const char *first, const char *what, size_t *length) {
  const size_t before = strlen(first), each = strlen(what);
  char *text = malloc(before + LONG * each);
  assert_non_null(text);
  memcpy(text, first, before);
  for (size_t i = 0; i < LONG; i++) memcpy(text + before + i * each, what, each);
  *length = before + LONG * each;
  return text;
}

/* An a with a dot, all other dots, and all acutes. */
static void are_sorted(const struct passage *p) {
  const char *bytes = p->now.bytes;
  const size_t first = (unsigned char)bytes[0] < 0x80 ? 1 : 3, dots = first == 1 ? LONG : LONG - 1;
  assert_int_equal(p->now.length, first + 2 * (dots + LONG));
  for (size_t i = 0; i < dots + LONG; i++)
    assert_memory_equal(bytes + first + 2 * i, i < dots ? DOT : ACUTE, 2);
  uint32_t from, to;
  passage_origin(p, 0, p->now.length, &from, &to);
  assert_true(from == 0 && to == 1 + 4 * LONG);
}

static void is_a(const struct passage *p) {
  assert_int_equal(p->now.length, 1);
  assert_int_equal(p->now.bytes[0], 'a');
}

static void is_whole(const struct passage *p) { assert_true(p->whole); }

static void are_syllables(const struct passage *p) {
  assert_int_equal(p->now.length, 3 * LONG);
  for (size_t i = 0; i < LONG; i++) assert_memory_equal(p->now.bytes + 3 * i, "\xea\xb0\x81", 3);
}

static void a_million_marks(void **state) {
  (void)state;
  size_t length;
  char *text = repeat("a", ACUTE DOT, &length);
  apply_long(NFD, text, length, are_sorted);
  apply_long(NFC, text, length, are_sorted);
  apply_long(BERT, text, length, is_a);
  apply_long(ACCENTS, text, length, is_a);
  char *json = rules_json();
  apply_long(json, text, length, is_whole);
  free(json);
  free(text);
  text = repeat("", "\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", &length);
  apply_long(NFC, text, length, are_syllables);
  apply_long(NFD, text, length, is_whole);
  free(text);
  text = repeat("x", TONE, &length);
  apply_long(BERT, text, length, is_whole);
  apply_long(NFKC, text, length, is_whole);
  free(text);
}

/* --- memory --- */

#define ALL                                                                                        \
  SEQUENCE(BERT_OF("true", "true", "false",                                                        \
                   "false") "," NFD "," NFC "," NFKD "," NFKC "," NMT "," LOWER                    \
                            "," PREPEND("_") "," REPLACE("String", "o", "\xe2\x96\x81") "," STRIP( \
                                "true", "true") "," BYTES)

static void a_full_budget_at_every_step(void **state) {
  (void)state;
  static const char one[] = "\tOo " ACUTE DOT ACUTE E;
  enum { ONE = sizeof one - 1, TIMES = 300 };
  char text[TIMES * ONE], *map = rules_json();
  for (size_t i = 0; i < TIMES; i++) memcpy(text + i * ONE, one, ONE);
  for (size_t i = 0; i < TIMES / 2 * ONE; i += 2) memcpy(text + i, i % 4 ? DOT : ACUTE, 2);
  const char *const list[] = {BERT,
                              NFC,
                              NFD,
                              NFKC,
                              NFKD,
                              NMT,
                              LOWER,
                              ACCENTS,
                              BYTES,
                              STRIP("true", "true"),
                              ALL,
                              PREPEND("x"),
                              REPLACE("Regex", "o", "\xe2\x96\x81"),
                              map};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    for (int traced = 0; traced < 2; traced++) {
      struct normalizer *n = make(list[i]);
      bool done = false;
      for (size_t limit = 500; !done; limit += 600) {
        struct budget budget;
        struct arena arena;
        struct error e = {0};
        struct passage p;
        budget_init(&budget, limit);
        arena_init(&arena, &budget);
        passage_init(&p, &arena, &e);
        done = passage_begin(&p, text, sizeof text, 0, traced) == STATUS_OK &&
               normalizer_apply(n, &p) == STATUS_OK;
        if (!done) assert_string_equal(e.limit, "memory_budget_bytes");
        arena_free(&arena);
        assert_int_equal(atomic_load(&budget.used), 0);
        assert_true(limit < 4 << 20);
      }
      normalizer_free(n);
    }
  free(map);
}

static void no_memory_at_every_step_of_reading(void **state) {
  (void)state;
  char *map = rules_json();
  const size_t size = strlen(map) + sizeof ALL + sizeof BERT + 100;
  char *text = malloc(size);
  assert_non_null(text);
  snprintf(text, size, SEQUENCE("%s,%s,%s,%s"), BERT, ALL, REPLACE("Regex", "a+", "b"), map);
  json_t *json = read_json(text);
  bool done = false;
  for (size_t i = 1; !done; i++) {
    struct error e = {0};
    poisoned_fail(i);
    struct normalizer *n = normalizer_new(json, &e);
    poisoned_fail(0);
    assert_int_equal(e.status, n ? STATUS_OK : STATUS_OUT_OF_MEMORY);
    done = n != NULL;
    normalizer_free(n);
    assert_true(i < 10000);
    assert_true(!done || i > 20);
  }
  json_decref(json);
  free(text);
  free(map);
  normalizer_free(NULL);
}

/* A pattern that takes too long on a text is the text's fault. */
static void a_pattern_that_gives_up(void **state) {
  (void)state;
  struct normalizer *n = make(SEQUENCE(REPLACE("Regex", "(a+)+(a+)+$", "") "," LOWER));
  struct arena arena;
  struct error e = {0};
  struct passage p;
  char text[4000];
  memset(text, 'a', sizeof text);
  text[sizeof text - 1] = 'B';
  arena_init(&arena, NULL);
  passage_init(&p, &arena, &e);
  passage_begin(&p, text, sizeof text, 0, true);
  assert_int_equal(normalizer_apply(n, &p), STATUS_INVALID_REQUEST);
  arena_free(&arena);
  normalizer_free(n);
}

/* --- when nobody waits any more --- */

static enum status has_left(struct patience *p) {
  (void)p;
  return STATUS_GONE;
}

/* Every step that goes through a text ends soon: little of what it makes is there. */
static void a_step_ends_when_nobody_waits(void **state) {
  (void)state;
  static const char one[] =
      "\tOo \xef\xb7\xba" ACUTE DOT ACUTE E; /* the fourth becomes 18 letters */
  enum { ONE = sizeof one - 1, TIMES = 100000, LITTLE = 1 << 17 };
  char *text = malloc(TIMES * ONE), *map = rules_json();
  assert_non_null(text);
  for (size_t i = 0; i < TIMES; i++) memcpy(text + i * ONE, one, ONE);
  const char *const list[] = {BERT, NFC,   NFD,     NFKC,  NFKD,
                              NMT,  LOWER, ACCENTS, BYTES, REPLACE("Regex", "o", "xx"),
                              map};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct normalizer *n = make(list[i]);
    struct arena arena;
    struct error e = {0};
    struct passage p;
    struct patience patience = {.ask = has_left};
    arena_init(&arena, NULL);
    passage_init(&p, &arena, &e);
    p.patience = &patience;
    passage_begin(&p, text, TIMES * ONE, 0, true);
    assert_int_equal(normalizer_apply(n, &p), STATUS_GONE);
    assert_string_equal(e.detail, "the client has left");
    if (arena.bytes > LITTLE) fail_msg("%s: %zu bytes", list[i], arena.bytes);
    arena_free(&arena);
    normalizer_free(n);
  }
  free(text);
  free(map);
}

/* --- memory that others have left --- */

enum { KEPT = 2 << 20, LEFT = 8 };

/* A budget with blocks of all sizes that were freed before, each of which may be taken in the place
 * of one that is up to four times as small. */
static void leave_blocks(struct budget *b) {
  struct error e = {0};
  struct arena a[LEFT];
  for (unsigned i = 0; i < LEFT; i++) {
    arena_init(&a[i], b);
    assert_non_null(arena_alloc(&a[i], (size_t)KEPT >> (i % 4), 1, &e));
  }
  for (unsigned i = 0; i < LEFT; i++) arena_free(&a[i]);
}

static void grows_into_blocks_of_any_size(void **state) {
  enum { STEP = 3000, STEPS = 400 };
  static const char bytes[STEP] = {0};
  struct budget budget;
  struct error e = {0};
  (void)state;
  budget_init(&budget, 1 << 30);
  budget.keep = keep_new(64 << 20);
  leave_blocks(&budget);
  for (unsigned round = 0; round < 3; round++) {
    struct arena a;
    struct passage p;
    arena_init(&a, &budget);
    passage_init(&p, &a, &e);
    assert_int_equal(passage_begin(&p, "a", 1, OFFSET, true), STATUS_OK);
    for (unsigned i = 0; i < STEPS; i++) passage_append(&p, bytes, STEP, 0, 1);
    assert_int_equal(passage_commit(&p), STATUS_OK);
    assert_int_equal(p.now.length, STEP * STEPS);
    assert_int_equal(p.now.place[p.now.length - 1].to, OFFSET + 1);
    arena_free(&a);
  }
  assert_int_equal(budget.used, 0);
  keep_free(budget.keep);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(grows_into_blocks_of_any_size),
      cmocka_unit_test(nfc_composes),
      cmocka_unit_test(nfd_decomposes),
      cmocka_unit_test(nfkc_and_nfkd_by_compatibility),
      cmocka_unit_test(lowercase),
      cmocka_unit_test(strip_accents),
      cmocka_unit_test(nmt),
      cmocka_unit_test(byte_level),
      cmocka_unit_test(all_bytes_have_letters),
      cmocka_unit_test(strip),
      cmocka_unit_test(prepend),
      cmocka_unit_test(replace),
      cmocka_unit_test(bert_in_one_pass),
      cmocka_unit_test(bert_sorts_marks),
      cmocka_unit_test(each_of_berts_switches),
      cmocka_unit_test(precompiled),
      cmocka_unit_test(steps_one_behind_the_other),
      cmocka_unit_test(wrong_types),
      cmocka_unit_test(wrong_members),
      cmocka_unit_test(wrong_maps),
      cmocka_unit_test(maps_that_lead_astray),
      cmocka_unit_test(a_million_marks),
      cmocka_unit_test(a_full_budget_at_every_step),
      cmocka_unit_test(no_memory_at_every_step_of_reading),
      cmocka_unit_test(a_pattern_that_gives_up),
      cmocka_unit_test(a_step_ends_when_nobody_waits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
