/* main: readies the process, finds the command and its settings, and carries it out. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/document/json_reserve.h"
#include "config/document/text.h"
#include "core/base/keep.h"
#include "core/kernel/gemm.h"
#include "server/command/command.h"
#include "server/life/serve.h"

extern char **environ;

/* `attend serve`. After a stop that could not end all threads, nothing more is freed or flushed. */
static int serve(const struct config *c, char **words) {
  const struct reload_invocation called = {.words = words, .environment = environ};
  bool at_once = false;
  struct error e = {0};
  int status = serve_main(c, &called, &at_once, &e);
  if (e.status) status = command_fail(&e);
  if (at_once) _exit(status);
  return status;
}

/* Opens descriptors 0, 1 and 2 if the process was started without them: else the first socket would
 * get such a number, and the log would be sent to a client. O_PATH can be neither read nor written,
 * so that writing a response to it fails. Makes glibc return the blocks of large requests to the
 * system when they are freed: without these settings it raises the size from which blocks are
 * mapped with every large block. */
static void ready_process(void) {
  for (int fd = 0; fd <= 2; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH) < 0) break;
#ifdef M_MMAP_THRESHOLD
  mallopt(M_MMAP_THRESHOLD, KEEP_LEAST);
  mallopt(M_TRIM_THRESHOLD, 1024 * 1024);
#endif
}

/* Executes the program again, once, if OpenBLAS is to multiply and has taken this processor for an
 * old one: it computes several times slower then, with other bits, and reads OPENBLAS_CORETYPE only
 * before main. To be called before anything is opened; `argv` as main received it. */
static void correct_coretype(const struct config *c, char **argv) {
  const struct gemm_blas blas = gemm_blas();
  const bool set = getenv("OPENBLAS_CORETYPE");
  if (strcmp(c->gemm, "openblas") != 0 || !blas.better) return;
  fprintf(stderr, /* there is no log yet */
          "level=warning msg=\"OpenBLAS took this processor for %s: %sOPENBLAS_CORETYPE=%s%s\"\n",
          blas.core, set ? "" : "starting again with ", blas.better, set ? " would be faster" : "");
  if (set) return;
  setenv("OPENBLAS_CORETYPE", blas.better, 1);
  execv("/proc/self/exe", argv);
  fprintf(stderr, "level=warning msg=\"cannot start again: %s\"\n", strerror(errno));
}

static bool is_word(const char *word) { return word && word[0] != '-'; }

/* The words of `attend run`. */
struct run_words {
  struct command_run_asked asked; /* its model is NULL if none is named */
  const char *file;               /* NULL: standard input */
  const char *second;             /* a word that contradicts one before it; or NULL */
};

/* Separates the words of `attend run`, which come in any order, from those that are settings; for
 * these there is as much room. */
static void read_run_words(char **words, struct run_words *run, char **settings) {
  static const char *const asks[] = {
      [ASK_HEADS] = "--heads",       [ASK_ENCODE] = "--encode",
      [ASK_CLASSIFY] = "--classify", [ASK_CLASSIFY_TOKENS] = "--classify-tokens",
      [ASK_QUESTION] = "--question", [ASK_FILL] = "--fill",
      [ASK_SCORE] = "--score",       [ASK_GENERATE] = "--generate",
      [ASK_TOKENIZE] = "--tokenize", [ASK_DETOKENIZE] = "--detokenize",
      [ASK_RENDER] = "--render"};
  struct command_run_asked *asked = &run->asked;
  while (*words) {
    const enum body_ask before = asked->terms.ask;
    enum body_ask ask = sizeof asks / sizeof *asks - 1;
    while (ask && (!asks[ask] || strcmp(*words, asks[ask]) != 0)) ask--;
    if (ask) { /* other than ASK_ATTENTION, the default */
      asked->terms.ask = ask;
      if (before && before != ask) run->second = *words;
      words++;
    } else if (!strcmp(*words, "--binary")) {
      asked->terms.form = BODY_SAFETENSORS;
      words++;
    } else if (!strcmp(*words, "--lines")) {
      asked->lines = true;
      words++;
    } else if (is_word(*words) && !asked->model) {
      asked->model = *words++;
    } else if (is_word(*words) && !run->file) {
      run->file = *words++;
    } else {
      for (size_t n = config_words(words); n > 0; n--) *settings++ = *words++;
    }
  }
  *settings = NULL;
  asked->terms.wants_binary =
      asked->terms.form == BODY_SAFETENSORS && asked->terms.ask != ASK_HEADS;
}

/* `attend run`, its requests from the file if one is named. */
static int run_model(const struct config *c, const struct run_words *run) {
  struct error e = {0};
  const int in = run->file ? open(run->file, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
  if (in < 0) {
    error_set(&e, STATUS_SYSTEM, "%.200s: %s", run->file, strerror(errno));
    return command_fail(&e);
  }
  const int status = command_run(c, &run->asked, in, STDOUT_FILENO);
  if (run->file) close(in);
  return status;
}

enum main_command { SERVE, RUN, CHECK, INSPECT, HEALTH, HELP, COMMANDS };
static const char *const names[COMMANDS] = {"serve", "run", "check", "inspect", "health", "help"};

/* The command of this name; COMMANDS: there is none. */
static enum main_command find_command(const char *name) {
  enum main_command i = 0;
  while (i < COMMANDS && strcmp(name, names[i])) i++;
  return i;
}

static bool is_help(const char *word) {
  return word && (!strcmp(word, "--help") || !strcmp(word, "-h"));
}

/* `attend help SETTING`; all commands have the same help. */
static int help(const char *word) {
  return command_help(word && !is_help(word) && find_command(word) == COMMANDS ? word : NULL);
}

int main(int argc, char **argv) {
  enum main_command command = SERVE;
  static char *none[] = {NULL};
  char **words = argc > 1 ? argv + 1 : none;
  const char *url = NULL; /* of health */
  struct run_words run = {.asked.terms = {.body_bytes = BODY_UNKNOWN, .json_bytes = BODY_UNKNOWN}};
  static char **settings; /* of RUN; never freed */
  struct config c = {0};
  struct error e = {0};
  int status;

  ready_process();
  json_reserve_init();
  if (is_help(words[0])) return help(words[1]);
  /* A configuration file in the place of a command is an error of the settings of `serve`, which
   * say how to name it. */
  if (is_word(words[0]) && !text_ends_with(words[0], ".json")) {
    command = find_command(words[0]);
    if (command == COMMANDS) return command_misuse("unknown command '%.100s'", words[0]);
    words++;
  }
  if (command == HELP) return help(words[0]);
  for (char **w = words; *w; w++) {
    if (is_help(*w)) return help(NULL);
    if (!strcmp(*w, "--version")) return command_version();
  }
  if (command == INSPECT) return command_inspect(words);
  if (command == HEALTH && is_word(words[0])) url = *words++;
  if (command == RUN) {
    if (!(settings = calloc((size_t)argc, sizeof *settings))) {
      error_set(&e, STATUS_OUT_OF_MEMORY, "no memory for the command line");
      return command_fail(&e);
    }
    read_run_words(words, &run, settings);
    words = settings;
  }
  if (command == RUN && !run.asked.model)
    return command_misuse("%s needs the name of a model", names[RUN]);
  if (run.second) return command_misuse("%s asks a second question", run.second);
  if (run.asked.lines && run.asked.terms.form == BODY_SAFETENSORS)
    return command_misuse("%s are of JSON: they cannot be --binary", "--lines");

  if (config_read(&c, words, environ, &e) == STATUS_OK && (command == SERVE || command == RUN))
    correct_coretype(&c, argv);
  if (e.status)
    status = command_fail(&e);
  else if (command == RUN)
    status = run_model(&c, &run);
  else if (command == CHECK)
    status = command_check(&c);
  else if (command == HEALTH)
    status = command_health(url, *c.admin_listen ? c.admin_listen : c.listen);
  else
    status = serve(&c, words);
  config_free(&c);
  return status;
}
