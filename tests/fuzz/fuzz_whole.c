/* fuzz_whole: config.json and definitions of whole models.
 *
 * The first byte says with the tensors of which golden model, or none, then comes what config.json
 * holds, and behind FUZZ_PART the definition. What is accepted agrees with itself: each part has
 * the size that the form gives it, and small models are read and tried. */
#include <string.h>

#include "config/build/whole_numbers.h"
#include "config/build/whole_plan_make.h"
#include "config/document/json_reserve.h"
#include "tests/fuzz/fuzz.h"

enum { NUMBERS_MOST = 100000 };

static const char *const folders[] = {
    "bert-b",         "roberta-b",    "distilbert-b", "t5-b",
    "t5-v11",         "bart-b",       "marian-a",     "torch-encoder-b",
    "d2l-a",          "vit-a",        "torch-post",   "marian-b",
    "mpnet-a",        "albert-inner", "electra-a",    "qwen2-bidirectional-window",
    "gemma2-a",       "gemma3-a",     "nomic-ntk",    "gte-a",
    "modernbert-cls", "smollm3-a",    "deberta-v3-a", "jina-bert-a"};

static void config_must_be_told(const struct error *e) {
  must(e->status == STATUS_CONFIG && e->detail[0]);
}

/* An object; NULL where the text is none. */
static json_t *object_of(struct input in) {
  json_error_t fault;
  bool no_memory;
  json_t *json = in.size ? json_reserve_load(in.bytes, in.size, &fault, &no_memory) : NULL;
  if (json_is_object(json)) return json;
  json_decref(json);
  return NULL;
}

static void open_tensors(struct whole_plan *p, unsigned which) {
  char path[80];
  struct error e = {0};
  if (which >= sizeof folders / sizeof *folders) return;
  snprintf(path, sizeof path, "tests/golden/models/%s/model.safetensors", folders[which]);
  p->source.path = "golden";
  p->source.file = checkpoint_open(path, &e);
  must(p->source.file);
}

static void part_must_fit(const struct whole_stack *s, enum whole_role role, size_t layer) {
  const struct layout_matrix *m = whole_plan_part(s, role, layer);
  size_t out, in;
  whole_plan_size(s, role, &out, &in);
  must(!m->found || (m->weight.rows == out && m->weight.columns == in && out > 0 && in > 0));
}

/* All numbers are finite, since those of the files are. */
static void read_numbers(const struct whole_plan *p, const struct whole_stack *s) {
  struct stack_form form;
  struct stack_layer layer;
  struct error e = {0};
  struct arena a;
  arena_init(&a, NULL);
  must(whole_numbers_stack(p, s, &a, &form, &e) == STATUS_OK);
  for (size_t i = 0; i < form.layers; i++)
    must(whole_numbers_layer(p, s, i, &a, &layer, &e) == STATUS_OK);
  if (form.embedding.given) free((void *)form.embedding.token);
  arena_free(&a);
}

static void stack_must_agree(const struct whole_plan *p, enum whole_side side) {
  const struct whole_stack *s = &p->stack[side];
  const struct stack_form *f = &s->form;
  const bool other = side == WHOLE_DECODER && p->kind == MODEL_SEQ2SEQ;
  must((f->layers > 0) == (s->family->layer != NULL) && f->width > 0);
  must(!f->layers || f->kind->self.heads % f->kind->self.kv_heads == 0);
  must(f->embedding.positions != POSITIONS_LEARNED ||
       s->positions <= f->embedding.position_rows - f->embedding.first_position);
  must(f->causal == (side == WHOLE_DECODER) && (f->cross.heads > 0) == other);
  must(!other || (f->cross.key_size == p->stack[WHOLE_ENCODER].form.width &&
                  f->embedding.tokens > 0 && p->said.token.begin < (int64_t)f->embedding.tokens));
  for (enum whole_role role = WHOLE_LAYER_ROLES; role < WHOLE_ROLES; role++)
    part_must_fit(s, role, 0);
  for (size_t i = 0; i < f->layers; i++)
    for (enum whole_role role = 0; role < WHOLE_LAYER_ROLES; role++) part_must_fit(s, role, i);
  if (p->count <= NUMBERS_MOST) read_numbers(p, s);
}

static void plan_must_agree(const struct whole_plan *p) {
  must((p->stack[WHOLE_ENCODER].family != NULL) == (p->kind != MODEL_DECODER));
  must((p->stack[WHOLE_DECODER].family != NULL) == (p->kind != MODEL_ENCODER));
  for (enum whole_side i = 0; i < WHOLE_SIDES; i++)
    if (p->stack[i].family) stack_must_agree(p, i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {(const char *)data, size};
  struct whole_plan p = {0};
  struct error e = {0};
  const unsigned char which = input_byte(&in);
  const struct input config = input_part(&in);
  json_t *definition = object_of(in);
  if (!definition) definition = json_object();
  open_tensors(&p, which - (unsigned)'a');
  p.source.config = object_of(config);
  if (p.source.file || !p.source.config) {
    if (whole_plan_from_source(&p, definition, &e) == STATUS_OK)
      plan_must_agree(&p);
    else
      config_must_be_told(&e);
  }
  whole_plan_free(&p);
  json_decref(definition);
  return 0;
}
