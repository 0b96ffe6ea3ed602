/* embed: the rows of tokens, positions and types are added, and for some models normalized. */
#include <math.h>
#include <string.h>

#include "core/base/size.h"
#include "core/forward/forward.h"
#include "core/kernel/gemm.h"

static void add_rows(float *to, const float *from, size_t count) {
  for (size_t x = 0; x < count; x++) to[x] += from[x];
}

void stack_compute_position(const struct stack *s, size_t p, float *row) {
  const size_t d = s->form.width;
  const bool turns = s->form.embedding.positions == POSITIONS_INTERLEAVED;
  for (size_t x = 0; x < d; x++) {
    const bool sine = turns ? x % 2 == 0 : x < d / 2;
    const double angle = (double)p * s->turns[x];
    row[x] = (float)(sine ? sin(angle) : cos(angle));
  }
}

/* Reads a row of the table of tokens: this stack's or another one's, packed or not. */
static void read_token(const struct stack *of, size_t token, float *row) {
  const struct stack *s = of->form.embedding.lender ? of->form.embedding.lender : of;
  const size_t d = s->form.width;
  if (!s->token)
    gemm_weights_of(s->output, token, row);
  else if (s->token_form == KERNEL_FLOAT32)
    memcpy(row, (const float *)s->token + token * d, d * sizeof *row);
  else
    s->kernel->widen(s->token_form, d, (const uint16_t *)s->token + token * d, row);
}

/* Row `at` of the run, whose position in its item is `within`. */
static void embed_row(const struct stack *s, const struct stack_run *r, size_t at, size_t within,
                      float *scratch) {
  const struct stack_embedding *m = &s->form.embedding;
  const size_t d = s->form.width, p = m->first_position + within;
  float *row = r->space->flow[0].state + at * d;
  if (!r->tokens)
    memcpy(row, r->embeddings + at * d, d * sizeof *row);
  else
    read_token(s, (size_t)r->tokens[at], row);
  for (size_t x = 0; r->tokens && x < d; x++) row[x] *= m->scale;
  if (s->position && p >= s->position_rows) stack_compute_position(s, p, scratch);
  if (s->position) add_rows(row, p < s->position_rows ? s->position + p * d : scratch, d);
  if (m->type) add_rows(row, m->type + (r->types ? (size_t)r->types[at] * d : 0), d);
}

static void embed_unit(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack *s = step->stack;
  const struct stack_norm *norm = &s->form.embedding.norm;
  const struct stack_run *r = stack_run_of(u->run);
  const struct item *items = r->geometry.item;
  const size_t d = s->form.width;
  size_t item = stack_item_of(&r->geometry, u->row);
  for (size_t at = u->row; at < u->row + u->rows; at++) {
    while (at - items[item].q_row >= items[item].q) item++;
    embed_row(s, r, at, at - items[item].q_row + (size_t)items[item].offset, scratch);
  }
  float *rows = r->space->flow[0].state + u->row * d;
  uint32_t top = 0;
  if (norm->factor) {
    const struct kernel_norm n = stack_norm_rows(s, norm, u->rows, rows, rows);
    top = s->kernel->norm(&n);
  }
  for (size_t i = 0; !norm->factor && i < u->rows; i++) {
    const uint32_t peak = s->kernel->peak(d, rows + i * d);
    top = peak > top ? peak : top;
  }
  stack_record_rows(s, u, rows, top);
}

static size_t embed_floats(const struct stack *s) { return s->form.width; }

const struct stack_step stack_step_embed = {.step = STACK_ROWS_STEP(stack_rows_unit),
                                            .floats = embed_floats,
                                            .each = embed_unit,
                                            .what = "the embedding of"};
