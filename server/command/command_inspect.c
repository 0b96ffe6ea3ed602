/* command_inspect: `attend inspect`. */
#include "server/command/command_inspect.h"

#include <stdio.h>
#include <string.h>

#include "config/document/text.h"
#include "config/inspect/inspect.h"
#include "server/command/command.h"

enum { HEADS_MOST = 4096 };

/* A number of heads, or 0. */
static size_t read_heads(const char *word) {
  uint64_t heads;
  return word && text_decimal(word, &heads) && heads <= HEADS_MOST ? (size_t)heads : 0;
}

int command_inspect(char *const *words) {
  struct inspect_ask ask = {0};
  struct error e = {0};
  for (; *words; words++) {
    if (!strcmp(*words, "--models")) {
      ask.models_only = true;
    } else if (!strcmp(*words, "--check")) {
      ask.check = true;
    } else if (!strcmp(*words, "--heads") || !strncmp(*words, "--heads=", 8)) {
      const char *word = (*words)[7] ? *words + 8 : *++words;
      if (!(ask.heads = read_heads(word)))
        return command_misuse("--heads needs a number from 1 to 4096, not '%.100s'",
                              word ? word : "");
    } else if (ask.path || **words == '-') {
      return command_misuse("inspect takes a file, --models, --heads N and --check, not '%.100s'",
                            *words);
    } else {
      ask.path = *words;
    }
  }
  if (!ask.path) return command_misuse("%s needs a file", "inspect");
  if (inspect_file(&ask, stdout, stderr, &e) == STATUS_OK) return COMMAND_DONE;
  return command_fail(&e);
}
