/* gemm: y = x W^T + b with a matrix W that is prepared once. The only caller of BLAS. */
#include "core/kernel/gemm.h"

#include <cblas.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/huge.h"
#include "core/base/size.h"
#include "core/base/team.h"
#include "core/kernel/narrow.h"
#include "core/kernel/quantized.h"

enum {
  PACK_INPUTS = 64, /* inputs packed at a time */
  WIDE_STEPS = 32   /* steps of an incomplete 16-bit panel that are widened at a time */
};

const char *const compute_names[] = {"float32", "int8", "int8-block", NULL};

struct gemm {
  size_t out, in, stripe; /* of one group */
  size_t panel;           /* packed: columns of a panel; a stripe consists of panels */
  size_t groups;
  const struct kernel *kernel; /* NULL: the engine is OpenBLAS */
  float *bias;                 /* per group [out rounded up to stripes], zeros without one */
  /* Per group. packed: panels [in, width], one after the other; the last one is only as many
   * vectors wide as it needs. OpenBLAS: W^T [in, stripe]. */
  void *weight;
  enum kernel_form form;         /* of the weights; KERNEL_FLOAT32 with OpenBLAS */
  struct quantized *quantized;   /* instead of these weights; or NULL */
  size_t bias_step, weight_step; /* from one group to the next, in numbers */
  size_t size;                   /* of all weights, in bytes */
};

/* OpenBLAS calls this before main for the value of OPENBLAS_NUM_THREADS; this definition overrides
 * its own. One thread: the caller's. Otherwise it would start a thread for each further processor,
 * which nobody uses, since the pool computes. Worse, each thread takes 128 MB of addresses and
 * retries forever if there are too few (ulimit -v), with all of a core, and the end of the process
 * waits for it. Weak, since a statically linked OpenBLAS defines it, too. */
int openblas_num_threads_env(void) __attribute__((weak));
int openblas_num_threads_env(void) { return 1; }

/* Sets one thread in an OpenBLAS that does not call the function above. */
void gemm_blas_init(void) { openblas_set_num_threads(1); }

/* Returns whether these are kernels that OpenBLAS uses for an unknown processor: several times
 * slower. */
static bool is_old_core(const char *core) {
  static const char *const old[] = {"Prescott",  "Core2",  "Penryn",      "Dunnington",
                                    "Nehalem",   "Atom",   "Katmai",      "Coppermine",
                                    "Northwood", "Banias", "Opteron_SSE3"};
  for (size_t i = 0; i < sizeof old / sizeof *old; i++)
    if (!strcasecmp(core, old[i])) return true;
  return false;
}

static const char *better_core(const char *core) {
  if (cpu_level() == CPU_PORTABLE || !is_old_core(core)) return NULL;
  return cpu_level() == CPU_AVX512 ? "SKYLAKEX" : "HASWELL";
}

struct gemm_blas gemm_blas(void) {
  const char *core = openblas_get_corename();
  return (struct gemm_blas){.core = core,
                            .better = better_core(core),
                            .config = openblas_get_config(),
                            .threadsafe = openblas_get_parallel() != 0};
}

/* Columns, with padding, of the stored panel at column `first` of a group. */
static size_t columns_of_panel(const struct gemm *g, size_t first) {
  if (!g->kernel) return g->stripe;
  return size_round_up(size_min(g->panel, g->out - first), g->kernel->lanes);
}

/* How many columns one thread packs at a time, all of one panel. */
static size_t pack_columns(const struct gemm *g) {
  return g->kernel ? g->panel : size_min(g->panel, KERNEL_PANEL_MAX);
}

/* How many pieces are packed in all groups. */
static size_t pack_pieces(const struct gemm *g) {
  return g->groups * ((g->out + pack_columns(g) - 1) / pack_columns(g));
}

struct gemm_packing {
  struct gemm *g;
  const float *weight;
};

/* Some inputs of columns first .. end - 1. Columns past the last one of the matrix are zeros. */
struct gemm_block {
  const float *from; /* [out, in] of the group, from the first input on */
  size_t first, end, inputs, width;
};

static void pack_floats(const struct gemm *g, const struct gemm_block *b, float *to) {
  for (size_t j = b->first; j < b->end; j++)
    for (size_t i = 0; i < b->inputs; i++)
      to[i * b->width + j - b->first] = j < g->out ? b->from[j * g->in + i] : 0;
}

/* The index of a column in the rows of the packed panel at column `first`. An incomplete last panel
 * has its columns in order. */
static size_t place_of(const struct gemm *g, size_t first, size_t column) {
  return first + g->panel <= g->out ? kernel_place(g->kernel, g->form, column) : column;
}

static void pack_narrow(const struct gemm *g, const struct gemm_block *b, uint16_t *to) {
  for (size_t j = b->first; j < b->end; j++) {
    const size_t place = place_of(g, b->first, j - b->first);
    for (size_t i = 0; i < b->inputs; i++)
      to[i * b->width + place] = j < g->out ? narrow_number(g->form, b->from[j * g->in + i]) : 0;
  }
}

/* The address of a number of the weights. */
static void *weight_at(const struct gemm *g, size_t numbers) {
  return (char *)g->weight + numbers * narrow_size(g->form);
}

/* Packs one piece, a block of inputs at a time, whose place in the panel stays in the first cache.
 */
static enum status pack_piece(void *of, size_t index, struct error *e) {
  const struct gemm_packing *p = of;
  const struct gemm *g = p->g;
  const size_t step = pack_columns(g), pieces = pack_pieces(g) / g->groups, group = index / pieces;
  const size_t first = index % pieces * step, panel = first / g->panel * g->panel;
  const size_t width = columns_of_panel(g, panel), end = size_min(panel + width, first + step);
  const size_t at = group * g->weight_step + panel * g->in + first - panel;
  for (size_t k = 0; k < g->in; k += PACK_INPUTS) {
    const struct gemm_block b = {.from = p->weight + group * g->out * g->in + k,
                                 .first = first,
                                 .end = end,
                                 .inputs = size_min(PACK_INPUTS, g->in - k),
                                 .width = width};
    void *to = weight_at(g, at + k * width);
    g->form == KERNEL_FLOAT32 ? pack_floats(g, &b, to) : pack_narrow(g, &b, to);
  }
  return e->status;
}

/* Allocates the memory of all groups; false: not enough. */
static bool allocate_groups(struct gemm *g) {
  size_t count;
  g->bias_step = (g->out + g->stripe - 1) / g->stripe * g->stripe;
  g->bias = calloc(g->groups * g->bias_step, sizeof(float));
  if (g->quantized) return g->bias;
  if (!size_mul(g->bias_step, g->in, &g->weight_step) ||
      !size_mul(g->weight_step, g->groups, &count) || count > SIZE_MAX / 8)
    return false;
  g->size = count * narrow_size(g->form);
  g->weight = huge_alloc(size_max(g->size, 1));
  return g->bias && g->weight;
}

struct gemm *gemm_new(size_t out, size_t in, size_t groups, const float *weight, const float *bias,
                      enum gemm_engine engine, struct error *e) {
  struct gemm *g = calloc(1, sizeof *g);
  if (!g) goto no_memory;
  const bool packed = engine == GEMM_AUTO ? cpu_level() != CPU_PORTABLE : engine != GEMM_OPENBLAS;
  g->out = out / groups, g->in = in / groups, g->groups = groups;
  g->kernel = packed ? gemm_kernel(engine) : NULL;
  g->stripe = packed ? KERNEL_PANEL_MAX : size_round_up(g->out, 16);
  g->panel = packed ? kernel_panel(g->kernel) : g->stripe;
  if (engine == GEMM_NARROW) g->form = narrow_form(weight, out * (in / groups));
  if (gemm_is_quantized(engine) && !(g->quantized = calloc(1, sizeof *g->quantized)))
    goto no_memory;
  if (!allocate_groups(g)) goto no_memory;
  if (!g->quantized) {
    team_split(pack_pieces(g), pack_piece, &(struct gemm_packing){g, weight}, e);
  } else if (quantized_make(g->quantized, byte_kernel_best(), out, in, groups,
                            engine == GEMM_INT8_BLOCK, weight, e)) {
    g->size = g->quantized->bytes;
  } else {
    gemm_free(g);
    return NULL;
  }
  for (size_t i = 0; i < groups && bias; i++)
    memcpy(g->bias + i * g->bias_step, bias + i * g->out, g->out * sizeof(float));
  return g;
no_memory:
  gemm_free(g);
  error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a weight of %zu times %zu", out, in);
  return NULL;
}

void gemm_free(struct gemm *g) {
  if (!g) return;
  if (g->quantized) quantized_free(g->quantized);
  free(g->quantized);
  free(g->bias);
  free(g->weight);
  free(g);
}

size_t gemm_bytes(const struct gemm *g) { return g->size; }
size_t gemm_quantized_bytes(size_t out, size_t in, enum compute compute) {
  return quantized_bytes(out, in, compute == COMPUTE_INT8_BLOCK);
}
enum kernel_form gemm_form(const struct gemm *g) { return g->form; }
bool gemm_quantizes(const struct gemm *g) { return g->quantized != NULL; }
size_t gemm_stripe(const struct gemm *g) { return g->stripe; }
bool gemm_rows_independent(const struct gemm *g) { return g->kernel != NULL; }
const char *gemm_engine_name(const struct gemm *g) { return g->kernel ? "packed" : "openblas"; }

const struct kernel *gemm_kernel_of(const struct gemm *g) {
  return g->kernel ? g->kernel : kernel_best(KERNEL_FASTEST);
}

size_t gemm_columns(const struct gemm *g, size_t first) {
  return size_min(g->stripe, g->out - first % g->out);
}

void gemm_weights_of(const struct gemm *g, size_t out, float *weights) {
  must(g->kernel && g->groups == 1);
  if (g->quantized) {
    quantized_weights_of(g->quantized, out, weights);
    return;
  }
  const size_t panel = out / g->panel * g->panel, width = columns_of_panel(g, panel);
  const void *from = weight_at(g, panel * g->in + place_of(g, panel, out - panel));
  const float *whole = from;
  const uint16_t *narrow = from;
  for (size_t k = 0; k < g->in; k++)
    weights[k] =
        g->form == KERNEL_FLOAT32 ? whole[k * width] : narrow_widen(g->form, narrow[k * width]);
}

void gemm_start(const struct gemm *g, size_t first, size_t rows, bool bias, float *y) {
  const float *from = g->bias + first / g->out * g->bias_step + first % g->out;
  for (size_t i = 0; i < rows; i++)
    if (bias)
      memcpy(y + i * g->stripe, from, g->stripe * sizeof(float));
    else
      memset(y + i * g->stripe, 0, g->stripe * sizeof(float));
}

/* y = start + x W^T over `depth` inputs of one group's stripe. */
struct gemm_part {
  size_t group, first; /* column within the group */
  size_t rows;
  const float *x;
  size_t x_stride;
  size_t from, depth; /* inputs within the group */
  const float *start;
  size_t start_row;
  float *y;
};

/* Multiplies with 16-bit weights, some steps of the depth at a time. */
static void run_widened(const struct gemm *g, const struct kernel_product *p) {
  _Alignas(64) float wide[WIDE_STEPS * KERNEL_PANEL_MAX];
  struct kernel_product q = *p;
  q.form = KERNEL_FLOAT32, q.b = wide;
  size_t k = 0;
  do {
    q.depth = size_min(WIDE_STEPS, p->depth - k);
    q.a = p->a + k * p->a_step;
    g->kernel->widen(g->form, q.depth * p->b_row, (const uint16_t *)p->b + k * p->b_row, wide);
    g->kernel->product(&q);
    q.start = q.c, q.start_row = q.c_row;
    k += q.depth;
  } while (k < p->depth);
}

/* Computes the complete panels of the stripe, then an incomplete last one. */
static void run_packed(const struct gemm *g, const struct gemm_part *p) {
  const size_t columns = size_min(g->stripe, g->out - p->first);
  const size_t whole = columns / g->panel * g->panel;
  const size_t weight = p->group * g->weight_step + p->first * g->in;
  struct kernel_weights w = {.panels = whole / g->panel,
                             .panel_step = g->panel * g->in,
                             .more = p->first + whole < g->out,
                             .plan = kernel_plan(g->kernel, p->rows, g->size),
                             .first = {.rows = p->rows,
                                       .depth = p->depth,
                                       .vectors = g->kernel->vectors,
                                       .a = p->x,
                                       .a_row = p->x_stride,
                                       .a_step = 1,
                                       .b = weight_at(g, weight + p->from * g->panel),
                                       .form = g->form,
                                       .b_row = g->panel,
                                       .start = p->start,
                                       .start_row = p->start_row,
                                       .c = p->y,
                                       .c_row = g->stripe}};
  g->kernel->weights(&w);
  if (whole == columns) return;
  struct kernel_product *narrow = &w.first;
  const size_t width = columns_of_panel(g, p->first + whole);
  narrow->vectors = width / g->kernel->lanes;
  narrow->b = weight_at(g, weight + whole * g->in + p->from * width);
  narrow->b_row = width;
  narrow->start += whole;
  narrow->c += whole;
  g->form == KERNEL_FLOAT32 ? g->kernel->product(narrow) : run_widened(g, narrow);
}

/* Adds the product to y. */
static void add_openblas(const struct gemm *g, const struct gemm_part *p) {
  const float *weight = weight_at(g, p->group * g->weight_step + p->from * g->stripe);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)p->rows, (blasint)g->out,
              (blasint)p->depth, 1.0f, p->x, (blasint)p->x_stride, weight, (blasint)g->stripe, 1.0f,
              p->y, (blasint)g->stripe);
}

size_t gemm_input_floats(const struct gemm *g, size_t rows) {
  return g->quantized ? quantized_floats(g->quantized, rows) : 0;
}

size_t gemm_scratch_floats(const struct gemm *g, size_t rows) {
  return rows * g->stripe + gemm_input_floats(g, rows);
}

struct gemm_input gemm_input(const struct gemm *g, size_t rows, const float *x, size_t x_stride,
                             float *memory) {
  if (g->quantized) quantized_rows(g->quantized, rows, x, x_stride, memory);
  return (struct gemm_input){.rows = rows, .x = x, .x_stride = x_stride, .quantized = memory};
}

void gemm_run(const struct gemm *g, size_t first, const struct gemm_input *x, float *y) {
  static const float no_bias[KERNEL_PANEL_MAX];
  struct gemm_part p = {.group = first / g->out,
                        .first = first % g->out,
                        .rows = x->rows,
                        .x_stride = x->x_stride,
                        .depth = g->in,
                        .y = y};
  p.x = x->x + p.group * g->in;
  p.start = x->no_bias ? no_bias : g->bias + p.group * g->bias_step + p.first;
  if (g->quantized) {
    quantized_run(g->quantized, p.group, p.first, size_min(g->stripe, g->out - p.first), p.rows,
                  x->quantized, p.start, y, g->stripe);
  } else if (g->kernel) {
    run_packed(g, &p);
  } else {
    gemm_start(g, first, p.rows, !x->no_bias, y);
    add_openblas(g, &p);
  }
}

void gemm_add(const struct gemm *g, size_t first, size_t rows, const float *x, size_t x_stride,
              size_t from, size_t depth, float *y) {
  must(g->groups == 1 && !g->quantized);
  const struct gemm_part p = {.first = first,
                              .rows = rows,
                              .x = x + from,
                              .x_stride = x_stride,
                              .from = from,
                              .depth = depth,
                              .start = y,
                              .start_row = g->stripe,
                              .y = y};
  if (g->kernel)
    run_packed(g, &p);
  else
    add_openblas(g, &p);
}
