/* answer_text: the text of an answer, cut into pieces and written.
 *
 * The text is a walk: each section (outputs, attention weights, ...) is opened, its rows follow, it
 * is closed. A piece is a stretch of that walk. The same walk is made to measure, to cut and to
 * write, so that they cannot disagree. */
#include "server/answer/answer_text.h"

#include <math.h>

#include "core/attention/measures.h"
#include "core/base/size.h"
#include "server/answer/answer_style.h"

/* A piece has about so many numbers: some 45 KiB of text, 10 us of work. It has more where there
 * would be too many pieces. */
enum { PIECE_NUMBERS = 4096 };

/* A model's name needs no escaping; an id is as it was sent. */
static const char MODEL_BEGIN[] = "{\"model\":\"", MODEL_END[] = "\",";
static const char USAGE_BEGIN[] = ",\"usage\":";
static const char ROWS_BEGIN[] = "\"rows\":", ROWS_END[] = ",";
static const char V2_BEGIN[] = "{\"model_name\":\"", V2_VERSION[] = "\",\"model_version\":\"1\",",
                  V2_ID[] = "\"id\":", V2_ID_END[] = ",", V2_OUTPUTS[] = "\"outputs\":[";

/* A stretch of the walk: an opening, a closing, or rows of one list. */
struct answer_stretch {
  struct answer_point at;
  size_t rows;  /* 0 with AT_ROWS: the list of rows is empty */
  size_t end;   /* the rows of that list */
  size_t width; /* of each row */
  size_t spent; /* of the numbers that a piece may have */
  size_t room;  /* bytes that its text may need */
};

static bool is_at_end(const struct answer_plan *p, const struct answer_point *at) {
  return at->section == p->sections;
}

/* Bytes of the text in front of the sections. */
static size_t opening_room(const struct answer_plan *p) {
  if (p->form == ANSWER_V2)
    return sizeof V2_BEGIN + strlen(p->content->model) + sizeof V2_VERSION + sizeof V2_ID +
           p->content->id_length + sizeof V2_ID_END + sizeof V2_OUTPUTS;
  const size_t name = p->content->model ? strlen(p->content->model) : 0;
  return sizeof MODEL_BEGIN + name + sizeof MODEL_END + sizeof ROWS_BEGIN + COUNT_ROOM +
         sizeof ROWS_END;
}

/* Likewise behind them. */
static size_t ending_room(const struct answer_plan *p) {
  return p->content->has_usage ? sizeof USAGE_BEGIN + ANSWER_USAGE_ROOM : 0;
}

/* The stretch that begins at `at`, where its piece has room for about `numbers` more. */
static struct answer_stretch stretch_from(const struct answer_plan *p,
                                          const struct answer_point *at, size_t numbers) {
  const struct answer_section *s = &p->content->section[at->section];
  struct answer_stretch stretch = {.at = *at, .spent = 1};
  if (at->phase != AT_ROWS) {
    stretch.room = answer_style_section_room(s);
    if (at->phase == AT_OPENING && at->section == 0) stretch.room += opening_room(p);
    if (at->phase == AT_CLOSING && at->section + 1 == p->sections) stretch.room += ending_room(p);
    return stretch;
  }
  const size_t speed = answer_style_speed(s);
  stretch.width = answer_style_width(s, at->item);
  stretch.end = answer_style_rows(s, at->item);
  stretch.rows = size_min(stretch.end - at->row, numbers * speed / size_max(stretch.width, 1) + 1);
  stretch.room = answer_style_rows_room(s, stretch.rows, stretch.width);
  /* Rows without numbers count as well, or a piece of them could grow without end. */
  stretch.spent = size_max(size_max(stretch.rows * stretch.width, stretch.rows) / speed, 1);
  return stretch;
}

/* Moves past so many lists from the beginning of one on. */
static void move_lists(const struct answer_section *s, struct answer_point *at, size_t lists) {
  const size_t heads = answer_style_heads(s);
  at->row = 0;
  at->head += lists;
  if (at->head < heads) return;
  at->item += at->head / heads;
  at->head %= heads;
  if (at->item == answer_style_items(s)) at->phase = AT_CLOSING;
}

static void move_point(const struct answer_plan *p, struct answer_point *at,
                       const struct answer_stretch *past) {
  const struct answer_section *s = &p->content->section[at->section];
  switch (at->phase) {
  case AT_OPENING:
    at->phase = answer_style_items(s) ? AT_ROWS : AT_CLOSING;
    break;
  case AT_CLOSING:
    *at = (struct answer_point){.section = at->section + 1};
    break;
  case AT_ROWS:
    at->row += past->rows;
    if (at->row == past->end) move_lists(s, at, 1);
  }
}

/* How many stretches like this one follow each other, itself included, where the piece has room for
 * `numbers` more: whole lists of one shape. Those of an item are, and those of items that agree. */
static size_t count_alike(const struct answer_plan *p, const struct answer_stretch *stretch,
                          size_t numbers) {
  const struct answer_point *at = &stretch->at;
  const struct answer_section *s = &p->content->section[at->section];
  if (at->phase != AT_ROWS || stretch->rows < stretch->end) return 1;
  const size_t heads = answer_style_heads(s),
               items = s->alike ? answer_style_items(s) : at->item + 1;
  const size_t lists = (items - at->item) * heads - at->head;
  if (lists == 1) return 1;
  /* A list is whole where room is left for all of its rows but one, and for one number. */
  const size_t before_last = size_max(stretch->rows, 1) - 1, speed = answer_style_speed(s);
  const size_t least = (before_last * size_max(stretch->width, 1) + speed - 1) / speed;
  return size_min(lists, (numbers - size_max(least, 1)) / stretch->spent + 1);
}

/* Cuts the piece that begins at `at` and moves `at` behind it. Returns the bytes it may need. Lists
 * that are alike are counted, not walked over: a batch of some thousand items may have millions. */
static size_t cut_piece(const struct answer_plan *p, struct answer_point *at,
                        struct answer_piece *out) {
  size_t room = 0, left = p->piece_numbers;
  out->from = *at;
  while (left > 0 && !is_at_end(p, at)) {
    struct answer_stretch stretch = stretch_from(p, at, left);
    const size_t alike = count_alike(p, &stretch, left);
    room += alike * stretch.room;
    left -= size_min(left, alike * stretch.spent);
    out->stretches += alike;
    if (alike > 1)
      move_lists(&p->content->section[at->section], at, alike);
    else
      move_point(p, at, &stretch);
  }
  return room;
}

/* What the whole walk spends, worked out from the items alone without walking. */
static double all_spent(const struct answer_plan *p) {
  double spent = 2.0 * (double)p->sections;
  for (size_t i = 0; i < p->sections; i++) {
    const struct answer_section *s = &p->content->section[i];
    for (size_t item = 0; item < answer_style_items(s); item++) {
      const double rows = (double)answer_style_rows(s, item);
      const double width = (double)answer_style_width(s, item);
      const double speed = (double)answer_style_speed(s);
      /* Where many numbers count as one, what is left of them at a list's end counts as one, too.
       */
      spent += (double)answer_style_heads(s) * fmax(rows * fmax(width, 1) / speed + (speed > 1), 1);
    }
  }
  return spent;
}

/* Each piece but the last spends all that a piece has. */
size_t answer_text_bound(struct answer_plan *p, size_t most) {
  const double spent = all_spent(p), least = spent / (double)(most - 1);
  p->piece_numbers = least < (double)PIECE_NUMBERS ? PIECE_NUMBERS : (size_t)least + 1;
  return (size_t)(spent / (double)p->piece_numbers) + 1;
}

bool answer_text_cut(struct answer *a) {
  struct answer_plan *p = a->plan;
  struct answer_point at = {0};
  while (!is_at_end(p, &at)) {
    const size_t room = cut_piece(p, &at, answer_plan_append(a, PIECE_TEXT));
    /* Adding stops at the first sum over the limit, long before it could overflow. */
    if (!answer_plan_spend(p, room)) return false;
    a->piece[a->pieces - 1].iov_len = room + NUMBER_WRITE_MARGIN;
  }
  return true;
}

/* --- writing --- */

static char *write_opening_v2(const struct answer_plan *p, char *out) {
  const struct answer_content *c = p->content;
  out = answer_write_text(out, V2_BEGIN);
  out = answer_write_text(out, p->content->model);
  out = answer_write_text(out, V2_VERSION);
  if (c->id) {
    out = answer_write_text(out, V2_ID);
    memcpy(out, c->id, c->id_length);
    out = answer_write_text(out + c->id_length, V2_ID_END);
  }
  return answer_write_text(out, V2_OUTPUTS);
}

static char *write_opening(const struct answer_plan *p, char *out) {
  if (p->form == ANSWER_V2) return write_opening_v2(p, out);
  if (p->content->alone) return out;
  if (!p->content->model) return answer_write_text(out, "{");
  out = answer_write_text(out, MODEL_BEGIN);
  out = answer_write_text(out, p->content->model);
  out = answer_write_text(out, MODEL_END);
  if (!p->content->rows) return out;
  out = answer_write_text(out, ROWS_BEGIN);
  out = number_write_integer(out, (int64_t)*p->content->rows);
  return answer_write_text(out, ROWS_END);
}

/* Are both sections there, and of one group? */
static bool are_together(const struct answer_plan *p, size_t a, size_t b) {
  if (a >= p->sections || b >= p->sections) return false;
  const char *first = p->content->section[a].group, *second = p->content->section[b].group;
  return first && second && strcmp(first, second) == 0;
}

static char *write_open(const struct answer_plan *p, const struct answer_point *at, char *out) {
  const struct answer_section *s = &p->content->section[at->section];
  if (at->section == 0)
    out = write_opening(p, out);
  else
    *out++ = ',';
  if (s->group && p->form == ANSWER_JSON && !are_together(p, at->section - 1, at->section)) {
    *out++ = '"';
    out = answer_write_text(out, s->group);
    out = answer_write_text(out, "\":{");
  }
  return answer_style_open(p, s, out);
}

static char *write_close(const struct answer_plan *p, const struct answer_point *at, char *out) {
  const struct answer_section *s = &p->content->section[at->section];
  out = answer_style_close(p, s, out);
  if (s->group && p->form == ANSWER_JSON && !are_together(p, at->section, at->section + 1))
    *out++ = '}';
  if (at->section + 1 < p->sections) return out;
  if (p->form == ANSWER_V2) return answer_write_text(out, "]}");
  if (p->content->alone) return out;
  if (p->content->has_usage) {
    out = answer_write_text(out, USAGE_BEGIN);
    out = answer_usage_write(out, &p->content->usage);
  }
  return answer_write_text(out, "}");
}

static char *write_rows(const struct answer_plan *p, const struct answer_stretch *stretch,
                        char *out) {
  const struct answer_point *at = &stretch->at;
  const struct answer_rows rows = {.section = &p->content->section[at->section],
                                   .item = at->item,
                                   .head = at->head,
                                   .first = at->row,
                                   .count = stretch->rows,
                                   .width = stretch->width};
  return answer_style_write(&rows, out);
}

void answer_text_write(struct answer *a, size_t i) {
  const struct answer_plan *p = a->plan;
  struct answer_point at = p->piece[i].from;
  char *begin = a->piece[i].iov_base, *out = begin;
  size_t left = p->piece_numbers;
  for (size_t n = 0; n < p->piece[i].stretches; n++) {
    struct answer_stretch stretch = stretch_from(p, &at, left);
    switch (at.phase) {
    case AT_OPENING:
      out = write_open(p, &at, out);
      break;
    case AT_ROWS:
      out = write_rows(p, &stretch, out);
      break;
    case AT_CLOSING:
      out = write_close(p, &at, out);
      break;
    }
    left -= size_min(left, stretch.spent);
    move_point(p, &at, &stretch);
  }
  a->piece[i].iov_len = (size_t)(out - begin);
}
