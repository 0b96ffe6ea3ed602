/* encode: the answer's text, planned in pieces, then written by any threads.
 *
 * The text is a walk: each section (outputs, attention weights, ...) is opened, its rows follow, it
 * is closed. A piece is a stretch of that walk. The same walk is made to measure, to cut and to
 * write, so that they cannot disagree. */
#include "server/encode.h"

#include <math.h>
#include <string.h>

#include "core/measures.h"
#include "core/size.h"
#include "server/encode_section.h"

enum {
  PIECE_NUMBERS = 4096, /* about so many in a piece: some 45 KiB of text, 10 us of work; or, where
                           that would be too many pieces, more */
  COUNT_ROOM = 20,      /* of a size_t */
  BRACKETS_ROOM = 8,    /* of a step: a comma, two opened, two closed */
  LINE = 64             /* pieces of different workers do not share a cache line */
};

static const char HEAD_BEGIN[] = "{\"model\":\"", HEAD_END[] = "\",";
static const char ROWS_BEGIN[] = "\"rows\":", ROWS_END[] = ",";

enum part { OPEN, ROWS, CLOSE };

/* A place in the walk. */
struct place {
  size_t section;
  enum part part;
  size_t item, head, row;
};

/* A step of the walk: an opening, a closing, or rows of one head of one item. */
struct step {
  struct place at;
  size_t rows;    /* 0 with ROWS: the list of rows is empty */
  size_t width;   /* of each row */
  size_t numbers; /* rows * width */
  size_t spent;   /* of the numbers that a piece may have */
  size_t room;    /* bytes that its text may need */
};

struct piece {
  struct place from;
  size_t steps;
};

struct answer_plan {
  const struct call *call;
  const char *model;
  bool unbatched;
  size_t sections;
  struct section section[SECTIONS_MAX];
  size_t piece_numbers; /* about so many in each */
  struct piece *piece;
};

static bool at_end(const struct answer_plan *p, const struct place *at) {
  return at->section == p->sections;
}

/* Bytes of the head of the object. */
static size_t head_room(const struct answer_plan *p) {
  return strlen(HEAD_BEGIN) + strlen(p->model) + strlen(HEAD_END) + strlen(ROWS_BEGIN) +
         COUNT_ROOM + strlen(ROWS_END);
}

/* The step that begins at `at`, with room left for about `numbers` more in its piece. */
static struct step step_from(const struct answer_plan *p, const struct place *at, size_t numbers) {
  const struct section *s = &p->section[at->section];
  struct step step = {.at = *at};
  if (at->part == OPEN) {
    step.room = strlen(s->open) + BRACKETS_ROOM;
    if (at->section == 0) step.room += head_room(p);
  } else if (at->part == CLOSE) {
    step.room = BRACKETS_ROOM;
  } else {
    step.width = section_width(s, p->call, at->item);
    size_t left = section_rows(s, p->call, at->item) - at->row;
    size_t want = numbers / size_max(step.width, 1) + 1;
    step.rows = size_min(left, want);
    step.numbers = step.rows * step.width;
    step.room = step.numbers * NUMBER_ROOM + step.rows * s->row_room + BRACKETS_ROOM;
  }
  /* What has no numbers counts as well, or a piece of empty rows could grow without end. */
  step.spent = size_max(step.numbers, size_max(step.rows, 1));
  return step;
}

static void advance(const struct answer_plan *p, struct place *at, size_t rows) {
  const struct section *s = &p->section[at->section];
  switch (at->part) {
  case OPEN:
    at->part = s->items ? ROWS : CLOSE;
    break;
  case CLOSE:
    *at = (struct place){.section = at->section + 1};
    break;
  case ROWS:
    at->row += rows;
    if (at->row < section_rows(s, p->call, at->item)) break;
    at->row = 0;
    if (++at->head < s->heads) break;
    at->head = 0;
    if (++at->item == s->items) at->part = CLOSE;
  }
}

/* Cuts the piece that begins at `at` and moves `at` behind it. Returns the bytes it may need. */
static size_t cut_piece(const struct answer_plan *p, struct place *at, struct piece *out) {
  size_t room = 0, left = p->piece_numbers;
  *out = (struct piece){.from = *at};
  while (left > 0 && !at_end(p, at)) {
    struct step step = step_from(p, at, left);
    room += step.room;
    left -= size_min(left, step.spent);
    out->steps++;
    advance(p, at, step.rows);
  }
  return room;
}

static size_t memory_of(size_t room) { return size_round_up(room + NUMBER_WRITE_MARGIN, LINE); }

static enum status over_limit(const struct decode_limits *limits, struct error *e) {
  return error_limit(e, "max_answer_bytes", "the answer may need more than %zu bytes",
                     limits->max_answer_bytes);
}

/* What all steps spend, without walking them: from the items alone, whatever the heads. */
static double all_spent(const struct answer_plan *p) {
  double spent = 2.0 * (double)p->sections;
  for (size_t i = 0; i < p->sections; i++) {
    const struct section *s = &p->section[i];
    for (size_t item = 0; item < s->items; item++) {
      const double rows = (double)section_rows(s, p->call, item);
      const double width = (double)section_width(s, p->call, item);
      spent += (double)s->heads * fmax(rows * fmax(width, 1), 1);
    }
  }
  return spent;
}

/* Chooses the size of the pieces; returns how many there may be. Each but the last spends what a
 * piece has. */
static size_t bound_pieces(struct answer_plan *p) {
  const double spent = all_spent(p), least = spent / (ANSWER_PIECES_MAX - 2);
  p->piece_numbers = least < (double)PIECE_NUMBERS ? PIECE_NUMBERS : (size_t)least + 1;
  return (size_t)(spent / (double)p->piece_numbers) + 1;
}

/* Cuts the pieces and counts the memory for those that do not fit into what the call leaves: their
 * lengths are what each needs. */
static enum status cut(struct answer *a, const struct decode_limits *limits, size_t *memory,
                       struct error *e) {
  struct answer_plan *p = a->plan;
  struct spare left = p->call->left;
  struct place at = {0};
  size_t text = 0;
  for (*memory = 0; !at_end(p, &at); a->pieces++) {
    const size_t room = cut_piece(p, &at, &p->piece[a->pieces]);
    /* Adding stops at the first sum over the limit, long before it could overflow. */
    if (room > limits->max_answer_bytes - text) return over_limit(limits, e);
    text += room;
    a->piece[a->pieces].iov_len = memory_of(room);
    if (!spare_take(&left, memory_of(room))) *memory += memory_of(room);
  }
  return STATUS_OK;
}

static struct answer_plan *plan_new(const struct model *m, const struct decoded *d,
                                    struct arena *arena, struct error *e) {
  struct answer_plan *p = arena_alloc(arena, 1, sizeof *p, e);
  if (!p) return NULL;
  const struct call *c = &d->call;
  *p = (struct answer_plan){.call = c, .model = m->name, .unbatched = d->unbatched};
  p->sections = sections_of(m, c, p->section);
  return p;
}

static enum status plan(struct answer *a, const struct model *m, const struct decoded *d,
                        const struct decode_limits *limits, struct arena *arena, struct error *e) {
  struct answer_plan *p = plan_new(m, d, arena, e);
  if (!p) return e->status;
  const size_t most = bound_pieces(p);
  *a = (struct answer){.plan = p, .piece = arena_alloc(arena, most, sizeof *a->piece, e)};
  p->piece = arena_alloc(arena, most, sizeof *p->piece, e);
  size_t memory;
  if (!a->piece || !p->piece || cut(a, limits, &memory, e)) return e->status;
  char *text = arena_alloc(arena, memory, 1, e);
  if (!text) return e->status;
  struct spare left = d->call.left;
  for (size_t i = 0; i < a->pieces; i++) {
    const size_t bytes = a->piece[i].iov_len;
    a->piece[i].iov_base = spare_take(&left, bytes);
    if (a->piece[i].iov_base) continue;
    a->piece[i].iov_base = text;
    text += bytes;
  }
  return STATUS_OK;
}

enum status answer_plan(struct answer *a, enum answer_form form, const struct model *m,
                        const struct decoded *d, const struct decode_limits *limits,
                        struct arena *arena, struct error *e) {
  must(form == ANSWER_JSON);
  if (plan(a, m, d, limits, arena, e) != STATUS_OK) *a = (struct answer){0};
  return e->status;
}

/* --- writing --- */

/* A model's name needs no escaping. */
static char *write_head(const struct answer_plan *p, char *out) {
  out = write_text(out, HEAD_BEGIN);
  out = write_text(out, p->model);
  out = write_text(out, HEAD_END);
  if (!p->call->want_measures) return out;
  out = write_text(out, ROWS_BEGIN);
  out = number_write_integer(out, (int64_t)p->call->measures->rows);
  return write_text(out, ROWS_END);
}

/* Has the section the level of the items? */
static bool has_items(const struct answer_plan *p, const struct section *s) {
  return s->batch && !p->unbatched;
}

static char *write_open(const struct answer_plan *p, const struct step *step, char *out) {
  const struct section *s = &p->section[step->at.section];
  if (step->at.section == 0) out = write_head(p, out);
  out = write_text(out, s->open);
  if (has_items(p, s)) *out++ = '[';
  return out;
}

static char *write_close(const struct answer_plan *p, const struct step *step, char *out) {
  if (has_items(p, &p->section[step->at.section])) *out++ = ']';
  if (step->at.section + 1 == p->sections) *out++ = '}';
  return out;
}

static char *write_rows(const struct answer_plan *p, const struct step *step, char *out) {
  const struct place *at = &step->at;
  const struct section *s = &p->section[at->section];
  const struct rows rows = {.section = s,
                            .call = p->call,
                            .item = at->item,
                            .head = at->head,
                            .first = at->row,
                            .count = step->rows,
                            .width = step->width};
  if (at->row == 0) {
    if (at->item > 0 || at->head > 0) *out++ = ',';
    if (s->per_head && at->head == 0) *out++ = '[';
    *out++ = '[';
  } else {
    *out++ = ',';
  }
  out = s->write(&rows, out);
  if (at->row + step->rows == section_rows(s, p->call, at->item)) {
    *out++ = ']';
    if (s->per_head && at->head + 1 == s->heads) *out++ = ']';
  }
  return out;
}

void answer_write_piece(struct answer *a, size_t i) {
  const struct answer_plan *p = a->plan;
  struct place at = p->piece[i].from;
  char *begin = a->piece[i].iov_base, *out = begin;
  size_t left = p->piece_numbers;
  for (size_t n = 0; n < p->piece[i].steps; n++) {
    struct step step = step_from(p, &at, left);
    switch (at.part) {
    case OPEN:
      out = write_open(p, &step, out);
      break;
    case ROWS:
      out = write_rows(p, &step, out);
      break;
    case CLOSE:
      out = write_close(p, &step, out);
      break;
    }
    left -= size_min(left, step.spent);
    advance(p, &at, step.rows);
  }
  a->piece[i].iov_len = (size_t)(out - begin);
}

size_t answer_bytes(const struct answer *a) {
  size_t bytes = 0;
  for (size_t i = 0; i < a->pieces; i++) bytes += a->piece[i].iov_len;
  return bytes;
}
