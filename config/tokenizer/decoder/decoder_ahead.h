/* decoder_ahead: what the steps of a decoder say of a text before all its pieces are there. For
 * spell alone: see there. */
#ifndef CONFIG_DECODER_AHEAD_H
#define CONFIG_DECODER_AHEAD_H

#include "config/tokenizer/decoder/decoder_parts.h"

bool decoder_steps_are_steady(const struct decoder_step *step, size_t count);
bool decoder_steps_have_bytes(const struct decoder_step *step, size_t count);
size_t decoder_steps_room(const struct decoder_step *step, size_t count, size_t piece);

#endif
