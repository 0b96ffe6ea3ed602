/* test_checkpoint: indexes and their shards, files that are no checkpoints, and finding names among
 * many. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/checkpoint/checkpoint.h"
#include "config/document/file.h"
#include "tests/support/npz_make.h"
#include "tests/support/place.h"
#include "tests/support/safetensors_make.h"

static int enter(void **state) { return place_make(state, "w.index.json"); }

static const char *const shards[] = {"1.safetensors", "2.safetensors", "3.npz"};

static void path_of(const struct place *p, const char *name, char path[160]) {
  snprintf(path, 160, "%s/%s", p->folder, name);
}

static int leave(void **state) {
  const struct place *p = *state;
  for (size_t i = 0; i < 3; i++) {
    char path[160];
    path_of(p, shards[i], path);
    unlink(path);
  }
  return place_remove(state);
}

static void write_text(const char *path, const char *text) {
  FILE *out = fopen(path, "wb");
  assert_non_null(out);
  assert_int_equal(fwrite(text, 1, strlen(text), out), strlen(text));
  fclose(out);
}

static void finish(const struct place *p, const char *name, struct made *m) {
  char path[160];
  path_of(p, name, path);
  made_finish(m);
  made_write(m, path);
  made_free(m);
}

/* 1: a, b; 2: b with one row, c; 3: d. */
static void write_shards(const struct place *p) {
  struct made m = {0};
  char path[160];
  made_add(&m, "a", 2, 2);
  made_add(&m, "b", 3, 2);
  finish(p, shards[0], &m);
  made_add(&m, "b", 1, 2);
  made_add(&m, "c", 5, 0);
  finish(p, shards[1], &m);
  path_of(p, shards[2], path);
  struct npz_made z = npz_make(path);
  npz_add(&z, "d.npy", npy_make_floats(2, 2), NPZ_DEFLATED);
  npz_write(&z);
}

#define INDEX(map) "{\"metadata\":{\"total_size\":1},\"weight_map\":{" map "}}"

/* The message begins with the path, and has it only once. */
static void open_ill(const char *path, const char *detail) {
  struct error e = {0};
  struct checkpoint *c = checkpoint_open(path, &e);
  if (c) fail_msg("opened, but should say \"%s\"", detail);
  assert_int_equal(e.status, STATUS_CONFIG);
  const size_t length = strlen(path);
  assert_memory_equal(e.detail, path, length);
  if (strcmp(e.detail + length, detail) != 0) fail_msg("\"%s\", not \"%s\"", e.detail, detail);
}

static struct checkpoint *open_well(const char *path) {
  struct error e = {0};
  struct checkpoint *c = checkpoint_open(path, &e);
  assert_string_equal(e.detail, "");
  assert_non_null(c);
  return c;
}

static void an_index_says_where_tensors_are(void **state) {
  const struct place *p = *state;
  write_shards(p);
  write_text(p->file, INDEX("\"c\":\"2.safetensors\",\"d\":\"3.npz\",\"a\":\"1.safetensors\","
                            "\"b\":\"2.safetensors\""));
  struct checkpoint *c = open_well(p->file);
  assert_int_equal(checkpoint_count(c), 4);
  static const struct {
    const char *name;
    size_t count;
  } tensors[] = {{"a", 4}, {"b", 2}, {"c", 5}, {"d", 4}};
  for (size_t i = 0; i < 4; i++) {
    struct error e = {0};
    float out[8];
    const struct checkpoint_entry *t = checkpoint_find(c, tensors[i].name);
    assert_non_null(t);
    assert_int_equal(t->count, tensors[i].count);
    assert_int_equal(checkpoint_read_floats(c, t, 1, (size_t)t->count - 1, out, &e), STATUS_OK);
    for (size_t j = 1; j < t->count; j++) assert_true(out[j - 1] == 1.0f + (float)j / 16.0f);
  }
  assert_string_equal(checkpoint_container(c), "an index of shards");
  checkpoint_free(c);
  /* A tensor that the index does not name does not exist; an index needs no metadata, and its path
   * no folder. */
  assert_int_equal(chdir(p->folder), 0);
  write_text("w.index.json", "{\"weight_map\":{\"b\":\"1.safetensors\"}}");
  c = open_well("w.index.json");
  assert_int_equal(chdir("/"), 0);
  assert_int_equal(checkpoint_count(c), 1);
  assert_int_equal(checkpoint_find(c, "b")->count, 6);
  assert_null(checkpoint_find(c, "a"));
  checkpoint_free(c);
}

static void an_index_is_read_strictly(void **state) {
  const struct place *p = *state;
  write_shards(p);
  static const char *const cases[][2] = {
      {"", ", line 1, column 0: '[' or '{' expected near end of file"},
      {"[]", ": is not a JSON object"},
      {"{}", ": its weight_map names no tensor"},
      {"{\"we\\u009b\\u202e\xc3\xa9\":{}}",
       ": has a key \"we??\xc3\xa9\"; an index has metadata and weight_map"},
      {INDEX(""), ": its weight_map names no tensor"},
      {"{\"metadata\":1}", ": metadata is not an object"},
      {"{\"weight_map\":[]}", ": weight_map is not an object"},
      {"{\"weights\":{}}", ": has a key \"weights\"; an index has metadata and weight_map"},
      {"{\"we\\nights\":{}}", ": has a key \"we?ights\"; an index has metadata and weight_map"},
      {INDEX("\"a\":1"),
       ": the file of \"a\" must be named without a folder: it lies beside the index"},
      {INDEX("\"a\":\"\""),
       ": the file of \"a\" must be named without a folder: it lies beside the index"},
      {INDEX("\"a\":\".\""),
       ": the file of \"a\" must be named without a folder: it lies beside the index"},
      {INDEX("\"a\":\"..\""),
       ": the file of \"a\" must be named without a folder: it lies beside the index"},
      {INDEX("\"a\":\"/1.safetensors\""),
       ": the file of \"a\" must be named without a folder: it lies beside the index"},
      {INDEX("\"a\":\"x/../1.safetensors\""),
       ": the file of \"a\" must be named without a folder: it lies beside the index"},
      {INDEX("\"a\":\"4.safetensors\""), ": shard \"4.safetensors\": No such file or directory"},
      {INDEX("\"a\":\"w.index.json\""),
       ": shard \"w.index.json\": is JSON, but not an index of shards (*.index.json)"},
      {INDEX("\"a\":\"2.safetensors\""), ": shard \"2.safetensors\" has no tensor \"a\""},
      {INDEX("\"a\":\"1.safetensors\",\"e\\n\":\"3.npz\""),
       ": shard \"3.npz\" has no tensor \"e?\""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_text(p->file, cases[i][0]);
    open_ill(p->file, cases[i][1]);
  }
  write_text(p->file, INDEX("\"a\":\"1.safetensors\",\"a\":\"1.safetensors\""));
  struct error e = {0};
  assert_null(checkpoint_open(p->file, &e));
  assert_non_null(strstr(e.detail, "duplicate object key"));
}

static void a_shard_at_fault_is_named(void **state) {
  const struct place *p = *state;
  char path[160];
  write_shards(p);
  write_text(p->file, INDEX("\"a\":\"1.safetensors\",\"c\":\"2.safetensors\",\"d\":\"3.npz\""));
  struct checkpoint *c = open_well(p->file);
  for (size_t i = 0; i < 3; i++) {
    struct error e = {0};
    char detail[160];
    float out[8];
    static const char *const names[] = {"a", "c", "d"};
    const struct checkpoint_entry *t = checkpoint_find(c, names[i]);
    path_of(p, shards[i], path);
    assert_int_equal(truncate(path, 50), 0);
    assert_int_equal(checkpoint_read_floats(c, t, 0, (size_t)t->count, out, &e), STATUS_CONFIG);
    snprintf(detail, sizeof detail,
             "tensor \"%s\" in shard \"%s\": the file has become shorter while it was read",
             names[i], shards[i]);
    assert_string_equal(e.detail, detail);
  }
  checkpoint_free(c);
  open_ill(p->file,
           ": shard \"1.safetensors\": the header's length, 114, is over that of the file; "
           "is this safetensors?");
}

/* --- files that are no checkpoints --- */

static void what_is_no_file_is_told(void **state) {
  const struct place *p = *state;
  char path[160];
  open_ill("/dev/null", ": is not a regular file");
  path_of(p, "1.safetensors", path);
  open_ill(path, ": No such file or directory");
  assert_int_equal(mkfifo(path, 0600), 0); /* it has no writer: opening it must not wait */
  open_ill(path, ": is not a regular file");
  unlink(path);
  assert_int_equal(mkfifo(p->file, 0600), 0); /* an index neither */
  open_ill(p->file, ": is not a regular file");
  unlink(p->file);
  assert_int_equal(mkdir(p->file, 0700), 0);
  open_ill(p->file, ": is a directory without a safetensors file, an .npz archive, a PyTorch "
                    "file or an index of shards; it holds no printable name");
  rmdir(p->file);
  assert_int_equal(symlink(path, path), 0);
  open_ill(path, ": Too many levels of symbolic links");
  unlink(path);
  write_text(path, "");
  open_ill(path, ": too short for a safetensors file: 0 bytes");
  write_text(path, "PK\3\4");
  open_ill(path, ": too short for a safetensors file: 4 bytes");
  if (geteuid() != 0) { /* root may read every file */
    assert_int_equal(chmod(path, 0), 0);
    open_ill(path, ": Permission denied");
  }
}

/* Other kinds of files, and the advice for each. */
static void other_files_are_told_by_their_first_bytes(void **state) {
  const struct place *p = *state;
  char path[160];
  path_of(p, "1.safetensors", path);
#define OF(bytes) bytes, sizeof bytes - 1
#define TORCH                                                                                  \
  ": is a pickle outside a zip archive, as torch.save wrote before PyTorch 1.6, which is not " \
  "supported: load it with torch.load(..., weights_only=True) and save it again with torch.save"
  static const struct {
    const char *bytes;
    size_t size;
    const char *detail;
  } cases[] = {
      {OF("{\n  \"architectures\": [\"BertModel\"]\n}\n"),
       ": is JSON, but not an index of shards (*.index.json)"},
      {OF(" \n[[1, 2, 3]]"), ": is JSON, but not an index of shards (*.index.json)"},
      {OF("\x93NUMPY\1\0v\0{'descr': '<f4'"),
       ": is a .npy file with one array: save all arrays with numpy.savez"},
      {OF("\x89HDF\r\n\x1a\n"),
       ": is an HDF5 file, which is not supported: use safetensors or .npz"},
      {OF("GGUF\3\0\0\0\1\1\1\1"),
       ": is a GGUF file, which is not supported: use the safetensors version of the model"},
      {OF("version https://git-lfs.github.com/spec/v1\noid sha256:"),
       ": is a Git LFS pointer: run git lfs pull"},
      {OF("\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19."), TORCH},
      {OF("\x80\x05\x95\x10\1\1\1\1}\x94."), TORCH},
      {OF("\x80\x06\x95\x10\1\1\1\1"),
       ": the header's length, 72340173099435648, is over 100000000 bytes; is this safetensors?"},
      {OF("        "),
       ": the header's length, 2314885530818453536, is over 100000000 bytes; is this safetensors?"},
      {OF("{\0\0\0\0\0\0\0{}"),
       ": the header's length, 123, is over that of the file; is this safetensors?"},
      {OF("\2\0\0\0\0\0\0\0[]"), ": the header does not begin with '{'"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(cases[i].bytes, 1, cases[i].size, out), cases[i].size);
    fclose(out);
    open_ill(path, cases[i].detail);
  }
}

/* Of a long path the end is shown, with the reason behind it. */
static void a_long_path_leaves_room_for_the_reason(void **state) {
  (void)state;
  struct error e = {0};
  char path[1200] = "";
  while (strlen(path) < 1000) strcat(path, "/nowhere");
  strcat(path, "/end.safetensors");
  assert_null(checkpoint_open(path, &e));
  assert_non_null(strstr(e.detail, "/end.safetensors: No such file or directory"));
  assert_true(strlen(e.detail) < 200);
}

static void what_cannot_be_read_is_told(void **state) {
  (void)state;
  struct error e = {0};
  char byte;
  int folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  assert_true(folder >= 0);
  assert_int_equal(file_read_at(folder, 0, &byte, 1, &e), STATUS_CONFIG);
  assert_string_equal(e.detail, "the file cannot be read: Is a directory");
  close(folder);
}

static void a_safetensors_file_that_shrinks_is_told(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  struct error e = {0};
  float out[4];
  char path[160];
  path_of(p, "1.safetensors", path);
  made_add(&m, "a", 2, 2);
  finish(p, "1.safetensors", &m);
  struct checkpoint *c = open_well(path);
  assert_int_equal(truncate(path, 20), 0);
  checkpoint_read_floats(c, checkpoint_find(c, "a"), 0, 4, out, &e);
  assert_string_equal(e.detail, "tensor \"a\": the file has become shorter while it was read");
  checkpoint_free(c);
}

/* A file that is written to in place may have been read in parts of two versions; one that is
 * renamed over may not. */
static void a_file_that_is_written_to_is_told(void **state) {
  const struct place *p = *state;
  const struct timespec later[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
  struct error e = {0};
  char path[160];
  write_shards(p);
  write_text(p->file, INDEX("\"a\":\"1.safetensors\",\"c\":\"2.safetensors\""));
  struct checkpoint *c = open_well(p->file);
  assert_int_equal(checkpoint_check_unchanged(c, &e), STATUS_OK);
  path_of(p, shards[1], path);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(checkpoint_check_unchanged(c, &e), STATUS_OK);
  path_of(p, shards[0], path);
  assert_int_equal(utimensat(AT_FDCWD, path, later, 0), 0);
  assert_int_equal(checkpoint_check_unchanged(c, &e), STATUS_CONFIG);
  assert_non_null(strstr(e.detail, "was written to while it was read"));
  checkpoint_free(c);
}

static void bytes_in_memory_are_read_like_a_file(void **state) {
  (void)state;
  struct made m = {0};
  struct error e = {0};
  float out[2];
  made_add(&m, "a", 2, 2);
  made_finish(&m);
  struct checkpoint *c = checkpoint_view("own", m.bytes, m.size, &e);
  assert_non_null(c);
  assert_string_equal(checkpoint_path(c), "own");
  assert_int_equal(checkpoint_read_floats(c, checkpoint_find(c, "a"), 1, 2, out, &e), STATUS_OK);
  assert_true(out[0] == 1 + 1.0f / 16 && out[1] == 1 + 2.0f / 16);
  assert_int_equal(checkpoint_check_unchanged(c, &e), STATUS_OK);
  checkpoint_free(c);
  assert_null(checkpoint_view("own", m.bytes, m.size - 1, &e));
  assert_int_equal(e.status, STATUS_CONFIG);
  assert_memory_equal(e.detail, "own: ", 5);
  made_free(&m);
}

static bool ends_with_seven(const char *name) { return name[strlen(name) - 1] == '7'; }

/* By how they begin, and where they are marked; of t0 to t4999. */
static void names_are_listed(struct checkpoint *c, size_t all) {
  static const struct {
    const char *beginning;
    size_t count;
  } cases[] = {{"", 5000}, {"t", 5000},   {"t4", 1111}, {"t49", 111}, {"t4999", 1},
               {"s", 0},   {"t49990", 0}, {"u", 0},     {"t5000", 0}};
  struct error e = {0};
  size_t count;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct checkpoint_entry *const *found = checkpoint_behind(c, cases[i].beginning, &count);
    assert_int_equal(count, cases[i].count);
    for (size_t j = 0; j < count; j++)
      assert_memory_equal(found[j]->name, cases[i].beginning, strlen(cases[i].beginning));
  }
  assert_int_equal(checkpoint_marked_count(c), all);
  assert_ptr_equal(checkpoint_marked_at(c, 3), checkpoint_at(c, 3));
  for (int again = 0; again < 2; again++) {
    assert_int_equal(checkpoint_mark(c, ends_with_seven, &e), STATUS_OK);
    assert_int_equal(checkpoint_marked_count(c), all / 10);
  }
  for (size_t i = 0; i < all / 10; i++) {
    const struct checkpoint_entry *t = checkpoint_marked_at(c, i);
    assert_true(ends_with_seven(t->name));
    assert_true(i == 0 || checkpoint_marked_at(c, i - 1) < t);
  }
}

static void every_name_of_many_is_found(void **state) {
  const struct place *p = *state;
  enum { COUNT = 5000 };
  char *header = malloc(COUNT * 80), path[160], name[32];
  assert_non_null(header);
  size_t used = 0;
  for (size_t i = 0; i < COUNT; i++)
    used +=
        (size_t)sprintf(header + used,
                        "%c\"t%zu\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%zu,%zu]}",
                        i ? ',' : '{', i * 7919 % COUNT, i, i + 1);
  strcpy(header + used, "}");
  struct made m;
  made_raw(&m, header, used + 1, COUNT);
  path_of(p, "1.safetensors", path);
  made_write(&m, path);
  made_free(&m);
  free(header);
  struct checkpoint *c = open_well(path);
  assert_int_equal(checkpoint_count(c), COUNT);
  for (size_t i = 0; i < COUNT; i++) {
    snprintf(name, sizeof name, "t%zu", i);
    const struct checkpoint_entry *t = checkpoint_find(c, name);
    assert_non_null(t);
    assert_string_equal(t->name, name);
    snprintf(name, sizeof name, "t%zu ", i);
    assert_null(checkpoint_find(c, name));
  }
  assert_null(checkpoint_find(c, ""));
  assert_null(checkpoint_find(c, "u"));
  names_are_listed(c, COUNT);
  checkpoint_free(c);
}

int main(void) {
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, enter, leave)
  const struct CMUnitTest tests[] = {
      IN_PLACE(an_index_says_where_tensors_are),
      IN_PLACE(an_index_is_read_strictly),
      IN_PLACE(a_shard_at_fault_is_named),
      IN_PLACE(what_is_no_file_is_told),
      IN_PLACE(other_files_are_told_by_their_first_bytes),
      cmocka_unit_test(a_long_path_leaves_room_for_the_reason),
      cmocka_unit_test(what_cannot_be_read_is_told),
      IN_PLACE(a_safetensors_file_that_shrinks_is_told),
      IN_PLACE(a_file_that_is_written_to_is_told),
      cmocka_unit_test(bytes_in_memory_are_read_like_a_file),
      IN_PLACE(every_name_of_many_is_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
