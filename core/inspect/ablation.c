/* ablation: the rounds of a run that measures heads.
 *
 * The last step of a round measures its outputs, and replaces a call by the one without the head
 * that the next round leaves out. Between two rounds only counters move. */
#include "core/inspect/ablation.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/base/size.h"
#include "core/inspect/inspect.h"

enum { MAIN, SOURCE }; /* the parts */

/* --- the list of heads --- */

static bool is_measured(const struct stack_run *r, size_t attention) {
  return r->wish && r->wish[attention].ablation;
}

/* Lists the heads in the order of their rounds; counts them while there is no list. */
static void list_heads(struct stack_ablation *w) {
  w->cuts = 0;
  for (unsigned part = MAIN; part <= SOURCE; part++) {
    const struct stack *s = w->part[part].stack;
    const size_t layers = s ? s->form.layers : 0;
    const unsigned kinds = s && s->form.cross.heads ? 2 : 1; /* self, cross */
    for (size_t i = 0; i < layers * kinds; i++) {
      const size_t layer = layers - 1 - i / kinds, attention = layer + i % kinds * layers;
      const size_t heads = stack_shape(s, attention)->heads;
      if (!is_measured(w->part[part].run, attention)) continue;
      for (size_t head = 0; w->cut && head < heads; head++)
        w->cut[w->cuts + head] = (struct stack_cut){
            .of_source = part == SOURCE, .layer = layer, .attention = attention, .head = head};
      w->cuts += heads;
    }
  }
}

enum status stack_ablation_init(struct stack_ablation *w, const struct stack *s,
                                struct stack_run *r, const struct stack *source, struct arena *a,
                                struct error *e) {
  w->part[MAIN] = (struct stack_ablation_part){.stack = s, .run = r};
  w->part[SOURCE] = (struct stack_ablation_part){.stack = source, .run = r->source};
  w->measure = r->targets ? STACK_MEASURE_LOGS : STACK_MEASURE_OUTPUTS;
  w->cut = NULL;
  list_heads(w);
  struct stack_cut *cut = arena_alloc(a, w->cuts, sizeof *cut, e);
  w->ranking = arena_alloc(a, w->cuts, sizeof *w->ranking, e);
  if (e->status) return e->status;
  w->cut = cut;
  list_heads(w);
  atomic_init(&w->done, 0);
  w->round = 0;
  w->full = 0;
  r->ablation = w;
  if (source) r->source->ablation = w;
  return STATUS_OK;
}

bool ablation_begins(const struct stack *s, const struct stack_run *r, size_t layer) {
  return r->ablation &&
         (is_measured(r, layer) || (s->form.cross.heads && is_measured(r, s->form.layers + layer)));
}

/* The work of a part from a layer on. */
static double work_from(const struct stack_ablation_part *p, size_t layer) {
  const size_t layers = p->stack->form.layers;
  return p->others + p->layers * (double)(layers - layer) / (double)size_max(layers, 1);
}

static unsigned part_of(const struct stack_ablation *w, const struct stack_run *r) {
  return r == w->part[MAIN].run ? MAIN : SOURCE;
}

bool ablation_cuts(const struct stack_run *r, size_t i) {
  return r->ablation->cut[i].of_source == (part_of(r->ablation, r) == SOURCE);
}

enum status ablation_prepare(const struct stack_preparing *p, double layers) {
  struct stack_run *r = p->r;
  struct stack_ablation *w = r->ablation;
  struct stack_ablation_part *part = &w->part[part_of(w, r)];
  part->layers = layers;
  part->others = r->run.work - layers;
  if (part == &w->part[SOURCE]) return STATUS_OK;
  r->run.whole = r->run.work;
  for (size_t i = 0; i < w->cuts; i++) {
    const struct stack_cut *cut = &w->cut[i];
    r->run.whole += cut->of_source ? work_from(&w->part[SOURCE], cut->layer) + work_from(part, 0)
                                   : work_from(part, cut->layer);
  }
  if (w->measure != STACK_MEASURE_OUTPUTS) return STATUS_OK;
  w->output_count =
      stack_vectors(r) * r->output_size; /* they lie in memory: no product overflows */
  w->outputs = stack_alloc(p, w->output_count, sizeof *w->outputs);
  return p->e->status;
}

/* --- the importance of a head --- */

static double sum_logs(const struct stack_run *r) {
  double sum = 0;
  for (size_t row = 0; row < r->geometry.q_rows; row++)
    if (r->targets[row] >= 0) sum += (double)r->log_probabilities[row];
  return sum;
}

/* The length of `x`, or of x - y. */
static double length_of(const float *x, const float *y, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) {
    const double by = (double)x[i] - (y ? (double)y[i] : 0);
    sum += by * by;
  }
  return sqrt(sum);
}

/* Measures round 0, in which no head is left out. */
static void measure_full(struct stack_ablation *w) {
  const struct stack_run *r = w->part[MAIN].run;
  if (w->measure == STACK_MEASURE_LOGS) {
    w->full = sum_logs(r);
    return;
  }
  if (w->output_count) memcpy(w->outputs, r->outputs, w->output_count * sizeof *w->outputs);
  w->full = length_of(w->outputs, NULL, w->output_count);
}

/* Measures the loss of head `i`, and inserts it into the ranking. Of equals the earlier head is
 * first: of the source, of an earlier layer. */
static void measure_head(struct stack_ablation *w, size_t i) {
  const struct stack_run *r = w->part[MAIN].run;
  struct stack_cut *cut = &w->cut[i];
  if (w->measure == STACK_MEASURE_LOGS)
    cut->loss = w->full - sum_logs(r);
  else
    cut->loss = w->full > 0 ? length_of(r->outputs, w->outputs, w->output_count) / w->full : 0;
  size_t at = i;
  for (; at > 0; at--) {
    const struct stack_cut *other = &w->cut[w->ranking[at - 1]];
    const bool earlier = other->of_source != cut->of_source   ? other->of_source
                         : other->layer != cut->layer         ? other->layer < cut->layer
                         : other->attention != cut->attention ? other->attention < cut->attention
                                                              : other->head < cut->head;
    if (other->loss < cut->loss || (other->loss == cut->loss && earlier)) break;
    w->ranking[at] = w->ranking[at - 1];
  }
  w->ranking[at] = i;
}

/* --- from head to head --- */

/* Makes the calls of layers from one on ready to be computed once more. */
static void renew_calls(const struct stack_ablation_part *p, size_t layer) {
  const size_t layers = p->stack->form.layers;
  for (size_t number = 0; number < stack_form_attentions(&p->stack->form); number++)
    if (number % layers >= layer) layer_renew_call(&p->run->call[number]);
}

static struct call *place_of(struct stack_ablation *w, const struct stack_cut *cut) {
  return &w->part[cut->of_source ? SOURCE : MAIN].run->call[cut->attention];
}

/* Measures the round, and makes the calls those of the next one. */
static void measure_round(const struct stack_step *step, const struct unit *u, void *scratch) {
  struct stack_ablation *w = stack_run_of(u->run)->ablation;
  (void)step, (void)scratch;
  if (w->round == 0) {
    measure_full(w);
  } else {
    const struct stack_cut *cut = &w->cut[w->round - 1];
    measure_head(w, w->round - 1);
    if (!(fabs(cut->loss) <= FLT_MAX)) run_record_fault(u->run, u->step, 0);
    *place_of(w, cut) = w->whole;
  }
  if (!(fabs(w->full) <= FLT_MAX)) run_record_fault(u->run, u->step, 0);
  if (w->round == w->cuts) return;
  const struct stack_cut *next = &w->cut[w->round];
  w->whole = *place_of(w, next);
  *place_of(w, next) = next->call;
  renew_calls(&w->part[next->of_source ? SOURCE : MAIN], next->layer);
  if (next->of_source) renew_calls(&w->part[MAIN], 0);
}

/* Gives a run the program and the work of a round from a layer on; all: from its beginning. */
static void begin_from(const struct stack_ablation_part *p, size_t layer, bool all) {
  p->run->run.program = &p->stack->again[all ? p->stack->form.layers : layer];
  p->run->run.work = all ? p->layers + p->others : work_from(p, layer);
}

bool ablation_next_round(const struct program *program, struct run *run) {
  struct stack_ablation *w = stack_run_of(run)->ablation;
  (void)program;
  if (stack_run_of(run) != w->part[MAIN].run)
    return false; /* the run that reads it is its `then` */
  run->then = NULL;
  atomic_store_explicit(&w->done, w->round, memory_order_release);
  if (w->round == w->cuts) return false;
  const struct stack_cut *cut = &w->cut[w->round++];
  begin_from(&w->part[MAIN], cut->layer, cut->of_source);
  if (cut->of_source) {
    begin_from(&w->part[SOURCE], cut->layer, false);
    run->then = &w->part[SOURCE].run->run;
  }
  if (w->next_round) w->next_round(w);
  return !cut->of_source;
}

/* --- the step: one unit of the run itself --- */

static bool ablation_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_ablation *w = stack_run_of(u->run)->ablation;
  (void)step;
  return w && stack_run_of(u->run) == w->part[MAIN].run && at->row++ == 0;
}

static double ablation_work(const struct step *step, const struct unit *u) {
  enum { TOUCH_WORK = 8 }; /* operations for a number, about */
  const struct stack_ablation *w = stack_run_of(u->run)->ablation;
  (void)step;
  return TOUCH_WORK * (double)(w->output_count + stack_run_of(u->run)->geometry.q_rows);
}

static enum status fault_of_ablation(const struct step *step, const struct run *r, uint64_t place,
                                     struct error *e) {
  (void)step, (void)r, (void)place;
  return error_set(e, STATUS_NOT_FINITE, "the importance of a head exceeds the float32 range");
}

const struct stack_step stack_step_ablation = {.step = {.unit = ablation_unit,
                                                        .work = ablation_work,
                                                        .compute = stack_compute,
                                                        .fault = fault_of_ablation},
                                               .each = measure_round};
