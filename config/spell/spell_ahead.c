/* spell_ahead: what is known of the text of pieces before all of them are there. */
#include "config/spell/spell_ahead.h"

#include "core/run/size.h"

/* --- does the text of the first pieces stay? --- */

/* Whatever is joined is one piece to the steps behind: of these only a blank at its beginning may
 * be looked at, which is that of the first piece. */
static bool stays_joined(const struct spell_step *s) {
  return s->apply == spell_fuse || (s->apply == spell_strip && s->start <= 1 && s->stop == 0);
}

static bool joins(const struct spell_step *s) {
  return s->apply == spell_fuse || s->apply == spell_byte_level;
}

bool spell_steps_are_steady(const struct spell_step *step, size_t count) {
  bool joined = false;
  for (size_t i = 0; i < count; i++) {
    if (joined && !stays_joined(&step[i])) return false;
    joined = joined || joins(&step[i]);
  }
  return true;
}

bool spell_steps_have_bytes(const struct spell_step *step, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (step[i].apply == spell_byte_fallback) return true;
  return false;
}

/* --- how long does it become? --- */

enum { REPLACEMENT_BYTES = 3 /* of U+FFFD, in the place of a byte */ };

/* A match has a byte, or lies between two. */
static bool grow_replaced(const struct spell_step *s, size_t *bytes) {
  size_t put;
  return size_add(*bytes, 1, bytes) && size_mul(*bytes, s->length, &put) &&
         size_add(*bytes, put, bytes);
}

/* Behind a step a piece has so many bytes at most. */
static bool grow(const struct spell_step *s, size_t *bytes) {
  if (s->apply == spell_byte_level) return size_mul(*bytes, REPLACEMENT_BYTES, bytes);
  if (s->apply == spell_word_piece) return size_add(*bytes, 1, bytes);
  return s->apply != spell_replace || grow_replaced(s, bytes);
}

size_t spell_steps_room(const struct spell_step *step, size_t count, size_t piece) {
  for (size_t i = 0; i < count; i++)
    if (!grow(&step[i], &piece)) return SIZE_MAX;
  return piece;
}
