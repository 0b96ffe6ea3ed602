/* fuzz_checkpoint: files of weights: safetensors, archives of NumPy, and headers of its arrays.
 *
 * The first byte says what follows: `f` a file of any kind, `s` a header of safetensors and, behind
 * FUZZ_PART, its data, which this program joins to a file, `n` a file of NumPy's array format. A
 * file is opened, its tensors are read, and layers are searched for in it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/build/layer/parameters.h"
#include "config/checkpoint/checkpoint.h"
#include "config/checkpoint/npy.h"
#include "tests/fuzz/fuzz.h"

enum { NUMBERS_MOST = 4096, AT_ONCE = 100 };

static void config_must_be_told(const struct error *e) {
  must(e->status == STATUS_CONFIG && e->detail[0] && !strchr(e->detail, '\n'));
}

/* Reads a tensor in stretches; the last one ends at its end. */
static void read_tensor(struct checkpoint *c, const struct checkpoint_entry *t) {
  float out[AT_ONCE];
  struct error e = {0};
  for (uint64_t at = 0; at < t->count && at < NUMBERS_MOST && !e.status; at += AT_ONCE) {
    const size_t count = t->count - at < AT_ONCE ? (size_t)(t->count - at) : AT_ONCE;
    if (checkpoint_read_floats(c, t, at, count, out, &e)) break;
    for (size_t i = 0; i < count; i++) must(isfinite(out[i]));
  }
  if (e.status) config_must_be_told(&e);
  struct error judged = {0};
  if (checkpoint_check_tensor(t, &judged)) must(e.status || t->count == 0);
}

/* Reads the numbers of a layer, if it is small. */
static void read_layer(struct checkpoint *c, const struct definition *d, struct error *e) {
  struct parameters p;
  if (parameters_measure(&p, d, c, e)) return;
  size_t numbers = 0;
  for (size_t i = 0; i < ROLE_COUNT; i++) {
    must(p.matrix[i].weight == NULL && p.matrix[i].bias == NULL);
    if (p.matrix[i].in > NUMBERS_MOST || p.matrix[i].out > NUMBERS_MOST) numbers = SIZE_MAX / 2;
    numbers += p.matrix[i].in * p.matrix[i].out;
  }
  parameters_free(&p);
  if (numbers > NUMBERS_MOST || parameters_read(&p, d, c, e)) return;
  parameters_free(&p);
}

/* Tries definitions that say little, that name a place, or that name the tensors. */
static void find_layers(struct checkpoint *c) {
  static const char named[] =
      "{\"checkpoint\":\"w\",\"heads\":1,\"tensors\":{\"query\":\"a.W_q\",\"key\":\"a.W_k\","
      "\"value\":\"a.W_v\",\"output\":\"a.W_o.weight\"}}";
  static const char *const definitions[] = {
      "{\"checkpoint\":\"w\",\"heads\":1}",
      "{\"checkpoint\":\"w\",\"heads\":2,\"layer\":1,\"bias\":false}",
      "{\"checkpoint\":\"w\",\"heads\":1,\"prefix\":\"b.\",\"bias\":true}",
      "{\"checkpoint\":\"w\",\"heads\":1,\"layout\":\"bert\",\"layer\":0}",
      "{\"checkpoint\":\"w\",\"projection\":\"none\",\"score\":\"additive\"}",
      "{\"checkpoint\":\"w\",\"heads\":1,\"score\":\"bilinear\"}",
      named,
  };
  for (size_t i = 0; i < sizeof definitions / sizeof *definitions; i++) {
    struct definition d;
    struct error e = {0};
    json_t *json = json_loads(definitions[i], 0, NULL);
    must(!definition_read(&d, json, &e));
    read_layer(c, &d, &e);
    if (e.status) config_must_be_told(&e);
    json_decref(json);
  }
}

static void read_file(struct input in) {
  struct error e = {0};
  struct fuzz_file f = fuzz_file_make(in);
  struct checkpoint *c = checkpoint_open(f.path, &e);
  if (!c) config_must_be_told(&e);
  for (size_t i = 0; c && i < checkpoint_count(c); i++) {
    const struct checkpoint_entry *t = checkpoint_at(c, i);
    must(checkpoint_find(c, t->name));
    read_tensor(c, t);
  }
  if (c) find_layers(c);
  checkpoint_free(c);
  fuzz_file_close(&f);
}

static void read_array(struct input in) {
  size_t prefix, literal;
  struct npy npy;
  struct error e = {0};
  char *file = input_copy(in);
  if (npy_measure((unsigned char *)file, in.size, &prefix, &literal, &e) == STATUS_OK &&
      prefix + literal <= in.size) {
    must(prefix >= NPY_PREFIX_LEAST && prefix <= NPY_PREFIX_MOST && literal <= NPY_LITERAL_MOST);
    char *text = input_copy((struct input){file + prefix, literal});
    if (npy_parse(text, literal, &npy, &e) == STATUS_OK) {
      must(npy.rank <= SAFETENSORS_RANK_MAX);
      must(memchr(npy.dtype, '\0', sizeof npy.dtype));
    }
    free(text);
  }
  if (e.status) config_must_be_told(&e);
  free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {(const char *)data, size};
  const unsigned char what = input_byte(&in);
  if (what == 'n') {
    read_array(in);
  } else if (what == 's') {
    const struct input header = input_part(&in), file = input_framed(header, in);
    read_file(file);
    free((char *)file.bytes);
  } else {
    read_file(in);
  }
  return 0;
}
