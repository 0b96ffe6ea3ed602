/* sort_train: trains `sort`, a model that the program brings along, and writes it as a folder.
 *
 *     sort_train FOLDER
 *
 * Row i of its outputs says which token comes i-th, by its greatest number; head 0 of the last
 * layer looks at the place of that token, the first one of equals first. In the end the program
 * reports how well the model sorts. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/example/tiny_train.h"

enum { VOCABULARY = 32, LONGEST = 16, LAYERS = 3, ITEMS = 8 };

/* --- what is to be learnt --- */

/* Writes the item's tokens in order, and where each of them is, the first of equals first. */
static void sort_item(struct tiny_work *w, size_t first, size_t n) {
  const int *token = w->batch.token + first;
  for (size_t i = 0; i < n; i++) {
    size_t rank = first;
    for (size_t j = 0; j < n; j++) rank += token[j] < token[i] || (token[j] == token[i] && j < i);
    w->batch.right[rank] = token[i];
    tiny_want(w, 0, rank)[i] = 1;
  }
}

static int compare(const void *left, const void *right) {
  return *(const int *)left - *(const int *)right;
}

static int compare_back(const void *left, const void *right) { return compare(right, left); }

/* Writes n tokens: any; a few, so that equals are frequent; neighbours; or neighbours of which no
 * two are equal. Some lie in order already, or the other way round. */
static void draw_item(uint64_t *state, int *token, size_t n) {
  enum { ANY, FEW, NEAR, DISTINCT, WAYS };
  const size_t way = tiny_draw_below(state, WAYS);
  size_t kinds = VOCABULARY;
  if (way == FEW || way == NEAR) kinds = 1 + tiny_draw_below(state, n);
  if (way == DISTINCT) kinds = n + tiny_draw_below(state, VOCABULARY - n + 1);
  const size_t first = tiny_draw_below(state, VOCABULARY - kinds + 1);
  int kind[VOCABULARY];
  for (size_t i = 0; i < kinds; i++)
    kind[i] = (int)(way == FEW ? tiny_draw_below(state, VOCABULARY) : first + i);
  for (size_t i = 0; i < n; i++) {
    const size_t gone = way == DISTINCT ? i : 0,
                 taken = gone + tiny_draw_below(state, kinds - gone);
    token[i] = kind[taken];
    if (way == DISTINCT) kind[taken] = kind[i];
  }
  const size_t order = tiny_draw_below(state, 8);
  if (order < 2) qsort(token, n, sizeof *token, order ? compare : compare_back);
}

static void draw_items(struct tiny_work *w, uint64_t seed, size_t longest) {
  for (size_t item = 0; item < ITEMS; item++) {
    const size_t n = 1 + tiny_draw_below(&seed, longest), first = tiny_append(w, n);
    draw_item(&seed, w->batch.token + first, n);
    sort_item(w, first, n);
  }
}

static void draw_long(struct tiny_work *w, uint64_t seed) { draw_items(w, seed, LONGEST); }

static void draw_short(struct tiny_work *w, uint64_t seed) { draw_items(w, seed, LONGEST / 2); }

/* --- how well it does it --- */

struct verdict {
  size_t items, rows;
  size_t items_right, rows_right; /* whose outputs name the right token */
  size_t pointing; /* rows of which head 0 of the last layer gives the right place most of its
                      weight */
};

static bool judge_row(const struct tiny_work *w, size_t item, size_t r, struct verdict *v) {
  const float *output = tiny_scores(w, r), *want = tiny_want(w, 0, r);
  const float *weight = tiny_weights(w, LAYERS - 1, 0, item, r - w->batch.at[item]);
  int best = 0;
  size_t place = 0;
  for (int c = 1; c < VOCABULARY; c++) best = output[c] > output[best] ? c : best;
  while (want[place] == 0) place++;
  v->rows++;
  v->rows_right += best == w->batch.right[r];
  v->pointing += weight[place] > 0.5f;
  return best == w->batch.right[r];
}

static struct verdict judge(const struct tiny_lesson *lesson, const float *model, size_t items,
                            size_t longest) {
  struct verdict v = {0};
  struct tiny_work *w = tiny_work_new(&lesson->form);
  for (uint64_t seed = 0; v.items < items; seed++) {
    tiny_try(lesson, model, w, 1ull << 60 | (uint64_t)longest << 32 | seed);
    for (size_t item = 0; item < ITEMS; item++) {
      bool right = true;
      for (size_t r = w->batch.at[item]; r < w->batch.at[item + 1]; r++)
        right &= judge_row(w, item, r, &v);
      v.items++;
      v.items_right += right;
    }
  }
  printf("%zu sequences of up to %zu tokens: %zu right; of %zu rows %zu right, %zu pointing\n",
         v.items, longest, v.items_right, v.rows, v.rows_right, v.pointing);
  tiny_work_free(w);
  return v;
}

int main(int argc, char **argv) {
  const struct tiny_lesson any = {.form = {.vocabulary = VOCABULARY,
                                           .width = 32,
                                           .heads = 4,
                                           .layers = LAYERS,
                                           .forward = 128,
                                           .longest = LONGEST,
                                           .items = ITEMS,
                                           .classes = VOCABULARY,
                                           .taught = 1},
                                  .steps = 20000,
                                  .parts = 16,
                                  .embedding = 1,
                                  .draw = draw_long};
  struct tiny_lesson few = any;
  few.draw = draw_short;
  if (argc != 2) {
    fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  float *model = tiny_train(&any);
  const struct verdict v = judge(&any, model, 10000, LONGEST);
  const struct verdict w = judge(&few, model, 1000, LONGEST / 2);
  bool done = tiny_write(&any, model, argv[1], "");
  if (v.rows_right * 1000 < v.rows * 999 || w.items_right < w.items) {
    fprintf(stderr, "it does not sort well enough\n");
    done = false;
  }
  free(model);
  return done ? 0 : 1;
}
