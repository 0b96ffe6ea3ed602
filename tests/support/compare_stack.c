/* compare_stack: what a stack computed, beside its readable twin and beside itself. */
#include "tests/support/compare_stack.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/size.h"
#include "core/reference/stack_ref.h"

static const double state_bound = 2e-5, first_bound = 4e-6, later_bound = 2e-5, dense_bound = 8e-5;

static bool differs(struct error *e, const char *what, size_t item, size_t at, double got,
                    double right) {
  error_set(e, STATUS_SYSTEM, "item %zu, %s %zu: %.9g, should be %.9g", item, what, at, got, right);
  return false;
}

/* Adds which attention it is that differs. */
static bool differs_in(struct error *e, size_t number) {
  const size_t length = strlen(e->detail);
  snprintf(e->detail + length, sizeof e->detail - length, ", in attention %zu", number);
  return false;
}

/* The memory must have served its purpose. */
static void spoil_left(const struct spare *left) {
  for (size_t i = 0; i < left->count; i++)
    memset(left->stretch[i].at, 0xff, (size_t)(left->stretch[i].end - left->stretch[i].at));
}

void compute_runs(const struct random_stack *s, struct stack_run *first, double work) {
  const size_t bytes = size_round_up(stack_scratch_bytes(s->stack) + 1, 64);
  void *scratch = aligned_alloc(64, bytes);
  must(scratch != NULL);
  memset(scratch, 0xff, bytes); /* NaN, where scratch is read before it is written */
  run_compute(&first->run, work, scratch);
  free(scratch);
  for (const struct run *r = &first->run; r; r = r->next)
    spoil_left(&((const struct stack_run *)r)->left);
}

void prepare_source(const struct random_stack *s, struct stack_run *r, struct arena *a) {
  if (!r->source) return;
  prepare_run(s->source, r->source, a);
  compute_runs(s->source, r->source, 1e6);
}

void prepare_run(const struct random_stack *s, struct stack_run *r, struct arena *a) {
  struct error e = {0};
  prepare_source(s, r, a);
  must(stack_prepare(s->stack, r, a, &e) == STATUS_OK);
}

struct run *prepare_chain(const struct random_stack *s, struct stack_run *r, struct arena *a) {
  struct error e = {0};
  must(!r->source || stack_prepare(s->source->stack, r->source, a, &e) == STATUS_OK);
  must(stack_prepare(s->stack, r, a, &e) == STATUS_OK);
  return r->source ? &r->source->run : &r->run;
}

size_t chain_scratch_bytes(const struct random_stack *s) {
  const size_t own = stack_scratch_bytes(s->stack);
  return s->source ? size_max(own, stack_scratch_bytes(s->source->stack)) : own;
}

/* --- what the twin says of an item --- */

static size_t heads_of(const struct random_stack *s, size_t number) {
  return number < s->form.layers ? s->form.kind->self.heads : s->form.cross.heads;
}

static size_t keys_of(const struct random_stack *s, const struct stack_run *r, size_t number,
                      size_t item) {
  return number < s->form.layers ? r->geometry.item[item].k : r->source->geometry.item[item].q;
}

struct twin {
  struct ref_hidden hidden;
  size_t vectors; /* of the item: its rows, or one */
  size_t wide;    /* numbers of the longest vector */
  double *vector; /* [vectors, wide] */
  double *bare;   /* the same before their length becomes 1, and before a function */
  struct arena arena;
};

/* Of all attentions: rows of so many numbers, or, where that is 0, weights. */
static double **numbers_of_attentions(struct arena *a, const struct random_stack *s,
                                      const struct stack_run *r, size_t item, size_t width) {
  const size_t numbers = stack_form_attentions(&s->form), n = r->geometry.item[item].q;
  double **x = random_room(a, numbers, sizeof *x);
  for (size_t i = 0; i < numbers; i++)
    x[i] =
        random_room(a, n * (width ? width : heads_of(s, i) * keys_of(s, r, i, item)), sizeof **x);
  return x;
}

static double *widen(struct arena *a, const float *x, size_t count) {
  double *y = random_room(a, count, sizeof *y);
  for (size_t i = 0; i < count; i++) y[i] = x[i];
  return y;
}

static struct ref_text text_of(const struct random_stack *s, const struct stack_run *r, size_t item,
                               struct arena *a) {
  const struct item *at = &r->geometry.item[item];
  const size_t d = s->form.width;
  const size_t numbers = stack_form_attentions(&s->form);
  const float **masks = random_room(a, numbers, sizeof *masks);
  for (size_t i = 0; i < numbers; i++) masks[i] = r->wish ? r->wish[i].head_mask : NULL;
  const struct item *source = r->source ? &r->source->geometry.item[item] : NULL;
  const size_t wide = r->source ? s->source->form.width : 0;
  return (struct ref_text){
      .n = at->q,
      .source_n = source ? source->q : 0,
      .source = source ? widen(a, r->source->rows + source->q_row * wide, source->q * wide) : NULL,
      .token = r->tokens ? r->tokens + at->q_row : NULL,
      .embedding = r->tokens ? NULL : widen(a, r->embeddings + at->q_row * d, at->q * d),
      .token_type = r->types ? r->types + at->q_row : NULL,
      .head_mask = masks};
}

static enum status ask_twin(const struct random_stack *s, const struct stack_run *r, size_t item,
                            struct twin *t, struct error *e) {
  const struct stack_form *f = &s->form;
  const size_t n = r->geometry.item[item].q, d = f->width;
  struct arena *a = &t->arena;
  arena_init(a, NULL);
  const struct ref_text text = text_of(s, r, item, a);
  t->hidden = (struct ref_hidden){.state = random_room(a, (f->layers + 1) * n * d, sizeof(double)),
                                  .weights = numbers_of_attentions(a, s, r, item, 0),
                                  .input = numbers_of_attentions(a, s, r, item, d),
                                  .outputs = random_room(a, n * d, sizeof(double))};
  t->vectors = !stack_makes_vectors(r) ? 0 : stack_has_rows(r) ? n : 1;
  t->wide = size_max(size_max(d, stack_form_pooled(f)), f->classifier.count);
  t->vector = random_room(a, t->vectors * t->wide, sizeof(double));
  t->bare = random_room(a, t->vectors * t->wide, sizeof(double));
  if (stack_ref(f, &text, &t->hidden, e)) return e->status;
  struct ref_pooling how = {.vectors = r->vectors,
                            .after = r->after,
                            .token = text.token,
                            .dimensions = r->dimensions,
                            .left_out = r->left_out ? r->left_out[item] : 0};
  struct ref_pooling bent = how;
  bent.normalize = r->normalize;
  bent.function = r->function;
  for (size_t i = 0; i < t->vectors && !e->status; i++) {
    const double *rows = t->hidden.outputs + i * d;
    stack_ref_pool(f, &how, n - i, rows, t->bare + i * t->wide, e);
    stack_ref_pool(f, &bent, n - i, rows, t->vector + i * t->wide, e);
  }
  return e->status;
}

/* --- an item beside it --- */

static double greatest(const double *x, size_t count) {
  double top = 0;
  for (size_t i = 0; i < count; i++) top = fmax(top, fabs(x[i]));
  return top;
}

/* Each number of a row within the bound, by the row's greatest magnitude. */
static bool rows_agree(const char *what, size_t item, const float *got, const double *right,
                       size_t rows, size_t d, struct error *e) {
  for (size_t i = 0; i < rows; i++) {
    const double bound = state_bound * greatest(right + i * d, d);
    for (size_t at = i * d; at < (i + 1) * d; at++)
      if (!(fabs(got[at] - right[at]) <= bound))
        return differs(e, what, item, at, got[at], right[at]);
  }
  return true;
}

static bool weights_agree(const struct random_stack *s, const struct stack_run *r, size_t item,
                          size_t number, const double *right, struct error *e) {
  const size_t heads = heads_of(s, number), n = r->geometry.item[item].q;
  const size_t plane = n * keys_of(s, r, number, item);
  const bool average = r->wish[number].weights == STACK_WEIGHTS_AVERAGE;
  const struct stack_shown *shown = &r->shown[number];
  const float *got = shown->weights + shown->weights_at[item];
  const double bound = number == 0 ? first_bound : later_bound;
  for (size_t i = 0; i < plane * (average ? 1 : heads); i++) {
    double wanted = right[i];
    for (size_t h = 1; average && h < heads; h++) wanted += right[h * plane + i];
    if (average) wanted /= (double)heads;
    if (!(fabs(got[i] - wanted) <= bound) || (wanted == 0 && got[i] != 0))
      return differs(e, average ? "average weight" : "weight", item, i, got[i], wanted);
  }
  return true;
}

/* Rounding may move a weight to the next byte. */
static bool thumbnails_agree(const struct random_stack *s, const struct stack_run *r, size_t item,
                             size_t number, const double *right, struct error *e) {
  const size_t n = r->geometry.item[item].q, k = keys_of(s, r, number, item);
  const size_t most = r->wish[number].thumbnail, bytes = size_min(most, n) * size_min(most, k);
  const struct stack_shown *shown = &r->shown[number];
  const uint8_t *got = shown->thumbnails + shown->thumbnails_at[item];
  uint8_t picture[64 * 64];
  for (size_t h = 0; h < heads_of(s, number); h++, got += bytes) {
    stack_ref_thumbnail(right + h * n * k, n, k, most, picture);
    for (size_t i = 0; i < bytes; i++)
      if (abs(got[i] - picture[i]) > 1) return differs(e, "thumbnail", item, i, got[i], picture[i]);
  }
  return true;
}

static bool attention_agrees(const struct random_stack *s, const struct stack_run *r, size_t item,
                             size_t layer, const struct twin *t, struct error *e) {
  const struct stack_wish *wish = &r->wish[layer];
  const struct stack_shown *shown = &r->shown[layer];
  const size_t n = r->geometry.item[item].q, d = s->form.width;
  const size_t first = r->geometry.item[item].q_row * d;
  const bool pictures = wish->weights == STACK_WEIGHTS_THUMBNAILS;
  const bool weights = wish->weights != STACK_WEIGHTS_NONE && !pictures;
  if (!shown->hidden != !wish->hidden || !shown->input != !wish->input ||
      !shown->weights != !weights || !shown->thumbnails != !pictures)
    return differs(e, "what is shown of layer", item, layer, 0, 1);
  return (!wish->hidden || rows_agree("hidden", item, shown->hidden + first,
                                      t->hidden.state + (layer + 1) * n * d, n, d, e)) &&
         (!wish->input ||
          rows_agree("input", item, shown->input + first, t->hidden.input[layer], n, d, e)) &&
         (!weights || weights_agree(s, r, item, layer, t->hidden.weights[layer], e)) &&
         (!pictures || thumbnails_agree(s, r, item, layer, t->hidden.weights[layer], e));
}

/* Sums of outputs may cancel: what they are off by is that of the outputs. */
static bool vectors_agree(const struct random_stack *s, const struct stack_run *r, size_t item,
                          const struct twin *t, struct error *e) {
  const struct stack_pooling *p = &s->form.pooling;
  const size_t n = r->geometry.item[item].q, d = s->form.width, size = r->output_size;
  const bool classes = r->after & STACK_AFTER_CLASSES;
  const bool passes = p->dense[0].size && r->after & STACK_AFTER_DENSE;
  const size_t whole = classes  ? s->form.classifier.count
                       : passes ? stack_form_pooled(&s->form)
                                : d;
  const bool dense = passes || classes || (r->after & STACK_AFTER_POOLER && p->pooler.weight);
  const size_t first = stack_has_rows(r) ? r->geometry.item[item].q_row : item;
  if (size != (r->dimensions ? r->dimensions : whole))
    return differs(e, "size of vector", item, 0, (double)size, (double)whole);
  for (size_t v = 0; v < t->vectors; v++) {
    const float *got = r->outputs + (first + v) * size;
    const double *right = t->vector + v * t->wide, *bare = t->bare + v * t->wide;
    double length = 0;
    for (size_t i = 0; i < size; i++) length += bare[i] * bare[i];
    double bound = dense ? dense_bound : state_bound;
    bound *= fmax(greatest(t->hidden.outputs, n * d), greatest(bare, size));
    if (r->normalize && length > 0) bound /= sqrt(length);
    for (size_t i = 0; i < size; i++)
      if (!(fabs(got[i] - right[i]) <= bound))
        return differs(e, "vector", item, v * size + i, got[i], right[i]);
  }
  return true;
}

/* The likeliest tokens of a row, beside log p of all. */
static bool top_agrees(const struct stack_run *r, size_t item, size_t row, const double *right,
                       size_t tokens, double bound, struct error *e) {
  const size_t top = r->top_count;
  const int32_t *token = r->top_tokens + row * top;
  const float *got = r->top_log_probabilities + row * top;
  size_t above = 0;
  if (top != size_min(r->top, tokens))
    return differs(e, "how many of top", item, row, (double)top, 0);
  for (size_t i = 0; i < top; i++) {
    if (!(fabs(got[i] - right[token[i]]) <= bound))
      return differs(e, "top", item, row, got[i], right[token[i]]);
    if (i > 0 && (got[i] > got[i - 1] || (got[i] == got[i - 1] && token[i] == token[i - 1])))
      return differs(e, "order of top", item, row, got[i], got[i - 1]);
  }
  for (size_t t = 0; top > 0 && t < tokens; t++) above += right[t] > got[top - 1] + bound;
  return above < size_max(top, 1) ||
         differs(e, "tokens above top", item, row, (double)above, (double)top);
}

/* Of the rows as they came out: these have been compared. */
static bool logs_agree(const struct random_stack *s, const struct stack_run *r, size_t item,
                       struct error *e) {
  const size_t tokens = s->form.embedding.tokens, d = s->form.width;
  const struct item *at = &r->geometry.item[item];
  struct arena a;
  bool agrees = true;
  arena_init(&a, NULL);
  double *right = random_room(&a, tokens, sizeof *right);
  for (size_t row = at->q_row; agrees && row < at->q_row + at->q; row++) {
    const int32_t target = r->targets[row];
    const float got = r->log_probabilities[row];
    if (target < 0) {
      agrees = got == 0 || differs(e, "log p without a target", item, row, got, 0);
      continue;
    }
    stack_ref_log_probabilities(&s->form, widen(&a, r->rows + row * d, d), right);
    const double bound = 2e-5 + 1e-6 * greatest(right, tokens);
    agrees =
        fabs(got - right[target]) <= bound || differs(e, "log p", item, row, got, right[target]);
    if (agrees) agrees = top_agrees(r, item, row, right, tokens, bound, e);
  }
  arena_free(&a);
  return agrees;
}

/* What logits say of a row is what log p of all tokens says. */
static bool row_of_logits_agrees(const float *logit, const double *right, size_t tokens,
                                 size_t item, struct error *e) {
  const double bound = 2e-5 + 1e-6 * greatest(right, tokens);
  double top = logit[0], sum = 0;
  for (size_t t = 1; t < tokens; t++) top = fmax(top, logit[t]);
  for (size_t t = 0; t < tokens; t++) sum += exp(logit[t] - top);
  for (size_t t = 0; t < tokens; t++) {
    const double got = logit[t] - top - log(sum);
    if (!(fabs(got - right[t]) <= bound)) return differs(e, "logit", item, t, got, right[t]);
  }
  return true;
}

static bool logits_agree(const struct random_stack *s, const struct stack_run *r, size_t item,
                         struct error *e) {
  const size_t tokens = s->form.embedding.tokens, d = s->form.width;
  const struct item *at = &r->geometry.item[item];
  struct arena a;
  bool agrees = true;
  arena_init(&a, NULL);
  double *right = random_room(&a, tokens, sizeof *right);
  for (size_t row = at->q_row; agrees && row < at->q_row + at->q; row++) {
    stack_ref_log_probabilities(&s->form, widen(&a, r->rows + row * d, d), right);
    agrees = row_of_logits_agrees(r->logits + row * tokens, right, tokens, item, e);
  }
  arena_free(&a);
  return agrees;
}

static bool item_agrees(const struct random_stack *s, const struct stack_run *r, size_t item,
                        struct error *e) {
  const struct item *at = &r->geometry.item[item];
  const size_t n = at->q, d = s->form.width, first = at->q_row * d;
  struct twin t;
  bool agrees = ask_twin(s, r, item, &t, e) == STATUS_OK;
  if (agrees && !r->embedding != !r->embedded)
    agrees = differs(e, "is there an embedding", item, 0, r->embedding != NULL, r->embedded);
  if (agrees && r->embedded)
    agrees = rows_agree("embedding", item, r->embedding + first, t.hidden.state, n, d, e);
  for (size_t i = 0; agrees && r->wish && i < stack_form_attentions(&s->form); i++)
    agrees = attention_agrees(s, r, item, i, &t, e) || differs_in(e, i);
  if (agrees && !stack_makes_vectors(r))
    agrees = r->output_size == d &&
             rows_agree("output", item, r->outputs + first, t.hidden.outputs, n, d, e);
  if (agrees) agrees = rows_agree("row", item, r->rows + first, t.hidden.outputs, n, d, e);
  if (agrees && stack_makes_vectors(r)) agrees = vectors_agree(s, r, item, &t, e);
  if (agrees && !r->targets != !r->log_probabilities)
    agrees =
        differs(e, "are there targets", item, 0, r->log_probabilities != NULL, r->targets != NULL);
  if (agrees && r->targets) agrees = logs_agree(s, r, item, e);
  if (agrees && !r->want_logits != !r->logits)
    agrees = differs(e, "are there logits", item, 0, r->logits != NULL, r->want_logits);
  if (agrees && r->logits) agrees = logits_agree(s, r, item, e);
  arena_free(&t.arena);
  return agrees;
}

bool run_agrees_with_twin(const struct random_stack *s, const struct stack_run *r,
                          struct error *e) {
  if (run_fault(&r->run, e) || !r->wish != !r->shown) return false;
  for (size_t i = 0; i < r->geometry.items; i++)
    if (!item_agrees(s, r, i, e)) return false;
  return true;
}

/* --- bits --- */

static bool same(const char *what, size_t layer, const void *x, const void *y, size_t bytes,
                 struct error *e) {
  if (bytes == 0 || memcmp(x, y, bytes) == 0) return true;
  error_set(e, STATUS_SYSTEM, "bits of the %s differ (%zu)", what, layer);
  return false;
}

static bool same_rows(const char *what, size_t layer, const float *x, const struct item *i,
                      const float *y, const struct item *j, size_t d, struct error *e) {
  return !x || !y || same(what, layer, x + i->q_row * d, y + j->q_row * d, i->q * d * sizeof *x, e);
}

static bool same_attention(const struct random_stack *s, size_t layer, const struct stack_run *x,
                           size_t i, const struct stack_run *y, size_t j, struct error *e) {
  const struct stack_shown *a = &x->shown[layer], *b = &y->shown[layer];
  const struct item *at = &x->geometry.item[i], *to = &y->geometry.item[j];
  const size_t d = s->form.width, n = at->q, k = keys_of(s, x, layer, i);
  const size_t most = x->wish[layer].thumbnail, bytes = size_min(most, n) * size_min(most, k);
  const bool alike = x->wish[layer].weights == y->wish[layer].weights;
  const size_t heads = x->wish[layer].weights == STACK_WEIGHTS_AVERAGE ? 1 : heads_of(s, layer);
  return same_rows("hidden state of a layer", layer, a->hidden, at, b->hidden, to, d, e) &&
         same_rows("input", layer, a->input, at, b->input, to, d, e) &&
         (!alike || !a->weights ||
          same("weights", layer, a->weights + a->weights_at[i], b->weights + b->weights_at[j],
               heads * n * k * sizeof *a->weights, e)) &&
         (!alike || !a->thumbnails || x->wish[layer].thumbnail != y->wish[layer].thumbnail ||
          same("thumbnails", layer, a->thumbnails + a->thumbnails_at[i],
               b->thumbnails + b->thumbnails_at[j], heads * bytes, e));
}

static bool same_logs(const struct stack_run *x, size_t i, const struct stack_run *y, size_t j,
                      struct error *e) {
  const struct item *at = &x->geometry.item[i], *to = &y->geometry.item[j];
  const size_t top = x->top_count, from = at->q_row * top, other = to->q_row * top;
  if (!x->log_probabilities || !y->log_probabilities) return true;
  return same_rows("log p", 0, x->log_probabilities, at, y->log_probabilities, to, 1, e) &&
         (top != y->top_count || (same_rows("top", 0, x->top_log_probabilities, at,
                                            y->top_log_probabilities, to, top, e) &&
                                  same("top tokens", 0, x->top_tokens + from, y->top_tokens + other,
                                       at->q * top * sizeof *x->top_tokens, e)));
}

/* The targets of the items before one. */
static size_t targets_before(const struct stack_run *r, size_t item) {
  size_t targets = 0;
  for (size_t row = 0; row < r->geometry.item[item].q_row; row++) targets += r->targets[row] >= 0;
  return targets;
}

static bool same_lens(const struct random_stack *s, const struct stack_run *x, size_t i,
                      const struct stack_run *y, size_t j, struct error *e) {
  const struct item *at = &x->geometry.item[i];
  const size_t count = x->lens_count;
  size_t targets = 0;
  if (!x->lens || !y->lens || count != y->lens_count) return true;
  for (size_t row = at->q_row; row < at->q_row + at->q; row++) targets += x->targets[row] >= 0;
  const size_t from = targets_before(x, i) * count, other = targets_before(y, j) * count;
  const size_t bytes = targets * count * sizeof(int32_t);
  for (size_t l = 0; l <= s->form.layers; l++)
    if (!same("tokens of a lens", l, x->lens[l].token + from, y->lens[l].token + other, bytes, e) ||
        !same("lens", l, x->lens[l].log_probability + from, y->lens[l].log_probability + other,
              bytes, e))
      return false;
  return true;
}

static bool same_outputs(const struct random_stack *s, const struct stack_run *x, size_t i,
                         const struct stack_run *y, size_t j, struct error *e) {
  const size_t size = x->output_size;
  if (x->vectors != y->vectors || x->after != y->after || x->dimensions != y->dimensions ||
      x->normalize != y->normalize)
    return true;
  if (stack_has_rows(x))
    return same_rows("outputs", s->form.layers, x->outputs, &x->geometry.item[i], y->outputs,
                     &y->geometry.item[j], size, e);
  return same("vector", i, x->outputs + i * size, y->outputs + j * size, size * sizeof(float), e);
}

bool same_bits_of_items(const struct random_stack *s, const struct stack_run *x, size_t i,
                        const struct stack_run *y, size_t j, struct error *e) {
  const struct item *at = &x->geometry.item[i], *to = &y->geometry.item[j];
  if (run_fault(&x->run, e) || run_fault(&y->run, e)) return false;
  bool alike = at->q == to->q && same_outputs(s, x, i, y, j, e) && same_logs(x, i, y, j, e) &&
               same_lens(s, x, i, y, j, e) &&
               same_rows("logits", 0, x->logits, at, y->logits, to, s->form.embedding.tokens, e) &&
               same_rows("embedding", 0, x->embedding, at, y->embedding, to, s->form.width, e);
  for (size_t l = 0; alike && x->shown && y->shown && l < stack_form_attentions(&s->form); l++)
    alike = same_attention(s, l, x, i, y, j, e);
  return alike;
}

bool same_bits_of_runs(const struct random_stack *s, const struct stack_run *x,
                       const struct stack_run *y, struct error *e) {
  for (size_t i = 0; i < x->geometry.items; i++)
    if (!same_bits_of_items(s, x, i, y, i, e)) return false;
  return x->geometry.items == y->geometry.items;
}

/* --- thumbnails --- */

static bool thumbnail_is_that_of(size_t item, size_t n, size_t k, size_t most, const float *weights,
                                 const uint8_t *got, struct error *e) {
  struct arena a;
  uint8_t picture[64 * 64];
  arena_init(&a, NULL);
  stack_ref_thumbnail(widen(&a, weights, n * k), n, k, most, picture);
  arena_free(&a);
  for (size_t i = 0; i < size_min(most, n) * size_min(most, k); i++)
    if (got[i] != picture[i]) return differs(e, "thumbnail", item, i, got[i], picture[i]);
  return true;
}

bool thumbnails_are_those_of(const struct random_stack *s, const struct stack_run *r,
                             const struct stack_run *whole, struct error *e) {
  for (size_t i = 0; i < stack_form_attentions(&s->form); i++)
    for (size_t item = 0; r->shown[i].thumbnails && item < r->geometry.items; item++) {
      const size_t n = r->geometry.item[item].q, k = keys_of(s, r, i, item);
      const size_t most = r->wish[i].thumbnail, bytes = size_min(most, n) * size_min(most, k);
      const float *weights = whole->shown[i].weights + whole->shown[i].weights_at[item];
      const uint8_t *got = r->shown[i].thumbnails + r->shown[i].thumbnails_at[item];
      for (size_t h = 0; h < heads_of(s, i); h++)
        if (!thumbnail_is_that_of(item, n, k, most, weights + h * n * k, got + h * bytes, e))
          return differs_in(e, i);
    }
  return true;
}
