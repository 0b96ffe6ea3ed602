/* test_checkpoint_folder: which file of a folder is the checkpoint. */
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
#include "config/checkpoint/checkpoint_folder.h"

enum { NAMES_MOST = 24 };

/* A folder, and the names of the files in it. */
struct filled {
  char folder[64];
  size_t count;
  char name[NAMES_MOST][160];
};

static int enter(void **state) {
  struct filled *f = calloc(1, sizeof *f);
  strcpy(f->folder, "/tmp/attend-test-XXXXXX");
  *state = f;
  return mkdtemp(f->folder) ? 0 : -1;
}

static void path_of(const struct filled *f, const char *name, char path[256]) {
  snprintf(path, 256, "%s/%s", f->folder, name);
}

static void empty(struct filled *f) {
  char path[256];
  for (size_t i = 0; i < f->count; i++) {
    path_of(f, f->name[i], path);
    unlink(path);
  }
  f->count = 0;
}

static int leave(void **state) {
  struct filled *f = *state;
  empty(f);
  const int left = rmdir(f->folder);
  free(f);
  return left;
}

static void add(struct filled *f, const char *name, const void *bytes, size_t size) {
  char path[256];
  path_of(f, name, path);
  FILE *out = fopen(path, "wb");
  assert_non_null(out);
  assert_int_equal(fwrite(bytes, 1, size, out), size);
  fclose(out);
  snprintf(f->name[f->count++], sizeof *f->name, "%s", name);
}

/* `names` are separated by blanks. The folder means the first of them. */
static void means_the_first(struct filled *f, const char *names) {
  char text[256], *rest = NULL, first[160] = "", wanted[256];
  struct error e = {0};
  snprintf(text, sizeof text, "%s", names);
  for (char *name = strtok_r(text, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
    if (!*first) snprintf(first, sizeof first, "%s", name);
    add(f, name, "", 0);
  }
  path_of(f, first, wanted);
  for (int slash = 0; slash < 2; slash++) {
    char folder[80];
    snprintf(folder, sizeof folder, "%s%s", f->folder, slash ? "/" : "");
    char *path = checkpoint_folder_file(folder, &e);
    assert_string_equal(e.detail, "");
    assert_string_equal(path, wanted);
    free(path);
  }
  empty(f);
}

static void a_folder_means_one_file(void **state) {
  struct filled *f = *state;
  means_the_first(f,
                  "model.safetensors.index.json model.safetensors a.npz a.safetensors.index.json");
  means_the_first(f, "model.safetensors adapter.safetensors pytorch_model.bin config.json x.npz");
  means_the_first(f, "weights.safetensors config.json vocab.txt pytorch_model.bin");
  means_the_first(f, "layer.npz .hidden.npz");
  means_the_first(f, "x.safetensors.index.json config.json");
  means_the_first(f, "pytorch_model.bin training_args.bin optimizer.pt");
  means_the_first(f, "pytorch_model.bin.index.json pytorch_model.bin pytorch_model-00001.bin");
  means_the_first(f, "x.bin.index.json config.json");
  means_the_first(f, "net.pth config.json");
}

static void refused(struct filled *f, const char *detail) {
  struct error e = {0};
  char whole[700];
  assert_null(checkpoint_open(f->folder, &e));
  assert_int_equal(e.status, STATUS_CONFIG);
  snprintf(whole, sizeof whole, "%s: %s", f->folder, detail);
  assert_string_equal(e.detail, whole);
  empty(f);
}

#define NONE                                                                                   \
  "is a directory without a safetensors file, an .npz archive, a PyTorch file or an index of " \
  "shards; it holds "

static void a_folder_that_does_not_tell_is_listed(void **state) {
  struct filled *f = *state;
  char name[160];
  refused(f, NONE "no printable name");
  add(f, "b.npz", "", 0);
  add(f, "a.safetensors", "", 0);
  add(f, "config.json", "", 0);
  refused(f, "is a directory with several checkpoints, name one: a.safetensors, b.npz");
  for (int i = 12; i > 0; i--) {
    snprintf(name, sizeof name, "m-%02d.safetensors", i);
    add(f, name, "", 0);
  }
  refused(f, "is a directory with several checkpoints, name one: m-01.safetensors, "
             "m-02.safetensors, m-03.safetensors, m-04.safetensors, m-05.safetensors and 7 more");
  add(f, "vocab.txt", "", 0);
  add(f, "config.json", "", 0);
  refused(f, NONE "config.json, vocab.txt");
  add(f, "b.pt", "", 0);
  add(f, "a.bin", "", 0);
  add(f, "config.json", "", 0);
  refused(f, "is a directory with several checkpoints, name one: a.bin, b.pt");
  memset(name, 'x', 130);
  strcpy(name + 130, ".npz");
  add(f, name, "", 0);
  add(f, "\xff.npz", "", 0);
  refused(f, NONE "no printable name");
}

static void a_folder_that_cannot_be_read_is_told(void **state) {
  struct filled *f = *state;
  struct error e = {0};
  if (geteuid() == 0) return; /* root may read every folder */
  assert_int_equal(chmod(f->folder, 0), 0);
  assert_null(checkpoint_folder_file(f->folder, &e));
  assert_string_equal(e.detail, "is a directory that cannot be read: Permission denied");
  chmod(f->folder, 0700);
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter, leave)
  const struct CMUnitTest tests[] = {
      IN_FOLDER(a_folder_means_one_file),
      IN_FOLDER(a_folder_that_does_not_tell_is_listed),
      IN_FOLDER(a_folder_that_cannot_be_read_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
