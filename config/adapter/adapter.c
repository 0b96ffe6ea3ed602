/* adapter: finds the pairs of matrices of a LoRA adapter by their names. */
#include "config/adapter/adapter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/adapter/adapter_config.h"
#include "config/document/file.h"
#include "config/document/text.h"

static const char config_name[] = "adapter_config.json";

static const char before[] = "base_model.model.";

enum adapter_part { MATRIX_A, MATRIX_B, TABLE_A, TABLE_B, BASE };

/* The ends of names. PEFT leaves out the adapter's name, "default"; other programs have it. */
static const struct {
  const char *end;
  enum adapter_part part;
} endings[] = {{".lora_A.weight", MATRIX_A},   {".lora_A.default.weight", MATRIX_A},
               {".lora_B.weight", MATRIX_B},   {".lora_B.default.weight", MATRIX_B},
               {".lora_embedding_A", TABLE_A}, {".lora_embedding_A.default", TABLE_A},
               {".lora_embedding_B", TABLE_B}, {".lora_embedding_B.default", TABLE_B},
               {".base_layer.weight", BASE}};

enum { ENDINGS = sizeof endings / sizeof *endings, NAME_SIZE = 512, LONGEST_END = 32 };

bool adapter_is(const char *folder) {
  char *path = file_path(folder, config_name);
  const bool is = path && file_is_there(path);
  free(path);
  return is;
}

/* The tensor of a module that is this part of it, by the ends of names from `from` on. */
static const struct checkpoint_entry *find_part(const struct adapter *a, const char *module,
                                                enum adapter_part part, size_t from) {
  for (size_t i = from; i < ENDINGS; i++) {
    char name[NAME_SIZE + sizeof before + LONGEST_END];
    if (endings[i].part != part) continue;
    snprintf(name, sizeof name, "%s%s%s", before, module, endings[i].end);
    const struct checkpoint_entry *t = checkpoint_find(a->file, name);
    if (t) return t;
  }
  return NULL;
}

/* Splits the name of a tensor: the module's, and the number of its end. */
static enum status split_name(const char *name, char module[NAME_SIZE], size_t *ending,
                              struct error *e) {
  const size_t length = strlen(name), start = sizeof before - 1;
  size_t i = 0;
  while (i < ENDINGS && !text_ends_with(name, endings[i].end)) i++;
  if (i == ENDINGS || length >= NAME_SIZE || strncmp(name, before, start) != 0 ||
      length <= start + strlen(endings[i].end))
    return error_set(e, STATUS_CONFIG,
                     "tensor \"%.150s\" is not supported: only matrices of LoRA are, named "
                     "%sMODULE.lora_A.weight and .lora_B.weight",
                     name, before);
  snprintf(module, NAME_SIZE, "%.*s", (int)(length - start - strlen(endings[i].end)), name + start);
  *ending = i;
  return STATUS_OK;
}

/* Adds the pair of a matrix A. */
static enum status add_pair(struct adapter *a, const char *module, const struct checkpoint_entry *t,
                            bool table, struct error *e) {
  struct adapter_pair *pair = &a->pair[a->pairs];
  *pair = (struct adapter_pair){.module = strdup(module),
                                .table = table,
                                .a = t,
                                .b = find_part(a, module, table ? TABLE_B : MATRIX_B, 0),
                                .base = find_part(a, module, BASE, 0)};
  if (!pair->module) return error_no_memory(e);
  a->pairs++;
  return STATUS_OK;
}

/* Checks a tensor, and that the rest of its pair is there; adds the pair of a matrix A. */
static enum status add_tensor(struct adapter *a, const struct checkpoint_entry *t,
                              struct error *e) {
  char module[NAME_SIZE];
  size_t i = 0;
  if (split_name(t->name, module, &i, e)) return e->status;
  const enum adapter_part part = endings[i].part;
  if (part != BASE && checkpoint_check_tensor(t, e)) return e->status;
  if (t->rank != 2)
    return error_set(e, STATUS_CONFIG, "tensor \"%.150s\" has %zu dimensions, but must have 2",
                     t->name, t->rank);
  if (find_part(a, module, part, i + 1) || (part == MATRIX_A && find_part(a, module, TABLE_A, 0)))
    return error_set(e, STATUS_CONFIG, "module \"%.150s\" has two tensors like \"%s\"", module,
                     endings[i].end + 1);
  const bool table = part == TABLE_A || part == TABLE_B;
  const struct checkpoint_entry *first = find_part(a, module, table ? TABLE_A : MATRIX_A, 0),
                                *second = find_part(a, module, table ? TABLE_B : MATRIX_B, 0);
  const bool whole = part == BASE ? first || find_part(a, module, TABLE_A, 0) : first && second;
  if (!whole)
    return error_set(e, STATUS_CONFIG, "tensor \"%.150s\" is there without the other of its pair",
                     t->name);
  if (part != MATRIX_A && part != TABLE_A) return STATUS_OK;
  return add_pair(a, module, t, table, e);
}

static enum status check_pair(struct adapter_pair *p, struct adapter_config *c, struct error *e) {
  if (adapter_config_module(c, p->module, &p->rank, &p->scale, e))
    return text_before(e, "%s: module \"%.120s\": ", config_name, p->module);
  if (p->a->dim[0] != p->rank || p->b->dim[1] != p->rank)
    return error_set(e, STATUS_CONFIG,
                     "module \"%.120s\": A is [%ju, %ju] and B [%ju, %ju], but %s has rank %zu",
                     p->module, (uintmax_t)p->a->dim[0], (uintmax_t)p->a->dim[1],
                     (uintmax_t)p->b->dim[0], (uintmax_t)p->b->dim[1], config_name, p->rank);
  return STATUS_OK;
}

/* Opens the tensors: adapter_model.safetensors, else adapter_model.bin. */
static enum status open_tensors(struct adapter *a, struct error *e) {
  static const char *const names[] = {"adapter_model.safetensors", "adapter_model.bin"};
  for (size_t i = 0; i < 2 && !a->file && !e->status; i++) {
    char *path = file_path(a->folder, names[i]);
    if (!path) return error_no_memory(e);
    if (file_is_there(path)) a->file = checkpoint_open(path, e);
    free(path);
  }
  if (a->file || e->status) return e->status;
  return error_set(e, STATUS_CONFIG, "%.120s: has no %s and no %s", text_tail(a->folder), names[0],
                   names[1]);
}

/* Finds the pairs in the tensors, and what the configuration says of each. */
static enum status find_pairs(struct adapter *a, struct adapter_config *c, struct error *e) {
  size_t all;
  const struct checkpoint_entry *const *by_name = checkpoint_behind(a->file, "", &all);
  a->pair = calloc(all + 1, sizeof *a->pair);
  if (!a->pair) return error_no_memory(e);
  for (size_t i = 0; i < all && e->status == STATUS_OK; i++) add_tensor(a, by_name[i], e);
  for (size_t i = 0; i < a->pairs && e->status == STATUS_OK; i++) check_pair(&a->pair[i], c, e);
  if (a->pairs == 0) error_set(e, STATUS_CONFIG, "has no tensors");
  return e->status ? text_before(e, "%.120s: ", text_tail(checkpoint_path(a->file))) : STATUS_OK;
}

struct adapter *adapter_open(const char *folder, struct error *e) {
  struct adapter *a = calloc(1, sizeof *a);
  char *path = file_path(folder, config_name);
  size_t length = strlen(folder);
  while (length > 1 && folder[length - 1] == '/') length--;
  if (a) a->folder = strndup(folder, length);
  if (!path || !a || !a->folder) error_no_memory(e);
  struct adapter_config *c = e->status ? NULL : adapter_config_read(path, e);
  if (c) a->base = strdup(adapter_config_base(c));
  if (c && !a->base) error_no_memory(e);
  if (!e->status && open_tensors(a, e) == STATUS_OK) find_pairs(a, c, e);
  adapter_config_free(c);
  free(path);
  if (e->status == STATUS_OK) return a;
  adapter_free(a);
  return NULL;
}

void adapter_free(struct adapter *a) {
  if (!a) return;
  for (size_t i = 0; i < a->pairs; i++) free(a->pair[i].module);
  free(a->pair);
  checkpoint_free(a->file);
  free(a->base);
  free(a->folder);
  free(a);
}
