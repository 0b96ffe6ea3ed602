/* story_train: trains `story`, a model that the program brings along, and writes it as a folder.
 *
 *     story_train FOLDER
 *
 * A decoder that continues sentences of the grammar of `words`. A sentence ends with ".", and may
 * begin with it. In the end the program reports how well it does. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/example/tiny_train.h"
#include "tests/example/words_grammar.h"

/* Each row's right class is the next token. Every other sentence begins with ".", so that prompts
 * may begin with it or with a word. */
static void draw_sentences(struct tiny_work *w, uint64_t seed) {
  const int dot = words_id(".");
  for (size_t item = 0; item < w->form.items; item++) {
    const struct words_sentence s = words_draw(&seed);
    int token[WORDS_LONGEST + 2] = {dot};
    size_t n = item % 2;
    for (size_t i = 0; i < s.n; i++) token[n++] = s.word[i];
    if (token[n - 1] != dot) token[n++] = dot;
    const size_t first = tiny_append(w, n - 1);
    memcpy(w->batch.token + first, token, (n - 1) * sizeof *token);
    memcpy(w->batch.right + first, token + 1, (n - 1) * sizeof *token);
  }
}

static const struct tiny_lesson lesson = {.form = {.vocabulary = WORDS_COUNT,
                                                   .width = 48,
                                                   .heads = 3,
                                                   .layers = 2,
                                                   .forward = 96,
                                                   .longest = WORDS_LONGEST + 1,
                                                   .items = 6,
                                                   .causal = true,
                                                   .tied = true},
                                          .steps = 6000,
                                          .parts = 8,
                                          .embedding = 0.3f,
                                          .draw = draw_sentences};

/* --- how well it does it --- */

/* The probability of a word that follows a row. */
static double probability(const struct tiny_work *w, size_t row, int word) {
  const float *score = tiny_scores(w, row);
  double all = 0;
  for (size_t c = 0; c < WORDS_COUNT; c++) all += exp((double)(score[c] - score[word]));
  return 1 / all;
}

/* The mean of -log(probability) of the words of other sentences than those of training. */
static double loss(const float *model, struct tiny_work *w) {
  double all = 0;
  size_t rows = 0;
  for (uint64_t seed = 0; rows < 20000; seed++) {
    tiny_try(&lesson, model, w, UINT64_C(1) << 60 | seed << 16);
    for (size_t r = 0; r < w->batch.rows; r++) all -= log(probability(w, r, w->batch.right[r]));
    rows += w->batch.rows;
  }
  return all / (double)rows;
}

/* After ". the ANIMAL did not leave the PLACE because it was too", of pairs that training leaves
 * out: the probability of adjectives that fit the animal or the place. */
static double fit(const float *model, struct tiny_work *w) {
  enum { WORDS = 12, AT_ANIMAL = 2, AT_PLACE = 7 };
  static const char *const text[WORDS] = {".",   "the", NULL,      "did", "not", "leave",
                                          "the", NULL,  "because", "it",  "was", "too"};
  double all = 0;
  size_t pairs = 0;
  for (int pair = 0; pair < WORDS_COUNT * WORDS_COUNT; pair++) {
    const int animal = pair / WORDS_COUNT, place = pair % WORDS_COUNT;
    if (words_kind_of(animal) != ANIMAL || words_kind_of(place) != PLACE ||
        !words_pair_is_held_out(animal, place))
      continue;
    w->batch.items = w->batch.rows = 0;
    tiny_append(w, WORDS);
    for (size_t i = 0; i < WORDS; i++)
      w->batch.token[i] = i == AT_ANIMAL ? animal : i == AT_PLACE ? place : words_id(text[i]);
    tiny_forward(model, w);
    for (int word = 0; word < WORDS_COUNT; word++)
      if (words_fits(animal, word) || words_fits(place, word))
        all += probability(w, WORDS - 1, word);
    pairs++;
  }
  return all / (double)pairs;
}

/* The most probable words after a beginning. */
static void show(const float *model, struct tiny_work *w, const char *beginning) {
  const int dot = words_id(".");
  int token[WORDS_LONGEST + 1] = {dot};
  size_t n = 1;
  char text[100];
  snprintf(text, sizeof text, "%s", beginning);
  for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) token[n++] = words_id(word);
  printf("%s ->", beginning);
  do {
    w->batch.items = w->batch.rows = 0;
    tiny_append(w, n);
    memcpy(w->batch.token, token, n * sizeof *token);
    tiny_forward(model, w);
    const float *score = tiny_scores(w, n - 1);
    int best = 0;
    for (int c = 1; c < WORDS_COUNT; c++) best = score[c] > score[best] ? c : best;
    token[n++] = best;
    printf(" %s", words_text[best]);
  } while (n <= WORDS_LONGEST && token[n - 1] != dot);
  printf("\n");
}

int main(int argc, char **argv) {
  char more[100];
  const int dot = words_id(".");
  if (argc != 2) {
    fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  snprintf(more, sizeof more, ",\n  \"tie_output\": true,\n  \"begin\": %d,\n  \"end\": %d", dot,
           dot);
  float *model = tiny_train(&lesson);
  struct tiny_work *w = tiny_work_new(&lesson.form);
  bool done = tiny_write(&lesson, model, argv[1], more) &&
              tiny_write_words(argv[1], words_text, WORDS_COUNT);
  const double share = fit(model, w);
  printf("loss of a word %.3f; %.1f %% of the probability is on adjectives that fit\n",
         loss(model, w), 100 * share);
  show(model, w, "the animal did not cross the street because");
  show(model, w, "the dog did not catch the cat because it was too");
  show(model, w, "the book");
  show(model, w, "because she was too tired");
  if (share < 0.8) {
    fprintf(stderr, "it does not continue well enough\n");
    done = false;
  }
  tiny_work_free(w);
  free(model);
  return done ? 0 : 1;
}
