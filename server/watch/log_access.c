/* log_access: the line of the access log for one request. */
#include "server/watch/log_access.h"

#include <string.h>

#include "server/watch/log_text.h"
#include "server/watch/trace.h"

/* Bytes in the line, each and six for an ellipsis; names and numbers need less than 640 beside
 * them. */
enum {
  ID_MOST = 128,
  WORD_MOST = 40,
  CLIENT_MOST = 64,
  ROUTE_MOST = 80,
  PATH_MOST = 480,
  MODEL_MOST = 160,
  AGENT_MOST = 320
};

static void add_string(struct log_text *t, const char *name, const char *value, size_t most) {
  log_text_word(t, name);
  log_text_json(t, value, most);
  log_text_bytes(t, "\"", 1);
}

static void add_number(struct log_text *t, const char *name, uint64_t n) {
  log_text_word(t, name);
  log_text_number(t, n);
}

static void add_path(struct log_text *t, const char *path) {
  char start[PATH_MOST + 2];
  const size_t size = strcspn(path, "?#");
  const size_t n = size < sizeof start ? size : sizeof start - 1;
  memcpy(start, path, n);
  start[n] = 0;
  add_string(t, ",\"path\":\"", start, PATH_MOST);
}

static void add_trace(struct log_text *t, const char *trace) {
  log_text_word(t, ",\"trace_id\":\"");
  log_text_bytes(t, trace_id(trace), TRACE_ID_SIZE);
  log_text_word(t, "\",\"parent_id\":\"");
  log_text_bytes(t, trace_parent(trace), TRACE_PARENT_SIZE);
  log_text_bytes(t, "\"", 1);
}

static void add_timeline(struct log_text *t, const struct timeline *timeline) {
  for (enum stage s = 0; s < STAGE_COUNT; s++) {
    if (!timeline->reached[s]) continue;
    log_text_bytes(t, ",\"", 2);
    log_text_word(t, timeline_name(s));
    log_text_word(t, "_ms\":");
    log_text_ms(t, timeline->ns[s]);
  }
}

static void begin(struct log_text *t) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  log_text_word(t, "{\"time\":\"");
  log_text_time(t, &now);
}

size_t log_access_text(const struct log_request *r, char text[LOG_LINE_SIZE]) {
  struct log_text t = {text, text + LOG_LINE_SIZE};
  begin(&t);
  add_string(&t, "\",\"request_id\":\"", r->id, ID_MOST);
  if (r->trace) add_trace(&t, r->trace);
  add_string(&t, ",\"listener\":\"", r->listener, WORD_MOST);
  add_string(&t, ",\"client\":\"", r->client, CLIENT_MOST);
  add_string(&t, ",\"method\":\"", r->method, WORD_MOST);
  add_string(&t, ",\"route\":\"", r->route, ROUTE_MOST);
  add_path(&t, r->path);
  if (r->model && *r->model) add_string(&t, ",\"model\":\"", r->model, MODEL_MOST);
  add_number(&t, ",\"status\":", r->code);
  if (r->error) add_string(&t, ",\"error\":\"", r->error, WORD_MOST);
  add_number(&t, ",\"bytes_in\":", r->bytes_in);
  add_number(&t, ",\"bytes_out\":", r->bytes_out);
  log_text_word(&t, ",\"total_ms\":");
  log_text_ms(&t, r->nanoseconds);
  add_timeline(&t, r->timeline);
  if (r->agent) add_string(&t, ",\"agent\":\"", r->agent, AGENT_MOST);
  log_text_bytes(&t, "}\n", 2);
  return (size_t)(t.at - text);
}

size_t log_access_lost(uint64_t lines, char text[LOG_LINE_SIZE]) {
  struct log_text t = {text, text + LOG_LINE_SIZE};
  begin(&t);
  add_number(&t, "\",\"log_lost\":", lines);
  log_text_bytes(&t, "}\n", 2);
  return (size_t)(t.at - text);
}
