/* inspect_name: makes names from paths and addresses, and paths by their words alone: links are not
 * followed. */
#include "config/inspect/inspect_name.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/document/file.h"
#include "config/document/text.h"
#include "core/base/size.h"

/* A part of a path. */
struct name_part {
  const char *at;
  size_t length;
};

static bool is_part(const struct name_part *p, const char *word) {
  return strlen(word) == p->length && memcmp(p->at, word, p->length) == 0;
}

/* The last part of the path's first `length` bytes. */
static struct name_part last_part(const char *path, size_t length) {
  size_t begin = length;
  while (begin > 0 && path[begin - 1] != '/') begin--;
  return (struct name_part){.at = path + begin, .length = length - begin};
}

/* The name of a folder, given by its absolute path. A folder in the cache of Hugging Face,
 * models--ORGANIZATION--NAME/snapshots/REVISION, has the model's name. */
static struct name_part folder_part(const char *path) {
  struct name_part own = last_part(path, strlen(path));
  if (own.at - path < 2) return own;
  const struct name_part above = last_part(path, (size_t)(own.at - path) - 1);
  if (!is_part(&above, "snapshots") || above.at - path < 2) return own;
  own = last_part(path, (size_t)(above.at - path) - 1);
  for (size_t i = own.length; i >= 2; i--)
    if (own.at[i - 2] == '-' && own.at[i - 1] == '-')
      return (struct name_part){.at = own.at + i, .length = own.length - i};
  return own;
}

/* Replaces characters that a model's name cannot have. */
static void make_name(char *name) {
  for (; *name; name++) {
    const char letter[] = {*name, '\0'};
    if (!text_is_model_name(letter)) *name = '_';
  }
}

static void write_part(const struct name_part *p, char out[INSPECT_NAME_FILE]) {
  snprintf(out, INSPECT_NAME_FILE, "%.*s", (int)size_min(p->length, INSPECT_NAME_FILE - 1), p->at);
  make_name(out);
}

void inspect_name_file(const char *path, char out[INSPECT_NAME_FILE]) {
  struct name_part name = last_part(path, strlen(path));
  const size_t folder = (size_t)(name.at - path);
  static const char *const ends[] = {".safetensors.index.json", ".index.json", ".safetensors",
                                     ".npz"};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    const size_t end = strlen(ends[i]);
    if (name.length < end || memcmp(name.at + name.length - end, ends[i], end) != 0) continue;
    name.length -= end;
    break;
  }
  write_part(&name, out);
  if (!is_part(&name, "model") && !is_part(&name, "pytorch_model")) return;
  char *above = strndup(path, folder);
  char *whole = above ? realpath(folder ? above : ".", NULL) : NULL;
  if (whole) name = folder_part(whole);
  if (whole && name.length > 0) write_part(&name, out);
  free(whole);
  free(above);
}

void inspect_name_layer(const char *file, const struct layout_place *p, char out[INSPECT_NAME]) {
  char tail[LAYOUT_ADDRESS_SIZE];
  size_t length = strlen(p->address);
  if (length > 0 && p->address[length - 1] == '.') length--;
  if (p->numbered) {
    snprintf(tail, sizeof tail, "%s%zu%s", p->family->label, p->layer,
             p->family->cross ? "-cross" : "");
  } else {
    snprintf(tail, sizeof tail, "%.*s", (int)length, p->address);
  }
  if (!*file && !*tail) snprintf(tail, sizeof tail, "%s", p->family->label);
  const size_t room = INSPECT_NAME_STEM - strlen(file) - 1, size = strlen(tail);
  snprintf(out, INSPECT_NAME_STEM + 1, "%s%s%.*s", file, *file && *tail ? "." : "", (int)room,
           tail + (size > room ? size - room : 0));
  make_name(out);
}

/* --- the path --- */

static void skip_current_folder(const char **path) {
  while (strncmp(*path, "./", 2) == 0) *path += 2 + strspn(*path + 2, "/");
}

char *inspect_path_for(const char *checkpoint, const char *written, struct error *e) {
  skip_current_folder(&written);
  const char *slash = strrchr(written, '/');
  const size_t length =
      slash ? (size_t)(slash - written) + 1 : 0; /* of the folder, including its / */
  const char *from = checkpoint;
  char *path = NULL, *here = NULL;
  skip_current_folder(&from);
  if (checkpoint[0] == '/' || length == 0) {
    path = strdup(checkpoint);
  } else if (strncmp(from, written, length) == 0 && from[length]) {
    path = strdup(from + length);
  } else if ((here = getcwd(NULL, 0))) {
    path = file_path(here, from);
  }
  if (!path && !here && errno != ENOMEM)
    error_set(e, STATUS_SYSTEM, "the current folder is not known: %s", strerror(errno));
  if (!path) error_no_memory(e);
  free(here);
  return path;
}
