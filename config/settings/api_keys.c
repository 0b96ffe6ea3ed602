/* api_keys: reads the file of keys, and compares digests in constant time. */
#include "config/settings/api_keys.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/document/digest.h"
#include "config/document/file.h"
#include "config/document/text.h"

enum {
  FILE_MOST = 1024 * 1024,
  WORDS = DIGEST_SIZE / sizeof(uint64_t),
};

struct api_keys_digest {
  uint64_t word[WORDS];
};

struct api_keys {
  size_t count;
  bool exposed;
  struct api_keys_digest digest[API_KEYS_MOST];
};

void api_keys_free(struct api_keys *k) { free(k); }

size_t api_keys_count(const struct api_keys *k) { return k->count; }
bool api_keys_exposed(const struct api_keys *k) { return k->exposed; }

static void digest_key(struct api_keys_digest *out, const char *key, size_t size) {
  unsigned char bytes[DIGEST_SIZE];
  digest_bytes(key, size, bytes);
  memcpy(out->word, bytes, sizeof bytes);
}

/* --- comparing --- */

struct api_keys_look api_keys_look(const struct api_keys *k, const char *key, size_t size) {
  struct api_keys_look look = {0};
  struct api_keys_digest presented;
  digest_key(&presented, key, size);
  for (size_t i = 0; i < k->count; i++) {
    uint64_t differ = 0;
    for (size_t w = 0; w < WORDS; w++) {
      differ |= presented.word[w] ^ k->digest[i].word[w];
      look.words++;
    }
    look.found += ((differ | (0 - differ)) >> 63) ^ 1; /* 1 if it is 0, without a branch */
  }
  return look;
}

/* --- reading --- */

/* The characters of a key: b64token in RFC 6750. */
static const char key_letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/";

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static enum status read_key_line(struct api_keys *k, const char *text, size_t size, size_t line,
                                 const char *path, struct error *e) {
  while (size > 0 && is_blank(text[0])) text++, size--;
  while (size > 0 && is_blank(text[size - 1])) size--;
  if (size == 0 || text[0] == '#') return STATUS_OK;
  size_t good = 0; /* characters that are allowed */
  while (good < size && text[good] && strchr(key_letters, text[good])) good++;
  while (good > 0 && good < size && text[good] == '=') good++;
  if (good < size)
    return error_set(e, STATUS_CONFIG,
                     "%s, line %zu: character %zu is not allowed in a key: letters, digits, "
                     "- . _ ~ + / and = at the end; a comment has a line of its own",
                     path, line, good + 1);
  if (size < API_KEY_SHORTEST || size > API_KEY_LONGEST)
    return error_set(e, STATUS_CONFIG, "%s, line %zu: a key has %d to %d characters, not %zu", path,
                     line, API_KEY_SHORTEST, API_KEY_LONGEST, size);
  if (k->count == API_KEYS_MOST)
    return error_set(e, STATUS_CONFIG, "%s, line %zu: more than %d keys", path, line,
                     API_KEYS_MOST);
  digest_key(&k->digest[k->count++], text, size);
  return STATUS_OK;
}

static enum status read_key_file(struct api_keys *k, int fd, size_t size, const char *path,
                                 struct error *e) {
  const struct file_stamp before = file_stamp(fd);
  if (size > FILE_MOST)
    return error_set(e, STATUS_CONFIG, "%s: larger than %d bytes", path, FILE_MOST);
  char *text = malloc(size + 1);
  if (!text) return error_set(e, STATUS_OUT_OF_MEMORY, "%s: out of memory", path);
  if (file_read_at(fd, 0, text, size, e))
    text_before(e, "%s: ", path);
  else if (!file_is_unchanged(fd, &before) || before.size != size) /* it may end with half a key */
    error_set(e, STATUS_CONFIG, "%s: was written to while it was read", path);
  const char *const end = text + size;
  const char *at = text;
  for (size_t line = 1; at < end && e->status == STATUS_OK; line++) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (!stop) stop = end;
    read_key_line(k, at, (size_t)(stop - at), line, path, e);
    at = stop + 1;
  }
  if (k->count == 0) error_set(e, STATUS_CONFIG, "%s: there is no key in it", path);
  explicit_bzero(text, size);
  free(text);
  return e->status;
}

static struct api_keys *load_key_file(const char *path, struct error *e) {
  const char *shown = text_tail(path);
  uint64_t size = 0;
  struct api_keys *k = calloc(1, sizeof *k);
  if (!k) {
    error_set(e, STATUS_OUT_OF_MEMORY, "%s: out of memory", shown);
    return NULL;
  }
  struct stat about = {0};
  const int fd = file_open(path, &size, e);
  if (fd < 0)
    text_before(e, "%s: ", shown);
  else if (fstat(fd, &about) != 0)
    error_set(e, STATUS_CONFIG, "%s: cannot be examined", shown);
  else if (about.st_mode & (S_IWGRP | S_IWOTH)) /* they could add a key */
    error_set(e, STATUS_CONFIG,
              "%s: users other than its owner may write it (mode %03o): chmod go-w", shown,
              (unsigned)about.st_mode & 0777);
  else
    read_key_file(k, fd, size <= FILE_MOST ? (size_t)size : FILE_MOST + 1, shown, e);
  /* That other users may read it can be intended: it is only recorded. */
  k->exposed = (about.st_mode & S_IROTH) && about.st_uid == geteuid();
  if (fd >= 0) close(fd);
  if (e->status == STATUS_OK) return k;
  api_keys_free(k);
  return NULL;
}

enum status api_keys_load(const struct config *c, struct api_keys **out, struct error *e) {
  *out = NULL;
  if (!*c->api_key_file) return STATUS_OK;
  char *path = file_path(c->directory, c->api_key_file);
  if (path)
    *out = load_key_file(path, e);
  else
    error_no_memory(e);
  free(path);
  if (e->status) text_before(e, "api_key_file: ");
  return text_plain(e);
}
