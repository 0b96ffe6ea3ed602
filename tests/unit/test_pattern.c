/* test_pattern: expressions in Oniguruma's syntax, what they find, and every way to get them wrong.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pcre2.h>

#include <cmocka.h>

#include "config/tokenizer/pattern/pattern.h"
#include "tests/support/poisoned.h"

#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define LLAMA3                                                                                   \
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+" \
  "[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define QWEN2                                                                               \
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+" \
  "[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define GPT4O                                                                                     \
  "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:" \
  "'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}" \
  "\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n"  \
  "/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static struct pattern *make(const char *expression) {
  struct error e = {0};
  struct pattern *p = pattern_of(expression, &e);
  if (!p) fail_msg("%s: %s", expression, e.detail);
  return p;
}

/* Writes each match in brackets; false: it takes too long, as the error must say. */
static bool write_matches(const struct pattern *p, const char *text, size_t length, char *out,
                          size_t size) {
  struct pattern_search s;
  struct error e = {0};
  size_t used = 0;
  out[0] = '\0';
  assert_int_equal(pattern_search_begin(&s, p, NULL, text, length, &e), STATUS_OK);
  while (pattern_search_next(&s, &e) && used < size)
    used +=
        (size_t)snprintf(out + used, size - used, "[%.*s]", (int)(s.end - s.begin), text + s.begin);
  pattern_search_end(&s);
  if (e.status == STATUS_OK) return true;
  assert_int_equal(e.status, STATUS_INVALID_REQUEST);
  assert_non_null(strstr(e.detail, "the text takes too long"));
  return false;
}

static void check(const struct pattern *p, const char *name, const char *text,
                  const char *expected) {
  char found[2000];
  assert_true(write_matches(p, text, strlen(text), found, sizeof found));
  if (strcmp(found, expected) != 0)
    fail_msg("%s on \"%s\": %s, not %s", name, text, found, expected);
}

static void finds(const char *expression, const char *text, const char *expected) {
  struct pattern *p = make(expression);
  check(p, expression, text, expected);
  pattern_free(p);
}

/* --- the expressions of models --- */

static void models_cut_words(void **state) {
  (void)state;
  static const char text[] = "I'll say: it's  9000 DON'T\r\n\n  x\xc3\xa9\t!!\n";
  finds(GPT2, text,
        "[I]['ll][ say][:][ it]['s][ ][ 9000][ DON]['][T][\r\n\n ][ x\xc3\xa9][\t][!!][\n]");
  finds(LLAMA3, text,
        "[I]['ll][ say][:][ it]['s][ ][ ][900][0][ DON]['T][\r\n\n][ ][ x\xc3\xa9][\t][!!\n]");
  finds(QWEN2, text,
        "[I]['ll][ say][:][ it]['s][ ][ ][9][0][0][0][ DON]['T][\r\n\n][ ][ x\xc3\xa9][\t][!!\n]");
  finds(GPT4O, text,
        "[I'll][ say][:][ it's][ ][ ][900][0][ DON'T][\r\n\n][ ][ x\xc3\xa9][\t][!!\n]");
  finds(GPT4O, "camelCase HTTPServer a/\n/b", "[camel][Case][ HTTPServer][ a][/\n/][b]");
  finds(GPT2, "\xe6\xbc\xa2\xe5\xad\x97 \xd9\xa3", "[\xe6\xbc\xa2\xe5\xad\x97][ \xd9\xa3]");
}

static void brackets_may_have_brackets_within(void **state) {
  (void)state;
  finds(" ?[^(\\s|[.,!?\xe2\x80\xa6\xe3\x80\x82\xef\xbc\x8c])]+", "Yes (no), x|y. z",
        "[Yes][no][ x][y][ z]");
  finds("[\\p{L}&&[^\\p{Han}]]+", "ab\xe6\xbc\xa2\xe3\x81\x82z", "[ab][\xe3\x81\x82z]");
  finds("[a-z&&b-y&&[^x]]", "abxyz", "[b][y]");
  finds("[^a-z&&[^aeiou]]", "abe1", "[a][e][1]");
  finds("[^[^a]b]", "ab1", "[a]");
  finds("[[^a]&&[^b]]", "abc", "[c]");
  finds("[a[bc]]+", "abcd", "[abc]");
  finds("[a[^a-z]]+", "ab-a", "[a][-a]");
  finds("[a[b]-z]", "b-yz", "[b][-][z]");
  finds("[[\\W]a]+", "ab -a", "[a][ -a]");
}

static void brackets_have_odd_characters(void **state) {
  (void)state;
  finds("[]a]", "]a[", "[]][a]");
  finds("[^]a]", "]a[", "[[]");
  finds("[a-]", "ab-", "[a][-]");
  finds("[-a]", "ab-", "[a][-]");
  finds("[+--]", "+,-.", "[+][,][-]");
  finds("[a-c-e]", "bd-e", "[b][-][e]");
  finds("[\\]\\[\\\\^]", "]^\\[", "[]][^][\\][[]");
  finds("[\\x{61}-c\\u0064\\t]", "abcde\t", "[a][b][c][d][\t]");
  finds("[\\b]", "\b", "[\b]");
  finds("[a-&&a]", "a-", "[a]");
  finds("[.$|*]", "a.$", "[.][$]");
}

static void sets_are_unicodes(void **state) {
  (void)state;
  finds("\\s", "a\xe1\xa0\x8e \xc2\x85\xc2\xa0\xe3\x80\x80",
        "[ ][\xc2\x85][\xc2\xa0][\xe3\x80\x80]");
  finds("\\S+", "a\xe1\xa0\x8e b", "[a\xe1\xa0\x8e][b]");
  finds("[^\\S\\n]+", "a \t\n b", "[ \t][ ]");
  finds("[\\S]", "\xc2\x85z\xe2\x80\x8b", "[z][\xe2\x80\x8b]");
  finds("\\w+", "a_1\xc2\xb2\xe2\x93\x90-\xe0\xa4\x95\xe0\xa4\xbf",
        "[a_1\xc2\xb2\xe2\x93\x90][\xe0\xa4\x95\xe0\xa4\xbf]");
  finds("[\\w]+", "a\xc2\xb2z", "[a][z]");
  finds("\\W", "a \xc2\xb2", "[ ]");
  finds("[\\W]", "a \xc2\xb2", "[ ][\xc2\xb2]");
  finds("\\h+", "xaF9g", "[aF9]");
  finds("\\H|[\\H]", "xa", "[x]");
  finds("\\d+|\\D", "1\xd9\xa3z", "[1\xd9\xa3][z]");
  finds("[\\D]", "1z", "[z]");
  finds("[[:alpha:]_]+", "a_1", "[a_]");
  finds("[[:^alpha:]]", "a1", "[1]");
  finds("[[:punct:][:digit:]]", "a1!+", "[1][!][+]");
  finds("\\p{Punct}|[[:^punct:]]", "a!+\xc3\x97", "[a][!]");
  finds("[[:xdigit:]]+[[:blank:]][[:cntrl:]]", "ag1 \x01", "[1 \x01]");
  finds("[[:ascii:]&&[:^space:]]", "\xc3\xa9 a", "[a]");
  finds("\\p{^L}|\\P{^N}", "a1-", "[1][-]");
  finds("\\p{uppercase letter}\\p{Lower_case-Letter}", "aAb", "[Ab]");
  finds("\\p{Greek}", "a\xce\xb1\xcd\x82", "[\xce\xb1]");
  finds("\\p{Emoji_Presentation}", "a\xf0\x9f\x98\x80", "[\xf0\x9f\x98\x80]");
}

/* Letters of Unicode 15 (Nag Mundari), 15.1 (Han) and 16 (Cyrillic, of both cases; Garay), and
 * their digits, marks, punctuation and symbols. */
#define LETTER "\xf0\x9e\x93\x90"
#define HAN    "\xf0\xae\xaf\xb0"
#define UPPER  "\xe1\xb2\x89"
#define LOWER  "\xe1\xb2\x8a"
#define DIGIT  "\xf0\x90\xb5\x80"
#define MARK   "\xf0\x91\xbc\x80"
#define FORMAT "\xf0\x93\x90\xb9"
#define SYMBOL "\xf0\x9f\xab\xa9"

static void characters_are_newer_than_the_library(void **state) {
  (void)state;
  finds("\\p{L}+", "a" LETTER HAN UPPER LOWER "1", "[a" LETTER HAN UPPER LOWER "]");
  finds("\\p{Lu}|\\p{Nd}", LETTER UPPER LOWER DIGIT "A", "[" UPPER "][" DIGIT "][A]");
  finds("\\p{Ll}+", "A" UPPER LOWER "b", "[" LOWER "b]");
  finds("\\p{Han}+|\\p{Cyrillic}+", "a" HAN "-" UPPER LOWER LETTER, "[" HAN "][" UPPER LOWER "]");
  finds("\\p{Hani}+", "a" HAN, "[" HAN "]");
  finds("\\p{Lowercase}|\\p{Uppercase}", LETTER LOWER UPPER, "[" LOWER "][" UPPER "]");
  finds("[[:alnum:]]+", "-\xcd\xac" LETTER DIGIT, "[\xcd\xac" LETTER DIGIT "]");
  finds("\\p{S}", LETTER SYMBOL, "[" SYMBOL "]");
  finds("\\p{M}+|\\p{Cf}", "a" MARK FORMAT, "[" MARK "][" FORMAT "]");
  finds("\\d+|\\D", DIGIT "1" LETTER, "[" DIGIT "1][" LETTER "]");
  finds("\\w+", LETTER DIGIT SYMBOL MARK, "[" LETTER DIGIT "][" MARK "]");
  finds("\\W", LETTER DIGIT SYMBOL, "[" SYMBOL "]");
  finds("\\b", LETTER " ", "[][]");
  finds("\\P{L}+|\\p{^N}", LETTER DIGIT SYMBOL "a", "[" LETTER "][" DIGIT SYMBOL "][a]");
  finds("[\\P{L}x]+", LETTER "x1" DIGIT UPPER, "[x1" DIGIT "]");
  finds("[^\\p{L}]+", LETTER "1" DIGIT UPPER, "[1" DIGIT "]");
  finds("[^\\P{L}x]+", "1x" LETTER UPPER DIGIT, "[" LETTER UPPER "]");
  finds("\\p{C}|\\p{Cn}", "a\x01" LETTER SYMBOL FORMAT "\xcd\xb8", "[\x01][" FORMAT "][\xcd\xb8]");
  finds("\\P{C}+",
        "\x01"
        "a" LETTER FORMAT,
        "[a" LETTER "]");
  finds("\\P{Cn}+", "\xcd\xb8\x01" LETTER FORMAT, "[\x01" LETTER FORMAT "]");
  finds("[\\p{Cn}b]+|[\\p{C}z]", "ab\xcd\xb8" LETTER "\x01z", "[b\xcd\xb8][\x01][z]");
  finds("[^\\p{Cn}b]+", "ab\xcd\xb8" LETTER "\x01", "[a][" LETTER "\x01]");
  finds("[^\\P{C}]+", "a\x01\xcd\xb8" LETTER, "[\x01\xcd\xb8]");
  finds("[\\p{C}&&[^\\p{Cf}]]+", "a\x01" FORMAT LETTER "\xcd\xb8", "[\x01][\xcd\xb8]");
  finds(GPT2, LETTER " " UPPER LOWER DIGIT SYMBOL,
        "[" LETTER "][ " UPPER LOWER "][" DIGIT "][" SYMBOL "]");
}

/* A body's characters in ASCII are those of its property. */
static void names_mean_what_the_library_means(void **state) {
  (void)state;
  static const char *const names[] = {
      "C",  "Cc", "Cf", "Cn",  "Co",         "L",         "Ll",        "Lm",  "Lo",   "Lt", "Lu",
      "M",  "Mc", "Me", "Mn",  "N",          "Nd",        "Nl",        "No",  "P",    "Pc", "Pd",
      "Pe", "Pf", "Pi", "Po",  "Ps",         "S",         "Sc",        "Sk",  "Sm",   "So", "Z",
      "Zl", "Zp", "Zs", "Any", "Alphabetic", "Lowercase", "Uppercase", "Han", "Latin"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char ours[60], theirs[60], text[5] = "";
    snprintf(ours, sizeof ours, "\\A(?:\\p{%s}|[\\p{%s}&&[^\\P{%s}]])", names[i], names[i],
             names[i]);
    snprintf(theirs, sizeof theirs, "\\A\\p{%s}", names[i]);
    struct pattern *p = make(ours);
    int why;
    size_t where;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)theirs, strlen(theirs), PCRE2_UTF | PCRE2_UCP,
                                     &why, &where, NULL);
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    assert_non_null(code);
    for (unsigned c = 0; c < 0x300; c++) {
      const size_t length = c < 0x80 ? 1 : 2;
      text[0] = (char)(c < 0x80 ? c : 0xc0 | c >> 6);
      text[1] = (char)(c < 0x80 ? 0 : 0x80 | (c & 0x3f));
      struct pattern_search s;
      struct error e = {0};
      assert_int_equal(pattern_search_begin(&s, p, NULL, text, length, &e), STATUS_OK);
      const bool found = pattern_search_next(&s, &e);
      pattern_search_end(&s);
      if (found != (pcre2_match(code, (PCRE2_SPTR)text, length, 0, 0, data, NULL) > 0))
        fail_msg("%s: U+%04X", names[i], c);
    }
    pcre2_match_data_free(data);
    pcre2_code_free(code);
    pattern_free(p);
  }
}

/* --- the rest of the syntax --- */

static void repeats(void **state) {
  (void)state;
  finds("a{2}", "aaaaa", "[aa][aa]");
  finds("a{2,}", "abaaa", "[aaa]");
  finds("ba{,2}", "baaa", "[baa]");
  finds("a{1,2}?", "aa", "[a][a]");
  finds("a{2}?b", "aab b", "[aab][b]"); /* as a whole, or not at all */
  finds("a{2}+", "aaaaa", "[aaaa]");
  finds("x**y", "xxy", "[xxy]");
  finds("(?:ab)+?b", "ababb", "[ababb]");
  finds("a++a|b", "aab", "[b]");
  finds("a?+a", "aa", "[aa]");
  finds("a{x}|{|a{,|}|]", "a{x}{a{,]", "[a{x}][{][a{,][]]");
}

static void places(void **state) {
  (void)state;
  finds("^.", "ab\ncd\n", "[a][c]");
  finds(".$", "ab\ncd\n", "[b][d]");
  finds("\\s+$", "a \n b  ", "[ ][  ]");
  finds("\\Aa|a\\z|\\Bb", "aaba", "[a][b][a]");
  finds("b\\Z", "b\nb\n", "[b]");
  finds("\\b\\w", "ab c\xc2\xb2", "[a][c]");
  finds("\\b", "ab", "[][]");
  finds("a\\Kb", "ab", "[b]");
  finds("(?<=a)b|(?<!a)c", "abacc", "[b][c]");
  finds("(?<=a|bb)x", "axbxbbx", "[x][x]");
  finds("a(?=b)|a(?!b)c", "abac", "[a][ac]");
}

static void groups(void **state) {
  (void)state;
  finds("(a|b)c", "acbc", "[ac][bc]");
  finds("(.)\\1", "abba", "[bb]");
  finds("(?<one>a)(?#what) (?:b|c)", "a ba c", "[a b][a c]");
  finds("(?>a+)a|b", "aab", "[b]");
  finds("a(?i)b|c", "aBCac", "[aB][ac]"); /* the alternative is within the group that it begins */
  finds("(a(?i)b|c)d", "aCdacd", "[aCd][acd]");
  finds("(?i:a(?-i:b))b", "AbB abb ABb", "[abb]");
  finds("(?m:.)a.", "\nab\na\n", "[\nab]");
  finds("(?m).+", "a\nb", "[a\nb]");
  finds("(?i-m)K", "k\xe2\x84\xaa", "[k][\xe2\x84\xaa]");
  finds("\\N+|\\O", "ab\n", "[ab][\n]");
  finds("\\R|\\R{2}", "a\r\n\n\xe2\x80\xa8", "[\r\n][\n][\xe2\x80\xa8]");
  finds("\\t\\n\\r\\f\\v\\a\\e\\x41\\o{102}\\0", "x\t\n\r\f\v\a\033AB", "");
  finds("\\t\\n\\r\\f\\v\\a\\e\\x41\\o{102}\\x{43}", "x\t\n\r\f\v\a\033ABC",
        "[\t\n\r\f\v\a\033ABC]");
  finds("\\-\\'\\_\\\xc3\xa9", "-'_\xc3\xa9", "[-'_\xc3\xa9]");
}

/* A match of nothing is none where the last one ended, and each character is tried. */
static void matches_of_nothing(void **state) {
  (void)state;
  finds("", "a\xc3\xa9", "[][][]");
  finds("x*", "axxb", "[][xx][]");
  finds("(?=b)", "abb", "[][]");
  finds("a|", "ab", "[a][]");
  finds("", "", "[]");
  finds("a", "", "");
}

static void plain_texts(void **state) {
  (void)state;
  static const struct {
    const char *text, *expected;
  } list[] = {{"a.", "[a.][a.]"}, {"aa", "[aa]"}, {"", "[][][][][][][][]"}, {"x", ""}};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct error e = {0};
    json_t *json = json_pack("{ss}", "String", list[i].text);
    struct pattern *p = pattern_new(json, &e);
    assert_non_null(p);
    check(p, list[i].text, "aaa.a.b", list[i].expected);
    pattern_free(p);
    json_decref(json);
  }
}

/* --- what is refused --- */

static void mistakes_are_named(void **state) {
  (void)state;
  static const struct {
    const char *expression, *detail;
  } list[] = {
      {"ab\\y", "\"\\y\" at byte 2 of the expression is not supported"},
      {"\\G", "\"\\G\" at byte 0 of the expression is not supported"},
      {"\\X", "\"\\X\" at byte 0"},
      {"\\Q", "\"\\Q\" at byte 0"},
      {"\\k<a>", "\"\\k\" at byte 0"},
      {"a\\", "\"\\\" at byte 1 of the expression ends too early"},
      {"[\\", "\"\\\" at byte 1 of the expression ends too early"},
      {"\\xe3", "\"\\xe3\" at byte 0 of the expression names no supported character"},
      {"\\x", "\"\\x\" at byte 0 of the expression names no supported character"},
      {"\\x{110000}", "names no supported character"},
      {"\\x{d800}", "names no supported character"},
      {"\\x{61 62}", "names no supported character"},
      {"\\u12", "names no supported character"},
      {"\\o12", "names no supported character"},
      {"(a)\\12", "\"\\12\" at byte 3 of the expression refers to too high a group"},
      {"\\8", "the expression cannot be compiled: reference to non-existent subpattern"},
      {"(?<n>a)\\1", "\"(?<n>\" at byte 0 of the expression is not supported beside numbers"},
      {"\\p",
       "\"\\p\" at byte 0 of the expression is not supported: a property's name is in braces"},
      {"\\p{L", "\"\\p{L\" at byte 0 of the expression ends too early"},
      {"\\p{Lx}", "\"\\p{Lx}\" at byte 0 of the expression is not a known property"},
      {"\\p{}", "is not a known property"},
      {"\\p{a.b}", "is not a known property"},
      {"\\p{aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}", "is not a known property"},
      {"[[:foo:]]", "\"[:foo:]\" at byte 1 of the expression is not a known set"},
      {"[[:greek:]]", "is not a known set"},
      {"(?i:\\p{Lu})",
       "\"\\p{Lu}\" at byte 4 of the expression is not supported where case does not"},
      {"(?i)[[:upper:]]", "\"[:upper:]\" at byte 5"},
      {"(?i)[\\p{Ll}]", "\"\\p{Ll}\" at byte 5"},
      {"(?s).", "\"(?s\" at byte 0 of the expression is not supported"},
      {"(?x) a", "\"(?x\" at byte 0"},
      {"(?~a)", "\"(?~\" at byte 0"},
      {"(?(1)a)", "\"(?(\" at byte 0"},
      {"(?", "\"(?\" at byte 0"},
      {"(?i", "\"(?i\" at byte 0"},
      {"(?<1>a)", "\"(?<\" at byte 0"},
      {"(?<n", "\"(?<\" at byte 0"},
      {"(*FAIL)", "\"(*\" at byte 0"},
      {"*", "\"*\" at byte 0 of the expression has nothing to repeat"},
      {"a|+", "\"+\" at byte 2 of the expression has nothing to repeat"},
      {"(?=a)?", "has nothing to repeat"},
      {"^{2}", "\"{2}\" at byte 1 of the expression has nothing to repeat"},
      {"a{1234567}", "repeats too often"},
      {"a{70000}", "the expression cannot be compiled: number too big in {} quantifier"},
      {"a{3,1}", "the expression cannot be compiled: numbers out of order"},
      {"a)b", "\")\" at byte 1 of the expression ends no group"},
      {"(a", "\"(a\" at byte 0 of the expression has no end"},
      {"(?#a", "\"(?#a\" at byte 0 of the expression has no end"},
      {"(?i:a", "\"(?i:a\" at byte 0 of the expression has no end"},
      {"[a", "\"[a\" at byte 0 of the expression has no end"},
      {"[]", "has no end"},
      {"[a&&]", "\"&&\" at byte 2 of the expression has no set on one side"},
      {"[&&a]", "has no set on one side"},
      {"[b-a]", "\"b-a\" at byte 1 of the expression is a range from a later character"},
      {"[a-\\w]", "\"\\w\" at byte 3 of the expression cannot be the end of a range"},
      {"[a-[b]]", "\"[\" at byte 3 of the expression cannot be the end of a range"},
      {"[\\w-a]", "\"\\w\" at byte 1 of the expression cannot be the beginning of a range"},
      {"(?<=a+)b", "the expression cannot be compiled: lookbehind assertion is not fixed length"},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct error e = {0};
    assert_null(pattern_of(list[i].expression, &e));
    assert_int_equal(e.status, STATUS_CONFIG);
    if (!strstr(e.detail, list[i].detail)) fail_msg("%s: %s", list[i].expression, e.detail);
  }
}

static void nests_too_deep(void **state) {
  (void)state;
  char text[1001] = "";
  struct error e = {0}, other = {0};
  memset(text, '(', 1000);
  assert_null(pattern_of(text, &e));
  assert_non_null(strstr(e.detail, "at byte 100 of the expression is nested too deep"));
  memset(text, '[', 1000);
  assert_null(pattern_of(text, &other));
  assert_non_null(strstr(other.detail, "at byte 32 of the expression is nested too deep"));
}

static void other_documents(void **state) {
  (void)state;
  static const char *const list[] = {"[]",
                                     "{}",
                                     "{\"String\":1}",
                                     "{\"Regex\":null}",
                                     "{\"String\":\"a\",\"Regex\":\"b\"}",
                                     "{\"regex\":\"a\"}"};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct error e = {0};
    json_t *json = json_loads(list[i], 0, NULL);
    assert_null(pattern_new(json, &e));
    assert_int_equal(e.status, STATUS_CONFIG);
    assert_string_equal(e.detail, "needs {\"String\": text} or {\"Regex\": expression}");
    json_decref(json);
  }
  struct error e = {0};
  assert_null(pattern_new(NULL, &e));
  assert_int_equal(e.status, STATUS_CONFIG);
  pattern_free(NULL);
}

/* --- texts that take long --- */

enum { LONG = 100000 };

/* So much of one character, and an end. Has the search an end, too? */
static bool ends(const char *expression, char of, const char *end, const char *expected) {
  char *text = malloc(LONG + 8), *found = malloc(LONG + 32);
  assert_true(text && found);
  memset(text, of, LONG);
  strcpy(text + LONG, end);
  struct pattern *p = make(expression);
  const bool good = write_matches(p, text, strlen(text), found, LONG + 32);
  if (good && expected) assert_int_equal(strlen(found), strlen(text) + strlen(expected));
  pattern_free(p);
  free(text);
  free(found);
  return good;
}

static void long_runs_are_found(void **state) {
  (void)state;
  static const char *const model[] = {GPT2, LLAMA3, QWEN2, GPT4O};
  for (size_t i = 0; i < sizeof model / sizeof *model; i++) {
    assert_true(ends(model[i], ' ', "", "[]"));
    assert_true(ends(model[i], ' ', "x", "[][]"));
    assert_true(ends(model[i], '\n', "x", i == 0 ? "[][][]" : "[][]"));
    assert_true(ends(model[i], '!', "\n", i == 0 ? "[][]" : "[]"));
    assert_true(ends(model[i], 'A', "", "[]"));
  }
  assert_true(ends("(?:[a-z&&[^q]])+", 'a', "", "[]")); /* needs a stack of its own */
}

static void hopeless_texts_are_refused(void **state) {
  (void)state;
  assert_false(ends("(?:a|b)*z|y", 'a', "", NULL)); /* from each place, to the end */
  assert_false(ends("(a+)+z|y", 'a', "", NULL));    /* from one place, in too many ways */
}

/* Short texts that each take a while are too long together: in one search, and in one after the
 * other with the same watch. */
static void texts_are_refused_together(void **state) {
  (void)state;
  enum { MANY = 1000000 };
  static const char text[] = "aaaaaaaaaaaaaaaaaa";
  struct pattern *p = make("(a+)+[bc]");
  struct pattern_watch watch = {0};
  struct pattern_search s;
  struct error e = {0};
  size_t n = 0;
  assert_int_equal(pattern_search_begin(&s, p, NULL, "", 0, &e), STATUS_OK);
  for (; n < MANY && !e.status; n++) {
    pattern_search_text(&s, text, strlen(text));
    assert_false(pattern_search_next(&s, &e));
  }
  pattern_search_end(&s);
  assert_int_equal(e.status, STATUS_INVALID_REQUEST);
  assert_in_range(n, 2, MANY - 1);
  memset(&e, 0, sizeof e);
  for (n = 0; n < MANY && !e.status; n++) {
    assert_int_equal(pattern_search_begin(&s, p, &watch, "", 0, &e), STATUS_OK);
    for (size_t i = 0; i < 100 && !e.status; i++) {
      pattern_search_text(&s, text, strlen(text));
      assert_false(pattern_search_next(&s, &e));
    }
    pattern_search_end(&s);
  }
  assert_int_equal(e.status, STATUS_INVALID_REQUEST);
  assert_in_range(n, 1, MANY - 1);
  pattern_free(p);
}

/* --- memory --- */

static void no_memory_at_any_step(void **state) {
  (void)state;
  static const char *const list[] = {
      "{\"String\":\"a\"}", "{\"Regex\":\"[a-z&&[^b][:^alnum:]\\\\W]+(?i:x{2})+|[c[d]]\"}"};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    json_t *json = json_loads(list[i], 0, NULL);
    assert_non_null(json);
    size_t n = 0;
    for (struct pattern *p = NULL; !p;) {
      struct error e = {0};
      poisoned_fail(++n);
      p = pattern_new(json, &e);
      poisoned_fail(0);
      assert_true(p || e.status == STATUS_OUT_OF_MEMORY);
      pattern_free(p);
    }
    assert_true(n > 2);
    json_decref(json);
  }
  struct pattern *p = make("a");
  struct pattern_search s;
  struct error e = {0};
  poisoned_fail(1);
  assert_int_equal(pattern_search_begin(&s, p, NULL, "a", 1, &e), STATUS_OUT_OF_MEMORY);
  poisoned_fail(0);
  pattern_free(p);
}

/* Where the system forbids memory that is written and then run, the library interprets. */
static void without_instructions_of_its_own(void **state) {
  (void)state;
  enum { SET_MDWE = 65, REFUSE_EXEC_GAIN = 1, NOT_TOLD = 2 };
  fflush(stdout);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    if (prctl(SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0)) _exit(NOT_TOLD);
    char found[100];
    struct error e = {0};
    struct pattern *p = pattern_of(GPT2, &e);
    const bool good = p && write_matches(p, "It's  me", 8, found, sizeof found);
    _exit(!good || strcmp(found, "[It]['s][ ][ me]") != 0);
  }
  int how;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFEXITED(how));
  if (WEXITSTATUS(how) == NOT_TOLD) skip();
  assert_int_equal(WEXITSTATUS(how), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(models_cut_words),
      cmocka_unit_test(brackets_may_have_brackets_within),
      cmocka_unit_test(brackets_have_odd_characters),
      cmocka_unit_test(sets_are_unicodes),
      cmocka_unit_test(characters_are_newer_than_the_library),
      cmocka_unit_test(names_mean_what_the_library_means),
      cmocka_unit_test(repeats),
      cmocka_unit_test(places),
      cmocka_unit_test(groups),
      cmocka_unit_test(matches_of_nothing),
      cmocka_unit_test(plain_texts),
      cmocka_unit_test(mistakes_are_named),
      cmocka_unit_test(nests_too_deep),
      cmocka_unit_test(other_documents),
      cmocka_unit_test(long_runs_are_found),
      cmocka_unit_test(hopeless_texts_are_refused),
      cmocka_unit_test(texts_are_refused_together),
      cmocka_unit_test(no_memory_at_any_step),
      cmocka_unit_test(without_instructions_of_its_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
