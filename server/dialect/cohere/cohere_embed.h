/* cohere_embed: Cohere's POST /v1/embed and POST /v2/embed: an embedding for each text. */
#ifndef SERVER_COHERE_EMBED_H
#define SERVER_COHERE_EMBED_H

#include "server/dialect/dialect.h"

extern const struct dialect cohere_embed, cohere_embed_v2;

#endif
