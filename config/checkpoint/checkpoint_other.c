/* checkpoint_other: first bytes, and the files of a folder. */
#include "config/checkpoint/checkpoint_other.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "config/document/text.h"

/* Names of a folder that are looked at, and bytes of the one that is told. */
enum { NAMES_MOST = 10000, NAME_SIZE = 121 };

/* --- a file --- */

static bool is_json(const char *bytes, size_t size) {
  const char *at = bytes;
  while (at < bytes + size && memchr(" \t\r\n", *at, 4)) at++;
  return at < bytes + size && (*at == '{' || *at == '[');
}

/* Protocols 2 to 5; older ones have no mark. */
static bool is_pickle(const unsigned char *bytes, size_t size) {
  return size >= 2 && bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5;
}

enum status checkpoint_other_file(const void *bytes, size_t size, struct error *e) {
  static const struct {
    const char *begin, *is;
  } known[] = {
      {"\x93NUMPY", "is a .npy file, one array; numpy.savez makes an .npz archive of several"},
      {"\x89HDF", "is an HDF5 file; safetensors files and .npz archives are read"},
      {"GGUF", "is a GGUF file; safetensors files and .npz archives are read"},
      {"version https://git-lfs", "is a pointer of git-lfs to a file; git lfs pull gets the file"},
  };
  const char *is = NULL;
  if (is_json(bytes, size))
    is = "is JSON, but no index of shards, whose name would end with .index.json";
  if (is_pickle(bytes, size))
    is = "is a Python pickle; safetensors.torch.save_file writes what is read here";
  for (size_t i = 0; i < sizeof known / sizeof *known && !is; i++) {
    const size_t length = strlen(known[i].begin);
    if (size >= length && memcmp(bytes, known[i].begin, length) == 0) is = known[i].is;
  }
  if (!is || e->status != STATUS_CONFIG) return e->status;
  *e = (struct error){0};
  return error_set(e, STATUS_CONFIG, "%s", is);
}

/* --- a folder --- */

/* How well a name suits: an index stands for all of its files. */
static int rank_of(const char *name) {
  static const char *const ends[] = {".npz", ".safetensors", ".safetensors.index.json"};
  const size_t length = strlen(name);
  if (length >= NAME_SIZE || !text_is_utf8(name, length)) return 0;
  for (int i = 2; i >= 0; i--) {
    const size_t end = strlen(ends[i]);
    if (length > end && strcmp(name + length - end, ends[i]) == 0) return i + 1;
  }
  return 0;
}

enum status checkpoint_other_folder(const char *path, struct error *e) {
  DIR *folder = opendir(path);
  if (!folder) return e->status;
  char best[NAME_SIZE] = "", reason[ERROR_DETAIL_SIZE];
  int rank = 0;
  const struct dirent *entry;
  for (int i = 0; i < NAMES_MOST && (entry = readdir(folder)); i++) {
    const int r = rank_of(entry->d_name);
    if (r == 0 || r < rank || (r == rank && strcmp(entry->d_name, best) > 0)) continue;
    rank = r;
    snprintf(best, sizeof best, "%s", entry->d_name);
  }
  closedir(folder);
  if (rank == 0) return e->status;
  memcpy(reason, e->detail, sizeof reason);
  snprintf(e->detail, sizeof e->detail, "%.400s; it holds %s", reason, best);
  return e->status;
}
