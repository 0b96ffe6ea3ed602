/* checkpoint_torch: writes the command that converts PyTorch's file to an .npz archive. */
#include "config/checkpoint/checkpoint_torch.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "config/document/text.h"

enum {
  PATH_MOST = 90,
  QUOTED_SIZE = 4 * (PATH_MOST + 4) + 3,
  WORDS_SIZE = 180 /* leaves room for what the callers put before the message */
};

/* A name of at most PATH_MOST characters as one word of a shell: as it is, or between single quotes
 * if a character has a meaning for the shell. */
static const char *quote_word(const char *name, char out[QUOTED_SIZE]) {
  static const char plain[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-+,:@%/";
  if (*name && name[strspn(name, plain)] == '\0') return name;
  char *to = out;
  *to++ = '\'';
  for (; *name; name++) {
    if (*name == '\'') to = stpcpy(to, "'\\'");
    *to++ = *name;
  }
  *to++ = '\'';
  *to = '\0';
  return out;
}

/* Writes the arguments of the command: the file, and the path with .npz instead of its extension.
 * False if they are too long. */
static bool write_words(const char *path, char out[WORDS_SIZE]) {
  char archive[PATH_MOST + 5], from[QUOTED_SIZE], to[QUOTED_SIZE];
  if (strlen(path) > PATH_MOST) return false;
  const char *name = text_file_name(path);
  const char *dot = strrchr(name, '.');
  const size_t length = dot && dot > name ? (size_t)(dot - path) : strlen(path);
  snprintf(archive, sizeof archive, "%.*s.npz", (int)length, path);
  return snprintf(out, WORDS_SIZE, "%s %s", quote_word(path, from), quote_word(archive, to)) <
         WORDS_SIZE;
}

enum status checkpoint_torch_refuse(const char *path, struct error *e) {
  static const char is[] = "is a PyTorch pickle, which is not supported";
  const char *name = text_file_name(path);
  char words[WORDS_SIZE];
  const bool whole = write_words(path, words);
  if (!whole && !write_words(name, words))
    return error_set(e, STATUS_CONFIG, "%s: save its tensors with numpy.savez", is);
  return error_set(e, STATUS_CONFIG,
                   "%s: convert it to .npz%s: python3 -c \"import sys, torch, numpy; "
                   "numpy.savez(sys.argv[2], **{k: v.float().numpy() for k, v in "
                   "torch.load(sys.argv[1], map_location='cpu').items()})\" %s",
                   is, whole ? "" : " in its folder", words);
}
