/* join: what a branch gives is added to the rows that it left, and rows are normalised.
 *
 * With the norm behind, the sum is normalised and goes on. With the norm before, the sum goes on,
 * and the norm of the branch that follows makes of it what that branch reads: so both orders are
 * one kind of step, which touches each row once. */
#include "core/forward/forward.h"

struct join {
  const float *from, *branch;    /* the branch may be NULL */
  float *sum;                    /* where there is a branch */
  const struct stack_norm *norm; /* its factor NULL: there is none */
  float *normed;
};

/* What follows is an attention to a source, or the feed-forward. */
static struct join join_self(const struct stack *s, struct stack_run *r, size_t layer) {
  const struct stack_flow *at = &r->space->flow[layer];
  const struct stack_block *b = &s->layer[layer];
  const bool crosses = b->cross.layer;
  const struct stack_norm *next = crosses ? &b->norm_cross : &b->norm_forward;
  return (struct join){.from = at->state,
                       .branch = r->call[layer].outputs,
                       .sum = crosses ? at->between : at->middle,
                       .norm = s->form.place == NORM_POST ? &b->norm_self : next,
                       .normed = crosses ? at->asking : at->entering};
}

static struct join join_cross(const struct stack *s, struct stack_run *r, size_t layer) {
  const struct stack_flow *at = &r->space->flow[layer];
  const struct stack_block *b = &s->layer[layer];
  return (struct join){.from = at->between,
                       .branch = r->call[s->form.layers + layer].outputs,
                       .sum = at->middle,
                       .norm = s->form.place == NORM_POST ? &b->norm_cross : &b->norm_forward,
                       .normed = at->entering};
}

/* The next branch is the next layer's attention; behind the last layer it is the outputs. */
static struct join join_forward(const struct stack *s, struct stack_run *r, size_t layer) {
  const struct stack_flow *at = &r->space->flow[layer], *next = at + 1;
  struct join j = {.from = at->middle, .branch = at->forward, .sum = next->state};
  const bool is_last = layer + 1 == s->form.layers;
  if (s->form.place == NORM_POST) {
    j.norm = &s->layer[layer].norm_forward;
    j.normed = next->state;
  } else {
    j.norm = is_last ? &s->form.last : &s->layer[layer + 1].norm_self;
    j.normed = next->input;
  }
  return j;
}

static struct join join_of(const struct stack_step *step, struct stack_run *r) {
  const struct stack *s = step->stack;
  const struct stack_flow *at = &r->space->flow[step->layer];
  if (step->join == JOIN_SELF) return join_self(s, r, step->layer);
  if (step->join == JOIN_CROSS) return join_cross(s, r, step->layer);
  if (step->join == JOIN_FORWARD) return join_forward(s, r, step->layer);
  const bool first = step->join == JOIN_ENTER && s->form.layers > 0;
  return (struct join){.from = at->state,
                       .norm = first ? &s->layer[0].norm_self : &s->form.last,
                       .normed = at->input};
}

static void join_unit(const struct stack_step *step, const struct unit *u, void *scratch) {
  (void)scratch;
  const struct stack *s = step->stack;
  const size_t d = s->form.width, first = u->row * d;
  const struct join j = join_of(step, stack_run_of(u->run));
  const bool norms = j.norm->factor != NULL;
  float *to = norms ? j.normed : j.sum;
  if (!to) return; /* there is neither a branch nor a norm */
  const struct kernel_norm n = {.rows = u->rows,
                                .count = d,
                                .rms = s->form.norm == NORM_RMS,
                                .epsilon = s->form.epsilon,
                                .factor = j.norm->factor,
                                .shift = j.norm->shift,
                                .x = j.from + first,
                                .x_row = d,
                                .branch = j.branch ? j.branch + first : NULL,
                                .sum = j.branch ? j.sum + first : NULL,
                                .y = to + first,
                                .y_row = d};
  const uint32_t top = s->kernel->norm(&n);
  stack_note_rows(s, u, n.y, top);
}

static enum status fault_of_join(const struct step *step, const struct run *r, uint64_t row,
                                 struct error *e) {
  static const char *const what[] = {[JOIN_ENTER] = "the first norm of",
                                     [JOIN_SELF] = "after the attention,",
                                     [JOIN_CROSS] = "after the cross-attention,",
                                     [JOIN_FORWARD] = "after the feed-forward,",
                                     [JOIN_LAST] = "the last norm of"};
  const struct stack_step *s = stack_step_of(step);
  return stack_fault(s, r, what[s->join], row, e);
}

const struct stack_step stack_step_join = {.step = {.unit = stack_rows_unit,
                                                    .work = stack_rows_work,
                                                    .compute = stack_compute_kernels,
                                                    .fault = fault_of_join},
                                           .each = join_unit};
