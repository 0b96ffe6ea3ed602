/* version: the version of the program. */
#ifndef SERVER_VERSION_H
#define SERVER_VERSION_H

const char *version_number(void); /* "0.1.0" */
const char *version_commit(void); /* abbreviated, or "unknown" */

#endif
