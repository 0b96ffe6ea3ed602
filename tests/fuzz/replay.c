/* replay: runs a target on the inputs of its folder, without libFuzzer; prints TAP. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

enum { INPUT_MOST = 1 << 20, PATH_MOST = 4096 };

static char bytes[INPUT_MOST];

/* Runs the target on a file, if it is one; what it is about to run is told for the case that the
 * target ends the process. */
static bool replay(const char *folder, const char *name) {
  char path[PATH_MOST];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= PATH_MOST) return false;
  FILE *file = name[0] == '.' ? NULL : fopen(path, "rb");
  if (!file) return false;
  const struct input in = {bytes, fread(bytes, 1, sizeof bytes, file)};
  fclose(file);
  printf("# %s\n", name);
  fflush(stdout);
  char *copy = input_copy(in);
  LLVMFuzzerTestOneInput((const uint8_t *)copy, in.size);
  free(copy);
  return true;
}

/* `fuzz_NAME [FOLDER]`, from the top of the project. */
int main(int argc, char **argv) {
  const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
  char own[PATH_MOST];
  snprintf(own, sizeof own, "tests/fuzz/corpus/%s", name);
  const char *folder = argc > 1 ? argv[1] : own;
  size_t count = 0;
  LLVMFuzzerInitialize(&argc, &argv);
  DIR *entries = opendir(folder);
  for (struct dirent *entry; entries && (entry = readdir(entries));)
    count += replay(folder, entry->d_name);
  if (entries) closedir(entries);
  printf("1..1\n%s 1 - %s: %zu inputs of %s\n", count ? "ok" : "not ok", name, count, folder);
  return count ? 0 : 1;
}
