/* attention_request: whether an answer has a form for arrays of one shape. */
#include "server/attention/attention_request.h"

#include "server/attention/attention_traced.h"

bool attention_request_segments_agree(const struct attention_request *r) {
  const struct geometry *g = &r->asked.geometry;
  for (size_t i = 1; i < g->items; i++)
    if (g->item[i].segments != g->item[0].segments) return false;
  return true;
}

bool attention_request_has_binary(const struct attention_request *r) {
  const struct call *c = &r->asked.call;
  const bool segments = r->asked.geometry.segment_end && c->want == WEIGHTS_PER_HEAD;
  return !c->want_measures && !c->trace && r->rectangular &&
         (!segments || attention_request_segments_agree(r));
}

const char *attention_request_why_json(const struct attention_request *r) {
  if (r->asked.call.trace) return attention_traced_is_json;
  return "the items of the batch differ in shape, so that the response can only be JSON: accept "
         "application/json, or send items of one shape (with valid_lens) and equally many segments";
}
