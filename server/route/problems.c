/* problems: the types of errors, as a table. */
#include "server/route/problems.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two statuses may be one type: the first of them has the explanation. */
static const struct problem table[STATUS_COUNT] = {
    [STATUS_OK] = {200, "ok", "OK", NULL, NULL, NULL},
    [STATUS_INVALID_JSON] =
        {400, "invalid-json", "Invalid JSON",
         "The body is not valid JSON, or not a valid safetensors file. \"offset\" is the first "
         "byte that is wrong.",
         "{\"queries\": [[1, NaN]]}",
         "Send JSON as RFC 8259 defines it: UTF-8 without a byte order mark, no NaN, no comments, "
         "no trailing comma."},
    [STATUS_INVALID_REQUEST] =
        {400, "invalid-request", "Invalid request",
         "The body is valid JSON, but a field is unknown, missing, of the wrong type or shape, or "
         "out of range. \"pointer\" is the JSON Pointer of the value.",
         "{\"querys\": [[1, 0, 0, 1]]}",
         "Correct the value at \"pointer\" as \"detail\" says. /openapi.json describes the fields "
         "of each path."},
    [STATUS_BAD_FRAMING] =
        {400, "bad-framing", "Malformed HTTP message",
         "The message violates RFC 9112 or RFC 9110, so that a proxy might read another message "
         "than this server does (request smuggling). The server closes the connection.",
         "Content-Length: 5 and Transfer-Encoding: chunked in one header",
         "Correct the client or the proxy. HTTP libraries do not send such messages unless a "
         "header field is set by hand."},
    [STATUS_UNAUTHORIZED] =
        {401, "unauthorized", "Unauthorized",
         "The server requires an API key, and the request has none or an invalid one.",
         "A request without the header field Authorization",
         "Send \"Authorization: Bearer KEY\". The operator of the server has the keys."},
    [STATUS_NOT_FOUND] =
        {404, "not-found", "Not found",
         "The path does not exist, or the model does not support it.", "POST /v1/encode",
         "Use a path of /openapi.json. GET /v1/models lists the models and what they support."},
    [STATUS_UNKNOWN_MODEL] = {404, "unknown-model", "Model not found",
                              "No model has the requested name or alias.",
                              "{\"model\": \"none\", \"input\": \"a text\"}",
                              "Use a name that GET /v1/models lists."},
    [STATUS_METHOD_NOT_ALLOWED] = {405, "method-not-allowed", "Method not allowed",
                                   "The path exists, but does not support the method.",
                                   "GET /v1/embeddings",
                                   "Use a method that the response's header field Allow lists."},
    [STATUS_NOT_ACCEPTABLE] =
        {406, "not-acceptable", "Not acceptable",
         "The header field Accept excludes every format that the response can have.",
         "Accept: text/html", "Send \"Accept: application/json\", or leave the header field out."},
    [STATUS_TOO_SLOW] =
        {408, "too-slow", "Request timeout",
         "The header or the body did not arrive within header_timeout_ms or body_timeout_ms.",
         "A client that stops sending in the middle of the body",
         "Send the request again over a faster connection, or send less. The operator can raise "
         "the setting."},
    [STATUS_TOO_LARGE] =
        {413, "too-large", "Content too large",
         "The request or its response exceeds a limit. \"limit\", if there, is the setting.",
         "A batch with more items than max_items",
         "Send fewer or shorter items, or request fewer outputs. The operator can raise the "
         "setting."},
    [STATUS_UNSUPPORTED_MEDIA_TYPE] =
        {415, "unsupported-media-type", "Unsupported media type",
         "The body has a Content-Type that the path does not support, or a Content-Encoding.",
         "Content-Type: text/plain",
         "Send \"Content-Type: application/json\" and an uncompressed body."},
    [STATUS_NOT_FINITE] =
        {422, "not-finite", "Result is not finite",
         "The computation overflowed: a number of the result exceeds the float32 range.",
         "{\"queries\": [[3e38, 3e38, 3e38, 3e38]]}",
         "Check the request for very large numbers. If every request fails, check the model's "
         "weights."},
    [STATUS_OVERLOADED] =
        {429, "overloaded", "Too many requests",
         "The queue is full (max_queue), all sequences are in use (max_sequences), or other "
         "requests use the memory budget (memory_budget_bytes).",
         "More concurrent requests than max_queue",
         "Wait for the seconds of the header field Retry-After, then send the request again."},
    [STATUS_QUEUE_FULL] = {429, "overloaded", "Too many requests", NULL, NULL, NULL},
    [STATUS_UNSUPPORTED_TRANSFER_ENCODING] =
        {501, "unsupported-transfer-encoding", "Unsupported transfer encoding",
         "The body has a transfer coding other than \"chunked\".",
         "Transfer-Encoding: gzip, chunked",
         "Send the body with Content-Length, or with \"Transfer-Encoding: chunked\"."},
    [STATUS_DRAINING] =
        {503, "draining", "Server is stopping",
         "The server is shutting down and accepts no new requests.", "A request after SIGTERM",
         "Send the request again, over a new connection: another instance, or the restarted "
         "server, responds."},
    [STATUS_NOT_READY] =
        {503, "not-ready", "Server is not ready",
         "The models are still loading, or max_connections connections are open.",
         "GET /readyz right after the start",
         "Wait until GET /readyz is 200. If connections are the cause, reuse connections, or raise "
         "max_connections."},
    [STATUS_OUT_OF_MEMORY] =
        {503, "out-of-memory", "Out of memory",
         "The operating system has no memory left for the request.",
         "A large request on a machine whose memory is used up",
         "Send the request again later. The operator can lower memory_budget_bytes or add memory."},
    [STATUS_DEADLINE] =
        {504, "deadline-exceeded", "Deadline exceeded",
         "The result was not computed within deadline_ms, generate_deadline_ms or X-Timeout-Ms.",
         "X-Timeout-Ms: 1",
         "Send fewer or shorter items, or a longer X-Timeout-Ms. The operator can raise the "
         "setting."},
    [STATUS_GONE] = {499, "gone", "Client closed the connection", NULL, NULL, NULL},
    [STATUS_CONFIG] = {500, "internal", "Internal error",
                       "The server failed for a reason that the request did not cause.",
                       "The operating system refuses a resource to the server",
                       "Send the request again. If it fails again, report it with the log line of "
                       "its X-Request-Id."},
    [STATUS_SYSTEM] = {500, "internal", "Internal error", NULL, NULL, NULL},
};

const struct problem *problem_find(enum status status) { return &table[status]; }

char *problems_list(size_t *length) {
  char *text = NULL;
  FILE *out = open_memstream(&text, length);
  if (!out) return NULL;
  for (unsigned s = 0; s < STATUS_COUNT; s++)
    if (table[s].cause)
      fprintf(out, "%u /problems/%s %s\n", table[s].code, table[s].slug, table[s].title);
  if (fclose(out) == 0) return text;
  free(text);
  return NULL;
}

char *problems_page(const char *slug, size_t *length, bool *found) {
  const struct problem *p = table;
  while (p < table + STATUS_COUNT && !(p->cause && strcmp(p->slug, slug) == 0)) p++;
  *found = p < table + STATUS_COUNT;
  if (!*found) return NULL;
  char *text = NULL;
  const int size = asprintf(&text, "%u %s\n\nCause: %s\nExample: %s\nRemedy: %s\n", p->code,
                            p->title, p->cause, p->example, p->remedy);
  *length = size < 0 ? 0 : (size_t)size;
  return size < 0 ? NULL : text;
}
