/* attention_request: whether an answer has a form for arrays of one shape. */
#include "server/attention/attention_request.h"

bool attention_request_segments_agree(const struct attention_request *r) {
  const struct call *c = &r->call;
  for (size_t i = 1; i < c->items; i++)
    if (c->item[i].segments != c->item[0].segments) return false;
  return true;
}

bool attention_request_has_binary(const struct attention_request *r) {
  const struct call *c = &r->call;
  const bool segments = c->segment_end && c->want == WEIGHTS_PER_HEAD;
  return !c->want_measures && r->rectangular && (!segments || attention_request_segments_agree(r));
}
