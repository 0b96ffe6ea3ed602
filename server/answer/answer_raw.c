/* answer_raw: arrays of an answer as bytes, where they were computed.
 *
 * Floats are sent from the arrays themselves. Integers are computed as 32 bits and sent as 64: they
 * are the only bytes that are written. */
#include "server/answer/answer_raw.h"

#include "core/run/size.h"

enum {
  LENGTH = 8, /* bytes of the header's length, and what the data are aligned to */
  PIECE_INTEGERS_MIN = 32 * 1024,
  INTEGER_PIECES_MAX = ANSWER_PIECES_MAX / 2
};

static const char BEGIN[] = "{\"__metadata__\":{\"model\":\"", MODEL_END[] = "\"}";
static const char NAME[] = ",\"", F32[] = "\":{\"dtype\":\"F32\",\"shape\":",
                  I64[] = "\":{\"dtype\":\"I64\",\"shape\":", OFFSETS[] = ",\"data_offsets\":[",
                  TENSOR_END[] = "]}";

static size_t bytes_of(const struct answer_section *s) {
  return s->whole.count * (s->is_integer ? sizeof(int64_t) : sizeof(float));
}

static size_t integers_each(const struct answer_section *s) {
  return size_max(PIECE_INTEGERS_MIN, s->whole.count / INTEGER_PIECES_MAX + 1);
}

size_t answer_raw_bound(const struct answer_plan *p) {
  size_t most = PIECES_BESIDE;
  for (size_t i = 0; i < p->behinds; i++)
    if (p->behind[i]->is_integer)
      most += p->behind[i]->whole.count / integers_each(p->behind[i]) + 1;
  return most;
}

/* --- the header of safetensors --- */

static size_t header_room(const struct answer_plan *p) {
  size_t room = LENGTH + sizeof BEGIN + strlen(p->content->model) + sizeof MODEL_END + 1 + LENGTH;
  for (size_t i = 0; i < p->behinds; i++)
    room += sizeof NAME + strlen(p->behind[i]->name) + sizeof F32 + SHAPE_ROOM + sizeof OFFSETS +
            2 * COUNT_ROOM + 1 + sizeof TENSOR_END;
  return room + NUMBER_WRITE_MARGIN;
}

static char *write_tensor(const struct answer_section *s, size_t *at, char *out) {
  out = answer_write_text(out, NAME);
  out = answer_write_text(out, s->name);
  out = answer_write_text(out, s->is_integer ? I64 : F32);
  out = answer_write_shape(out, &s->whole);
  out = answer_write_text(out, OFFSETS);
  out = number_write_integer(out, (int64_t)*at);
  *out++ = ',';
  *at += bytes_of(s);
  out = number_write_integer(out, (int64_t)*at);
  return answer_write_text(out, TENSOR_END);
}

enum status answer_raw_header(struct answer *a, struct arena *arena, struct error *e) {
  const struct answer_plan *p = a->plan;
  char *begin = arena_alloc(arena, header_room(p), 1, e), *out = begin;
  if (!begin) return e->status;
  out = answer_write_text(out + LENGTH, BEGIN);
  out = answer_write_text(out, p->content->model);
  out = answer_write_text(out, MODEL_END);
  size_t at = 0;
  for (size_t i = 0; i < p->behinds; i++) out = write_tensor(p->behind[i], &at, out);
  *out++ = '}';
  while ((size_t)(out - begin) % LENGTH != 0) *out++ = ' ';
  const uint64_t length = (uint64_t)(out - begin) - LENGTH;
  memcpy(begin, &length, sizeof length);
  answer_plan_append(a, PIECE_READY);
  a->piece[a->pieces - 1] = (struct iovec){.iov_base = begin, .iov_len = (size_t)(out - begin)};
  return STATUS_OK;
}

/* --- the arrays --- */

static void cut_integers(struct answer *a, const struct answer_section *s) {
  const int32_t *integers = s->whole.data;
  const size_t each = integers_each(s);
  for (size_t from = 0; from < s->whole.count; from += each) {
    answer_plan_append(a, PIECE_INTEGERS)->integers = integers + from;
    a->piece[a->pieces - 1].iov_len = size_min(each, s->whole.count - from) * sizeof(int64_t);
  }
}

bool answer_raw_cut(struct answer *a) {
  struct answer_plan *p = a->plan;
  for (size_t i = 0; i < p->behinds; i++) {
    const struct answer_section *s = p->behind[i];
    const size_t bytes = bytes_of(s);
    if (!answer_plan_spend(p, bytes)) return false;
    if (s->is_integer) {
      cut_integers(a, s);
    } else if (bytes > 0) {
      answer_plan_append(a, PIECE_READY);
      /* An iovec has no const; these bytes are only read. */
      a->piece[a->pieces - 1] =
          (struct iovec){.iov_base = (void *)(uintptr_t)s->whole.data, .iov_len = bytes};
    }
  }
  return true;
}

void answer_raw_write(struct answer *a, size_t i) {
  int64_t *out = a->piece[i].iov_base;
  const int32_t *integers = a->plan->piece[i].integers;
  const size_t count = a->piece[i].iov_len / sizeof *out;
  for (size_t k = 0; k < count; k++) out[k] = integers[k];
}
