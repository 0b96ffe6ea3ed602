/* test_npz: archives as NumPy writes them, and archives with each fault that has a message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/checkpoint/checkpoint.h"
#include "tests/support/npz_make.h"
#include "tests/support/place.h"

#define FLOATS_OF(shape) "{'descr': '<f4', 'fortran_order': False, 'shape': " shape ", }\n"

static int enter(void **state) { return place_make(state, "w.npz"); }

static struct checkpoint *open_well(const char *path) {
  struct error e = {0};
  struct checkpoint *c = checkpoint_open(path, &e);
  assert_string_equal(e.detail, "");
  assert_non_null(c);
  return c;
}

/* The message begins with the path, has it only once, and continues so. */
static void open_ill(const char *path, const char *detail) {
  struct error e = {0};
  struct checkpoint *c = checkpoint_open(path, &e);
  if (c) fail_msg("opened, but should say \"%s\"", detail);
  assert_int_equal(e.status, STATUS_CONFIG);
  const size_t length = strlen(path);
  assert_memory_equal(e.detail, path, length);
  assert_memory_equal(e.detail + length, ": ", 2);
  if (strncmp(e.detail + length + 2, detail, strlen(detail)) != 0)
    fail_msg("\"%s\" does not say \"%s\"", e.detail, detail);
  assert_null(strchr(e.detail, '\n'));
}

static void read_ill(struct checkpoint *c, const char *name, const char *detail) {
  struct error e = {0};
  const struct checkpoint_entry *t = checkpoint_find(c, name);
  assert_non_null(t);
  float *out = malloc(t->count * sizeof *out);
  assert_non_null(out);
  assert_int_equal(checkpoint_read_floats(c, t, 0, (size_t)t->count, out, &e), STATUS_CONFIG);
  assert_string_equal(e.detail, detail);
  free(out);
}

static void assert_floats(struct checkpoint *c, const char *name, const float *expected) {
  struct error e = {0};
  float out[16];
  const struct checkpoint_entry *t = checkpoint_find(c, name);
  assert_non_null(t);
  checkpoint_read_floats(c, t, 0, (size_t)t->count, out, &e);
  assert_string_equal(e.detail, "");
  assert_memory_equal(out, expected, t->count * sizeof *out);
}

/* --- what is right --- */

/* numpy.savez and savez_compressed, version 1.24: w, h in Fortran's order, d without dimensions, i
 * of integers, and a name that is not ASCII. */
static void archives_of_numpy_are_read(void **state) {
  (void)state;
  static const char *const paths[] = {"tests/golden/numpy.npz", "tests/golden/numpy-deflated.npz"};
  static const float w[] = {0, 1, 2, 3, 4, 5}, h[] = {0, 3, 1, 4, 2, 5}, d[] = {2.5}, b[] = {1, 2};
  for (size_t i = 0; i < 2; i++) {
    struct error e = {0};
    struct checkpoint *c = open_well(paths[i]);
    assert_int_equal(checkpoint_count(c), 5);
    const struct checkpoint_entry *t = checkpoint_find(c, "h");
    assert_string_equal(t->dtype, "F16");
    assert_true(t->by_columns);
    assert_int_equal(t->rank, 2);
    assert_int_equal(t->dim[0], 2);
    assert_int_equal(t->dim[1], 3);
    assert_false(checkpoint_find(c, "w")->by_columns);
    assert_int_equal(checkpoint_find(c, "d")->rank, 0);
    assert_floats(c, "w", w);
    assert_floats(c, "h", h);
    assert_floats(c, "d", d);
    assert_floats(c, "b/\xc3\xa9", b);
    assert_int_equal(checkpoint_check_tensor(checkpoint_find(c, "i"), &e), STATUS_CONFIG);
    assert_string_equal(e.detail, "tensor \"i\" is of type <i8; supported: F32, F16, BF16, F64");
    assert_null(checkpoint_find(c, "w.npy"));
    assert_string_equal(checkpoint_container(c), "an .npz archive");
    checkpoint_free(c);
  }
}

/* Ranges in any order give the same numbers: two arrays alternately, more arrays than are kept
 * open, backwards. */
static void ranges_may_be_read_in_any_order(void **state) {
  const struct place *p = *state;
  enum { ARRAYS = 6, ROWS = 300, COLUMNS = 200, PART = 7000 };
  static const int methods[] = {NPZ_STORED, NPZ_DEFLATED};
  static float out[ROWS * COLUMNS];
  for (size_t method = 0; method < 2; method++) {
    struct npz_made z = npz_make(p->file);
    for (char name[] = "0.npy"; name[0] < '0' + ARRAYS; name[0]++)
      npz_add(&z, name, npy_make_floats(ROWS, COLUMNS), methods[method]);
    npz_write(&z);
    struct checkpoint *c = open_well(p->file);
    struct error e = {0};
    for (size_t step = 0; step < 60; step++) {
      const struct checkpoint_entry *t = checkpoint_at(c, step * 5 % ARRAYS);
      const size_t first = step < 20 ? step / 2 % 8 * PART : (59 - step) * 1000;
      const size_t count = first + PART <= t->count ? PART : (size_t)t->count - first;
      assert_int_equal(checkpoint_read_floats(c, t, first, count, out, &e), STATUS_OK);
      for (size_t i = 0; i < count; i++)
        if (out[i] != 1.0f + (float)(first + i) / 16.0f) fail_msg("step %zu, %zu", step, i);
    }
    checkpoint_free(c);
  }
}

static void what_is_not_an_array_is_passed_over(void **state) {
  const struct place *p = *state;
  struct npz_made z = npz_make(p->file);
  npz_add(&z, "readme.txt", npy_make(1, "", "text", 4), NPZ_BZIP2);
  npz_add(&z, "w.npy", npy_make_floats(2, 2), NPZ_STORED);
  npz_add(&z, ".npy", npy_make_floats(1, 0), NPZ_STORED);
  npz_add(&z, "npy", npy_make_floats(1, 0), NPZ_STORED);
  npz_write(&z);
  struct checkpoint *c = open_well(p->file);
  assert_int_equal(checkpoint_count(c), 2);
  assert_non_null(checkpoint_find(c, "w"));
  assert_non_null(checkpoint_find(c, ""));
  checkpoint_free(c);
}

static void every_version_of_npy_is_read(void **state) {
  const struct place *p = *state;
  static const float numbers[] = {1, 2};
  struct npz_made z = npz_make(p->file);
  for (unsigned version = 1; version <= 3; version++) {
    char name[16];
    snprintf(name, sizeof name, "%u.npy", version);
    npz_add(&z, name, npy_make(version, FLOATS_OF("(2,)"), numbers, 8), NPZ_DEFLATED);
  }
  npz_write(&z);
  struct checkpoint *c = open_well(p->file);
  for (size_t i = 0; i < 3; i++) assert_floats(c, checkpoint_at(c, i)->name, numbers);
  checkpoint_free(c);
}

/* --- what is wrong --- */

static void write_one(const struct place *p, struct npy_made npy, int method) {
  struct npz_made z = npz_make(p->file);
  npz_add(&z, "w.npy", npy, method);
  npz_write(&z);
}

static void arrays_that_are_none_are_named(void **state) {
  const struct place *p = *state;
  const struct {
    struct npy_made npy;
    const char *detail;
  } cases[] = {
      {npy_make(4, "", "", 0), "is of .npy version 4.0; supported: 1.0, 2.0, 3.0"},
      {npy_make(1, "{}", "", 0), "its .npy header does not have all of descr, fortran_order and"},
      {npy_make(1, FLOATS_OF("(2,)"), "1234567", 7), "2 numbers of type F32 do not fill its 7"},
      {npy_make(1, FLOATS_OF("(2,)"), "123456789", 9), "2 numbers of type F32 do not fill its 9"},
      {npy_make(1, FLOATS_OF("(4611686018427387904,)"), "", 0),
       "4611686018427387904 numbers of type F32 do not fill its 0 bytes"},
      {npy_make(1, FLOATS_OF("(4294967296, 4294967296)"), "", 0),
       "the product of its shape overflows"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char detail[160];
    snprintf(detail, sizeof detail, "array \"w\": %s", cases[i].detail);
    write_one(p, cases[i].npy, i % 2 ? NPZ_DEFLATED : NPZ_STORED);
    open_ill(p->file, detail);
  }
  for (size_t size = 1, whole = 200; size < whole; size++) { /* cut within the member */
    struct npy_made npy = npy_make_floats(2, 2);
    whole = npy.size;
    npy.size = size;
    write_one(p, npy, NPZ_DEFLATED);
    open_ill(p->file, size < 10           ? "array \"w\": does not begin as a .npy file"
                      : size < whole - 16 ? "array \"w\": ends within its .npy header"
                                          : "array \"w\": 4 numbers of type F32 do not fill its ");
  }
}

static void arrays_that_cannot_be_unpacked_are_named(void **state) {
  const struct place *p = *state;
  write_one(p, npy_make_floats(2, 2), NPZ_BZIP2);
  open_ill(p->file,
           "array \"w\": is compressed by method 12 of zip; supported: stored (0), deflated (8)");
  struct npz_made z = npz_make(p->file);
  npz_add_encrypted(&z, "w.npy", npy_make_floats(2, 2));
  npz_write(&z);
  open_ill(p->file, "array \"w\": is encrypted");
}

static void only_matrices_lie_by_columns(void **state) {
  const struct place *p = *state;
  static const char *const types[] = {"<f4", "<f2", "<f8", "<i4"};
  static const char *const names[] = {"F32", "F16", "F64", "<i4"};
  struct npz_made z = npz_make(p->file);
  for (size_t i = 0; i < 4; i++) {
    char name[16], literal[96];
    const size_t size = i == 1 ? 2 : i == 2 ? 8 : 4;
    snprintf(name, sizeof name, "%zu.npy", i);
    snprintf(literal, sizeof literal, "{'descr': '%s', 'fortran_order': True, 'shape': (1, 1, 1)}",
             types[i]);
    npz_add(&z, name, npy_make(1, literal, "12345678", size), NPZ_STORED);
  }
  npz_write(&z);
  struct checkpoint *c = open_well(p->file);
  for (size_t i = 0; i < 4; i++) {
    char detail[160];
    const struct checkpoint_entry *t = checkpoint_at(c, i);
    assert_string_equal(t->dtype, names[i]);
    assert_true(t->by_columns);
    snprintf(detail, sizeof detail,
             i < 3 ? "tensor \"%zu\" has 3 dimensions in Fortran's order, which is supported only "
                     "for matrices"
                   : "tensor \"%zu\" is of type <i4; supported: F32, F16, BF16, F64",
             i);
    read_ill(c, t->name, detail);
  }
  checkpoint_free(c);
}

/* --- bytes changed after writing --- */

struct bytes {
  unsigned char at[4096];
  size_t size;
};

static struct bytes load(const char *path) {
  struct bytes b;
  FILE *in = fopen(path, "rb");
  assert_non_null(in);
  b.size = fread(b.at, 1, sizeof b.at, in);
  fclose(in);
  assert_true(b.size < sizeof b.at);
  return b;
}

static void store(const char *path, const struct bytes *b) {
  FILE *out = fopen(path, "wb");
  assert_non_null(out);
  assert_int_equal(fwrite(b->at, 1, b->size, out), b->size);
  fclose(out);
}

static unsigned char *find(struct bytes *b, const char *text, size_t size) {
  unsigned char *at = memmem(b->at, b->size, text, size);
  assert_non_null(at);
  return at;
}

static void damaged_numbers_are_told_by_their_checksum(void **state) {
  const struct place *p = *state;
  write_one(p, npy_make_floats(4, 4), NPZ_STORED);
  struct bytes b = load(p->file);
  find(&b, "}\n", 2)[2 + 5] ^= 1;
  store(p->file, &b);
  struct checkpoint *c = open_well(p->file);
  read_ill(c, "w", "tensor \"w\": does not match its checksum in the zip archive");
  checkpoint_free(c);
}

static void damaged_deflate_is_told(void **state) {
  const struct place *p = *state;
  write_one(p, npy_make_floats(40, 40), NPZ_DEFLATED);
  struct bytes b = load(p->file);
  memset(find(&b, "w.npy", 5) + 5 + b.size / 2, 0xff, 64);
  store(p->file, &b);
  struct checkpoint *c = open_well(p->file);
  struct error e = {0};
  float out[1600];
  assert_int_equal(checkpoint_read_floats(c, checkpoint_find(c, "w"), 0, 1600, out, &e),
                   STATUS_CONFIG);
  assert_memory_equal(e.detail, "tensor \"w\": ", 12);
  assert_non_null(strstr(e.detail, "the zip archive is damaged: "));
  checkpoint_free(c);
}

static void two_arrays_of_one_name_are_refused(void **state) {
  const struct place *p = *state;
  struct npz_made z = npz_make(p->file);
  npz_add(&z, "w.npy", npy_make_floats(1, 0), NPZ_STORED);
  npz_add(&z, "v.npy", npy_make_floats(1, 0), NPZ_STORED);
  npz_write(&z);
  struct bytes b = load(p->file);
  for (size_t i = 0; i + 5 <= b.size; i++)
    if (memcmp(b.at + i, "v.npy", 5) == 0) b.at[i] = 'w';
  store(p->file, &b);
  open_ill(p->file, "two arrays are called \"w\"");
}

enum { LOCAL_SIZE = 22, CENTRAL_PACKED = 20, CENTRAL_SIZE = 24 };

static void put32(unsigned char *at, uint32_t value) {
  for (size_t i = 0; i < 4; i++) at[i] = (unsigned char)(value >> 8 * i);
}

/* An archive that claims to inflate some hundred bytes to an array of 4 GB. */
static void few_bytes_that_are_said_to_be_many_are_refused(void **state) {
  const struct place *p = *state;
  static const char literal[] = FLOATS_OF("(1073741800,)");
  const uint32_t size = 4 * 1073741800u + 10 + sizeof literal - 1;
  static const int methods[] = {NPZ_STORED, NPZ_DEFLATED};
  for (size_t i = 0; i < 2; i++) {
    write_one(p, npy_make(1, literal, "", 0), methods[i]);
    struct bytes b = load(p->file);
    put32(find(&b, "PK\3\4", 4) + LOCAL_SIZE, size);
    put32(find(&b, "PK\1\2", 4) + CENTRAL_SIZE, size);
    store(p->file, &b);
    open_ill(p->file, "array \"w\": claims 4294967277 bytes, more than the archive can hold");
  }
  write_one(p, npy_make(1, literal, "", 0), NPZ_STORED);
  struct bytes b = load(p->file);
  put32(find(&b, "PK\1\2", 4) + CENTRAL_PACKED, size);
  put32(find(&b, "PK\1\2", 4) + CENTRAL_SIZE, size);
  store(p->file, &b);
  open_ill(p->file, "");
}

/* The directory gives another size than the stream has. */
static void an_array_ends_where_its_shape_does(void **state) {
  const struct place *p = *state;
  static const char *const shapes[] = {FLOATS_OF("(21,)"), FLOATS_OF("(19,)")};
  static const char *const details[] = {"tensor \"w\": ends before its last number",
                                        "tensor \"w\": has bytes after its last number"};
  static const unsigned char numbers[80];
  for (size_t i = 0; i < 2; i++) {
    write_one(p, npy_make(1, shapes[i], numbers, sizeof numbers), NPZ_DEFLATED);
    struct bytes b = load(p->file);
    const size_t size = 10 + strlen(shapes[i]) + (i == 0 ? 84 : 76);
    put32(find(&b, "PK\1\2", 4) + CENTRAL_SIZE, (uint32_t)size);
    store(p->file, &b);
    struct checkpoint *c = open_well(p->file);
    read_ill(c, "w", details[i]);
    checkpoint_free(c);
  }
}

static void archives_that_are_none_are_named(void **state) {
  const struct place *p = *state;
  static const char empty[22] = "PK\5\6";
  struct bytes b = {.size = sizeof empty};
  memcpy(b.at, empty, sizeof empty);
  store(p->file, &b);
  static const char none[] = "a zip archive with neither a member whose name ends with .npy";
  open_ill(p->file, none);
  struct npz_made z = npz_make(p->file);
  npz_add(&z, "data.pkl", npy_make(1, "", "", 0), NPZ_STORED);
  npz_write(&z);
  open_ill(p->file, none);
  write_one(p, npy_make_floats(2, 2), NPZ_STORED);
  b = load(p->file);
  b.size -= 30;
  store(p->file, &b);
  open_ill(p->file, "the zip archive has no directory at its end: cut short?");
  /* A directory of so many members that there is no memory for a list of them. */
  write_one(p, npy_make_floats(2, 2), NPZ_STORED);
  b = load(p->file);
  memset(find(&b, "PK\5\6", 4) + 8, 0xfe, 4);
  store(p->file, &b);
  open_ill(p->file, "the zip archive is damaged: ");
}

static void a_file_that_shrinks_is_told(void **state) {
  const struct place *p = *state;
  write_one(p, npy_make_floats(300, 300), NPZ_STORED);
  struct checkpoint *c = open_well(p->file);
  assert_int_equal(truncate(p->file, 1000), 0);
  read_ill(c, "w", "tensor \"w\": the file has become shorter while it was read");
  read_ill(c, "w", "tensor \"w\": the file has become shorter while it was read"); /* again */
  checkpoint_free(c);
}

int main(void) {
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, enter, place_remove)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(archives_of_numpy_are_read),
      IN_PLACE(ranges_may_be_read_in_any_order),
      IN_PLACE(what_is_not_an_array_is_passed_over),
      IN_PLACE(every_version_of_npy_is_read),
      IN_PLACE(arrays_that_are_none_are_named),
      IN_PLACE(arrays_that_cannot_be_unpacked_are_named),
      IN_PLACE(only_matrices_lie_by_columns),
      IN_PLACE(damaged_numbers_are_told_by_their_checksum),
      IN_PLACE(damaged_deflate_is_told),
      IN_PLACE(two_arrays_of_one_name_are_refused),
      IN_PLACE(few_bytes_that_are_said_to_be_many_are_refused),
      IN_PLACE(an_array_ends_where_its_shape_does),
      IN_PLACE(archives_that_are_none_are_named),
      IN_PLACE(a_file_that_shrinks_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
