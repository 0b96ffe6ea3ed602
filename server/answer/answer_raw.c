/* answer_raw: the arrays of a response as bytes.
 *
 * Floats in their final order are sent from where they were computed. All else is written into
 * pieces of bytes: integers, which are computed with 32 bits and sent with 64; padded arrays; and
 * all arrays if there are too many to have a piece each. */
#include "core/base/size.h"
#include "server/answer/answer_plan.h"

enum {
  LENGTH = 8, /* bytes of the header's length, and the alignment of the data */
  READY_MAX = 64,
  BYTES_MIN = 256 * 1024, /* least size of a piece of bytes, except at the end */
  BYTES_PIECES_MAX = 96
};

_Static_assert(3 + 2 * READY_MAX + BYTES_PIECES_MAX < ANSWER_PIECES_MAX, "text has pieces left");

static const char BEGIN[] = "{\"__metadata__\":{\"model\":\"", USAGE[] = "\",\"usage\":\"",
                  LABELS[] = "\",\"labels\":\"", META_END[] = "\"}";
static const char NAME[] = ",\"", TYPE[] = "\":{\"dtype\":\"",
                  SHAPE[] = "\",\"shape\":", OFFSETS[] = ",\"data_offsets\":[", TENSOR_END[] = "]}";
static const struct {
  const char *type; /* at most 3 letters */
  size_t size;      /* bytes of a number as it is sent */
} numbers[] = {[NUMBER_FLOAT] = {"F32", 4},
               [NUMBER_INTEGER] = {"I64", 8},
               [NUMBER_TOKEN] = {"I32", 4},
               [NUMBER_LENGTH] = {"I32", 4},
               [NUMBER_BYTE] = {"U8", 1}};

size_t answer_raw_number(const struct answer_section *s) { return numbers[s->number].size; }

static size_t bytes_of(const struct answer_section *s) {
  return s->whole.count * answer_raw_number(s);
}

/* Returns whether the array is sent from where it was computed. */
static bool is_ready(const struct answer_plan *p, const struct answer_section *s) {
  return p->arrays <= READY_MAX && s->number == NUMBER_FLOAT && !s->padded;
}

/* Returns about how many bytes a piece of bytes has. */
static size_t bytes_each(const struct answer_plan *p) {
  size_t bytes = 0; /* if the sum overflows, it is over the limit and nothing is cut */
  for (size_t i = 0; i < p->arrays; i++)
    if (!is_ready(p, p->array[i]) && !size_add(bytes, bytes_of(p->array[i]), &bytes))
      bytes = SIZE_MAX;
  return size_max(BYTES_MIN, bytes / (BYTES_PIECES_MAX - 1) + 1);
}

size_t answer_raw_bound(const struct answer_plan *p) {
  size_t ready = 0, bytes = 0;
  for (size_t i = 0; i < p->arrays; i++) {
    const bool is = is_ready(p, p->array[i]);
    ready += is;
    if (!is) bytes += size_min(bytes_of(p->array[i]), SIZE_MAX / 2 - bytes);
  }
  /* The header, the ready arrays, and between them pieces of bytes that are full or end at an
   * array. */
  return 1 + 2 * ready + size_min(bytes / bytes_each(p), BYTES_PIECES_MAX) + 1;
}

/* --- the header of safetensors --- */

/* Writes text into a JSON string; it has no control characters. */
static char *write_quoted(char *out, const char *text) {
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') *out++ = '\\';
    *out++ = *text;
  }
  return out;
}

/* Returns an upper bound of the header's bytes. */
static size_t header_room(const struct answer_plan *p) {
  size_t room = LENGTH + sizeof BEGIN + strlen(p->content->model) + sizeof META_END + 1 + LENGTH;
  if (p->content->has_usage) room += sizeof USAGE + 2 * ANSWER_USAGE_ROOM;
  if (p->content->labels) room += sizeof LABELS + 2 * strlen(p->content->labels);
  for (size_t i = 0; i < p->arrays; i++) {
    const struct answer_section *s = p->array[i];
    room += sizeof NAME + (s->group ? strlen(s->group) + 1 : 0) + strlen(s->name) + sizeof TYPE +
            3 + sizeof SHAPE + SHAPE_ROOM + sizeof OFFSETS + 2 * COUNT_ROOM + 1 + sizeof TENSOR_END;
  }
  return room + NUMBER_WRITE_MARGIN;
}

enum status answer_raw_header(struct answer *a, struct arena *arena, struct error *e) {
  const struct answer_plan *p = a->plan;
  char *begin = arena_alloc(arena, header_room(p), 1, e), *out = begin;
  if (!begin) return e->status;
  out = answer_write_text(out + LENGTH, BEGIN);
  out = answer_write_text(out, p->content->model);
  if (p->content->has_usage) {
    char usage[ANSWER_USAGE_ROOM + NUMBER_WRITE_MARGIN];
    *answer_usage_write(usage, &p->content->usage) = 0;
    out = answer_write_text(out, USAGE);
    out = write_quoted(out, usage);
  }
  if (p->content->labels) {
    out = answer_write_text(out, LABELS);
    out = write_quoted(out, p->content->labels);
  }
  out = answer_write_text(out, META_END);

  size_t offset = 0;
  for (size_t i = 0; i < p->arrays; i++) {
    const struct answer_section *s = p->array[i];
    out = answer_write_text(out, NAME);
    if (s->group) {
      out = answer_write_text(out, s->group);
      *out++ = '.';
    }
    out = answer_write_text(out, s->name);
    out = answer_write_text(out, TYPE);
    out = answer_write_text(out, numbers[s->number].type);
    out = answer_write_text(out, SHAPE);
    out = answer_write_shape(out, &s->whole);
    out = answer_write_text(out, OFFSETS);
    out = number_write_integer(out, (int64_t)offset);
    *out++ = ',';
    offset += bytes_of(s);
    out = number_write_integer(out, (int64_t)offset);
    out = answer_write_text(out, TENSOR_END);
  }
  *out++ = '}';

  while ((size_t)(out - begin) % LENGTH != 0) *out++ = ' ';
  const uint64_t length = (uint64_t)(out - begin) - LENGTH;
  memcpy(begin, &length, sizeof length);
  answer_plan_append(a, PIECE_READY);
  a->piece[a->pieces - 1] = (struct iovec){.iov_base = begin, .iov_len = (size_t)(out - begin)};
  return STATUS_OK;
}

/* --- the arrays --- */

bool answer_raw_cut(struct answer *a) {
  struct answer_plan *p = a->plan;
  const size_t each = bytes_each(p);
  for (size_t i = 0; i < p->arrays; i++)
    if (!answer_plan_spend(p, bytes_of(p->array[i]))) return false;
  bool open = false; /* whether the last piece is one of bytes, which may get more */
  for (size_t i = 0; i < p->arrays; i++) {
    const struct answer_section *s = p->array[i];
    if (bytes_of(s) == 0) continue;
    if (is_ready(p, s)) {
      answer_plan_append(a, PIECE_READY);
      /* An iovec has no const; these bytes are only read. */
      a->piece[a->pieces - 1] =
          (struct iovec){.iov_base = (void *)(uintptr_t)s->whole.data, .iov_len = bytes_of(s)};
      open = false;
      continue;
    }
    const size_t size = numbers[s->number].size;
    for (size_t first = 0, count; first < s->whole.count; first += count) {
      if (!open || a->piece[a->pieces - 1].iov_len >= each) {
        struct answer_piece *piece = answer_plan_append(a, PIECE_BYTES);
        piece->array = i;
        piece->first = first;
        open = true;
      }
      struct iovec *piece = &a->piece[a->pieces - 1];
      count = size_min((each - piece->iov_len + size - 1) / size, s->whole.count - first);
      piece->iov_len += count * size;
    }
  }
  return true;
}

void answer_raw_write(struct answer *a, size_t i) {
  const struct answer_piece *piece = &a->plan->piece[i];
  char *out = a->piece[i].iov_base, *end = out + a->piece[i].iov_len;
  size_t first = piece->first;
  for (size_t array = piece->array; out < end; array++, first = 0) {
    const struct answer_section *s = a->plan->array[array];
    const size_t size = numbers[s->number].size;
    const size_t count = size_min(s->whole.count - first, (size_t)(end - out) / size);
    if (s->number == NUMBER_INTEGER) {
      const int32_t *integer = (const int32_t *)s->whole.data + first;
      int64_t *wide = (int64_t *)(void *)out;
      for (size_t k = 0; k < count; k++) wide[k] = integer[k];
    } else {
      answer_section_copy(s, first, count, out);
    }
    out += count * size;
  }
}
