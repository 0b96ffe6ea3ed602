/* words_train: trains `words`, a model that the program brings along, and writes it as a folder.
 *
 *     words_train FOLDER
 *
 * An encoder whose rows name the noun that their word speaks of. Each head of its last layer is
 * taught a question, the first layer nothing. In the end the program reports how well it does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/example/tiny_train.h"
#include "tests/example/words_measure.h"

#define SMOOTH 0.1f /* of the weights that heads shall have, on all words */

static int kind_or_none(int word) {
  const enum words_kind kind = words_kind_of(word);
  return kind == NO_NOUN ? -1 : (int)kind;
}

static void append(struct tiny_work *w, const struct words_sentence *s) {
  const size_t first = tiny_append(w, s->n);
  for (size_t i = 0; i < s->n; i++) {
    const size_t r = first + i;
    w->batch.token[r] = s->word[i];
    w->batch.right[r] = s->noun[i];
    w->batch.offers[r] = kind_or_none(s->word[i]);
    w->batch.asks[r] = kind_or_none(s->noun[i]);
    for (int q = MEANT; q <= SAME_WORD; q++)
      words_want(s, (enum words_question)q, i, SMOOTH, tiny_want(w, (size_t)q, r));
  }
}

static void draw_sentences(struct tiny_work *w, uint64_t seed) {
  for (size_t item = 0; item < w->form.items; item++) {
    const struct words_sentence s = words_draw(&seed);
    append(w, &s);
  }
}

static const struct tiny_lesson lesson = {.form = {.vocabulary = WORDS_COUNT,
                                                   .width = 48,
                                                   .heads = WORDS_HEADS,
                                                   .layers = WORDS_LAYERS,
                                                   .forward = 96,
                                                   .longest = WORDS_LONGEST,
                                                   .items = 6,
                                                   .classes = WORDS_CLASSES,
                                                   .taught = 3,
                                                   .named = WORDS_NAMED,
                                                   .key_size = 2,
                                                   .query_size = 8,
                                                   .naming = 0.1f},
                                          .steps = 3000,
                                          .parts = 8,
                                          .embedding = 1,
                                          .draw = draw_sentences};

/* --- how well it does it --- */

struct trained {
  float *model;
  struct tiny_work *work;
};

static void run(void *context, const struct words_sentence *s, struct words_view *out) {
  struct trained *t = context;
  t->work->batch.items = t->work->batch.rows = 0;
  append(t->work, s);
  tiny_forward(t->model, t->work);
  for (size_t r = 0; r < s->n; r++) {
    memcpy(out->output[r], tiny_scores(t->work, r), sizeof out->output[r]);
    for (size_t i = 0; i < WORDS_LAYERS * WORDS_HEADS; i++)
      memcpy(out->weight[i / WORDS_HEADS][i % WORDS_HEADS][r],
             tiny_weights(t->work, i / WORDS_HEADS, i % WORDS_HEADS, 0, r),
             sizeof out->weight[0][0][r]);
  }
}

static void report_habits(struct trained *t) {
  static const char *const question[] = {"who is meant", "the word before",
                                         "the same word earlier"};
  const struct words_habits v = words_habits(1500, run, t);
  printf("\n%.2f %% of all rows name their noun\n", 100 * v.names);
  for (size_t q = 0; q < 3; q++)
    printf("head 1.%zu, %s: %.3f of the weight, at least 0.8 in %.1f %% of rows\n", q, question[q],
           v.mean[q], 100 * v.most[q]);
  for (size_t l = 0; l < WORDS_LAYERS; l++)
    printf("layer %zu: heads apart by %.2f, %.2f, %.2f bits\n", l, v.apart[l][0], v.apart[l][1],
           v.apart[l][2]);
}

/* How often the pronoun's row names the right noun without each head: its columns in the output
 * matrix are 0. */
static void report_without_heads(struct trained *t) {
  const struct tiny_places p = tiny_places(&lesson.form);
  const size_t d = lesson.form.width, head = d / WORDS_HEADS * d;
  float *all = t->model, *less = malloc(p.size * sizeof *less);
  if (!less) abort();
  for (size_t i = 0; i < WORDS_LAYERS * WORDS_HEADS; i++) {
    const size_t l = i / WORDS_HEADS, h = i % WORDS_HEADS;
    memcpy(less, all, p.size * sizeof *less);
    memset(less + p.layer + l * p.layer_size + p.out + h * head, 0, head * sizeof *less);
    t->model = less;
    double share = 0;
    for (int test = 0; test < WORDS_TESTS; test++)
      share += words_score((enum words_test)test, 100, run, t).names / WORDS_TESTS;
    printf("without head %zu.%zu: %.1f %% of pairs named\n", l, h, 100 * share);
  }
  t->model = all;
  free(less);
}

/* The named numbers of one sentence. */
static void report_numbers(struct trained *t, const char *adjective) {
  struct words_sentence s = {0};
  struct words_view view;
  char text[] = "the animal did not cross the street because it was too";
  for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
    s.word[s.n++] = (unsigned char)words_id(word);
  s.word[s.n++] = (unsigned char)words_id(adjective);
  run(t, &s, &view);
  const float *in = t->work->kept[WORDS_LAYERS - 1].in;
  const size_t d = lesson.form.width, row[] = {8, 1, 6};
  const char *const name[] = {"query of it", "key of animal", "key of street"};
  printf("\n... because it was too %s: animal %.3f, street %.3f\n", adjective,
         (double)view.weight[1][0][8][1], (double)view.weight[1][0][8][6]);
  for (size_t k = 0; k < 3; k++) {
    printf("%s:", name[k]);
    for (size_t i = 0; i < WORDS_NAMED; i++)
      printf(" %.1f", (double)in[row[k] * 3 * d + (k ? d : 0) + i]);
    printf("\n");
  }
}

static bool report(struct trained *t) {
  bool good = true;
  printf("| test | pairs | both right | both at least 0.7 | mean | names both | adjective of heads "
         "0.* |\n");
  for (int test = 0; test < WORDS_TESTS; test++) {
    const struct words_score s = words_score((enum words_test)test, 1000, run, t);
    printf("| %s | %zu | %.1f %% | %.1f %% | %.3f | %.1f %% | %.3f %.3f %.3f |\n",
           words_test_name[test], s.pairs, 100 * s.right, 100 * s.sure, s.mean, 100 * s.names,
           s.adjective[0], s.adjective[1], s.adjective[2]);
    good &= s.right >= 0.99 && s.mean >= 0.7;
  }
  report_habits(t);
  report_without_heads(t);
  report_numbers(t, "tired");
  report_numbers(t, "wide");
  return good;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  struct trained t = {tiny_train(&lesson), tiny_work_new(&lesson.form)};
  bool done = tiny_write(&lesson, t.model, argv[1], "") &&
              tiny_write_words(argv[1], words_text, WORDS_COUNT);
  if (!report(&t)) {
    fprintf(stderr, "it does not understand well enough\n");
    done = false;
  }
  tiny_work_free(t.work);
  free(t.model);
  return done ? 0 : 1;
}
