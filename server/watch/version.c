/* version: the version of the program. The Makefile defines both words for only this file, so that
 * a new commit recompiles nothing else. */
#include "server/watch/version.h"

const char *version_number(void) { return ATTEND_VERSION; }
const char *version_commit(void) { return ATTEND_COMMIT; }
