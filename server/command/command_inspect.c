/* command_inspect: `attend inspect`. */
#include "server/command/command_inspect.h"

#include <stdio.h>
#include <string.h>

#include "config/inspect/inspect.h"
#include "server/command/command.h"

int command_inspect(char *const *words) {
  const char *path = NULL;
  bool models_only = false;
  struct error e = {0};
  for (; *words; words++) {
    if (!strcmp(*words, "--models"))
      models_only = true;
    else if (path || **words == '-')
      return command_misuse("inspect takes a file and --models, not '%.100s'", *words);
    else
      path = *words;
  }
  if (!path) return command_misuse("%s needs a file", "inspect");
  if (inspect_file(path, models_only, stdout, stderr, &e) == STATUS_OK) return COMMAND_DONE;
  return command_fail(&e);
}
