/* test_subword: words into pieces by every kind of subword model, compared with simple ways to do
 * the same over random words and vocabularies; long words; what is rejected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/tokenizer/model/byte_level.h"
#include "config/tokenizer/model/subword.h"
#include "core/base/clock.h"
#include "tests/support/random_call.h"

static uint64_t drawn = 1;

/* --- a subword_model and what it cuts --- */

struct cutting {
  struct subword_model *l;
  struct arena arena;
  struct error error;
  struct tokens tokens;
  struct subword_work work;
};

static void begin(struct cutting *c, json_t *model, bool raw) {
  memset(c, 0, sizeof *c);
  arena_init(&c->arena, NULL);
  c->l = subword_new(model, raw, &c->error);
  if (!c->l) fail_msg("%s", c->error.detail);
  tokens_init(&c->tokens, &c->arena, &c->error);
  c->work.out = &c->tokens;
  json_decref(model);
}

static void end(struct cutting *c) {
  subword_free(c->l);
  arena_free(&c->arena);
}

static void cut(struct cutting *c, const char *word, size_t length) {
  c->tokens.count = 0;
  subword_tokenize(c->l, word, length, 0, &c->work);
  if (c->error.status) fail_msg("%s", c->error.detail);
}

/* The tokens, and that they lie one behind the other over the whole word. */
static void must_be(struct cutting *c, const char *word, const char *ids) {
  char got[512] = "";
  size_t n = 0, at = 0;
  cut(c, word, strlen(word));
  for (size_t i = 0; i < c->tokens.count; i++) {
    const struct token *t = &c->tokens.token[i];
    n += (size_t)snprintf(got + n, sizeof got - n, "%s%d", i ? " " : "", (int)t->id);
    assert_true(t->begin == at || t->begin == (i ? c->tokens.token[i - 1].begin : 0));
    at = t->end;
  }
  assert_string_equal(got, ids);
  assert_int_equal(at, strlen(word));
}

static json_t *document(const char *text) {
  json_error_t why;
  json_t *json = json_loads(text, 0, &why);
  if (!json) fail_msg("%s: %s", text, why.text);
  return json;
}

/* --- BPE --- */

static void merges_in_their_order(void **state) {
  (void)state;
  struct cutting c;
  begin(&c,
        document(
            "{\"type\":\"BPE\",\"unk_token\":\"?\",\"fuse_unk\":false,\"vocab\":{\"?\":0,\"a\":1,"
            "\"b\":2,\"c\":3,\"ab\":4,\"bc\":5,\"abc\":6,\"aa\":7,\"é\":8},\"merges\":[\"b c\","
            "[\"a\",\"b\"],\"a bc\",\"a a\"]}"),
        false);
  must_be(&c, "abc", "6");
  must_be(&c, "ab", "4");
  must_be(&c, "aaa", "7 1");
  must_be(&c, "aabc", "1 6");
  must_be(&c, "éaéx", "8 1 8 0");
  must_be(&c, "xyab", "0 0 4");
  end(&c);
  begin(&c,
        document(
            "{\"type\":\"BPE\",\"unk_token\":\"?\",\"fuse_unk\":true,\"vocab\":{\"?\":0,\"a\":1},"
            "\"merges\":[]}"),
        false);
  must_be(&c, "xéya", "0 1");
  end(&c);
}

static void what_begins_and_ends_a_word(void **state) {
  (void)state;
  struct cutting c;
  begin(&c,
        document(
            "{\"type\":\"BPE\",\"end_of_word_suffix\":\"</w>\",\"vocab\":{\"a\":0,\"b\":1,"
            "\"a</w>\":2,\"b</w>\":3,\"ab</w>\":4,\"ab\":5},\"merges\":[\"a b</w>\",\"a b\"]}"),
        false);
  must_be(&c, "ab", "4");
  must_be(&c, "aba", "5 2");
  must_be(&c, "b", "3");
  end(&c);
  begin(&c,
        document(
            "{\"type\":\"BPE\",\"continuing_subword_prefix\":\"##\",\"vocab\":{\"a\":0,\"##b\":1,"
            "\"##a\":2,\"ab\":3,\"##ba\":4},\"merges\":[\"a ##b\",\"##b ##a\"]}"),
        false);
  must_be(&c, "ab", "3");
  must_be(&c, "aba", "3 2");
  must_be(&c, "aaba", "0 2 4");
  end(&c);
}

static void unknown_characters_as_bytes(void **state) {
  (void)state;
  struct cutting c;
  begin(
      &c,
      document(
          "{\"type\":\"BPE\",\"byte_fallback\":true,\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"a\":1,"
          "\"<0xC3>\":2,\"<0xA9>\":3},\"merges\":[]}"),
      false);
  must_be(&c, "aéa", "1 2 3 1");
  must_be(&c, "aè", "1 0"); /* not all of its bytes */
  end(&c);
}

/* A word is a piece, whatever merging would make of it. */
static void words_that_are_pieces(void **state) {
  (void)state;
  struct cutting c;
  begin(&c,
        document("{\"type\":\"BPE\",\"ignore_merges\":true,\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},"
                 "\"merges\":[]}"),
        false);
  must_be(&c, "ab", "2");
  must_be(&c, "aba", "0 1 0");
  end(&c);
}

static void bytes_as_they_are(void **state) {
  (void)state;
  struct cutting c;
  begin(&c,
        document("{\"type\":\"BPE\",\"vocab\":{\"Ġ\":0,\"a\":1,\"Ġa\":2,\"Ã\":3,\"©\":4,\"Ã©\":5,"
                 "\"▁x\":6,\"<|end|>\":7},\"merges\":[\"Ġ a\",\"Ã ©\"]}"),
        true);
  must_be(&c, " a", "2");
  must_be(&c, "aé", "1 5");
  must_be(&c, " é", "0 5");
  size_t length;
  assert_memory_equal(vocabulary_piece(subword_vocabulary(c.l), 5, &length), "é", 2);
  assert_memory_equal(vocabulary_piece(subword_vocabulary(c.l), 6, &length), "▁x", 4);
  assert_int_equal(vocabulary_find(subword_vocabulary(c.l), "▁x", 4), -1);
  end(&c);
}

/* A drawn subword_model of pairs over few letters: every merge makes a new piece of two older ones.
 */
enum { LETTERS = 3, MERGES = 60 };

struct drawn_merges {
  char piece[LETTERS + MERGES][64];
  size_t pieces;
  int pair[MERGES][2], becomes[MERGES];
  size_t merges;
};

static int find_drawn(const struct drawn_merges *d, const char *text) {
  for (size_t i = 0; i < d->pieces; i++)
    if (strcmp(d->piece[i], text) == 0) return (int)i;
  return -1;
}

static json_t *draw_merges(struct drawn_merges *d) {
  json_t *vocabulary = json_object(), *merges = json_array();
  memset(d, 0, sizeof *d);
  for (; d->pieces < LETTERS; d->pieces++) d->piece[d->pieces][0] = (char)('a' + d->pieces);
  for (size_t i = 0; i < MERGES; i++) {
    char text[64];
    const size_t a = random_below(&drawn, d->pieces), b = random_below(&drawn, d->pieces);
    if (strlen(d->piece[a]) + strlen(d->piece[b]) > 12) continue;
    snprintf(text, sizeof text, "%.20s%.20s", d->piece[a], d->piece[b]);
    bool twice = false;
    for (size_t j = 0; j < d->merges; j++)
      twice = twice || (d->pair[j][0] == (int)a && d->pair[j][1] == (int)b);
    if (twice) continue;
    if (find_drawn(d, text) < 0) strcpy(d->piece[d->pieces++], text);
    d->pair[d->merges][0] = (int)a;
    d->pair[d->merges][1] = (int)b;
    d->becomes[d->merges++] = find_drawn(d, text);
    json_array_append_new(merges, json_pack("[s, s]", d->piece[a], d->piece[b]));
  }
  for (size_t i = 0; i < d->pieces; i++)
    json_object_set_new(vocabulary, d->piece[i], json_integer((json_int_t)i));
  return json_pack("{s:s, s:o, s:o}", "type", "BPE", "vocab", vocabulary, "merges", merges);
}

/* Merge by merge over the whole word, from the left, as the method is told. */
static size_t merge_plainly(const struct drawn_merges *d, int *id, size_t count) {
  for (;;) {
    size_t best = d->merges, at = 0;
    for (size_t i = 0; i + 1 < count; i++)
      for (size_t m = 0; m < best; m++)
        if (d->pair[m][0] == id[i] && d->pair[m][1] == id[i + 1]) best = m, at = i;
    if (best == d->merges) return count;
    id[at] = d->becomes[best];
    memmove(id + at + 1, id + at + 2, (count - at - 2) * sizeof *id);
    count--;
  }
}

static void merges_as_told(void **state) {
  (void)state;
  enum { LONGEST = 160 };
  for (int turn = 0; turn < 60; turn++) {
    struct drawn_merges d;
    struct cutting c;
    begin(&c, draw_merges(&d), turn % 2 == 0);
    for (int words = 0; words < 60; words++) {
      char word[LONGEST];
      int id[LONGEST];
      const size_t length = 1 + random_below(&drawn, words % 2 ? LONGEST : 12);
      for (size_t i = 0; i < length; i++) {
        id[i] = (int)random_below(&drawn, LETTERS);
        word[i] = (char)('a' + id[i]);
      }
      const size_t count = merge_plainly(&d, id, length);
      cut(&c, word, length);
      assert_int_equal(c.tokens.count, count);
      for (size_t i = 0; i < count; i++) assert_int_equal(c.tokens.token[i].id, id[i]);
      assert_int_equal(c.tokens.token[count - 1].end, length);
    }
    end(&c);
  }
}

/* --- WordPiece --- */

static void the_longest_piece_first(void **state) {
  (void)state;
  struct cutting c;
  begin(&c,
        document("{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"max_input_chars_per_word\":8,"
                 "\"vocab\":{\"[UNK]\":0,\"un\":1,\"##aff\":2,\"##able\":3,\"##a\":4,\"unaff\":5,"
                 "\"é\":6,\"##é\":7,\"##ffable\":8}}"),
        false);
  must_be(&c, "unaff", "5");
  must_be(&c, "unable", "1 3");
  must_be(&c, "unaaff", "1 4 2");
  must_be(&c, "unx", "0");
  must_be(&c, "ééé", "6 7 7");
  must_be(&c, "éééééééé", "6 7 7 7 7 7 7 7");
  must_be(&c, "ééééééééé", "0"); /* nine characters */
  must_be(&c, "##able", "3");    /* it is a piece */
  end(&c);
  begin(&c, document("{\"type\":\"WordPiece\",\"unk_token\":\"u\",\"vocab\":{\"u\":0,\"a\":1}}"),
        false);
  must_be(&c, "a", "1");
  must_be(&c, "aa", "0"); /* no piece goes on */
  end(&c);
}

/* --- Unigram --- */

static void the_greatest_sum(void **state) {
  (void)state;
  struct cutting c;
  begin(&c,
        document("{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"a\",0],[\"b\",0],["
                 "\"c\",0],"
                 "[\"d\",0],[\"cd\",1],[\"ab\",2],[\"abc\",5],[\"abcd\",10]]}"),
        false);
  must_be(&c, "abcdacdxx", "8 1 5 0");
  must_be(&c, "éa", "0 1");
  end(&c);
  begin(&c,
        document(
            "{\"type\":\"Unigram\",\"unk_id\":0,\"byte_fallback\":true,\"vocab\":[[\"<unk>\",0],"
            "[\"a\",-1],[\"<0xC3>\",-2],[\"<0xA9>\",-2]]}"),
        false);
  must_be(&c, "aé", "1 2 3");
  must_be(&c, "aèa", "1 0 1");
  end(&c);
}

/* Beside all ways to cut: the best sum is the same. */
static double best_sum(const char *const *piece, const double *score, size_t pieces,
                       const char *word) {
  if (!*word) return 0;
  double best = -1e9;
  for (size_t i = 1; i < pieces; i++) {
    const size_t n = strlen(piece[i]);
    if (strncmp(piece[i], word, n) != 0) continue;
    const double sum = score[i] + best_sum(piece, score, pieces, word + n);
    if (sum > best) best = sum;
  }
  return best;
}

static void sums_beside_all_ways(void **state) {
  (void)state;
  static const char *const piece[] = {"<unk>", "a", "b", "ab", "ba", "aab", "bb", "abab", "bbb"};
  enum { PIECES = sizeof piece / sizeof *piece };
  for (int turn = 0; turn < 200; turn++) {
    double score[PIECES] = {0};
    json_t *list = json_array();
    char word[16] = "";
    for (size_t i = 0; i < PIECES; i++) {
      score[i] = i ? (double)random_float(&drawn) * 5 : 0;
      json_array_append_new(list, json_pack("[s, f]", piece[i], score[i]));
    }
    struct cutting c;
    begin(&c, json_pack("{s:s, s:i, s:o}", "type", "Unigram", "unk_id", 0, "vocab", list), false);
    const size_t length = 1 + random_below(&drawn, 14);
    for (size_t i = 0; i < length; i++) word[i] = (char)('a' + random_below(&drawn, 2));
    cut(&c, word, length);
    double sum = 0;
    for (size_t i = 0; i < c.tokens.count; i++) sum += score[c.tokens.token[i].id];
    assert_float_equal(sum, best_sum(piece, score, PIECES, word), 1e-9);
    end(&c);
  }
}

/* --- WordLevel --- */

static void words_as_they_are(void **state) {
  (void)state;
  struct cutting c;
  begin(&c,
        document(
            "{\"type\":\"WordLevel\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"one\":1,\"two\":7}}"),
        false);
  must_be(&c, "two", "7");
  must_be(&c, "twos", "0");
  end(&c);
  begin(&c, document("{\"type\":\"WordLevel\",\"vocab\":{\"one\":1}}"), false);
  assert_int_equal(subword_tokenize(c.l, "two", 3, 5, &c.work), STATUS_INVALID_REQUEST);
  assert_string_equal(c.error.detail,
                      "the tokenizer has no token for \"two\", at byte 5 of the text");
  end(&c);
}

/* --- long words --- */

/* A megabyte of one letter: no kind takes more than some operations for each byte. */
static void one_long_word(void **state) {
  (void)state;
  enum { MEGABYTE = 1 << 20 };
  char *word = malloc(MEGABYTE);
  struct drawn_merges d;
  struct cutting c;
  memset(word, 'a', MEGABYTE);
  json_t *vocabulary = json_object(), *merges = json_array();
  char piece[65] = "a";
  json_object_set_new(vocabulary, piece, json_integer(0));
  for (int i = 1; i <= 6; i++) {
    char twice[130];
    snprintf(twice, sizeof twice, "%s%s", piece, piece);
    json_array_append_new(merges, json_pack("[s, s]", piece, piece));
    strcpy(piece, twice);
    json_object_set_new(vocabulary, piece, json_integer(i));
  }
  begin(&c, json_pack("{s:s, s:o, s:o}", "type", "BPE", "vocab", vocabulary, "merges", merges),
        false);
  cut(&c, word, MEGABYTE);
  assert_int_equal(c.tokens.count, MEGABYTE / 64);
  end(&c);
  begin(&c, draw_merges(&d), true);
  cut(&c, word, MEGABYTE);
  end(&c);
  begin(&c,
        document(
            "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"u\",-9],[\"a\",-1],[\"aaaa\",-2]]}"),
        false);
  cut(&c, word, MEGABYTE);
  assert_int_equal(c.tokens.count, MEGABYTE / 4);
  end(&c);
  begin(&c,
        document(
            "{\"type\":\"WordPiece\",\"unk_token\":\"u\",\"vocab\":{\"u\":0,\"a\":1,\"##a\":2}}"),
        false);
  must_be(&c, "aa", "1 2");
  cut(&c, word, MEGABYTE);
  assert_int_equal(c.tokens.count, 1);
  end(&c);
  free(word);
}

/* --- refused --- */

static void what_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *json, *words;
  } list[] = {
      {"{\"type\":\"Bpe\",\"vocab\":{}}",
       "type: \"Bpe\" is not supported; supported: WordPiece, BPE, Unigram, WordLevel"},
      {"{}", "type: \"\" is not supported"},
      {"{\"type\":\"BPE\",\"merges\":[]}", "vocab: needs an object"},
      {"{\"type\":\"BPE\",\"vocab\":{\"a\":0}}", "merges: needs a list"},
      {"{\"type\":\"BPE\",\"vocab\":{\"a\":\"0\"},\"merges\":[]}",
       "vocab: \"a\": the id is not an integer"},
      {"{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}", "vocab: \"a\": the id -1"},
      {"{\"type\":\"BPE\",\"vocab\":{\"a\":16777216},\"merges\":[]}", "the id 16777216"},
      {"{\"type\":\"BPE\",\"vocab\":{\"a\":1,\"b\":1},\"merges\":[]}", "the id 1 belongs to two"},
      {"{\"type\":\"BPE\",\"vocab\":{\"a\":1},\"merges\":[[\"\",\"\"]]}", "merges: "},
      {"{\"type\":\"BPE\",\"vocab\":{\"a\":1},\"merges\":[\"a\"]}", "merges: 0: needs two pieces"},
      {"{\"type\":\"BPE\",\"vocab\":{\"a\":1},\"merges\":[\"a b c\"]}",
       "merges: 0: needs two pieces"},
      {"{\"type\":\"BPE\",\"vocab\":{\"a\":1},\"merges\":[[\"a\"]]}",
       "merges: 0: needs two pieces"},
      {"{\"type\":\"BPE\",\"vocab\":{\"a\":1},\"merges\":[3]}", "merges: 0: needs two pieces"},
      {"{\"type\":\"BPE\",\"vocab\":{\"a\":1},\"merges\":[\"a a\"]}", "is not in the vocabulary"},
      {"{\"type\":\"BPE\",\"vocab\":{\"a\":1},\"merges\":[\"a b\"]}", "is not in the vocabulary"},
      {"{\"type\":\"BPE\",\"vocab\":{\"a\":1},\"merges\":[],\"unk_token\":\"b\"}",
       "unk_token: \"b\" is not"},
      {"{\"type\":\"BPE\",\"vocab\":{\"a\":1},\"merges\":[],\"unk_token\":3}",
       "unk_token: needs a piece"},
      {"{\"type\":\"BPE\",\"vocab\":{\"a\":1},\"merges\":[],\"dropout\":0.1}",
       "dropout: is not supported"},
      {"{\"type\":\"BPE\",\"vocab\":{\"a\":1},\"merges\":[],\"fuse_unk\":1}",
       "fuse_unk: needs true or false"},
      {"{\"type\":\"BPE\",\"vocab\":{\"a\":1},\"merges\":[],\"byte_fallback\":1}",
       "byte_fallback: needs"},
      {"{\"type\":\"BPE\",\"vocab\":{\"a\":1},\"merges\":[],\"ignore_merges\":1}",
       "ignore_merges: needs"},
      {"{\"type\":\"BPE\",\"vocab\":{\"a\":1},\"merges\":[],\"end_of_word_suffix\":1}",
       "end_of_word_suffix: needs a text"},
      {"{\"type\":\"BPE\",\"vocab\":{\"a\":1},\"merges\":[],\"continuing_subword_prefix\":"
       "\"123456789012345678901234567890123\"}",
       "continuing_subword_prefix: needs a text of at most 32 bytes"},
      {"{\"type\":\"BPE\",\"vocab\":{\"a\":1},\"merges\":[],\"ignore_merge\":true}",
       "the member \"ignore_merge\" is not known (did you mean \"ignore_merges\"?)"},
      {"{\"type\":\"WordPiece\",\"vocab\":{\"a\":1},\"unk_token\":\"a\",\"unk_id\":1}",
       "the member \"unk_id\" is not known"},
      {"{\"type\":\"WordLevel\",\"vocab\":{\"a\":1},\"unk_token\":\"a\",\"dropout\":null}",
       "the member \"dropout\" is not known"},
      {"{\"type\":\"Unigram\",\"vocab\":[[\"a\",0]],\"unk_token\":\"a\"}",
       "the member \"unk_token\" is not known"},
      {"{\"type\":\"WordPiece\",\"vocab\":{\"a\":1}}", "unk_token: needs a piece"},
      {"{\"type\":\"WordPiece\",\"vocab\":{\"a\":1},\"unk_token\":\"a\",\"max_input_chars_per_"
       "word\":-1}",
       "max_input_chars_per_word: needs a number"},
      {"{\"type\":\"Unigram\",\"vocab\":[]}", "vocab: needs a list of pieces with scores"},
      {"{\"type\":\"Unigram\",\"vocab\":[[\"a\"]]}", "vocab: 0: needs a piece and its score"},
      {"{\"type\":\"Unigram\",\"vocab\":[[\"a\",1],[\"b\",\"1\"]]}",
       "vocab: 1: needs a piece and its score"},
      {"{\"type\":\"Unigram\",\"unk_id\":1,\"vocab\":[[\"a\",1]]}",
       "unk_id: needs an id of the vocabulary"},
      {"{\"type\":\"Unigram\",\"unk_id\":\"a\",\"vocab\":[[\"a\",1]]}", "unk_id: needs an id"},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct error e = {0};
    json_t *json = document(list[i].json);
    struct subword_model *l = subword_new(json, false, &e);
    if (l || e.status != STATUS_CONFIG || !strstr(e.detail, list[i].words))
      fail_msg("%s: %s", list[i].json, l ? "taken" : e.detail);
    json_decref(json);
  }
}

/* --- GPT-2's characters --- */

static void every_byte_has_its_character(void **state) {
  (void)state;
  char text[2 * 256], back[256];
  unsigned char bytes[256];
  bool seen[BYTE_LEVEL_LAST + 1] = {false};
  for (unsigned i = 0; i < 256; i++) {
    const uint32_t c = byte_level_character((unsigned char)i);
    assert_in_range(c, 33, BYTE_LEVEL_LAST);
    assert_false(seen[c]);
    seen[c] = true;
    assert_int_equal(byte_level_byte(c), i);
    bytes[i] = (unsigned char)i;
  }
  assert_int_equal(byte_level_character(' '), 0x120);
  assert_int_equal(byte_level_character('\n'), 0x10a);
  assert_int_equal(byte_level_byte(' '), -1);
  assert_int_equal(byte_level_byte(0x144), -1);
  const size_t length = byte_level_encode((const char *)bytes, sizeof bytes, text);
  assert_int_equal(byte_level_decode(text, length, back), 256);
  assert_memory_equal(back, bytes, 256);
  assert_int_equal(byte_level_decode("▁", 3, back), SIZE_MAX);
  assert_int_equal(byte_level_decode("a b", 3, back), SIZE_MAX);
}

static enum status has_left(struct patience *p) {
  (void)p;
  return STATUS_GONE;
}

/* A word of so many letters `a`, of which a piece of many and one `b` nearly begins at each place.
 */
static void a_long_word_ends_when_nobody_waits(void **state) {
  (void)state;
  enum { NEAR = 20000, LONG = 100000 };
  char *text = malloc(LONG), *near = malloc(NEAR + 4);
  assert_true(text && near);
  memset(text, 'a', LONG);
  memset(near, 'a', NEAR), memcpy(near + NEAR, "b", 2);
  for (int kind = 0; kind < 3; kind++) {
    struct cutting c;
    struct patience patience = {.ask = has_left};
    begin(&c,
          kind == 0
              ? json_pack("{s:s, s:{s:i, s:i, s:i}, s:s, s:s, s:I}", "type", "WordPiece", "vocab",
                          "?", 0, "a", 1, near, 2, "unk_token", "?", "continuing_subword_prefix",
                          "", "max_input_chars_per_word", (json_int_t)1 << 40)
          : kind == 1 ? json_pack("{s:s, s:[[s, f], [s, f], [s, f]], s:i}", "type", "Unigram",
                                  "vocab", "?", 0.0, "a", -1.0, near, -2.0, "unk_id", 0)
                      : json_pack("{s:s, s:{s:i, s:i}, s:[[s, s]]}", "type", "BPE", "vocab", "a", 0,
                                  "aa", 1, "merges", "a", "a"),
          false);
    c.work.patience = &patience;
    assert_int_equal(subword_tokenize(c.l, text, LONG, 0, &c.work), STATUS_GONE);
    assert_true(c.tokens.count < LONG / 2);
    end(&c);
  }
  free(text);
  free(near);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(merges_in_their_order),
      cmocka_unit_test(a_long_word_ends_when_nobody_waits),
      cmocka_unit_test(what_begins_and_ends_a_word),
      cmocka_unit_test(unknown_characters_as_bytes),
      cmocka_unit_test(words_that_are_pieces),
      cmocka_unit_test(bytes_as_they_are),
      cmocka_unit_test(merges_as_told),
      cmocka_unit_test(the_longest_piece_first),
      cmocka_unit_test(the_greatest_sum),
      cmocka_unit_test(sums_beside_all_ways),
      cmocka_unit_test(words_as_they_are),
      cmocka_unit_test(one_long_word),
      cmocka_unit_test(what_is_refused),
      cmocka_unit_test(every_byte_has_its_character),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
