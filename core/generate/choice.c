/* choice: the next token, from the logits of all.
 *
 * A change of a logit names its token, and these are few: so the greatest logit is found without a
 * copy. Sampling has the weights of all tokens in the scratch, e^((logit - greatest) /
 * temperature), and 0 for those that cannot be sampled. The most likely tokens are taken from a
 * heap: only as many of them are sorted as are needed. */
#include "core/generate/choice.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/base/size.h"
#include "core/kernel/kernel.h"
#include "core/kernel/philox.h"

enum { OF_CHOICE = 1 }; /* the last word of a sample's counter: attention's samples have 0 there */

/* A choice that is being made. */
struct choosing {
  const struct kernel *kernel; /* its exponential weighs tokens */
  const struct stack_choice *c;
  const struct stack_past *past;
  size_t tokens;
  float *logit;   /* [tokens] the copy, as it is changed */
  uint32_t *heap; /* [tokens] first it counts tokens, and then it is a heap of them */
};

static size_t copy_bytes(size_t tokens) { return size_round_up(tokens * sizeof(float), 64); }

size_t stack_choice_scratch(size_t tokens) {
  return copy_bytes(tokens) + tokens * sizeof(uint32_t);
}

/* --- changes of logits --- */

static bool changes_logits(const struct stack_choice *c, const struct stack_past *past) {
  return c->repetition_penalty != 1 || c->presence_penalty != 0 || c->frequency_penalty != 0 ||
         c->no_repeat_ngram > 0 || c->biases > 0 || c->banned_count > 0 ||
         past->chosen < c->min_tokens;
}

/* Sets a logit, which stays finite: a logit of -infinity is banned. */
static void set_logit(struct choosing *k, size_t token, double x) {
  k->logit[token] = (float)fmin(fmax(x, -FLT_MAX), FLT_MAX);
}

static void penalize(struct choosing *k) {
  const struct stack_choice *c = k->c;
  const struct stack_past *past = k->past;
  const double r = c->repetition_penalty, once = c->presence_penalty, each = c->frequency_penalty;
  /* Each token of the past once. */
  if (r != 1) memset(k->heap, 0, k->tokens * sizeof *k->heap);
  for (size_t i = 0; r != 1 && i < past->count; i++) {
    const size_t token = (size_t)past->token[i];
    const double x = k->logit[token];
    if (k->heap[token]++ == 0) set_logit(k, token, x < 0 ? x * r : x / r);
  }
  if (once == 0 && each == 0) return;
  /* The generated tokens, by how often each occurs. */
  const int32_t *chosen = past->token + (past->count - past->chosen);
  memset(k->heap, 0, k->tokens * sizeof *k->heap);
  for (size_t i = 0; i < past->chosen; i++) k->heap[chosen[i]]++;
  for (size_t i = 0; i < past->chosen; i++) {
    const size_t token = (size_t)chosen[i];
    if (k->heap[token] > 0) set_logit(k, token, k->logit[token] - (once + each * k->heap[token]));
    k->heap[token] = 0;
  }
}

static void ban(struct choosing *k, const int32_t *list, size_t count) {
  for (size_t i = 0; i < count; i++) k->logit[list[i]] = -INFINITY;
}

static void change_logits(struct choosing *k) {
  const struct stack_choice *c = k->c;
  const struct stack_past *past = k->past;
  for (size_t i = 0; i < c->biases; i++) {
    const struct stack_bias *b = &c->bias[i];
    set_logit(k, (size_t)b->token, k->logit[b->token] + b->added);
  }
  penalize(k);
  /* A token is banned that followed an earlier occurrence of the last n - 1 tokens. */
  const size_t n = c->no_repeat_ngram, places = n > 0 && past->count >= n ? past->count - n + 1 : 0;
  for (size_t i = 0; i < places; i++) {
    const int32_t *last = past->token + places; /* [n - 1] */
    if (!memcmp(past->token + i, last, (n - 1) * sizeof *last)) ban(k, past->token + i + n - 1, 1);
  }
  ban(k, c->banned, c->banned_count);
  if (past->chosen >= c->min_tokens) return;
  ban(k, c->end, c->ends);
  ban(k, c->stop, c->stops);
}

/* The token with the greatest logit, of equals the lowest; -1: all are banned. */
static int32_t find_greatest(const float *x, size_t count) {
  size_t at = 0;
  for (size_t i = 1; i < count; i++)
    if (x[i] > x[at]) at = i;
  return x[at] > -INFINITY ? (int32_t)at : -1;
}

/* --- a heap of tokens, the most likely first, of equals the lower --- */

static bool is_before(const float *x, uint32_t a, uint32_t b) {
  return x[a] > x[b] || (x[a] == x[b] && a < b);
}

static void sink(uint32_t *heap, size_t count, size_t at, const float *x) {
  for (size_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && is_before(x, heap[child + 1], heap[child])) child++;
    if (!is_before(x, heap[child], heap[at])) return;
    const uint32_t token = heap[at];
    heap[at] = heap[child], heap[child] = token;
  }
}

static void make_heap(struct choosing *k) {
  for (size_t i = 0; i < k->tokens; i++) k->heap[i] = (uint32_t)i;
  for (size_t i = k->tokens / 2; i > 0; i--) sink(k->heap, k->tokens, i - 1, k->logit);
}

/* Moves the first one after the others, of which there is one less then. */
static uint32_t pop(struct choosing *k, size_t *count) {
  const uint32_t token = k->heap[0];
  k->heap[0] = k->heap[--*count];
  k->heap[*count] = token;
  sink(k->heap, *count, 0, k->logit);
  return token;
}

/* --- sampling --- */

/* Replaces logits by weights: the greatest one is 1. Returns their sum. */
static double weigh(struct choosing *k, float greatest) {
  const float cold = (float)fmin(1 / k->c->temperature, FLT_MAX);
  double sum = 0;
  for (size_t i = 0; i < k->tokens; i++) k->logit[i] = (k->logit[i] - greatest) * cold;
  k->kernel->exp(k->tokens, k->logit, k->logit);
  for (size_t i = 0; i < k->tokens; i++) sum += k->logit[i];
  return sum;
}

/* Sets weights below `least` to 0; returns the sum of the others. */
static double keep_from(struct choosing *k, double least) {
  double sum = 0;
  for (size_t i = 0; i < k->tokens; i++) {
    if (k->logit[i] < least) k->logit[i] = 0;
    sum += k->logit[i];
  }
  return sum;
}

/* Keeps the `top_k` most likely tokens, and those that are as likely as the last of them; returns
 * the sum of their weights. */
static double keep_top_k(struct choosing *k) {
  size_t count = k->tokens;
  float least = 0;
  make_heap(k);
  for (size_t i = 0; i < k->c->top_k; i++) least = k->logit[pop(k, &count)];
  return keep_from(k, least);
}

/* Keeps the most likely tokens that reach `top_p` of the sum, which lie at the heap's end; returns
 * the sum of their weights. */
static double keep_top_p(struct choosing *k, double sum) {
  const double wanted = k->c->top_p * sum;
  size_t count = k->tokens;
  double reached = 0;
  make_heap(k);
  do reached += k->logit[pop(k, &count)];
  while (reached < wanted && count > 0);
  for (size_t i = 0; i < count; i++) k->logit[k->heap[i]] = 0;
  sum = 0;
  for (size_t i = 0; i < k->tokens; i++) sum += k->logit[i];
  return sum;
}

static int32_t sample(struct choosing *k) {
  const struct stack_choice *c = k->c;
  const int32_t first = find_greatest(k->logit, k->tokens);
  if (first < 0) return -1;
  double sum = weigh(k, k->logit[first]);
  if (c->top_k > 0 && c->top_k < k->tokens) sum = keep_top_k(k);
  if (c->top_p < 1) sum = keep_top_p(k, sum);
  if (c->min_p > 0) sum = keep_from(k, c->min_p); /* the greatest weighs 1 */
  /* A number in [0, 1) that depends on the seed, the sequence and the step alone. */
  const struct stack_past *past = k->past;
  const uint32_t key[2] = {(uint32_t)c->seed, (uint32_t)(c->seed >> 32)};
  const uint32_t counter[4] = {past->item, past->sample, (uint32_t)past->chosen, OF_CHOICE};
  const double share = philox(key, counter).word[0] * 0x1p-32 * sum;
  /* The first token at which the sum of the weights exceeds the share; rounding may leave the last
   * one that weighs anything. */
  double reached = 0;
  int32_t last = -1;
  for (size_t i = 0; i < k->tokens; i++) {
    if (k->logit[i] == 0) continue;
    last = (int32_t)i;
    reached += k->logit[i];
    if (reached > share) break;
  }
  return last;
}

/* The forced token, whatever its logit; -1: none is forced. */
static int32_t forced_token(const struct stack_choice *c, const struct stack_past *past) {
  if (c->forced_end >= 0 && past->chosen + 1 == past->most) return (int32_t)c->forced_end;
  return past->count == 1 && past->chosen == 0 ? (int32_t)c->forced_begin : -1;
}

static struct choosing choosing_of(const struct stack_choice *c, const struct stack_past *past,
                                   size_t tokens, void *scratch) {
  return (struct choosing){.c = c,
                           .past = past,
                           .tokens = tokens,
                           .logit = scratch,
                           .heap = (uint32_t *)((char *)scratch + copy_bytes(tokens))};
}

int32_t stack_choose(const struct kernel *kernel, const struct stack_choice *c,
                     const struct stack_past *past, const float *logit, size_t tokens,
                     void *scratch) {
  struct choosing k = choosing_of(c, past, tokens, scratch);
  k.kernel = kernel;
  const int32_t forced = forced_token(c, past);
  if (forced >= 0) return forced;
  if (c->temperature == 0 && !changes_logits(c, past)) return find_greatest(logit, tokens);
  memcpy(k.logit, logit, tokens * sizeof *logit);
  change_logits(&k);
  return c->temperature == 0 ? find_greatest(k.logit, tokens) : sample(&k);
}

/* --- candidates of a beam search --- */

/* Lists the greatest of x, less `less`, which makes log probabilities of them, or 0. Rounding keeps
 * the order: most are skipped after a comparison with the last one listed. */
static size_t list_greatest(const float *x, double less, size_t count, size_t most, int32_t *token,
                            float *log) {
  size_t listed = 0;
  float least = -INFINITY; /* x of the last one, once there are `most` */
  for (size_t i = 0; i < count; i++) {
    if (!(x[i] > least)) continue;
    const float value = (float)(x[i] - less);
    if (!(value > (listed == most ? log[most - 1] : -INFINITY))) continue;
    size_t at = listed < most ? listed++ : most - 1;
    for (; at > 0 && value > log[at - 1]; at--) log[at] = log[at - 1], token[at] = token[at - 1];
    log[at] = value, token[at] = (int32_t)i;
    if (listed == most) least = x[token[most - 1]];
  }
  return listed;
}

/* The same of many: the first ones of a heap. */
static size_t heap_greatest(struct choosing *k, size_t most, int32_t *token, float *log) {
  size_t listed = 0, count = k->tokens;
  make_heap(k);
  while (listed < most && count > 0) {
    const uint32_t first = pop(k, &count);
    if (k->logit[first] == -INFINITY) break;
    token[listed] = (int32_t)first;
    log[listed++] = k->logit[first];
  }
  return listed;
}

enum { LISTED_MOST = 256 }; /* of more, a heap takes less time than a sorted list */

size_t stack_choose_some(const struct stack_choice *c, const struct stack_past *past,
                         const float *logit, double log_sum, size_t tokens, size_t most,
                         int32_t *token, float *log, void *scratch) {
  struct choosing k = choosing_of(c, past, tokens, scratch);
  const int32_t forced = forced_token(c, past);
  if (forced >= 0) {
    token[0] = forced, log[0] = 0;
    return 1;
  }
  const bool changes = changes_logits(c, past), many = most > LISTED_MOST;
  if (!changes && !many) return list_greatest(logit, log_sum, tokens, most, token, log);
  for (size_t i = 0; i < tokens; i++) k.logit[i] = (float)(logit[i] - log_sum);
  if (changes) change_logits(&k);
  return many ? heap_greatest(&k, most, token, log)
              : list_greatest(k.logit, 0, tokens, most, token, log);
}

/* --- the end --- */

bool stack_choice_lists(const int32_t *list, size_t count, int32_t token) {
  for (size_t i = 0; i < count; i++)
    if (list[i] == token) return true;
  return false;
}

enum stack_finish stack_choice_finish(const struct stack_choice *c, int32_t token, size_t chosen,
                                      size_t most) {
  if (stack_choice_lists(c->end, c->ends, token)) return STACK_FINISH_END;
  if (stack_choice_lists(c->stop, c->stops, token)) return STACK_FINISH_STOP;
  return chosen == most ? STACK_FINISH_LENGTH : STACK_FINISH_NOT;
}
