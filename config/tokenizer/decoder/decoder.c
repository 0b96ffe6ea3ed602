/* decoder: the steps of a decoder, in the order in which they are applied. */
#include "config/tokenizer/decoder/decoder.h"

#include <stdlib.h>
#include <string.h>

#include "config/document/part.h"
#include "config/document/text.h"
#include "config/tokenizer/decoder/decoder_parts.h"
#include "core/base/size.h"

struct token_decoder {
  struct part_list steps; /* of decoder_step */
  bool spaces;            /* between the pieces: the file has no decoder */
};

/* --- types --- */

/* A new step at the end; NULL: no memory. */
static struct decoder_step *
add_step(struct token_decoder *d,
         void (*apply)(const struct decoder_step *step, struct decoder_work *w), struct error *e) {
  struct decoder_step *step = part_list_add(&d->steps, sizeof *step, e);
  if (step) step->apply = apply;
  return step;
}

/* A copy with a zero after it; NULL: no memory. */
static char *copy_bytes(const char *bytes, size_t length, size_t *copied, struct error *e) {
  char *copy = malloc(length + 1);
  if (!copy) {
    error_no_memory(e);
    return NULL;
  }
  memcpy(copy, bytes, length);
  copy[length] = 0;
  *copied = length;
  return copy;
}

/* A copy of a member; NULL after a failure. */
static char *copy_text(const json_t *json, const char *key, bool may_be_empty, size_t *length,
                       struct error *e) {
  const struct member_text text = member_string(json, key, e);
  if (text.length == 0 && !may_be_empty) member_refuse(json, key, "a string that is not empty", e);
  return e->status ? NULL : copy_bytes(text.bytes, text.length, length, e);
}

static void read_bpe(void *to, const json_t *json, struct error *e) {
  struct decoder_step *step = add_step(to, decoder_bpe, e);
  if (step) step->text = copy_text(json, "suffix", false, &step->length, e);
}

static void read_byte_fallback(void *to, const json_t *json, struct error *e) {
  (void)json;
  add_step(to, decoder_byte_fallback, e);
}

/* The members are the pre-tokenizer's. */
static void read_byte_level(void *to, const json_t *json, struct error *e) {
  member_flag(json, "add_prefix_space", e);
  member_flag(json, "trim_offsets", e);
  if (json_object_get(json, "use_regex")) member_flag(json, "use_regex", e);
  add_step(to, decoder_byte_level, e);
}

static void read_ctc(void *to, const json_t *json, struct error *e) {
  struct decoder_step *step = add_step(to, decoder_ctc, e);
  if (!step) return;
  step->text = copy_text(json, "pad_token", false, &step->length, e);
  step->other = copy_text(json, "word_delimiter_token", false, &step->other_length, e);
  step->cleanup = member_flag(json, "cleanup", e);
}

static void read_fuse(void *to, const json_t *json, struct error *e) {
  (void)json;
  add_step(to, decoder_fuse, e);
}

static void read_metaspace(void *to, const json_t *json, struct error *e) {
  struct decoder_step *step = add_step(to, decoder_metaspace, e);
  if (step) metaspace_read(&step->metaspace, json, e);
}

static void read_replace(void *to, const json_t *json, struct error *e) {
  struct decoder_step *step = add_step(to, decoder_replace, e);
  if (!step) return;
  step->text = copy_text(json, "content", true, &step->length, e);
  if (e->status) return;
  step->pattern = pattern_new(json_object_get(json, "pattern"), e);
  if (e->status == STATUS_CONFIG) text_before(e, "pattern: ");
}

static void read_strip(void *to, const json_t *json, struct error *e) {
  const struct member_text text = member_character(json, "content", e);
  const size_t start = member_count(json, "start", 0, INT32_MAX, e);
  const size_t stop = member_count(json, "stop", 0, INT32_MAX, e);
  struct decoder_step *step = e->status ? NULL : add_step(to, decoder_strip, e);
  size_t length;
  if (!step) return;
  step->character = unicode_read(text.bytes, &length);
  step->start = start;
  step->stop = stop;
}

static void read_word_piece(void *to, const json_t *json, struct error *e) {
  struct decoder_step *step = add_step(to, decoder_word_piece, e);
  if (!step) return;
  step->text = copy_text(json, "prefix", true, &step->length, e);
  step->cleanup = member_flag(json, "cleanup", e);
}

static const struct part_kind kinds[] = {
    {{"BPEDecoder", "suffix "}, read_bpe},
    {{"ByteFallback", ""}, read_byte_fallback},
    {{"ByteLevel", "add_prefix_space trim_offsets use_regex "}, read_byte_level},
    {{"CTC", "pad_token word_delimiter_token cleanup "}, read_ctc},
    {{"Fuse", ""}, read_fuse},
    {{"Metaspace", METASPACE_MEMBERS}, read_metaspace},
    {{"Replace", "pattern content "}, read_replace},
    {{"Sequence", "decoders "}, NULL},
    {{"Strip", "content start stop "}, read_strip},
    {{"WordPiece", "prefix cleanup "}, read_word_piece},
};
static const struct part_kinds decoders = {kinds, sizeof kinds / sizeof *kinds, "decoders", false};

struct token_decoder *decoder_new(const json_t *json, struct error *e) {
  struct token_decoder *d = calloc(1, sizeof *d);
  if (!d) {
    error_no_memory(e);
    return NULL;
  }
  d->spaces = !json || json_is_null(json);
  if (d->spaces || part_read(&decoders, json, d, e) == STATUS_OK) return d;
  if (e->status == STATUS_CONFIG) text_plain(e);
  decoder_free(d);
  return NULL;
}

struct token_decoder *decoder_new_sentence(const struct sentencepiece *s, struct error *e) {
  struct token_decoder *d = calloc(1, sizeof *d);
  if (!d) error_no_memory(e);
  struct decoder_step *step = d ? add_step(d, decoder_sentence, e) : NULL;
  if (step) {
    const struct sentencepiece_text *name = &s->piece[s->unknown].text,
                                    *shown = &s->unknown_surface;
    step->text = copy_bytes(name->bytes, name->length, &step->length, e);
    step->other = copy_bytes(shown->bytes, shown->length, &step->other_length, e);
    step->bytes = s->fallback;
    step->stop = s->removes ? SIZE_MAX : s->prefix;
  }
  if (e->status == STATUS_OK) return d;
  decoder_free(d);
  return NULL;
}

void decoder_free(struct token_decoder *d) {
  if (!d) return;
  const struct decoder_step *step = d->steps.item;
  for (size_t i = 0; i < d->steps.count; i++) {
    free(step[i].text);
    free(step[i].other);
    pattern_free(step[i].pattern);
  }
  free(d->steps.item);
  free(d);
}

/* --- what is known before all pieces are there --- */

bool decoder_reads_bytes(const struct token_decoder *d) {
  const struct decoder_step *step = d->steps.item;
  return d->steps.count == 1 && step->apply == decoder_byte_level;
}

/* Steps after one that joins the pieces see them as one. Such a step leaves earlier text as it is
 * if it joins, or if all that it changes is a character at the beginning. */
bool decoder_is_steady(const struct token_decoder *d) {
  const struct decoder_step *step = d->steps.item;
  bool joined = false;
  for (size_t i = 0; i < d->steps.count; i++, step++) {
    const bool stays = step->apply == decoder_fuse ||
                       (step->apply == decoder_strip && step->start <= 1 && step->stop == 0);
    if (joined && !stays) return false;
    joined = joined || step->apply == decoder_fuse || step->apply == decoder_byte_level;
  }
  return true;
}

int decoder_byte(const struct token_decoder *d, const struct decoder_piece *piece) {
  const struct decoder_step *step = d->steps.item;
  for (size_t i = 0; i < d->steps.count && !piece->raw; i++) {
    if (step[i].apply == decoder_byte_fallback) return decoder_byte_of(piece->bytes, piece->length);
    if (step[i].bytes)
      return sentencepiece_byte((struct sentencepiece_text){piece->bytes, piece->length});
  }
  return -1;
}

bool decoder_leaves_open(const struct token_decoder *d, const struct decoder_piece *piece) {
  return decoder_byte(d, piece) >= 0;
}

size_t decoder_room(const struct token_decoder *d, size_t piece) {
  const struct decoder_step *step = d->steps.item;
  size_t room = piece, replaced;
  bool bounded = true;
  for (size_t i = 0; i < d->steps.count && bounded; i++, step++) {
    if (step->apply == decoder_byte_level) /* each byte may become a U+FFFD */
      bounded = size_mul(room, sizeof DECODER_REPLACEMENT - 1, &room);
    else if (step->apply == decoder_word_piece) /* a blank before it */
      bounded = size_add(room, 1, &room);
    else if (step->apply == decoder_sentence) /* the unknown piece */
      room = size_max(room, step->other_length);
    else if (step->apply == decoder_replace) /* a match at each byte, and at the end */
      bounded = size_add(room, 1, &room) && size_mul(room, step->length, &replaced) &&
                size_add(room, replaced, &room);
  }
  if (d->spaces) bounded = bounded && size_add(room, 1, &room);
  return bounded ? room : SIZE_MAX;
}

/* --- decoding --- */

enum status decoder_decode(const struct token_decoder *d, const struct decoder_piece *piece,
                           size_t count, struct arena *a, struct decoder_text *out,
                           struct error *e) {
  static const char bad[] = DECODER_REPLACEMENT;
  const struct decoder_step *step = d->steps.item;
  struct decoder_work w = {.arena = a, .e = e};
  if (decoder_reads_bytes(d)) {
    for (size_t i = 0; i < count; i++)
      (piece[i].raw ? decoder_append : decoder_append_letters)(&w, piece[i].bytes, piece[i].length);
    decoder_commit_bytes(&w);
  } else {
    for (size_t i = 0; i < count; i++) {
      must(!piece[i].raw);
      if (d->spaces && i > 0) decoder_append(&w, " ", 1);
      decoder_append(&w, piece[i].bytes, piece[i].length);
      decoder_end_piece(&w);
    }
    decoder_commit(&w);
    for (size_t i = 0; i < d->steps.count && e->status == STATUS_OK; i++)
      step[i].apply(&step[i], &w);
  }
  /* A step after that of bytes may have changed the end. */
  const size_t length = w.now.length, size = strlen(bad);
  const bool open = w.open && length >= size && memcmp(w.now.bytes + length - size, bad, size) == 0;
  *out = (struct decoder_text){w.now.bytes, length, open};
  return e->status;
}
