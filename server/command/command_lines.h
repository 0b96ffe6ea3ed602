/* command_lines: `attend run MODEL --lines`: one request a line, one response a line, in order.
 *
 * The calling thread reads requests and writes responses, and computes those that are tiny; the
 * pool's workers compute all others. A few requests for each worker are under way; while the oldest
 * of them is computed, or its response is not read, no more lines are read. If the next line has
 * not arrived yet, finished responses are written first: a program may wait for each response. */
#ifndef SERVER_COMMAND_LINES_H
#define SERVER_COMMAND_LINES_H

#include "server/attention/attention_body.h"
#include "server/service/service.h"

/* Lines that have a response, and lines that have an error. */
struct command_lines_count {
  size_t answered, refused;
};

/* Reads from `in` and writes to `out` until the end of `in`, or a failure of either. A request with
 * an error gets its problem as its line, with the number of its line among all of them. Blank lines
 * are skipped. */
enum status command_lines(struct service *s, const struct model *m, const struct body_terms *terms,
                          int in, int out, struct command_lines_count *count, struct error *e);

#endif
