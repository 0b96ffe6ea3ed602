/* words_measure: weights on what is right, and divergences. */
#include "tests/example/words_measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The right places of a row; returns how many. */
static size_t places_of(const struct words_sentence *s, enum words_question question, size_t row,
                        bool at[WORDS_ROOM]) {
  if (question == MEANT) return words_places(s, row, at);
  size_t count = 0;
  memset(at, 0, WORDS_ROOM * sizeof *at);
  for (size_t j = 0; j < row; j++)
    count += at[j] = question == WORD_BEFORE ? j + 1 == row : s->word[j] == s->word[row];
  if (count) return count;
  at[row] = true;
  return 1;
}

void words_want(const struct words_sentence *s, enum words_question question, size_t row,
                float smooth, float *want) {
  bool at[WORDS_ROOM];
  const float each = (1 - smooth) / (float)places_of(s, question, row, at);
  for (size_t j = 0; j < s->n; j++) want[j] = smooth / (float)s->n + (at[j] ? each : 0);
}

static double weight_on(const struct words_sentence *s, enum words_question question, size_t row,
                        const struct words_view *view) {
  bool at[WORDS_ROOM];
  double all = 0;
  places_of(s, question, row, at);
  for (size_t j = 0; j < s->n; j++)
    if (at[j]) all += (double)view->weight[WORDS_LAYERS - 1][question][row][j];
  return all;
}

static bool names(const struct words_sentence *s, size_t row, const struct words_view *view) {
  size_t best = 0;
  for (size_t c = 1; c < WORDS_CLASSES; c++)
    if (view->output[row][c] > view->output[row][best]) best = c;
  return best == s->noun[row];
}

struct words_score words_score(enum words_test test, size_t most, words_run *run, void *context) {
  static struct words_view view;
  struct words_score score = {0};
  size_t all;
  struct words_pair *pair = words_pairs(test, &all);
  const size_t every = all > most ? (all + most - 1) / most : 1;
  for (size_t p = 0; p < all; p += every) {
    bool right = true, sure = true, named = true;
    for (size_t k = 0; k < 2; k++) {
      const struct words_sentence *s = &pair[p].sentence[k];
      const size_t it = words_pronoun(s);
      run(context, s, &view);
      const float *weight = view.weight[WORDS_LAYERS - 1][MEANT][it];
      const double on = weight_on(s, MEANT, it, &view);
      size_t top = 0;
      for (size_t j = 1; j < s->n; j++)
        if (weight[j] > weight[top]) top = j;
      right &= s->word[top] == s->noun[it];
      sure &= on >= 0.7;
      named &= names(s, it, &view);
      score.mean += on;
      for (size_t h = 0; h < WORDS_HEADS; h++)
        score.adjective[h] += (double)view.weight[0][h][it][s->n - 1];
    }
    score.pairs++;
    score.right += right;
    score.sure += sure;
    score.names += named;
  }
  free(pair);
  const double pairs = (double)score.pairs;
  score.right /= pairs;
  score.sure /= pairs;
  score.names /= pairs;
  score.mean /= 2 * pairs;
  for (size_t h = 0; h < WORDS_HEADS; h++) score.adjective[h] /= 2 * pairs;
  return score;
}

static double entropy(double p) { return p > 0 ? -p * log2(p) : 0; }

/* Jensen-Shannon: the entropy of the middle of two rows less the middle of their entropies. */
static double divergence(const float *a, const float *b, size_t n) {
  double all = 0;
  for (size_t j = 0; j < n; j++) {
    const double p = (double)a[j], q = (double)b[j];
    all += entropy((p + q) / 2) - (entropy(p) + entropy(q)) / 2;
  }
  return all;
}

struct words_habits words_habits(size_t sentences, words_run *run, void *context) {
  static struct words_view view;
  struct words_habits v = {0};
  uint64_t state = UINT64_C(1) << 61;
  double rows = 0, asked[3] = {0};
  for (size_t i = 0; i < sentences; i++) {
    const struct words_sentence s = words_draw(&state);
    run(context, &s, &view);
    for (size_t r = 0; r < s.n; r++) {
      rows++;
      v.names += names(&s, r, &view);
      for (int q = MEANT; q <= SAME_WORD; q++) {
        bool at[WORDS_ROOM];
        places_of(&s, (enum words_question)q, r, at);
        if (q != MEANT && at[r]) continue; /* there is nothing to look for */
        const double on = weight_on(&s, (enum words_question)q, r, &view);
        asked[q]++;
        v.mean[q] += on;
        v.most[q] += on >= 0.8;
      }
      for (size_t l = 0; l < WORDS_LAYERS; l++)
        for (size_t p = 0; p < 3; p++)
          v.apart[l][p] +=
              divergence(view.weight[l][p / 2][r], view.weight[l][1 + (p + 1) / 2][r], s.n);
    }
  }
  v.names /= rows;
  for (size_t q = 0; q < 3; q++) {
    v.mean[q] /= asked[q];
    v.most[q] /= asked[q];
  }
  for (size_t i = 0; i < 3 * WORDS_LAYERS; i++) v.apart[i / 3][i % 3] /= rows;
  return v;
}
