/* tei: the paths of Hugging Face's text-embeddings-inference: texts become vectors, documents are
 * ranked, texts are classified. Its answers are lists, without an object around them. */
#ifndef SERVER_TEI_H
#define SERVER_TEI_H

#include "server/dialect/dialect.h"

extern const struct dialect tei_embed, tei_embed_all, tei_similarity, tei_rerank, tei_predict,
    tei_tokenize, tei_decode;

/* --- for the files of tei alone --- */

/* Readers of small values: whether long texts are cut, to stack_values' `truncate`; and at which
 * end, which is the last one. */
enum status tei_read_truncate(const struct json_t *value, const struct contract_field *field,
                              void *to, struct error *e);
enum status tei_pass_direction(const struct json_t *value, const struct contract_field *field,
                               void *to, struct error *e);

/* Plans an answer that is one list: the section, which has no name. */
enum status tei_answer(struct answer *a, const struct answer_section *list,
                       const struct contract_reading *read, const struct stack_request *r,
                       size_t max_bytes);

#endif
