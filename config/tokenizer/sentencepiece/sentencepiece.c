/* sentencepiece: reads a ModelProto, and checks what sentencepiece checks when it loads one. */
#include "config/tokenizer/sentencepiece/sentencepiece.h"

#include <stdlib.h>
#include <string.h>

#include "config/document/file.h"
#include "config/document/text.h"
#include "config/tokenizer/sentencepiece/wire.h"
#include "core/base/size.h"

/* Fields by their numbers in sentencepiece_model.proto. */
enum { MODEL_PIECE = 1, MODEL_TRAINER = 2, MODEL_NORMALIZER = 3, MODEL_DENORMALIZER = 5 };
enum { PIECE_TEXT = 1, PIECE_SCORE = 2, PIECE_TYPE = 3 };
enum { TRAINER_TYPE = 3, TRAINER_SUFFIX = 24, TRAINER_FALLBACK = 35, TRAINER_SURFACE = 44 };
enum { NORMALIZER_MAP = 2, NORMALIZER_PREFIX = 3, NORMALIZER_REMOVES = 4, NORMALIZER_ESCAPES = 5 };
enum { UNIGRAM = 1, BPE = 2, WORD = 3, CHARACTERS = 4 }; /* TRAINER_TYPE */

static const char unknown_surface[] = " \xe2\x81\x87 "; /* U+2047 */

static struct sentencepiece_text text_of(const struct wire *bytes) {
  return (struct sentencepiece_text){(const char *)bytes->file + bytes->at, bytes->end - bytes->at};
}

static struct sentencepiece_text read_text(const struct wire_field *f, const char *name,
                                           struct error *e) {
  const struct wire bytes = wire_bytes(f, name, e);
  if (e->status) return (struct sentencepiece_text){"", 0};
  if (!text_is_utf8(bytes.file + bytes.at, bytes.end - bytes.at))
    error_set(e, STATUS_CONFIG, "byte %zu: %s: is not UTF-8", bytes.at, name);
  return text_of(&bytes);
}

/* --- pieces --- */

static struct sentencepiece_piece *add_piece(struct sentencepiece *s, struct error *e) {
  if (s->count == s->room) {
    enum { FIRST = 1024 };
    const size_t room = size_max(FIRST, 2 * s->room);
    struct sentencepiece_piece *moved = realloc(s->piece, room * sizeof *moved);
    if (!moved) {
      error_no_memory(e);
      return NULL;
    }
    s->piece = moved;
    s->room = room;
  }
  s->piece[s->count] = (struct sentencepiece_piece){.type = SENTENCEPIECE_NORMAL};
  return &s->piece[s->count++];
}

static enum sentencepiece_type read_type(const struct wire_field *f, struct error *e) {
  const int32_t type = wire_int(f, "type of a piece", e);
  if (type < SENTENCEPIECE_NORMAL || type > SENTENCEPIECE_BYTE)
    error_set(e, STATUS_CONFIG, "byte %zu: type of a piece: %d is not supported", f->at, type);
  return (enum sentencepiece_type)type;
}

static void read_piece(struct sentencepiece *s, struct wire w, struct error *e) {
  const size_t begin = w.at;
  struct sentencepiece_piece *p = add_piece(s, e);
  for (struct wire_field f; p && wire_next(&w, &f, e);) {
    if (f.number == PIECE_TEXT) p->text = read_text(&f, "piece", e);
    if (f.number == PIECE_SCORE) p->score = wire_float(&f, "score", e);
    if (f.number == PIECE_TYPE) p->type = read_type(&f, e);
  }
  if (p && p->text.length == 0)
    error_set(e, STATUS_CONFIG, "byte %zu: piece %zu is empty", begin, s->count - 1);
}

/* --- settings --- */

static void read_trainer(struct sentencepiece *s, struct wire w, struct error *e) {
  for (struct wire_field f; wire_next(&w, &f, e);) {
    if (f.number == TRAINER_TYPE) {
      const int32_t type = wire_int(&f, "model_type", e);
      s->bpe = type == BPE;
      if (type == WORD || type == CHARACTERS)
        error_set(e, STATUS_CONFIG, "byte %zu: model_type: %s is not supported", f.at,
                  type == WORD ? "WORD" : "CHAR");
      else if (type != UNIGRAM && type != BPE)
        error_set(e, STATUS_CONFIG, "byte %zu: model_type: %d is not supported", f.at, type);
    }
    if (f.number == TRAINER_SUFFIX) s->suffix = wire_bool(&f, "treat_whitespace_as_suffix", e);
    if (f.number == TRAINER_FALLBACK) s->fallback = wire_bool(&f, "byte_fallback", e);
    if (f.number == TRAINER_SURFACE) s->unknown_surface = read_text(&f, "unk_surface", e);
  }
}

static void read_normalizer(struct sentencepiece *s, struct wire w, struct error *e) {
  for (struct wire_field f; wire_next(&w, &f, e);) {
    if (f.number == NORMALIZER_MAP) {
      const struct wire map = wire_bytes(&f, "precompiled_charsmap", e);
      if (!e->status) s->charsmap = text_of(&map);
    }
    if (f.number == NORMALIZER_PREFIX) s->prefix = wire_bool(&f, "add_dummy_prefix", e);
    if (f.number == NORMALIZER_REMOVES) s->removes = wire_bool(&f, "remove_extra_whitespaces", e);
    if (f.number == NORMALIZER_ESCAPES) s->escapes = wire_bool(&f, "escape_whitespaces", e);
  }
}

/* Rules that change a decoded text are in no published model. */
static void read_denormalizer(struct wire w, struct error *e) {
  for (struct wire_field f; wire_next(&w, &f, e);)
    if (f.number == NORMALIZER_MAP && f.bytes.end > f.bytes.at)
      error_set(e, STATUS_CONFIG, "byte %zu: denormalizer_spec: rules are not supported", f.at);
}

/* --- the model --- */

int sentencepiece_byte(struct sentencepiece_text text) {
  static const char digits[] = "0123456789ABCDEF";
  if (text.length != 6 || memcmp(text.bytes, "<0x", 3) != 0 || text.bytes[5] != '>') return -1;
  const char *high = memchr(digits, text.bytes[3], 16), *low = memchr(digits, text.bytes[4], 16);
  return high && low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

static enum status check_pieces(struct sentencepiece *s, struct error *e) {
  bool byte[256] = {false};
  size_t bytes = 0, unknown = 0;
  for (size_t i = 0; i < s->count; i++) {
    const struct sentencepiece_piece *p = &s->piece[i];
    if (p->type == SENTENCEPIECE_UNKNOWN) {
      s->unknown = i;
      if (unknown++)
        return error_set(e, STATUS_CONFIG, "piece %zu: is a second one of type UNKNOWN", i);
    }
    if (p->type != SENTENCEPIECE_BYTE) continue;
    const int value = sentencepiece_byte(p->text);
    if (!s->fallback)
      return error_set(e, STATUS_CONFIG, "piece %zu: type BYTE, but byte_fallback is off", i);
    if (value < 0 || byte[value])
      return error_set(e, STATUS_CONFIG, "piece %zu: type BYTE: needs <0x00> to <0xFF>, each once",
                       i);
    byte[value] = true;
    bytes++;
  }
  if (!unknown) return error_set(e, STATUS_CONFIG, "there is no piece of type UNKNOWN");
  if (s->fallback && bytes != sizeof byte)
    return error_set(e, STATUS_CONFIG, "byte_fallback is on, but there are %zu pieces of bytes",
                     bytes);
  return STATUS_OK;
}

enum status sentencepiece_read(struct sentencepiece *s, const void *bytes, size_t size,
                               struct error *e) {
  struct wire w = {bytes, 0, size};
  *s = (struct sentencepiece){.unknown_surface = {unknown_surface, sizeof unknown_surface - 1},
                              .prefix = true,
                              .removes = true,
                              .escapes = true};
  for (struct wire_field f; wire_next(&w, &f, e);) {
    if (f.number == MODEL_PIECE) read_piece(s, wire_bytes(&f, "pieces", e), e);
    if (f.number == MODEL_TRAINER) read_trainer(s, wire_bytes(&f, "trainer_spec", e), e);
    if (f.number == MODEL_NORMALIZER) read_normalizer(s, wire_bytes(&f, "normalizer_spec", e), e);
    if (f.number == MODEL_DENORMALIZER)
      read_denormalizer(wire_bytes(&f, "denormalizer_spec", e), e);
  }
  return e->status ? e->status : check_pieces(s, e);
}

enum status sentencepiece_open(struct sentencepiece *s, const char *path, struct error *e) {
  size_t size = 0;
  char *file = file_data(path, &size, e);
  *s = (struct sentencepiece){0};
  if (!file) return e->status;
  if (sentencepiece_read(s, file, size, e) == STATUS_CONFIG)
    text_before(e, "%s: ", text_file_name(path));
  s->file = file;
  return e->status;
}

void sentencepiece_done(struct sentencepiece *s) {
  free(s->piece);
  free(s->file);
  *s = (struct sentencepiece){0};
}
