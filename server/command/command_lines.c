/* command_lines: `attend run MODEL --lines`: one request a line, one response a line, in order. */
#include "server/command/command_lines.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/size.h"
#include "server/command/command.h"
#include "server/command/line_reader.h"
#include "server/http/reply.h"
#include "server/number/number.h"
#include "server/service/exchange.h"

enum { UNDER_WAY = 4 }; /* requests for each worker */

/* A request that is under way. */
struct command_lines_entry {
  struct exchange exchange; /* the first member */
  size_t number;            /* of its line */
  int wake;
  atomic_bool is_done;
};

/* The requests under way are a ring: `count` entries from `first`, the oldest. */
struct command_lines_run {
  struct service *service;
  const struct model *model;
  const struct body_terms *terms;
  struct line_reader reader;
  int out, wake; /* `wake`, an eventfd, can be read when an entry has become done */
  bool is_cut;   /* writing has failed */
  struct command_lines_entry *ring;
  size_t room, first, count;
  struct command_lines_count *counted;
  struct error *error; /* of reading or writing; the exchange has the error of its request */
};

/* After the flag is set, the entry is no longer the worker's. */
static void mark_done(struct exchange *x) {
  struct command_lines_entry *entry = (struct command_lines_entry *)x;
  const int wake = entry->wake;
  const uint64_t one = 1;
  atomic_store_explicit(&entry->is_done, true, memory_order_release);
  must(write(wake, &one, sizeof one) == sizeof one);
}

/* Waits until an entry has become done or, if `input`, until something can be read. Returns whether
 * it can. */
static bool wait_for_more(struct command_lines_run *l, bool input) {
  struct pollfd p[2] = {{.fd = l->wake, .events = POLLIN},
                        {.fd = input ? l->reader.in : -1, .events = POLLIN}};
  uint64_t number;
  while (poll(p, 2, -1) < 0) must(errno == EINTR);
  if (p[0].revents) must(read(l->wake, &number, sizeof number) == sizeof number);
  return p[1].revents != 0;
}

/* --- responses --- */

static void write_pieces(struct command_lines_run *l, const struct iovec *piece, size_t pieces) {
  if (!l->is_cut) l->is_cut = command_write(l->out, piece, pieces, l->error) != STATUS_OK;
}

static void write_entry(struct command_lines_run *l, struct command_lines_entry *entry) {
  const struct exchange *x = &entry->exchange;
  if (x->error.status) {
    /* The problem is that of HTTP, with the line's number at its end. */
    char text[REPLY_ERROR_SIZE + 32];
    const char end[] = "}\n";
    const size_t length = reply_error_text(&x->error, ERROR_PROBLEM, text) - strlen(end);
    const int more =
        snprintf(text + length, sizeof text - length, ",\"line\":%zu%s", entry->number, end);
    l->counted->refused++;
    write_pieces(l, &(struct iovec){text, length + (size_t)more}, 1);
    return;
  }
  l->counted->answered++;
  write_pieces(l, x->answer.piece, x->answer.pieces);
  write_pieces(l, &(struct iovec){"\n", 1}, 1);
}

/* Writes the oldest responses, as far as they are done. */
static void write_done(struct command_lines_run *l) {
  while (l->count > 0) {
    struct command_lines_entry *entry = &l->ring[l->first];
    if (!atomic_load_explicit(&entry->is_done, memory_order_acquire)) return;
    write_entry(l, entry);
    exchange_end(&entry->exchange);
    l->first = (l->first + 1) % l->room;
    l->count--;
  }
}

static void write_all(struct command_lines_run *l) {
  write_done(l);
  while (l->count > 0) {
    wait_for_more(l, false);
    write_done(l);
  }
}

/* --- requests --- */

static bool prepare(struct command_lines_run *l, struct exchange *x,
                    const struct line_reader_line *line) {
  struct models_hold hold = models_hold(l->service->models, 0);
  exchange_begin(x, l->service, &hold, l->model, l->terms);
  exchange_feed(x, line->text, line->length);
  const uint64_t deadline = clock_now() + l->service->config->deadline_ms * CLOCK_MS;
  if (exchange_finish(x, deadline) && x->stream)
    error_at(&x->error, "/stream", "a line is a whole answer");
  return !x->error.status;
}

/* Begins a request. If the others leave no memory for it, it waits until they are done. */
static void begin_request(struct command_lines_run *l, const struct line_reader_line *line) {
  struct command_lines_entry *entry = &l->ring[(l->first + l->count) % l->room];
  struct exchange *x = &entry->exchange;
  x->done = mark_done;
  x->alone = true; /* all its memory is allocated here, or the request rejected here */
  entry->number = l->reader.number;
  entry->wake = l->wake;
  atomic_store_explicit(&entry->is_done, false, memory_order_relaxed);
  bool ready = prepare(l, x, line);
  if (x->error.status == STATUS_OVERLOADED && l->count > 0) {
    exchange_end(x);
    write_all(l);
    ready = prepare(l, x, line);
  }
  l->count++;
  if (ready)
    exchange_submit(x, 0);
  else
    mark_done(x);
}

static void answer_lines(struct command_lines_run *l) {
  bool whole = false; /* all lines have been read, and are under way */
  while (!whole && !l->is_cut) {
    struct line_reader_line line;
    bool has_room = false; /* all lines that were read are under way */
    while (l->count < l->room && !has_room) {
      has_room = !line_reader_next(&l->reader, &line);
      size_t blanks = 0;
      while (!has_room && blanks < line.length && is_blank(line.text[blanks])) blanks++;
      if (!has_room && blanks < line.length) begin_request(l, &line);
    }
    write_done(l);
    whole = has_room && l->reader.ended;
    if (has_room && !whole && wait_for_more(l, true))
      line_reader_fill(&l->reader, l->error);
    else if (l->count == l->room)
      wait_for_more(l, false);
  }
  write_all(l);
}

enum status command_lines(struct service *s, const struct model *m, const struct body_terms *terms,
                          int in, int out, struct command_lines_count *count, struct error *e) {
  struct command_lines_run l = {.service = s,
                                .model = m,
                                .terms = terms,
                                .out = out,
                                .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                                .room = size_min(UNDER_WAY * s->workers, s->config->max_queue),
                                .counted = count,
                                .error = e};
  *count = (struct command_lines_count){0};
  l.ring = calloc(l.room, sizeof *l.ring);
  line_reader_init(&l.reader, in, s->config->max_body_bytes);
  if (l.wake < 0)
    error_set(e, STATUS_SYSTEM, "cannot wait for lines: %s", strerror(errno));
  else if (!l.ring)
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the lines under way");
  else
    answer_lines(&l);
  pool_drain(s->pool, UINT64_MAX); /* then the workers have returned from mark_done */
  line_reader_done(&l.reader);
  free(l.ring);
  if (l.wake >= 0) close(l.wake);
  return e->status;
}
