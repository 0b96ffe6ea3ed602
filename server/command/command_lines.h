/* command_lines: `attend run MODEL --lines`: one request a line, one answer a line, in order.
 *
 * The calling thread reads requests and writes answers, and computes those that are tiny; the
 * pool's workers compute all others. A few requests for each worker are under way; while the oldest
 * of them is computed, or its answer is not read, no more lines are taken. Where the next line is
 * not there yet, what is done is written first: a program may ask line by line. */
#ifndef SERVER_COMMAND_LINES_H
#define SERVER_COMMAND_LINES_H

#include "server/attention/attention_body.h"
#include "server/service/service.h"

/* What has become of the lines that hold a request. */
struct command_lines_count {
  size_t answered, refused;
};

/* Reads from `in` and writes to `out` until the end of `in`, or a failure of either. A request that
 * is refused gets its problem as its line, with the number of its line among all of them. Blank
 * lines are skipped. */
enum status command_lines(struct service *s, const struct model *m, const struct body_terms *terms,
                          int in, int out, struct command_lines_count *count, struct error *e);

#endif
