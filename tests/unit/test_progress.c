/* test_progress: what is told while models are loaded, and when nothing is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/model/progress.h"

enum { GB = 1000000000, MB = 1000000, NEVER = 1000000000 };

struct heard {
  size_t begins, steps, ends;
  double share;
  char text[PROGRESS_TEXT_SIZE];
};

static void hear(void *of, const struct progress_news *news) {
  struct heard *h = of;
  h->begins += news->event == PROGRESS_BEGIN;
  h->steps += news->event == PROGRESS_REPORT;
  h->ends += news->event == PROGRESS_END;
  h->share = news->share;
  snprintf(h->text, sizeof h->text, "%s", news->text);
}

static struct progress listened(struct heard *h, unsigned every_ms) {
  *h = (struct heard){0};
  return (struct progress){.listener = {hear, h, every_ms}};
}

/* Begins to load models with these definitions. */
static void begin(struct progress *p, const char *models, uint64_t bytes) {
  json_t *definitions = json_loads(models, 0, NULL);
  assert_non_null(definitions);
  progress_begin(p, definitions, bytes);
  json_decref(definitions);
}

#define IN(file) "{\"checkpoint\":\"" file "\"}"

static void what_will_be_loaded_is_told_if_it_is_much(void **unused) {
  (void)unused;
  static const struct {
    const char *models;
    uint64_t bytes;
    const char *told; /* NULL: nothing */
  } cases[] = {
      {"{\"a\":" IN("x/model.safetensors") "}", 6440 * (uint64_t)MB,
       "loading 1 model from model.safetensors (6.4 GB as float32)"},
      {"{\"a\":" IN("a") ",\"b\":" IN("a") ",\"c\":{\"random\":{\"seed\":1}}}", 999 * MB,
       "loading 3 models from a (999 MB as float32)"},
      {"{\"a\":" IN("a") ",\"b\":" IN("b") ",\"c\":" IN("b") ",\"d\":" IN("a") "}", GB,
       "loading 4 models from 2 files (1.0 GB as float32)"},
      {"{\"a\":{\"random\":{\"seed\":1}}}", GB, NULL},
      {"{\"a\":" IN("a") "}", 60 * MB, NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct heard h;
    struct progress p = listened(&h, NEVER);
    begin(&p, cases[i].models, cases[i].bytes);
    assert_int_equal(h.begins, cases[i].told != NULL);
    assert_string_equal(h.text, cases[i].told ? cases[i].told : "");
    progress_tick(&p);
    progress_end(&p);
    assert_int_equal(h.steps + h.ends, 0); /* it was loaded at once */
  }
}

static void steps_say_how_far_it_is(void **unused) {
  (void)unused;
  struct heard h;
  struct progress p = listened(&h, 0);
  begin(&p, "{\"a\":" IN("a") ",\"b\":" IN("a") ",\"c\":" IN("a") "}", 6 * (uint64_t)GB);
  progress_tick(&p);
  assert_string_equal(h.text, "loaded 0 of 3 models, 0.0 of 6.0 GB, 0 s");
  progress_loaded(&p, GB + GB / 2);
  progress_tick(&p);
  assert_string_equal(h.text, "loaded 1 of 3 models, 1.5 of 6.0 GB, 0 s");
  assert_true(h.share == 0.25);
  assert_int_equal(h.steps, 2);
  progress_end(&p);
  assert_int_equal(h.ends, 1);
  begin(&p, "{\"a\":" IN("a") "}", 70 * MB); /* again, as a reload does */
  progress_tick(&p);
  assert_string_equal(h.text, "loaded 0 of 1 model, 0 of 70 MB, 0 s");
}

static void silence_is_for_good(void **unused) {
  (void)unused;
  struct heard h;
  struct progress p = listened(&h, 0), without = {0};
  begin(&p, "{\"a\":" IN("a") "}", GB);
  progress_silence(&p);
  progress_silence(&p);
  progress_tick(&p);
  progress_end(&p);
  assert_int_equal(h.begins, 1);
  assert_int_equal(h.steps + h.ends, 0);
  begin(&without, "{\"a\":" IN("a") "}", GB);
  progress_tick(&without);
  progress_end(&without);
  progress_begin(NULL, NULL, 1);
  progress_loaded(NULL, 1);
  progress_tick(NULL);
  progress_end(NULL);
  progress_silence(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_will_be_loaded_is_told_if_it_is_much),
      cmocka_unit_test(steps_say_how_far_it_is),
      cmocka_unit_test(silence_is_for_good),
  };
  cmocka_set_message_output(CM_OUTPUT_TAP);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
