/* tiny_train: teaches a tiny model and writes it as a folder that attend serves.
 *
 * The bytes are the same on every machine and with any number of threads: the sequences of a step
 * are cut into parts, always the same, and the gradients of these are added in one order. */
#ifndef TESTS_TINY_TRAIN_H
#define TESTS_TINY_TRAIN_H

#include "tests/example/tiny_model.h"

struct tiny_lesson {
  struct tiny_form form;
  size_t steps;
  size_t parts;    /* of the sequences of a step, a batch each; at most 16 */
  float embedding; /* token embeddings begin between this and its negative */
  /* Appends form.items items to a batch without any. The seeds of training are below 2^60. */
  void (*draw)(struct tiny_work *w, uint64_t seed);
};

/* Chance: a number, one below n, one of two. */
uint64_t tiny_draw(uint64_t *state);
size_t tiny_draw_below(uint64_t *state, size_t n);

/* The model that training gives, in numbers of bfloat16; the caller frees it. */
float *tiny_train(const struct tiny_lesson *lesson);

/* Draws a batch of an untaught seed and computes it. */
void tiny_try(const struct tiny_lesson *lesson, const float *model, struct tiny_work *w,
              uint64_t seed);

/* Writes model.safetensors and config.json into the folder; `more` is what config.json has besides,
 * such as ",\n  \"begin\": 1", or "". False with the reason on standard error. */
bool tiny_write(const struct tiny_lesson *lesson, const float *model, const char *folder,
                const char *more);

/* Writes words.txt, the tokenizer of a model of words. */
bool tiny_write_words(const char *folder, const char *const *word, size_t count);

#endif
