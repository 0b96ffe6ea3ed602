/* elsewhere: paths of other services, as a table. */
#include "server/route/elsewhere.h"

#include <stddef.h>
#include <string.h>

#define OTHER_CHATS                                                                              \
  "this kind of chat is not supported: use POST /v1/chat/completions (GET /v1/models lists the " \
  "models)"
#define NOTHING_KEPT                                                                  \
  "this server stores and trains nothing: use POST /v1/embeddings, /v1/completions, " \
  "/v1/chat/completions, /v1/rerank or GET /v1/models"
#define TEXT_ALONE "images, video and audio are not supported: models read text and numbers"

/* The rows. A path precedes the paths above it. */
static const struct elsewhere table[] = {
    {"/v1/chat/completions", ERROR_OPENAI, NOTHING_KEPT},
    {"/v1/responses", ERROR_OPENAI, OTHER_CHATS},
    {"/v1/moderations", ERROR_OPENAI,
     "moderation is not supported: use POST /v1/models/NAME/classify with a classifier"},
    {"/v1/audio", ERROR_OPENAI, TEXT_ALONE},
    {"/v1/images", ERROR_OPENAI, TEXT_ALONE},
    {"/v1/videos", ERROR_OPENAI, TEXT_ALONE},
    {"/v1/realtime", ERROR_OPENAI, TEXT_ALONE},
    {"/v1/files", ERROR_OPENAI, NOTHING_KEPT},
    {"/v1/uploads", ERROR_OPENAI, NOTHING_KEPT},
    {"/v1/batches", ERROR_OPENAI, NOTHING_KEPT},
    {"/v1/fine_tuning", ERROR_OPENAI, NOTHING_KEPT},
    {"/v1/vector_stores", ERROR_OPENAI, NOTHING_KEPT},
    {"/v1/assistants", ERROR_OPENAI, NOTHING_KEPT},
    {"/v1/threads", ERROR_OPENAI, NOTHING_KEPT},
    {"/v1/conversations", ERROR_OPENAI, NOTHING_KEPT},
    {"/v1/containers", ERROR_OPENAI, NOTHING_KEPT},
    {"/v1/evals", ERROR_OPENAI, NOTHING_KEPT},
    {"/v1/chat", ERROR_COHERE, OTHER_CHATS},
    {"/v2/chat", ERROR_COHERE, OTHER_CHATS},
    {"/v1/generate", ERROR_COHERE, "unknown path: use POST /v1/completions for text generation"},
    {"/v1/classify", ERROR_COHERE,
     "unknown path: use POST /v1/models/NAME/classify for classification"},
    {"/v1/tokenize", ERROR_COHERE, "unknown path: use POST /v1/models/NAME/tokenize"},
    {"/v1/detokenize", ERROR_COHERE, "unknown path: use POST /v1/models/NAME/detokenize"},
    {"/invocations", ERROR_TEI, "unknown path: use POST /embed, /rerank or /predict"},
    {"/vertex", ERROR_TEI, "unknown path: use POST /embed, /rerank or /predict"},
    {"/api", ERROR_TEI,
     "Ollama's API is not supported: use POST /v1/chat/completions, POST /v1/embeddings and GET "
     "/v1/models"},
};

const struct elsewhere *elsewhere_find(const char *path) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    const size_t length = strlen(table[i].path);
    if (strncmp(path, table[i].path, length) != 0) continue;
    if (path[length] == '\0' || path[length] == '/' || path[length] == '?') return &table[i];
  }
  return NULL;
}
