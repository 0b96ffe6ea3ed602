/* ablation: the rounds of a run that measures heads: which head comes next, and what the
 * outputs have lost without it.
 *
 * The last step of a round looks at what came out, and puts the call of the next round, without the
 * next head, in its place. Between two rounds only counters move. */
#include "core/inspect/ablation.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/base/size.h"
#include "core/inspect/inspect.h"

enum { MAIN, SOURCE }; /* the parts */

/* --- the list --- */

static const struct stack_wish *wish_of(const struct stack_ablation_part *p, size_t attention) {
  static const struct stack_wish none;
  return p->run->wish ? &p->run->wish[attention] : &none;
}

/* Lists the heads of an attention behind the others, or counts them where there is no list yet. */
static void list_attention(struct stack_ablation *w, unsigned part, size_t attention) {
  const struct stack_ablation_part *p = &w->part[part];
  const size_t heads = stack_shape(p->stack, attention)->heads;
  if (!wish_of(p, attention)->ablation) return;
  for (size_t head = 0; w->cut && head < heads; head++)
    w->cut[w->cuts + head] = (struct stack_cut){.of_source = part == SOURCE,
                                                .layer = attention % p->stack->form.layers,
                                                .attention = attention,
                                                .head = head};
  w->cuts += heads;
}

static void list_heads(struct stack_ablation *w) {
  w->cuts = 0;
  for (unsigned part = MAIN; part <= SOURCE; part++) {
    const struct stack *s = w->part[part].stack;
    for (size_t layer = s ? s->form.layers : 0; layer-- > 0;) {
      list_attention(w, part, layer);
      if (s->form.cross.heads) list_attention(w, part, s->form.layers + layer);
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
  const struct stack_ablation_part p = {.stack = s, .run = (struct stack_run *)r};
  if (!r->ablation) return false;
  return wish_of(&p, layer)->ablation ||
         (s->form.cross.heads && wish_of(&p, s->form.layers + layer)->ablation);
}

/* --- the work --- */

/* Of a part from a layer on. */
static double work_from(const struct stack_ablation_part *p, size_t layer) {
  const size_t layers = p->stack->form.layers;
  return p->beside + p->layers * (double)(layers - layer) / (double)size_max(layers, 1);
}

static double work_of_round(const struct stack_ablation *w, const struct stack_cut *cut) {
  if (!cut->of_source) return work_from(&w->part[MAIN], cut->layer);
  return work_from(&w->part[SOURCE], cut->layer) + work_from(&w->part[MAIN], 0);
}

static unsigned part_of(const struct stack_ablation *w, const struct stack_run *r) {
  return r == w->part[MAIN].run ? MAIN : SOURCE;
}

/* --- preparing --- */

bool ablation_cuts(const struct stack_run *r, size_t i) {
  return r->ablation->cut[i].of_source == (part_of(r->ablation, r) == SOURCE);
}

static enum status keep_outputs(struct stack_ablation *w, struct arena *a, struct error *e) {
  const struct stack_run *r = w->part[MAIN].run;
  if (w->measure != STACK_MEASURE_OUTPUTS) return STATUS_OK;
  const size_t rows = r->pool == STACK_POOL_NONE ? r->geometry.q_rows : r->geometry.items;
  w->output_count = rows * r->output_size; /* they have a place: this can be counted */
  w->outputs = arena_alloc(a, w->output_count, sizeof *w->outputs, e);
  return e->status;
}

enum status ablation_prepare(const struct stack_preparing *prep, double layers) {
  struct stack_run *r = prep->r;
  struct stack_ablation *w = r->ablation;
  struct stack_ablation_part *p = &w->part[part_of(w, r)];
  p->layers = layers;
  p->beside = r->run.work - layers;
  if (part_of(w, r) == SOURCE) return STATUS_OK;
  r->run.whole = r->run.work;
  for (size_t i = 0; i < w->cuts; i++) r->run.whole += work_of_round(w, &w->cut[i]);
  return keep_outputs(w, prep->a, prep->e);
}

/* --- what came out --- */

static double sum_logs(const struct stack_run *r) {
  double sum = 0;
  for (size_t row = 0; row < r->geometry.q_rows; row++)
    if (r->targets[row] >= 0) sum += (double)r->log_probabilities[row];
  return sum;
}

/* The root of the sum of all squares: of `x`, or of what it is beside `y`. */
static double length_of(const float *x, const float *y, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) {
    const double by = (double)x[i] - (y ? (double)y[i] : 0);
    sum += by * by;
  }
  return sqrt(sum);
}

static void measure_whole(struct stack_ablation *w) {
  const struct stack_run *r = w->part[MAIN].run;
  if (w->measure == STACK_MEASURE_LOGS) {
    w->full = sum_logs(r);
    return;
  }
  if (w->output_count) memcpy(w->outputs, r->outputs, w->output_count * sizeof *w->outputs);
  w->full = length_of(w->outputs, NULL, w->output_count);
}

static double measure_loss(const struct stack_ablation *w) {
  const struct stack_run *r = w->part[MAIN].run;
  if (w->measure == STACK_MEASURE_LOGS) return w->full - sum_logs(r);
  return w->full > 0 ? length_of(r->outputs, w->outputs, w->output_count) / w->full : 0;
}

/* Does a head stand in front of another one: of a source, of an earlier layer? */
static bool is_in_front(const struct stack_cut *a, const struct stack_cut *b) {
  if (a->of_source != b->of_source) return a->of_source;
  if (a->layer != b->layer) return a->layer < b->layer;
  return a->attention != b->attention ? a->attention < b->attention : a->head < b->head;
}

static void rank(struct stack_ablation *w, size_t i) {
  const struct stack_cut *cut = &w->cut[i];
  size_t at = i;
  for (; at > 0; at--) {
    const struct stack_cut *before = &w->cut[w->ranking[at - 1]];
    if (before->loss < cut->loss || (before->loss == cut->loss && is_in_front(before, cut))) break;
    w->ranking[at] = w->ranking[at - 1];
  }
  w->ranking[at] = i;
}

/* --- from head to head --- */

static struct call *place_of(struct stack_ablation *w, const struct stack_cut *cut) {
  return &w->part[cut->of_source ? SOURCE : MAIN].run->call[cut->attention];
}

/* Calls of layers from one on are to be computed once more. */
static void renew_calls(const struct stack_ablation_part *p, size_t layer) {
  const size_t layers = p->stack->form.layers;
  for (size_t number = 0; number < stack_form_attentions(&p->stack->form); number++)
    if (number % layers >= layer) layer_renew_call(&p->run->call[number]);
}

/* Leaves the head out in what is computed next. */
static void cut_head(struct stack_ablation *w, const struct stack_cut *cut) {
  struct call *place = place_of(w, cut);
  w->whole = *place;
  *place = cut->call;
  renew_calls(&w->part[cut->of_source ? SOURCE : MAIN], cut->layer);
  if (cut->of_source) renew_calls(&w->part[MAIN], 0);
}

/* Measures what the round gave, and makes the runs those of the next one. */
static void end_round(struct stack_ablation *w, const struct unit *u) {
  if (w->round == 0) {
    measure_whole(w);
  } else {
    struct stack_cut *cut = &w->cut[w->round - 1];
    cut->loss = measure_loss(w);
    if (!(fabs(cut->loss) <= FLT_MAX)) run_note_fault(u->run, u->step, 0);
    rank(w, w->round - 1);
    *place_of(w, cut) = w->whole;
  }
  if (!(fabs(w->full) <= FLT_MAX)) run_note_fault(u->run, u->step, 0);
  if (w->round < w->cuts) cut_head(w, &w->cut[w->round]);
}

/* Gives a run its program and work from a layer on. */
static void begin_from(const struct stack_ablation_part *p, size_t layer, bool whole) {
  p->run->run.program = &p->stack->again[whole ? p->stack->form.layers : layer];
  p->run->run.work = whole ? p->layers + p->beside : work_from(p, layer);
}

bool ablation_again(const struct program *program, struct run *run) {
  struct stack_ablation *w = stack_run_of(run)->ablation;
  (void)program;
  if (stack_run_of(run) != w->part[MAIN].run) return false; /* what reads it comes then */
  run->then = NULL;
  atomic_store_explicit(&w->done, w->round, memory_order_release);
  if (w->round == w->cuts) return false;
  const struct stack_cut *cut = &w->cut[w->round++];
  begin_from(&w->part[MAIN], cut->layer, cut->of_source);
  if (cut->of_source) {
    begin_from(&w->part[SOURCE], cut->layer, false);
    run->then = &w->part[SOURCE].run->run;
  }
  if (w->moved) w->moved(w);
  return !cut->of_source;
}

/* --- the step --- */

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

static void ablation_each(const struct stack_step *step, const struct unit *u, void *scratch) {
  (void)step, (void)scratch;
  end_round(stack_run_of(u->run)->ablation, u);
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
                                               .each = ablation_each};
