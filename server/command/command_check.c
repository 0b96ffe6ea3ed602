/* command_check: `attend check`: loads the models of `attend serve`, without a socket. */
#include "server/command/command.h"

#include <stdio.h>
#include <unistd.h>

#include "config/model/registry.h"
#include "core/kernel/gemm.h"
#include "server/life/announce.h"

enum { BAR = 30, BAR_MS = 250 };

static void print_progress(void *of, const struct progress_news *news) {
  (void)of;
  if (news->event != PROGRESS_END) fprintf(stderr, "%s\n", news->text);
}

/* On a terminal: a bar that is written again in its line, and removed in the end. */
static void print_bar(void *of, const struct progress_news *news) {
  static const char full[] = "##############################";
  if (news->event != PROGRESS_REPORT) {
    print_progress(of, news);
    if (news->event == PROGRESS_END) fputs("\r\033[K", stderr);
    return;
  }
  const int done = (int)(news->share * BAR);
  fprintf(stderr, "\r[%.*s%*s] %s\033[K", done, full, BAR - done, "", news->text);
}

static void print_line(void *of, const char *line) { fprintf(of, "%s\n", line); }

int command_check(const struct config *c) {
  struct error e = {0};
  gemm_blas_init();
  struct api_keys *keys;
  if (api_keys_load(c, &keys, &e)) return command_fail(&e);
  const size_t count = keys ? api_keys_count(keys) : 0;
  if (keys) fprintf(stderr, "api_key_file: %zu key%s\n", count, count == 1 ? "" : "s");
  if (keys && api_keys_exposed(keys)) fprintf(stderr, "warning: %s\n", announce_exposed);
  api_keys_free(keys);
  struct progress progress = {.listener = {print_progress, NULL, PROGRESS_MS}};
  if (isatty(STDERR_FILENO))
    progress.listener = (struct progress_listener){print_bar, NULL, BAR_MS};
  struct registry *r = registry_load(c, &progress, &e);
  if (!r) return command_fail(&e);
  const bool printed = config_print(c, stdout);
  for (size_t i = 0; i < registry_count(r); i++) {
    const struct model *m = registry_at(r, i);
    announce_lines(m, print_line, stderr);
    if (model_uses_nothing(m))
      fprintf(stderr, "warning: model %s: its source is ignored: it needs no weights\n", m->name);
    for (size_t n = 0; n < m->notes.count; n++)
      fprintf(stderr, "warning: model %s: %s\n", m->name, m->notes.text[n]);
  }
  if (c->built_in) fprintf(stderr, "warning: %s\n", announce_demonstration);
  registry_free(r);
  return command_written(printed);
}
