/* api_keys: the bearer keys that open the service, read from a file, kept as SHA-256 digests.
 *
 * Nothing here ever says a key: not in an error, not in a log; and the file's text is wiped from
 * memory. A set is built whole and then only looked at, by any thread. */
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
 * token (letters, digits, - . _ ~ + / and = at the end); blanks around it, empty lines and lines
 * that begin with # are passed over. `*out` is NULL if the setting is empty. STATUS_CONFIG says
 * which line is at fault; also for a file without a key, and one that others may write. */
enum status api_keys_load(const struct config *c, struct api_keys **out, struct error *e);
void api_keys_free(struct api_keys *k); /* NULL is fine */

size_t api_keys_count(const struct api_keys *k);

/* May others of this machine read the file, and could we forbid it, being its owner? Where it is
 * another's, as a secret that is mounted, it is none of our business. */
bool api_keys_exposed(const struct api_keys *k);

/* How often one of the keys was found, and how many words of digests were compared for that: always
 * all of them, whatever is presented, so that the time it takes tells nothing. */
struct api_keys_look {
  uint64_t found, words;
};
struct api_keys_look api_keys_look(const struct api_keys *k, const char *token, size_t size);

#endif
