/* answer_text: the text of a response, cut into pieces and written.
 *
 * The text is a walk: each section (outputs, attention weights, ...) is opened, its rows follow, it
 * is closed. A piece is some stretches of that walk. Measuring, cutting and writing make the same
 * walk, so that they cannot disagree. */
#include <math.h>

#include "core/attention/measures.h"
#include "core/base/size.h"
#include "server/answer/answer_plan.h"
#include "server/answer/answer_style.h"

/* Numbers in a piece, about: some 45 KiB of text, 10 us of work. Pieces have more if there would be
 * too many of them. */
enum { PIECE_NUMBERS = 4096 };

/* A model's name needs no escaping; an id is written as it was sent. */
static const char MODEL_BEGIN[] = "{\"model\":\"", MODEL_END[] = "\",";
static const char USAGE_BEGIN[] = ",\"usage\":";
static const char ROWS_BEGIN[] = "\"rows\":", ROWS_END[] = ",";
static const char V2_BEGIN[] = "{\"model_name\":\"", V2_VERSION[] = "\",\"model_version\":\"1\",",
                  V2_ID[] = "\"id\":", V2_ID_END[] = ",", V2_OUTPUTS[] = "\"outputs\":[";

/* A stretch of the walk: an opening, a closing, or rows of one list. */
struct answer_stretch {
  struct answer_point at;
  size_t rows;  /* AT_ROWS: how many; 0: the list is empty */
  size_t end;   /* AT_ROWS: all rows of the list */
  size_t width; /* AT_ROWS: numbers in each row */
  size_t spent; /* how many of a piece's numbers it uses */
  size_t room;  /* bytes that its text may need */
};

/* Returns an upper bound of the bytes before the first section, as write_open writes them. */
static size_t opening_room(const struct answer_plan *p) {
  if (p->form == ANSWER_V2)
    return sizeof V2_BEGIN + strlen(p->content->model) + sizeof V2_VERSION + sizeof V2_ID +
           p->content->id_length + sizeof V2_ID_END + sizeof V2_OUTPUTS;
  const size_t name = p->content->model ? strlen(p->content->model) : 0;
  return sizeof MODEL_BEGIN + name + sizeof MODEL_END + sizeof ROWS_BEGIN + COUNT_ROOM +
         sizeof ROWS_END;
}

/* Returns the stretch that begins at `at`, for a piece that may have about `numbers` more. */
static struct answer_stretch stretch_from(const struct answer_plan *p,
                                          const struct answer_point *at, size_t numbers) {
  const struct answer_section *s = &p->content->section[at->section];
  struct answer_stretch stretch = {.at = *at, .spent = 1};
  if (at->phase != AT_ROWS) {
    stretch.room = answer_style_section_room(s);
    if (at->phase == AT_OPENING && at->section == 0) stretch.room += opening_room(p);
    if (at->phase == AT_CLOSING && at->section + 1 == p->sections && p->content->has_usage)
      stretch.room += sizeof USAGE_BEGIN + ANSWER_USAGE_ROOM;
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

/* Moves from the beginning of a list past this many lists. */
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

/* Counts the stretches like this one that follow each other, itself included, in a piece that may
 * have `numbers` more: whole lists of one shape. The lists of one item have one shape, and those of
 * all items if the items agree. */
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

size_t answer_text_bound(struct answer_plan *p, size_t most) {
  /* The numbers that the walk spends follow from the items, without walking. */
  double spent = 2.0 * (double)p->sections;
  for (size_t i = 0; i < p->sections; i++) {
    const struct answer_section *s = &p->content->section[i];
    for (size_t item = 0; item < answer_style_items(s); item++) {
      const double rows = (double)answer_style_rows(s, item);
      const double width = (double)answer_style_width(s, item);
      const double speed = (double)answer_style_speed(s);
      /* If many numbers count as one, the remainder at a list's end counts as one as well. */
      spent += (double)answer_style_heads(s) * fmax(rows * fmax(width, 1) / speed + (speed > 1), 1);
    }
  }
  /* Each piece except the last spends all numbers of a piece. */
  const double least = spent / (double)(most - 1);
  p->piece_numbers = least < (double)PIECE_NUMBERS ? PIECE_NUMBERS : (size_t)least + 1;
  return (size_t)(spent / (double)p->piece_numbers) + 1;
}

bool answer_text_cut(struct answer *a) {
  struct answer_plan *p = a->plan;
  struct answer_point at = {0};
  while (at.section < p->sections) {
    struct answer_piece *piece = answer_plan_append(a, PIECE_TEXT);
    size_t room = 0, left = p->piece_numbers;
    piece->from = at;
    /* Equal lists are counted, not walked over: a batch of some thousand items may have millions.
     */
    while (left > 0 && at.section < p->sections) {
      struct answer_stretch stretch = stretch_from(p, &at, left);
      const size_t alike = count_alike(p, &stretch, left);
      room += alike * stretch.room;
      left -= size_min(left, alike * stretch.spent);
      piece->stretches += alike;
      if (alike > 1)
        move_lists(&p->content->section[at.section], &at, alike);
      else
        move_point(p, &at, &stretch);
    }
    /* Adding stops at the first sum over the limit, long before it could overflow. */
    if (!answer_plan_spend(p, room)) return false;
    a->piece[a->pieces - 1].iov_len = room + NUMBER_WRITE_MARGIN;
  }
  return true;
}

/* --- writing --- */

/* Writes the text before the first section. */
static char *write_opening(const struct answer_plan *p, char *out) {
  const struct answer_content *c = p->content;
  if (p->form == ANSWER_V2) {
    out = answer_write_text(out, V2_BEGIN);
    out = answer_write_text(out, c->model);
    out = answer_write_text(out, V2_VERSION);
    if (c->id) {
      out = answer_write_text(out, V2_ID);
      memcpy(out, c->id, c->id_length);
      out = answer_write_text(out + c->id_length, V2_ID_END);
    }
    return answer_write_text(out, V2_OUTPUTS);
  }
  if (c->alone) return out;
  if (!c->model) return answer_write_text(out, "{");
  out = answer_write_text(out, MODEL_BEGIN);
  out = answer_write_text(out, c->model);
  out = answer_write_text(out, MODEL_END);
  if (!c->rows) return out;
  out = answer_write_text(out, ROWS_BEGIN);
  out = number_write_integer(out, (int64_t)*c->rows);
  return answer_write_text(out, ROWS_END);
}

/* Returns whether both sections exist and belong to one group. */
static bool are_together(const struct answer_plan *p, size_t a, size_t b) {
  if (a >= p->sections || b >= p->sections) return false;
  const char *first = p->content->section[a].group, *second = p->content->section[b].group;
  return first && second && strcmp(first, second) == 0;
}

/* Writes the beginning of a section, and of the text or the group if it is their first one. */
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

/* Writes the end of a section, and of the group or the text if it is their last one. */
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
      out = answer_style_write(&(struct answer_rows){.section = &p->content->section[at.section],
                                                     .item = at.item,
                                                     .head = at.head,
                                                     .first = at.row,
                                                     .count = stretch.rows,
                                                     .width = stretch.width},
                               out);
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
