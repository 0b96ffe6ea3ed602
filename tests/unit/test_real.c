/* test_real: reals in JSON text lose the digits that they do not need, and nothing else. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "server/text/real.h"

static void shortened(const char *text, const char *wanted) {
  char out[200];
  assert_true(strlen(text) < sizeof out);
  strcpy(out, text);
  assert_int_equal(real_shorten(out), strlen(wanted));
  assert_string_equal(out, wanted);
}

static void digits_that_are_not_needed_go(void **state) {
  (void)state;
  shortened("0.69999999999999996", "0.7");
  shortened("[-0.69999999999999996,0.10000000000000001,1.0]", "[-0.7,0.1,1.0]");
  shortened("{\"a\":1.0000000000000001e-5,\"b\":10000.0}", "{\"a\":1e-05,\"b\":10000.0}");
  shortened("500000.0", "500000.0");
  shortened("1.7976931348623157e308", "1.7976931348623157e308");
  shortened("0.29999999999999999,0.30000000000000004", "0.3,0.30000000000000004");
}

static void other_text_stays(void **state) {
  (void)state;
  shortened("", "");
  shortened("{\"n\":17,\"big\":12345678901234567,\"t\":true,\"e\":false,\"z\":null,\"l\":[]}",
            "{\"n\":17,\"big\":12345678901234567,\"t\":true,\"e\":false,\"z\":null,\"l\":[]}");
  shortened("\"0.69999999999999996\"", "\"0.69999999999999996\"");
  shortened("[\"a\\\"0.69999999999999996\\\\\",0.69999999999999996]",
            "[\"a\\\"0.69999999999999996\\\\\",0.7]");
}

/* Any double reads back the same from what Jansson writes, shortened. */
static void doubles_stay_the_same(void **state) {
  (void)state;
  uint64_t seed = 7;
  for (int i = 0; i < 20000; i++) {
    uint64_t bits = seed = seed * 6364136223846793005U + 1442695040888963407U;
    double x;
    bits ^= bits >> 29;
    memcpy(&x, &bits, sizeof x);
    if (i % 2) x = (double)(bits % 1000000) / 1000;
    if (!isfinite(x)) continue;
    json_t *real = json_real(x);
    char *text = json_dumps(real, JSON_ENCODE_ANY);
    const size_t before = strlen(text), after = real_shorten(text);
    assert_true(after <= before && after == strlen(text));
    assert_true(strtod(text, NULL) == x && strpbrk(text, ".e"));
    free(text);
    json_decref(real);
  }
}

static void floats_have_their_own_digits(void **state) {
  (void)state;
  const double of[] = {real_of_float(0.7F), real_of_float(0.35355338F), real_of_float(8)};
  assert_true(of[0] == 0.7 && of[1] == 0.35355338 && of[2] == 8);
  assert_true((float)real_of_float(FLT_MAX) == FLT_MAX && (float)real_of_float(1e-42F) == 1e-42F);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(digits_that_are_not_needed_go),
      cmocka_unit_test(other_text_stays),
      cmocka_unit_test(doubles_stay_the_same),
      cmocka_unit_test(floats_have_their_own_digits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
