/* stack_prepare: reserves the memory of a run, and makes the calls of its attentions. */
#include <math.h>
#include <string.h>

#include "core/base/size.h"
#include "core/forward/output.h"
#include "core/generate/generate_parts.h"
#include "core/inspect/inspect.h"
#include "core/stack/stack.h"

/* Sets which keys a row attends to in layers of a kind. */
static void set_mask(struct geometry *g, const struct stack_form *f, unsigned kind) {
  const size_t window = f->kind[kind].window;
  g->window_left = window ? (int64_t)window - 1 : -1;
  g->window_right = f->causal ? -1 : g->window_left;
  g->causal = f->causal;
}

struct stack_run *stack_run_new(const struct stack *s, struct arena *a, struct error *e) {
  const size_t calls = stack_form_attentions(&s->form);
  const size_t bytes = sizeof(struct stack_run) + calls * sizeof(struct call);
  struct stack_run *r = arena_alloc(a, 1, bytes, e);
  if (!r) return NULL;
  memset(r, 0, bytes);
  set_mask(&r->geometry, &s->form, 0);
  if (s->kinds > 1) r->further = arena_alloc(a, s->kinds - 1, sizeof *r->further, e);
  if (e->status) return NULL;
  for (unsigned kind = 1; kind < s->kinds; kind++) {
    r->further[kind - 1] = (struct geometry){0};
    set_mask(&r->further[kind - 1], &s->form, kind);
  }
  r->each = 1;
  r->across.window_left = r->across.window_right = -1;
  return r;
}

static const struct stack_wish *wish_of(const struct stack_preparing *p, size_t number) {
  static const struct stack_wish none;
  return p->r->wish ? &p->r->wish[number] : &none;
}

/* --- rows --- */

static float *alloc_rows(const struct stack_preparing *p) {
  return stack_alloc(p, p->r->space->numbers, sizeof(float));
}

/* Two arrays of rows serve all layers in turn. The inputs of a layer lie in work[0], and so do its
 * outputs, which are written when the inputs are not read any more. Post-norm: work[1] holds the
 * rows between attention and feed-forward, and the outputs of the feed-forward replace the inputs
 * of the layer. Pre-norm: work[1] holds the rows that norms write, and the outputs of the
 * feed-forward replace the rows that it reads; work[0] is added to in place. The outputs of a
 * cross-attention are added in place, too. Rows that are shown have memory of their own. */
static void place_flow(const struct stack_preparing *p) {
  const struct stack *s = p->s;
  const struct stack_form *f = &s->form;
  const bool post = f->place == NORM_POST;
  struct stack_flow *flow = p->r->space->flow;
  float *const *work = p->r->space->work;
  for (size_t l = 0; l < f->layers; l++) {
    struct stack_flow *at = &flow[l];
    const struct stack_block *b = &s->layer[l];
    const bool begins = ablation_begins(s, p->r, l), shows = wish_of(p, l)->input;
    const bool reads_state = post || !b->norm_self.factor; /* the attention, without a norm */
    /* A convolution reads the embedding behind layer 0. */
    const bool hidden = l == 0 ? p->r->embedded || f->convolution.taps : wish_of(p, l - 1)->hidden;
    at->state = begins || hidden || (reads_state && shows) ? alloc_rows(p) : work[0];
    at->input = reads_state ? at->state : begins || shows ? alloc_rows(p) : work[1];
    if (b->cross.layer) {
      const bool reads_between = post || !b->norm_cross.factor;
      const bool shows_asking = wish_of(p, f->layers + l)->input;
      at->between = reads_between && shows_asking ? alloc_rows(p) : work[post];
      at->asking = reads_between ? at->between : shows_asking ? alloc_rows(p) : work[1];
    }
    at->middle = work[post];
    at->entering = b->norm_forward.factor ? work[1] : at->middle;
    at->forward = work[!post];
  }
  flow[f->layers].state = work[0];
  flow[f->layers].input = f->last.factor ? work[1] : work[0];
}

/* The calls across: their items are this run's, and each reads its own item of the source. A run
 * that generates has made its geometry already. */
static enum status place_across(const struct stack_preparing *p) {
  struct stack_run *r = p->r;
  struct geometry *g = &r->across;
  must(!r->source == !p->s->form.cross.heads);
  if (!r->source) return STATUS_OK;
  must(!stack_makes_vectors(r->source) && !r->source->generation);
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

/* --- the attentions --- */

/* Floats that one attention needs and leaves to the next one: queries, keys, values and contexts of
 * all heads, outputs, and the scores that relative positions add. */
static bool count_attention(const struct stack_preparing *p, const struct layer_shape *a,
                            const struct geometry *g, size_t *floats) {
  const size_t head = a->head_size + a->value_head_size;
  const size_t row = a->heads * head + p->s->form.width, key = a->kv_heads * head;
  const size_t k_rows = p->r->generation ? 0 : g->k_rows; /* that are not kept elsewhere */
  size_t lines = 0, keys;
  if (layer_is_relative(a) &&
      (!size_mul(g->items, KERNEL_LANES_MAX, &lines) || !size_add(lines, g->q_rows, &lines) ||
       !size_add(lines, g->q_rows, &lines) || !size_mul(lines, a->heads, &lines)))
    return false;
  return size_mul(g->q_rows, row, floats) && size_mul(k_rows, key, &keys) &&
         size_add(*floats, keys, floats) && size_add(*floats, lines, floats);
}

/* Reserves that of the largest attention, which all of them and the feed-forwards use in turn. If
 * it does not fit, an attention has memory of its own. */
static enum status place_room(const struct stack_preparing *p) {
  const struct stack_form *f = &p->s->form;
  const size_t rows = p->r->geometry.q_rows;
  const bool shares = rows <= SHARED_ROWS || p->r->generation;
  size_t self, across = 0, inner, count;
  if (!count_attention(p, &f->kind->self, &p->r->geometry, &self) ||
      (p->r->source && !count_attention(p, &f->cross, &p->r->across, &across)) ||
      !size_mul(size_min(rows, SHARED_ROWS), shares ? f->forward_size : 0, &inner) ||
      !size_add(size_max(size_max(self, across), inner), 8 * SPARE_ALIGNMENT, &count))
    return error_set(p->e, STATUS_TOO_LARGE, "the rows exceed the address space");
  float *room = stack_alloc(p, count, sizeof *room);
  if (!room) return p->e->status;
  spare_add(&p->r->space->room, room, count * sizeof *room);
  if (shares) p->r->space->inner = room; /* attentions are over by then */
  return STATUS_OK;
}

/* Places for the thumbnails of an attention whose call is prepared. */
static enum status place_thumbnails(const struct stack_preparing *p, size_t number) {
  const struct item *item = p->r->call[number].geometry->item;
  const size_t most = p->r->wish[number].thumbnail, heads = stack_shape(p->s, number)->heads;
  struct stack_shown *shown = &p->r->shown[number];
  size_t *at = stack_alloc(p, p->r->geometry.items, sizeof *at), count = 0, bytes;
  for (size_t i = 0; at && i < p->r->geometry.items; i++) {
    at[i] = count;
    if (!size_mul(size_min(item[i].q, most), size_min(item[i].k, most), &bytes) ||
        !size_mul(bytes, heads, &bytes) || !size_add(count, bytes, &count))
      return error_limit(p->e, "max_answer_bytes", "the thumbnails exceed the address space");
  }
  shown->thumbnails_at = at;
  shown->thumbnails = stack_alloc(p, count, 1);
  return p->e->status;
}

/* The call of an attention, before it is prepared. */
static struct call make_call(const struct stack_preparing *p, size_t number) {
  struct stack_run *r = p->r;
  const struct stack_wish *wish = wish_of(p, number);
  const bool across = stack_is_across(p->s, number);
  const unsigned kind = across ? 0 : p->s->layer[number].kind;
  struct call c = {.geometry = across     ? &r->across
                               : kind > 0 ? &r->further[kind - 1]
                                          : &r->geometry,
                   .queries = stack_input_rows(p->s, r, number),
                   .head_mask = wish->head_mask,
                   .want = wish->weights == STACK_WEIGHTS_NONE      ? WEIGHTS_NONE
                           : wish->weights == STACK_WEIGHTS_AVERAGE ? WEIGHTS_AVERAGE
                                                                    : WEIGHTS_PER_HEAD,
                   .trace = wish->trace,
                   .room = r->space->room};
  c.keys = c.values = across ? r->source->rows : c.queries;
  if (!r->generation) return c;
  const struct stack_rounds *rounds = r->generation->rounds;
  c.kept = rounds->kept[number];
  c.want_of = across ? rounds->shows_across : rounds->shows;
  c.want_rows = across ? r->each : 1;
  c.each = r->each;
  if (across) c.queried = &r->geometry;
  return c;
}

/* `weights`: memory for weights that become thumbnails, which the attentions use in turn. */
static enum status prepare_attention(const struct stack_preparing *p, size_t number,
                                     struct spare *weights) {
  struct stack_run *r = p->r;
  struct call *c = &r->call[number];
  const bool passes = wish_of(p, number)->weights == STACK_WEIGHTS_THUMBNAILS && !r->generation;
  *c = make_call(p, number);
  if (passes) c->weights_room = *weights;
  if (layer_prepare_call(stack_attending(p->s, number)->step, &r->run, p->a, p->e))
    return p->e->status;
  if (passes) {
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

/* Prepares the calls, in the order of their steps. */
static enum status prepare_attentions(const struct stack_preparing *p) {
  const size_t layers = p->s->form.layers;
  struct spare weights = {0};
  for (size_t l = 0; l < layers; l++) {
    if (prepare_attention(p, l, &weights)) return p->e->status;
    if (p->r->source && prepare_attention(p, layers + l, &weights)) return p->e->status;
  }
  return STATUS_OK;
}

/* Prepares the call without a head, in the place of the call with it, which then returns there. The
 * memory of its geometry was reserved with that. */
static enum status prepare_cut(const struct stack_preparing *p, struct stack_cut *cut) {
  struct call *place = &p->r->call[cut->attention], whole = *place;
  const double work = p->r->run.work;
  const size_t heads = stack_shape(p->s, cut->attention)->heads;
  const float *given = wish_of(p, cut->attention)->head_mask;
  float *mask = stack_alloc(p, heads, sizeof *mask);
  for (size_t i = 0; mask && i < heads; i++) mask[i] = i == cut->head ? 0 : given ? given[i] : 1;
  struct layer_step step[STEP_COUNT];
  memcpy(step, stack_attending(p->s, cut->attention)->step, sizeof step);
  for (unsigned i = 0; i < STEP_COUNT; i++) step[i].at.first = false;
  *place = make_call(p, cut->attention);
  place->head_mask = mask;
  if (!p->e->status) layer_prepare_call(step, &p->r->run, p->a, p->e);
  cut->call = *place;
  *place = whole;
  p->r->run.work = work;
  return p->e->status;
}

/* --- the outputs --- */

static enum status place_outputs(const struct stack_preparing *p) {
  const struct stack_form *f = &p->s->form;
  struct stack_run *r = p->r;
  size_t count;
  r->output_size = f->width;
  r->outputs = r->rows = r->space->flow[f->layers].input;
  if (!stack_makes_vectors(r)) return STATUS_OK;
  const bool classes = r->after & STACK_AFTER_CLASSES;
  must(classes ? f->classifier.count > 0 : r->vectors != STACK_VECTORS_LATE);
  if (r->after & STACK_AFTER_DENSE) r->output_size = stack_form_dense(f);
  if (classes) r->output_size = f->classifier.count;
  if (r->dimensions) r->output_size = size_min(r->output_size, r->dimensions);
  if (!size_mul(stack_vectors(r), r->output_size, &count))
    return error_limit(p->e, "max_answer_bytes", "the outputs exceed the address space");
  r->outputs = stack_alloc(p, count, sizeof(float));
  if (r->match) r->similarity = stack_alloc(p, r->geometry.items, sizeof(float));
  return p->e->status;
}

/* Log probabilities of targets; of rows without one they stay 0. */
static enum status place_logs(const struct stack_preparing *p) {
  struct stack_run *r = p->r;
  const size_t rows = r->geometry.q_rows;
  size_t count;
  if (!r->targets) return STATUS_OK;
  must(p->s->output);
  r->top_count = size_min(r->top, p->s->form.embedding.tokens);
  if (!size_mul(rows, r->top_count, &count))
    return error_limit(p->e, "max_answer_bytes", "the most likely tokens exceed the address space");
  r->log_probabilities = stack_alloc(p, rows, sizeof(float));
  r->top_log_probabilities = stack_alloc(p, count, sizeof(float));
  r->top_tokens = stack_alloc(p, count, sizeof *r->top_tokens);
  if (p->e->status) return p->e->status;
  memset(r->log_probabilities, 0, rows * sizeof(float));
  memset(r->top_log_probabilities, 0, count * sizeof(float));
  memset(r->top_tokens, 0, count * sizeof *r->top_tokens);
  for (size_t i = 0; i < rows; i++)
    if (r->targets[i] >= 0) r->run.work += output_work(p->s);
  return STATUS_OK;
}

/* Every hidden state costs as much as the outputs; that of the last layer is made with them. */
static enum status place_lens(const struct stack_preparing *p) {
  struct stack_run *r = p->r;
  struct stack_space *space = r->space;
  const size_t layers = p->s->form.layers;
  size_t targets = 0, count;
  if (!r->targets || r->logit_lens == 0) return STATUS_OK;
  r->lens_count = size_min(r->logit_lens, p->s->form.embedding.tokens);
  space->target_at = stack_alloc(p, r->geometry.q_rows, sizeof *space->target_at);
  r->lens = stack_alloc(p, layers + 1, sizeof *r->lens);
  if (p->e->status) return p->e->status;
  for (size_t i = 0; i < r->geometry.q_rows; i++) {
    space->target_at[i] = targets;
    targets += r->targets[i] >= 0;
  }
  if (!size_mul(targets, r->lens_count, &count))
    return error_limit(p->e, "max_answer_bytes", "the most likely tokens exceed the address space");
  for (size_t l = 0; l <= layers; l++) {
    struct stack_lens *lens = &r->lens[l];
    lens->token = stack_alloc(p, count, sizeof *lens->token);
    lens->log_probability = stack_alloc(p, count, sizeof *lens->log_probability);
  }
  r->run.work += (double)targets * (double)layers * output_work(p->s);
  return p->e->status;
}

static enum status place_logits(const struct stack_preparing *p) {
  struct stack_run *r = p->r;
  size_t count;
  if (!r->want_logits) return STATUS_OK;
  must(p->s->output && !r->targets);
  if (!size_mul(r->geometry.q_rows, p->s->form.embedding.tokens, &count))
    return error_limit(p->e, "max_answer_bytes", "the logits exceed the address space");
  r->logits = stack_alloc(p, count, sizeof(float));
  r->run.work += (double)r->geometry.q_rows * output_work(p->s);
  return p->e->status;
}

/* Weights of tokens: each item has room for those of all tokens, or of its own ones. */
static enum status place_sparse(const struct stack_preparing *p) {
  struct stack_run *r = p->r;
  const size_t items = r->geometry.items, tokens = p->s->form.embedding.tokens;
  const bool logits = stack_weighs_logits(p->s, r);
  size_t count = r->geometry.q_rows;
  if (!r->want_sparse) return STATUS_OK;
  must(logits ? p->s->output != NULL : r->tokens != NULL);
  if (logits && !size_mul(items, tokens, &count))
    return error_limit(p->e, "max_answer_bytes", "the weights exceed the address space");
  r->sparse.weight = stack_alloc(p, count, sizeof(float));
  r->sparse.token = stack_alloc(p, count, sizeof(int32_t));
  r->sparse.count = stack_alloc(p, items, sizeof(size_t));
  r->sparse.at = stack_alloc(p, items, sizeof(size_t));
  for (size_t i = 0; !p->e->status && i < items; i++)
    r->sparse.at[i] = logits ? i * tokens : r->geometry.item[i].q_row;
  if (logits)
    r->space->transformed =
        p->s->transform
            ? stack_alloc(p, r->geometry.q_rows * stack_form_output(&p->s->form), sizeof(float))
            : r->space->flow[p->s->form.layers].input;
  return p->e->status;
}

/* Sets the rows that the response shows, and the memory that it does not need. */
static void show_rows(const struct stack_preparing *p) {
  struct stack_run *r = p->r;
  const struct stack_space *space = r->space;
  const struct stack_flow *last = &space->flow[p->s->form.layers];
  const size_t attentions = r->wish ? stack_form_attentions(&p->s->form) : 0;
  if (r->embedded && !r->generation) r->embedding = stack_hidden_rows(p->s, r, 0);
  for (size_t i = 0; i < attentions && !r->generation; i++) {
    if (r->wish[i].input) r->shown[i].input = stack_input_rows(p->s, r, i);
    if (r->wish[i].hidden) r->shown[i].hidden = stack_hidden_rows(p->s, r, i + 1);
  }
  r->left = space->room;
  for (size_t i = 0; i < 2; i++)
    if (space->work[i] != last->state && space->work[i] != last->input)
      spare_add(&r->left, space->work[i], space->numbers * sizeof(float));
}

enum status stack_prepare(const struct stack *s, struct stack_run *r, struct arena *a,
                          struct error *e) {
  const struct stack_preparing preparing = {.s = s, .r = r, .a = a, .e = e}, *p = &preparing;
  const size_t layers = s->form.layers, attentions = stack_form_attentions(&s->form);
  size_t numbers;
  must(s->set == layers);
  must(!r->ablation || !r->generation);
  r->run = (struct run){.program = r->generation ? &s->rounds
                                   : r->ablation ? &s->again[layers]
                                                 : &s->program};
  r->each = r->generation ? stack_each(r->generation) : 1;
  if (r->generation && rounds_prepare(p)) return e->status;
  stack_share_rows(s, r);
  r->run.rows = r->geometry.q_rows;
  if (!size_mul(r->geometry.q_rows, s->form.width, &numbers))
    return error_set(e, STATUS_TOO_LARGE, "the rows exceed the address space");
  struct stack_space *space = r->space = stack_alloc(p, 1, sizeof *space);
  if (!space) return e->status;
  *space = (struct stack_space){.numbers = numbers,
                                .flow = stack_alloc(p, layers + 1, sizeof *space->flow)};
  const bool shows = r->wish && !r->generation; /* else rounds_prepare has reserved that */
  if (shows) r->shown = stack_alloc(p, attentions, sizeof *r->shown);
  for (size_t i = 0; i < 2; i++) space->work[i] = alloc_rows(p);
  if (e->status) return e->status;
  memset(space->flow, 0, (layers + 1) * sizeof *space->flow);
  if (shows) memset(r->shown, 0, attentions * sizeof *r->shown);
  place_flow(p);
  if (e->status || place_across(p) || place_room(p) || prepare_attentions(p)) return e->status;
  for (size_t i = 0; r->ablation && i < r->ablation->cuts; i++)
    if (ablation_cuts(r, i) && prepare_cut(p, &r->ablation->cut[i])) return e->status;
  const double rows_work = s->row_work * (double)r->geometry.q_rows,
               layers_work = r->run.work + rows_work;
  if (place_outputs(p) || place_logs(p) || place_lens(p) || place_logits(p) || place_sparse(p))
    return e->status;
  show_rows(p);
  r->run.work += rows_work + stack_pool_work(s, r) + stack_match_work(r) + stack_sparse_work(s, r);
  if (r->generation) rounds_begin(s, r);
  if (r->ablation && ablation_prepare(p, layers_work)) return e->status;
  if (r->source) r->source->run.whole = r->source->run.work + fmax(r->run.whole, r->run.work);
  return STATUS_OK;
}
