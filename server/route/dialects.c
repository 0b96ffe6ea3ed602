/* dialects: the table. */
#include "server/route/dialects.h"

#include "server/dialect/cohere/cohere_embed.h"
#include "server/dialect/cohere/rerank.h"
#include "server/dialect/openai/completions.h"
#include "server/dialect/openai/embeddings.h"
#include "server/dialect/tei/tei.h"

const struct dialect *dialects_find(enum body_dialect dialect) {
  static const struct dialect *const dialects[] = {
      [DIALECT_EMBEDDINGS] = &embeddings,
      [DIALECT_COMPLETIONS] = &completions,
      [DIALECT_RERANK] = &rerank,
      [DIALECT_COHERE_EMBED] = &cohere_embed,
      [DIALECT_COHERE_EMBED_V2] = &cohere_embed_v2,
      [DIALECT_TEI_EMBED] = &tei_embed,
      [DIALECT_TEI_RERANK] = &tei_rerank,
      [DIALECT_TEI_PREDICT] = &tei_predict,
      [DIALECT_TEI_EMBED_ALL] = &tei_embed_all,
      [DIALECT_TEI_SIMILARITY] = &tei_similarity,
      [DIALECT_TEI_TOKENIZE] = &tei_tokenize,
      [DIALECT_TEI_DECODE] = &tei_decode,
  };
  return dialects[dialect];
}
