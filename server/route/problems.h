/* problems: the types of errors: the HTTP status, slug and title of each, and its explanation,
 * which is at /problems/SLUG, the member `type` of an error. */
#ifndef SERVER_PROBLEMS_H
#define SERVER_PROBLEMS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/status.h"

#define PROBLEMS_TYPE "text/plain; charset=utf-8"

struct problem {
  unsigned code; /* the HTTP status */
  const char *slug, *title;
  const char *cause, *example, *remedy; /* NULL if no client gets the error */
};

const struct problem *problem_find(enum status status);

/* GET /problems: one line for each type. GET /problems/SLUG: the explanation of one; NULL with
 * *found unset: no type has the slug. Both return a text to be freed with free(), and its length;
 * NULL: no memory. */
char *problems_list(size_t *length);
char *problems_page(const char *slug, size_t *length, bool *found);

#endif
