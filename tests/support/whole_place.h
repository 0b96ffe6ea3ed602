/* whole_place: a folder of a whole model, made of a golden one with something else in it. For test
 * programs alone: it needs cmocka. */
#ifndef TESTS_WHOLE_PLACE_H
#define TESTS_WHOLE_PLACE_H

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/build/whole.h"
#include "tests/support/model_load.h"

static inline int whole_place_enter(void **state) { return place_make(state, "model.safetensors"); }

static inline void whole_place_path(const struct place *p, const char *name, char out[200]) {
  snprintf(out, 200, "%s/%s", p->folder, name);
}

/* Writes a file of the folder; its own folder in that is made. NULL: removes it. */
static inline void whole_place_write(const struct place *p, const char *name, const char *text) {
  char path[200], folder[200];
  whole_place_path(p, name, path);
  unlink(path);
  snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
  if (!text) {
    if (strchr(name, '/')) rmdir(folder);
    return;
  }
  mkdir(folder, 0700);
  FILE *out = fopen(path, "w");
  assert_non_null(out);
  assert_true(fputs(text, out) >= 0 && fclose(out) == 0);
}

static inline int whole_place_leave(void **state) {
  static const char *const names[] = {"config.json",
                                      "generation_config.json",
                                      "modules.json",
                                      "1_Pooling/config.json",
                                      "2_Dense/model.safetensors",
                                      "2_Dense/config.json",
                                      "3_Dense/model.safetensors",
                                      "3_Dense/config.json",
                                      "0_Transformer/model.safetensors",
                                      "0_Transformer/config.json"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    whole_place_write(*state, names[i], NULL);
  return place_remove(state);
}

/* config.json becomes the golden one's with these members in it; "-" is none. */
static inline void whole_place_config(const struct place *p, const char *golden,
                                      const char *change) {
  char path[200];
  const char *key;
  json_t *value, *changes = json_of(change);
  snprintf(path, sizeof path, "tests/golden/models/%s/config.json", golden);
  json_t *config = json_load_file(path, 0, NULL);
  assert_non_null(config);
  json_object_foreach(changes, key, value) {
    const char *text = json_string_value(value);
    if (text && strcmp(text, "-") == 0)
      json_object_del(config, key);
    else
      json_object_set(config, key, value);
  }
  char *text = json_dumps(config, 0);
  whole_place_write(p, "config.json", text);
  free(text);
  json_decref(changes);
  json_decref(config);
}

/* A tensor that is added; without columns it is a vector. */
struct whole_more {
  const char *name;
  size_t rows, columns;
};

enum { WHOLE_MORE_MOST = 4 };

/* What becomes of the golden tensors, by their names; NULL: nothing. */
struct whole_edit {
  const char *drop, *rename, *to; /* all that have it within; the first where names begin so, which
                                     becomes the second */
  const char *within, *as;        /* likewise where it stands in a name; `both`: beside that */
  bool both;
  const char *add;  /* a tensor of [rows, columns], */
  const char *also; /* and one more */
  size_t rows, columns;
  struct whole_more more[WHOLE_MORE_MOST]; /* and these */
  const char *broken;                      /* its first number is not one */
  const char *huge;                        /* all its numbers are 3e38 */
};

static inline void whole_place_tensors(const struct place *p, const char *golden,
                                       const struct whole_edit *edit) {
  static const struct whole_edit none;
  struct error e = {0};
  struct made m = {0};
  char path[200], name[200], shape[64];
  if (!edit) edit = &none;
  snprintf(path, sizeof path, "tests/golden/models/%s/model.safetensors", golden);
  struct checkpoint *c = checkpoint_open(path, &e);
  assert_non_null(c);
  for (size_t i = 0; i < checkpoint_count(c); i++) {
    const struct checkpoint_entry *t = checkpoint_at(c, i);
    if (edit->drop && strstr(t->name, edit->drop)) continue;
    if (strcmp(t->dtype, "F32") != 0) continue;
    snprintf(name, sizeof name, "%s", t->name);
    if (edit->rename && strncmp(t->name, edit->rename, strlen(edit->rename)) == 0)
      snprintf(name, sizeof name, "%s%s", edit->to, t->name + strlen(edit->rename));
    snprintf(shape, sizeof shape,
             t->rank == 1   ? "[%ju]"
             : t->rank == 2 ? "[%ju,%ju]"
                            : "[%ju,%ju,%ju]",
             (uintmax_t)t->dim[0], (uintmax_t)t->dim[1], (uintmax_t)t->dim[2]);
    float *numbers = malloc((size_t)t->count * sizeof *numbers);
    assert_int_equal(checkpoint_read_floats(c, t, 0, (size_t)t->count, numbers, &e), STATUS_OK);
    if (edit->broken && strcmp(edit->broken, t->name) == 0) numbers[0] = 0.0f / 0.0f;
    for (size_t x = 0; edit->huge && strcmp(edit->huge, t->name) == 0 && x < t->count; x++)
      numbers[x] = 3e38f;
    const char *found = edit->within ? strstr(t->name, edit->within) : NULL;
    const size_t bytes = (size_t)t->count * sizeof *numbers;
    if (t->rank <= 3 && (!found || edit->both))
      made_add_bytes(&m, name, "F32", shape, numbers, bytes);
    if (found) {
      snprintf(name, sizeof name, "%.*s%s%s", (int)(found - t->name), t->name, edit->as,
               found + strlen(edit->within));
      made_add_bytes(&m, name, "F32", shape, numbers, bytes);
    }
    free(numbers);
  }
  if (edit->add) made_add(&m, edit->add, edit->rows, edit->columns);
  if (edit->also) made_add(&m, edit->also, edit->rows, edit->columns);
  for (size_t i = 0; i < WHOLE_MORE_MOST && edit->more[i].name; i++)
    made_add(&m, edit->more[i].name, edit->more[i].rows, edit->more[i].columns);
  checkpoint_free(c);
  write_made(p, &m);
}

/* The definition of the folder, with more members: ",\"heads\":2". */
static inline void whole_place_definition(const struct place *p, const char *more, char out[512]) {
  snprintf(out, 512, "{\"transformer\":\"%s\"%s}", p->folder, more);
}

static inline struct model *whole_place_load(const struct place *p, const char *more) {
  char definition[512];
  whole_place_definition(p, more, definition);
  return load_well(definition, "/");
}

static inline void whole_place_refused(const struct place *p, const char *more,
                                       const char *detail) {
  char definition[512];
  whole_place_definition(p, more, definition);
  load_ill(definition, "/", detail);
}

#endif
