/* origins: a list of web origins, as a browser writes them: https://a.example,http://b.example:8080
 *
 * An origin is scheme://host or scheme://host:port and nothing besides, in lower case, and without
 * the port that the scheme has anyway: it is compared byte by byte with what a browser sends. */
#ifndef CONFIG_ORIGINS_H
#define CONFIG_ORIGINS_H

#include <stddef.h>

#include "core/base/status.h"

/* Accepts origins separated by commas, with blanks around them; or `*` alone, which means every
 * origin; or nothing. `where` names the setting in the error (STATUS_CONFIG). */
enum status origins_check(const char *list, const char *where, struct error *e);

/* Finds the next element from `at` on. Returns where to go on, or NULL behind the last one. */
const char *origins_next(const char *at, const char **origin, size_t *size);

#endif
