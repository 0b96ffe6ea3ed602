/* whole_adapter: finds the tensor of each module of an adapter, and has its numbers changed. */
#include "config/build/whole_adapter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/build/plan/whole_find.h"
#include "config/document/file.h"
#include "config/document/text.h"

enum { LEFT_OUT_MOST = 2, COMPARED = 4 * 1024 };

/* The tensor of a module. The model's code may have more names before the module's than the file
 * has ("bert.encoder", "encoder"), or fewer. */
static const struct checkpoint_entry *find_tensor(const struct whole_plan *p, const char *module) {
  char name[LAYOUT_ADDRESS_SIZE];
  for (size_t i = 0; module && i <= LEFT_OUT_MOST; i++) {
    if (snprintf(name, sizeof name, "%s.weight", module) >= (int)sizeof name) return NULL;
    const struct checkpoint_entry *t = whole_find_near(p, name);
    if (t) return t;
    module = strchr(module, '.');
    if (module) module++;
  }
  return NULL;
}

/* Finds the part that the model uses a tensor for, and its role; NULL: it does not use it. */
static const struct layout_matrix *find_use(const struct whole_plan *p,
                                            const struct checkpoint_entry *t, enum whole_role *as) {
  for (enum whole_side side = 0; side < WHOLE_SIDES; side++) {
    const struct whole_stack *s = &p->stack[side];
    for (enum whole_role role = 0; s->family && role < WHOLE_ROLES; role++)
      for (size_t i = 0; i < (role < WHOLE_LAYER_ROLES ? s->form.layers : 1); i++) {
        const struct layout_matrix *m = whole_plan_part(s, role, i);
        if (!m->found || m->weight.tensor != t) continue;
        *as = role;
        return m;
      }
  }
  return NULL;
}

/* Is the tensor a table of tokens that is used in two places, or a copy of it? An adapter changes
 * only one of them. */
static bool is_shared(const struct whole_plan *p, const struct checkpoint_entry *t, bool used) {
  const struct whole_stack *reader = whole_plan_reader(p), *decoder = &p->stack[WHOLE_DECODER];
  const struct whole_stack *last = decoder->family ? decoder : reader;
  const struct checkpoint_entry *table = last->part[WHOLE_TOKEN].weight.tensor;
  const bool tied = last->form.output.tied || whole_plan_is_lent(p, reader, WHOLE_TOKEN);
  return tied && table && t->rank == 2 && t->dim[0] == table->dim[0] &&
         t->dim[1] == table->dim[1] && (t == table || !used);
}

/* Checks the tensor of a target, and sets how it is stored. Returns whether the model uses it. */
static bool check_target(const struct whole_plan *p, struct whole_adapter_target *target,
                         struct error *e) {
  const struct checkpoint_entry *t = target->tensor;
  const struct adapter_pair *pair = target->pair;
  enum whole_role role = WHOLE_ROLES;
  const struct layout_matrix *use = find_use(p, t, &role);
  const bool table = use && whole_roles[role].kind == WHOLE_IS_TABLE;
  const bool across = pair->table || (use && use->transposed);
  target->turned = across != t->by_columns;
  if (is_shared(p, t, use))
    error_set(e, STATUS_CONFIG,
              "it changes \"%.120s\", which is not supported: this model uses its token "
              "embeddings in two places, and the adapter changes one of them",
              t->name);
  checkpoint_check_tensor(t, e);
  if (use && table != pair->table)
    error_set(e, STATUS_CONFIG, "\"%.120s\" is %s, but the adapter has lora%s_A for it", t->name,
              table ? "a table of embeddings" : "no table of embeddings",
              pair->table ? "_embedding" : "");
  if (t->rank != 2 || pair->a->dim[1] != t->dim[across ? 0 : 1] ||
      pair->b->dim[0] != t->dim[across ? 1 : 0])
    error_set(e, STATUS_CONFIG,
              "A is [%ju, %ju] and B [%ju, %ju], which do not fit \"%.120s\" of [%ju, %ju]",
              (uintmax_t)pair->a->dim[0], (uintmax_t)pair->a->dim[1], (uintmax_t)pair->b->dim[0],
              (uintmax_t)pair->b->dim[1], t->name, (uintmax_t)t->dim[0],
              (uintmax_t)(t->rank > 1 ? t->dim[1] : 1));
  return use;
}

/* Finds the tensors of an adapter, and notes those that the model does not use. */
static enum status find_targets(struct whole_plan *p, struct whole_adapter *w, struct error *e) {
  const struct adapter *a = w->adapter;
  const struct checkpoint *file = p->source.file;
  bool *seen = calloc(checkpoint_count(file), sizeof *seen);
  w->target = calloc(a->pairs, sizeof *w->target);
  if (!seen || !w->target) error_no_memory(e);
  for (size_t i = 0; i < a->pairs && e->status == STATUS_OK; i++) {
    const struct adapter_pair *pair = &a->pair[i];
    struct whole_adapter_target target = {.tensor = find_tensor(p, pair->module), .pair = pair};
    bool used = false;
    if (!target.tensor) {
      error_set(e, STATUS_CONFIG, "there is no tensor of it in %.100s",
                text_file_name(checkpoint_path(file)));
    } else if (seen[target.tensor - checkpoint_at(file, 0)]) {
      error_set(e, STATUS_CONFIG, "another module of the adapter changes \"%.120s\", too",
                target.tensor->name);
    } else {
      seen[target.tensor - checkpoint_at(file, 0)] = true;
      used = check_target(p, &target, e);
    }
    if (e->status) text_before(e, "module \"%.120s\": ", pair->module);
    if (used) w->target[w->targets++] = target;
  }
  free(seen);
  if (e->status == STATUS_OK && w->targets == 0)
    error_set(e, STATUS_CONFIG, "it changes no tensor that this model uses");
  else if (e->status == STATUS_OK && w->targets < a->pairs)
    notes_add(&p->notes, "adapter %.80s: %zu of its %zu modules are not used by this model",
              text_file_name(a->folder), a->pairs - w->targets, a->pairs);
  return e->status;
}

/* Opens the adapter of this path. */
static enum status add_adapter(struct whole_plan *p, const json_t *said, const char *directory,
                               struct error *e) {
  struct whole_adapter *w = &p->adapter[p->adapters];
  const char *path = json_string_value(said);
  if (!path || !*path)
    return error_set(e, STATUS_CONFIG, "needs the path of a folder, or a list of such");
  char *folder = file_path(directory, path);
  if (!folder) return error_no_memory(e);
  w->adapter = adapter_open(folder, e);
  free(folder);
  if (!w->adapter) return e->status;
  p->adapters++;
  if (find_targets(p, w, e)) text_before(e, "%.120s: ", text_tail(w->adapter->folder));
  return e->status;
}

enum status whole_adapter_find(struct whole_plan *p, const json_t *definition,
                               const char *directory, struct error *e) {
  json_t *said = json_object_get(definition, "adapter");
  const bool many = json_is_array(said);
  const size_t count = many ? json_array_size(said) : said != NULL;
  if (!said) return STATUS_OK;
  if (!p->source.file)
    return error_set(e, STATUS_CONFIG, "adapter: a randomly initialized model cannot have one");
  if (count == 0 || count > WHOLE_ADAPTERS_MOST)
    return error_set(e, STATUS_CONFIG, "adapter: needs 1 to %d folders", WHOLE_ADAPTERS_MOST);
  for (size_t i = 0; i < count && e->status == STATUS_OK; i++)
    add_adapter(p, many ? json_array_get(said, i) : said, directory, e);
  return e->status ? text_before(e, "adapter: ") : STATUS_OK;
}

/* --- numbers --- */

/* Checks that the adapter's copy of a tensor as it was before is equal to it: PEFT also saves
 * tables of tokens that were made larger. */
static enum status check_base(struct whole_plan *p, const struct adapter *a,
                              const struct whole_adapter_target *target, struct error *e) {
  const struct checkpoint_entry *here = target->tensor, *there = target->pair->base;
  float one[COMPARED], other[COMPARED];
  bool same = !there || (there->dim[0] == here->dim[0] && there->dim[1] == here->dim[1] &&
                         there->by_columns == here->by_columns);
  for (uint64_t at = 0; there && same && at < here->count; at += COMPARED) {
    const size_t n = here->count - at < COMPARED ? (size_t)(here->count - at) : COMPARED;
    if (checkpoint_read_floats(p->source.file, here, at, n, one, e) ||
        checkpoint_read_floats(a->file, there, at, n, other, e))
      return e->status;
    for (size_t i = 0; i < n; i++) same &= one[i] == other[i];
  }
  return same ? STATUS_OK
              : error_set(e, STATUS_CONFIG,
                          "\"%.150s\" differs from \"%.120s\": the adapter is for another model",
                          there->name, here->name);
}

/* The term of a tensor that an adapter before `w` changes, too; NULL: there is none. */
static struct adapter_term *find_earlier(const struct whole_plan *p, const struct whole_adapter *w,
                                         const struct checkpoint_entry *tensor) {
  for (const struct whole_adapter *before = p->adapter; before < w; before++)
    for (size_t i = 0; i < before->targets; i++)
      if (before->target[i].tensor == tensor && before->target[i].term)
        return before->target[i].term;
  return NULL;
}

static enum status check_bases(struct whole_plan *p, const struct whole_adapter *w,
                               struct error *e) {
  for (size_t i = 0; i < w->targets && e->status == STATUS_OK; i++)
    check_base(p, w->adapter, &w->target[i], e);
  return e->status;
}

static enum status merge(struct whole_plan *p, struct whole_adapter *w, struct error *e) {
  const struct adapter *a = w->adapter;
  for (size_t i = 0; i < w->targets && e->status == STATUS_OK; i++) {
    struct whole_adapter_target *target = &w->target[i];
    struct adapter_term *earlier = find_earlier(p, w, target->tensor);
    struct adapter_term *term = adapter_term_read(a, target->pair, target->turned, e);
    if (!term) break;
    if (earlier) {
      adapter_term_append(earlier, term);
      continue;
    }
    target->term = term;
    checkpoint_set_edit(p->source.file, target->tensor,
                        (struct checkpoint_edit){adapter_term_add, term}, e);
  }
  return e->status ? e->status : checkpoint_check_unchanged(a->file, e);
}

static enum status blame(const struct whole_adapter *w, struct error *e) {
  return text_before(e, "adapter: %.120s: ", text_tail(checkpoint_path(w->adapter->file)));
}

/* The copies of all adapters are of the model as it is before the first of them changes it. */
enum status whole_adapter_merge(struct whole_plan *p, struct error *e) {
  for (size_t i = 0; i < p->adapters; i++)
    if (check_bases(p, &p->adapter[i], e)) return blame(&p->adapter[i], e);
  for (size_t i = 0; i < p->adapters; i++)
    if (merge(p, &p->adapter[i], e)) return blame(&p->adapter[i], e);
  return STATUS_OK;
}

json_t *whole_adapter_describe(const struct whole_plan *p) {
  json_t *list = p->adapters ? json_array() : NULL;
  for (size_t i = 0; i < p->adapters && list; i++) {
    const struct whole_adapter *w = &p->adapter[i];
    const char *base = w->adapter->base;
    json_t *one = json_pack("{s:s, s:s*, s:I}", "name", text_file_name(w->adapter->folder), "base",
                            *base ? base : NULL, "modules", (json_int_t)w->targets);
    if (json_array_append_new(list, one) == 0) continue;
    json_decref(list);
    list = NULL;
  }
  return list;
}
