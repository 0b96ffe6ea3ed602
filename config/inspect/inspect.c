/* inspect: prints what a checkpoint holds. */
#include "config/inspect/inspect.h"

#include <string.h>

#include "config/document/text.h"
#include "config/inspect/inspect_layers.h"
#include "core/run/size.h"

/* --- tensors --- */

/* Prints a name from the file, with '?' for what must not reach a terminal. */
static void print_name(const char *name, FILE *out) {
  while (*name) {
    const size_t visible = text_visible(name), size = text_character(name, strnlen(name, 4));
    fwrite(visible ? name : "?", visible ? visible : 1, 1, out);
    name += size_max(size, 1);
  }
}

static bool is_visible(const char *name) {
  while (*name && text_visible(name)) name += text_visible(name);
  return *name == '\0';
}

static void print_tensors(const struct checkpoint *file, const char *path, FILE *out) {
  const size_t count = checkpoint_count(file);
  print_name(path, out);
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

static enum status print_models(const struct inspect_layers *all, FILE *out, struct error *e) {
  const char *between = "";
  fputs("{\n  \"models\": {", out);
  for (size_t i = 0; i < all->count; i++) {
    const struct inspect_layer *l = &all->layer[i];
    if (!l->definition) continue;
    fprintf(out, "%s\n    \"%s\": ", between, l->name);
    const size_t ascii = is_visible(l->address) ? 0 : JSON_ENSURE_ASCII;
    if (json_dumpf(l->definition, out, JSON_REAL_PRECISION(15) | ascii) != 0)
      return error_set(e, STATUS_OUT_OF_MEMORY, "no memory to print a definition");
    between = ",";
  }
  fputs("\n  }\n}\n", out);
  return STATUS_OK;
}

/* Prints which layouts there are, and how many layers of each can be served. */
static void print_families(const struct inspect_layers *all, FILE *out) {
  for (size_t i = 0; i < all->count; i++) {
    const char *layout = all->layer[i].layout;
    size_t count = 0, before = 0;
    for (size_t j = 0; j < all->count; j++) {
      if (strcmp(all->layer[j].layout, layout) != 0) continue;
      if (j < i) before++;
      count += all->layer[j].definition != NULL;
    }
    if (before == 0)
      fprintf(out, "layout %s: %zu layer%s can be served\n", layout, count, count == 1 ? "" : "s");
  }
}

/* Is a number of heads guessed, where config.json says one that does not fit (`told`) or says
 * none? */
static bool any_guessed(const struct inspect_layers *all, bool told) {
  for (size_t i = 0; i < all->count; i++) {
    const struct inspect_layer *l = &all->layer[i];
    if (l->definition && l->guessed && (l->error.status != STATUS_OK) == told) return true;
  }
  return false;
}

static void print_notes(const struct inspect_layers *all, const struct error *why, FILE *notes) {
  bool rope = false;
  if (why->status) fprintf(notes, "note: %s: it is ignored\n", why->detail);
  for (size_t i = 0; i < all->count; i++) {
    const struct inspect_layer *l = &all->layer[i];
    struct error shown = l->error;
    text_plain(&shown);
    rope |= l->definition && l->unbased;
    if (!l->definition) {
      fputs("note: the layer at \"", notes);
      print_name(l->address, notes);
      fprintf(notes, "\" cannot be served: %s\n", shown.detail);
    } else if (shown.status) {
      fprintf(notes, "note: %s: %s\n", l->name, shown.detail);
    }
    if (l->definition && l->unsaid)
      fprintf(notes, "note: %s: value_size is a guess: the file does not tell it\n", l->name);
  }
  if (any_guessed(all, true))
    fputs("note: heads is a guess, heads of 64 columns or fewer: what config.json says does not "
          "fit\n",
          notes);
  if (any_guessed(all, false))
    fputs("note: heads is a guess, heads of 64 columns or fewer: the file does not tell it, and no "
          "config.json beside it does\n",
          notes);
  if (rope)
    fputs("note: the base of rope is a guess: no config.json beside the file tells it\n", notes);
  if (all->more) fprintf(notes, "note: only the first %d layers are listed\n", INSPECT_LAYERS_MOST);
  for (size_t i = 0; i < all->notes.count; i++) fprintf(notes, "note: %s\n", all->notes.text[i]);
}

static enum status print_all(const struct checkpoint *file, const char *path,
                             const struct inspect_layers *all, const struct error *why,
                             bool models_only, FILE *out, FILE *notes, struct error *e) {
  const size_t count = count_served(all);
  if (!models_only) {
    print_tensors(file, path, out);
    print_families(all, out);
    notes = out;
  }
  print_notes(all, why, notes);
  if (count == 0 && models_only)
    return error_set(e, STATUS_CONFIG,
                     "%s: no layer of it can be served as it is; \"tensors\" can "
                     "name the tensors of one outright",
                     text_tail(path));
  if (count == 0) {
    fputs("no layer can be served as it is; \"tensors\" can name the tensors of one outright\n",
          out);
  } else {
    if (!models_only) fputs("\nas models of a configuration file:\n\n", out);
    print_models(all, out, e);
  }
  if (e->status == STATUS_OK && (fflush(out) != 0 || ferror(out)))
    error_set(e, STATUS_SYSTEM, "cannot write what the checkpoint holds");
  return e->status;
}

enum status inspect_file(const char *path, bool models_only, FILE *out, FILE *notes,
                         struct error *e) {
  struct hints hints = {0};
  struct inspect_layers all = {0};
  struct error why = {0};
  struct checkpoint *file = checkpoint_open(path, e);
  if (file && hints_read(&hints, checkpoint_path(file), &why, e) == STATUS_OK &&
      inspect_layers_find(&all, file, path, &hints, e) == STATUS_OK)
    print_all(file, path, &all, &why, models_only, out, notes, e);
  inspect_layers_free(&all);
  hints_free(&hints);
  checkpoint_free(file);
  return text_plain(e);
}
