/* service: all that requests share, with or without HTTP: models, pool, budget, sequences. */
#include "server/service/service.h"

#include <string.h>

#include "config/build/whole.h"
#include "config/model/registry.h"
#include "core/base/cpu.h"
#include "core/base/size.h"
#include "core/kernel/gemm.h"

enum status sequences_begin(struct sequences *s, struct sequences_share share, struct error *e) {
  if (!budget_charge(&s->running, share.count))
    return error_set(e, STATUS_QUEUE_FULL,
                     "%zu sequences are in progress, and %zu more would exceed max_sequences, %zu",
                     atomic_load(&s->running.used), share.count, s->running.limit);
  atomic_fetch_add(&s->kept_bytes, share.bytes);
  return STATUS_OK;
}

void sequences_end(struct sequences *s, struct sequences_share *share) {
  if (share->count == 0) return;
  budget_return(&s->running, share->count);
  atomic_fetch_sub(&s->kept_bytes, share->bytes);
  *share = (struct sequences_share){0};
}

/* --- the start --- */

/* A model that computes with a BLAS built for one thread, or NULL. */
static const struct model *find_single_threaded(const struct registry *r) {
  if (gemm_blas().threadsafe) return NULL;
  for (size_t i = 0; i < registry_count(r); i++) {
    const struct model *m = registry_at(r, i);
    if (m->layer && strcmp(layer_engine(m->layer), "openblas") == 0) return m;
  }
  return NULL;
}

/* Loads the keys first: they take less time, so their faults are reported at once. */
static enum status load_models_and_keys(const struct config *c, struct progress *p,
                                        struct models_set *out, struct error *e) {
  *out = (struct models_set){0};
  if (api_keys_load(c, &out->api_keys, e) == STATUS_OK) out->registry = registry_load(c, p, e);
  if (e->status != STATUS_OK) models_set_free(out);
  return e->status;
}

/* The most memory that is kept for later requests. None under a sanitizer, so that it sees every
 * use of memory that a request has given back. */
#ifdef __SANITIZE_ADDRESS__
static const size_t keep_most = 0;
#else
static const size_t keep_most = ARENA_KEPT_MOST;
#endif

void service_init(struct service *s, const struct config *c, size_t submitters) {
  memset(s, 0, sizeof *s);
  s->config = c;
  s->workers = c->workers ? c->workers : cpu_quota();
  s->submitters = submitters ? submitters : s->workers;
  budget_init(&s->budget, c->memory_budget_bytes ? c->memory_budget_bytes : cpu_memory() / 2);
  s->budget.keep = keep_new(size_min(keep_most, s->budget.limit / 8));
  s->limits = (struct body_limits){.max_items = c->max_items,
                                   .max_pairs = c->max_pairs,
                                   .max_answer_bytes = c->max_answer_bytes,
                                   .max_tokens = c->max_tokens,
                                   .max_sequences = c->max_sequences,
                                   .max_body_bytes = c->max_body_bytes};
  budget_init(&s->sequences.running, c->max_sequences);
}

/* Measures the speed of a worker with the largest of the models; if all are small, assumes that of
 * a usual processor. */
static void measure_pace(struct service *s, const struct registry *r) {
  const struct stack *largest = NULL;
  s->pace = (struct stack_pace){.second_work = 1e11, .byte_work = 4};
  for (size_t i = 0; i < registry_count(r); i++) {
    const struct model *m = registry_at(r, i);
    const struct stack *stack = m->whole ? whole_reader(m->whole) : NULL;
    if (stack && (!largest || stack_bytes(stack) > stack_bytes(largest))) largest = stack;
  }
  if (largest) stack_measure_pace(largest, &s->pace);
}

enum status service_open(struct service *s, struct error *e) {
  const struct config *c = s->config;
  gemm_blas_init();
  if (c->prefix_cache_bytes > s->budget.limit / 2) /* requests need the other half at least */
    return error_set(e, STATUS_CONFIG,
                     "prefix_cache_bytes: %llu is more than half of the memory budget of all "
                     "requests, %zu (memory_budget_bytes)",
                     (unsigned long long)c->prefix_cache_bytes, s->budget.limit);
  if (c->prefix_cache_bytes > 0 &&
      !(s->prefixes = prefixes_new((size_t)c->prefix_cache_bytes, &s->budget, e)))
    return e->status;
  struct models_set set;
  if (load_models_and_keys(c, &s->progress, &set, e)) return e->status;
  s->models = models_new(set, s->submitters, e);
  if (!s->models) return e->status;
  /* Two threads in a BLAS that is built for one thread would corrupt each other's numbers. One
   * worker is safe as long as it computes everything, also tiny jobs. */
  const struct model *single = find_single_threaded(set.registry);
  s->seats = single ? 0 : s->submitters;
  if (single && s->workers > 1)
    return error_set(e, STATUS_CONFIG,
                     "model %s computes with OpenBLAS, whose flavour here (%s) is not made for %zu "
                     "workers: install libopenblas0-pthread, or set gemm to packed or workers to 1",
                     single->name, gemm_blas().config, s->workers);
  measure_pace(s, set.registry);
  const struct pool_options options = {.workers = s->workers,
                                       .max_queue = c->max_queue,
                                       .merge = c->merge,
                                       .seats = s->seats,
                                       .scratch_bytes = registry_scratch_bytes(set.registry),
                                       .byte_work = s->pace.byte_work};
  s->pool = pool_new(&options, e);
  return e->status;
}

enum status service_start(struct service *s, const struct config *c, size_t submitters,
                          struct error *e) {
  service_init(s, c, submitters);
  if (service_open(s, e)) service_stop(s);
  return e->status;
}

void service_stop(struct service *s) {
  pool_free(s->pool);
  models_free(s->models);
  prefixes_free(s->prefixes);
  keep_free(s->budget.keep);
  s->pool = NULL;
  s->models = NULL;
  s->prefixes = NULL;
  s->budget.keep = NULL;
}

/* --- other models --- */

enum status service_load(struct service *s, const struct config *c, struct progress *p,
                         struct models_set *out, struct error *e) {
  struct config settings = *c; /* its strings and models are those of `c` */
  settings.gemm = s->config->gemm;
  /* The start decides whether keys are needed: a mistake in a reload must not open a door. */
  settings.api_key_file = s->config->api_key_file;
  if (load_models_and_keys(&settings, p, out, e) != STATUS_OK) return e->status;
  /* If the submitters compute, too, no later model may need a BLAS built for one thread. They do
   * not if the start had such a model: then one worker computes everything. */
  const struct model *m = s->seats ? find_single_threaded(out->registry) : NULL;
  if (m)
    error_set(e, STATUS_CONFIG,
              "model %s computes with OpenBLAS, whose flavour here (%s) is made for one "
              "thread, and the server has started without such a model: restart, or install "
              "libopenblas0-pthread",
              m->name, gemm_blas().config);
  if (m || pool_reserve(s->pool, registry_scratch_bytes(out->registry), e) != STATUS_OK)
    models_set_free(out);
  return e->status;
}
