/* stack_request: a request to a whole model as it was meant. */
#include "server/model/fields/stack_request.h"

enum status stack_request_prepare(struct stack_request *r, struct arena *a, struct error *e) {
  if (r->weighs &&
      stack_ablation_init(&r->ablation, r->main.stack, r->main.run, r->source.stack, a, e))
    return e->status;
  if (r->source.run && stack_prepare(r->source.stack, r->source.run, a, e)) return e->status;
  return stack_prepare(r->main.stack, r->main.run, a, e);
}
