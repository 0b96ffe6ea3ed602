/* answer_text: the text of an answer, cut into pieces and written.
 *
 * The text is a walk: each member (outputs, attention weights, ...) is opened, its rows follow, it
 * is closed. A piece is a stretch of that walk. The same walk is made to measure, to cut and to
 * write, so that they cannot disagree. */
#include "server/answer/answer_text.h"

#include <math.h>

#include "core/attention/measures.h"
#include "core/run/size.h"
#include "server/answer/answer_style.h"

/* About so many in a piece: some 45 KiB of text, 10 us of work; or, where that would be too many
 * pieces, more. */
enum { PIECE_NUMBERS = 4096 };

/* A model's name needs no escaping; an id is as it was sent. */
static const char HEAD_BEGIN[] = "{\"model\":\"", HEAD_END[] = "\",";
static const char ROWS_BEGIN[] = "\"rows\":", ROWS_END[] = ",";
static const char V2_BEGIN[] = "{\"model_name\":\"", V2_VERSION[] = "\",\"model_version\":\"1\",",
                  V2_ID[] = "\"id\":", V2_ID_END[] = ",", V2_OUTPUTS[] = "\"outputs\":[";

/* A step of the walk: an opening, a closing, or rows of one list. */
struct step {
  struct place at;
  size_t rows;  /* 0 with ROWS: the list of rows is empty */
  size_t width; /* of each row */
  size_t spent; /* of the numbers that a piece may have */
  size_t room;  /* bytes that its text may need */
};

static bool at_end(const struct answer_plan *p, const struct place *at) {
  return at->section == p->sections;
}

/* Bytes of the head of the object. */
static size_t head_room(const struct answer_plan *p) {
  if (p->form == ANSWER_V2)
    return sizeof V2_BEGIN + strlen(p->model) + sizeof V2_VERSION + sizeof V2_ID +
           p->request->v2.id_length + sizeof V2_ID_END + sizeof V2_OUTPUTS;
  return sizeof HEAD_BEGIN + strlen(p->model) + sizeof HEAD_END + sizeof ROWS_BEGIN + COUNT_ROOM +
         sizeof ROWS_END;
}

/* The step that begins at `at`, with room left for about `numbers` more in its piece. */
static struct step step_from(const struct answer_plan *p, const struct place *at, size_t numbers) {
  const struct section *s = &p->section[at->section];
  struct step step = {.at = *at, .spent = 1};
  if (at->part != ROWS) {
    step.room = style_member_room(s);
    if (at->part == OPEN && at->section == 0) step.room += head_room(p);
    return step;
  }
  const size_t speed = style_speed(s);
  step.width = style_width(s, p->call, at->item);
  const size_t left = style_rows(s, p->call, at->item) - at->row;
  step.rows = size_min(left, numbers * speed / size_max(step.width, 1) + 1);
  step.room = style_rows_room(s, step.rows, step.width);
  /* What has no numbers counts as well, or a piece of empty rows could grow without end. */
  step.spent = size_max(size_max(step.rows * step.width, step.rows) / speed, 1);
  return step;
}

static void advance(const struct answer_plan *p, struct place *at, size_t rows) {
  const struct section *s = &p->section[at->section];
  switch (at->part) {
  case OPEN:
    at->part = style_items(s) ? ROWS : CLOSE;
    break;
  case CLOSE:
    *at = (struct place){.section = at->section + 1};
    break;
  case ROWS:
    at->row += rows;
    if (at->row < style_rows(s, p->call, at->item)) break;
    at->row = 0;
    if (++at->head < style_heads(s)) break;
    at->head = 0;
    if (++at->item == style_items(s)) at->part = CLOSE;
  }
}

/* Cuts the piece that begins at `at` and moves `at` behind it. Returns the bytes it may need. */
static size_t cut_piece(const struct answer_plan *p, struct place *at, struct piece *out) {
  size_t room = 0, left = p->piece_numbers;
  out->from = *at;
  while (left > 0 && !at_end(p, at)) {
    struct step step = step_from(p, at, left);
    room += step.room;
    left -= size_min(left, step.spent);
    out->steps++;
    advance(p, at, step.rows);
  }
  return room;
}

/* What all steps spend, without walking them: from the items alone, whatever the heads. */
static double all_spent(const struct answer_plan *p) {
  double spent = 2.0 * (double)p->sections;
  for (size_t i = 0; i < p->sections; i++) {
    const struct section *s = &p->section[i];
    for (size_t item = 0; item < style_items(s); item++) {
      const double rows = (double)style_rows(s, p->call, item);
      const double width = (double)style_width(s, p->call, item);
      const double speed = (double)style_speed(s);
      /* Where many numbers count as one, what is left of them at a list's end counts as one, too.
       */
      spent += (double)style_heads(s) * fmax(rows * fmax(width, 1) / speed + (speed > 1), 1);
    }
  }
  return spent;
}

/* Each piece but the last spends what a piece has. */
size_t text_bound(struct answer_plan *p) {
  const double spent = all_spent(p), least = spent / (ANSWER_PIECES_MAX - 2 - PIECES_BESIDE);
  p->piece_numbers = least < (double)PIECE_NUMBERS ? PIECE_NUMBERS : (size_t)least + 1;
  return (size_t)(spent / (double)p->piece_numbers) + 1;
}

bool text_cut(struct answer *a) {
  struct answer_plan *p = a->plan;
  struct place at = {0};
  while (!at_end(p, &at)) {
    const size_t room = cut_piece(p, &at, plan_add(a, PIECE_TEXT));
    /* Adding stops at the first sum over the limit, long before it could overflow. */
    if (!plan_take(p, room)) return false;
    a->piece[a->pieces - 1].iov_len = room + NUMBER_WRITE_MARGIN;
  }
  return true;
}

/* --- writing --- */

static char *write_head_v2(const struct answer_plan *p, char *out) {
  const struct body_v2_asked *v2 = &p->request->v2;
  out = write_text(out, V2_BEGIN);
  out = write_text(out, p->model);
  out = write_text(out, V2_VERSION);
  if (v2->id) {
    out = write_text(out, V2_ID);
    memcpy(out, v2->id, v2->id_length);
    out = write_text(out + v2->id_length, V2_ID_END);
  }
  return write_text(out, V2_OUTPUTS);
}

static char *write_head(const struct answer_plan *p, char *out) {
  if (p->form == ANSWER_V2) return write_head_v2(p, out);
  out = write_text(out, HEAD_BEGIN);
  out = write_text(out, p->model);
  out = write_text(out, HEAD_END);
  if (!p->call->want_measures) return out;
  out = write_text(out, ROWS_BEGIN);
  out = number_write_integer(out, (int64_t)p->call->measures->rows);
  return write_text(out, ROWS_END);
}

static char *write_open(const struct answer_plan *p, const struct place *at, char *out) {
  if (at->section == 0)
    out = write_head(p, out);
  else
    *out++ = ',';
  return style_open(p, &p->section[at->section], out);
}

static char *write_close(const struct answer_plan *p, const struct place *at, char *out) {
  out = style_close(p, &p->section[at->section], out);
  if (at->section + 1 < p->sections) return out;
  return write_text(out, p->form == ANSWER_V2 ? "]}" : "}");
}

static char *write_rows(const struct answer_plan *p, const struct step *step, char *out) {
  const struct place *at = &step->at;
  const struct rows rows = {.section = &p->section[at->section],
                            .call = p->call,
                            .item = at->item,
                            .head = at->head,
                            .first = at->row,
                            .count = step->rows,
                            .width = step->width};
  return style_write(&rows, out);
}

void text_write(struct answer *a, size_t i) {
  const struct answer_plan *p = a->plan;
  struct place at = p->piece[i].from;
  char *begin = a->piece[i].iov_base, *out = begin;
  size_t left = p->piece_numbers;
  for (size_t n = 0; n < p->piece[i].steps; n++) {
    struct step step = step_from(p, &at, left);
    switch (at.part) {
    case OPEN:
      out = write_open(p, &at, out);
      break;
    case ROWS:
      out = write_rows(p, &step, out);
      break;
    case CLOSE:
      out = write_close(p, &at, out);
      break;
    }
    left -= size_min(left, step.spent);
    advance(p, &at, step.rows);
  }
  a->piece[i].iov_len = (size_t)(out - begin);
}
