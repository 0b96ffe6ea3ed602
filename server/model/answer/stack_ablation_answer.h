/* stack_ablation_answer: the answer that says what each head of a whole model is worth. */
#ifndef SERVER_STACK_ABLATION_ANSWER_H
#define SERVER_STACK_ABLATION_ANSWER_H

#include "server/answer/answer.h"
#include "server/body/body_terms.h"
#include "server/model/fields/stack_request.h"

enum { STACK_ABLATION_NAME_ROOM = 48 }; /* of the name of an attention, with quotes */

/* Writes the name of a head's attention as a JSON string. */
char *stack_ablation_write_name(const struct stack_request *r, const struct stack_cut *cut,
                                char *out);

/* Plans the answer, from the model of this name, to a request whose runs are prepared. Fails as
 * answer_plan does. */
enum status stack_ablation_answer_plan(struct answer *a, const char *model,
                                       const struct stack_request *r,
                                       const struct body_limits *limits, struct arena *arena,
                                       struct error *e);

#endif
