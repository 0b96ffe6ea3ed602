/* stack_spans: answers from the logits of their first and last tokens, as the pipeline of Hugging
 * Face transformers finds them: in each window both become probabilities, and a span has the
 * product of its two. The first token of a window, if it was added, stands for no answer. */
#include "server/model/answer/stack_spans.h"

#include <math.h>
#include <string.h>

#include "core/base/size.h"
#include "server/text/json_string.h"
#include "server/tokenize/tokenize_answer.h"

static const char TEXT[] = "{\"text\":", SCORE[] = ",\"score\":", START[] = ",\"start\":",
                  END[] = ",\"end\":";
static const char NO_ANSWER[] = "{\"text\":\"\",\"score\":0,\"start\":0,\"end\":0}";
enum { OBJECT_ROOM = sizeof TEXT + sizeof SCORE + sizeof START + sizeof END + 5 * NUMBER_ROOM };

enum { FIRST, LAST, ENDS }; /* the columns of the outputs */

/* An answer: its tokens, whose places are in the context, and its bytes there. */
struct candidate {
  double score;
  size_t first, last;
  uint32_t begin, end;
};

struct spans {
  const struct stack_request *r;
  struct candidate *best;    /* [top] the greatest scores first */
  size_t count;              /* of best */
  double *probability[ENDS]; /* [tokens of the longest window] */
  double none;               /* the probability that there is no answer */
};

/* --- one window --- */

/* Makes probabilities of a column's logits of a window. Returns that of `none`, a row outside the
 * window; SIZE_MAX: there is no such row. */
static double normalize(const struct spans *x, const struct stack_window *w, size_t none,
                        unsigned column) {
  const float *logit = x->r->main.run->outputs + column;
  double *to = x->probability[column], sum = 0, top = -INFINITY, left = 0;
  if (none != SIZE_MAX) top = (double)logit[none * ENDS];
  for (size_t i = w->begin; i < w->end; i++) top = fmax(top, (double)logit[i * ENDS]);
  for (size_t i = w->begin; i < w->end; i++)
    sum += to[i - w->begin] = exp((double)logit[i * ENDS] - top);
  if (none != SIZE_MAX) sum += left = exp((double)logit[none * ENDS] - top);
  for (size_t i = w->begin; i < w->end; i++) to[i - w->begin] /= sum;
  return left / sum;
}

/* Puts a span among the best ones. Windows that overlap may have the same: the greater score
 * remains. */
static void consider(struct spans *x, const struct candidate *s) {
  const size_t top = x->r->windows->top;
  if (x->count == top && s->score <= x->best[top - 1].score) return;
  size_t old = 0;
  while (old < x->count && (x->best[old].first != s->first || x->best[old].last != s->last)) old++;
  if (old < x->count && x->best[old].score >= s->score) return;
  if (old == x->count && x->count < top) x->count++;
  size_t at = old < x->count ? old : x->count - 1;
  for (; at > 0 && x->best[at - 1].score < s->score; at--) x->best[at] = x->best[at - 1];
  x->best[at] = *s;
}

/* Finds the answers of a window, whose first row is `row`. */
static void read_window(struct spans *x, const struct stack_window *w, size_t row) {
  const struct token *token = x->r->tokenized->tokens.token;
  const bool marked = row < w->begin && token_is_added(&token[row]);
  const size_t none = marked ? row : SIZE_MAX, count = w->end - w->begin;
  double score = normalize(x, w, none, FIRST);
  score *= normalize(x, w, none, LAST);
  if (marked || count) x->none = fmin(x->none, score);
  for (size_t i = 0; i < count; i++) {
    const size_t end = size_min(count, i + x->r->windows->max_answer);
    for (size_t j = i; j < end; j++) {
      const struct candidate s = {.score = x->probability[FIRST][i] * x->probability[LAST][j],
                                  .first = w->at + i,
                                  .last = w->at + j,
                                  .begin = token[w->begin + i].begin,
                                  .end = token[w->begin + j].end};
      consider(x, &s);
    }
  }
}

/* --- the section --- */

static char *write_span(const struct candidate *s, const char *text, char *out) {
  struct tokenize_offset at = {0};
  const size_t end = size_max(s->begin, s->end);
  out = answer_write_text(out, TEXT);
  out = json_string_write(text + s->begin, end - s->begin, out);
  out = answer_write_text(out, SCORE);
  out = number_write(out, (float)s->score);
  out = answer_write_text(out, START);
  out = number_write_integer(out, tokenize_offset_move(text, &at, s->begin));
  out = answer_write_text(out, END);
  out = number_write_integer(out, tokenize_offset_move(text, &at, end));
  *out++ = '}';
  return out;
}

/* Writes the answers to all questions as one row. */
static char *write_items(const struct answer_rows *rows, char *out) {
  struct spans x = *(const struct spans *)rows->section->data;
  const struct tokenize_texts *d = x.r->tokenized;
  const struct stack_windows *all = x.r->windows;
  size_t w = 0;
  for (size_t item = 0; item < d->texts->items; item++) {
    const char *text = d->texts->bytes + d->texts->part[TEXTS_PAIR * item + 1].at;
    x.count = 0;
    x.none = 1;
    for (; w < all->count && all->window[w].item == item; w++)
      read_window(&x, &all->window[w], d->first[w]);
    if (item > 0) *out++ = ',';
    *out++ = '[';
    if (x.count == 0 || x.none > x.best->score) {
      out = answer_write_text(out, NO_ANSWER);
      x.count = 0;
    }
    for (size_t i = 0; i < x.count; i++) {
      if (i > 0) *out++ = ',';
      out = write_span(&x.best[i], text, out);
    }
    *out++ = ']';
  }
  return out;
}

/* The bytes of the longest answer that a window may have, or more: ends of tokens mostly ascend. */
static size_t longest_answer(const struct stack_request *r) {
  const struct token *token = r->tokenized->tokens.token;
  size_t longest = 0;
  for (size_t w = 0; w < r->windows->count; w++) {
    const struct stack_window *window = &r->windows->window[w];
    size_t next = window->begin, furthest = 0;
    for (size_t i = window->begin; i < window->end; i++) {
      for (; next < size_min(window->end, i + r->windows->max_answer); next++)
        furthest = size_max(furthest, token[next].end);
      if (furthest > token[i].begin) longest = size_max(longest, furthest - token[i].begin);
    }
  }
  return longest;
}

/* The most bytes of all answers. */
static bool count_room(const struct stack_request *r, size_t *room) {
  size_t text, items;
  return size_mul(longest_answer(r), JSON_STRING_ROOM, &text) &&
         size_add(text, OBJECT_ROOM + sizeof NO_ANSWER, &text) &&
         size_mul(text, r->windows->top, &text) && size_add(text, ROW_ROOM, &text) &&
         size_mul(text, r->tokenized->texts->items, &items) && size_add(items, ROW_ROOM, room);
}

/* Memory that writing needs. NULL with an error. */
static struct spans *make_spans(const struct stack_request *r, struct arena *a, struct error *e) {
  struct spans *x = arena_alloc(a, 1, sizeof *x, e);
  size_t longest = 0;
  if (!x) return NULL;
  *x = (struct spans){.r = r};
  for (size_t w = 0; w < r->windows->count; w++)
    longest = size_max(longest, r->windows->window[w].end - r->windows->window[w].begin);
  x->best = arena_alloc(a, r->windows->top, sizeof *x->best, e);
  for (unsigned i = 0; i < ENDS; i++)
    x->probability[i] = arena_alloc(a, longest, sizeof *x->probability[i], e);
  return e->status ? NULL : x;
}

enum status stack_spans_add(struct stack_listing *l, struct arena *a, struct error *e) {
  size_t room;
  if (!count_room(l->r, &room))
    return error_set(e, STATUS_TOO_LARGE, "the answers exceed the address space");
  struct spans *x = NULL;
  if (l->part && !(x = make_spans(l->r, a, e))) return e->status;
  stack_listing_add_text(l, "answers", room, write_items, x);
  return STATUS_OK;
}
