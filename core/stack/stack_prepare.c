/* stack_prepare: reserves the memory of a run, and makes the calls of its attentions. */
#include <math.h>
#include <string.h>

#include "core/base/size.h"
#include "core/forward/output.h"
#include "core/generate/generate_parts.h"
#include "core/inspect/inspect.h"
#include "core/stack/stack.h"

struct stack_run *stack_run_new(const struct stack *s, struct arena *a, struct error *e) {
  const size_t calls = stack_form_attentions(&s->form);
  const size_t bytes = sizeof(struct stack_run) + calls * sizeof(struct call);
  struct stack_run *r = arena_alloc(a, 1, bytes, e);
  if (!r) return NULL;
  memset(r, 0, bytes);
  r->geometry.window_left = s->form.window ? (int64_t)s->form.window - 1 : -1;
  r->geometry.window_right = -1;
  r->geometry.causal = s->form.causal;
  r->each = 1;
  r->across.window_left = r->across.window_right = -1;
  return r;
}

static float *alloc_rows(const struct stack_preparing *p) {
  return stack_alloc(p, p->r->space->numbers, sizeof(float));
}

static const struct stack_wish *wish_of(const struct stack_preparing *p, size_t number) {
  static const struct stack_wish none;
  return p->r->wish ? &p->r->wish[number] : &none;
}

static size_t attentions(const struct stack_preparing *p) {
  return stack_form_attentions(&p->s->form);
}

/* --- rows --- */

/* Does a layer's attention read what enters the layer as it is? */
static bool reads_state(const struct stack *s, size_t layer) {
  return s->form.place == NORM_POST || !s->layer[layer].norm_self.factor;
}

/* Must hidden state `l` be kept? That of the last layer is not overwritten in any case. */
static bool is_kept(const struct stack_preparing *p, size_t l) {
  if (l == p->s->form.layers) return false;
  if (ablation_begins(p->s, p->r, l)) return true;
  if (reads_state(p->s, l) && wish_of(p, l)->input) return true;
  return l == 0 ? p->r->embedded : wish_of(p, l - 1)->hidden;
}

/* Rows between the attentions of a layer. The queries of the second one are made of them, or of
 * what its norm makes of them. */
static void place_between(const struct stack_preparing *p, size_t layer) {
  const bool post = p->s->form.place == NORM_POST;
  const bool shows = wish_of(p, p->s->form.layers + layer)->input;
  struct stack_flow *at = &p->r->space->flow[layer];
  const bool as_they_are = post || !p->s->layer[layer].norm_cross.factor;
  at->between = as_they_are && shows ? alloc_rows(p) : p->r->space->work[post];
  at->asking = as_they_are ? at->between : shows ? alloc_rows(p) : p->r->space->work[1];
}

/* Two stretches of rows serve all layers in turn. What enters a layer lies in the first, and so
 * does what it gives, which is written when the other is not read any more. With the norm behind,
 * the second one holds the rows between attention and feed-forward, and what the feed-forward gives
 * takes the place of what entered the layer. With the norm before, it holds what the norms make of
 * the rows, and what the feed-forward gives takes the place of what it has read; the first one is
 * added to in place. What an attention to a source gives is added in place, too. Rows that are
 * shown have memory of their own. */
static void place_flow(const struct stack_preparing *p) {
  const struct stack_form *f = &p->s->form;
  const bool post = f->place == NORM_POST;
  struct stack_flow *flow = p->r->space->flow;
  for (size_t l = 0; l <= f->layers; l++) {
    struct stack_flow *at = &flow[l];
    at->state = is_kept(p, l) ? alloc_rows(p) : p->r->space->work[0];
    if (l == f->layers) break;
    const bool stays = wish_of(p, l)->input || ablation_begins(p->s, p->r, l);
    at->input = reads_state(p->s, l) ? at->state : stays ? alloc_rows(p) : p->r->space->work[1];
    if (p->s->layer[l].cross.layer) place_between(p, l);
    at->middle = p->r->space->work[post];
    at->entering = p->s->layer[l].norm_forward.factor ? p->r->space->work[1] : at->middle;
    at->forward = p->r->space->work[!post];
  }
  flow[f->layers].input = f->last.factor ? p->r->space->work[1] : flow[f->layers].state;
}

/* --- what is shown --- */

static void show_rows(const struct stack_preparing *p) {
  struct stack_run *r = p->r;
  if (r->embedded) r->embedding = stack_hidden_rows(p->s, r, 0);
  for (size_t i = 0; r->wish && i < attentions(p); i++) {
    struct stack_shown *shown = &r->shown[i];
    if (r->wish[i].input) shown->input = stack_input_rows(p->s, r, i);
    if (r->wish[i].hidden) shown->hidden = stack_hidden_rows(p->s, r, i + 1);
  }
}

static bool add_thumbnail(const struct stack_preparing *p, size_t number, size_t item,
                          size_t *count) {
  const struct item *at = &p->r->call[number].geometry->item[item];
  const size_t most = p->r->wish[number].thumbnail;
  size_t bytes;
  return size_mul(size_min(at->q, most), size_min(at->k, most), &bytes) &&
         size_mul(bytes, stack_shape(p->s, number)->heads, &bytes) &&
         size_add(*count, bytes, count);
}

static enum status place_thumbnails(const struct stack_preparing *p, size_t number) {
  struct stack_shown *shown = &p->r->shown[number];
  size_t *at = stack_alloc(p, p->r->geometry.items, sizeof *at), count = 0;
  for (size_t i = 0; at && i < p->r->geometry.items; i++) {
    at[i] = count;
    if (!add_thumbnail(p, number, i, &count))
      return error_limit(p->e, "max_answer_bytes", "the thumbnails exceed the address space");
  }
  shown->thumbnails_at = at;
  shown->thumbnails = p->r->space->thumbnails[number] = stack_alloc(p, count, 1);
  return p->e->status;
}

/* --- the attentions --- */

/* Floats for what one attention needs and leaves to the next: queries, keys, values and contexts of
 * all heads, outputs, and what relative positions add. */
static bool count_attention(const struct stack_preparing *p, const struct layer_shape *a,
                            const struct geometry *g, size_t *floats) {
  const size_t head = a->head_size + a->value_head_size;
  const size_t row = a->heads * head + p->s->form.width, key = a->kv_heads * head;
  const size_t k_rows = p->r->generation ? 0 : g->k_rows; /* that are not kept elsewhere */
  size_t lines = 0, keys;
  if (a->relative_buckets &&
      (!size_mul(g->items, KERNEL_LANES_MAX, &lines) || !size_add(lines, g->q_rows, &lines) ||
       !size_add(lines, g->q_rows, &lines) || !size_mul(lines, a->heads, &lines)))
    return false;
  return size_mul(g->q_rows, row, floats) && size_mul(k_rows, key, &keys) &&
         size_add(*floats, keys, floats) && size_add(*floats, lines, floats);
}

/* Of the largest: they come one after the other. */
static bool count_attentions(const struct stack_preparing *p, size_t *floats) {
  const struct stack_form *f = &p->s->form;
  size_t across;
  if (!count_attention(p, &f->self, &p->r->geometry, floats)) return false;
  if (!p->r->source) return true;
  if (!count_attention(p, &f->cross, &p->r->across, &across)) return false;
  *floats = size_max(*floats, across);
  return true;
}

/* Memory for that, and for the feed-forward in between. What does not fit has memory of its own. */
static enum status place_room(const struct stack_preparing *p) {
  const size_t rows = p->r->geometry.q_rows, f = p->s->form.forward_size;
  const bool shares = rows <= STACK_SHARED_ROWS || p->r->generation;
  size_t count, inner;
  if (!count_attentions(p, &count) ||
      !size_mul(size_min(rows, STACK_SHARED_ROWS), shares ? f : 0, &inner) ||
      !size_add(size_max(count, inner), 8 * SPARE_ALIGNMENT, &count))
    return error_set(p->e, STATUS_TOO_LARGE, "the rows exceed the address space");
  float *room = stack_alloc(p, count, sizeof *room);
  p->r->space->room = (struct spare){0};
  if (!room) return p->e->status;
  spare_add(&p->r->space->room, room, count * sizeof *room);
  if (shares) p->r->space->inner = room; /* attentions are over by then */
  return STATUS_OK;
}

static enum weights weights_of(const struct stack_wish *wish) {
  if (wish->weights == STACK_WEIGHTS_NONE) return WEIGHTS_NONE;
  return wish->weights == STACK_WEIGHTS_AVERAGE ? WEIGHTS_AVERAGE : WEIGHTS_PER_HEAD;
}

/* What the call of a run that generates has besides. */
static void set_rounds(const struct stack_preparing *p, size_t number) {
  const struct stack_rounds *rounds = p->r->generation->rounds;
  const bool across = stack_is_across(p->s, number);
  struct call *c = &p->r->call[number];
  c->kept = rounds->kept[number];
  c->want_of = across ? rounds->shows_across : rounds->shows;
  c->want_rows = across ? stack_each(p->r->generation) : 1;
  c->each = stack_each(p->r->generation);
  if (across) c->queried = &p->r->geometry;
}

/* The call of an attention, before it is prepared. */
static struct call make_call(const struct stack_preparing *p, size_t number) {
  struct stack_run *r = p->r;
  const struct stack_wish *wish = wish_of(p, number);
  const bool across = stack_is_across(p->s, number);
  struct call c = {.geometry = across ? &r->across : &r->geometry,
                   .queries = stack_input_rows(p->s, r, number),
                   .head_mask = wish->head_mask,
                   .want = weights_of(wish),
                   .trace = wish->trace,
                   .room = p->r->space->room};
  c.keys = c.values = across ? r->source->rows : c.queries;
  return c;
}

static enum status prepare_attention(const struct stack_preparing *p, size_t number,
                                     struct spare *weights) {
  struct stack_run *r = p->r;
  struct call *c = &r->call[number];
  const struct stack_wish *wish = wish_of(p, number);
  const bool passes = wish->weights == STACK_WEIGHTS_THUMBNAILS && !r->generation;
  *c = make_call(p, number);
  if (r->generation) set_rounds(p, number);
  if (passes) c->weights_room = *weights;
  if (layer_prepare_call(stack_attending(p->s, number)->step, &r->run, p->a, p->e))
    return p->e->status;
  if (passes) { /* the next one's lie in the same place */
    *weights = (struct spare){0};
    spare_add(weights, c->weights, c->weight_count * sizeof *c->weights);
    return place_thumbnails(p, number);
  }
  if (c->want != WEIGHTS_NONE && !r->generation) {
    r->shown[number].weights = c->weights;
    r->shown[number].weights_at = c->weights_at;
  }
  return STATUS_OK;
}

/* In the order of their steps. */
static enum status prepare_attentions(const struct stack_preparing *p) {
  const size_t layers = p->s->form.layers;
  struct spare weights = {0};
  for (size_t l = 0; l < layers; l++) {
    if (prepare_attention(p, l, &weights)) return p->e->status;
    if (p->r->source && prepare_attention(p, layers + l, &weights)) return p->e->status;
  }
  return STATUS_OK;
}

/* --- heads that are left out --- */

/* What a request says of an attention's heads, but that one of them is left out. NULL with an
 * error.
 */
static const float *mask_without(const struct stack_preparing *p, size_t number, size_t head) {
  const size_t heads = stack_shape(p->s, number)->heads;
  const float *given = wish_of(p, number)->head_mask;
  float *mask = stack_alloc(p, heads, sizeof *mask);
  for (size_t i = 0; mask && i < heads; i++) mask[i] = i == head ? 0 : given ? given[i] : 1;
  return mask;
}

/* The call of an attention without a head, made where the one with it stays. What the queries see
 * was reserved with that. */
static enum status prepare_cut(const struct stack_preparing *p, struct stack_cut *cut) {
  struct call *place = &p->r->call[cut->attention], whole = *place;
  const double work = p->r->run.work;
  struct layer_step step[STEP_COUNT];
  memcpy(step, stack_attending(p->s, cut->attention)->step, sizeof step);
  for (unsigned i = 0; i < STEP_COUNT; i++) step[i].at.first = false;
  *place = make_call(p, cut->attention);
  place->head_mask = mask_without(p, cut->attention, cut->head);
  if (!p->e->status) layer_prepare_call(step, &p->r->run, p->a, p->e);
  cut->call = *place;
  *place = whole;
  p->r->run.work = work;
  return p->e->status;
}

static enum status prepare_cuts(const struct stack_preparing *p) {
  const struct stack_ablation *w = p->r->ablation;
  for (size_t i = 0; w && i < w->cuts; i++)
    if (ablation_cuts(p->r, i) && prepare_cut(p, &w->cut[i])) return p->e->status;
  return STATUS_OK;
}

/* --- the source --- */

/* Its items are this run's, which read their own one each. A run that generates has laid them out
 * already. */
static enum status place_across(const struct stack_preparing *p) {
  struct stack_run *r = p->r;
  struct geometry *g = &r->across;
  must(!r->source == !p->s->form.cross.heads);
  if (!r->source) return STATUS_OK;
  must(r->source->pool == STACK_POOL_NONE && !r->source->generation);
  r->source->run.then = &r->run;
  if (r->generation) return STATUS_OK;
  must(r->source->geometry.items == r->geometry.items);
  g->items = r->geometry.items;
  g->q_rows = r->geometry.q_rows;
  g->k_rows = r->source->geometry.k_rows;
  g->item = stack_alloc(p, g->items, sizeof *g->item);
  for (size_t i = 0; g->item && i < g->items; i++) {
    const struct item *own = &r->geometry.item[i], *source = &r->source->geometry.item[i];
    g->item[i] =
        (struct item){.q = own->q, .k = source->q, .q_row = own->q_row, .k_row = source->q_row};
  }
  return p->e->status;
}

/* --- the outputs --- */

static enum status place_outputs(const struct stack_preparing *p) {
  const struct stack_form *f = &p->s->form;
  struct stack_run *r = p->r;
  const float *rows = r->space->flow[f->layers].input;
  size_t count;
  r->output_size = f->width;
  r->outputs = r->rows = rows;
  if (r->pool == STACK_POOL_NONE) return STATUS_OK;
  if (!r->dense_left) r->output_size = stack_form_pooled(f);
  must(r->pool != STACK_POOL_CLASSES || f->classifier.count > 0);
  if (r->pool == STACK_POOL_CLASSES) r->output_size = f->classifier.count;
  if (r->dimensions) r->output_size = size_min(r->output_size, r->dimensions);
  if (!size_mul(r->geometry.items, r->output_size, &count))
    return error_limit(p->e, "max_answer_bytes", "the outputs exceed the address space");
  r->outputs = r->space->pooled = stack_alloc(p, count, sizeof(float));
  return p->e->status;
}

static enum status place_logits(const struct stack_preparing *p) {
  struct stack_run *r = p->r;
  size_t count;
  if (!r->want_logits) return STATUS_OK;
  must(p->s->output && !r->targets);
  if (!size_mul(r->geometry.q_rows, p->s->form.embedding.tokens, &count))
    return error_limit(p->e, "max_answer_bytes", "the logits exceed the address space");
  r->logits = r->space->logits = stack_alloc(p, count, sizeof(float));
  r->run.work += (double)r->geometry.q_rows * output_work(p->s);
  return p->e->status;
}

/* Of rows without a target they stay as they are here. */
static enum status place_logs(const struct stack_preparing *p) {
  struct stack_run *r = p->r;
  struct stack_space *space = r->space;
  const size_t rows = r->geometry.q_rows;
  size_t count;
  if (!r->targets) return STATUS_OK;
  must(p->s->output);
  r->top_count = size_min(r->top, p->s->form.embedding.tokens);
  if (!size_mul(rows, r->top_count, &count))
    return error_limit(p->e, "max_answer_bytes", "the most likely tokens exceed the address space");
  space->logs = stack_alloc(p, rows, sizeof *space->logs);
  space->top_logs = stack_alloc(p, count, sizeof *space->top_logs);
  space->top_tokens = stack_alloc(p, count, sizeof *space->top_tokens);
  if (p->e->status) return p->e->status;
  memset(space->logs, 0, rows * sizeof *space->logs);
  memset(space->top_logs, 0, count * sizeof *space->top_logs);
  memset(space->top_tokens, 0, count * sizeof *space->top_tokens);
  r->log_probabilities = space->logs;
  r->top_log_probabilities = space->top_logs;
  r->top_tokens = space->top_tokens;
  for (size_t i = 0; i < rows; i++)
    if (r->targets[i] >= 0) r->run.work += output_work(p->s);
  return STATUS_OK;
}

/* The targets of a run, each with its number in `target_at`; the other rows have none. */
static size_t number_targets(const struct stack_run *r, size_t *target_at) {
  size_t targets = 0;
  for (size_t i = 0; i < r->geometry.q_rows; i++) {
    target_at[i] = targets;
    targets += r->targets[i] >= 0;
  }
  return targets;
}

/* Every hidden state costs what the outputs do; those of the last layer are these. */
static enum status place_lens(const struct stack_preparing *p) {
  struct stack_run *r = p->r;
  struct stack_space *space = r->space;
  const size_t layers = p->s->form.layers;
  size_t count;
  if (!r->targets || r->logit_lens == 0) return STATUS_OK;
  r->lens_count = size_min(r->logit_lens, p->s->form.embedding.tokens);
  space->target_at = stack_alloc(p, r->geometry.q_rows, sizeof *space->target_at);
  space->lens = stack_alloc(p, layers + 1, sizeof *space->lens);
  if (p->e->status) return p->e->status;
  const size_t targets = number_targets(r, space->target_at);
  if (!size_mul(targets, r->lens_count, &count))
    return error_limit(p->e, "max_answer_bytes", "the most likely tokens exceed the address space");
  for (size_t l = 0; l <= layers; l++) {
    struct stack_lens *lens = &space->lens[l];
    lens->token = stack_alloc(p, count, sizeof *lens->token);
    lens->log_probability = stack_alloc(p, count, sizeof *lens->log_probability);
  }
  r->lens = space->lens;
  r->run.work += (double)targets * (double)layers * output_work(p->s);
  return p->e->status;
}

/* What the answer does not show of the working memory. */
static void leave_memory(const struct stack_preparing *p) {
  struct stack_run *r = p->r;
  const struct stack_flow *last = &r->space->flow[p->s->form.layers];
  r->left = p->r->space->room;
  for (size_t i = 0; i < 2; i++)
    if (p->r->space->work[i] != last->state && p->r->space->work[i] != last->input)
      spare_add(&r->left, p->r->space->work[i], p->r->space->numbers * sizeof(float));
}

enum status stack_prepare(const struct stack *s, struct stack_run *r, struct arena *a,
                          struct error *e) {
  const struct stack_preparing preparing = {.s = s, .r = r, .a = a, .e = e}, *p = &preparing;
  const size_t layers = s->form.layers, shown = stack_form_attentions(&s->form);
  size_t numbers;
  must(s->set == layers);
  must(!r->ablation || !r->generation);
  r->run = (struct run){.program = r->generation ? &s->rounds
                                   : r->ablation ? &s->again[layers]
                                                 : &s->program};
  r->each = r->generation ? stack_each(r->generation) : 1;
  if (r->generation && rounds_prepare(p)) return e->status;
  r->run.rows = r->geometry.q_rows;
  if (!size_mul(r->geometry.q_rows, s->form.width, &numbers))
    return error_set(e, STATUS_TOO_LARGE, "the rows exceed the address space");
  struct stack_space *space = r->space = stack_alloc(p, 1, sizeof *space);
  if (!space) return e->status;
  *space = (struct stack_space){.numbers = numbers,
                                .flow = stack_alloc(p, layers + 1, sizeof *space->flow),
                                .thumbnails = stack_alloc(p, shown, sizeof *space->thumbnails)};
  const bool shows = r->wish && !r->generation; /* else that is prepared already */
  if (shows) r->shown = stack_alloc(p, shown, sizeof *r->shown);
  for (size_t i = 0; i < 2; i++) space->work[i] = alloc_rows(p);
  if (e->status) return e->status;
  memset(space->flow, 0, (layers + 1) * sizeof *space->flow);
  if (shows) memset(r->shown, 0, shown * sizeof *r->shown);
  place_flow(p);
  if (e->status || place_across(p) || place_room(p) || prepare_attentions(p) || prepare_cuts(p))
    return e->status;
  const double rows_work = s->row_work * (double)r->geometry.q_rows,
               layers_work = r->run.work + rows_work;
  if (place_outputs(p) || place_logs(p) || place_lens(p) || place_logits(p)) return e->status;
  if (!r->generation) show_rows(p);
  leave_memory(p);
  r->run.work += rows_work + stack_pool_work(s, r);
  if (r->generation) rounds_begin(s, r);
  if (r->ablation && ablation_prepare(p, layers_work)) return e->status;
  if (r->source) r->source->run.whole = r->source->run.work + fmax(r->run.whole, r->run.work);
  return STATUS_OK;
}
