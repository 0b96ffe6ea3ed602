/* test_npy: every rule for the header of a .npy file, with bytes that break it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/checkpoint/npy.h"

/* Reads from a copy of exactly this size, so that a read beyond it is detected. */
static enum status parse(const char *literal, size_t size, struct npy *out, struct error *e) {
  char *copy = malloc(size + !size);
  assert_non_null(copy);
  memcpy(copy, literal, size);
  npy_parse(copy, size, out, e);
  free(copy);
  return e->status;
}

static void ill(const char *literal, const char *detail) {
  struct error e = {0};
  struct npy about;
  if (parse(literal, strlen(literal), &about, &e) == STATUS_OK) fail_msg("accepted: %s", literal);
  assert_int_equal(e.status, STATUS_CONFIG);
  if (strcmp(e.detail, detail) != 0) fail_msg("%s: \"%s\", not \"%s\"", literal, e.detail, detail);
}

static struct npy well(const char *literal) {
  struct error e = {0};
  struct npy about;
  parse(literal, strlen(literal), &about, &e);
  if (e.status != STATUS_OK) fail_msg("%s: %s", literal, e.detail);
  return about;
}

static void what_numpy_writes_is_read(void **state) {
  (void)state;
  struct npy m = well("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }      \n");
  assert_string_equal(m.dtype, "F32");
  assert_int_equal(m.number, 4);
  assert_false(m.by_columns);
  assert_int_equal(m.rank, 2);
  assert_int_equal(m.dim[0], 2);
  assert_int_equal(m.dim[1], 3);
  assert_int_equal(m.count, 6);
  m = well("{'descr': '<f2', 'fortran_order': True, 'shape': (2, 3), }");
  assert_string_equal(m.dtype, "F16");
  assert_int_equal(m.number, 2);
  assert_true(m.by_columns);
  m = well("{\"shape\":(5,),\"fortran_order\":True,\"descr\":\"<f8\"}\n");
  assert_string_equal(m.dtype, "F64");
  assert_int_equal(m.number, 8);
  assert_false(m.by_columns); /* an array of one dimension has only one order */
  assert_int_equal(m.count, 5);
  m = well("{ 'shape' : ( ) , 'descr' : '>f4' , 'fortran_order' : False }");
  assert_string_equal(m.dtype, ">f4");
  assert_int_equal(m.number, 0);
  assert_int_equal(m.rank, 0);
  assert_int_equal(m.count, 1);
  m = well("{'descr': '|O', 'fortran_order': False, 'shape': (0, 18446744073709551615,), }");
  assert_string_equal(m.dtype, "|O");
  assert_int_equal(m.count, 0);
}

static void a_structured_type_is_passed_over(void **state) {
  (void)state;
  struct npy m = well("{'descr': [('a', '<f4'), ('b]', '<f4', (2, 2)), ('c', [(\"d'\", '|u1')])], "
                      "'fortran_order': False, 'shape': (2,), }\n");
  assert_string_equal(m.dtype, "structured");
  assert_int_equal(m.number, 0);
  assert_int_equal(m.count, 2);
  ill("{'descr': [('a'", "its .npy header has no closing bracket at byte 15");
  ill("{'descr': [('a)]", "its .npy header has no string without escapes at byte 12");
}

#define REST "'fortran_order': False, 'shape': (1,)"

static void other_literals_are_refused(void **state) {
  (void)state;
  ill("", "its .npy header has no dictionary at byte 0");
  ill("[]", "its .npy header has no dictionary at byte 0");
  ill("{}", "its .npy header does not have all of descr, fortran_order and shape");
  ill("{" REST "}", "its .npy header does not have all of descr, fortran_order and shape");
  ill("{'descr': '<f4', " REST, "its .npy header has no comma or closing brace at byte 54");
  ill("{'descr': '<f4', " REST ",", "its .npy header has no string at byte 55");
  ill("{'descr': '<f4', " REST "} x", "its .npy header has bytes after its dictionary");
  ill("{'descr': '<f4', " REST ", 'x': 1}", "its .npy header has no known key at byte 56");
  ill("{'descr': '<f4', 'descr': '<f4'}", "its .npy header has descr twice");
  ill("{'descr' '<f4'}", "its .npy header has no colon at byte 9");
  ill("{'descr': 4}", "its .npy header has no string at byte 10");
  ill("{'descr': 'F32'}", "its .npy header has no plain type at byte 10");
  ill("{'descr': ''}", "its .npy header has no plain type at byte 10");
  ill("{'descr': '<f4 '}", "its .npy header has no plain type at byte 10");
  ill("{'descr': '\xff'}", "its .npy header has no plain type at byte 10");
  ill("{'descr': '0123456789012345678901234567890123'}",
      "its .npy header has no plain type at byte 10");
  ill("{'descr': '\\x3c'}", "its .npy header has no string without escapes at byte 10");
  ill("{'descr': '<f4", "its .npy header has no string without escapes at byte 10");
  ill("{'fortran_order': 0}", "its .npy header has no True or False at byte 18");
  ill("{'fortran_order': Tru", "its .npy header has no True or False at byte 18");
  ill("{'shape': [1]}", "its .npy header has no tuple at byte 10");
  ill("{'shape': 1}", "its .npy header has no tuple at byte 10");
  ill("{'shape': (1)}", "its .npy header has no comma at byte 12");
  ill("{'shape': (1 2)}", "its .npy header has no comma at byte 13");
  ill("{'shape': (1, 2 3)}", "its .npy header has no comma or closing bracket at byte 16");
  ill("{'shape': (,)}", "its .npy header has no dimension at byte 11");
  ill("{'shape': (-1,)}", "its .npy header has no dimension at byte 11");
  ill("{'shape': (1.0,)}", "its .npy header has no comma at byte 12");
  ill("{'shape': (", "its .npy header has no dimension at byte 11");
  ill("{'shape': (18446744073709551616,)}", "its .npy header has a dimension beyond 64 bits");
  ill("{'shape': (4294967296, 4294967296)}", "the product of its shape overflows");
  ill("{'shape': (1,1,1,1,1,1,1,1,1)}", "has more than 8 dimensions");
  struct npy about;
  struct error e = {0};
  assert_int_equal(parse("{'descr': '<f\0'}", 16, &about, &e), STATUS_CONFIG);
}

static void measure(const char *bytes, size_t size, const char *detail) {
  struct error e = {0};
  size_t prefix, literal;
  unsigned char *copy = malloc(size + !size);
  assert_non_null(copy);
  memcpy(copy, bytes, size);
  npy_measure(copy, size, &prefix, &literal, &e);
  free(copy);
  assert_int_equal(e.status, STATUS_CONFIG);
  assert_string_equal(e.detail, detail);
}

static void versions_and_lengths(void **state) {
  (void)state;
  struct error e = {0};
  size_t prefix, literal;
  npy_measure((const unsigned char *)"\x93NUMPY\1\0\x76\1", 10, &prefix, &literal, &e);
  assert_int_equal(prefix, 10);
  assert_int_equal(literal, 0x176);
  npy_measure((const unsigned char *)"\x93NUMPY\2\0\x10\x27\0\0", 12, &prefix, &literal, &e);
  assert_int_equal(prefix, 12);
  assert_int_equal(literal, 10000);
  npy_measure((const unsigned char *)"\x93NUMPY\3\0\0\0\0\0", 12, &prefix, &literal, &e);
  assert_int_equal(literal, 0);
  assert_int_equal(e.status, STATUS_OK);
  measure("", 0, "does not begin as a .npy file");
  measure("\x93NUMPY\1\0\x76", 9, "does not begin as a .npy file");
  measure("\x93NUMPZ\1\0\x76\0", 10, "does not begin as a .npy file");
  measure("\x93NUMPY\2\0\x76\0\0", 11, "does not begin as a .npy file");
  measure("\x93NUMPY\4\0\0\0\0\0", 12, "is of .npy version 4.0; supported: 1.0, 2.0, 3.0");
  measure("\x93NUMPY\0\0\0\0\0\0", 12, "is of .npy version 0.0; supported: 1.0, 2.0, 3.0");
  measure("\x93NUMPY\1\1\0\0\0\0", 12, "is of .npy version 1.1; supported: 1.0, 2.0, 3.0");
  measure("\x93NUMPY\2\0\x11\x27\0\0", 12, "has a .npy header of 10001 bytes, more than 10000");
  measure("\x93NUMPY\1\0\xff\xff", 10, "has a .npy header of 65535 bytes, more than 10000");
  measure("\x93NUMPY\2\0\0\0\0\xff", 12, "has a .npy header of 4278190080 bytes, more than 10000");
}

/* A header that is cut anywhere is refused, unless only blanks are lost; no flipped bit makes a
 * read outside. */
static void a_literal_cut_or_flipped(void **state) {
  (void)state;
  char text[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n";
  const size_t size = strlen(text), whole = size - 3;
  struct npy about;
  for (size_t n = 0; n <= size; n++) {
    struct error e = {0};
    assert_int_equal(parse(text, n, &about, &e), n < whole ? STATUS_CONFIG : STATUS_OK);
  }
  for (size_t bit = 0; bit < 8 * size; bit++) {
    struct error e = {0};
    text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
    if (parse(text, size, &about, &e) == STATUS_OK) {
      assert_true(about.rank <= SAFETENSORS_RANK_MAX);
      assert_true(strlen(about.dtype) < NPY_DTYPE_SIZE);
    }
    text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_numpy_writes_is_read),
      cmocka_unit_test(a_structured_type_is_passed_over),
      cmocka_unit_test(other_literals_are_refused),
      cmocka_unit_test(versions_and_lengths),
      cmocka_unit_test(a_literal_cut_or_flipped),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
