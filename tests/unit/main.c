/* main: all unit tests in one program, which runs the one that its argument names, or of that only
 * the functions whose names match a pattern: unit-tests test_generate 'workers_*'. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define UNIT(name) int name##_main(void);
UNITS
#undef UNIT

static const struct {
  const char *name;
  int (*run)(void);
} units[] = {
#define UNIT(name) {#name, name##_main},
    UNITS
#undef UNIT
};

int main(int count, char **words) {
  const bool named = count == 2 || count == 3;
  if (count == 3) cmocka_set_test_filter(words[2]);
  for (size_t i = 0; named && i < sizeof units / sizeof *units; i++)
    if (!strcmp(words[1], units[i].name)) return units[i].run();
  fprintf(stderr, "usage: %s NAME [PATTERN], and NAME is one of:\n", words[0]);
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) fprintf(stderr, "  %s\n", units[i].name);
  return 2;
}
