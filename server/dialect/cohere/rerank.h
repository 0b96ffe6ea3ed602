/* rerank: POST /v1/rerank of Jina, Cohere and vLLM: the documents that fit a query, the best first.
 */
#ifndef SERVER_RERANK_H
#define SERVER_RERANK_H

#include "server/dialect/dialect.h"

extern const struct dialect rerank;

#endif
