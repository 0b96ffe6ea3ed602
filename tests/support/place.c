/* place: a folder of a test's own, and the path of one file in it. */
#include "tests/support/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int place_make(void **state, const char *file) {
  struct place *p = calloc(1, sizeof *p);
  if (!p) return -1;
  strcpy(p->folder, "/tmp/attend-test-XXXXXX");
  if (!mkdtemp(p->folder)) {
    free(p);
    return -1;
  }
  snprintf(p->file, sizeof p->file, "%s/%s", p->folder, file);
  *state = p;
  return 0;
}

int place_remove(void **state) {
  struct place *p = *state;
  unlink(p->file);
  int left = rmdir(p->folder);
  free(p);
  return left;
}
