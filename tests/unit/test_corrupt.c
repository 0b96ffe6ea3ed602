/* test_corrupt: checkpoints with bytes flipped or cut off, a thousand of each container, and of
 * families that transpose, split and share tensors. Either a model that computes is loaded from
 * them, or they are refused in one line; nothing else happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/build/model.h"
#include "tests/support/npz_make.h"
#include "tests/support/place.h"
#include "tests/support/random_call.h"
#include "tests/support/safetensors_make.h"

enum { SEEDS = 1000, FILES_MOST = 3 };

static const char *const roles[] = {"query", "key", "value", "output"};

/* A correct checkpoint: its files, of which the definition names the first. */
struct right {
  size_t files;
  const char *name[FILES_MOST];
  unsigned char *bytes[FILES_MOST];
  size_t size[FILES_MOST];
};

struct tally {
  size_t refused, computed, faults;
};

static int enter(void **state) { return place_make(state, "w.npz"); }

static void path_of(const struct place *p, const char *name, char path[160]) {
  snprintf(path, 160, "%s/%s", p->folder, name);
}

/* Becomes the owner of the bytes. */
static void add(struct right *r, const char *name, unsigned char *bytes, size_t size) {
  r->name[r->files] = name;
  r->bytes[r->files] = bytes;
  r->size[r->files++] = size;
}

static void add_made(struct right *r, const char *name, struct made *m) {
  made_finish(m);
  add(r, name, m->bytes, m->size);
  m->bytes = NULL;
  made_free(m);
}

static void add_roles(struct made *m, size_t from, size_t to) {
  for (size_t i = from; i < to; i++) {
    char name[32];
    snprintf(name, sizeof name, "%s.weight", roles[i]);
    made_add(m, name, 4, 4);
    snprintf(name, sizeof name, "%s.bias", roles[i]);
    made_add(m, name, 4, 0);
  }
}

static void done(struct right *r, const struct place *p) {
  for (size_t i = 0; i < r->files; i++) {
    char path[160];
    path_of(p, r->name[i], path);
    unlink(path);
    free(r->bytes[i]);
  }
}

/* --- damage --- */

static void write_file(const char *path, const unsigned char *bytes, size_t size) {
  FILE *out = fopen(path, "wb");
  assert_non_null(out);
  assert_int_equal(fwrite(bytes, 1, size, out), size);
  fclose(out);
}

/* Flips or sets bytes, or cuts some off; returns how many are left. Half of the places are near the
 * beginning or the end, where containers describe what they hold. */
static size_t damage(unsigned char *bytes, size_t size, uint64_t *state) {
  const size_t kind = random_below(state, 8);
  if (kind == 0) return random_below(state, size);
  for (size_t n = 1 + random_below(state, kind < 5 ? 1 : 6); n > 0; n--) {
    size_t at = random_below(state, size);
    if (random_below(state, 2)) at %= 256 < size ? 256 : size;
    if (random_below(state, 2)) at = size - 1 - at;
    if (random_below(state, 3)) {
      bytes[at] ^= (unsigned char)(1u << random_below(state, 8));
    } else {
      bytes[at] = (unsigned char)(random_below(state, 2) ? 0xff : random_below(state, 256));
    }
  }
  return size;
}

static void write_damaged(const struct right *r, const struct place *p, uint64_t seed) {
  uint64_t state = seed;
  const size_t victim = random_below(&state, r->files);
  for (size_t i = 0; i < r->files; i++) {
    char path[160];
    path_of(p, r->name[i], path);
    unsigned char *copy = malloc(r->size[i]);
    assert_non_null(copy);
    memcpy(copy, r->bytes[i], r->size[i]);
    const size_t size = i == victim ? damage(copy, r->size[i], &state) : r->size[i];
    write_file(path, copy, size);
    free(copy);
  }
}

/* --- what must happen --- */

static void compute(const struct model *m, struct tally *t) {
  uint64_t state = 1;
  struct error e = {0};
  struct arena a;
  arena_init(&a, NULL);
  const struct random_layer l = {.shape = m->shape, .layer = m->layer};
  struct layer_run *c = plain_call(&l, &state, 1, 2, 3, WEIGHTS_PER_HEAD, &a);
  void *scratch = arena_alloc(&a, 1, layer_scratch_bytes(m->layer), &e);
  assert_non_null(scratch);
  run_compute(&c->run, 1e9, scratch);
  if (run_fault(&c->run, &e) != STATUS_OK) {
    assert_int_equal(e.status, STATUS_NOT_FINITE);
    assert_true(*e.detail);
    t->faults++;
  } else {
    for (size_t i = 0; i < c->geometry.q_rows * m->shape.output_size; i++)
      assert_true(c->call.outputs[i] - c->call.outputs[i] == 0);
    t->computed++;
  }
  arena_free(&a);
}

static void load(const json_t *definition, const struct place *p, uint64_t seed, struct tally *t) {
  struct error e = {0};
  struct model *m = model_load("m", definition, p->folder, GEMM_AUTO, COMPUTE_FLOAT32, &e);
  if (m) {
    assert_int_equal(e.status, STATUS_OK);
    compute(m, t);
  } else {
    t->refused++;
    if (e.status != STATUS_CONFIG) fail_msg("seed %ju: %s", (uintmax_t)seed, e.detail);
    assert_memory_equal(e.detail, "model m: ", 9);
    assert_true(strlen(e.detail) > 20 && !strchr(e.detail, '\n'));
  }
  model_free(m);
}

static void damage_all(struct right *r, const struct place *p, const char *layout) {
  struct tally t = {0};
  json_t *definition =
      json_pack("{s:s,s:i,s:s}", "checkpoint", r->name[0], "heads", 2, "layout", layout);
  assert_non_null(definition);
  if (strcmp(layout, "plain") != 0) json_object_set_new(definition, "layer", json_integer(1));
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    write_damaged(r, p, seed);
    load(definition, p, seed, &t);
  }
  for (size_t i = 0; i < r->files; i++) { /* and the file was correct before */
    char path[160];
    path_of(p, r->name[i], path);
    write_file(path, r->bytes[i], r->size[i]);
  }
  const size_t computed = t.computed;
  load(definition, p, 0, &t);
  assert_int_equal(t.computed, computed + 1);
  assert_true(t.refused > SEEDS / 10 && computed > SEEDS / 100);
  json_decref(definition);
  done(r, p);
}

static void damaged_safetensors(void **state) {
  struct right r = {0};
  struct made m = {0};
  add_roles(&m, 0, 4);
  add_made(&r, "w.safetensors", &m);
  damage_all(&r, *state, "plain");
}

static void damaged_shards(void **state) {
  struct right r = {0};
  struct made m = {0};
  char index[1024] = "{\"metadata\":{\"total_size\":320},\"weight_map\":{";
  for (size_t i = 0; i < 4; i++) {
    const size_t used = strlen(index), shard = 1 + i / 2;
    snprintf(index + used, sizeof index - used,
             "%s\"%s.weight\":\"%zu.safetensors\",\"%s.bias\":\"%zu.safetensors\"", i ? "," : "",
             roles[i], shard, roles[i], shard);
  }
  strcat(index, "}}");
  add(&r, "w.index.json", (unsigned char *)strdup(index), strlen(index));
  add_roles(&m, 0, 2);
  add_made(&r, "1.safetensors", &m);
  add_roles(&m, 2, 4);
  add_made(&r, "2.safetensors", &m);
  damage_all(&r, *state, "plain");
}

static void damaged_archive(const struct place *p, int method) {
  struct right r = {0};
  struct npz_made z = npz_make(p->file);
  for (size_t i = 0; i < 4; i++) {
    char name[32];
    snprintf(name, sizeof name, "%s.weight.npy", roles[i]);
    npz_add(&z, name, npy_make_floats(4, 4), method);
    snprintf(name, sizeof name, "%s.bias.npy", roles[i]);
    npz_add(&z, name, npy_make_floats(4, 0), method);
  }
  npz_write(&z);
  unsigned char *bytes = malloc(1 << 16);
  assert_non_null(bytes);
  FILE *in = fopen(p->file, "rb");
  assert_non_null(in);
  const size_t size = fread(bytes, 1, 1 << 16, in);
  fclose(in);
  add(&r, "w.npz", bytes, size);
  damage_all(&r, p, "plain");
}

static void damaged_stored_archives(void **state) { damaged_archive(*state, NPZ_STORED); }

static void damaged_deflated_archives(void **state) { damaged_archive(*state, NPZ_DEFLATED); }

/* --- families --- */

static void damage_family(struct made *m, const struct place *p, const char *layout) {
  struct right r = {0};
  add_made(&r, "w.safetensors", m);
  damage_all(&r, p, layout);
}

static void damaged_gpt2(void **state) {
  static const struct {
    const char *name;
    size_t rows, columns;
  } tensors[] = {{"h.0.attn.c_attn.weight", 4, 12},
                 {"h.0.attn.c_attn.bias", 12, 0},
                 {"h.0.attn.c_proj.weight", 4, 4},
                 {"h.0.attn.c_proj.bias", 4, 0}};
  struct made m = {0};
  for (size_t i = 0; i < 8; i++) {
    char name[32];
    snprintf(name, sizeof name, "%s", tensors[i % 4].name);
    name[2] = i < 4 ? '0' : '1';
    made_add(&m, name, tensors[i % 4].rows, tensors[i % 4].columns);
  }
  damage_family(&m, *state, "gpt2");
}

/* The first block has the table of relative positions. */
static void damaged_t5(void **state) {
  struct made m = {0};
  for (char name[] = "encoder.block.0.layer.0.SelfAttention.q.weight"; name[14] < '2'; name[14]++)
    for (const char *role = "qkvo"; *role; role++) {
      name[38] = *role;
      made_add(&m, name, 4, 4);
    }
  made_add(&m, "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", 8, 2);
  damage_family(&m, *state, "t5");
}

/* Queries have two heads, keys and values one. */
static void damaged_llama(void **state) {
  struct made m = {0};
  for (char name[] = "layers.0.self_attn.q_proj.weight"; name[7] < '2'; name[7]++)
    for (const char *role = "qkvo"; *role; role++) {
      name[19] = *role;
      made_add(&m, name, *role == 'k' || *role == 'v' ? 2 : 4, 4);
    }
  damage_family(&m, *state, "llama");
}

int main(void) {
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, enter, place_remove)
  const struct CMUnitTest tests[] = {
      IN_PLACE(damaged_safetensors),
      IN_PLACE(damaged_shards),
      IN_PLACE(damaged_stored_archives),
      IN_PLACE(damaged_deflated_archives),
      IN_PLACE(damaged_gpt2),
      IN_PLACE(damaged_t5),
      IN_PLACE(damaged_llama),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
