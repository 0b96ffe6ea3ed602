/* fuzz: what the targets share. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/document/json_reserve.h"
#include "config/document/text.h"
#include "core/attention/trace.h"
#include "core/kernel/gemm.h"

/* Small, so that an input cannot ask for much work; the budget is what bounds its memory. */
const struct body_limits fuzz_limits = {.max_items = 16,
                                        .max_pairs = 4096,
                                        .max_answer_bytes = 1 << 20,
                                        .max_tokens = 12,
                                        .max_sequences = 10,
                                        .max_body_bytes = 4096};
enum { BUDGET = 32 << 20 };

static const struct model *models[FUZZ_MODELS];

static void make_models(void) {
  static const char *const definitions[FUZZ_MODELS] = {
      "{\"random\":{\"seed\":1},\"query_size\":4,\"heads\":2}",
      "{\"projection\":\"none\",\"query_size\":2,\"heads\":1}",
      "{\"random\":{\"seed\":2},\"score\":\"additive\",\"query_size\":2,\"key_size\":3,"
      "\"value_size\":1,\"heads\":2,\"hidden\":4,\"output_size\":3}",
      "{\"random\":{\"seed\":3},\"query_size\":8,\"heads\":4,\"kv_heads\":2,"
      "\"rope\":{\"base\":10000},\"causal\":true}",
      "{\"random\":{\"seed\":4},\"weighting\":\"sigmoid\",\"query_size\":2,\"heads\":2}",
      "{\"random\":{\"seed\":5},\"score\":\"bilinear\",\"query_size\":2,\"heads\":1}",
  };
  for (size_t i = 0; i < FUZZ_MODELS; i++) {
    struct error e = {0};
    json_t *definition = json_loads(definitions[i], 0, NULL);
    models[i] = model_load("m", definition, ".", GEMM_AUTO, COMPUTE_FLOAT32, &e);
    if (!models[i]) fprintf(stderr, "%s\n", e.detail);
    must(models[i]);
    json_decref(definition);
  }
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  gemm_blas_init();
  json_reserve_init();
  make_models();
  return 0;
}

const struct model *fuzz_model(unsigned index) { return models[index % FUZZ_MODELS]; }

/* --- inputs --- */

unsigned char input_byte(struct input *in) {
  if (in->size == 0) return 0;
  in->size--;
  return (unsigned char)*in->bytes++;
}

struct input input_part(struct input *in) {
  const char *end = in->size ? memchr(in->bytes, FUZZ_PART, in->size) : NULL;
  struct input part = {in->bytes, end ? (size_t)(end - in->bytes) : in->size};
  const size_t used = part.size + (end != NULL);
  in->bytes += used;
  in->size -= used;
  return part;
}

char *input_copy(struct input in) {
  char *copy = malloc(in.size ? in.size : 1);
  must(copy);
  if (in.size) memcpy(copy, in.bytes, in.size);
  return copy;
}

char *input_text(struct input in) {
  char *copy = malloc(in.size + 1);
  must(copy);
  if (in.size) memcpy(copy, in.bytes, in.size);
  copy[in.size] = '\0';
  return copy;
}

struct input input_framed(struct input header, struct input data) {
  const uint64_t length = header.size; /* little-endian is assumed */
  char *bytes = malloc(sizeof length + header.size + data.size);
  must(bytes);
  memcpy(bytes, &length, sizeof length);
  if (header.size) memcpy(bytes + sizeof length, header.bytes, header.size);
  if (data.size) memcpy(bytes + sizeof length + header.size, data.bytes, data.size);
  return (struct input){bytes, sizeof length + header.size + data.size};
}

struct input input_body(struct input in, char letter, struct body_terms *terms) {
  if (letter == 's') {
    terms->form = BODY_SAFETENSORS;
    const struct input header = input_part(&in);
    return input_framed(header, in);
  }
  char *bytes = input_copy(in);
  if (letter != 'v') return (struct input){bytes, in.size};
  terms->form = BODY_V2;
  const struct input json = input_part(&in);
  if (in.size) memcpy(bytes + json.size, in.bytes, in.size);
  if (in.size) terms->json_bytes = json.size;
  terms->body_bytes = json.size + in.size;
  return (struct input){bytes, terms->body_bytes};
}

struct fuzz_file fuzz_file_make(struct input in) {
  struct fuzz_file f = {.fd = memfd_create("fuzz", MFD_CLOEXEC)};
  must(f.fd >= 0);
  must(in.size == 0 || pwrite(f.fd, in.bytes, in.size, 0) == (ssize_t)in.size);
  snprintf(f.path, sizeof f.path, "/proc/self/fd/%d", f.fd);
  return f;
}

void fuzz_file_close(struct fuzz_file *f) { close(f->fd); }

struct cutter cutter_of(unsigned cut) {
  return (struct cutter){cut, cut + 1};
}

size_t cutter_next(struct cutter *c, size_t left) {
  size_t next = c->cut ? c->cut : left;
  if (c->cut >= 64) {
    c->state = c->state * 6364136223846793005u + 1442695040888963407u;
    next = 1 + (size_t)(c->state >> 33) % (c->cut / 4);
  }
  return next < left ? next : left;
}

/* --- bodies --- */

void fuzz_feed(struct body *b, struct input text, unsigned cut, const struct error *e) {
  struct cutter cutter = cutter_of(cut);
  while (text.size > 0) {
    const size_t size = cutter_next(&cutter, text.size);
    char *chunk = input_copy((struct input){text.bytes, size});
    const enum status status = body_feed(b, chunk, size);
    free(chunk);
    must(status == e->status);
    text.bytes += size;
    text.size -= size;
  }
}

void fuzz_body_run(struct fuzz_body *d, const struct model *m, const struct body_terms *terms,
                   struct input body, unsigned cut) {
  memset(d, 0, sizeof *d);
  budget_init(&d->budget, BUDGET);
  arena_init(&d->arena, &d->budget);
  struct attention_body *b = attention_body_new(m, terms, &fuzz_limits, &d->arena, &d->error);
  if (!b) {
    must(d->error.status);
    return;
  }
  fuzz_feed(attention_body_of(b), body, cut, &d->error);
  const enum status status = attention_body_finish(b, &d->request);
  must(status == d->error.status);
}

void fuzz_body_end(struct fuzz_body *d) {
  arena_free(&d->arena);
  must(d->budget.used == 0);
}

/* --- what must hold --- */

void error_must_agree(const struct error *a, const struct error *b) {
  must(a->status == b->status);
  must(strcmp(a->detail, b->detail) == 0);
  must(strcmp(a->pointer, b->pointer) == 0);
  must(a->has_offset == b->has_offset && a->offset == b->offset);
  must((a->limit != NULL) == (b->limit != NULL) && (!a->limit || !strcmp(a->limit, b->limit)));
}

void error_must_be_told(const struct error *e) {
  must(e->detail[0] && !strchr(e->detail, '\n'));
  must(text_is_utf8(e->detail, strlen(e->detail)));
  must(text_is_utf8(e->pointer, strlen(e->pointer)));
  must(!e->pointer[0] || e->pointer[0] == '/');
  must(e->status == STATUS_INVALID_JSON || e->status == STATUS_INVALID_REQUEST ||
       e->status == STATUS_TOO_LARGE || e->status == STATUS_NOT_FINITE ||
       e->status == STATUS_NOT_ACCEPTABLE || e->status == STATUS_OVERLOADED);
  must(e->status != STATUS_INVALID_JSON || e->has_offset);
  must(e->status != STATUS_TOO_LARGE || e->limit);
}

static void bytes_must_agree(const void *a, const void *b, size_t count, size_t size) {
  must((a != NULL) == (b != NULL));
  if (a && count) must(memcmp(a, b, count * size) == 0);
}

/* How many numbers the masks or biases of all items reach over. */
static size_t reach(const struct layer_run *c, bool per_head, size_t heads, bool bias) {
  size_t most = 0;
  for (size_t i = 0; i < c->geometry.items; i++) {
    const struct item *item = &c->geometry.item[i];
    const size_t end =
        (bias ? item->bias_at : item->mask_at) + item->q * item->k * (per_head ? heads : 1);
    if (end > most) most = end;
  }
  return most;
}

static void items_must_agree(const struct layer_run *a, const struct layer_run *b) {
  size_t segments = 0;
  must(a->geometry.items == b->geometry.items && a->geometry.q_rows == b->geometry.q_rows &&
       a->geometry.k_rows == b->geometry.k_rows);
  for (size_t i = 0; i < a->geometry.items; i++) {
    const struct item *s = &a->geometry.item[i], *t = &b->geometry.item[i];
    must(s->q == t->q && s->k == t->k && s->q_row == t->q_row && s->k_row == t->k_row);
    must(s->offset == t->offset && s->mask_at == t->mask_at && s->bias_at == t->bias_at);
    must(s->segments == t->segments && s->segments_at == t->segments_at);
    must(s->q_row + s->q <= a->geometry.q_rows && s->k_row + s->k <= a->geometry.k_rows);
    segments += s->segments;
  }
  bytes_must_agree(a->geometry.segment_end, b->geometry.segment_end,
                   a->geometry.segment_end ? segments : 0, 4);
}

void fuzz_body_must_agree(const struct fuzz_body *a, const struct fuzz_body *b,
                          const struct model *m) {
  error_must_agree(&a->error, &b->error);
  if (a->error.status) return;
  const struct layer_run *c = &a->request.asked, *d = &b->request.asked;
  const struct layer_shape *s = &m->shape;
  items_must_agree(c, d);
  bytes_must_agree(c->call.queries, d->call.queries, c->geometry.q_rows * s->query_size, 4);
  bytes_must_agree(c->call.keys, d->call.keys, c->geometry.k_rows * s->key_size, 4);
  bytes_must_agree(c->call.values, d->call.values, c->geometry.k_rows * s->value_size, 4);
  bytes_must_agree(c->geometry.lens, d->geometry.lens, c->geometry.q_rows, 4);
  bytes_must_agree(c->geometry.mask, d->geometry.mask,
                   reach(c, c->geometry.mask_per_head, s->heads, false), 1);
  bytes_must_agree(c->geometry.bias, d->geometry.bias,
                   reach(c, c->geometry.bias_per_head, s->heads, true), 4);
  bytes_must_agree(c->call.head_mask, d->call.head_mask, s->heads, 4);
  bytes_must_agree(c->call.gradients, d->call.gradients, c->geometry.q_rows * s->output_size, 4);
  must(c->geometry.mask_per_head == d->geometry.mask_per_head &&
       c->geometry.bias_per_head == d->geometry.bias_per_head);
  must(c->geometry.causal == d->geometry.causal && c->call.uniform_rows == d->call.uniform_rows &&
       c->call.select == d->call.select);
  must(c->geometry.window_left == d->geometry.window_left &&
       c->geometry.window_right == d->geometry.window_right);
  must(c->call.seed == d->call.seed && c->call.want == d->call.want &&
       c->call.want_pointers == d->call.want_pointers);
  must(c->call.want_measures == d->call.want_measures);
  must(!c->call.trace == !d->call.trace);
  if (c->call.trace)
    bytes_must_agree(c->call.trace, d->call.trace, 1, offsetof(struct trace, keys));
  const struct attention_request *x = &a->request, *y = &b->request;
  must(x->unbatched == y->unbatched && x->base64 == y->base64 && x->rectangular == y->rectangular);
  must(x->v2.outputs == y->v2.outputs && x->v2.timeout_us == y->v2.timeout_us);
  must(x->v2.id_length == y->v2.id_length);
  bytes_must_agree(x->v2.id, y->v2.id, x->v2.id_length, 1);
}
