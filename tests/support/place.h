/* place: a folder of a test's own, and the path of one file in it. */
#ifndef TESTS_PLACE_H
#define TESTS_PLACE_H

struct place {
  char folder[64], file[96];
};

/* As cmocka's set-up and tear-down want it: 0, or -1. *state becomes the place; `file` is a plain
 * name. Tearing down removes that file and the folder, which must then be empty. */
int place_make(void **state, const char *file);
int place_remove(void **state);

#endif
