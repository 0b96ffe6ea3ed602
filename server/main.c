/* main: the commands. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/document/json_reserve.h"
#include "config/inspect/inspect.h"
#include "config/model/registry.h"
#include "core/kernel/gemm.h"
#include "core/run/keep.h"
#include "server/command/command_health.h"
#include "server/command/command_run.h"
#include "server/life/announce.h"
#include "server/life/serve.h"
#include "server/watch/version.h"

enum { EXIT_USAGE = 2 };

extern char **environ;

/* The exit status of a command whose answer is on standard output. */
static int written(bool well) {
  if (well && !fflush(stdout)) return 0;
  fprintf(stderr, "attend: cannot write to standard output: %s\n", strerror(errno));
  return 1;
}

static int help(void) {
  fputs(
      "attend: multi-head attention over HTTP\n"
      "\n"
      "  attend [serve] [settings]     serve until SIGTERM or SIGINT; SIGHUP reads models and keys "
      "again\n"
      "  attend run MODEL [settings]   answer one request, from standard input to standard output\n"
      "  attend run MODEL --heads      measure the model's heads instead; settings may follow\n"
      "  attend run MODEL --binary     request and answer are safetensors, not JSON; measures are "
      "JSON\n"
      "  attend check [settings]       check settings and models, and print them\n"
      "  attend inspect FILE           list the tensors of a checkpoint, and the models in it\n"
      "  attend inspect FILE --models  print these models alone, as a configuration file\n"
      "  attend health [URL]           exit 0 if URL, else /healthz of admin_listen, else of\n"
      "                                listen, answers 200\n"
      "  attend help | --help          this text\n"
      "  attend --version              the version\n"
      "\n"
      "Settings come from defaults, then the file (--config FILE or ATTEND_CONFIG), then\n"
      "ATTEND_NAME in the environment, then --name VALUE or --name=VALUE:\n"
      "\n",
      stdout);
  config_help(stdout);
  return written(true);
}

static int version(void) {
  printf("attend %s (%s)\n", version_number(), version_commit());
  return written(true);
}

/* Says what is wrong; returns the exit status: what somebody wrote, or a host that has no more. */
static int complain(const struct error *e) {
  serve_complain(e);
  return e->status == STATUS_CONFIG ? EXIT_USAGE : 1;
}

/* `attend check`: what serving would begin with, without the socket. Standard output is a
 * configuration that could be served as it is; the models are described beside it. */
static int check(const struct config *c) {
  struct error e = {0};
  gemm_blas_init();
  struct api_keys *keys;
  if (api_keys_load(c, &keys, &e)) return complain(&e);
  const size_t count = keys ? api_keys_count(keys) : 0;
  if (keys) fprintf(stderr, "api_key_file: %zu key%s\n", count, count == 1 ? "" : "s");
  if (keys && api_keys_exposed(keys)) fprintf(stderr, "warning: %s\n", announce_exposed);
  api_keys_free(keys);
  struct registry *r = registry_load(c, &e);
  if (!r) return complain(&e);
  bool printed = config_print(c, stdout);
  for (size_t i = 0; i < registry_count(r); i++) {
    const struct model *m = registry_at(r, i);
    char text[ANNOUNCE_SIZE];
    announce_text(m, text);
    fprintf(stderr, "%s%s\n", text, model_uses_nothing(m) ? "; nothing of its source is used" : "");
    for (size_t n = 0; n < m->notes.count; n++)
      fprintf(stderr, "warning: model %s: %s\n", m->name, m->notes.text[n]);
  }
  registry_free(r);
  return written(printed);
}

static int wrong_usage(const char *format, const char *word) {
  fputs("attend: ", stderr);
  fprintf(stderr, format, word);
  fputs("; see attend --help\n", stderr);
  return EXIT_USAGE;
}

/* `attend inspect`: takes no settings, for it looks at nothing but the file and what is beside. */
static int inspect(char *const *words) {
  const char *path = NULL;
  bool models_only = false;
  struct error e = {0};
  for (; *words; words++) {
    if (!strcmp(*words, "--models")) {
      models_only = true;
    } else if (path || **words == '-') {
      return wrong_usage("inspect takes a file and --models, not '%.100s'", *words);
    } else {
      path = *words;
    }
  }
  if (!path) return wrong_usage("%s needs a file", "inspect");
  if (inspect_file(path, models_only, stdout, stderr, &e) == STATUS_OK) return 0;
  return complain(&e);
}

/* `attend serve`. After a stop that could not end its threads nothing is freed or flushed. */
static int serve(const struct config *c, char **argv, char **words) {
  const struct invocation called = {.argv = argv, .words = words, .environment = environ};
  bool at_once = false;
  int status = serve_main(c, &called, &at_once);
  if (at_once) _exit(status);
  return status;
}

/* Blocks of large requests are to go back to the system when they are freed: glibc would raise the
 * size from which it maps blocks with every large one that it has seen, and keep them. */
static void return_memory(void) {
#ifdef M_MMAP_THRESHOLD
  mallopt(M_MMAP_THRESHOLD, KEEP_LEAST);
  mallopt(M_TRIM_THRESHOLD, 1024 * 1024);
#endif
}

/* A descriptor 0, 1 or 2 that came closed would be taken by the first socket, and the log written
 * to a client. What takes its place can be neither read nor written: no answer counts as written
 * that went nowhere. */
static void hold_standard_descriptors(void) {
  for (int fd = 0; fd <= 2; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH) < 0) return;
}

/* The options of `attend run`, which come before settings. Returns what follows them. */
static char **run_options(char **words, struct body_terms *head) {
  for (; *words; words++) {
    if (!strcmp(*words, "--heads"))
      head->ask = ASK_HEADS;
    else if (!strcmp(*words, "--binary"))
      head->form = BODY_SAFETENSORS;
    else
      break;
  }
  head->wants_binary = head->form == BODY_SAFETENSORS && head->ask == ASK_ATTENTION;
  return words;
}

static bool is_word(const char *word) { return word && word[0] != '-'; }

int main(int argc, char **argv) {
  enum { SERVE, RUN, CHECK, INSPECT, HEALTH, HELP, COMMANDS } command = SERVE;
  static const char *const names[COMMANDS] = {"serve", "run", "check", "inspect", "health", "help"};
  static char *none[] = {NULL};
  char **words = argc > 1 ? argv + 1 : none;
  const char *subject = NULL; /* the model of run, the URL of health */
  struct body_terms head = {.body_bytes = BODY_UNKNOWN, .json_bytes = BODY_UNKNOWN};
  struct config c = {0};
  struct error e = {0};
  int status;

  hold_standard_descriptors();
  return_memory();
  json_reserve_init();
  if (is_word(words[0])) {
    while (command < COMMANDS && strcmp(words[0], names[command])) command++;
    if (command == COMMANDS) return wrong_usage("there is no command '%.100s'", words[0]);
    words++;
  }
  for (char **w = words; *w; w++) {
    if (!strcmp(*w, "--help") || !strcmp(*w, "-h")) return help();
    if (!strcmp(*w, "--version")) return version();
  }
  if (command == HELP) return help();
  if (command == INSPECT) return inspect(words);
  if ((command == RUN || command == HEALTH) && is_word(words[0])) subject = *words++;
  if (command == RUN && !subject) return wrong_usage("%s needs the name of a model", names[RUN]);
  if (command == RUN) words = run_options(words, &head);

  if (config_read(&c, words, environ, &e))
    status = complain(&e);
  else if (command == RUN)
    status = run_main(&c, subject, &head, STDIN_FILENO, STDOUT_FILENO);
  else if (command == CHECK)
    status = check(&c);
  else if (command == HEALTH)
    status = health_main(subject, *c.admin_listen ? c.admin_listen : c.listen);
  else
    status = serve(&c, argv, words);
  config_free(&c);
  return status;
}
