/* embeddings: OpenAI's POST /v1/embeddings: an embedding for each text or list of tokens. */
#ifndef SERVER_EMBEDDINGS_H
#define SERVER_EMBEDDINGS_H

#include "server/dialect/dialect.h"

extern const struct dialect embeddings;

#endif
