/* stack_speech: the events of a stream in our own words: an item's sequence, a token of it, its
 * text; how it finished; what was used. */
#ifndef SERVER_STACK_SPEECH_H
#define SERVER_STACK_SPEECH_H

#include "server/model/answer/stack_stream.h"

extern const struct stack_speech stack_speech;

#endif
