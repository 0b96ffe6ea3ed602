/* inspect: prints the tensors of a checkpoint, its layers, and notes. */
#include "config/inspect/inspect.h"

#include <stdlib.h>
#include <string.h>

#include "config/adapter/adapter.h"
#include "config/document/text.h"
#include "config/inspect/inspect_adapter.h"
#include "config/inspect/inspect_layers.h"
#include "config/inspect/inspect_whole.h"
#include "core/base/size.h"

/* --- tensors --- */

/* Prints a name from the file, with '?' for characters that must not reach a terminal. */
static void print_name(const char *name, FILE *out) {
  while (*name) {
    const size_t visible = text_visible(name), size = text_character(name, strnlen(name, 4));
    fwrite(visible ? name : "?", visible ? visible : 1, 1, out);
    name += size_max(size, 1);
  }
}

static void print_tensors(const struct checkpoint *file, FILE *out) {
  const size_t count = checkpoint_count(file);
  print_name(checkpoint_path(file), out);
  fprintf(out, ": %s, %zu tensor%s\n\n", checkpoint_container(file), count, count == 1 ? "" : "s");
  for (size_t i = 0; i < count; i++) {
    const struct checkpoint_entry *t = checkpoint_at(file, i);
    char shape[24 * SAFETENSORS_RANK_MAX] = "";
    for (size_t d = 0; d < t->rank; d++) {
      const size_t used = strlen(shape);
      snprintf(shape + used, sizeof shape - used, "%s%ju", d ? ", " : "", (uintmax_t)t->dim[d]);
    }
    fputs("  ", out);
    print_name(t->dtype, out);
    fprintf(out, "%*s [%s]%*s ", (int)(strlen(t->dtype) < 5 ? 5 - strlen(t->dtype) : 0), "", shape,
            (int)(strlen(shape) < 14 ? 14 - strlen(shape) : 0), "");
    print_name(t->name, out);
    fputc('\n', out);
  }
  fputc('\n', out);
}

/* --- layers --- */

static size_t count_served(const struct inspect_layers *all) {
  size_t count = 0;
  for (size_t i = 0; i < all->count; i++) count += all->layer[i].definition != NULL;
  return count;
}

/* The state of an inspection. */
struct inspect_print {
  const struct inspect_ask *ask;
  char *named; /* the path of the tensors in the definitions of layers */
  struct checkpoint *file;
  struct inspect_layers all;
  struct error modules; /* the mistake in modules.json */
  FILE *out, *notes;
};

static void print_unserved(const struct inspect_layer *l, FILE *notes) {
  struct error shown = l->error;
  text_plain(&shown);
  fputs("note: the layer at \"", notes);
  print_name(l->address, notes);
  fprintf(notes, "\" cannot be served: %s\n", shown.detail);
}

/* Checks the layer, if requested. Returns whether it still has a definition. */
static bool is_checked(const struct inspect_print *p, struct inspect_layer *l, struct error *e) {
  if (!l->definition || !p->ask->check) return l->definition;
  if (inspect_layers_check(l, p->file, e)) return false;
  if (!l->definition) print_unserved(l, p->notes);
  return l->definition;
}

/* Prints the models that can be served, and checks them unless `checked`; nothing if
 * there is none. */
static enum status print_models(struct inspect_print *p, bool checked, struct error *e) {
  const char *begin = "{\n  \"models\": {", *before = begin;
  for (size_t i = 0; i < p->all.count && e->status == STATUS_OK; i++) {
    struct inspect_layer *l = &p->all.layer[i];
    if (checked ? !l->definition : !is_checked(p, l, e)) continue;
    const char *address = l->address; /* up to a character that must not reach a terminal */
    while (*address && text_visible(address)) address += text_visible(address);
    const size_t ascii = *address ? JSON_ENSURE_ASCII : 0;
    fprintf(p->out, "%s\n    \"%s\": ", before, l->name);
    if (json_dumpf(l->definition, p->out, JSON_REAL_PRECISION(15) | ascii) != 0) error_no_memory(e);
    fflush(p->out);
    before = ",";
  }
  if (before != begin) fputs("\n  }\n}\n", p->out);
  return e->status;
}

/* Notes that layers have an unknown number of heads: with `misfit` those for which config.json has
 * a number that does not fit, else the others. Adds the usual number, if it is the same for all. */
static void print_headless(const struct inspect_layers *all, bool misfit, FILE *notes) {
  size_t usual = 0;
  bool any = false;
  for (size_t i = 0; i < all->count; i++) {
    const struct inspect_layer *l = &all->layer[i];
    if (!l->definition || !l->headless || (l->error.status != STATUS_OK) != misfit) continue;
    usual = any && usual != l->usual.query ? 0 : l->usual.query;
    any = true;
  }
  if (!any) return;
  fprintf(notes,
          "note: heads is unknown and left out: %s; look for num_heads or num_attention_heads "
          "where the file is from, and use --heads N",
          misfit ? "config.json does not fit"
                 : "neither the file nor a config.json beside it contains it");
  if (usual) fprintf(notes, " (%zu would be usual)", usual);
  fputc('\n', notes);
}

/* Prints the notes that need no check. */
static void print_notes(const struct inspect_layers *all, FILE *notes) {
  bool rope = false;
  for (size_t i = 0; i < all->count; i++) {
    const struct inspect_layer *l = &all->layer[i];
    rope |= l->definition && l->unbased;
    if (!l->definition) {
      print_unserved(l, notes);
      continue;
    }
    struct error shown = l->error;
    text_plain(&shown);
    if (shown.status) fprintf(notes, "note: %s: %s\n", l->name, shown.detail);
    if (l->unsaid)
      fprintf(notes, "note: %s: value_size is a guess: the file does not contain it\n", l->name);
  }
  print_headless(all, true, notes);
  print_headless(all, false, notes);
  if (rope)
    fputs("note: the base of rope is a guess: no config.json beside the file contains it\n", notes);
  if (all->more) fprintf(notes, "note: only the first %d layers are listed\n", INSPECT_LAYERS_MOST);
  for (size_t i = 0; i < all->notes.count; i++) fprintf(notes, "note: %s\n", all->notes.text[i]);
  fflush(notes);
}

/* --- the checkpoint --- */

/* Prints the layers, after the tensors. */
static enum status print_layers(struct inspect_print *p, struct error *e) {
  const struct inspect_layers *all = &p->all;
  /* The layouts, and how many layers of each can be served. */
  for (size_t i = 0; i < all->count; i++) {
    const char *layout = all->layer[i].layout;
    size_t count = 0, before = 0;
    for (size_t j = 0; j < all->count; j++) {
      if (strcmp(all->layer[j].layout, layout) != 0) continue;
      if (j < i) before++;
      count += all->layer[j].definition != NULL;
    }
    if (before > 0) continue;
    fprintf(p->out, "layout %s: %zu layer%s can be served\n", layout, count, count == 1 ? "" : "s");
  }
  print_notes(all, p->out);
  for (size_t i = 0; i < all->count && p->ask->check; i++) {
    struct inspect_layer *l = &all->layer[i];
    if (!l->definition) continue;
    if (is_checked(p, l, e)) fprintf(p->out, "checked: %s\n", l->name);
    fflush(p->out);
    if (e->status) return e->status;
  }
  if (count_served(all) == 0) {
    fputs("no layer is recognized; name the tensors of one with \"tensors\"\n", p->out);
    return STATUS_OK;
  }
  fputs("\nas models of a configuration file:\n\n", p->out);
  return print_models(p, true, e);
}

/* Notes the mistake in a document: layers can be served without it. */
static void print_ignored(const struct error *why, FILE *notes) {
  struct error shown = *why;
  text_plain(&shown);
  fprintf(notes, "note: %s: it is ignored\n", shown.detail);
}

static enum status print_checkpoint(struct inspect_print *p, struct error *e) {
  const struct inspect_wish wish = {.path = p->named, .heads = p->ask->heads};
  struct hints hints = {0};
  struct error unread = {0};
  if (!p->ask->models_only) {
    print_tensors(p->file, p->out);
    fflush(p->out);
    p->notes = p->out;
    if (adapter_is(p->ask->path)) return inspect_adapter_print(p->ask, p->out, e);
    if (inspect_whole_print(p->ask, p->out, e)) return e->status;
  } else if (p->modules.status) {
    print_ignored(&p->modules, p->notes);
  }
  if (hints_read(&hints, checkpoint_path(p->file), &unread, e) == STATUS_OK &&
      inspect_layers_find(&p->all, p->file, &wish, &hints, e) == STATUS_OK) {
    if (unread.status) print_ignored(&unread, p->notes);
    if (!p->ask->models_only) {
      print_layers(p, e);
    } else {
      print_notes(&p->all, p->notes);
      if (print_models(p, false, e) == STATUS_OK && count_served(&p->all) == 0)
        error_set(e, STATUS_CONFIG,
                  "%s: no layer of it is recognized; name the tensors of one with \"tensors\"",
                  text_tail(p->ask->path));
    }
  }
  hints_free(&hints);
  if (e->status == STATUS_OK && (fflush(p->out) != 0 || ferror(p->out)))
    error_set(e, STATUS_SYSTEM, "cannot write what the checkpoint holds");
  return e->status;
}

enum status inspect_file(const struct inspect_ask *ask, FILE *out, FILE *notes, struct error *e) {
  struct inspect_print p = {.ask = ask, .out = out, .notes = notes};
  char *place = NULL;
  if (inspect_whole_place(ask, &place, &p.named, &p.modules, e) == STATUS_OK)
    p.file = checkpoint_open(place, e);
  if (p.file)
    print_checkpoint(&p, e);
  else if (p.modules.status && e->status == STATUS_CONFIG)
    *e = p.modules; /* it would name the folder of the tensors */
  free(place);
  free(p.named);
  inspect_layers_free(&p.all);
  checkpoint_free(p.file);
  return text_plain(e);
}
