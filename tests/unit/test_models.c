/* test_models: sets of models that are held, swapped and freed, by one thread and by many. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/service/models.h"

/* A set of one model whose name is `name`. */
static struct registry *make_set(const char *name) {
  struct error e = {0};
  struct config c = {.gemm = "auto", .compute = "float32", .default_model = "", .directory = "."};
  c.models =
      json_pack("{s:{s:{s:i}, s:i, s:i}}", name, "random", "seed", 1, "query_size", 4, "heads", 2);
  assert_non_null(c.models);
  struct registry *r = registry_load(&c, NULL, &e);
  json_decref(c.models); /* the set no longer needs its configuration */
  if (!r) fail_msg("%s", e.detail);
  return r;
}

static struct models *make_models(const char *name, size_t shards) {
  struct error e = {0};
  struct models *m = models_new((struct models_set){.registry = make_set(name)}, shards, &e);
  assert_non_null(m);
  return m;
}

static const char *name_of(const struct models_hold *h) {
  return registry_at(h->registry, 0)->name;
}

static void swap_in(struct models *m, const char *name) {
  assert_true(models_swap(m, (struct models_set){.registry = make_set(name)}));
}

static void what_is_held_stays(void **unused) {
  (void)unused;
  struct models *m = make_models("first", 2);
  struct models_hold old = models_hold(m, 0), also = models_hold(m, 1);
  assert_ptr_equal(old.registry, also.registry);
  swap_in(m, "second");
  struct models_hold now = models_hold(m, 0);
  assert_string_equal(name_of(&old), "first");
  assert_string_equal(name_of(&now), "second");
  assert_int_equal(models_collect(m), 1);
  models_release(&old);
  assert_null(old.registry);
  models_release(&old); /* again is fine, and counts nothing */
  assert_int_equal(models_collect(m), 1);
  assert_string_equal(name_of(&also), "first");
  models_release(&also);
  assert_int_equal(models_collect(m), 0);
  assert_string_equal(name_of(&now), "second");
  models_release(&now);
  models_free(m);
  models_free(NULL);
}

static void any_shard_will_do(void **unused) {
  (void)unused;
  struct models *m = make_models("first", 3);
  struct models_hold hold[8];
  for (size_t i = 0; i < 8; i++) hold[i] = models_hold(m, i * 1000003);
  swap_in(m, "second");
  for (size_t i = 0; i < 8; i++) {
    assert_int_equal(models_collect(m), 1);
    assert_string_equal(name_of(&hold[i]), "first");
    models_release(&hold[i]);
  }
  assert_int_equal(models_collect(m), 0);
  models_free(m);
}

static void one_more_than_may_be_held(void **unused) {
  (void)unused;
  struct models *m = make_models("0", 1);
  struct models_hold hold[MODELS_OLDER];
  char name[8];
  for (int i = 0; i < MODELS_OLDER; i++) {
    hold[i] = models_hold(m, 0);
    assert_int_equal(models_collect(m), i);
    snprintf(name, sizeof name, "%d", i + 1);
    swap_in(m, name);
  }
  struct models_set refused = {.registry = make_set("refused")};
  assert_false(models_swap(m, refused));
  assert_int_equal(models_collect(m), MODELS_OLDER);
  struct models_hold now = models_hold(m, 0);
  assert_string_equal(name_of(&now), name);
  models_release(&now);
  for (int i = 0; i < MODELS_OLDER; i++) {
    snprintf(name, sizeof name, "%d", i);
    assert_string_equal(name_of(&hold[i]), name);
  }
  /* Releasing any of them makes room, not only the oldest. */
  models_release(&hold[1]);
  assert_true(models_swap(m, refused));
  now = models_hold(m, 0);
  assert_string_equal(name_of(&now), "refused");
  models_release(&now);
  assert_string_equal(name_of(&hold[0]), "0");
  assert_int_equal(models_collect(m), MODELS_OLDER - 1); /* the third was not held */
  models_release(&hold[0]);
  models_release(&hold[2]);
  assert_int_equal(models_collect(m), 0);
  models_free(m);
}

static void one_held_for_long_blocks_no_swap(void **unused) {
  (void)unused;
  struct models *m = make_models("old", 1);
  struct models_hold old = models_hold(m, 0);
  for (int i = 0; i < 20; i++) {
    char name[8];
    snprintf(name, sizeof name, "%d", i);
    swap_in(m, name);
    assert_int_equal(models_collect(m), 1);
    struct models_hold now = models_hold(m, 0);
    assert_string_equal(name_of(&now), name);
    models_release(&now);
  }
  assert_string_equal(name_of(&old), "old");
  models_release(&old);
  models_free(m);
}

/* --- many threads --- */

enum { THREADS = 4, SWAPS = 400, KEPT = 2 };

struct holder {
  pthread_t thread;
  struct models *models;
  size_t shard;
  atomic_bool *stop;
  atomic_size_t holds;
};

/* Holds a few sets at a time, and reads them: a freed one would be found. */
static void *hold_some(void *argument) {
  struct holder *h = argument;
  struct models_hold kept[KEPT] = {0};
  int last = 0;
  while (!atomic_load(h->stop)) {
    struct models_hold *k = &kept[atomic_fetch_add(&h->holds, 1) % KEPT];
    if (k->registry) {
      const int before = atoi(name_of(k));
      assert_true(before <= last);
      models_release(k);
    }
    *k = models_hold(h->models, h->shard);
    const int now = atoi(name_of(k));
    assert_true(now >= last); /* a later hold never has an older set */
    last = now;
  }
  for (int i = 0; i < KEPT; i++) models_release(&kept[i]);
  return NULL;
}

/* How often the main thread has tried so far; and a signal that stops a thread for two such turns,
 * wherever it is: also between counting a hold and checking the generation. */
static atomic_size_t turns;

static void stop_for_two_turns(int number) {
  (void)number;
  const size_t begun = atomic_load(&turns);
  for (int i = 0; i < 10000 && atomic_load(&turns) < begun + 2; i++) sched_yield();
}

static void swap_many(struct models *m, struct holder h[THREADS]) {
  for (int i = 1; i <= SWAPS; i++) {
    char name[8];
    snprintf(name, sizeof name, "%d", i);
    struct models_set next = {.registry = make_set(name)};
    pthread_kill(h[i % THREADS].thread, SIGUSR1);
    while (!models_swap(m, next)) {
      atomic_fetch_add(&turns, 1);
      sched_yield();
    }
    /* Freed here, and not by the next swap: a hold of it would be found while its slot is free. */
    models_collect(m);
    atomic_fetch_add(&turns, 1);
  }
}

static void many_threads_hold_what_is_swapped(void **unused) {
  (void)unused;
  struct models *m = make_models("0", 2); /* threads share shards, too */
  struct holder h[THREADS];
  atomic_bool stop = false;
  signal(SIGUSR1, stop_for_two_turns);
  for (size_t i = 0; i < THREADS; i++) {
    h[i] = (struct holder){.models = m, .shard = i, .stop = &stop};
    assert_int_equal(pthread_create(&h[i].thread, NULL, hold_some, &h[i]), 0);
  }
  for (size_t i = 0; i < THREADS; i++)
    while (atomic_load(&h[i].holds) == 0) sched_yield();
  swap_many(m, h);
  atomic_store(&stop, true);
  for (size_t i = 0; i < THREADS; i++) pthread_join(h[i].thread, NULL);
  assert_int_equal(models_collect(m), 0);
  struct models_hold now = models_hold(m, 0);
  assert_int_equal(atoi(name_of(&now)), SWAPS);
  models_release(&now);
  models_free(m);
}

/* A hold may pass from thread to thread, as its request does. */
static void *release_it(void *hold) {
  models_release(hold);
  return NULL;
}

static void another_thread_releases(void **unused) {
  (void)unused;
  struct models *m = make_models("first", 2);
  for (int i = 0; i < 20; i++) {
    struct models_hold hold = models_hold(m, 1);
    swap_in(m, "next");
    assert_int_equal(models_collect(m), 1);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, release_it, &hold), 0);
    pthread_join(thread, NULL);
    assert_int_equal(models_collect(m), 0);
  }
  models_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_held_stays),
      cmocka_unit_test(any_shard_will_do),
      cmocka_unit_test(one_more_than_may_be_held),
      cmocka_unit_test(one_held_for_long_blocks_no_swap),
      cmocka_unit_test(many_threads_hold_what_is_swapped),
      cmocka_unit_test(another_thread_releases),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
