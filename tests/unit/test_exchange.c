/* test_exchange: requests through reading, the pool and writing; and `attend run`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <semaphore.h>
#include <unistd.h>

#include "config/model/registry.h"
#include "core/base/clock.h"
#include "server/command/command.h"
#include "server/service/exchange.h"
#include "tests/support/answer_join.h"
#include "tests/support/patience.h"
#include "tests/support/place.h"

struct fixture {
  struct config config;
  struct service service;
};

static void start(struct fixture *f, const char *const *settings) {
  struct error e = {0};
  char *nothing[] = {NULL};
  config_read(&f->config, (char *const *)settings, nothing, &e);
  if (!e.status) service_start(&f->service, &f->config, 0, &e);
  if (e.status) fail_msg("%s", e.detail);
}

static void stop(struct fixture *f) {
  assert_true(pool_drain(f->service.pool, clock_now() + PATIENCE_NS));
  service_stop(&f->service);
  assert_int_equal(atomic_load(&f->service.budget.used), 0);
  config_free(&f->config);
}

/* A service with a decoder, whose definition is written to a file of its own. */
static void start_decoder(struct fixture *f, struct place *p) {
  const char *const settings[] = {"--workers", "2", "--config", p->file, NULL};
  FILE *file = fopen(p->file, "w");
  assert_non_null(file);
  fputs("{\"models\":{\"d\":{\"transformer\":{\"random\":{\"seed\":1}},\"kind\":\"decoder\","
        "\"layers\":2,\"width\":16,\"heads\":2,\"feed_forward\":32,\"vocabulary\":50}}}",
        file);
  assert_int_equal(fclose(file), 0);
  start(f, settings);
}

static const char *const two_workers[] = {"--workers", "2", NULL};

static int enter(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  if (!f) return -1;
  start(f, two_workers);
  *state = f;
  return 0;
}

static int leave(void **state) {
  stop(*state);
  free(*state);
  return 0;
}

struct visit {
  struct exchange exchange;
  sem_t done;
};

static void visit_done(struct exchange *x) {
  sem_post(&((struct visit *)((char *)x - offsetof(struct visit, exchange)))->done);
}

/* Feeds a body in chunks of `chunk` bytes and submits it; false if it was refused before. */
static bool visit_terms(struct visit *v, struct service *s, const char *model,
                        const struct body_terms *terms, const char *body, size_t chunk) {
  memset(v, 0, sizeof *v);
  assert_int_equal(sem_init(&v->done, 0, 0), 0);
  v->exchange.done = visit_done;
  struct models_hold hold = models_hold(s->models, 0);
  exchange_begin(&v->exchange, s, &hold, registry_find(hold.registry, model), terms);
  size_t length = strlen(body);
  for (size_t at = 0; at < length; at += chunk)
    exchange_feed(&v->exchange, body + at, length - at < chunk ? length - at : chunk);
  return exchange_finish(&v->exchange, 0);
}

static bool visit_ask(struct visit *v, struct service *s, const char *model, enum body_ask ask,
                      const char *body, size_t chunk) {
  const struct body_terms terms = {.ask = ask,
                                   .body_bytes = BODY_UNKNOWN,
                                   .json_bytes = BODY_UNKNOWN};
  return visit_terms(v, s, model, &terms, body, chunk);
}

static bool visit_begin(struct visit *v, struct service *s, const char *model, const char *body,
                        size_t chunk) {
  return visit_ask(v, s, model, ASK_ATTENTION, body, chunk);
}

static void visit_wait(struct visit *v, uint64_t deadline) {
  exchange_submit(&v->exchange, deadline);
  while (sem_wait(&v->done) != 0) {
  }
}

static void visit_end(struct visit *v) {
  exchange_end(&v->exchange);
  sem_destroy(&v->done);
}

/* The answer's text; the caller frees it. */
static char *answered(struct service *s, const char *model, const char *body, size_t chunk) {
  struct visit v;
  if (visit_begin(&v, s, model, body, chunk)) visit_wait(&v, 0);
  if (v.exchange.error.status) fail_msg("%s", v.exchange.error.detail);
  char *text = answer_join(&v.exchange.answer);
  visit_end(&v);
  return text;
}

static const char example[] =
    "{\"queries\":[[[1,0,0,1],[0,1,1,0]]],\"keys\":[[[1,0,0,0],[0,1,0,0],[0,0,1,0]]],"
    "\"values\":[[[1,2,3,4],[5,6,7,8],[9,10,11,12]]],\"valid_lens\":[2],"
    "\"return_attention\":true}";

static void an_example_is_answered(void **state) {
  struct fixture *f = *state;
  char *text = answered(&f->service, "demo", example, sizeof example);
  json_t *body = json_loads(text, 0, NULL);
  assert_non_null(body);
  const json_t *outputs = json_array_get(json_object_get(body, "outputs"), 0);
  assert_int_equal(json_array_size(outputs), 2);
  assert_int_equal(json_array_size(json_array_get(outputs, 0)), 4);
  const json_t *heads = json_array_get(json_object_get(body, "attention_weights"), 0);
  assert_int_equal(json_array_size(heads), 2);
  for (size_t h = 0; h < 2; h++)
    for (size_t q = 0; q < 2; q++) {
      const json_t *row = json_array_get(json_array_get(heads, h), q);
      double seen = json_number_value(json_array_get(row, 0));
      seen += json_number_value(json_array_get(row, 1));
      assert_true(fabs(seen - 1) < 1e-6);
      assert_true(json_number_value(json_array_get(row, 2)) == 0);
    }
  json_decref(body);
  free(text);
}

static void chunks_do_not_change_the_answer(void **state) {
  struct fixture *f = *state;
  char *whole = answered(&f->service, "demo", example, sizeof example);
  for (size_t chunk = 1; chunk < 20; chunk++) {
    char *text = answered(&f->service, "demo", example, chunk);
    assert_string_equal(text, whole);
    free(text);
  }
  free(whole);
}

static void empty_requests_are_answered(void **state) {
  struct fixture *f = *state;
  char *text = answered(&f->service, "demo", "{\"queries\":[]}", 100);
  assert_string_equal(text, "{\"model\":\"demo\",\"outputs\":[]}");
  free(text);
  text = answered(&f->service, "demo", "{\"queries\":[[],[]],\"return_attention\":\"average\"}", 9);
  assert_string_equal(text,
                      "{\"model\":\"demo\",\"outputs\":[[],[]],\"attention_weights\":[[],[]]}");
  free(text);
  text = answered(&f->service, "demo",
                  "{\"queries\":[[1,2,3,4]],\"keys\":[],\"return_attention\":true}", 100);
  assert_string_equal(text, "{\"model\":\"demo\",\"outputs\":[[0,0,0,0]],"
                            "\"attention_weights\":[[[]],[[]]]}");
  free(text);
}

static void together_as_alone(void **state) {
  struct fixture *f = *state;
  enum { VISITS = 40 };
  char *alone = answered(&f->service, "demo", example, 50);
  struct visit *v = calloc(VISITS, sizeof *v);
  assert_non_null(v);
  for (size_t i = 0; i < VISITS; i++)
    assert_true(visit_begin(&v[i], &f->service, "demo", example, 50));
  for (size_t i = 0; i < VISITS; i++) exchange_submit(&v[i].exchange, 0);
  for (size_t i = 0; i < VISITS; i++) {
    while (sem_wait(&v[i].done) != 0) {
    }
    assert_int_equal(v[i].exchange.error.status, STATUS_OK);
    char *text = answer_join(&v[i].exchange.answer);
    assert_string_equal(text, alone);
    free(text);
    visit_end(&v[i]);
  }
  free(v);
  free(alone);
}

static void times_and_bytes_are_counted(void **state) {
  struct fixture *f = *state;
  struct visit v;
  assert_true(visit_begin(&v, &f->service, "demo", example, 7));
  assert_int_equal(v.exchange.body_bytes, strlen(example));
  assert_true(v.exchange.body_ns > 0);
  visit_wait(&v, clock_now() + PATIENCE_NS);
  const struct job *job = &v.exchange.job;
  assert_true(job->submitted > 0 && job->started >= job->submitted);
  assert_true(job->computed >= job->started && job->finished >= job->computed);
  visit_end(&v);
}

static void what_is_wrong_is_not_submitted(void **state) {
  struct fixture *f = *state;
  struct visit v;
  assert_false(visit_begin(&v, &f->service, "demo", "{\"queries\":[[[1,2]]]}", 3));
  assert_int_equal(v.exchange.error.status, STATUS_INVALID_REQUEST);
  assert_string_equal(v.exchange.error.pointer, "/queries/0/0");
  assert_int_equal(v.exchange.body_bytes, 21);
  visit_end(&v);
  assert_false(visit_begin(&v, &f->service, "demo", "", 3));
  assert_int_equal(v.exchange.error.status, STATUS_INVALID_JSON);
  visit_end(&v);
}

static void heads_take_gradients_and_attention_does_not(void **state) {
  struct fixture *f = *state;
  static const char body[] = "{\"queries\":[[1,2,3,4]],\"gradients\":[[1,2,3]]}";
  static const struct {
    enum body_ask ask;
    const char *pointer;
  } list[] = {{ASK_ATTENTION, "/gradients"}, {ASK_HEADS, "/gradients/0"}};
  for (size_t i = 0; i < 2; i++) {
    struct visit v;
    assert_false(visit_ask(&v, &f->service, "demo", list[i].ask, body, 7));
    assert_int_equal(v.exchange.error.status, STATUS_INVALID_REQUEST);
    assert_string_equal(v.exchange.error.pointer, list[i].pointer);
    visit_end(&v);
  }
}

/* What is asked for, and what comes of it once the items are known. */
static void answers_have_the_form_that_is_asked_for(void **state) {
  struct fixture *f = *state;
  static const char alike[] = "{\"queries\":[[[1,2,3,4]],[[5,6,7,8]]]}";
  static const char ragged[] = "{\"queries\":[[[1,2,3,4]],[[5,6,7,8],[1,2,3,4]]]}";
  static const char uneven[] = /* segments whose weights are asked for */
      "{\"queries\":[[[1,0,0,1]],[[1,0,0,1]]],\"keys\":[[[1,0,0,0],[0,1,0,0]],"
      "[[1,0,0,0],[0,1,0,0]]],\"segments\":[[2],[1,1]],\"return_attention\":true}";
  static const char v2[] = "{\"inputs\":[{\"name\":\"queries\",\"datatype\":\"FP32\","
                           "\"shape\":[1,1,4],\"data\":[1,2,3,4]}]}";
  static const struct {
    const char *body;
    enum body_form form;
    bool wants, refuses, answered;
    enum answer_form answer;
  } list[] = {
      {alike, BODY_JSON, false, false, true, ANSWER_JSON},
      {alike, BODY_JSON, true, false, true, ANSWER_SAFETENSORS},
      {alike, BODY_JSON, true, true, true, ANSWER_SAFETENSORS},
      {ragged, BODY_JSON, true, false, true, ANSWER_JSON},
      {ragged, BODY_JSON, true, true, false, ANSWER_JSON},
      {uneven, BODY_JSON, true, false, true, ANSWER_JSON},
      {uneven, BODY_JSON, true, true, false, ANSWER_JSON},
      {v2, BODY_V2, false, false, true, ANSWER_V2},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    const struct body_terms terms = {.form = list[i].form,
                                     .body_bytes = BODY_UNKNOWN,
                                     .json_bytes = BODY_UNKNOWN,
                                     .wants_binary = list[i].wants,
                                     .refuses_json = list[i].refuses};
    struct visit v;
    assert_int_equal(visit_terms(&v, &f->service, "demo", &terms, list[i].body, 9),
                     list[i].answered);
    if (list[i].answered)
      assert_int_equal(v.exchange.answer.form, list[i].answer);
    else
      assert_int_equal(v.exchange.error.status, STATUS_NOT_ACCEPTABLE);
    visit_end(&v);
  }
}

static void beyond_float32_is_not_finite(void **state) {
  struct fixture *f = *state;
  struct visit v;
  assert_true(visit_begin(&v, &f->service, "demo", "{\"queries\":[[3e38,3e38,3e38,3e38]]}", 99));
  visit_wait(&v, 0);
  assert_int_equal(v.exchange.error.status, STATUS_NOT_FINITE);
  visit_end(&v);
}

static bool always_gone(struct exchange *x) { return x != NULL; }

static void late_and_left_are_not_answered(void **state) {
  struct fixture *f = *state;
  struct visit v;
  assert_true(visit_begin(&v, &f->service, "demo", example, 99));
  visit_wait(&v, 1);
  assert_int_equal(v.exchange.error.status, STATUS_DEADLINE);
  visit_end(&v);
  assert_true(visit_begin(&v, &f->service, "demo", example, 99));
  v.exchange.gone = always_gone;
  visit_wait(&v, 0);
  assert_int_equal(v.exchange.error.status, STATUS_GONE);
  visit_end(&v);
}

/* --- a check that takes long is a worker's --- */

enum { MANY = 6000 };

/* `before`, MANY times `item`, and `after`; the caller frees it. */
static char *repeat(const char *before, const char *item, const char *after) {
  const size_t length = strlen(item) + 1;
  char *text = malloc(strlen(before) + MANY * length + strlen(after) + 1);
  assert_non_null(text);
  char *at = stpcpy(text, before);
  for (size_t i = 0; i < MANY; i++) at = stpcpy(stpcpy(at, i ? "," : ""), item);
  stpcpy(at, after);
  return text;
}

static void many_items_are_answered_as_one_is(void **state) {
  struct fixture *f = *state;
  struct tally_sum before, after;
  pool_batches(f->service.pool, &before);
  char *body = repeat("{\"queries\":[", "[[1,0,0,1]]", "]}");
  struct visit v;
  assert_true(visit_begin(&v, &f->service, "demo", body, 5000));
  assert_false(v.exchange.checked);
  visit_wait(&v, clock_now() + PATIENCE_NS);
  assert_int_equal(v.exchange.error.status, STATUS_OK);
  assert_true(v.exchange.waited_ns > 0);
  assert_true(v.exchange.job.computed >= v.exchange.job.started);
  pool_batches(f->service.pool, &after); /* the check is no batch of requests */
  assert_int_equal(after.requests.sum, before.requests.sum + 1);
  char *text = answer_join(&v.exchange.answer);
  char *one = answered(&f->service, "demo", "{\"queries\":[[[1,0,0,1]]]}", 99);
  char *item = strstr(one, "[[[") + 1;
  item[strlen(item) - 2] = '\0'; /* "]}" */
  char *many = repeat("{\"model\":\"demo\",\"outputs\":[", item, "]}");
  assert_string_equal(text, many);
  free(many);
  free(one);
  free(text);
  free(body);
  visit_end(&v);
}

static void what_is_wrong_with_many_items_is_told(void **state) {
  struct fixture *f = *state;
  char *body = repeat("{\"queries\":[", "[[1,0,0,1]]", "],\"valid_lens\":[1]}");
  struct visit v;
  assert_true(visit_begin(&v, &f->service, "demo", body, 5000));
  visit_wait(&v, 0);
  assert_int_equal(v.exchange.error.status, STATUS_INVALID_REQUEST);
  assert_string_equal(v.exchange.error.pointer, "/valid_lens");
  assert_int_equal(v.exchange.job.submitted, 0); /* as if it had been found at once */
  assert_true(v.exchange.waited_ns > 0);         /* but the wait for a worker is told */
  visit_end(&v);
  free(body);
}

static void a_long_check_may_be_late_or_left(void **state) {
  struct fixture *f = *state;
  char *body = repeat("{\"queries\":[", "[[1,0,0,1]]", "]}");
  struct visit v;
  assert_true(visit_begin(&v, &f->service, "demo", body, 5000));
  visit_wait(&v, 1);
  assert_int_equal(v.exchange.error.status, STATUS_DEADLINE);
  assert_null(v.exchange.run); /* nothing was checked */
  visit_end(&v);
  assert_true(visit_begin(&v, &f->service, "demo", body, 5000));
  v.exchange.gone = always_gone;
  visit_wait(&v, 0);
  assert_int_equal(v.exchange.error.status, STATUS_GONE);
  visit_end(&v);
  free(body);
}

/* The deadline that a v2 request has of its own is known only when it has been checked. */
static void a_body_brings_its_deadline_forward(void **state) {
  struct fixture *f = *state;
  char *body = repeat("{\"parameters\":{\"timeout\":1},\"inputs\":[{\"name\":\"queries\","
                      "\"datatype\":\"FP32\",\"shape\":[6000,1,4],\"data\":[",
                      "1,0,0,1", "]}]}");
  const struct body_terms terms = {.form = BODY_V2,
                                   .body_bytes = BODY_UNKNOWN,
                                   .json_bytes = BODY_UNKNOWN};
  struct visit v;
  assert_true(visit_terms(&v, &f->service, "demo", &terms, body, 5000));
  assert_false(v.exchange.checked);
  visit_wait(&v, clock_now() + PATIENCE_NS);
  assert_int_equal(v.exchange.error.status, STATUS_DEADLINE);
  assert_non_null(v.exchange.run->program);
  visit_end(&v);
  free(body);
}

static void a_closed_pool_checks_nothing(void **state) {
  (void)state;
  struct fixture f;
  struct visit v;
  start(&f, two_workers);
  char *body = repeat("{\"queries\":[", "[[1,0,0,1]]", "]}");
  assert_true(visit_begin(&v, &f.service, "demo", body, 5000));
  pool_abandon(f.service.pool);
  visit_wait(&v, 0);
  assert_int_equal(v.exchange.error.status, STATUS_DRAINING);
  visit_end(&v);
  free(body);
  stop(&f);
}

/* --- settings --- */

static void limits_come_from_the_settings(void **state) {
  (void)state;
  static const char *const settings[] = {"--max-body-bytes", "60", "--max-pairs", "1", NULL};
  struct fixture f;
  struct visit v;
  start(&f, settings);
  assert_false(visit_begin(&v, &f.service, "demo", example, 10));
  assert_int_equal(v.exchange.error.status, STATUS_TOO_LARGE);
  assert_string_equal(v.exchange.error.limit, "max_body_bytes");
  visit_end(&v);
  assert_false(visit_begin(&v, &f.service, "demo", "{\"queries\":[[1,2,3,4]]}", 10));
  assert_string_equal(v.exchange.error.limit, "max_pairs");
  visit_end(&v);
  stop(&f);
}

static void the_budget_is_shared(void **state) {
  (void)state;
  static const char *const settings[] = {"--memory-budget-bytes", "40000", NULL};
  struct fixture f;
  struct visit v[4];
  start(&f, settings);
  bool ready = true;
  size_t count = 0;
  for (; count < 4 && ready; count++)
    ready = visit_begin(&v[count], &f.service, "demo", example, 99);
  assert_false(ready);
  assert_true(count > 1);
  assert_int_equal(v[count - 1].exchange.error.status, STATUS_OVERLOADED);
  for (size_t i = 0; i < count; i++) visit_end(&v[i]);
  stop(&f);
}

/* Nobody has to leave for it: it would never fit. */
static void what_never_fits_the_budget_is_too_large(void **state) {
  (void)state;
  static const char *const settings[] = {"--memory-budget-bytes", "10000", NULL};
  struct fixture f;
  struct visit v;
  start(&f, settings);
  assert_false(visit_begin(&v, &f.service, "demo", example, 99));
  assert_int_equal(v.exchange.error.status, STATUS_TOO_LARGE);
  assert_string_equal(v.exchange.error.limit, "memory_budget_bytes");
  visit_end(&v);
  stop(&f);
}

/* --- run --- */

struct outcome {
  int status;
  char out[4096], err[4096];
};

static void read_back(int file, char *text, size_t size) {
  ssize_t n = pread(file, text, size - 1, 0);
  assert_true(n >= 0);
  text[n] = '\0';
}

static int unnamed_file(void) {
  char path[] = "/tmp/attend-test-exchange-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  unlink(path);
  return file;
}

/* Runs `attend run model` on a body, with standard error caught. */
static struct outcome run_as(const char *const *settings, const char *model, enum body_ask ask,
                             const char *body) {
  struct config config;
  struct error e = {0};
  char *nothing[] = {NULL};
  assert_int_equal(config_read(&config, (char *const *)settings, nothing, &e), STATUS_OK);
  int in = unnamed_file(), out = unnamed_file(), err = unnamed_file();
  assert_int_equal(pwrite(in, body, strlen(body), 0), strlen(body));
  fflush(stderr);
  int saved = dup(STDERR_FILENO);
  dup2(err, STDERR_FILENO);
  const struct command_run_asked asked = {
      .model = model,
      .terms = {.ask = ask, .body_bytes = BODY_UNKNOWN, .json_bytes = BODY_UNKNOWN}};
  struct outcome o = {.status = command_run(&config, &asked, in, out)};
  fflush(stderr);
  dup2(saved, STDERR_FILENO);
  close(saved);
  read_back(out, o.out, sizeof o.out);
  read_back(err, o.err, sizeof o.err);
  close(in);
  close(out);
  close(err);
  config_free(&config);
  return o;
}

static struct outcome run(const char *const *settings, const char *model, const char *body) {
  return run_as(settings, model, ASK_ATTENTION, body);
}

static void run_writes_what_http_would(void **state) {
  struct fixture *f = *state;
  char *text = answered(&f->service, "demo", example, 50);
  struct outcome o = run(two_workers, "demo", example);
  assert_string_equal(o.err, "");
  assert_string_equal(o.out, text);
  assert_int_equal(o.status, 0);
  free(text);
}

static void run_says_what_is_wrong(void **state) {
  (void)state;
  struct outcome o = run(two_workers, "demo", "{\"queries\":[[1,2,3,4]],\"caus\":true}");
  assert_int_equal(o.status, 1);
  assert_string_equal(o.out, "");
  assert_non_null(strstr(o.err, "attend: unknown field"));
  assert_non_null(strstr(o.err, "(at /caus)\n"));
  o = run(two_workers, "demo", "{\"queries\" 1}");
  assert_int_equal(o.status, 1);
  assert_non_null(strstr(o.err, "(at byte 11)\n"));
  o = run(two_workers, "demo", "{\"queries\":[[3e38,3e38,3e38,3e38]]}");
  assert_int_equal(o.status, 1);
  assert_string_equal(o.out, "");
  o = run_as(two_workers, "demo", ASK_HEADS, "{\"queries\":[[1,2,3,4]],\"gradients\":[[1]]}");
  assert_int_equal(o.status, 1);
  assert_string_equal(o.out, "");
  assert_non_null(strstr(o.err, "(at /gradients/0)\n"));
  o = run(two_workers, "nobody", example);
  assert_int_equal(o.status, 2);
  assert_string_equal(o.out, "");
  assert_non_null(strstr(o.err, "\"nobody\"; there are: words, story, sort, demo, base, additive\n"));
}

/* --- tokens one after the other --- */

static size_t news;
static void count_news(struct exchange *x) { news += exchange_has_begun(x); }

/* Each token moves the deadline of the next one, up to that of all; a stream is told of each but
 * the last. */
static void a_deadline_moves_from_token_to_token(void **state) {
  (void)state;
  static const char body[] = "{\"tokens\":[1],\"max_tokens\":9,\"min_tokens\":9,\"stream\":true}";
  struct place *p;
  struct fixture f;
  struct visit v;
  assert_int_equal(place_make((void **)&p, "attend.json"), 0);
  start_decoder(&f, p);
  for (int near = 0; near < 2; near++) {
    const uint64_t all = clock_now() + 2 * PATIENCE_NS,
                   pause = near ? 4 * PATIENCE_NS : PATIENCE_NS;
    assert_true(visit_ask(&v, &f.service, "d", ASK_GENERATE, body, 1000));
    v.exchange.pause_ns = pause;
    v.exchange.news = count_news;
    news = 0;
    visit_wait(&v, all);
    assert_int_equal(v.exchange.error.status, STATUS_OK);
    assert_int_equal(exchange_generated(&v.exchange), 9);
    assert_int_equal(news, 8);
    if (near)
      assert_true(v.exchange.job.deadline == all);
    else
      assert_true(v.exchange.job.deadline > v.exchange.begun + pause &&
                  v.exchange.job.deadline < all);
    visit_end(&v);
  }
  stop(&f);
  place_remove((void **)&p);
}

static struct { size_t all, first; } paces;

static void count_pace(struct exchange *x, bool first, uint64_t ns) {
  paces.all += x->counted > 0 && ns < PATIENCE_NS;
  paces.first += first;
}

/* The steps of a text's search, which are the lists that its answer shows. */
static size_t steps_of(const json_t *answer, size_t text) {
  return json_array_size(json_array_get(json_object_get(answer, "search"), text));
}

/* What searches tell is their steps, those of all texts and the last ones among them, however many
 * tokens there are in what they find: more, or fewer. */
static void the_steps_of_searches_are_counted(void **state) {
  (void)state;
  static const struct {
    const char *body;
    bool more; /* tokens */
  } list[] = {
      {"{\"tokens\":[[1],[2,3]],\"max_tokens\":9,\"min_tokens\":9,\"beams\":3,\"returns\":2,"
       "\"return_search\":true}",
       true},
      {"{\"tokens\":[[1],[2,3]],\"max_tokens\":9,\"beams\":3,\"return_search\":true,"
       "\"early_stopping\":\"never\",\"length_penalty\":-1,\"stop_tokens\":[1,3,5,7,9,11,13,15,17]"
       "}",
       false},
  };
  struct place *p;
  struct fixture f;
  struct visit v;
  assert_int_equal(place_make((void **)&p, "attend.json"), 0);
  start_decoder(&f, p);
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    assert_true(visit_ask(&v, &f.service, "d", ASK_GENERATE, list[i].body, 1000));
    v.exchange.paced = count_pace;
    memset(&paces, 0, sizeof paces);
    visit_wait(&v, 0);
    assert_int_equal(v.exchange.error.status, STATUS_OK);
    char *text = answer_join(&v.exchange.answer);
    json_t *answer = json_loads(text, 0, NULL);
    const size_t one = steps_of(answer, 0), other = steps_of(answer, 1);
    assert_true(one > 1 && other > 1);
    assert_true((exchange_generated(&v.exchange) > one + other) == list[i].more);
    assert_int_equal(v.exchange.counted, one + other);
    assert_int_equal(paces.all,
                     one > other ? one : other); /* a round is a step of all that go on */
    assert_int_equal(paces.first, 1);
    json_decref(answer);
    free(text);
    visit_end(&v);
  }
  stop(&f);
  place_remove((void **)&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(an_example_is_answered, enter, leave),
      cmocka_unit_test_setup_teardown(chunks_do_not_change_the_answer, enter, leave),
      cmocka_unit_test_setup_teardown(empty_requests_are_answered, enter, leave),
      cmocka_unit_test_setup_teardown(together_as_alone, enter, leave),
      cmocka_unit_test_setup_teardown(times_and_bytes_are_counted, enter, leave),
      cmocka_unit_test_setup_teardown(what_is_wrong_is_not_submitted, enter, leave),
      cmocka_unit_test_setup_teardown(heads_take_gradients_and_attention_does_not, enter, leave),
      cmocka_unit_test_setup_teardown(answers_have_the_form_that_is_asked_for, enter, leave),
      cmocka_unit_test_setup_teardown(beyond_float32_is_not_finite, enter, leave),
      cmocka_unit_test_setup_teardown(late_and_left_are_not_answered, enter, leave),
      cmocka_unit_test_setup_teardown(many_items_are_answered_as_one_is, enter, leave),
      cmocka_unit_test_setup_teardown(what_is_wrong_with_many_items_is_told, enter, leave),
      cmocka_unit_test_setup_teardown(a_long_check_may_be_late_or_left, enter, leave),
      cmocka_unit_test_setup_teardown(a_body_brings_its_deadline_forward, enter, leave),
      cmocka_unit_test(a_closed_pool_checks_nothing),
      cmocka_unit_test(limits_come_from_the_settings),
      cmocka_unit_test(the_budget_is_shared),
      cmocka_unit_test(what_never_fits_the_budget_is_too_large),
      cmocka_unit_test_setup_teardown(run_writes_what_http_would, enter, leave),
      cmocka_unit_test(run_says_what_is_wrong),
      cmocka_unit_test(a_deadline_moves_from_token_to_token),
      cmocka_unit_test(the_steps_of_searches_are_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
