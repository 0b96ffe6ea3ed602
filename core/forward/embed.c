/* embed: the rows of tokens, positions and types are added, and for some models normalized and
 * projected. */
#include <math.h>
#include <string.h>

#include "core/base/size.h"
#include "core/forward/forward.h"
#include "core/kernel/gemm.h"

enum { PROJECT_ROWS = 16 }; /* that go through the matrix of a projection together */

static void add_rows(float *to, const float *from, size_t count) {
  for (size_t x = 0; x < count; x++) to[x] += from[x];
}

void stack_compute_position(const struct stack *s, size_t p, float *row) {
  const size_t d = stack_form_embedded(&s->form);
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
  const size_t d = stack_form_embedded(&s->form);
  if (!s->token)
    gemm_weights_of(s->output, token, row);
  else if (s->token_form == KERNEL_FLOAT32)
    memcpy(row, (const float *)s->token + token * d, d * sizeof *row);
  else
    s->kernel->widen(s->token_form, d, (const uint16_t *)s->token + token * d, row);
}

/* Makes row `at` of the run, whose position in its item is `within`. */
static void embed_row(const struct stack *s, const struct stack_run *r, size_t at, size_t within,
                      float *row, float *scratch) {
  const struct stack_embedding *m = &s->form.embedding;
  const size_t d = stack_form_embedded(&s->form), p = m->first_position + within;
  if (!r->tokens)
    memcpy(row, r->embeddings + at * d, d * sizeof *row);
  else
    read_token(s, (size_t)r->tokens[at], row);
  for (size_t x = 0; r->tokens && x < d; x++) row[x] *= m->scale;
  if (s->position && p >= s->position_rows) stack_compute_position(s, p, scratch);
  if (s->position) add_rows(row, p < s->position_rows ? s->position + p * d : scratch, d);
  if (m->type) add_rows(row, m->type + (r->types ? (size_t)r->types[at] * d : 0), d);
}

/* Makes rows of the run, and normalizes them. Returns the bits of their greatest magnitude. */
static uint32_t embed_rows(const struct stack *s, const struct stack_run *r, size_t first,
                           size_t rows, float *to, float *scratch) {
  const struct stack_norm *norm = &s->form.embedding.norm;
  const struct item *items = r->geometry.item;
  const size_t d = stack_form_embedded(&s->form);
  size_t item = stack_item_of(&r->geometry, first);
  uint32_t top = 0;
  for (size_t i = 0; i < rows; i++) {
    const size_t at = first + i;
    while (at - items[item].q_row >= items[item].q) item++;
    embed_row(s, r, at, at - items[item].q_row + (size_t)items[item].offset, to + i * d, scratch);
  }
  if (norm->factor) {
    struct kernel_norm n = stack_norm_rows(s, norm, rows, to, to);
    n.count = n.x_row = n.y_row = d;
    return s->kernel->norm(&n);
  }
  for (size_t i = 0; i < rows; i++) {
    const uint32_t peak = s->kernel->peak(d, to + i * d);
    top = peak > top ? peak : top;
  }
  return top;
}

static size_t position_floats(const struct stack *s) {
  return size_round_up(stack_form_embedded(&s->form), 16);
}

static size_t embed_floats(const struct stack *s) {
  return position_floats(s) * (s->project ? 1 + PROJECT_ROWS : 1) +
         (s->project ? gemm_scratch_floats(s->project, PROJECT_ROWS) : 0);
}

static void embed_unit(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack *s = step->stack;
  const struct stack_run *r = stack_run_of(u->run);
  const size_t d = s->form.width, embedded = stack_form_embedded(&s->form);
  float *rows = r->space->flow[0].state + u->row * d;
  float *unprojected = (float *)scratch + position_floats(s);
  uint32_t top = 0;
  if (!s->project) top = embed_rows(s, r, u->row, u->rows, rows, scratch);
  for (size_t first = 0, count; s->project && first < u->rows; first += count) {
    count = size_min(u->rows - first, PROJECT_ROWS);
    embed_rows(s, r, u->row + first, count, unprojected, scratch);
    struct gathered_part part = {.rows = count, .to = rows + first * d, .to_row = d, .bad = count};
    const struct gathered_product product = {.matrix = s->project,
                                             .end = d,
                                             .x = unprojected,
                                             .x_row = embedded,
                                             .scratch =
                                                 unprojected + PROJECT_ROWS * position_floats(s)};
    gathered_multiply(&product, &part, 1);
    top = part.top > top ? part.top : top;
  }
  stack_record_rows(s, u, rows, top);
}

const struct stack_step stack_step_embed = {.step = STACK_ROWS_STEP(stack_rows_unit),
                                            .floats = embed_floats,
                                            .each = embed_unit,
                                            .what = "the embedding of"};
