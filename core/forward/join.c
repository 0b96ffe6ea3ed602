/* join: adds what a branch gives to the residual rows, and normalizes.
 *
 * Post-norm: the sum is normalized and becomes the residual. Pre-norm: the sum becomes the
 * residual, and the norm of the next branch makes of it the rows that this branch reads. Both
 * orders are one kind of step, which touches each row once. In some models what a branch gives is
 * normalized before that, in its place. */
#include "core/forward/forward.h"

struct join {
  const float *from;
  float *branch;                  /* may be NULL */
  const struct stack_norm *after; /* of the branch; NULL or its factor NULL: none */
  float *sum;                     /* where there is a branch */
  const struct stack_norm *norm;  /* its factor NULL: none */
  float *normed;
};

static struct join join_of(const struct stack_step *step, struct stack_run *r) {
  const struct stack *s = step->stack;
  const size_t l = step->layer, layers = s->form.layers;
  const struct stack_flow *at = &r->space->flow[l], *next = at + 1;
  const struct stack_block *b = &s->layer[l];
  const bool post = s->form.place == NORM_POST;
  struct join j = {.from = at->state, .normed = at->input};
  switch (step->join) {
  case JOIN_SELF: /* a cross-attention follows, or the feed-forward */
    j.branch = r->call[l].outputs;
    j.after = &b->after_self;
    j.sum = b->cross.layer ? at->between : at->middle;
    j.norm = post ? &b->norm_self : b->cross.layer ? &b->norm_cross : &b->norm_forward;
    j.normed = b->cross.layer ? at->asking : at->entering;
    break;
  case JOIN_CROSS: /* the feed-forward follows */
    j.from = at->between;
    j.branch = r->call[layers + l].outputs;
    j.sum = at->middle;
    j.norm = post ? &b->norm_cross : &b->norm_forward;
    j.normed = at->entering;
    break;
  case JOIN_FORWARD: /* the next layer's attention follows, or the outputs */
    j.from = at->middle;
    j.branch = at->forward;
    j.after = &b->after_forward;
    j.sum = next->state;
    j.norm = post ? &b->norm_forward : l + 1 == layers ? &s->form.last : &s->layer[l + 1].norm_self;
    j.normed = post ? next->state : next->input;
    break;
  case JOIN_ENTER:
  case JOIN_LAST:
    j.norm = l < layers ? &b->norm_self : &s->form.last;
  }
  return j;
}

static void join_unit(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack *s = step->stack;
  const size_t first = u->row * s->form.width;
  const struct join j = join_of(step, stack_run_of(u->run));
  float *to = j.norm->factor ? j.normed : j.sum;
  (void)scratch;
  if (!to) return;                  /* there is neither a branch nor a norm */
  if (j.after && j.after->factor) { /* a number that is not finite stays so, and shows in the sum */
    float *branch = j.branch + first;
    const struct kernel_norm n = stack_norm_rows(s, j.after, u->rows, branch, branch);
    s->kernel->norm(&n);
  }
  struct kernel_norm n = stack_norm_rows(s, j.norm, u->rows, j.from + first, to + first);
  n.branch = j.branch ? j.branch + first : NULL;
  n.sum = j.branch ? j.sum + first : NULL;
  const uint32_t top = s->kernel->norm(&n);
  stack_record_rows(s, u, n.y, top);
}

const struct stack_step stack_step_join = {.step = STACK_ROWS_STEP(stack_rows_unit),
                                           .each = join_unit};
