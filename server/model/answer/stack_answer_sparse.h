/* stack_answer_sparse: the section of a response with weights of tokens. */
#ifndef SERVER_STACK_ANSWER_SPARSE_H
#define SERVER_STACK_ANSWER_SPARSE_H

#include "server/answer/answer_section.h"
#include "server/model/fields/stack_request.h"

/* "sparse": {"indices":[...],"values":[...]} for each item, with "strings" if the tokens of texts
 * are returned. */
struct answer_section stack_answer_sparse(const struct stack_request *r);

/* The same as a list of {"index":3,"value":0.5} for each item, without a name. */
struct answer_section stack_answer_sparse_list(const struct stack_request *r);

#endif
