/* answer: an answer planned in pieces, which any threads then write.
 *
 * Its form decides which members are text, in what style (answer_style), and which are bytes
 * (answer_raw). Pieces of text are stretches of one walk (answer_text). */
#include "server/answer/answer.h"

#include "core/run/size.h"
#include "server/answer/answer_raw.h"
#include "server/answer/answer_text.h"

enum { LINE = 64 /* pieces of different workers do not share a cache line */ };

/* --- forms --- */

static void make_whole(struct section *s, const struct answer_plan *p, enum style style) {
  s->style = style;
  s->row_room = 0;
  s->whole = section_whole(s, p->request);
}

static void plan_json(struct answer_plan *p, const struct model *m) {
  p->sections = sections_of(m, p->call, p->section);
  if (!p->request->base64) return;
  for (size_t i = 0; i < p->sections; i++) {
    struct section *s = &p->section[i];
    if (!s->batch || s->is_integer) continue;
    if (p->request->rectangular &&
        (s->width_of != WIDTH_SEGMENTS || attention_request_segments_agree(p->request)))
      make_whole(s, p, STYLE_BASE64_WHOLE);
    else
      s->style = STYLE_BASE64_ITEMS;
  }
}

/* The pointers first: they are the widest, and all are aligned then. */
static void plan_safetensors(struct answer_plan *p, const struct model *m) {
  struct section all[SECTIONS_MAX];
  const size_t count = sections_of(m, p->call, all);
  must(attention_request_has_binary(p->request));
  for (size_t integers = 2; integers-- > 0;)
    for (size_t i = 0; i < count; i++) {
      if (all[i].is_integer != (integers == 1)) continue;
      struct section *s = &p->behind[p->behinds++];
      *s = all[i];
      make_whole(s, p, STYLE_BEHIND);
    }
}

static void plan_v2(struct answer_plan *p, const struct model *m) {
  const struct body_v2_asked *v2 = &p->request->v2;
  struct section all[SECTIONS_MAX];
  const size_t count = sections_of(m, p->call, all);
  must(v2->outputs > 0);
  for (size_t i = 0; i < v2->outputs; i++) {
    const size_t which = v2->output[i].which;
    must(which < count);
    struct section *s = &p->section[p->sections++];
    *s = all[which];
    make_whole(s, p, v2->output[i].binary ? STYLE_BEHIND : STYLE_FLAT);
    if (v2->output[i].binary) p->behind[p->behinds++] = *s;
  }
}

/* --- memory --- */

/* Does the piece need memory? How much? */
static size_t memory_needed(const struct iovec *piece) {
  return piece->iov_base ? 0 : size_round_up(piece->iov_len, LINE);
}

/* From what the call leaves, as far as pieces fit into it, then from the arena. */
static enum status place_pieces(struct answer *a, const struct call *c, struct arena *arena,
                                struct error *e) {
  struct spare left = c->left;
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

/* --- the plan --- */

static struct answer_plan *plan_new(enum answer_form form, const struct model *m,
                                    const struct attention_request *d,
                                    const struct body_limits *limits, struct arena *arena,
                                    struct error *e) {
  struct answer_plan *p = arena_alloc(arena, 1, sizeof *p, e);
  if (!p) return NULL;
  *p = (struct answer_plan){.form = form,
                            .request = d,
                            .call = &d->call,
                            .model = m->name,
                            .room = limits->max_answer_bytes};
  switch (form) {
  case ANSWER_JSON:
    plan_json(p, m);
    break;
  case ANSWER_SAFETENSORS:
    plan_safetensors(p, m);
    break;
  case ANSWER_V2:
    plan_v2(p, m);
    break;
  }
  return p;
}

static enum status over_limit(const struct body_limits *limits, struct error *e) {
  return error_limit(e, "max_answer_bytes", "the answer may need more than %zu bytes",
                     limits->max_answer_bytes);
}

static enum status plan(struct answer *a, enum answer_form form, const struct model *m,
                        const struct attention_request *d, const struct body_limits *limits,
                        struct arena *arena, struct error *e) {
  struct answer_plan *p = plan_new(form, m, d, limits, arena, e);
  if (!p) return e->status;
  p->most = text_bound(p) + raw_bound(p);
  a->plan = p;
  a->piece = arena_alloc(arena, p->most, sizeof *a->piece, e);
  p->piece = arena_alloc(arena, p->most, sizeof *p->piece, e);
  if (!a->piece || !p->piece) return e->status;
  if (form == ANSWER_SAFETENSORS && raw_header(a, arena, e)) return e->status;
  if (form == ANSWER_SAFETENSORS && !plan_take(p, a->piece[0].iov_len))
    return over_limit(limits, e);
  if (!text_cut(a)) return over_limit(limits, e);
  /* Of the memory now; each piece corrects it by what it needs less. */
  const size_t texts = form == ANSWER_V2 && p->behinds ? answer_bytes(a) : 0;
  atomic_init(&a->json_bytes, texts);
  if (!raw_cut(a)) return over_limit(limits, e);
  return place_pieces(a, &d->call, arena, e);
}

enum status answer_plan(struct answer *a, enum answer_form form, const struct model *m,
                        const struct attention_request *d, const struct body_limits *limits,
                        struct arena *arena, struct error *e) {
  *a = (struct answer){.form = form};
  if (plan(a, form, m, d, limits, arena, e) != STATUS_OK) *a = (struct answer){.form = form};
  return e->status;
}

void answer_write_piece(struct answer *a, size_t i) {
  const struct answer_plan *p = a->plan;
  const size_t before = a->piece[i].iov_len;
  switch (p->piece[i].kind) {
  case PIECE_TEXT:
    text_write(a, i);
    if (p->form == ANSWER_V2 && p->behinds)
      atomic_fetch_sub_explicit(&a->json_bytes, before - a->piece[i].iov_len, memory_order_relaxed);
    break;
  case PIECE_POINTERS:
    raw_write(a, i);
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
