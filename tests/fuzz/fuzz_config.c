/* fuzz_config: the configuration file, the environment, and definitions of models.
 *
 * Lines up to FUZZ_PART are variables without their ATTEND_; the rest is the file. A configuration
 * that is accepted is printed; what was printed must be accepted again, and print the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/describe/definition.h"
#include "config/settings/config.h"
#include "tests/fuzz/fuzz.h"

enum { LINES_MOST = 8, LINE_MOST = 200 };

static void config_must_be_told(const struct error *e) {
  must(e->status == STATUS_CONFIG && e->detail[0] && !strchr(e->detail, '\n'));
}

/* Reads a file with these variables; true if it was accepted. */
static bool read_config(struct config *c, struct input file, char *const *environment) {
  struct error e = {0};
  struct fuzz_file f = fuzz_file_make(file);
  char *args[] = {"--config", f.path, NULL};
  config_read(c, args, environment, &e);
  if (e.status) config_must_be_told(&e);
  fuzz_file_close(&f);
  return e.status == STATUS_OK;
}

/* Prints the configuration to a string, which the caller frees. */
static struct input printed(const struct config *c) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  must(out && config_print(c, out) && fclose(out) == 0);
  return (struct input){text, size};
}

static void read_models(const struct config *c) {
  const char *name;
  json_t *json;
  json_object_foreach(c->models, name, json) {
    struct definition d;
    struct error e = {0};
    for (unsigned family = 0; family < 4; family++) {
      const struct definition_customs customs = {.causal = family & 1,
                                                 .rope = family == 1,
                                                 .relative = family >= 2,
                                                 .unscaled = family == 2,
                                                 .relative_both = family == 2};
      struct error last = {0};
      if (definition_read(&d, json, &last) || definition_complete(&d, &customs, &last) ||
          definition_complete_heads(&d, family, 1, &last))
        e = last;
    }
    if (e.status) config_must_be_told(&e);
  }
}

/* Makes variables of lines, but none that names a file to be opened. */
static void make_environment(struct input in, char line[][LINE_MOST],
                             char *environment[LINES_MOST + 1]) {
  size_t count = 0;
  while (in.size > 0 && count < LINES_MOST) {
    const char *end = memchr(in.bytes, '\n', in.size);
    const size_t size = end ? (size_t)(end - in.bytes) : in.size;
    snprintf(line[count], LINE_MOST, "ATTEND_%.*s", (int)size, in.bytes);
    if (strncmp(line[count], "ATTEND_CONFIG=", 14) != 0) {
      environment[count] = line[count];
      count++;
    }
    in.bytes += size + (end != NULL);
    in.size -= size + (end != NULL);
  }
  environment[count] = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char line[LINES_MOST][LINE_MOST];
  char *environment[LINES_MOST + 1], *nothing[] = {NULL};
  struct input in = {(const char *)data, size};
  make_environment(input_part(&in), line, environment);
  struct config c, again;
  if (read_config(&c, in, environment)) {
    read_models(&c);
    const struct input first = printed(&c);
    must(read_config(&again, first, nothing));
    const struct input second = printed(&again);
    must(first.size == second.size && memcmp(first.bytes, second.bytes, first.size) == 0);
    free((char *)first.bytes);
    free((char *)second.bytes);
    config_free(&again);
  }
  config_free(&c);
  return 0;
}
