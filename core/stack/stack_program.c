/* stack_program: the lists of steps of a stack.
 *
 *   a forward pass of BERT (post-norm)     a round of GPT-2 (pre-norm)
 *
 *   embed                                  prefix_fetch, embed, join: first norm
 *   each layer:                            each layer:
 *     look, query, key, value                look, query, key, value
 *     attend, trace, output                  attend, trace, output
 *     thumbnails
 *     join: residual, norm                   join: residual, norm of the feed-forward
 *     up, down                               up, down
 *     join: residual, norm                   join: residual, norm of the next layer or the last
 *   pool, match                            logits, next, search, turn_keys, copy_out,
 *                                          copy_results, prefix_store, release
 *
 * A convolution adds `convolve` behind layer 0.
 * An output adds logit_lens before each layer of a forward pass and after `match` the steps
 * `output`, transform, weigh and sparse; `own_tokens` is in their place where rows weigh their own
 * tokens. The steps from `look` to `output` of a layer are core/attention's, the others are tables
 * stack_step_*. A step that a run does not need has no units in it. */
#include "core/stack/stack_program.h"

#include <stdlib.h>

#include "core/base/size.h"
#include "core/forward/output.h"
#include "core/generate/generate_parts.h"
#include "core/inspect/inspect.h"
#include "core/kernel/gemm.h"

enum {
  ROWS_SMALL = 32, /* of a unit of a step that touches each number a few times: */
  TOUCH_WORK = 20, /* operations for a number there, about */
  TOUCH_ROW = 100  /* and for a row */
};

/* The lists while they are written. A first pass only counts the steps: it writes them to `unused`.
 */
struct program_lists {
  struct stack *stack;
  struct stack_step *own;   /* [owns] NULL: count */
  const struct step **list; /* [steps] NULL: count */
  size_t owns, steps;
  double row_work; /* of the steps that take rows */
  struct stack_step unused;
};

static struct stack_step *add_step(struct program_lists *l, const struct stack_step *kind,
                                   size_t layer) {
  struct stack_step *own = l->own ? &l->own[l->owns] : &l->unused;
  l->owns++;
  *own = *kind;
  own->stack = l->stack;
  own->layer = layer;
  if (l->list) l->list[l->steps] = &own->step;
  l->steps++;
  return own;
}

/* A step that takes all rows, with `work` operations for each. */
static struct stack_step *add_rows(struct program_lists *l, const struct stack_step *kind,
                                   size_t layer, double work) {
  struct stack_step *own = add_step(l, kind, layer);
  own->rows = ROWS_SMALL;
  own->row_work = work;
  l->row_work += work;
  return own;
}

static void add_join(struct program_lists *l, enum join_place place, size_t layer) {
  static const char *const what[] = {[JOIN_ENTER] = "the first norm of",
                                     [JOIN_SELF] = "after the attention,",
                                     [JOIN_CROSS] = "after the cross-attention,",
                                     [JOIN_FORWARD] = "after the feed-forward,",
                                     [JOIN_LAST] = "the last norm of"};
  const struct stack_block *b = &l->stack->layer[layer];
  const bool after = (place == JOIN_SELF && b->after_self.factor) ||
                     (place == JOIN_FORWARD && b->after_forward.factor);
  const double work = TOUCH_WORK * (double)l->stack->form.width + TOUCH_ROW;
  struct stack_step *own = add_rows(l, &stack_step_join, layer, after ? 2 * work : work);
  own->join = place;
  own->what = what[place];
}

/* Whether no earlier attention has the geometry of this one. */
static bool is_first(const struct stack *s, size_t number) {
  if (stack_is_across(s, number)) return number == s->form.layers;
  for (size_t i = 0; i < number; i++)
    if (s->layer[i].kind == s->layer[number].kind) return false;
  return true;
}

static void add_attention(struct program_lists *l, size_t number) {
  struct stack_attending *a = stack_attending(l->stack, number);
  const size_t call_at = offsetof(struct stack_run, call) + number * sizeof(struct call);
  const struct layer_place at = {.layer = a->layer,
                                 .call_at = call_at,
                                 .first = is_first(l->stack, number),
                                 .where = a->where};
  const struct step *counted[STEP_COUNT];
  l->steps += layer_list_steps(&at, a->step, l->list ? l->list + l->steps : counted);
}

/* The products, and the activation: some thirty operations a number. */
static void add_feed_forward(struct program_lists *l, size_t layer) {
  const struct stack_form *f = &l->stack->form;
  const double d = (double)f->width, size = (double)f->forward_size;
  const double up = size * ((l->stack->layer[layer].gate ? 4.0 : 2.0) * d + 30);
  const double down = 2.0 * d * size;
  struct stack_step *own = add_rows(l, &stack_step_up, layer, up);
  own->step.columns = f->forward_size, own->tile_work = up + down;
  own = add_rows(l, &stack_step_down, layer, down);
  own->step.columns = f->width;
}

/* The product, and the activation, the sum and the norm. */
static void add_convolution(struct program_lists *l) {
  const struct stack_form *f = &l->stack->form;
  const double d = (double)f->width, taps = (double)f->convolution.taps;
  add_rows(l, &stack_step_convolve, 0, d * (2 * d * taps + 30 + TOUCH_WORK) + TOUCH_ROW);
}

/* A step that computes log probabilities, of a stack that can. */
static void add_output(struct program_lists *l, const struct stack_step *kind, size_t layer) {
  if (!l->stack->output) return;
  struct stack_step *own = add_step(l, kind, layer);
  own->rows = STACK_OUTPUT_ROWS;
  own->row_work = output_work(l->stack);
}

/* The steps from the tokens to the outputs. A forward pass also has steps that show what enters a
 * layer, before anything is added to it, and attention weights. */
static void add_layers(struct program_lists *l, bool shows) {
  const struct stack_form *f = &l->stack->form;
  const bool pre = f->place == NORM_PRE;
  const double embedded = (double)stack_form_embedded(f);
  const double project = l->stack->project ? 2 * embedded * (double)f->width : 0;
  add_rows(l, &stack_step_embed, f->layers, TOUCH_WORK * embedded + TOUCH_ROW + project);
  const struct stack_norm *first = f->layers ? &l->stack->layer->norm_self : &f->last;
  if (pre && first->factor) add_join(l, JOIN_ENTER, 0);
  for (size_t i = 0; i < f->layers; i++) {
    if (shows) l->stack->again[i].steps = (unsigned)l->steps; /* the first step of layer i */
    if (shows) add_output(l, &stack_step_logit_lens, i);
    add_attention(l, i);
    if (shows) add_step(l, &stack_step_thumbnails, i)->attention = i;
    add_join(l, JOIN_SELF, i);
    if (f->cross.heads) {
      add_attention(l, f->layers + i);
      if (shows) add_step(l, &stack_step_thumbnails, i)->attention = f->layers + i;
      add_join(l, JOIN_CROSS, i);
    }
    add_feed_forward(l, i);
    add_join(l, JOIN_FORWARD, i);
    if (i == 0 && f->convolution.taps) add_convolution(l);
  }
  if (!pre && f->last.factor) add_join(l, JOIN_LAST, f->layers);
}

/* The steps that make weights of tokens, of a stack that has them. */
static void add_sparse(struct program_lists *l) {
  const size_t none = l->stack->form.layers, tokens = l->stack->form.embedding.tokens;
  const double d = (double)l->stack->form.width, read = (double)stack_form_output(&l->stack->form);
  if (!stack_weighs(l->stack)) return;
  add_step(l, &stack_step_own_tokens, none);
  if (!l->stack->output) return;
  struct stack_step *transform = add_step(l, &stack_step_transform, none);
  transform->rows = STACK_OUTPUT_ROWS;
  transform->row_work = 2.0 * d * read;
  struct stack_step *weigh = add_step(l, &stack_step_weigh, none);
  weigh->step.columns = tokens;
  weigh->row_work = 2.0 * read * (double)tokens;
  add_step(l, &stack_step_sparse, none);
}

static void list_forward(struct program_lists *l) {
  struct stack *s = l->stack;
  const size_t none = s->form.layers; /* the layer of a step that belongs to none */
  add_layers(l, true);
  add_step(l, &stack_step_pool, none);
  add_step(l, &stack_step_match, none);
  add_output(l, &stack_step_output, none);
  add_sparse(l);
  s->program = (struct program){.step = l->list, .steps = (unsigned)l->steps};
  s->row_work = l->row_work;
  /* Runs that measure heads have the same steps, from a layer on, and one more. */
  add_step(l, &stack_step_ablation, none);
  s->again[none].steps = 0;
  for (size_t i = 0; i <= none; i++) {
    const unsigned begin = s->again[i].steps;
    s->again[i] = (struct program){.step = l->list ? l->list + begin : NULL,
                                   .steps = (unsigned)l->steps - begin,
                                   .next_round = ablation_next_round};
  }
}

static void list_rounds(struct program_lists *l) {
  struct stack *s = l->stack;
  const size_t none = s->form.layers, begin = l->steps, tokens = s->form.embedding.tokens;
  const double product = 2.0 * (double)s->form.width * (double)tokens;
  add_step(l, &stack_step_prefix_fetch, none)->row_work = prefix_copy_work(s);
  add_layers(l, false);
  struct stack_step *logits = add_step(l, &stack_step_logits, none);
  logits->step.columns = tokens;
  logits->row_work = product;
  add_step(l, &stack_step_next, none)->row_work = output_work(s) - product;
  add_step(l, &stack_step_search, none);
  add_step(l, &stack_step_turn_keys, none);
  add_step(l, &stack_step_copy_out, none);
  add_step(l, &stack_step_copy_results, none);
  add_step(l, &stack_step_prefix_store, none)->row_work = prefix_copy_work(s);
  add_step(l, &stack_step_release, none);
  s->rounds = (struct program){.step = l->list ? l->list + begin : NULL,
                               .steps = (unsigned)(l->steps - begin),
                               .next_round = rounds_next_round};
}

static void list_programs(struct program_lists *l) {
  list_forward(l);
  if (l->stack->output && l->stack->form.causal) list_rounds(l);
}

enum status stack_program_list(struct stack *s, struct error *e) {
  const size_t attentions = stack_form_attentions(&s->form);
  struct program_lists count = {.stack = s};
  s->again = calloc(s->form.layers + 1, sizeof *s->again);
  if (s->again) list_programs(&count);
  s->own = calloc(count.owns + 1, sizeof *s->own);
  s->list = calloc(count.steps + 1, sizeof(struct step *));
  if (!s->own || !s->list || !s->again)
    return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a model");
  struct program_lists l = {.stack = s, .own = s->own, .list = s->list};
  list_programs(&l);

  /* A batch reads all matrices, but only rows of the table of tokens. */
  const size_t number = s->token_form == KERNEL_FLOAT32 ? sizeof(float) : sizeof(uint16_t);
  const size_t table = s->token ? s->form.embedding.tokens * s->form.width * number : 0;
  s->rounds.bytes = s->bytes - table;
  s->program.bytes = s->rounds.bytes - (s->output ? gemm_bytes(s->output) : 0);
  for (size_t i = 0; i <= s->form.layers; i++) s->again[i].bytes = s->program.bytes;

  for (size_t i = 0; i < l.owns; i++)
    if (s->own[i].floats) s->scratch = size_max(s->scratch, s->own[i].floats(s) * sizeof(float));
  for (size_t i = 0; i < attentions; i++)
    s->scratch = size_max(s->scratch, layer_scratch_bytes(stack_attending(s, i)->layer));
  return STATUS_OK;
}
