/* answer: a response planned in pieces, which any threads then write.
 *
 * Its form decides which sections are text, in which style (answer_style), and which are arrays of
 * bytes (answer_raw). Pieces of text are stretches of one walk (answer_text). */
#include "server/answer/answer.h"

#include "core/base/size.h"
#include "server/answer/answer_plan.h"

enum { LINE = 64 /* pieces of different workers do not share a cache line */ };

/* --- forms --- */

/* Whether JSON has the section's numbers in base64. */
static bool is_base64(const struct answer_content *c, const struct answer_section *s) {
  return s->number == NUMBER_BYTE || (c->base64 && s->batch && s->number == NUMBER_FLOAT);
}

/* Whether all items of the section are one array. */
static bool is_whole(const struct answer_content *c, enum answer_form form,
                     const struct answer_section *s) {
  return form != ANSWER_JSON ||
         (is_base64(c, s) && s->number == NUMBER_FLOAT && (s->alike || s->padded));
}

/* Makes one array of all items of the section, to be written in this style. */
static void make_whole(struct answer_section *s, const struct answer_plan *p,
                       enum answer_style style) {
  must(s->alike || s->padded);
  s->style = style;
  s->row_room = 0;
  s->whole = answer_section_whole(s, p->content->unbatched);
}

/* Lists, and objects for single items, need no array of all items. */
static void plan_json(struct answer_plan *p) {
  struct answer_content *c = p->content;
  p->sections = c->sections;
  for (size_t i = 0; i < c->sections; i++) {
    struct answer_section *s = &c->section[i];
    if (is_whole(c, p->form, s))
      make_whole(s, p, STYLE_BASE64_WHOLE);
    else if (is_base64(c, s))
      s->style = STYLE_BASE64_ITEMS;
  }
}

/* The widest numbers come first, so that all are aligned. */
static void plan_safetensors(struct answer_plan *p) {
  static const enum answer_number order[] = {NUMBER_INTEGER, NUMBER_FLOAT, NUMBER_TOKEN,
                                             NUMBER_LENGTH, NUMBER_BYTE};
  struct answer_content *c = p->content;
  for (size_t n = 0; n < sizeof order / sizeof *order; n++)
    for (size_t i = 0; i < c->sections; i++) {
      struct answer_section *s = &c->section[i];
      if (s->number != order[n]) continue;
      must(s->batch || s->number == NUMBER_LENGTH);
      make_whole(s, p, STYLE_BINARY);
      p->array[p->arrays++] = s;
    }
}

static struct answer_plan *plan_new(enum answer_form form, struct answer_content *content,
                                    size_t max_bytes, struct arena *arena, struct error *e) {
  struct answer_plan *p = arena_alloc(arena, 1, sizeof *p, e);
  if (!p) return NULL;
  *p = (struct answer_plan){.form = form, .content = content, .room = max_bytes};
  p->array = arena_alloc(arena, content->sections, sizeof(struct answer_section *), e);
  if (!p->array) return NULL;
  switch (form) {
  case ANSWER_JSON:
    plan_json(p);
    break;
  case ANSWER_SAFETENSORS:
    plan_safetensors(p);
    break;
  case ANSWER_V2:
    must(content->sections > 0);
    p->sections = content->sections;
    for (size_t i = 0; i < content->sections; i++) {
      struct answer_section *s = &content->section[i];
      make_whole(s, p, s->binary ? STYLE_BINARY : STYLE_FLAT);
      if (s->binary) p->array[p->arrays++] = s;
    }
    break;
  }
  return p;
}

/* --- memory --- */

/* Returns how many bytes the piece still needs: 0 if it has its memory. */
static size_t memory_needed(const struct iovec *piece) {
  return piece->iov_base ? 0 : size_round_up(piece->iov_len, LINE);
}

/* Gives each piece its memory: what the content leaves as long as pieces fit into it, then the
 * arena. Returns the status of `e`. */
static enum status place_pieces(struct answer *a, struct arena *arena, struct error *e) {
  struct spare left = a->plan->content->left;
  size_t memory = 0;
  for (size_t i = 0; i < a->pieces; i++) {
    const size_t bytes = memory_needed(&a->piece[i]);
    if (bytes == 0) continue;
    a->piece[i].iov_base = spare_take(&left, bytes);
    if (!a->piece[i].iov_base) memory += bytes;
  }
  char *text = arena_alloc(arena, memory, 1, e);
  if (!text) return e->status;
  for (size_t i = 0; i < a->pieces; i++) {
    const size_t bytes = memory_needed(&a->piece[i]);
    if (bytes == 0) continue;
    a->piece[i].iov_base = text;
    text += bytes;
  }
  return STATUS_OK;
}

/* --- the size --- */

/* Returns the most bytes of each of a section's numbers. */
static size_t number_bytes(const struct answer_content *c, enum answer_form form,
                           const struct answer_section *s) {
  enum { BASE64 = 6 };
  if (form == ANSWER_SAFETENSORS || s->binary) return answer_raw_number(s);
  if (form == ANSWER_JSON && is_base64(c, s)) return BASE64;
  return s->object_room ? s->object_room : NUMBER_ROOM;
}

size_t answer_count(const struct answer_content *c, enum answer_form form) {
  size_t sum = 0;
  for (size_t i = 0; i < c->sections; i++) {
    const struct answer_section *s = &c->section[i];
    const bool filled = is_whole(c, form, s) && s->padded, equal = filled || s->alike;
    const bool groups = form == ANSWER_JSON && s->number == NUMBER_BYTE;
    /* Items of one shape are counted at once. */
    for (size_t item = 0, alike = equal ? s->items : 1; item < s->items; item += alike) {
      const size_t rows = filled ? s->padded_rows : answer_size(s->rows, item);
      const size_t width = filled ? s->padded_width : answer_size(s->width, item);
      size_t n;
      if (!size_mul(s->heads, rows, &n) || !size_mul(n, width, &n)) return SIZE_MAX;
      if (groups) n = answer_groups(n);
      if (!size_mul(n, groups ? 4 : number_bytes(c, form, s), &n) || !size_mul(n, alike, &n) ||
          !size_add(sum, n, &sum))
        return SIZE_MAX;
    }
  }
  return sum;
}

enum status answer_refuse_size(size_t bytes, size_t most, struct error *e) {
  const bool counted = bytes != SIZE_MAX;
  return error_limit(e, "max_answer_bytes",
                     "the response may need %s%zu bytes; the limit is %zu: send fewer items or "
                     "request fewer outputs",
                     counted ? "" : "more than ", counted ? bytes : most, most);
}

/* --- the plan --- */

/* Makes the plan and all pieces. After a failure `a` may be half built. */
static enum status make_plan(struct answer *a, struct answer_content *content, size_t max_bytes,
                             struct arena *arena, struct error *e) {
  struct answer_plan *p = plan_new(a->form, content, max_bytes, arena, e);
  if (!p) return e->status;
  p->most = answer_raw_bound(p);
  p->most += answer_text_bound(p, ANSWER_PIECES_MAX - p->most);
  a->plan = p;
  a->piece = arena_alloc(arena, p->most, sizeof *a->piece, e);
  p->piece = arena_alloc(arena, p->most, sizeof *p->piece, e);
  if (!a->piece || !p->piece) return e->status;
  bool fits = true;
  if (a->form == ANSWER_SAFETENSORS) {
    if (answer_raw_header(a, arena, e)) return e->status;
    fits = answer_plan_spend(p, a->piece[0].iov_len);
  }
  fits = fits && answer_text_cut(a);
  /* The planned length for now; each piece subtracts the bytes that it did not need. */
  atomic_init(&a->json_bytes, fits && a->form == ANSWER_V2 && p->arrays ? answer_bytes(a) : 0);
  fits = fits && answer_raw_cut(a);
  return fits ? place_pieces(a, arena, e) : answer_refuse_size(SIZE_MAX, max_bytes, e);
}

enum status answer_plan(struct answer *a, enum answer_form form, struct answer_content *content,
                        size_t max_bytes, struct arena *arena, struct error *e) {
  *a = (struct answer){.form = form};
  const enum status status = make_plan(a, content, max_bytes, arena, e);
  if (status) *a = (struct answer){.form = form};
  return status;
}

void answer_write_piece(struct answer *a, size_t i) {
  const struct answer_plan *p = a->plan;
  const size_t before = a->piece[i].iov_len;
  switch (p->piece[i].kind) {
  case PIECE_TEXT:
    answer_text_write(a, i);
    if (p->form == ANSWER_V2 && p->arrays)
      atomic_fetch_sub_explicit(&a->json_bytes, before - a->piece[i].iov_len, memory_order_relaxed);
    break;
  case PIECE_BYTES:
    answer_raw_write(a, i);
    break;
  case PIECE_READY:
    break;
  }
}

size_t answer_bytes(const struct answer *a) {
  size_t bytes = 0;
  for (size_t i = 0; i < a->pieces; i++) bytes += a->piece[i].iov_len;
  return bytes;
}
