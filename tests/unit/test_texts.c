/* test_texts: texts of JSON, however they are cut: one, lists, pairs, escapes, every mistake. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "server/json/texts_json.h"

static const struct texts_rule texts_or_pairs = {.field = "text", .max_items = 3},
                               documents = {.field = "text",
                                            .max_items = 3,
                                            .form = TEXTS_OF_A_LIST},
                               mixed = {.field = "text", .max_items = 3, .form = TEXTS_MIXED};

struct reading {
  struct arena arena;
  struct error error;
  const struct texts *texts; /* NULL: it has not ended */
  size_t used;
};

/* In chunks: one of `cut` bytes, then the rest; 0: byte by byte. */
static void read_cut(struct reading *r, const struct texts_rule *rule, const char *json,
                     size_t length, size_t cut, struct budget *budget) {
  bool complete = false;
  memset(r, 0, sizeof *r);
  arena_init(&r->arena, budget);
  struct texts_json *t = texts_json_new(rule, &r->arena, &r->error);
  for (size_t n; t && r->used < length && !complete && !r->error.status;) {
    n = cut == 0 ? 1 : r->used < cut ? cut - r->used : length - r->used;
    if (n > length - r->used) n = length - r->used;
    const size_t used = texts_json_feed(t, json + r->used, n, r->used, &complete, &r->error);
    assert_true(used == n || complete || r->error.status);
    r->used += used;
  }
  if (complete && !r->error.status) r->texts = texts_json_view(t);
}

struct expected {
  const char *json;
  size_t items;
  unsigned of_item;
  bool alone;
  const char *part[4];
};

static void check(const struct texts_rule *rule, const struct expected *x, size_t cut) {
  struct reading r;
  char text[256];
  const int length = snprintf(text, sizeof text, "%s , ", x->json);
  read_cut(&r, rule, text, (size_t)length, cut, NULL);
  if (!r.texts) fail_msg("%s, cut at %zu: %s", x->json, cut, r.error.detail);
  assert_int_equal(r.used, strlen(x->json));
  assert_int_equal(r.texts->items, x->items);
  assert_int_equal(r.texts->alone, x->alone);
  if (x->items) assert_int_equal(r.texts->of_item, x->of_item);
  for (size_t i = 0; i < x->items * x->of_item; i++) {
    const struct texts_part *p = &r.texts->part[i];
    assert_int_equal(p->at == TEXTS_NONE, x->part[i] == NULL);
    if (!x->part[i]) continue;
    assert_int_equal(p->length, strlen(x->part[i]));
    assert_memory_equal(r.texts->bytes + p->at, x->part[i], p->length);
  }
  arena_free(&r.arena);
}

static void texts_however_they_are_cut(void **state) {
  (void)state;
  static const struct expected list[] = {
      {"\"a text\"", 1, 1, true, {"a text"}},
      {"\"\"", 1, 1, true, {""}},
      {"[]", 0, 1, false, {NULL}},
      {"[ \"one\" , \"\",\"three\"]", 3, 1, false, {"one", "", "three"}},
      {"[[\"a\",\"b\"],[\"c\" , \"\"]]", 2, 2, false, {"a", "b", "c", ""}},
      {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", 1, 1, true, {"\"\\/\b\f\n\r\t"}},
      {"\"\\u0041\\u00e9\\u20ac\\uD83D\\ude00 é€😀\"", 1, 1, true, {"Aé€😀 é€😀"}},
      {"\"\\u007f\\u0080\\u07ff\\u0800\\uffff\\ud800\\udc00\\udbff\\udfff\"",
       1,
       1,
       true,
       {"\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"}},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    for (size_t cut = 0; cut <= strlen(list[i].json) + 1; cut++)
      check(&texts_or_pairs, &list[i], cut);
}

static void documents_and_mixed_lists(void **state) {
  (void)state;
  static const struct {
    const struct texts_rule *rule;
    struct expected is;
  } list[] = {
      {&documents, {"[]", 0, 1, false, {NULL}}},
      {&documents,
       {"[\"a\", { \"text\" : \"b\\n\" } ,{\"text\":\"\"}]", 3, 1, false, {"a", "b\n", ""}}},
      {&mixed, {"\"a\"", 1, 1, true, {"a"}}},
      {&mixed, {"[\"a\",\"b\"]", 2, 1, false, {"a", "b"}}},
      {&mixed, {"[[\"a\"],[\"b\",\"\"]]", 2, 2, false, {"a", NULL, "b", ""}}},
      {&mixed, {"[[\"\"]]", 1, 2, false, {"", NULL}}},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    for (size_t cut = 0; cut <= strlen(list[i].is.json) + 1; cut++)
      check(list[i].rule, &list[i].is, cut);
}

static void a_zero_byte_is_a_character(void **state) {
  (void)state;
  struct reading r;
  read_cut(&r, &texts_or_pairs, "\"a\\u0000b\"", 10, 4, NULL);
  assert_non_null(r.texts);
  assert_int_equal(r.texts->part[0].length, 3);
  assert_memory_equal(r.texts->bytes, "a\0b", 3);
  arena_free(&r.arena);
}

struct refused {
  const char *json;
  enum status status;
  const char *pointer, *words;
  size_t offset;
};

static void check_refused(const struct texts_rule *rule, const struct refused *x) {
  for (size_t cut = 0; cut <= strlen(x->json); cut++) {
    struct reading r;
    read_cut(&r, rule, x->json, strlen(x->json), cut, NULL);
    if (r.error.status != x->status || strcmp(r.error.pointer, x->pointer) != 0 ||
        !strstr(r.error.detail, x->words) ||
        (x->status == STATUS_INVALID_JSON && r.error.offset != x->offset))
      fail_msg("%s, cut at %zu: %d at %s, %zu: %s", x->json, cut, (int)r.error.status,
               r.error.pointer, r.error.offset, r.error.detail);
    arena_free(&r.arena);
  }
}

static void what_is_refused(void **state) {
  (void)state;
  static const struct refused list[] = {
      {"3", STATUS_INVALID_REQUEST, "/text", "expected a string", 0},
      {"null", STATUS_INVALID_REQUEST, "/text", "expected a string", 0},
      {"[true]", STATUS_INVALID_REQUEST, "/text/0", "expected a string", 0},
      {"[\"a\",{}]", STATUS_INVALID_REQUEST, "/text/1", "expected a string", 0},
      {"[\"a\",[\"b\",\"c\"]]", STATUS_INVALID_REQUEST, "/text/1", "expected a string, got a list",
       0},
      {"[[\"a\",\"b\"],\"c\"]", STATUS_INVALID_REQUEST, "/text/1",
       "texts and pairs cannot be mixed", 0},
      {"[[\"a\"]]", STATUS_INVALID_REQUEST, "/text/0", "a pair must have two strings", 0},
      {"[[]]", STATUS_INVALID_REQUEST, "/text/0", "a pair must have two strings", 0},
      {"[[\"a\",\"b\"],[\"a\",\"b\",\"c\"]]", STATUS_INVALID_REQUEST, "/text/1/2",
       "must have two strings, got a third", 0},
      {"[[[\"a\"]]]", STATUS_INVALID_REQUEST, "/text/0/0", "expected a string, got a list", 0},
      {"[\"a\",\"b\",\"c\",\"d\"]", STATUS_TOO_LARGE, "", "more than 3 texts", 0},
      {"[[\"a\",\"b\"],[\"a\",\"b\"],[\"a\",\"b\"],[\"a\",\"b\"]]", STATUS_TOO_LARGE, "",
       "more than 3 texts", 0},
      {"\"\\x\"", STATUS_INVALID_JSON, "", "invalid escape sequence", 2},
      {"\"\\ud800x\"", STATUS_INVALID_JSON, "", "invalid escape sequence", 7},
      {"\"\\udc00\"", STATUS_INVALID_JSON, "", "invalid escape sequence", 6},
      {"\"a\nb\"", STATUS_INVALID_JSON, "", "a control character", 2},
      {"\"\xff\"", STATUS_INVALID_JSON, "", "not UTF-8 (0xff)", 1},
      {"\"\xc3(\"", STATUS_INVALID_JSON, "", "", 2},
      {"[\"a\" \"b\"]", STATUS_INVALID_JSON, "", "',' or ']'", 5},
      {"[,\"b\"]", STATUS_INVALID_JSON, "", "a text", 1},
      {"[\"a\",]", STATUS_INVALID_JSON, "", "a text", 5},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) check_refused(&texts_or_pairs, &list[i]);
}

static void what_is_refused_of_documents(void **state) {
  (void)state;
  static const struct refused list[] = {
      {"\"a\"", STATUS_INVALID_REQUEST, "/text", "expected a list of strings", 0},
      {"{\"text\":\"a\"}", STATUS_INVALID_REQUEST, "/text", "expected a list of strings", 0},
      {"[1]", STATUS_INVALID_REQUEST, "/text/0", "or an object", 0},
      {"[\"a\",[\"b\"]]", STATUS_INVALID_REQUEST, "/text/1", "got a list", 0},
      {"[{}]", STATUS_INVALID_REQUEST, "/text/0", "one member", 0},
      {"[\"a\",{\"title\":1}]", STATUS_INVALID_REQUEST, "/text/1", "one member", 0},
      {"[{\"texts\":\"a\"}]", STATUS_INVALID_REQUEST, "/text/0", "one member", 0},
      {"[{\"text\":\"a\",\"b\":1}]", STATUS_INVALID_REQUEST, "/text/0", "one member", 0},
      {"[{\"text\":null}]", STATUS_INVALID_REQUEST, "/text/0", "must be a string", 0},
      {"[{\"text\":{}}]", STATUS_INVALID_REQUEST, "/text/0", "must be a string", 0},
      {"[\"a\",\"b\",\"c\",{\"text\":\"d\"}]", STATUS_TOO_LARGE, "", "more than 3 texts", 0},
      {"[{5:1}]", STATUS_INVALID_JSON, "", "a name", 2},
      {"[{\"te\nxt\":1}]", STATUS_INVALID_JSON, "", "a control character", 5},
      {"[{\"text\" \"a\"}]", STATUS_INVALID_JSON, "", "':'", 9},
      {"[{\"text\":}]", STATUS_INVALID_JSON, "", "a text", 9},
      {"[{\"text\":\"a\"]", STATUS_INVALID_JSON, "", "'}'", 12},
      {"[{\"text\":\"a\"},]", STATUS_INVALID_JSON, "", "a text", 14},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) check_refused(&documents, &list[i]);
}

static void what_is_refused_of_mixed_lists(void **state) {
  (void)state;
  static const struct refused list[] = {
      {"[[]]", STATUS_INVALID_REQUEST, "/text/0", "one or two strings", 0},
      {"[[\"a\"],\"b\"]", STATUS_INVALID_REQUEST, "/text/1", "cannot be mixed", 0},
      {"[[\"a\"],[\"a\",\"b\",\"c\"]]", STATUS_INVALID_REQUEST, "/text/1/2",
       "must have two strings, got a third", 0},
      {"[{\"text\":\"a\"}]", STATUS_INVALID_REQUEST, "/text/0", "a list of lists", 0},
      {"[[\"a\"],[\"b\"],[\"c\"],[\"d\"]]", STATUS_TOO_LARGE, "", "more than 3 texts", 0},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) check_refused(&mixed, &list[i]);
}

static void a_full_budget_at_every_step(void **state) {
  (void)state;
  char json[4000];
  struct budget budget;
  struct reading r;
  size_t n = (size_t)snprintf(json, sizeof json, "[\"");
  memset(json + n, 'x', 3000);
  snprintf(json + n + 3000, sizeof json - n - 3000, "\",\"b\"]");
  for (size_t limit = 0;; limit += 100) {
    budget_init(&budget, limit);
    read_cut(&r, &texts_or_pairs, json, strlen(json), 7, &budget);
    arena_free(&r.arena);
    assert_int_equal(budget.used, 0);
    if (!r.error.status) break;
    assert_string_equal(r.error.limit, "memory_budget_bytes");
    assert_true(limit < 100000);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(texts_however_they_are_cut),
      cmocka_unit_test(a_zero_byte_is_a_character),
      cmocka_unit_test(documents_and_mixed_lists),
      cmocka_unit_test(what_is_refused),
      cmocka_unit_test(what_is_refused_of_documents),
      cmocka_unit_test(what_is_refused_of_mixed_lists),
      cmocka_unit_test(a_full_budget_at_every_step),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
