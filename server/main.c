/* main: readies the process, finds the command and its settings, and carries it out. */
#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

#include "config/document/json_reserve.h"
#include "core/run/keep.h"
#include "server/command/command.h"
#include "server/command/command_check.h"
#include "server/command/command_health.h"
#include "server/command/command_inspect.h"
#include "server/command/command_run.h"
#include "server/life/serve.h"

extern char **environ;

/* `attend serve`. After a stop that could not end all threads, nothing more is freed or flushed. */
static int serve(const struct config *c, char **argv, char **words) {
  const struct reload_invocation called = {.argv = argv, .words = words, .environment = environ};
  bool at_once = false;
  struct error e = {0};
  int status = serve_main(c, &called, &at_once, &e);
  if (e.status) status = command_fail(&e);
  if (at_once) _exit(status);
  return status;
}

/* Has blocks of large requests go back to the system when they are freed. By itself glibc would
 * keep them: with every large block it sees, it raises the size from which blocks are mapped. */
static void return_freed_memory(void) {
#ifdef M_MMAP_THRESHOLD
  mallopt(M_MMAP_THRESHOLD, KEEP_LEAST);
  mallopt(M_TRIM_THRESHOLD, 1024 * 1024);
#endif
}

/* Fills descriptors 0, 1 and 2 where the process was started without them: else the first socket
 * would get such a number, and the log would be sent to a client. O_PATH can be neither read nor
 * written, so that an answer written to it fails. */
static void hold_standard_descriptors(void) {
  for (int fd = 0; fd <= 2; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH) < 0) return;
}

/* The options of `attend run`, which come before settings. Returns what follows them. */
static char **read_run_options(char **words, struct body_terms *terms) {
  for (; *words; words++) {
    if (!strcmp(*words, "--heads"))
      terms->ask = ASK_HEADS;
    else if (!strcmp(*words, "--binary"))
      terms->form = BODY_SAFETENSORS;
    else
      break;
  }
  terms->wants_binary = terms->form == BODY_SAFETENSORS && terms->ask == ASK_ATTENTION;
  return words;
}

static bool is_word(const char *word) { return word && word[0] != '-'; }

int main(int argc, char **argv) {
  enum { SERVE, RUN, CHECK, INSPECT, HEALTH, HELP, COMMANDS } command = SERVE;
  static const char *const names[COMMANDS] = {"serve", "run", "check", "inspect", "health", "help"};
  static char *none[] = {NULL};
  char **words = argc > 1 ? argv + 1 : none;
  const char *subject = NULL; /* the model of run, the URL of health */
  struct body_terms terms = {.body_bytes = BODY_UNKNOWN, .json_bytes = BODY_UNKNOWN};
  struct config c = {0};
  struct error e = {0};
  int status;

  hold_standard_descriptors();
  return_freed_memory();
  json_reserve_init();
  if (is_word(words[0])) {
    while (command < COMMANDS && strcmp(words[0], names[command])) command++;
    if (command == COMMANDS) return command_misuse("there is no command '%.100s'", words[0]);
    words++;
  }
  for (char **w = words; *w; w++) {
    if (!strcmp(*w, "--help") || !strcmp(*w, "-h")) return command_help();
    if (!strcmp(*w, "--version")) return command_version();
  }
  if (command == HELP) return command_help();
  if (command == INSPECT) return command_inspect(words);
  if ((command == RUN || command == HEALTH) && is_word(words[0])) subject = *words++;
  if (command == RUN && !subject) return command_misuse("%s needs the name of a model", names[RUN]);
  if (command == RUN) words = read_run_options(words, &terms);

  if (config_read(&c, words, environ, &e))
    status = command_fail(&e);
  else if (command == RUN)
    status = command_run(&c, subject, &terms, STDIN_FILENO, STDOUT_FILENO);
  else if (command == CHECK)
    status = command_check(&c);
  else if (command == HEALTH)
    status = command_health(subject, *c.admin_listen ? c.admin_listen : c.listen);
  else
    status = serve(&c, argv, words);
  config_free(&c);
  return status;
}
