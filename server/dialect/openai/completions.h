/* completions: OpenAI's POST /v1/completions: text that follows prompts, which are texts or tokens,
 * at once or as a stream. */
#ifndef SERVER_COMPLETIONS_H
#define SERVER_COMPLETIONS_H

#include "server/dialect/dialect.h"

extern const struct dialect completions;

#endif
