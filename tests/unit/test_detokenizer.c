/* test_detokenizer: what is said of tokens as they come is the text that they have together, of
 * every kind of decoder, in whole characters; and a text that stops ends it where it first is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/document/text.h"
#include "config/tokenizer/detokenizer.h"
#include "tests/support/poisoned.h"
#include "tests/support/rounds.h"

enum { TOKENS = 24, ROUNDS = 400, ROOM = 8192 };

/* The pieces are words of a list; what becomes of them is the decoder's. */
struct kind {
  const char *name, *decoder, *pieces;
  bool steady;
};

#define LIST(...)                                                                                  \
  "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"[UNK]\",\"vocab\":{\"[UNK]\":0," __VA_ARGS__ \
  "}},\"added_tokens\":[{\"id\":9,\"content\":\"<end>\",\"special\":true}],\"decoder\":"

static const char words[] = LIST("\"a\":1,\"##b\":2,\"do\":3,\"not\":4,\"n't\":5,\".\":6,\"'\":7,"
                                 "\"é\":8,\"<end>\":9,\"x\":10");
static const char blanks[] = LIST("\"▁\":1,\"▁a\":2,\"b\":3,\"▁▁\":4,\"<0xE4>\":5,\"<0xBD>\":6,"
                                  "\"<0xA0>\":7,\"<0x41>\":8,\"<end>\":9,\"<0xF0>\":10");
static const char letters[] = LIST("\"a\":1,\"Ġb\":2,\"ä\":3,\"½\":4,\"ł\":5,\"ðŁ\":6,\"ĺĢ\":7,"
                                   "\"Ċ\":8,\"<end>\":9,\"½łä\":10");
static const char suffixes[] = LIST("\"a\":1,\"b</w>\":2,\"c\":3,\"d</w>\":4,\"é</w>\":5,\"f\":6,"
                                    "\"g</w>\":7,\"h\":8,\"<end>\":9,\"</w>\":10");
static const char sounds[] = LIST("\"<pad>\":1,\"|\":2,\"A\":3,\"B\":4,\"C\":5,\"'\":6,\"M\":7,"
                                  "\".\":8,\"<end>\":9,\"é\":10");

static const struct kind kinds[] = {
    {"no decoder", "null", words, true},
    {"WordPiece", "{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}", words, true},
    {"Metaspace",
     "{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":\"always\",\"split\":true}",
     blanks, true},
    {"bytes behind pieces",
     "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"▁\"},"
     "\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\","
     "\"content\":\" \",\"start\":1,\"stop\":0}]}",
     blanks, true},
    {"ByteLevel", "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true}",
     letters, true},
    {"BPEDecoder", "{\"type\":\"BPEDecoder\",\"suffix\":\"</w>\"}", suffixes, true},
    {"CTC",
     "{\"type\":\"CTC\",\"pad_token\":\"<pad>\",\"word_delimiter_token\":\"|\",\"cleanup\":true}",
     sounds, true},
    {"a pattern behind what is fused",
     "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},{\"type\":\"Replace\",\"pattern\":"
     "{\"String\":\"b▁a\"},\"content\":\"LONG\"}]}",
     blanks, false},
    {"a replacement behind what is fused",
     "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"
     "{\"type\":\"Replace\",\"pattern\":{\"String\":\"b\ufffd\"},\"content\":\"\"}]}",
     blanks, false},
    {"the end is stripped",
     "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":"
     "\"b\",\"start\":0,\"stop\":2}]}",
     blanks, false},
};

static struct tokenizer *make(const struct kind *k) {
  static char text[4096];
  struct error e = {0};
  snprintf(text, sizeof text, "%s%s}", k->pieces, k->decoder);
  json_t *json = json_loads(text, 0, NULL);
  if (!json) fail_msg("%s: no JSON: %s", k->name, text);
  struct tokenizer *t = tokenizer_new(json, &e);
  if (!t) fail_msg("%s: %s", k->name, e.detail);
  json_decref(json);
  assert_int_equal(tokenizer_is_steady(t), k->steady);
  return t;
}

/* --- what it should be --- */

struct case_ {
  const struct tokenizer *t;
  int32_t id[DETOKENIZER_BEFORE + TOKENS];
  size_t before, count;
  char text[ROOM]; /* what is to be said */
  size_t length;
};

/* *whole: the length without the bytes of an unfinished character; NULL: it is not asked for. */
static size_t spell(const struct tokenizer *t, const int32_t *id, size_t count, char *out,
                    size_t *whole) {
  struct decoder_text text = {0};
  struct arena a;
  struct error e = {0};
  arena_init(&a, NULL);
  assert_int_equal(tokenizer_decode(t, id, count, true, &a, &text, &e), STATUS_OK);
  assert_true(text.length < ROOM);
  if (text.length) memcpy(out, text.bytes, text.length);
  if (whole) *whole = text.length - (text.open ? 3 : 0);
  arena_free(&a);
  return text.length;
}

/* The bytes that are the same in both, in whole characters. */
static size_t count_same(const char *a, const char *b, size_t most) {
  size_t same = 0;
  while (same < most && a[same] == b[same]) same++;
  while (same > 0 && same < most && ((unsigned char)a[same] & 0xc0) == 0x80) same--;
  return same;
}

static void draw(struct case_ *c, const struct tokenizer *t) {
  static char known[ROOM];
  *c = (struct case_){.t = t,
                      .before = (size_t)rand() % (DETOKENIZER_BEFORE + 1),
                      .count = 1 + (size_t)rand() % TOKENS};
  for (size_t i = 0; i < c->before + c->count; i++) c->id[i] = rand() % 11;
  const bool steady = tokenizer_is_steady(t);
  const size_t open = steady ? tokenizer_count_open(t, c->id, c->before) : 0;
  size_t length, whole;
  length = spell(t, c->id, c->before - open, known, &whole);
  c->length = spell(t, c->id, c->before + c->count, c->text, NULL);
  length = steady ? whole : count_same(known, c->text, length < c->length ? length : c->length);
  c->length -= length;
  memmove(c->text, c->text + length, c->length);
}

/* --- what it is --- */

/* Says the tokens one by one, or so many at a time. Returns how many there were when it was over.
 */
static size_t say(struct case_ *c, struct detokenizer *u, const struct detokenizer_terms *terms,
                  size_t step, struct arena *a) {
  struct error e = {0};
  size_t said = 0;
  arena_init(a, NULL);
  assert_int_equal(detokenizer_init(u, terms, c->id, c->before, c->count, a, &e), STATUS_OK);
  for (size_t n = step; !u->stopped; n += step) {
    const bool over = n >= c->count;
    const size_t count = over ? c->count : n;
    assert_int_equal(detokenizer_add(u, c->id + c->before, count, over, true, &e), STATUS_OK);
    assert_true(u->said >= said && u->said <= u->length);
    assert_true(u->said == 0 || memcmp(u->text, c->text, u->said) == 0);
    assert_true(text_is_utf8(u->text, u->said));
    said = u->said;
    if (over || u->stopped) return count;
  }
  return 0;
}

static void all_is_said(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    struct tokenizer *t = make(&kinds[k]);
    const struct detokenizer_terms terms = {.tokenizer = t};
    struct detokenizer u;
    struct arena a;
    struct case_ c;
    for (size_t round = 0; round < rounds(ROUNDS); round++) {
      draw(&c, t);
      say(&c, &u, &terms, 1 + (size_t)rand() % 3, &a);
      if (u.said != c.length || (c.length && memcmp(u.text, c.text, c.length)))
        fail_msg("%s, %zu: \"%.*s\", not \"%.*s\"", kinds[k].name, round, (int)u.said, u.text,
                 (int)c.length, c.text);
      arena_free(&a);
    }
    tokenizer_free(t);
  }
}

/* The place of the character that the byte belongs to, and of the next one. */
static size_t character_at(const struct case_ *c, size_t byte) {
  while (((unsigned char)c->text[byte] & 0xc0) == 0x80) byte--;
  return byte;
}

static size_t character_behind(const struct case_ *c, size_t byte) {
  do byte++;
  while (byte < c->length && ((unsigned char)c->text[byte] & 0xc0) == 0x80);
  return byte;
}

/* Any part of what is said stops it; and it stops with the token that ends that part, or the one
 * behind it where characters were not whole. */
static void what_stops_it(void **state) {
  (void)state;
  size_t stopped = 0;
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    struct tokenizer *t = make(&kinds[k]);
    for (size_t round = 0; round < rounds(ROUNDS); round++) {
      struct detokenizer u;
      struct arena a;
      struct case_ c;
      draw(&c, t);
      if (c.length == 0) continue;
      const size_t from = character_at(&c, (size_t)rand() % c.length);
      const size_t end = character_behind(&c, from + (size_t)rand() % (c.length - from));
      const struct tokenizer_text stop[] = {{"never", 5}, {c.text + from, end - from}};
      const struct detokenizer_terms terms = {.tokenizer = t, .stop = stop, .stops = 2};
      const char *first = memmem(c.text, c.length, stop[1].bytes, stop[1].length);
      say(&c, &u, &terms, 1, &a);
      arena_free(&a);
      if (!kinds[k].steady && u.stopped) continue; /* its text was another one then */
      assert_int_equal(u.stopped, 2);
      assert_int_equal(u.length, first - c.text);
      assert_int_equal(u.said, u.length);
      stopped++;
    }
    tokenizer_free(t);
  }
  assert_in_range(stopped, rounds(ROUNDS), SIZE_MAX);
}

static void nothing_stops_it_too_early(void **state) {
  (void)state;
  struct tokenizer *t = make(&kinds[0]);
  const struct tokenizer_text stop = {"a", 1};
  const struct detokenizer_terms terms = {.tokenizer = t, .stop = &stop, .stops = 1};
  const int32_t id[] = {1, 1, 10, 1};
  struct detokenizer u;
  struct arena a;
  struct error e = {0};
  arena_init(&a, NULL);
  detokenizer_init(&u, &terms, id, 0, 4, &a, &e);
  for (size_t n = 1; n <= 4; n++)
    assert_int_equal(detokenizer_add(&u, id, n, false, n > 2, &e), STATUS_OK);
  assert_int_equal(u.stopped, 1);
  assert_int_equal(u.length, strlen("a a x "));
  assert_memory_equal(u.text, "a a x ", u.length);
  assert_int_equal(detokenizer_add(&u, id, 4, true, true, &e), STATUS_OK); /* it is over */
  arena_free(&a);
  tokenizer_free(t);
}

/* Whatever the tokens are, few of them are spelled again: special ones, unknown ones, blanks that
 * have no text alone, bytes that are no character, or always only the beginning of one. */
static void few_tokens_are_spelled_again(void **state) {
  (void)state;
  enum { MANY = 5000, FEW = 5 };
  static const int32_t many[] = {9, 99, 1, 2, 4, 6, 7};
  for (size_t k = 0; k < 5; k++)
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
      struct tokenizer *t = make(&kinds[k]);
      const struct detokenizer_terms terms = {.tokenizer = t};
      int32_t *id = malloc(MANY * sizeof *id);
      struct detokenizer u;
      struct arena a;
      struct error e = {0};
      for (size_t n = 0; n < MANY; n++) id[n] = n == 1 ? 3 : many[i];
      arena_init(&a, NULL);
      detokenizer_init(&u, &terms, id, 1, MANY - 1, &a, &e);
      for (size_t n = 1; n < MANY; n++) {
        assert_int_equal(detokenizer_add(&u, id + 1, n, false, true, &e), STATUS_OK);
        assert_in_range(u.count - tokenizer_count_open(t, u.window, u.count), 0, FEW);
      }
      arena_free(&a);
      free(id);
      tokenizer_free(t);
    }
}

/* --- tokens that may come --- */

/* What each token has added, one behind the other. */
struct joined {
  char text[ROOM];
  size_t length, characters;
};

static size_t count_characters(const char *text, size_t length) {
  size_t count = 0;
  for (size_t i = 0; i < length; i++) count += ((unsigned char)text[i] & 0xc0) != 0x80;
  return count;
}

/* Whatever else is asked at the same time, and beside it the same once more. */
static void look_ahead(const struct case_ *c, struct detokenizer *u, size_t n, struct joined *to) {
  const int32_t token[] = {c->id[c->before + n], rand() % 11, c->id[c->before + n]};
  const bool whole = text_is_utf8(to->text, to->length);
  struct tokenizer_text out[3];
  struct arena a;
  struct error e = {0};
  size_t characters;
  arena_init(&a, NULL);
  assert_int_equal(detokenizer_ahead(u, token, 3, out, &characters, &a, &e), STATUS_OK);
  for (size_t i = 0; i < 3; i++)
    assert_true(out[i].bytes && out[i].length <= detokenizer_ahead_room(c->t));
  assert_int_equal(out[0].length, out[2].length);
  if (out[0].length) assert_memory_equal(out[0].bytes, out[2].bytes, out[0].length);
  if (whole) assert_int_equal(characters, count_characters(to->text, to->length));
  if (tokenizer_has_text(c->t, token[0])) {
    memcpy(to->text + to->length, out[0].bytes, out[0].length);
    to->length += out[0].length;
  }
  arena_free(&a);
}

/* Do the tokens before them end within a character, or may they? */
static bool begins_within(const struct case_ *c) {
  static char before[ROOM];
  size_t whole;
  return tokenizer_count_open(c->t, c->id, c->before) ||
         spell(c->t, c->id, c->before, before, &whole) != whole;
}

/* All that is added is the text. */
static void what_tokens_add(void **state) {
  (void)state;
  static struct joined j;
  size_t compared = 0;
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    struct tokenizer *t = make(&kinds[k]);
    const struct detokenizer_terms terms = {.tokenizer = t};
    for (size_t round = 0; kinds[k].steady && round < rounds(ROUNDS); round++) {
      struct detokenizer u;
      struct arena a;
      struct case_ c;
      struct error e = {0};
      draw(&c, t);
      if (begins_within(&c)) continue;
      arena_init(&a, NULL);
      detokenizer_init(&u, &terms, c.id, c.before, c.count, &a, &e);
      j.length = 0;
      for (size_t n = 0; n < c.count; n++) {
        look_ahead(&c, &u, n, &j);
        detokenizer_add(&u, c.id + c.before, n + 1, n + 1 == c.count, true, &e);
      }
      arena_free(&a);
      if (!text_is_utf8(j.text, j.length)) continue;
      if (j.length != c.length || memcmp(j.text, c.text, c.length))
        fail_msg("%s, %zu: \"%.*s\", not \"%.*s\"", kinds[k].name, round, (int)j.length, j.text,
                 (int)c.length, c.text);
      compared++;
    }
    tokenizer_free(t);
  }
  assert_in_range(compared, rounds(ROUNDS), SIZE_MAX);
}

struct added {
  size_t kind;
  int32_t before, token;
  const char *text;
};

/* A character of several tokens; what has no text; a decoder that may change all of it. */
static void what_one_token_adds(void **state) {
  (void)state;
  static const struct added list[] = {
      {0, 1, 2, " ##b"}, {0, 1, 9, "<end>"},
      {0, 1, 77, NULL},  {1, 1, 2, "b"},
      {1, 3, 4, " not"}, {1, 3, 6, "."},
      {2, 2, 2, " a"},   {3, 2, 2, " a"},
      {3, 2, 5, "\xe4"}, {3, 2, 8, "A"},
      {4, 1, 2, " b"},   {4, 1, 3, "\xe4"},
      {4, 3, 4, "\xbd"}, {4, 1, 10, "\xbd\xa0\xe4"},
      {5, 2, 1, " a"},   {6, 3, 3, ""},
      {7, 2, 2, "▁a"},   {9, 2, 5, "<0xE4>"},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct tokenizer *t = make(&kinds[list[i].kind]);
    const struct detokenizer_terms terms = {.tokenizer = t};
    struct detokenizer u;
    struct tokenizer_text out;
    struct arena a;
    struct error e = {0};
    size_t characters;
    arena_init(&a, NULL);
    detokenizer_init(&u, &terms, &list[i].before, 1, 1, &a, &e);
    assert_int_equal(detokenizer_ahead(&u, &list[i].token, 1, &out, &characters, &a, &e),
                     STATUS_OK);
    if (!list[i].text)
      assert_null(out.bytes);
    else if (out.length != strlen(list[i].text) || memcmp(out.bytes, list[i].text, out.length))
      fail_msg("%zu: \"%.*s\", not \"%s\"", i, (int)out.length, out.bytes, list[i].text);
    assert_int_equal(characters, 0);
    arena_free(&a);
    tokenizer_free(t);
  }
}

/* --- what fails --- */

static void every_allocation_may_fail(void **state) {
  (void)state;
  struct tokenizer *t = make(&kinds[3]);
  const struct detokenizer_terms terms = {.tokenizer = t};
  const int32_t id[] = {2, 5, 6, 7, 3, 9};
  size_t failed = 0;
  for (size_t n = 1, over = 0; !over; n++) {
    struct detokenizer u;
    struct arena a;
    struct error e = {0};
    arena_init(&a, NULL);
    poisoned_fail(n);
    detokenizer_init(&u, &terms, id, 1, 4, &a, &e);
    for (size_t count = 1; count < 5 && !e.status; count++) {
      struct tokenizer_text out[2];
      size_t characters;
      detokenizer_ahead(&u, id + count, 2, out, &characters, &a, &e);
      detokenizer_add(&u, id + 1, count, count == 4, true, &e);
    }
    poisoned_fail(0);
    arena_free(&a);
    over = !e.status;
    if (!over) assert_int_equal(e.status, STATUS_OUT_OF_MEMORY);
    failed += !over;
  }
  assert_in_range(failed, 4, 1000);
  tokenizer_free(t);
}

static void a_text_that_is_longer_than_its_room(void **state) {
  (void)state;
  struct tokenizer *t = make(&kinds[0]);
  const struct detokenizer_terms terms = {.tokenizer = t};
  const int32_t id[] = {3, 4};
  struct detokenizer u;
  struct arena a;
  struct error e = {0};
  arena_init(&a, NULL);
  detokenizer_init(&u, &terms, id, 0, 2, &a, &e);
  u.room = 4;
  assert_int_equal(detokenizer_add(&u, id, 2, true, true, &e), STATUS_TOO_LARGE);
  memset(&e, 0, sizeof e);
  assert_int_equal(detokenizer_init(&u, &terms, id, 1, SIZE_MAX, &a, &e), STATUS_TOO_LARGE);
  arena_free(&a);
  tokenizer_free(t);
}

/* No room is known of a pattern's content that is put between any two characters, many times. */
static void room_that_is_not_known(void **state) {
  (void)state;
  char decoder[2048] = "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"}";
  for (size_t i = 0; i < 20; i++)
    strcat(decoder,
           ",{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"aaaaaaa\"}");
  strcat(decoder, "]}");
  const struct kind growing = {"growing", decoder, words, false};
  struct tokenizer *t = make(&growing);
  assert_true(tokenizer_text_max(t) > 1 << 30);
  assert_true(detokenizer_room(t, SIZE_MAX / 2) == SIZE_MAX);
  tokenizer_free(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_is_said),
      cmocka_unit_test(what_stops_it),
      cmocka_unit_test(nothing_stops_it_too_early),
      cmocka_unit_test(few_tokens_are_spelled_again),
      cmocka_unit_test(what_tokens_add),
      cmocka_unit_test(what_one_token_adds),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(a_text_that_is_longer_than_its_room),
      cmocka_unit_test(room_that_is_not_known),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
