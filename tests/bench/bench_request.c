/* bench_request: the least that a request costs: CPU time of reading, computing and answering it on
 * one thread, without a server around it.
 *
 *   bench_request REQUEST [TURNS]
 *
 * REQUEST is the body for a layer of width 512 with 8 heads. Prints the best of TURNS of each as
 * milliseconds: "body layer answer". */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "config/build/model.h"
#include "config/document/json_reserve.h"
#include "core/base/keep.h"
#include "server/attention/attention_answer.h"
#include "server/attention/attention_body.h"
#include "server/number/number.h"

enum { KEPT = 64 << 20, CHUNK = 16 * 1024, BODY = 0, LAYER, ANSWER, STAGES };

static double cpu_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static struct model *make_model(struct error *e) {
  json_t *definition =
      json_pack("{s:{s:i},s:i,s:i}", "random", "seed", 1, "query_size", 512, "heads", 8);
  struct model *m = model_load("base", definition, ".", GEMM_AUTO, COMPUTE_FLOAT32, e);
  json_decref(definition);
  return m;
}

/* One request from its text to its answer's; `spent` keeps the least of each stage. The budget
 * keeps large blocks as the server's does, or a sixth of the time would be the system's, mapping
 * memory. */
static enum status serve(const struct model *m, struct budget *budget, const char *body,
                         size_t length, void *scratch, double spent[STAGES], struct error *e) {
  const struct body_limits limits = {1 << 16, (size_t)1 << 36, (size_t)1 << 30, 1 << 17, 1 << 12};
  struct arena arena;
  struct attention_request request = {0};
  struct answer answer = {0};
  double at[STAGES + 1];
  arena_init(&arena, budget);
  at[BODY] = cpu_ms();
  const struct body_terms terms = {.body_bytes = BODY_UNKNOWN, .json_bytes = BODY_UNKNOWN};
  struct attention_body *d = attention_body_new(m, &terms, &limits, &arena, e);
  for (size_t from = 0; !e->status && from < length; from += CHUNK)
    body_feed(attention_body_of(d), body + from, length - from < CHUNK ? length - from : CHUNK);
  if (e->status || attention_body_finish(d, &request) ||
      layer_prepare(m->layer, &request.asked, &arena, e) ||
      attention_answer_plan(&answer, ANSWER_JSON, m, &request, &limits, &arena, e))
    goto out;
  at[LAYER] = cpu_ms();
  run_compute(&request.asked.run, 1e7, scratch);
  at[ANSWER] = cpu_ms();
  for (size_t i = 0; i < answer.pieces; i++) answer_write_piece(&answer, i);
  at[STAGES] = cpu_ms();
  for (int i = 0; i < STAGES; i++)
    if (at[i + 1] - at[i] < spent[i]) spent[i] = at[i + 1] - at[i];
  run_fault(&request.asked.run, e);
out:
  arena_free(&arena);
  return e->status;
}

static char *read_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  char *text = NULL;
  if (fseek(file, 0, SEEK_END) == 0 && ftell(file) >= 0) {
    *length = (size_t)ftell(file);
    rewind(file);
    text = calloc(*length + NUMBER_READ_MARGIN, 1);
    if (text && fread(text, 1, *length, file) != *length) {
      free(text);
      text = NULL;
    }
  }
  fclose(file);
  return text;
}

int main(int argc, char **argv) {
  size_t length = 0;
  char *body = argc > 1 ? read_file(argv[1], &length) : NULL;
  if (!body) {
    fprintf(stderr, "bench_request: cannot read %s\n", argc > 1 ? argv[1] : "nothing");
    return 1;
  }
  const int turns = argc > 2 ? atoi(argv[2]) : 20;
  struct error e = {0};
  double spent[STAGES] = {1e300, 1e300, 1e300};
  struct budget budget;
  budget_init(&budget, (size_t)1 << 30);
  budget.keep = keep_new(KEPT);
  gemm_blas_init();
  json_reserve_init();
  struct model *m = make_model(&e);
  void *scratch = m ? aligned_alloc(64, (layer_scratch_bytes(m->layer) + 63) / 64 * 64) : NULL;
  for (int i = 0; scratch && !e.status && i < turns; i++)
    serve(m, &budget, body, length, scratch, spent, &e);
  if (e.status) fprintf(stderr, "bench_request: %s\n", e.detail);
  if (scratch && !e.status) printf("%.3f %.3f %.3f\n", spent[BODY], spent[LAYER], spent[ANSWER]);
  keep_free(budget.keep);
  free(scratch);
  model_free(m);
  free(body);
  return e.status ? 1 : 0;
}
