/* decoder_ahead: what is known of the text of pieces before all of them are there. */
#include "config/tokenizer/decoder/decoder_ahead.h"

#include "core/base/size.h"

/* --- does the text of the first pieces stay? --- */

/* A step behind a joining one sees all pieces as one. It leaves earlier text alone if it changes
 * nothing but a character at the beginning. */
static bool stays_joined(const struct decoder_step *s) {
  return s->apply == decoder_fuse || (s->apply == decoder_strip && s->start <= 1 && s->stop == 0);
}

static bool joins(const struct decoder_step *s) {
  return s->apply == decoder_fuse || s->apply == decoder_byte_level;
}

bool decoder_steps_are_steady(const struct decoder_step *step, size_t count) {
  bool joined = false;
  for (size_t i = 0; i < count; i++) {
    if (joined && !stays_joined(&step[i])) return false;
    joined = joined || joins(&step[i]);
  }
  return true;
}

bool decoder_steps_have_bytes(const struct decoder_step *step, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (step[i].apply == decoder_byte_fallback) return true;
  return false;
}

/* --- how long does it become? --- */

enum { REPLACEMENT_BYTES = 3 /* of U+FFFD, in the place of a byte */ };

/* A match takes at least a byte, or lies between two bytes. */
static bool grow_replaced(const struct decoder_step *s, size_t *bytes) {
  size_t put;
  return size_add(*bytes, 1, bytes) && size_mul(*bytes, s->length, &put) &&
         size_add(*bytes, put, bytes);
}

/* The most bytes that the piece has behind the step. */
static bool grow(const struct decoder_step *s, size_t *bytes) {
  if (s->apply == decoder_byte_level) return size_mul(*bytes, REPLACEMENT_BYTES, bytes);
  if (s->apply == decoder_word_piece) return size_add(*bytes, 1, bytes);
  return s->apply != decoder_replace || grow_replaced(s, bytes);
}

size_t decoder_steps_room(const struct decoder_step *step, size_t count, size_t piece) {
  for (size_t i = 0; i < count; i++)
    if (!grow(&step[i], &piece)) return SIZE_MAX;
  return piece;
}
