/* exchange: decode, prepare, pool, encode: the way of one request. */
#include "server/exchange.h"

#include <stddef.h>
#include <string.h>

#include "config/registry.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/gemm.h"
#include "core/size.h"
#include "server/json_small.h"

/* --- what all requests share --- */

/* A model that computes with a BLAS built for one thread, or NULL. */
static const struct model *model_of_one_thread(const struct registry *r) {
  if (gemm_blas().threadsafe) return NULL;
  for (size_t i = 0; i < registry_count(r); i++) {
    const struct model *m = registry_at(r, i);
    if (strcmp(layer_engine(m->layer), "openblas") == 0) return m;
  }
  return NULL;
}

/* Two threads inside such a BLAS would corrupt each other's numbers. One worker is safe as long as
 * it computes everything: there are no seats then, and tiny jobs are its own, too. */
static enum status seat_submitters(const struct service *s, const struct registry *r,
                                   struct pool_options *o, struct error *e) {
  const struct model *m = model_of_one_thread(r);
  o->seats = m ? 0 : s->submitters;
  if (!m || s->workers == 1) return STATUS_OK;
  return error_set(e, STATUS_CONFIG,
                   "model %s computes with OpenBLAS, whose flavour here (%s) is not made for %zu "
                   "workers: install libopenblas0-pthread, or set gemm to packed or workers to 1",
                   m->name, gemm_blas().config, s->workers);
}

/* A sanitizer is to see each use of what was freed. */
#ifdef __SANITIZE_ADDRESS__
static const size_t keep_most = 0;
#else
static const size_t keep_most = 64 << 20;
#endif

enum status service_start(struct service *s, const struct config *c, size_t submitters,
                          struct error *e) {
  memset(s, 0, sizeof *s);
  s->config = c;
  s->workers = c->workers ? c->workers : cpu_quota();
  s->submitters = submitters ? submitters : s->workers;
  budget_init(&s->budget, c->memory_budget_bytes ? c->memory_budget_bytes : cpu_memory() / 2);
  s->budget.keep = keep_new(size_min(keep_most, s->budget.limit / 8));
  s->limits = (struct decode_limits){.max_items = c->max_items,
                                     .max_pairs = c->max_pairs,
                                     .max_answer_bytes = c->max_answer_bytes};
  struct pool_options options = {.workers = s->workers,
                                 .max_queue = c->max_queue,
                                 .merge = c->merge};
  gemm_blas_init();
  json_small_init();
  struct registry *registry = registry_load(c, e);
  if (registry) s->models = models_new(registry, s->submitters, e);
  if (s->models && seat_submitters(s, registry, &options, e) == STATUS_OK) {
    options.scratch_bytes = registry_scratch_bytes(registry);
    s->pool = pool_new(&options, e);
  }
  if (e->status) service_stop(s);
  return e->status;
}

void service_stop(struct service *s) {
  pool_free(s->pool);
  models_free(s->models);
  keep_free(s->budget.keep);
  s->pool = NULL;
  s->models = NULL;
  s->budget.keep = NULL;
}

/* --- one request --- */

void exchange_begin(struct exchange *x, struct service *s, struct models_hold *hold,
                    const struct model *m, const struct decode_head *head) {
  x->service = s;
  x->hold = *hold;
  *hold = (struct models_hold){0};
  x->model = m;
  x->head = *head;
  x->decode_ns = 0;
  x->body_bytes = 0;
  memset(&x->error, 0, sizeof x->error);
  memset(&x->decoded, 0, sizeof x->decoded);
  memset(&x->answer, 0, sizeof x->answer);
  memset(&x->job, 0, sizeof x->job);
  arena_init(&x->arena, &s->budget);
  x->decoder = decoder_new(m, head, &s->limits, &x->arena, &x->error);
}

void exchange_feed(struct exchange *x, const char *text, size_t length) {
  uint64_t limit = x->service->config->max_body_bytes;
  bool fits = length <= limit && x->body_bytes <= limit - length;
  x->body_bytes += length;
  if (x->error.status) return;
  if (!fits) {
    error_limit(&x->error, "max_body_bytes", "the body is larger than %llu bytes",
                (unsigned long long)limit);
    return;
  }
  uint64_t start = clock_now();
  decoder_feed(x->decoder, text, length, &x->error);
  x->decode_ns += clock_now() - start;
}

static struct exchange *exchange_of(struct job *job) {
  return (struct exchange *)((char *)job - offsetof(struct exchange, job));
}

static void encode(struct job *job, size_t piece) {
  answer_write_piece(&exchange_of(job)->answer, piece);
}

static bool gone(struct job *job) {
  struct exchange *x = exchange_of(job);
  return x->gone(x);
}

static void done(struct job *job) {
  struct exchange *x = exchange_of(job);
  x->error = job->error;
  x->done(x);
}

bool exchange_finish(struct exchange *x) {
  if (x->error.status) return false;
  uint64_t start = clock_now();
  struct call *call = &x->decoded.call;
  bool ready = !decoder_finish(x->decoder, &x->decoded, &x->error) &&
               !layer_prepare(x->model->layer, call, &x->arena, &x->error) &&
               !answer_plan(&x->answer, ANSWER_JSON, x->model, &x->decoded, &x->service->limits,
                            &x->arena, &x->error);
  x->decode_ns += clock_now() - start;
  return ready;
}

void exchange_submit(struct exchange *x, uint64_t deadline) {
  must(!x->error.status);
  x->job.layer = x->model->layer;
  x->job.call = &x->decoded.call;
  x->job.pieces = x->answer.pieces;
  x->job.encode = encode;
  x->job.gone = x->gone ? gone : NULL;
  x->job.done = done;
  x->job.deadline = deadline;
  pool_submit(x->service->pool, &x->job);
}

void exchange_end(struct exchange *x) {
  arena_free(&x->arena);
  models_release(&x->hold);
  x->decoder = NULL;
}
