/* decoder: the steps of a decoder, in the order in which they are done. */
#include "config/tokenizer/decoder/decoder.h"

#include <stdlib.h>
#include <string.h>

#include "config/document/member.h"
#include "config/document/text.h"
#include "config/tokenizer/decoder/decoder_ahead.h"
#include "core/base/size.h"

struct token_decoder {
  struct decoder_step *step;
  size_t count, room;
  bool spaces; /* between the pieces: there is no decoder */
};

/* --- steps --- */

static void refuse_memory(struct error *e) { error_no_memory(e); }

/* A new step at the end, all zeros but for what it does. NULL: no memory. */
static struct decoder_step *
add_step(struct token_decoder *s,
         void (*apply)(const struct decoder_step *step, struct decoder_work *w), struct error *e) {
  if (s->count == s->room) {
    const size_t room = 2 * s->room + 1;
    struct decoder_step *moved = realloc(s->step, room * sizeof *moved);
    if (!moved) {
      refuse_memory(e);
      return NULL;
    }
    s->step = moved;
    s->room = room;
  }
  struct decoder_step *step = &s->step[s->count++];
  *step = (struct decoder_step){.apply = apply};
  return step;
}

/* A copy with a zero behind it; NULL where it is refused. */
static char *read_text(const json_t *json, const char *key, bool may_be_empty, size_t *length,
                       struct error *e) {
  const struct member_text text = member_string(json, key, e);
  if (text.length == 0 && !may_be_empty) member_refuse(json, key, "a string that is not empty", e);
  if (e->status) return NULL;
  char *copy = malloc(text.length + 1);
  if (!copy) {
    refuse_memory(e);
    return NULL;
  }
  memcpy(copy, text.bytes, text.length + 1);
  *length = text.length;
  return copy;
}

/* --- types --- */

static void read_byte_level(struct token_decoder *s, const json_t *json, struct error *e) {
  member_flag(json, "add_prefix_space", e);
  member_flag(json, "trim_offsets", e);
  if (json_object_get(json, "use_regex")) member_flag(json, "use_regex", e);
  add_step(s, decoder_byte_level, e);
}

static void read_word_piece(struct token_decoder *s, const json_t *json, struct error *e) {
  struct decoder_step *step = add_step(s, decoder_word_piece, e);
  if (!step) return;
  step->text = read_text(json, "prefix", true, &step->length, e);
  step->cleanup = member_flag(json, "cleanup", e);
}

static void read_metaspace(struct token_decoder *s, const json_t *json, struct error *e) {
  struct decoder_step *step = add_step(s, decoder_metaspace, e);
  if (step) metaspace_read(&step->metaspace, json, e);
}

static void read_bpe(struct token_decoder *s, const json_t *json, struct error *e) {
  struct decoder_step *step = add_step(s, decoder_bpe, e);
  if (step) step->text = read_text(json, "suffix", false, &step->length, e);
}

static void read_ctc(struct token_decoder *s, const json_t *json, struct error *e) {
  struct decoder_step *step = add_step(s, decoder_ctc, e);
  if (!step) return;
  step->text = read_text(json, "pad_token", false, &step->length, e);
  step->other = read_text(json, "word_delimiter_token", false, &step->other_length, e);
  step->cleanup = member_flag(json, "cleanup", e);
}

static void read_replace(struct token_decoder *s, const json_t *json, struct error *e) {
  struct decoder_step *step = add_step(s, decoder_replace, e);
  if (!step) return;
  step->text = read_text(json, "content", true, &step->length, e);
  if (e->status) return;
  step->pattern = pattern_new(json_object_get(json, "pattern"), e);
  if (e->status == STATUS_CONFIG) text_before(e, "pattern: ");
}

static void read_strip(struct token_decoder *s, const json_t *json, struct error *e) {
  const struct member_text text = member_character(json, "content", e);
  const size_t start = member_count(json, "start", 0, INT32_MAX, e);
  const size_t stop = member_count(json, "stop", 0, INT32_MAX, e);
  struct decoder_step *step = e->status ? NULL : add_step(s, decoder_strip, e);
  size_t length;
  if (!step) return;
  step->character = unicode_read(text.bytes, &length);
  step->start = start;
  step->stop = stop;
}

enum decoder_type {
  TYPE_BPE,
  TYPE_BYTE_FALLBACK,
  TYPE_BYTE_LEVEL,
  TYPE_CTC,
  TYPE_FUSE,
  TYPE_METASPACE,
  TYPE_REPLACE,
  TYPE_SEQUENCE,
  TYPE_STRIP,
  TYPE_WORD_PIECE,
  TYPES
};

static const struct member_type types[TYPES] = {
    [TYPE_BPE] = {"BPEDecoder", "suffix "},
    [TYPE_BYTE_FALLBACK] = {"ByteFallback", ""},
    [TYPE_BYTE_LEVEL] = {"ByteLevel", "add_prefix_space trim_offsets use_regex "},
    [TYPE_CTC] = {"CTC", "pad_token word_delimiter_token cleanup "},
    [TYPE_FUSE] = {"Fuse", ""},
    [TYPE_METASPACE] = {"Metaspace", METASPACE_MEMBERS},
    [TYPE_REPLACE] = {"Replace", "pattern content "},
    [TYPE_SEQUENCE] = {"Sequence", "decoders "},
    [TYPE_STRIP] = {"Strip", "content start stop "},
    [TYPE_WORD_PIECE] = {"WordPiece", "prefix cleanup "},
};

enum { DEEPEST = 32 }; /* sequences in one another */

static void read_part(struct token_decoder *s, const json_t *json, size_t depth, struct error *e);

/* Sequences leave no trace: their steps are done one behind the other anyway. */
static void read_sequence(struct token_decoder *s, const json_t *json, size_t depth,
                          struct error *e) {
  const json_t *list = member_list(json, "decoders", e);
  if (depth == DEEPEST)
    error_set(e, STATUS_CONFIG, "more than %d sequences in one another", DEEPEST);
  for (size_t i = 0; i < json_array_size(list) && e->status == STATUS_OK; i++) {
    read_part(s, json_array_get(list, i), depth + 1, e);
    if (e->status == STATUS_CONFIG) text_before(e, "decoders, %zu: ", i);
  }
}

static void read_part(struct token_decoder *s, const json_t *json, size_t depth, struct error *e) {
  const enum decoder_type type = (enum decoder_type)member_type(json, types, TYPES, e);
  if (e->status) return;
  switch (type) {
  case TYPE_BPE:
    read_bpe(s, json, e);
    break;
  case TYPE_BYTE_FALLBACK:
    add_step(s, decoder_byte_fallback, e);
    break;
  case TYPE_BYTE_LEVEL:
    read_byte_level(s, json, e);
    break;
  case TYPE_CTC:
    read_ctc(s, json, e);
    break;
  case TYPE_FUSE:
    add_step(s, decoder_fuse, e);
    break;
  case TYPE_METASPACE:
    read_metaspace(s, json, e);
    break;
  case TYPE_REPLACE:
    read_replace(s, json, e);
    break;
  case TYPE_SEQUENCE:
    read_sequence(s, json, depth, e);
    break;
  case TYPE_STRIP:
    read_strip(s, json, e);
    break;
  case TYPE_WORD_PIECE:
    read_word_piece(s, json, e);
    break;
  case TYPES:
    break;
  }
  if (e->status == STATUS_CONFIG) text_before(e, "%s: ", types[type].name);
}

/* --- the whole --- */

struct token_decoder *decoder_new(const json_t *json, struct error *e) {
  struct token_decoder *s = calloc(1, sizeof *s);
  if (!s) {
    refuse_memory(e);
    return NULL;
  }
  s->spaces = !json || json_is_null(json);
  if (!s->spaces) read_part(s, json, 0, e);
  if (e->status == STATUS_OK) return s;
  if (e->status == STATUS_CONFIG) text_plain(e);
  decoder_free(s);
  return NULL;
}

void decoder_free(struct token_decoder *s) {
  if (!s) return;
  for (size_t i = 0; i < s->count; i++) {
    free(s->step[i].text);
    free(s->step[i].other);
    pattern_free(s->step[i].pattern);
  }
  free(s->step);
  free(s);
}

bool decoder_reads_bytes(const struct token_decoder *s) {
  return s->count == 1 && s->step[0].apply == decoder_byte_level;
}

bool decoder_is_steady(const struct token_decoder *s) {
  return decoder_steps_are_steady(s->step, s->count);
}

int decoder_byte(const struct token_decoder *s, const struct decoder_piece *piece) {
  if (piece->raw || !decoder_steps_have_bytes(s->step, s->count)) return -1;
  return decoder_byte_of(piece->bytes, piece->length);
}

bool decoder_leaves_open(const struct token_decoder *s, const struct decoder_piece *piece) {
  return decoder_byte(s, piece) >= 0;
}

size_t decoder_room(const struct token_decoder *s, size_t piece) {
  size_t room = decoder_steps_room(s->step, s->count, piece);
  return s->spaces && !size_add(room, 1, &room) ? SIZE_MAX : room;
}

/* --- spelling --- */

static void put_all(const struct token_decoder *s, struct decoder_work *w,
                    const struct decoder_piece *piece, size_t count) {
  for (size_t i = 0; i < count; i++) {
    must(!piece[i].raw);
    if (s->spaces && i > 0) decoder_append(w, " ", 1);
    decoder_append(w, piece[i].bytes, piece[i].length);
    decoder_end_piece(w);
  }
  decoder_commit(w);
}

static void put_bytes(struct decoder_work *w, const struct decoder_piece *piece, size_t count) {
  for (size_t i = 0; i < count; i++)
    (piece[i].raw ? decoder_append : decoder_append_letters)(w, piece[i].bytes, piece[i].length);
  decoder_commit_bytes(w);
}

/* Steps behind that of bytes may have changed it. */
static bool ends_with_replacement(const struct decoder_list *l) {
  static const char text[] = DECODER_REPLACEMENT;
  const size_t size = sizeof text - 1;
  return l->length >= size && memcmp(l->bytes + l->length - size, text, size) == 0;
}

enum status decoder_decode(const struct token_decoder *s, const struct decoder_piece *piece,
                           size_t count, struct arena *a, struct decoder_text *out,
                           struct error *e) {
  struct decoder_work w = {.arena = a, .e = e};
  if (decoder_reads_bytes(s)) {
    put_bytes(&w, piece, count);
  } else {
    put_all(s, &w, piece, count);
    for (size_t i = 0; i < s->count && e->status == STATUS_OK; i++)
      s->step[i].apply(&s->step[i], &w);
  }
  *out = (struct decoder_text){w.now.bytes, w.now.length, w.open && ends_with_replacement(&w.now)};
  return e->status;
}
