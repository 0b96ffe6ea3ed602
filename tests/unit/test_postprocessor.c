/* test_postprocessor: what every type of post-processor puts around one text and two, and every way
 * to get one wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/tokenizer/postprocessor/postprocessor.h"
#include "tests/support/poisoned.h"

enum { WRITTEN = 500 };

#define BERT "{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",102],\"cls\":[\"[CLS]\",101]}"
#define ROBERTA(trims, leaves)                    \
  "{\"type\":\"RobertaProcessing\",\"sep\":[\"</" \
  "s>\",2],\"cls\":[\"<s>\",0],\"trim_offsets\":" trims ",\"add_prefix_space\":" leaves "}"
#define BYTES(trims, leaves) \
  "{\"type\":\"ByteLevel\",\"trim_offsets\":" trims ",\"add_prefix_space\":" leaves "}"
#define TEXT(id, type)    "{\"Sequence\":{\"id\":\"" id "\",\"type_id\":" type "}}"
#define SPECIAL(id, type) "{\"SpecialToken\":{\"id\":\"" id "\",\"type_id\":" type "}}"
#define TEMPLATE(single, pair)                                                                     \
  "{\"type\":\"TemplateProcessing\",\"single\":[" single "],\"pair\":[" pair "],"                  \
  "\"special_tokens\":{\"x\":{\"id\":\"x\",\"ids\":[7],\"tokens\":[\"x\"]},\"yz\":{\"id\":\"yz\"," \
  "\"ids\":[9,8],\"tokens\":[\"y\",\"z\"]},\"unused\":{\"id\":\"unused\",\"ids\":[99],\"tokens\":" \
  "[\"unused\"]}}}"
#define SEQUENCE(processors) "{\"type\":\"Sequence\",\"processors\":[" processors "]}"

static struct postprocessor *make(const char *json) {
  struct error e = {0};
  json_t *document = json ? json_loads(json, JSON_DECODE_ANY, NULL) : NULL;
  if (json) assert_non_null(document);
  struct postprocessor *f = postprocessor_new(document, &e);
  if (!f) fail_msg("%s: %s", json, e.detail);
  json_decref(document);
  return f;
}

/* Two tokens of one text, of which the second is a special one, and one of another. */
static const struct token of_first[] = {{.id = 31, .begin = 0, .end = 2},
                                        {.id = 32, .begin = 2, .end = 3, .special = true}},
                          of_second[] = {{.id = 41, .begin = 0, .end = 5}};

/* Writes each token as "id/text/type", with its bytes, and * where it is special. */
static void write_tokens(const struct postprocessor *f, bool pair, bool special,
                         char out[WRITTEN]) {
  struct arena a;
  struct error e = {0};
  struct tokens framed;
  struct tokens first = {.token = (struct token *)of_first, .count = 2, .room = 2},
                second = {.token = (struct token *)of_second, .count = 1, .room = 1};
  size_t used = 0;
  arena_init(&a, NULL);
  tokens_init(&framed, &a, &e);
  assert_int_equal(postprocessor_apply(f, &first, pair ? &second : NULL, special, &framed),
                   STATUS_OK);
  out[0] = '\0';
  for (size_t i = 0; i < framed.count; i++) {
    const struct token *t = &framed.token[i];
    used += (size_t)snprintf(out + used, WRITTEN - used, "[%d/%d/%d %u-%u%s]", t->id, t->text,
                             t->type, t->begin, t->end, t->special ? "*" : "");
    assert_true(used < WRITTEN);
  }
  arena_free(&a);
}

static void frames(const char *json, bool pair, bool special, const char *expected) {
  struct postprocessor *f = make(json);
  char found[WRITTEN];
  write_tokens(f, pair, special, found);
  if (strcmp(found, expected) != 0)
    fail_msg("%s: %s, not %s", json ? json : "none", found, expected);
  postprocessor_free(f);
}

static void counts(const char *json, size_t single, size_t pair, int64_t last) {
  struct postprocessor *f = make(json);
  assert_int_equal(postprocessor_count(f, false), single);
  assert_int_equal(postprocessor_count(f, true), pair);
  assert_int_equal(postprocessor_last(f), last);
  postprocessor_free(f);
}

static void trims(const char *json, bool is, bool leaves) {
  struct postprocessor *f = make(json);
  assert_true(postprocessor_trims(f) == is && postprocessor_leaves_first(f) == leaves);
  postprocessor_free(f);
}

/* --- what is put there --- */

static void nothing(void **state) {
  (void)state;
  static const char *const list[] = {NULL, "null", BYTES("true", "true"), SEQUENCE(""),
                                     SEQUENCE(SEQUENCE(BYTES("true", "true")))};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    frames(list[i], false, true, "[31/0/0 0-2][32/0/0 2-3*]");
    frames(list[i], true, true, "[31/0/0 0-2][32/0/0 2-3*][41/1/1 0-5]");
    frames(list[i], true, false, "[31/0/0 0-2][32/0/0 2-3*][41/1/1 0-5]");
    counts(list[i], 0, 0, -1);
  }
}

static void as_bert_does(void **state) {
  (void)state;
  frames(BERT, false, true, "[101/0/0 0-0*][31/0/0 0-2][32/0/0 2-3*][102/0/0 0-0*]");
  frames(BERT, true, true,
         "[101/0/0 0-0*][31/0/0 0-2][32/0/0 2-3*][102/0/0 0-0*][41/1/1 0-5][102/1/1 0-0*]");
  frames(BERT, true, false, "[31/0/0 0-2][32/0/0 2-3*][41/1/1 0-5]");
  counts(BERT, 2, 3, 102);
}

static void as_roberta_does(void **state) {
  (void)state;
  static const char json[] = ROBERTA("true", "true");
  frames(json, false, true, "[0/0/0 0-0*][31/0/0 0-2][32/0/0 2-3*][2/0/0 0-0*]");
  frames(json, true, true,
         "[0/0/0 0-0*][31/0/0 0-2][32/0/0 2-3*][2/0/0 0-0*][2/0/0 0-0*][41/1/0 0-5][2/1/0 0-0*]");
  frames(json, true, false, "[31/0/0 0-2][32/0/0 2-3*][41/1/0 0-5]");
  counts(json, 2, 4, 2);
}

static void as_a_template_says(void **state) {
  (void)state;
  static const char json[] =
      TEMPLATE(SPECIAL("yz", "3") "," TEXT("A", "2") "," SPECIAL("x", "0"),
               SPECIAL("x", "0") "," TEXT("B", "1") "," SPECIAL("x", "1") "," TEXT("A", "255"));
  frames(json, false, true, "[9/0/3 0-0*][8/0/3 0-0*][31/0/2 0-2][32/0/2 2-3*][7/0/0 0-0*]");
  frames(json, true, true, "[7/0/0 0-0*][41/1/1 0-5][7/1/1 0-0*][31/0/255 0-2][32/0/255 2-3*]");
  frames(json, true, false, "[41/1/1 0-5][31/0/255 0-2][32/0/255 2-3*]");
  counts(json, 3, 2, 9);
  frames(TEMPLATE(TEXT("A", "0") "," TEXT("A", "1"), ""), false, true,
         "[31/0/0 0-2][32/0/0 2-3*][31/0/1 0-2][32/0/1 2-3*]");
  frames(TEMPLATE(TEXT("A", "0"), ""), true, true, "");
}

static void sequences(void **state) {
  (void)state;
  static const char json[] = SEQUENCE(BYTES("true", "false") "," BERT);
  frames(json, false, true, "[101/0/0 0-0*][31/0/0 0-2][32/0/0 2-3*][102/0/0 0-0*]");
  trims(json, true, false);
}

static void blanks_are_taken_off(void **state) {
  (void)state;
  trims(NULL, false, false);
  trims(BERT, false, false);
  trims(BYTES("true", "true"), true, true);
  trims(BYTES("false", "true"), false, true);
  trims(ROBERTA("true", "false"), true, false);
  trims("{\"type\":\"ByteLevel\",\"trim_offsets\":true,\"add_prefix_space\":false,"
        "\"use_regex\":true}",
        true, false);
}

/* --- what is refused --- */

static void mistakes_are_named(void **state) {
  (void)state;
  static const struct {
    const char *json, *detail;
  } list[] = {
      {"[]", "is not an object"},
      {"{\"type\":\"Bert\"}", "the type \"Bert\" is not supported; supported: BertProcessing, "
                              "ByteLevel, RobertaProcessing, Sequence and TemplateProcessing"},
      {"{\"type\":\"TemplateProcesing\"}",
       "the type \"TemplateProcesing\" is not supported (did you mean \"TemplateProcessing\"?)"},
      {"{\"type\":\"BertProcessing\",\"sep\":[\"a\",1]}",
       "BertProcessing: cls: needs a list of a token and its id, and is missing"},
      {"{\"type\":\"BertProcessing\",\"sep\":[\"a\"],\"cls\":[\"a\",1]}",
       "BertProcessing: sep: needs a list of a token and its id"},
      {"{\"type\":\"BertProcessing\",\"sep\":[\"a\",-1],\"cls\":[\"a\",1]}",
       "BertProcessing: sep: needs a list of a token and its id"},
      {"{\"type\":\"BertProcessing\",\"sep\":[\"a\",1],\"cls\":[\"a\",2147483648]}",
       "BertProcessing: cls: needs a list of a token and its id"},
      {"{\"type\":\"BertProcessing\",\"sep\":[1,\"a\"],\"cls\":[\"a\",1]}",
       "BertProcessing: sep: needs a list"},
      {"{\"type\":\"BertProcessing\",\"sep\":[\"a\",1],\"cls\":[\"a\",1],\"seq\":1}",
       "the member \"seq\" is not known (did you mean \"sep\"?)"},
      {ROBERTA("1", "true"), "RobertaProcessing: trim_offsets: needs true or false"},
      {ROBERTA("true", "null"), "RobertaProcessing: add_prefix_space: needs true or false"},
      {"{\"type\":\"ByteLevel\"}", "ByteLevel: trim_offsets: needs true or false, and is missing"},
      {"{\"type\":\"ByteLevel\",\"trim_offsets\":true,\"add_prefix_space\":false,\"use_regex\":0}",
       "ByteLevel: use_regex: needs true or false"},
      {"{\"type\":\"TemplateProcessing\"}",
       "TemplateProcessing: special_tokens: needs an object, and is missing"},
      {"{\"type\":\"TemplateProcessing\",\"special_tokens\":{},\"single\":[]}",
       "TemplateProcessing: pair: needs a list, and is missing"},
      {TEMPLATE("", "1"), "TemplateProcessing: pair, 0: needs {\"Sequence\": ...} or"},
      {TEMPLATE("{}", ""), "TemplateProcessing: single, 0: needs {\"Sequence\": ...} or"},
      {TEMPLATE("{\"Sequence\":{},\"a\":1}", ""), "TemplateProcessing: single, 0: needs"},
      {TEMPLATE(TEXT("A", "0") "," TEXT("C", "0"), ""),
       "TemplateProcessing: single, 1: id: needs one of A, B"},
      {TEMPLATE(TEXT("B", "0"), ""),
       "TemplateProcessing: single, 0: id: is B, but there is no second text"},
      {TEMPLATE(TEXT("A", "256"), ""),
       "TemplateProcessing: single, 0: type_id: needs an integer from 0 to 255"},
      {TEMPLATE("{\"SpecialToken\":{\"type_id\":0}}", ""),
       "TemplateProcessing: single, 0: id: needs a string, and is missing"},
      {TEMPLATE(SPECIAL("y", "0"), ""),
       "TemplateProcessing: single, 0: \"y\" is not one of special_tokens"},
      {"{\"type\":\"TemplateProcessing\",\"special_tokens\":{\"x\":{\"ids\":[1],\"tokens\":[]}},"
       "\"single\":[" SPECIAL("x", "0") "],\"pair\":[]}",
       "TemplateProcessing: single, 0: \"x\": has not as many ids as tokens"},
      {"{\"type\":\"TemplateProcessing\",\"special_tokens\":{\"x\":{\"ids\":[\"1\"],\"tokens\":"
       "[\"a\"]}},\"single\":[" SPECIAL("x", "0") "],\"pair\":[]}",
       "TemplateProcessing: single, 0: \"x\": ids: needs integers from 0 to 2147483647"},
      {"{\"type\":\"TemplateProcessing\",\"special_tokens\":{\"x\":{}},\"single\":[" SPECIAL(
           "x", "0") "],\"pair\":[]}",
       "TemplateProcessing: single, 0: ids: needs a list, and is missing"},
      {SEQUENCE("1"), "Sequence: processors, 0: is not an object"},
      {SEQUENCE(BERT "," BERT), "Sequence: processors, 1: BertProcessing: a second one that puts "
                                "special tokens there is not supported"},
      {"{\"type\":\"Sequence\"}", "Sequence: processors: needs a list, and is missing"},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct error e = {0};
    json_t *json = json_loads(list[i].json, 0, NULL);
    assert_non_null(json);
    assert_null(postprocessor_new(json, &e));
    assert_int_equal(e.status, STATUS_CONFIG);
    if (strncmp(e.detail, list[i].detail, strlen(list[i].detail)) != 0)
      fail_msg("%s: %s, not %s", list[i].json, e.detail, list[i].detail);
    json_decref(json);
  }
  postprocessor_free(NULL);
}

static void sequences_nest_too_deep(void **state) {
  (void)state;
  struct error e = {0};
  json_t *json = json_loads(BERT, 0, NULL);
  for (int i = 0; i < 40; i++) json = json_pack("{sss[o]}", "type", "Sequence", "processors", json);
  assert_null(postprocessor_new(json, &e));
  assert_int_equal(e.status, STATUS_CONFIG);
  json_decref(json);
}

/* --- memory --- */

static void no_memory_at_any_step(void **state) {
  (void)state;
  json_t *json = json_loads(ROBERTA("true", "true"), 0, NULL);
  size_t n = 0;
  for (struct postprocessor *f = NULL; !f;) {
    struct error e = {0};
    poisoned_fail(++n);
    f = postprocessor_new(json, &e);
    poisoned_fail(0);
    assert_true(f || e.status == STATUS_OUT_OF_MEMORY);
    postprocessor_free(f);
  }
  assert_int_equal(n, 5);
  json_decref(json);
}

static void a_full_budget_at_every_step(void **state) {
  (void)state;
  enum { TOKENS = 5000 };
  struct postprocessor *f = make(BERT);
  struct token *token = calloc(TOKENS, sizeof *token);
  const struct tokens text = {.token = token, .count = TOKENS, .room = TOKENS};
  bool done = false;
  assert_non_null(token);
  for (size_t limit = 0; !done; limit += 5000) {
    struct budget budget;
    struct arena a;
    struct error e = {0};
    struct tokens out;
    budget_init(&budget, limit);
    arena_init(&a, &budget);
    tokens_init(&out, &a, &e);
    done = postprocessor_apply(f, &text, &text, true, &out) == STATUS_OK;
    if (!done) assert_string_equal(e.limit, "memory_budget_bytes");
    if (done) assert_int_equal(out.count, 2 * TOKENS + 3);
    arena_free(&a);
    assert_int_equal(atomic_load(&budget.used), 0);
    assert_true(limit < 1 << 20);
  }
  free(token);
  postprocessor_free(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing),
      cmocka_unit_test(as_bert_does),
      cmocka_unit_test(as_roberta_does),
      cmocka_unit_test(as_a_template_says),
      cmocka_unit_test(sequences),
      cmocka_unit_test(blanks_are_taken_off),
      cmocka_unit_test(mistakes_are_named),
      cmocka_unit_test(sequences_nest_too_deep),
      cmocka_unit_test(no_memory_at_any_step),
      cmocka_unit_test(a_full_budget_at_every_step),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
