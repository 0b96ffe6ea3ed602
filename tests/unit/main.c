/* main: all unit tests in one program, which runs the one that its argument names. */
#include <stdio.h>
#include <string.h>

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
  for (size_t i = 0; count == 2 && i < sizeof units / sizeof *units; i++)
    if (!strcmp(words[1], units[i].name)) return units[i].run();
  fprintf(stderr, "usage: %s NAME, and NAME is one of:\n", words[0]);
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) fprintf(stderr, "  %s\n", units[i].name);
  return 2;
}
