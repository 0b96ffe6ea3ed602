/* test_openapi: the OpenAPI document has each route, and is whole or not there at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "config/document/json_reserve.h"
#include "server/describe/openapi.h"
#include "server/route/routes.h"
#include "tests/support/poisoned.h"

enum { TRIES = 40 }; /* allocations of a sample that fail */

static void each_path_of_each_route_has_its_operation(void **state) {
  (void)state;
  struct openapi o = {0};
  size_t length, operations = 0, expected = 0;
  const char *text = openapi_text(&o, &length), *template;
  assert_non_null(text);
  assert_int_equal(length, strlen(text));
  json_t *document = json_loads(text, 0, NULL), *paths = json_object_get(document, "paths"), *item;
  assert_non_null(paths);
  json_object_foreach(paths, template, item) operations += json_object_size(item);
  for (unsigned r = 0; r < ROUTE_COUNT; r++) {
    const struct route_row *row = route_row((enum route)r);
    for (size_t i = 0; i < ROUTE_PATHS && row->path[i].name; i++, expected++) {
      item = json_object_get(json_object_get(paths, row->path[i].template),
                             row->computed ? "post" : "get");
      const char *name = json_string_value(json_object_get(item, "operationId"));
      if (!name || strcmp(name, row->path[i].name)) fail_msg("%s", row->path[i].template);
    }
  }
  assert_int_equal(operations, expected);
  json_decref(document);
  openapi_free(&o);
}

static void it_is_made_once(void **state) {
  (void)state;
  struct openapi o = {0};
  size_t first, second;
  const char *text = openapi_text(&o, &first);
  assert_ptr_equal(openapi_text(&o, &second), text);
  assert_int_equal(first, second);
  openapi_free(&o);
}

static void it_is_whole_or_not_there(void **state) {
  (void)state;
  struct openapi whole = {0}, none = {0}, part = {0};
  size_t length;
  poisoned_fail(0);
  const char *text = openapi_text(&whole, &length);
  const size_t allocations = poisoned_count();
  assert_true(allocations > 1000);
  for (size_t i = 0; i <= TRIES; i++) {
    poisoned_fail(i < TRIES ? 1 + i * (allocations - 1) / (TRIES - 1) : 0);
    struct openapi *o = i < TRIES ? &none : &part;
    const char *got = openapi_text(o, &length);
    poisoned_fail(0);
    if (got) assert_string_equal(got, text); /* an allocation that Jansson can do without */
    assert_true(got || i < TRIES);
    openapi_free(o);
    *o = (struct openapi){0};
  }
  openapi_free(&whole);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_path_of_each_route_has_its_operation),
      cmocka_unit_test(it_is_made_once),
      cmocka_unit_test(it_is_whole_or_not_there),
  };
  json_reserve_init();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
