/* version: which attend this is; the Makefile gives both words to this file alone, so that a new
 * commit recompiles nothing else. */
#include "server/watch/version.h"

const char *version_number(void) { return ATTEND_VERSION; }
const char *version_commit(void) { return ATTEND_COMMIT; }
