/* command_inspect: `attend inspect`. */
#include "server/command/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/describe/definition.h"
#include "config/document/text.h"
#include "config/inspect/inspect.h"
#include "config/inspect/inspect_name.h"

_Static_assert(DEFINITION_HEADS_MAX == 4096, "as the message below has it");

/* The words of the command line. */
struct inspect_words {
  struct inspect_ask ask;
  const char *written; /* the configuration file to be written, or NULL */
};

/* The exit status: COMMAND_MISUSED, with a line about the wrong word, or COMMAND_DONE. */
static int read_words(char *const *words, struct inspect_words *w) {
  struct inspect_ask *ask = &w->ask;
  for (; *words; words++) {
    if (!strcmp(*words, "--models")) {
      ask->models_only = true;
    } else if (!strcmp(*words, "--check")) {
      ask->check = true;
    } else if (!strcmp(*words, "--heads") || !strncmp(*words, "--heads=", 8)) {
      const char *word = (*words)[7] ? *words + 8 : words[1];
      uint64_t heads;
      if (!word || !text_decimal(word, &heads) || heads == 0 || heads > DEFINITION_HEADS_MAX)
        return command_misuse("--heads needs a number from 1 to 4096, not '%.100s'",
                              word ? word : "");
      ask->heads = (size_t)heads;
      if (word == words[1]) words++;
    } else if (!strcmp(*words, "-o")) {
      if (!words[1]) return command_misuse("%s needs the name of a file", "-o");
      w->written = *++words;
      ask->models_only = true;
    } else if (ask->path || **words == '-') {
      return command_misuse("inspect takes a file, --models, -o FILE, --heads N and --check, not "
                            "'%.100s'",
                            *words);
    } else {
      ask->path = ask->named = *words;
    }
  }
  return ask->path ? COMMAND_DONE : command_misuse("%s needs a file", "inspect");
}

/* Writes the models as a new file. An existing file is not replaced: it may be the checkpoint, or a
 * configuration with more settings. */
static enum status write_configuration(struct inspect_words *w, struct error *e) {
  char *named = inspect_path_for(w->ask.path, w->written, e);
  if (!named) return e->status;
  FILE *out = fopen(w->written, "wxe");
  if (!out) {
    error_set(e, STATUS_SYSTEM, "%.200s: %s", w->written, strerror(errno));
  } else {
    w->ask.named = named;
    inspect_file(&w->ask, out, stderr, e);
    if (fclose(out) != 0) error_set(e, STATUS_SYSTEM, "%.200s: %s", w->written, strerror(errno));
    if (e->status) unlink(w->written);
  }
  free(named);
  return e->status;
}

int command_inspect(char *const *words) {
  struct inspect_words w = {0};
  struct error e = {0};
  const int status = read_words(words, &w);
  if (status != COMMAND_DONE) return status;
  if (w.written)
    write_configuration(&w, &e);
  else
    inspect_file(&w.ask, stdout, stderr, &e);
  return e.status == STATUS_OK ? COMMAND_DONE : command_fail(&e);
}
