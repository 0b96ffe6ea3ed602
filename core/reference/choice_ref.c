/* choice_ref: the choice of a token: penalties and bans, temperature, top-k, top-p, min-p. */
#include "core/reference/choice_ref.h"

#include <float.h>
#include <math.h>

static bool is_in(const int32_t *list, size_t count, int32_t token) {
  for (size_t i = 0; i < count; i++)
    if (list[i] == token) return true;
  return false;
}

/* Returns whether the token would complete an n-gram that the text already contains. */
static bool repeats_ngram(const struct stack_past *past, size_t n, int32_t token) {
  for (size_t i = 0; n > 0 && i + n <= past->count; i++) {
    bool same = past->token[i + n - 1] == token;
    for (size_t j = 0; j + 1 < n; j++)
      same = same && past->token[i + j] == past->token[past->count - (n - 1) + j];
    if (same) return true;
  }
  return false;
}

/* The nearest finite float32. */
static double in_float(double x) { return (float)fmin(fmax(x, -FLT_MAX), FLT_MAX); }

/* The logit x of a token after bias and penalties; -INFINITY if the token is banned. */
static double adjust(const struct stack_choice *c, const struct stack_past *past, int32_t token,
                     double x) {
  size_t times = 0;
  for (size_t i = past->count - past->chosen; i < past->count; i++)
    times += past->token[i] == token;
  for (size_t i = 0; i < c->biases; i++)
    if (c->bias[i].token == token) x = in_float(x + c->bias[i].added);
  if (is_in(past->token, past->count, token))
    x = in_float(x < 0 ? x * c->repetition_penalty : x / c->repetition_penalty);
  if (times > 0) x = in_float(x - (c->presence_penalty + c->frequency_penalty * (double)times));
  const bool ends = is_in(c->end, c->ends, token) || is_in(c->stop, c->stops, token);
  const bool banned = repeats_ngram(past, c->no_repeat_ngram, token) ||
                      is_in(c->banned, c->banned_count, token) ||
                      (past->chosen < c->min_tokens && ends);
  return banned ? -INFINITY : x;
}

/* The number of tokens that precede this one in descending order; a tie is ordered by index. */
static size_t rank_of(const double *x, size_t tokens, size_t token) {
  size_t before = 0;
  for (size_t i = 0; i < tokens; i++) before += x[i] > x[token] || (x[i] == x[token] && i < token);
  return before;
}

static void scale_to_one(double *p, size_t tokens) {
  double sum = 0;
  for (size_t i = 0; i < tokens; i++) sum += p[i];
  for (size_t i = 0; i < tokens; i++) p[i] /= sum;
}

/* Removes the tokens that are less likely than the k-th one. */
static void keep_top_k(double *p, size_t tokens, size_t k) {
  double least = 0;
  for (size_t i = 0; i < tokens; i++)
    if (rank_of(p, tokens, i) == k - 1) least = p[i];
  for (size_t i = 0; i < tokens; i++)
    if (p[i] < least) p[i] = 0;
}

/* Removes a token if those that precede it already have `share` of the probability; one by one, the
 * least likely first. */
static void keep_top_p(double *p, size_t tokens, double share) {
  for (size_t rank = tokens; rank-- > 1;) {
    size_t last = 0;
    double before = 0;
    for (size_t i = 0; i < tokens; i++) {
      const size_t r = rank_of(p, tokens, i);
      if (r == rank) last = i;
      if (r < rank) before += p[i];
    }
    if (before >= share) p[last] = 0;
  }
}

void choice_ref(const struct stack_choice *c, const struct stack_past *past, const float *logit,
                size_t tokens, double *p) {
  size_t first = 0;
  for (size_t i = 0; i < tokens; i++) p[i] = adjust(c, past, (int32_t)i, logit[i]);
  for (size_t i = 0; i < tokens; i++)
    if (rank_of(p, tokens, i) == 0) first = i;
  const bool ending = c->forced_end >= 0 && past->chosen + 1 == past->most;
  const bool beginning = c->forced_begin >= 0 && past->count == 1 && past->chosen == 0;
  const bool forced = ending || beginning;
  const bool none = p[first] == -INFINITY; /* every token is banned */
  if (forced || c->temperature == 0 || none) {
    for (size_t i = 0; i < tokens; i++) p[i] = 0;
    if (forced || !none)
      p[ending ? (size_t)c->forced_end : beginning ? (size_t)c->forced_begin : first] = 1;
    return;
  }
  const double greatest = p[first];
  for (size_t i = 0; i < tokens; i++) p[i] = exp((p[i] - greatest) / c->temperature);
  if (c->top_k > 0 && c->top_k < tokens) keep_top_k(p, tokens, c->top_k);
  scale_to_one(p, tokens);
  if (c->top_p < 1) keep_top_p(p, tokens, c->top_p);
  const double least = c->min_p * p[first];
  for (size_t i = 0; i < tokens; i++)
    if (p[i] < least) p[i] = 0;
  scale_to_one(p, tokens);
}
