/* command_run: `attend run MODEL`: requests from a file to their responses, without a socket. */
#include "server/command/command.h"

#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/build/whole.h"
#include "config/model/registry.h"
#include "core/base/clock.h"
#include "server/command/command_lines.h"
#include "server/http/reply.h"
#include "server/route/routes.h"
#include "server/service/exchange.h"

enum { CHUNK = 64 * 1024 };

struct command_run_exchange {
  struct exchange exchange;
  sem_t turn; /* posted when a stream has news, and in the end */
  atomic_bool done;
};

static void post_news(struct exchange *x) {
  struct command_run_exchange *run = (struct command_run_exchange *)x; /* its first member */
  sem_post(&run->turn);
}

static void post_done(struct exchange *x) {
  atomic_store(&((struct command_run_exchange *)x)->done, true);
  post_news(x);
}

/* One line on standard error. */
static void write_problem(const struct error *e) {
  char sentence[REPLY_SENTENCE_SIZE];
  reply_sentence(e, sentence);
  fprintf(stderr, "attend: %s\n", sentence);
}

/* Whether the model serves this kind of request. If not, writes a line about it. */
static bool is_served(const struct model *m, enum body_ask ask) {
  static const char *const instead[] = {[ASK_ENCODE] = "it cannot encode",
                                        [ASK_CLASSIFY] = "it cannot classify",
                                        [ASK_CLASSIFY_TOKENS] = "it cannot classify tokens",
                                        [ASK_QUESTION] = "it cannot answer questions",
                                        [ASK_FILL] = "it cannot fill masked tokens",
                                        [ASK_SCORE] = "it cannot score",
                                        [ASK_GENERATE] = "it cannot generate",
                                        [ASK_TOKENIZE] = "it takes tokens alone",
                                        [ASK_DETOKENIZE] = "it gives tokens alone",
                                        [ASK_RENDER] = "it cannot render conversations"};
  const enum route route = route_of_ask(ask);
  if (route_serves(route, m)) return true;
  const char *other = route_serves(route_of_ask(ASK_GENERATE), m)
                          ? "ask it to --encode, --score or --generate"
                          : "ask it to --encode";
  fprintf(stderr, "attend: the model %s is of the kind %s%s: %s\n", m->name,
          model_kind_name(m->kind), route_missing(route, m), instead[ask] ? instead[ask] : other);
  return false;
}

/* Reads the body of a request. An error is in x->error. */
static void read_body(struct exchange *x, int in) {
  char chunk[CHUNK];
  while (!x->error.status) {
    const ssize_t n = read(in, chunk, sizeof chunk);
    if (n == 0) return;
    if (n > 0)
      exchange_feed(x, chunk, (size_t)n);
    else if (errno != EINTR)
      error_set(&x->error, STATUS_SYSTEM, "cannot read the request: %s", strerror(errno));
  }
}

static void wait_turn(struct command_run_exchange *run) {
  while (sem_wait(&run->turn) != 0) must(errno == EINTR);
}

/* Writes the events of a stream as they are computed. An error after the first event is reported
 * only on standard error. */
static void write_stream(struct command_run_exchange *run, int out) {
  enum { ROOM = 32 * 1024 };
  static char text[ROOM];
  struct exchange *x = &run->exchange;
  struct error e = {0};
  for (bool done = false; !done;) {
    wait_turn(run);
    done = atomic_load(&run->done);
    if (done && x->error.status) return;
    struct iovec piece = {.iov_base = text};
    while (!e.status && (piece.iov_len = exchange_stream(x, done, NULL, text, sizeof text)) > 0)
      command_write(out, &piece, 1, &e);
    if (e.status) exchange_cancel(x);
  }
  if (!x->error.status) x->error = e;
}

/* Reads the request, computes, and writes the response. Returns the exit status. */
static int answer_request(struct service *s, struct models_hold *hold, const struct model *m,
                          const struct body_terms *terms, int in, int out) {
  struct command_run_exchange run = {
      .exchange = {.done = post_done, .news = post_news, .alone = true}};
  struct exchange *x = &run.exchange;
  exchange_begin(x, s, hold, m, terms);
  read_body(x, in);
  if (exchange_finish(x, clock_now() + s->config->deadline_ms * CLOCK_MS)) {
    must(sem_init(&run.turn, 0, 0) == 0);
    exchange_submit(x, 0);
    if (x->stream)
      write_stream(&run, out);
    else
      wait_turn(&run);
    pool_drain(s->pool, UINT64_MAX); /* then the worker has returned from sem_post */
    sem_destroy(&run.turn);
    if (!x->error.status && !x->stream)
      command_write(out, x->answer.piece, x->answer.pieces, &x->error);
  }
  if (x->error.status) write_problem(&x->error);
  int status = x->error.status ? COMMAND_FAILED : COMMAND_DONE;
  exchange_end(x);
  return status;
}

int command_run(const struct config *c, const struct command_run_asked *asked, int in, int out) {
  struct service service;
  struct error e = {0};
  /* Without API keys: the user of this command can read the models anyway. */
  struct config local = *c;
  local.api_key_file = "";
  if (service_start(&service, &local, 1, &e)) {
    write_problem(&e);
    return e.status == STATUS_CONFIG ? COMMAND_MISUSED : COMMAND_FAILED;
  }
  int status = COMMAND_MISUSED;
  struct models_hold hold = models_hold(service.models, 0);
  const struct registry *r = hold.registry;
  const struct model *m = registry_find(r, asked->model);
  if (!m) {
    fprintf(stderr, "attend: no model \"%s\"; there are:", asked->model);
    for (size_t i = 0; i < registry_count(r); i++)
      fprintf(stderr, "%s %s", i ? "," : "", registry_at(r, i)->name);
    fputc('\n', stderr);
  } else if (!is_served(m, asked->terms.ask)) {
    status = COMMAND_MISUSED;
  } else if (!asked->lines) {
    status = answer_request(&service, &hold, m, &asked->terms, in, out);
  } else {
    struct command_lines_count count;
    if (command_lines(&service, m, &asked->terms, in, out, &count, &e)) write_problem(&e);
    if (count.refused > 0)
      fprintf(stderr, "attend: %zu of %zu requests were refused\n", count.refused,
              count.refused + count.answered);
    status = e.status || count.refused > 0 ? COMMAND_FAILED : COMMAND_DONE;
  }
  models_release(&hold);
  service_stop(&service);
  return status;
}
