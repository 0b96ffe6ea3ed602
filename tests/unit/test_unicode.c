/* test_unicode: characters, their classes and their other forms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/tokenizer/pattern/unicode.h"

enum { LAST = 0x10ffff };

static bool is_surrogate(uint32_t c) { return c >= 0xd800 && c <= 0xdfff; }

static void every_character_is_read_as_it_was_written(void **state) {
  (void)state;
  static const uint32_t more[] = {0x80, 0x800, 0x10000, LAST + 1}; /* bytes, from here on */
  for (uint32_t c = 0; c <= LAST; c++) {
    char text[2 * UNICODE_BYTES_MAX];
    size_t length = 0, before = 0, bytes = 1;
    if (is_surrogate(c)) continue;
    while (c >= more[bytes - 1]) bytes++;
    assert_int_equal(unicode_write(c, text), bytes);
    assert_int_equal(unicode_write('x', text + bytes), 1);
    if (unicode_read(text, &length) != c || length != bytes ||
        unicode_read_before(text, bytes, &before) != c || before != bytes)
      fail_msg("U+%04X of %zu bytes: %zu, %zu", c, bytes, length, before);
  }
}

static void ascii_ends_at_any_place(void **state) {
  (void)state;
  char text[40];
  for (size_t length = 0; length <= sizeof text; length++)
    for (size_t at = 0; at <= length; at++) {
      memset(text, 0x7f, sizeof text);
      if (at < length) text[at] = (char)0x80;
      assert_int_equal(unicode_ascii(text, length), at);
    }
}

/* --- classes --- */

struct stretch {
  uint32_t first, last;
};

static bool is_in(const struct stretch *s, size_t count, uint32_t c) {
  for (size_t i = 0; i < count; i++)
    if (c >= s[i].first && c <= s[i].last) return true;
  return false;
}

static void spaces_are_exactly_these(void **state) {
  (void)state;
  static const struct stretch spaces[] = {
      {9, 13},          {32, 32},         {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
      {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000},
  };
  for (uint32_t c = 0; c <= LAST; c++)
    if (unicode_is_space(c) != is_in(spaces, sizeof spaces / sizeof *spaces, c))
      fail_msg("U+%04X", c);
}

static void punctuation_of_ascii_has_symbols(void **state) {
  (void)state;
  static const char ascii[] = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
  for (uint32_t c = 1; c < 0x80; c++)
    assert_int_equal(unicode_is_punctuation(c), strchr(ascii, (int)c) != NULL);
  assert_false(unicode_is_punctuation(0));
  static const uint32_t is[] = {0xa1,   0xab,   0xbb,   0xbf,   0x2010, 0x203f, 0x2e3a,
                                0x3001, 0x3008, 0x3009, 0xff01, 0xff3f, 0x10100};
  for (size_t i = 0; i < sizeof is / sizeof *is; i++) assert_true(unicode_is_punctuation(is[i]));
  static const uint32_t not [] = {0xa2, 0xa9, 0xd7, 0x20ac, 0x2190, 0x2581, 0xff0b, 0x1f600};
  for (size_t i = 0; i < sizeof not / sizeof *not ; i++)
    assert_false(unicode_is_punctuation(not [i]));
}

struct classes {
  uint32_t c;
  bool other, mark, nonspacing, numeric, word;
};

static void classes_of_characters(void **state) {
  (void)state;
  static const struct classes list[] = {
      {0, true, false, false, false, false},
      {'\t', true, false, false, false, false},
      {0x7f, true, false, false, false, false},
      {'7', false, false, false, true, true},
      {'q', false, false, false, false, true},
      {'Q', false, false, false, false, true},
      {'_', false, false, false, false, true},
      {'-', false, false, false, false, false},
      {0x85, true, false, false, false, false},
      {0xad, true, false, false, false, false},   /* soft hyphen */
      {0x200d, true, false, false, false, true},  /* joiner */
      {0x200b, true, false, false, false, false}, /* space without width: a format */
      {0xe000, true, false, false, false, false}, /* private */
      {0x10fffd, true, false, false, false, false},
      {0x0378, false, false, false, false, false}, /* unassigned */
      {0xfffd, false, false, false, false, false},
      {0x301, false, true, true, false, true},
      {0x903, false, true, false, false, true},  /* spacing */
      {0x20dd, false, true, false, false, true}, /* enclosing */
      {0xb2, false, false, false, true, false},  /* superscript two */
      {0xbd, false, false, false, true, false},
      {0x661, false, false, false, true, true},
      {0x2167, false, false, false, true, true}, /* a Roman number is a letter, too */
      {0x4e00, false, false, false, false, true},
      {0x203f, false, false, false, false, true}, /* a connector */
      {0x24b6, false, false, false, false, true}, /* a letter in a circle */
      {0x24ea, false, false, false, true, false}, /* a digit in one */
      {0x1f150, false, false, false, false, true},
      {0x1f600, false, false, false, false, false},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    const struct classes *l = &list[i];
    if (unicode_is_other(l->c) != l->other || unicode_is_mark(l->c) != l->mark ||
        unicode_is_nonspacing(l->c) != l->nonspacing || unicode_is_numeric(l->c) != l->numeric ||
        unicode_is_word(l->c) != l->word)
      fail_msg("U+%04X", l->c);
  }
}

/* --- other forms --- */

static void lower_case_is_a_characters_own(void **state) {
  (void)state;
  static const uint32_t list[][2] = {{'A', 'a'},         {'Z', 'z'},       {'@', '@'},
                                     {'[', '['},         {'a', 'a'},       {0xc9, 0xe9},
                                     {0xd7, 0xd7},       {0x3a3, 0x3c3},   {0x1e9e, 0xdf},
                                     {0x1c5, 0x1c6},     {0x10a0, 0x2d00}, {0x13a0, 0xab70},
                                     {0x10400, 0x10428}, {0x2126, 0x3c9},  {0x4e00, 0x4e00}};
  uint32_t out[UNICODE_LOWER_MAX];
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    assert_int_equal(unicode_lower(list[i][0], out), 1);
    assert_int_equal(out[0], list[i][1]);
  }
  assert_int_equal(unicode_lower(0x130, out), 2);
  assert_true(out[0] == 'i' && out[1] == 0x307);
}

static void what_characters_are_made_of(void **state) {
  (void)state;
  static const struct {
    uint32_t c;
    bool compatibly;
    size_t count;
    uint32_t parts[4];
  } list[] = {{'a', true, 1, {'a'}},
              {0xe9, false, 2, {'e', 0x301}},
              {0x1ead, false, 3, {'a', 0x323, 0x302}},
              {0x212b, false, 2, {'A', 0x30a}},
              {0xac01, false, 3, {0x1100, 0x1161, 0x11a8}},
              {0xac00, true, 2, {0x1100, 0x1161}},
              {0xf900, false, 1, {0x8c48}},
              {0xfb01, false, 1, {0xfb01}},
              {0xfb01, true, 2, {'f', 'i'}},
              {0xbd, true, 3, {'1', 0x2044, '2'}},
              {0x1d15e, false, 2, {0x1d157, 0x1d165}},
              {0x0378, true, 1, {0x0378}}};
  uint32_t out[UNICODE_DECOMPOSED_MAX];
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    assert_int_equal(unicode_decompose(list[i].c, list[i].compatibly, out), list[i].count);
    assert_memory_equal(out, list[i].parts, list[i].count * sizeof *out);
  }
  assert_int_equal(unicode_decompose(0xfdfa, true, out), UNICODE_DECOMPOSED_MAX);
  assert_int_equal(unicode_order('a'), 0);
  assert_int_equal(unicode_order(0x301), 230);
  assert_int_equal(unicode_order(0x323), 220);
  assert_int_equal(unicode_order(0x34f), 0);
}

static void two_that_become_one(void **state) {
  (void)state;
  assert_int_equal(unicode_compose('e', 0x301), 0xe9);
  assert_int_equal(unicode_compose(0x1100, 0x1161), 0xac00);
  assert_int_equal(unicode_compose(0xac00, 0x11a8), 0xac01);
  assert_int_equal(unicode_compose(0xac00, 0x11a7), 0); /* no consonant */
  assert_int_equal(unicode_compose(0x9c7, 0x9be), 0x9cb);
  assert_int_equal(unicode_compose('e', 'f'), 0);
  assert_int_equal(unicode_compose(0x301, 'e'), 0);
  assert_int_equal(unicode_compose(0x915, 0x93c), 0);     /* excluded */
  assert_int_equal(unicode_compose(0x1d157, 0x1d165), 0); /* excluded */
  assert_int_equal(unicode_compose(0x308, 0x301), 0);     /* begins with a mark */
}

/* Each character of which another is made may join; each composition is what it is made of. */
static void all_compositions_come_apart(void **state) {
  (void)state;
  size_t composed = 0;
  for (uint32_t c = 0x80; c <= LAST; c++) {
    uint32_t out[UNICODE_DECOMPOSED_MAX];
    if (is_surrogate(c)) continue;
    const size_t count = unicode_decompose(c, false, out);
    uint32_t whole = out[0];
    for (size_t i = 1; i < count && whole; i++) whole = unicode_compose(whole, out[i]);
    if (count < 2 || whole != c) continue;
    composed++;
    for (size_t i = 1; i < count; i++)
      if (!unicode_may_join(out[i])) fail_msg("U+%04X, of which U+%04X is made", out[i], c);
  }
  assert_in_range(composed, 11172 + 900, 11172 + 1100); /* all of Hangul, and about a thousand */
  assert_false(unicode_may_join('a') || unicode_may_join(0xe9) || unicode_may_join(0x1100) ||
               unicode_may_join(0x4e00) || unicode_may_join(0x1f600));
}

/* --- clusters --- */

static void clusters_by_the_extended_rules(void **state) {
  (void)state;
  static const char *const firsts[][2] = {
      {"a", "b"},
      {"\r\n", "\n"},
      {"\r", "\r"},
      {"\n", "\r"},
      {"a\xcc\x81\xcc\x81", "b"},                               /* marks */
      {"\n", "\xcc\x81"},                                       /* ... not of a line's end */
      {"\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", "\xe1\x84\x80"}, /* Hangul */
      {"\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa", "\xf0\x9f\x87\xa9"}, /* a flag */
      {"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa9", "\xf0\x9f\x91\xa9"}, /* joined */
      {"\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd", "x"},                            /* a skin's tone */
      {"\xd8\x80"
       "1",
       "2"},                             /* a sign before a number */
      {"\xe0\xa4\xa8\xe0\xa4\xbf", "a"}, /* a vowel's sign */
  };
  for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
    char text[64];
    const size_t length = strlen(firsts[i][0]);
    memcpy(text, firsts[i][0], length);
    memcpy(text + length, firsts[i][1], strlen(firsts[i][1]) + 1);
    const size_t whole = unicode_cluster(text, strlen(text)), alone = unicode_cluster(text, length);
    if (whole != length || alone != length) fail_msg("%zu: %zu, %zu", i, whole, alone);
  }
  assert_int_equal(unicode_cluster("", 0), 0);
}

static void a_long_cluster(void **state) {
  (void)state;
  enum { MARKS = 1 << 20 };
  char *text = malloc(1 + 2 * MARKS);
  assert_non_null(text);
  text[0] = 'a';
  for (size_t i = 0; i < MARKS; i++) memcpy(text + 1 + 2 * i, "\xcc\x81", 2);
  assert_int_equal(unicode_cluster(text, 1 + 2 * MARKS), 1 + 2 * MARKS);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_character_is_read_as_it_was_written),
      cmocka_unit_test(ascii_ends_at_any_place),
      cmocka_unit_test(spaces_are_exactly_these),
      cmocka_unit_test(punctuation_of_ascii_has_symbols),
      cmocka_unit_test(classes_of_characters),
      cmocka_unit_test(lower_case_is_a_characters_own),
      cmocka_unit_test(what_characters_are_made_of),
      cmocka_unit_test(two_that_become_one),
      cmocka_unit_test(all_compositions_come_apart),
      cmocka_unit_test(clusters_by_the_extended_rules),
      cmocka_unit_test(a_long_cluster),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
