/* dialects: the forms of other services that are served, as a table. */
#ifndef SERVER_DIALECTS_H
#define SERVER_DIALECTS_H

#include "server/body/body_terms.h"
#include "server/dialect/dialect.h"

/* Finds one; there is none of DIALECT_NONE. */
const struct dialect *dialects_find(enum body_dialect dialect);

#endif
