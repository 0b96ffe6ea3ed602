/* api_keys: the bearer keys that open the service, read from a file, kept as SHA-256 digests.
 *
 * No key is ever printed, neither in an error nor in a log, and the file's text is wiped from
 * memory. A set does not change once it is loaded; any thread may read it. */
#ifndef CONFIG_API_KEYS_H
#define CONFIG_API_KEYS_H

#include "config/settings/config.h"

enum {
  API_KEYS_MOST = 1000,
  API_KEY_SHORTEST = 16, /* characters: a shorter key can be guessed */
  API_KEY_LONGEST = 512
};

struct api_keys;

/* Reads the file of the setting api_key_file: a key per line, of the characters of a token in RFC
 * 6750 (letters, digits, - . _ ~ + / and = at the end); blanks around a key, empty lines and lines
 * that begin with # are skipped. `*out` is NULL if the setting is empty. STATUS_CONFIG naming the
 * line at fault; also for a file without a key, and for one that other users may write. */
enum status api_keys_load(const struct config *c, struct api_keys **out, struct error *e);
void api_keys_free(struct api_keys *k); /* NULL is fine */

size_t api_keys_count(const struct api_keys *k);

/* May other users of this machine read the file? False if it has another owner, such as a mounted
 * secret: this process cannot change its mode. */
bool api_keys_exposed(const struct api_keys *k);

/* How many of the keys are equal to the given one, and how many words of digests were compared:
 * always all of them, so that the time this takes reveals nothing about the keys. */
struct api_keys_look {
  uint64_t found, words;
};
struct api_keys_look api_keys_look(const struct api_keys *k, const char *key, size_t size);

#endif
