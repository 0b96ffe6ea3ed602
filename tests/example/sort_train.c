/* sort_train: trains the model that the program brings along, and writes it as a folder.
 *
 *     sort_train FOLDER
 *
 * It writes FOLDER/model.safetensors and FOLDER/config.json, and says how well the model sorts. The
 * bytes are the same on every machine and with any number of threads: the sequences of a step are
 * cut into parts, always the same, and the gradients of these are added in one order. */
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/example/sort_model.h"

enum {
  STEPS = 20000,
  PARTS = 16, /* of the sequences of a step, a batch each */
  WARM = 100, /* steps in which the rate rises */
  THREADS_MAX = PARTS
};

struct training {
  float model[SORT_SIZE];
  float mean[SORT_SIZE], square[SORT_SIZE]; /* of the gradients so far: Adam's */
  struct sort_work *part;                   /* [PARTS] */
  size_t threads;
  pthread_barrier_t barrier;
};

/* --- chance --- */

static uint64_t draw(uint64_t *state) { /* splitmix64 */
  uint64_t x = *state += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

static size_t draw_below(uint64_t *state, size_t n) {
  return (size_t)((draw(state) >> 32) * n >> 32);
}

static void draw_numbers(uint64_t *state, float most, float *x, size_t n) {
  for (size_t i = 0; i < n; i++) x[i] = most * ((float)(draw(state) >> 40) * 0x1p-23f - 1);
}

/* --- what is to be learnt --- */

/* Writes where each token of an item comes, the first of equals first. */
static void sort_item(struct sort_batch *b, size_t first, size_t n) {
  const int *token = b->token + first;
  for (size_t i = 0; i < n; i++) {
    size_t rank = first;
    for (size_t j = 0; j < n; j++) rank += token[j] < token[i] || (token[j] == token[i] && j < i);
    b->sorted[rank] = token[i];
    b->place[rank] = (int)i;
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
  const size_t way = draw_below(state, WAYS);
  size_t kinds = SORT_VOCABULARY;
  if (way == FEW || way == NEAR) kinds = 1 + draw_below(state, n);
  if (way == DISTINCT) kinds = n + draw_below(state, SORT_VOCABULARY - n + 1);
  const size_t first = draw_below(state, SORT_VOCABULARY - kinds + 1);
  int kind[SORT_VOCABULARY];
  for (size_t i = 0; i < kinds; i++)
    kind[i] = (int)(way == FEW ? draw_below(state, SORT_VOCABULARY) : first + i);
  for (size_t i = 0; i < n; i++) {
    const size_t gone = way == DISTINCT ? i : 0, taken = gone + draw_below(state, kinds - gone);
    token[i] = kind[taken];
    if (way == DISTINCT) kind[taken] = kind[i];
  }
  const size_t order = draw_below(state, 8);
  if (order < 2) qsort(token, n, sizeof *token, order ? compare : compare_back);
}

static void draw_batch(struct sort_batch *b, uint64_t seed, size_t longest) {
  b->items = SORT_ITEMS;
  b->rows = 0;
  for (size_t item = 0; item < SORT_ITEMS; item++) {
    const size_t n = 1 + draw_below(&seed, longest);
    draw_item(&seed, b->token + b->rows, n);
    sort_item(b, b->rows, n);
    b->at[item] = b->rows;
    b->rows += n;
    b->at[item + 1] = b->rows;
  }
}

/* --- learning --- */

static void draw_linear(uint64_t *state, float gain, float *matrix, size_t in, size_t out) {
  draw_numbers(state, gain / sqrtf((float)in), matrix, in * out);
}

static void fill(float *norm) {
  for (size_t c = 0; c < SORT_WIDTH; c++) norm[c] = 1;
}

static void draw_model(float *model) {
  uint64_t state = 1;
  draw_numbers(&state, 1, model, SORT_LAYER);
  for (size_t l = 0; l < SORT_LAYERS; l++) {
    float *layer = model + SORT_LAYER + l * SORT_LAYER_SIZE;
    draw_linear(&state, sqrtf(3), layer + SORT_IN, SORT_WIDTH, 3 * SORT_WIDTH);
    draw_linear(&state, 1, layer + SORT_OUT, SORT_WIDTH, SORT_WIDTH);
    draw_linear(&state, sqrtf(3), layer + SORT_UP, SORT_WIDTH, SORT_FORWARD);
    draw_linear(&state, 1, layer + SORT_DOWN, SORT_FORWARD, SORT_WIDTH);
    fill(layer + SORT_NORM_SELF);
    fill(layer + SORT_NORM_FORWARD);
  }
}

/* What one thread has to do with the others, and how far it is. */
struct thread {
  struct training *training;
  size_t number, step;
  float mean_left, square_left; /* what the means still have of their zero beginning */
};

/* The rate rises and then falls along a line. */
static float rate_at(size_t step) {
  const float rise = step < WARM ? (float)(step + 1) / WARM : 1;
  return 4e-3f * rise * (1 - (float)step / STEPS);
}

/* Adam, for this thread's share of the parameters. */
static void learn(const struct thread *t) {
  struct training *all = t->training;
  const float rate = rate_at(t->step);
  size_t rows = 0;
  for (size_t p = 0; p < PARTS; p++) rows += all->part[p].batch.rows;
  const size_t end = (t->number + 1) * SORT_SIZE / all->threads;
  for (size_t i = t->number * SORT_SIZE / all->threads; i < end; i++) {
    float slope = 0;
    for (size_t p = 0; p < PARTS; p++) slope += all->part[p].gradient[i];
    slope /= (float)rows;
    all->mean[i] = 0.9f * all->mean[i] + 0.1f * slope;
    all->square[i] = 0.98f * all->square[i] + 0.02f * (slope * slope);
    const float spread = sqrtf(all->square[i] / (1 - t->square_left)) + 1e-8f;
    all->model[i] -= rate * (all->mean[i] / (1 - t->mean_left)) / spread;
  }
}

static void *train(void *argument) {
  struct thread *t = argument;
  struct training *all = t->training;
  for (t->step = 0; t->step < STEPS; t->step++) {
    for (size_t p = t->number; p < PARTS; p += all->threads) {
      draw_batch(&all->part[p].batch, (uint64_t)t->step << 16 | p, SORT_LONGEST);
      sort_forward(all->model, &all->part[p]);
      sort_backward(all->model, &all->part[p]);
    }
    pthread_barrier_wait(&all->barrier);
    t->mean_left *= 0.9f;
    t->square_left *= 0.98f;
    learn(t);
    pthread_barrier_wait(&all->barrier);
    if (t->number == 0 && t->step % (STEPS / 10) == 0)
      fprintf(stderr, "%zu of %d steps\n", t->step, STEPS);
  }
  return NULL;
}

static void train_all(struct training *all) {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  pthread_t id[THREADS_MAX];
  struct thread thread[THREADS_MAX];
  all->threads = cores < 1 ? 1 : cores > THREADS_MAX ? THREADS_MAX : (size_t)cores;
  pthread_barrier_init(&all->barrier, NULL, (unsigned)all->threads);
  for (size_t i = 0; i < all->threads; i++) {
    thread[i] = (struct thread){all, i, 0, 1, 1};
    if (pthread_create(&id[i], NULL, train, &thread[i])) abort();
  }
  for (size_t i = 0; i < all->threads; i++) pthread_join(id[i], NULL);
  pthread_barrier_destroy(&all->barrier);
}

/* --- how well it does it --- */

struct verdict {
  size_t items, rows;
  size_t items_right, rows_right; /* whose outputs name the right token */
  size_t pointing; /* rows of which head 0 of the last layer gives the right place most of its
                      weight */
};

static bool judge_row(const struct sort_work *w, size_t item, size_t r, struct verdict *v) {
  const struct sort_batch *b = &w->batch;
  const float *output = w->rows + r * SORT_WIDTH;
  const float *weight = w->kept[SORT_LAYERS - 1].weight +
                        (item * SORT_HEADS * SORT_LONGEST + r - b->at[item]) * SORT_LONGEST;
  int best = 0;
  for (int c = 1; c < SORT_WIDTH; c++) best = output[c] > output[best] ? c : best;
  v->rows++;
  v->rows_right += best == b->sorted[r];
  v->pointing += weight[b->place[r]] > 0.5f;
  return best == b->sorted[r];
}

static struct verdict judge(const float *model, struct sort_work *w, size_t items, size_t longest) {
  struct verdict v = {0};
  for (uint64_t seed = 0; v.items < items; seed++) {
    draw_batch(&w->batch, 1ull << 60 | (uint64_t)longest << 32 | seed, longest);
    sort_forward(model, w);
    for (size_t item = 0; item < SORT_ITEMS; item++) {
      bool right = true;
      for (size_t r = w->batch.at[item]; r < w->batch.at[item + 1]; r++)
        right &= judge_row(w, item, r, &v);
      v.items++;
      v.items_right += right;
    }
  }
  printf("%zu sequences of up to %zu tokens: %zu right; of %zu rows %zu right, %zu pointing\n",
         v.items, longest, v.items_right, v.rows, v.rows_right, v.pointing);
  return v;
}

/* --- the files --- */

/* Rounds to bfloat16, ties to even. */
static uint16_t bfloat16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void round_model(float *model) {
  for (size_t i = 0; i < SORT_SIZE; i++) {
    const uint32_t bits = (uint32_t)bfloat16(model[i]) << 16;
    memcpy(&model[i], &bits, sizeof bits);
  }
}

/* A tensor of the file: [rows, columns], or [rows] if there are no columns. */
struct tensor {
  const char *name; /* in a layer, behind its number */
  size_t at, rows, columns;
  bool turned; /* it lies as [columns, rows] */
};

static const struct tensor embedding[] = {
    {"embedding.weight", SORT_TOKEN, SORT_VOCABULARY, SORT_WIDTH, false},
    {"positions.weight", SORT_POSITION, SORT_LONGEST, SORT_WIDTH, false},
    {NULL, 0, 0, 0, false},
};
static const struct tensor in_layer[] = {
    {"self_attn.in_proj_weight", SORT_IN, 3 * SORT_WIDTH, SORT_WIDTH, true},
    {"self_attn.in_proj_bias", SORT_IN_BIAS, 3 * SORT_WIDTH, 0, false},
    {"self_attn.out_proj.weight", SORT_OUT, SORT_WIDTH, SORT_WIDTH, true},
    {"self_attn.out_proj.bias", SORT_OUT_BIAS, SORT_WIDTH, 0, false},
    {"linear1.weight", SORT_UP, SORT_FORWARD, SORT_WIDTH, true},
    {"linear1.bias", SORT_UP_BIAS, SORT_FORWARD, 0, false},
    {"linear2.weight", SORT_DOWN, SORT_WIDTH, SORT_FORWARD, true},
    {"linear2.bias", SORT_DOWN_BIAS, SORT_WIDTH, 0, false},
    {"norm1.weight", SORT_NORM_SELF, SORT_WIDTH, 0, false},
    {"norm1.bias", SORT_NORM_SELF + SORT_WIDTH, SORT_WIDTH, 0, false},
    {"norm2.weight", SORT_NORM_FORWARD, SORT_WIDTH, 0, false},
    {"norm2.bias", SORT_NORM_FORWARD + SORT_WIDTH, SORT_WIDTH, 0, false},
    {NULL, 0, 0, 0, false},
};

/* The header and the data of a safetensors file, as far as they are. */
struct pieces {
  char header[8192];
  size_t header_size;
  unsigned char data[2 * SORT_SIZE];
  size_t data_size;
};

static void write_header(struct pieces *f, const char *format, const char *text, size_t a,
                         size_t b) {
  f->header_size += (size_t)snprintf(f->header + f->header_size, sizeof f->header - f->header_size,
                                     format, text, a, b);
}

static void write_tensors(struct pieces *f, const float *model, const char *prefix,
                          const struct tensor *t) {
  for (; t->name; t++) {
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

static bool write_model(const char *folder, const float *model) {
  static struct pieces f;
  static unsigned char whole[8 + sizeof f.header + sizeof f.data];
  write_tensors(&f, model, "", embedding);
  for (size_t l = 0; l < SORT_LAYERS; l++) {
    char prefix[32];
    snprintf(prefix, sizeof prefix, "encoder.layers.%zu.", l);
    write_tensors(&f, model + SORT_LAYER + l * SORT_LAYER_SIZE, prefix, in_layer);
  }
  write_header(&f, "%s", "}", 0, 0);
  while (f.header_size % 8) write_header(&f, "%s", " ", 0, 0);
  for (size_t i = 0; i < 8; i++) whole[i] = (unsigned char)(f.header_size >> 8 * i);
  memcpy(whole + 8, f.header, f.header_size);
  memcpy(whole + 8 + f.header_size, f.data, f.data_size);
  return write_file(folder, "model.safetensors", whole, 8 + f.header_size + f.data_size);
}

static bool write_config(const char *folder) {
  char text[512];
  const int size = snprintf(text, sizeof text,
                            "{\n  \"model_type\": \"transformer\",\n  \"kind\": \"encoder\",\n"
                            "  \"heads\": %d,\n  \"norm\": \"post\",\n  \"norm_eps\": 1e-05,\n"
                            "  \"activation\": \"relu\",\n  \"positions\": \"learned\",\n"
                            "  \"scale_embedding\": false\n}\n",
                            SORT_HEADS);
  return write_file(folder, "config.json", text, (size_t)size);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  struct training *all = calloc(1, sizeof *all);
  if (all) all->part = calloc(PARTS, sizeof *all->part);
  if (!all || !all->part) abort();
  draw_model(all->model);
  train_all(all);
  round_model(all->model);
  const struct verdict any = judge(all->model, all->part, 10000, SORT_LONGEST);
  const struct verdict few = judge(all->model, all->part, 1000, SORT_LONGEST / 2);
  bool done = write_model(argv[1], all->model) && write_config(argv[1]);
  if (any.rows_right < any.rows * 0.999 || few.items_right < few.items) {
    fprintf(stderr, "it does not sort well enough\n");
    done = false;
  }
  free(all->part);
  free(all);
  return done ? 0 : 1;
}
