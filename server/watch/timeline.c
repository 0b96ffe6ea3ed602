/* timeline: the time that each stage of a request took. */
#include "server/watch/timeline.h"

static void set_stage(struct timeline *t, enum timeline_stage stage, uint64_t ns) {
  t->ns[stage] = ns;
  t->reached[stage] = true;
}

void timeline_exchange(struct timeline *t, const struct exchange *x) {
  const struct job *job = &x->job;
  set_stage(t, STAGE_DECODE, x->body_ns);
  if (x->waited_ns) set_stage(t, STAGE_QUEUE, x->waited_ns);
  if (!job->submitted) return;
  set_stage(t, STAGE_QUEUE,
            x->waited_ns + (job->started ? job->started : job->finished) - job->submitted);
  if (!job->started) return; /* rejected, or dropped while waiting */
  set_stage(t, STAGE_COMPUTE, (job->computed ? job->computed : job->finished) - job->started);
  if (job->computed && !job->error.status)
    set_stage(t, STAGE_ENCODE, job->finished - job->computed);
}

void timeline_write(struct timeline *t, uint64_t ns) { set_stage(t, STAGE_WRITE, ns); }

const char *timeline_name(enum timeline_stage stage) {
  static const char *const names[STAGE_COUNT] = {"decode", "queue", "compute", "encode", "write"};
  return names[stage];
}
