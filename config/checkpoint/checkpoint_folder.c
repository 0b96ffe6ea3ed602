/* checkpoint_folder: sorts the names in a folder, and chooses one. */
#include "config/checkpoint/checkpoint_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/file.h"
#include "config/document/text.h"

enum {
  ENTRIES_MOST = 10000, /* entries of a folder that are read */
  NAME_SIZE = 121,      /* of a name that is looked at, with its end */
  LISTED_MOST = 5       /* names that a message lists */
};

/* The names of one kind. */
struct folder_names {
  size_t count;
  char first[LISTED_MOST][NAME_SIZE]; /* the first of them, in the order of their bytes */
};

struct folder_content {
  const char *usual; /* the best of the usual names in the folder, or NULL */
  const char *torch; /* the best of PyTorch's usual names in the folder, or NULL */
  struct folder_names checkpoints, pickles, others;
};

static bool ends_with_one_of(const char *name, const char *const *ends) {
  while (*ends && !text_ends_with(name, *ends)) ends++;
  return *ends;
}

/* The last of the usual names that the folder has, where `found` is that of earlier entries. */
static const char *choose_usual(const char *const usual[2], const char *name, const char *found) {
  for (size_t i = 0; i < 2; i++)
    if (strcmp(name, usual[i]) == 0 && found != usual[1]) return usual[i];
  return found;
}

static void sort_entry(struct folder_content *f, const char *name) {
  static const char *const checkpoints[] = {".safetensors", ".safetensors.index.json", ".npz",
                                            NULL};
  static const char *const pickles[] = {".bin", ".bin.index.json", ".pt", ".pth", NULL};
  static const char *const usual[] = {"model.safetensors", "model.safetensors.index.json"};
  static const char *const torch[] = {"pytorch_model.bin", "pytorch_model.bin.index.json"};
  const size_t length = strlen(name);
  if (name[0] == '.' || length >= NAME_SIZE || !text_is_utf8(name, length)) return;
  f->usual = choose_usual(usual, name, f->usual);
  f->torch = choose_usual(torch, name, f->torch);
  struct folder_names *n = ends_with_one_of(name, checkpoints) ? &f->checkpoints
                           : ends_with_one_of(name, pickles)   ? &f->pickles
                                                               : &f->others;
  size_t at = n->count < LISTED_MOST ? n->count : LISTED_MOST;
  n->count++;
  while (at > 0 && strcmp(name, n->first[at - 1]) < 0) at--;
  if (at == LISTED_MOST) return;
  memmove(n->first + at + 1, n->first + at, (LISTED_MOST - 1 - at) * sizeof *n->first);
  snprintf(n->first[at], NAME_SIZE, "%s", name);
}

/* Writes "a, b and 3 more". */
static void list_names(const struct folder_names *n, char *out, size_t size) {
  size_t used = 0;
  *out = '\0';
  for (size_t i = 0; i < n->count && i < LISTED_MOST && used < size; i++)
    used += (size_t)snprintf(out + used, size - used, "%s%.60s", i ? ", " : "", n->first[i]);
  if (n->count > LISTED_MOST && used < size)
    snprintf(out + used, size - used, " and %zu more", n->count - LISTED_MOST);
}

static enum status refuse_folder(const struct folder_content *f, struct error *e) {
  char names[360];
  if (f->checkpoints.count > 0 || f->pickles.count > 0) {
    list_names(f->checkpoints.count > 0 ? &f->checkpoints : &f->pickles, names, sizeof names);
    return error_set(e, STATUS_CONFIG, "is a directory with several checkpoints, name one: %s",
                     names);
  }
  list_names(&f->others, names, sizeof names);
  return error_set(e, STATUS_CONFIG,
                   "is a directory without a safetensors file, an .npz archive, a PyTorch file or "
                   "an index of shards; it holds %s",
                   *names ? names : "no printable name");
}

char *checkpoint_folder_file(const char *path, struct error *e) {
  struct folder_content f = {0};
  const char *name = NULL;
  if (file_is_folder(path)) {
    DIR *folder = opendir(path);
    const struct dirent *entry;
    if (!folder) {
      error_set(e, errno == ENOMEM ? STATUS_OUT_OF_MEMORY : STATUS_CONFIG,
                "is a directory that cannot be read: %s", strerror(errno));
      return NULL;
    }
    for (int i = 0; i < ENTRIES_MOST && (entry = readdir(folder)); i++)
      sort_entry(&f, entry->d_name);
    closedir(folder);
    if (f.usual)
      name = f.usual;
    else if (f.checkpoints.count > 0)
      name = f.checkpoints.count == 1 ? f.checkpoints.first[0] : NULL;
    else
      name = f.torch ? f.torch : f.pickles.count == 1 ? f.pickles.first[0] : NULL;
    if (!name) {
      refuse_folder(&f, e);
      return NULL;
    }
  }
  const size_t length = strlen(path);
  const bool slash = length > 0 && path[length - 1] == '/';
  char *file = !name ? strdup(path) : slash ? file_beside(path, name) : file_path(path, name);
  if (!file) error_no_memory(e);
  return file;
}
