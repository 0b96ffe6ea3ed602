/* origins: a list of web origins as browsers write them: https://a.example,http://b.example:8080
 *
 * An origin is scheme://host or scheme://host:port, in lower case, without the default port of the
 * scheme: it is compared byte by byte with the header that a browser sends. */
#ifndef CONFIG_ORIGINS_H
#define CONFIG_ORIGINS_H

#include <stddef.h>

#include "core/base/status.h"

/* Accepts origins separated by commas, with blanks around them; or `*` alone, which means every
 * origin; or an empty list. `where` names the setting in the error, STATUS_CONFIG. */
enum status origins_check(const char *list, const char *where, struct error *e);

/* Finds the next origin from `at` on. Returns where the one after it begins; NULL:
 * there is none. */
const char *origins_next(const char *at, const char **origin, size_t *size);

#endif
