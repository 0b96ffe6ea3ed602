/* tiny_train: Adam by several threads, and the files. */
#include "tests/example/tiny_train.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  PARTS_MOST = 16,
  WARM = 100 /* steps in which the rate rises */
};

struct training {
  const struct tiny_lesson *lesson;
  size_t size;
  float *model, *mean, *square; /* [size] the means are of the gradients so far: Adam's */
  struct tiny_work *part[PARTS_MOST];
  size_t threads;
  pthread_barrier_t barrier;
};

/* --- chance --- */

uint64_t tiny_draw(uint64_t *state) { /* splitmix64 */
  uint64_t x = *state += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

size_t tiny_draw_below(uint64_t *state, size_t n) {
  return (size_t)((tiny_draw(state) >> 32) * n >> 32);
}

static void draw_numbers(uint64_t *state, float most, float *x, size_t n) {
  for (size_t i = 0; i < n; i++) x[i] = most * ((float)(tiny_draw(state) >> 40) * 0x1p-23f - 1);
}

/* --- the model before training --- */

static void draw_linear(uint64_t *state, float gain, float *matrix, size_t in, size_t out) {
  draw_numbers(state, gain / sqrtf((float)in), matrix, in * out);
}

static void draw_model(const struct tiny_lesson *lesson, float *model) {
  const struct tiny_form *f = &lesson->form;
  const struct tiny_places p = tiny_places(f);
  const size_t d = f->width;
  uint64_t state = 1;
  draw_numbers(&state, lesson->embedding, model + p.token, p.position - p.token);
  draw_numbers(&state, 1, model + p.position, p.layer - p.position);
  for (size_t l = 0; l < f->layers; l++) {
    float *layer = model + p.layer + l * p.layer_size;
    draw_linear(&state, sqrtf(3), layer + p.in, d, 3 * d);
    draw_linear(&state, 1, layer + p.out, d, d);
    draw_linear(&state, sqrtf(3), layer + p.up, d, f->forward);
    draw_linear(&state, 1, layer + p.down, f->forward, d);
    for (size_t c = 0; c < d; c++) layer[p.norm_self + c] = layer[p.norm_forward + c] = 1;
  }
}

/* --- learning --- */

/* A thread of the training: its number among them, and the step that it is at. */
struct thread {
  struct training *training;
  size_t number, step;
  float mean_left, square_left; /* what the means still have of their zero beginning */
};

/* The rate rises and then falls along a line. */
static float rate_at(const struct tiny_lesson *lesson, size_t step) {
  const float rise = step < WARM ? (float)(step + 1) / WARM : 1;
  return 4e-3f * rise * (1 - (float)step / (float)lesson->steps);
}

/* Adam, for this thread's share of the parameters. */
static void learn(const struct thread *t) {
  struct training *all = t->training;
  const size_t parts = all->lesson->parts, end = (t->number + 1) * all->size / all->threads;
  const float rate = rate_at(all->lesson, t->step);
  size_t rows = 0;
  for (size_t p = 0; p < parts; p++) rows += all->part[p]->batch.rows;
  for (size_t i = t->number * all->size / all->threads; i < end; i++) {
    float slope = 0;
    for (size_t p = 0; p < parts; p++) slope += all->part[p]->gradient[i];
    slope /= (float)rows;
    all->mean[i] = 0.9f * all->mean[i] + 0.1f * slope;
    all->square[i] = 0.98f * all->square[i] + 0.02f * (slope * slope);
    const float spread = sqrtf(all->square[i] / (1 - t->square_left)) + 1e-8f;
    all->model[i] -= rate * (all->mean[i] / (1 - t->mean_left)) / spread;
  }
}

void tiny_try(const struct tiny_lesson *lesson, const float *model, struct tiny_work *w,
              uint64_t seed) {
  w->batch.items = w->batch.rows = 0;
  lesson->draw(w, seed);
  tiny_forward(model, w);
}

static void *train(void *argument) {
  struct thread *t = argument;
  struct training *all = t->training;
  const size_t steps = all->lesson->steps;
  for (t->step = 0; t->step < steps; t->step++) {
    for (size_t p = t->number; p < all->lesson->parts; p += all->threads) {
      tiny_try(all->lesson, all->model, all->part[p], (uint64_t)t->step << 16 | p);
      tiny_backward(all->model, all->part[p]);
    }
    pthread_barrier_wait(&all->barrier);
    t->mean_left *= 0.9f;
    t->square_left *= 0.98f;
    learn(t);
    pthread_barrier_wait(&all->barrier);
    if (t->number == 0 && t->step % (steps / 10) == 0)
      fprintf(stderr, "%zu of %zu steps\n", t->step, steps);
  }
  return NULL;
}

static void train_all(struct training *all) {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  pthread_t id[PARTS_MOST];
  struct thread thread[PARTS_MOST];
  const size_t parts = all->lesson->parts;
  all->threads = cores < 1 ? 1 : (size_t)cores > parts ? parts : (size_t)cores;
  pthread_barrier_init(&all->barrier, NULL, (unsigned)all->threads);
  for (size_t i = 0; i < all->threads; i++) {
    thread[i] = (struct thread){all, i, 0, 1, 1};
    if (pthread_create(&id[i], NULL, train, &thread[i])) abort();
  }
  for (size_t i = 0; i < all->threads; i++) pthread_join(id[i], NULL);
  pthread_barrier_destroy(&all->barrier);
}

/* Rounds to bfloat16, ties to even. */
static uint16_t bfloat16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float *allocate(size_t n) {
  float *x = calloc(n, sizeof *x);
  if (!x) abort();
  return x;
}

float *tiny_train(const struct tiny_lesson *lesson) {
  const size_t size = tiny_places(&lesson->form).size;
  struct training all = {.lesson = lesson,
                         .size = size,
                         .model = allocate(size),
                         .mean = allocate(size),
                         .square = allocate(size)};
  for (size_t p = 0; p < lesson->parts; p++) all.part[p] = tiny_work_new(&lesson->form);
  draw_model(lesson, all.model);
  train_all(&all);
  for (size_t i = 0; i < size; i++) {
    const uint32_t bits = (uint32_t)bfloat16(all.model[i]) << 16;
    memcpy(&all.model[i], &bits, sizeof bits);
  }
  for (size_t p = 0; p < lesson->parts; p++) tiny_work_free(all.part[p]);
  free(all.mean);
  free(all.square);
  return all.model;
}

/* --- the files --- */

/* The header and the data of a safetensors file, as far as they are. */
struct pieces {
  char header[8192];
  size_t header_size;
  unsigned char *data;
  size_t data_size;
};

static void write_header(struct pieces *f, const char *format, const char *text, size_t a,
                         size_t b) {
  f->header_size += (size_t)snprintf(f->header + f->header_size, sizeof f->header - f->header_size,
                                     format, text, a, b);
}

/* A tensor of the file: [rows, columns], or [rows] if there are no columns. */
struct tensor {
  const char *name; /* in a layer, after its number */
  size_t at, rows, columns;
  bool turned; /* it lies as [columns, rows] */
};

static void write_tensors(struct pieces *f, const float *model, const char *prefix,
                          const struct tensor *t, size_t count) {
  for (const struct tensor *end = t + count; t < end; t++) {
    const size_t columns = t->columns ? t->columns : 1, begin = f->data_size;
    for (size_t i = 0; i < t->rows * columns; i++) {
      const size_t at = t->turned ? i % columns * t->rows + i / columns : i;
      const uint16_t bits = bfloat16(model[t->at + at]);
      f->data[f->data_size++] = (unsigned char)bits;
      f->data[f->data_size++] = (unsigned char)(bits >> 8);
    }
    write_header(f, f->header_size ? ",\"%s" : "{\"%s", prefix, 0, 0);
    write_header(f,
                 t->columns ? "%s\":{\"dtype\":\"BF16\",\"shape\":[%zu,%zu],"
                            : "%s\":{\"dtype\":\"BF16\",\"shape\":[%zu],",
                 t->name, t->rows, t->columns);
    write_header(f, "%s[%zu,%zu]}", "\"data_offsets\":", begin, f->data_size);
  }
}

static bool write_file(const char *folder, const char *name, const void *bytes, size_t size) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  bool done = file && fwrite(bytes, 1, size, file) == size;
  if (file && fclose(file)) done = false;
  if (!done) perror(path);
  return done;
}

static bool write_model(const struct tiny_form *form, const float *model, const char *folder) {
  const struct tiny_places p = tiny_places(form);
  const size_t d = form->width, up = form->forward;
  const struct tensor embedding[] = {
      {"embedding.weight", p.token, form->vocabulary, d, false},
      {"positions.weight", p.position, form->longest, d, false},
  };
  const struct tensor layer[] = {
      {"self_attn.in_proj_weight", p.in, 3 * d, d, true},
      {"self_attn.in_proj_bias", p.in_bias, 3 * d, 0, false},
      {"self_attn.out_proj.weight", p.out, d, d, true},
      {"self_attn.out_proj.bias", p.out_bias, d, 0, false},
      {"linear1.weight", p.up, up, d, true},
      {"linear1.bias", p.up_bias, up, 0, false},
      {"linear2.weight", p.down, d, up, true},
      {"linear2.bias", p.down_bias, d, 0, false},
      {"norm1.weight", p.norm_self, d, 0, false},
      {"norm1.bias", p.norm_self + d, d, 0, false},
      {"norm2.weight", p.norm_forward, d, 0, false},
      {"norm2.bias", p.norm_forward + d, d, 0, false},
  };
  static struct pieces f;
  f.data = calloc(2, p.size);
  unsigned char *whole = calloc(1, 8 + sizeof f.header + 2 * p.size);
  if (!f.data || !whole) abort();
  write_tensors(&f, model, "", embedding, sizeof embedding / sizeof *embedding);
  for (size_t l = 0; l < form->layers; l++) {
    char prefix[48];
    snprintf(prefix, sizeof prefix, "%slayers.%zu.", form->causal ? "" : "encoder.", l);
    write_tensors(&f, model + p.layer + l * p.layer_size, prefix, layer,
                  sizeof layer / sizeof *layer);
  }
  write_header(&f, "%s", "}", 0, 0);
  while (f.header_size % 8) write_header(&f, "%s", " ", 0, 0);
  for (size_t i = 0; i < 8; i++) whole[i] = (unsigned char)(f.header_size >> 8 * i);
  memcpy(whole + 8, f.header, f.header_size);
  memcpy(whole + 8 + f.header_size, f.data, f.data_size);
  const bool done = write_file(folder, "model.safetensors", whole, 8 + f.header_size + f.data_size);
  free(f.data);
  free(whole);
  return done;
}

bool tiny_write(const struct tiny_lesson *lesson, const float *model, const char *folder,
                const char *more) {
  const struct tiny_form *form = &lesson->form;
  char text[1024];
  const int size = snprintf(text, sizeof text,
                            "{\n  \"model_type\": \"transformer\",\n  \"kind\": \"%s\",\n"
                            "  \"heads\": %zu,\n  \"norm\": \"post\",\n  \"norm_eps\": 1e-05,\n"
                            "  \"activation\": \"relu\",\n  \"positions\": \"learned\",\n"
                            "  \"scale_embedding\": false%s\n}\n",
                            form->causal ? "decoder" : "encoder", form->heads, more);
  return write_model(form, model, folder) && write_file(folder, "config.json", text, (size_t)size);
}

bool tiny_write_words(const char *folder, const char *const *word, size_t count) {
  char text[4096];
  size_t size = 0;
  for (size_t i = 0; i < count; i++)
    size += (size_t)snprintf(text + size, sizeof text - size, "%s\n", word[i]);
  return write_file(folder, "words.txt", text, size);
}
