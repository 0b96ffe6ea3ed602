/* test_safetensors: every rule of the format with bytes that break it, and number conversion. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/checkpoint/checkpoint.h"
#include "config/checkpoint/floats.h"
#include "config/checkpoint/safetensors.h"
#include "tests/support/place.h"
#include "tests/support/safetensors_make.h"

/* Reads a whole file in memory, step by step. */
static struct safetensors *parse_file(const unsigned char *bytes, size_t size, struct error *e) {
  size_t length;
  if (size < SAFETENSORS_PREFIX) {
    error_set(e, STATUS_CONFIG, "too short");
    return NULL;
  }
  if (safetensors_measure(bytes, size, SAFETENSORS_HEADER_MAX, &length, e)) return NULL;
  const char *header = (const char *)bytes + SAFETENSORS_PREFIX;
  return safetensors_parse(header, length, size - SAFETENSORS_PREFIX - length, e);
}

static void parse_ill(const struct made *m, const char *detail) {
  struct error e = {0};
  struct safetensors *s = parse_file(m->bytes, m->size, &e);
  if (s) fail_msg("accepted, but should say \"%s\"", detail);
  assert_int_equal(e.status, STATUS_CONFIG);
  if (!strstr(e.detail, detail)) fail_msg("\"%s\" does not say \"%s\"", e.detail, detail);
}

static struct safetensors *parse_well(const struct made *m) {
  struct error e = {0};
  struct safetensors *s = parse_file(m->bytes, m->size, &e);
  assert_string_equal(e.detail, "");
  assert_non_null(s);
  return s;
}

static void header_ill(const char *header, size_t data, const char *detail) {
  struct made m;
  made_raw(&m, header, strlen(header), data);
  parse_ill(&m, detail);
  made_free(&m);
}

static void header_well(const char *header, size_t data, size_t count) {
  struct made m;
  made_raw(&m, header, strlen(header), data);
  struct safetensors *s = parse_well(&m);
  assert_int_equal(safetensors_count(s), count);
  safetensors_free(s);
  made_free(&m);
}

/* One tensor, `a`, with these three values as they are written. */
static void tensor_ill(const char *dtype, const char *shape, const char *offsets, size_t data,
                       const char *detail) {
  char header[512];
  snprintf(header, sizeof header, "{\"a\":{\"dtype\":%s,\"shape\":%s,\"data_offsets\":%s}}", dtype,
           shape, offsets);
  header_ill(header, data, detail);
}

#define A    "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"
#define B    "\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[8,11]}"
#define NONE "\"z\":{\"dtype\":\"F32\",\"shape\":[0,5],\"data_offsets\":[8,8]}"

static void a_valid_file_is_handed_out(void **state) {
  (void)state;
  struct made m;
  made_raw(&m,
           "{\"__metadata__\":{\"k\":\"v\"}," B "," A "," NONE
           ",\"s\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[11,12]}}   ",
           strlen("{\"__metadata__\":{\"k\":\"v\"}," B "," A "," NONE
                  ",\"s\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[11,12]}}   "),
           12);
  struct safetensors *s = parse_well(&m);
  assert_int_equal(safetensors_count(s), 4);
  assert_string_equal(safetensors_at(s, 0)->name, "a");
  assert_string_equal(safetensors_at(s, 1)->name, "z");
  const struct safetensors_entry *t = safetensors_at(s, 2);
  assert_string_equal(t->name, "b");
  assert_string_equal(t->dtype, "U8");
  assert_int_equal(t->rank, 1);
  assert_int_equal(t->dim[0], 3);
  assert_int_equal(t->count, 3);
  assert_int_equal(t->bytes, 3);
  assert_int_equal(t->begin, 8);
  assert_string_equal(safetensors_at(s, 3)->name, "s");
  assert_int_equal(safetensors_at(s, 3)->count, 1);
  assert_int_equal(safetensors_at(s, 3)->rank, 0);
  assert_int_equal(safetensors_at(s, 1)->count, 0);
  const char *value;
  assert_int_equal(safetensors_metadata_count(s), 1);
  assert_string_equal(safetensors_metadata_at(s, 0, &value), "k");
  assert_string_equal(value, "v");
  safetensors_free(s);
  made_free(&m);
}

static void small_and_odd_files_that_are_valid(void **state) {
  (void)state;
  header_well("{}", 0, 0);
  header_well("{} ", 0, 0);
  header_well("{\"__metadata__\":{}}", 0, 0);
  header_well("{ \"\":{\"shape\":[ ],\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, 1);
  header_well("{\"a\":{\"dtype\":\"F4_NEW\",\"shape\":[4],\"data_offsets\":[0,2]}}", 2, 1);
  header_well("{\"\xc3\xa4\":{\"dtype\":\"I8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, 1);
}

static void the_length_must_be_there_and_fit(void **state) {
  (void)state;
  struct made m;
  for (size_t size = 0; size < 8; size++) {
    made_raw(&m, "{}", 2, 0);
    unsigned char *cut = malloc(size + !size);
    assert_non_null(cut);
    memset(cut, 0, size + !size);
    struct made small = {.bytes = cut, .size = size};
    parse_ill(&small, "too short");
    free(cut);
    made_free(&m);
  }
  made_raw(&m, "{}", 2, 0);
  m.bytes[0] = 3;
  parse_ill(&m, "the header's length, 3, is over that of the file");
  memset(m.bytes, 0xff, 8);
  parse_ill(&m, "the header's length, 18446744073709551615, is over 100000000 bytes");
  made_free(&m);
  made_raw(&m, "", 0, 0);
  parse_ill(&m, "does not begin with '{'");
  made_free(&m);
}

static void the_header_must_be_one_json_object(void **state) {
  (void)state;
  header_ill(" {}", 0, "does not begin with '{'");
  header_ill("[]", 0, "does not begin with '{'");
  header_ill("\xef\xbb\xbf{}", 0, "does not begin with '{'");
  header_ill("{\"\xff\":1}", 0, "not UTF-8");
  header_ill("{\"\xed\xa0\x80\":1}", 0, "not UTF-8");
  header_ill("{", 0, "not valid JSON");
  header_ill("{}{}", 0, "not valid JSON");
  header_ill("{}\n", 0, "followed by something other than spaces");
  header_ill("{}\t ", 0, "followed by something other than spaces");
  header_ill("{" A "," A "}", 8, "not valid JSON");
  header_ill("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "not valid JSON");
  header_ill("{\"\\u0000\":1}", 0, "not valid JSON");
  struct made m;
  made_raw(&m, "{}\0", 3, 0);
  parse_ill(&m, "NUL byte");
  made_free(&m);
}

static void entries_must_be_written_as_the_format_has_them(void **state) {
  (void)state;
  header_ill("{\"__metadata__\":[]}", 0, "__metadata__ is not an object");
  header_ill("{\"__metadata__\":{\"k\":1}}", 0, "\"k\" is not a string");
  header_ill("{\"a\":1}", 0, "is not described by");
  header_ill("{\"a\":{}}", 0, "is not described by");
  header_ill("{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1],\"x\":1}}", 1,
             "is not described by");
  tensor_ill("1", "[1]", "[0,4]", 4, "is not described by");
  tensor_ill("\"F32\"", "4", "[0,4]", 4, "is not described by");
  tensor_ill("\"F32\"", "[1]", "4", 4, "is not described by");
  static const char *const bad[] = {"-1", "1.0", "1e0", "\"1\"", "null", "[1]", "9007199254740993"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char text[64];
    snprintf(text, sizeof text, "[1,%s]", bad[i]);
    tensor_ill("\"F32\"", text, "[0,4]", 4, "tensor \"a\": dimension 1 is not an integer");
    tensor_ill("\"F32\"", "[1]", text, 4, "tensor \"a\": data_offsets are not two integers");
  }
  tensor_ill("\"F32\"", "[1]", "[0]", 4, "data_offsets are not two integers");
  tensor_ill("\"F32\"", "[1]", "[0,4,4]", 4, "data_offsets are not two integers");
  tensor_ill("\"F32\"", "[1]", "[4,0]", 4, "its data end before they begin");
  tensor_ill("\"F32\"", "[1]", "[0,99999999999999999999]", 4, "not valid JSON");
  tensor_ill("\"F32\"", "[1,1,1,1,1,1,1,1,1]", "[0,4]", 4, "more than 8 dimensions");
  header_ill("{\"a\\nb\":1}", 0, "tensor \"a?b\"");
}

static void data_must_lie_without_gap_or_overlap(void **state) {
  (void)state;
  tensor_ill("\"F32\"", "[1]", "[4,8]", 8, "4 bytes before tensor \"a\" belong to no tensor");
  header_ill("{" A ",\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[9,10]}}", 10,
             "1 bytes before tensor \"b\" belong to no tensor");
  header_ill("{" A ",\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[7,8]}}", 8,
             "tensor \"b\" overlaps \"a\"");
  header_ill("{" A ",\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
             "tensor \"b\" overlaps \"a\"");
  header_ill("{" A ",\"b\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[4,4]}}", 8,
             "tensor \"b\" overlaps \"a\"");
}

static void shapes_must_fill_their_bytes_and_the_file(void **state) {
  (void)state;
  tensor_ill("\"F32\"", "[4294967296,4294967296]", "[0,4]", 4,
             "the product of its shape overflows");
  tensor_ill("\"F64\"", "[2305843009213693952]", "[0,0]", 0, "dimension 0 is not an integer");
  tensor_ill("\"F64\"", "[1073741824,2147483648]", "[0,0]", 0, "do not fill its 0 bytes");
  tensor_ill("\"F32\"", "[2]", "[0,4]", 4, "2 numbers of type F32 do not fill its 4 bytes");
  tensor_ill("\"F32\"", "[]", "[0,0]", 0, "1 numbers of type F32");
  header_ill("{" A "}", 7, "cut short: the tensors need 8 bytes of data, there are 7");
  header_ill("{" A "}", 9, "1 bytes follow the last tensor");
  header_ill("{}", 1, "1 bytes follow");
}

static const char *const valid_header = "{\"__metadata__\":{\"k\":\"v\"}," A "," B "," NONE "}  ";
enum { VALID_DATA = 11 };

static void a_file_cut_anywhere_is_refused(void **state) {
  (void)state;
  struct made m;
  made_raw(&m, valid_header, strlen(valid_header), VALID_DATA);
  safetensors_free(parse_well(&m));
  for (size_t size = 0; size < m.size; size++) {
    struct error e = {0};
    unsigned char *cut =
        malloc(size + !size); /* exactly as long, so that a read beyond it is detected */
    assert_non_null(cut);
    memcpy(cut, m.bytes, size);
    assert_null(parse_file(cut, size, &e));
    assert_int_equal(e.status, STATUS_CONFIG);
    free(cut);
  }
  made_free(&m);
}

/* A flipped bit may make another valid file (in a name, say). Then every tensor must lie within the
 * bytes. */
static void no_flipped_bit_leads_outside(void **state) {
  (void)state;
  struct made m;
  size_t refused = 0, bits = 8 * (8 + strlen(valid_header));
  made_raw(&m, valid_header, strlen(valid_header), VALID_DATA);
  for (size_t bit = 0; bit < bits; bit++) {
    struct error e = {0};
    m.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    struct safetensors *s = parse_file(m.bytes, m.size, &e);
    for (size_t i = 0; s && i < safetensors_count(s); i++) {
      const struct safetensors_entry *t = safetensors_at(s, i);
      assert_true(t->begin <= VALID_DATA && t->bytes <= VALID_DATA - t->begin);
    }
    refused += !s;
    assert_int_equal(e.status, s ? STATUS_OK : STATUS_CONFIG);
    safetensors_free(s);
    m.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
  }
  assert_true(refused > bits / 2);
  made_free(&m);
}

/* --- numbers --- */

static float one(enum floats_type type, uint64_t bits, size_t finite) {
  unsigned char bytes[9]; /* unaligned on purpose */
  float out;
  for (size_t i = 0; i < 8; i++) bytes[1 + i] = (unsigned char)(bits >> 8 * i);
  assert_int_equal(floats_convert(type, bytes + 1, 1, &out), finite);
  return out;
}

static void assert_bits(float value, uint32_t bits) {
  uint32_t is;
  memcpy(&is, &value, sizeof is);
  assert_int_equal(is, bits);
}

static void halves_are_exact(void **state) {
  (void)state;
  assert_bits(one(FLOAT_F16, 0x0000, 1), 0x00000000);
  assert_bits(one(FLOAT_F16, 0x8000, 1), 0x80000000);
  assert_bits(one(FLOAT_F16, 0x3c00, 1), 0x3f800000); /* 1 */
  assert_bits(one(FLOAT_F16, 0xc100, 1), 0xc0200000); /* -2.5 */
  assert_bits(one(FLOAT_F16, 0x7bff, 1), 0x477fe000); /* 65504, the largest */
  assert_bits(one(FLOAT_F16, 0x0400, 1), 0x38800000); /* 2^-14, the smallest normal */
  assert_bits(one(FLOAT_F16, 0x03ff, 1), 0x387fc000); /* the largest subnormal */
  assert_bits(one(FLOAT_F16, 0x8001, 1), 0xb3800000); /* -2^-24 */
  assert_bits(one(FLOAT_F16, 0x7c00, 0), 0x7f800000);
  assert_bits(one(FLOAT_F16, 0xfc00, 0), 0xff800000);
  assert_true(one(FLOAT_F16, 0x7e00, 0) != one(FLOAT_F16, 0x7e00, 0));
  assert_true(one(FLOAT_F16, 0x7c01, 0) != one(FLOAT_F16, 0x7c01, 0));
}

/* All halves, against their definition: sign, 2^(exponent - 15), fraction of 1024. */
static void every_half_is_its_definition(void **state) {
  (void)state;
  for (uint32_t bits = 0; bits < 0x10000; bits++) {
    int exponent = (int)(bits >> 10 & 31);
    if (exponent == 31) continue;
    double fraction = (bits & 1023) / 1024.0 + (exponent > 0);
    double scale = 1;
    for (int i = exponent > 0 ? exponent : 1; i < 15; i++) scale /= 2;
    for (int i = 15; i < exponent; i++) scale *= 2;
    float value = (float)((bits & 0x8000 ? -1 : 1) * fraction * scale);
    if (one(FLOAT_F16, bits, 1) != value) fail_msg("half %04x", bits);
  }
}

static void other_types_round_to_nearest_even(void **state) {
  (void)state;
  assert_bits(one(FLOAT_BF16, 0x3fc0, 1), 0x3fc00000);
  assert_bits(one(FLOAT_BF16, 0x7f80, 0), 0x7f800000);
  assert_bits(one(FLOAT_F32, 0x00000001, 1), 0x00000001);
  assert_bits(one(FLOAT_F32, 0xff800000, 0), 0xff800000);
  assert_bits(one(FLOAT_F64, 0x3ff0000010000000, 1), 0x3f800000); /* a tie, to even: down */
  assert_bits(one(FLOAT_F64, 0x3ff0000030000000, 1), 0x3f800002); /* a tie, to even: up */
  assert_bits(one(FLOAT_F64, 0x3ff0000010000001, 1), 0x3f800001);
  assert_bits(one(FLOAT_F64, 0x47efffffefffffff, 1), 0x7f7fffff); /* still the largest */
  assert_bits(one(FLOAT_F64, 0x47effffff0000000, 0), 0x7f800000); /* beyond */
  assert_bits(one(FLOAT_F64, 0x36a0000000000000, 1), 0x00000001); /* 2^-149 */
  assert_int_equal(floats_type_of("F32"), FLOAT_F32);
  assert_int_equal(floats_type_of("F16"), FLOAT_F16);
  assert_int_equal(floats_type_of("BF16"), FLOAT_BF16);
  assert_int_equal(floats_type_of("F64"), FLOAT_F64);
  assert_int_equal(floats_type_of("f32"), FLOAT_NONE);
  assert_int_equal(floats_type_of(""), FLOAT_NONE);
}

/* Many numbers at once give the same as each alone: the loops convert several at a time. */
static void many_numbers_are_converted_as_one_is(void **state) {
  (void)state;
  enum { COUNT = 0x10000 };
  unsigned char *bytes = malloc(8 * COUNT + 1), *at = bytes + 1; /* unaligned on purpose */
  float *out = malloc(COUNT * sizeof *out);
  assert_true(bytes && out);
  for (enum floats_type type = 0; type < FLOAT_NONE; type++) {
    const size_t size = floats_type_size(type);
    for (size_t i = 0; i < COUNT; i++) { /* all upper 16 bits, with others behind them */
      const uint64_t low = size > 2 ? i * 0x9e3779b97f4a7c15u >> (64 - 8 * (size - 2)) : 0;
      const uint64_t bits = (uint64_t)i << (8 * size - 16) | low;
      memcpy(at + i * size, &bits, size);
    }
    size_t finite = COUNT;
    for (size_t i = COUNT; i-- > 0;) {
      float alone;
      if (floats_convert(type, at + i * size, 1, &alone) == 0) finite = i;
      memcpy(out + i, &alone, sizeof alone);
    }
    float *all = malloc(COUNT * sizeof *all);
    assert_non_null(all);
    assert_int_equal(floats_convert(type, at, COUNT, all), finite);
    assert_true(finite > 0x4000 && finite < 0x8000);
    assert_memory_equal(all, out, COUNT * sizeof *all);
    free(all);
  }
  free(out);
  free(bytes);
}

static void the_first_number_that_is_not_finite_is_found(void **state) {
  (void)state;
  enum { COUNT = 2500 };
  float numbers[COUNT], out[COUNT];
  for (size_t i = 0; i < COUNT; i++) numbers[i] = (float)i;
  assert_int_equal(floats_convert(FLOAT_F32, numbers, COUNT, out), COUNT);
  assert_int_equal(floats_convert(FLOAT_F32, numbers, 0, out), 0);
  for (size_t i = COUNT; i-- > 0;) {
    numbers[i] = i % 2 ? INFINITY : -NAN;
    assert_int_equal(floats_convert(FLOAT_F32, numbers, COUNT, out), i);
    assert_memory_equal(out, numbers, sizeof out);
    if (i % 3) numbers[i] = 0; /* the others stay: the first one is reported */
  }
}

static int enter(void **state) { return place_make(state, "w.safetensors"); }

static void floats_are_refused_by_the_tensors_name(void **state) {
  const struct place *p = *state;
  static const unsigned char nan16[] = {0, 0x3c, 0, 0x7e}, big[] = {0, 0, 0, 0, 0, 0, 0xf0, 0x7f};
  struct made m = {0};
  float out[2];
  made_add_bytes(&m, "h", "F16", "[2]", nan16, sizeof nan16);
  made_add_bytes(&m, "d", "F64", "[1]", big, sizeof big);
  made_add_bytes(&m, "i", "I16", "[2]", nan16, sizeof nan16);
  struct error none = {0};
  made_finish(&m);
  made_write(&m, p->file);
  struct checkpoint *s = checkpoint_open(p->file, &none);
  assert_non_null(s);
  static const char *const details[][2] = {
      {"h", "tensor \"h\" holds a number that is not finite"},
      {"d", "tensor \"d\" holds a number that is not finite or outside the float32 range"},
      {"i", "tensor \"i\" is of type I16; supported: F32, F16, BF16, F64"}};
  for (size_t i = 0; i < 3; i++) {
    struct error e = {0};
    const struct checkpoint_entry *t = checkpoint_find(s, details[i][0]);
    assert_int_equal(checkpoint_read_floats(s, t, 0, t->count, out, &e), STATUS_CONFIG);
    assert_string_equal(e.detail, details[i][1]);
  }
  checkpoint_free(s);
  made_free(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_valid_file_is_handed_out),
      cmocka_unit_test(small_and_odd_files_that_are_valid),
      cmocka_unit_test(the_length_must_be_there_and_fit),
      cmocka_unit_test(the_header_must_be_one_json_object),
      cmocka_unit_test(entries_must_be_written_as_the_format_has_them),
      cmocka_unit_test(data_must_lie_without_gap_or_overlap),
      cmocka_unit_test(shapes_must_fill_their_bytes_and_the_file),
      cmocka_unit_test(a_file_cut_anywhere_is_refused),
      cmocka_unit_test(no_flipped_bit_leads_outside),
      cmocka_unit_test(halves_are_exact),
      cmocka_unit_test(every_half_is_its_definition),
      cmocka_unit_test(other_types_round_to_nearest_even),
      cmocka_unit_test(many_numbers_are_converted_as_one_is),
      cmocka_unit_test(the_first_number_that_is_not_finite_is_found),
      cmocka_unit_test_setup_teardown(floats_are_refused_by_the_tensors_name, enter, place_remove),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
