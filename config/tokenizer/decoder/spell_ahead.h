/* spell_ahead: what the steps of a decoder say of a text before all its pieces are there. For spell
 * alone: see there. */
#ifndef CONFIG_SPELL_AHEAD_H
#define CONFIG_SPELL_AHEAD_H

#include "config/tokenizer/decoder/spell_parts.h"

bool spell_steps_are_steady(const struct spell_step *step, size_t count);
bool spell_steps_have_bytes(const struct spell_step *step, size_t count);
size_t spell_steps_room(const struct spell_step *step, size_t count, size_t piece);

#endif
