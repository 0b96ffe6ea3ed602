/* api_keys: the bearer keys that open the service, read from a file, kept as SHA-256 digests.
 *
 * No key is ever printed, neither in an error nor in a log, and the file's text is wiped from
 * memory. A set does not change once it is loaded; any thread may read it. */
#ifndef CONFIG_API_KEYS_H
#define CONFIG_API_KEYS_H

#include "config/settings/config.h"

enum {
  API_KEYS_MOST = 1000,
  API_KEY_SHORTEST = 16, /* characters: what is shorter can be guessed */
  API_KEY_LONGEST = 512
};

struct api_keys;

/* Reads the file of setting api_key_file: a key a line, of the characters that RFC 6750 gives a
 * token (letters, digits, - . _ ~ + / and = at the end); blanks around a key, empty lines and lines
 * that begin with # are skipped. `*out` is NULL if the setting is empty. STATUS_CONFIG names the
 * line at fault; also for a file without a key, and for one that other users may write. */
enum status api_keys_load(const struct config *c, struct api_keys **out, struct error *e);
void api_keys_free(struct api_keys *k); /* NULL is fine */

size_t api_keys_count(const struct api_keys *k);

/* May other users of this machine read the file, although it is ours to forbid it? The mode of a
 * file with another owner, such as a mounted secret, is not ours to set. */
bool api_keys_exposed(const struct api_keys *k);

/* How many of the keys are the one presented, and how many words of digests were compared: always
 * all of them, so that the time this takes tells nothing about the keys. */
struct api_keys_look {
  uint64_t found, words;
};
struct api_keys_look api_keys_look(const struct api_keys *k, const char *key, size_t size);

#endif
