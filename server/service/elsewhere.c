/* elsewhere: paths of other services, as a table. */
#include "server/service/elsewhere.h"

#include <stddef.h>
#include <string.h>

#define NO_CHATS                                                                                \
  "there are no chats here: POST /v1/completions goes on from a text, and GET /v1/models says " \
  "with which models"
#define NOTHING_KEPT                                                                     \
  "nothing is kept or trained here: there are POST /v1/embeddings, /v1/completions and " \
  "/v1/rerank, and GET /v1/models"
#define TEXT_ALONE "there are no pictures and no speech here: models read texts and numbers"

/* The rows. A path stands before those that it is below. */
static const struct elsewhere table[] = {
    {"/v1/chat/completions", ERROR_OPENAI, NO_CHATS},
    {"/v1/responses", ERROR_OPENAI, NO_CHATS},
    {"/v1/moderations", ERROR_OPENAI,
     "there are no moderations here: POST /v1/models/NAME/classify sorts texts into the classes of "
     "a model"},
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
    {"/v1/chat", ERROR_COHERE, NO_CHATS},
    {"/v2/chat", ERROR_COHERE, NO_CHATS},
    {"/v1/generate", ERROR_COHERE,
     "there is no such path: POST /v1/completions goes on from a text"},
    {"/v1/classify", ERROR_COHERE,
     "there is no such path: POST /v1/models/NAME/classify sorts texts into the classes of a "
     "model"},
    {"/v1/tokenize", ERROR_COHERE,
     "there is no such path: POST /v1/models/NAME/tokenize makes tokens of texts"},
    {"/v1/detokenize", ERROR_COHERE,
     "there is no such path: POST /v1/models/NAME/detokenize makes texts of tokens"},
    {"/embed_sparse", ERROR_TEI, "there are no sparse vectors here: POST /embed makes dense ones"},
    {"/invocations", ERROR_TEI, "there is no such path: POST /embed, /rerank or /predict"},
    {"/vertex", ERROR_TEI, "there is no such path: POST /embed, /rerank or /predict"},
    {"/api", ERROR_TEI,
     "this is no Ollama: POST /v1/completions goes on from a text, POST /v1/embeddings makes "
     "vectors, "
     "and GET /v1/models lists the models"},
};

const struct elsewhere *elsewhere_find(const char *path) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    const size_t length = strlen(table[i].path);
    if (strncmp(path, table[i].path, length) != 0) continue;
    if (path[length] == '\0' || path[length] == '/' || path[length] == '?') return &table[i];
  }
  return NULL;
}
