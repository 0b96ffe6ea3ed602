/* test_sentencepiece: the golden texts of tests/golden/tokenizers, and models that are refused. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/document/file.h"
#include "config/tokenizer/tokenizer_folder.h"
#include "tests/support/poisoned.h"

/* --- golden texts --- */

static void encode(const struct tokenizer *t, const struct tokenizer_text *text, bool traced,
                   struct tokens *out, struct arena *a, struct error *e) {
  const struct tokenizer_options ask = {.special = true, .traced = traced};
  struct tokenizer_work work;
  tokenizer_work_init(&work, a, e);
  tokens_init(out, a, e);
  if (tokenizer_encode(t, &work, text, 1, &ask, out)) fail_msg("%s", e->detail);
}

/* Places cover the text in order, up to blanks that are removed. */
static void check_places(const struct tokens *tokens, const struct tokenizer_text *text) {
  uint32_t at = 0;
  for (size_t i = 0; i < tokens->count; i++) {
    const struct token *t = &tokens->token[i];
    assert_true(t->begin <= t->end && t->end <= text->length && t->end >= at);
    at = t->end;
  }
}

static void check_case(const struct tokenizer *t, const json_t *one, const char *folder) {
  const json_t *ids = json_object_get(one, "ids"), *given = json_object_get(one, "text"),
               *decoded = json_object_get(one, "decoded");
  const struct tokenizer_text text = {json_string_value(given), json_string_length(given)};
  struct error e = {0};
  struct arena a;
  struct tokens tokens, traced;
  arena_init(&a, NULL);
  encode(t, &text, false, &tokens, &a, &e);
  encode(t, &text, true, &traced, &a, &e);
  int32_t *id = arena_alloc(&a, tokens.count + 1, sizeof *id, &e);
  if (tokens.count != json_array_size(ids) || traced.count != tokens.count)
    fail_msg("%s: \"%s\": %zu tokens, not %zu", folder, text.bytes, tokens.count,
             json_array_size(ids));
  for (size_t i = 0; i < tokens.count; i++) {
    id[i] = tokens.token[i].id;
    if (id[i] != json_integer_value(json_array_get(ids, i)) || traced.token[i].id != id[i])
      fail_msg("%s: \"%s\": token %zu is %d", folder, text.bytes, i, id[i]);
  }
  check_places(&traced, &text);
  struct decoder_text out;
  assert_int_equal(tokenizer_decode(t, id, tokens.count, true, &a, &out, &e), STATUS_OK);
  if (out.length != json_string_length(decoded) ||
      memcmp(out.bytes ? out.bytes : "", json_string_value(decoded), out.length) != 0)
    fail_msg("%s: \"%s\": decoded to \"%.*s\"", folder, text.bytes, (int)out.length, out.bytes);
  arena_free(&a);
}

static void golden_texts_have_their_tokens(void **state) {
  (void)state;
  glob_t found;
  assert_int_equal(glob("tests/golden/tokenizers/spm-*", 0, NULL, &found), 0);
  assert_int_equal(found.gl_pathc, 6);
  for (size_t i = 0; i < found.gl_pathc; i++) {
    struct error e = {0};
    const char *file;
    struct tokenizer *t = tokenizer_folder(found.gl_pathv[i], false, &file, &e);
    if (!t) fail_msg("%s: %s", found.gl_pathv[i], e.detail);
    assert_string_equal(file, "spiece.model");
    char *path = file_path(found.gl_pathv[i], "cases.json");
    json_t *cases = file_json(path, &e), *one;
    free(path);
    assert_int_equal(json_array_size(cases), 300);
    size_t k;
    json_array_foreach(cases, k, one) check_case(t, one, found.gl_pathv[i]);
    json_decref(cases);
    tokenizer_free(t);
  }
  globfree(&found);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(golden_texts_have_their_tokens),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
