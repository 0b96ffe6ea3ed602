/* chat_messages: the messages of OpenAI's chat completions. */
#include "server/dialect/openai/chat_messages.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/json/json_small.h"

/* Fails at a member of message `i`, or at a part of it. */
__attribute__((format(printf, 4, 5))) static enum status
refuse(struct error *e, size_t i, const char *member, const char *format, ...) {
  char pointer[ERROR_POINTER_SIZE];
  va_list args;
  snprintf(pointer, sizeof pointer, "/messages/%zu%s", i, member);
  va_start(args, format);
  error_at_v(e, pointer, format, args);
  va_end(args);
  return e->status;
}

static enum status make_role(json_t *message, size_t i, struct error *e) {
  static const char *const roles[] = {"system", "user", "assistant", "tool", NULL};
  const json_t *role = json_object_get(message, "role");
  if (json_small_is_text(role, "developer")) {
    if (json_object_set_new(message, "role", json_string("system"))) error_no_memory(e);
    return e->status;
  }
  for (size_t r = 0; roles[r]; r++)
    if (json_small_is_text(role, roles[r])) return STATUS_OK;
  return refuse(e, i, "/role",
                "role must be \"system\", \"developer\", \"user\", \"assistant\" or \"tool\"");
}

/* The text of a part of a content; NULL: it is no text. */
static const json_t *text_of(const json_t *part) {
  const json_t *text = json_object_get(part, "text");
  const bool is_text = json_small_is_text(json_object_get(part, "type"), "text");
  return is_text && json_is_string(text) ? text : NULL;
}

/* Joins the parts of a content to one text. */
static enum status join_parts(json_t *message, const json_t *parts, size_t i, struct arena *a,
                              struct error *e) {
  size_t n, length = 0;
  const json_t *part;
  json_array_foreach(parts, n, part) {
    char member[40];
    const json_t *text = text_of(part);
    snprintf(member, sizeof member, "/content/%zu", n);
    if (!text)
      return refuse(e, i, member,
                    "a part must be {\"type\": \"text\", \"text\": …}: images, audio and files are "
                    "not supported");
    length += json_string_length(text) + 1;
  }
  char *all = arena_alloc(a, length, 1, e), *at = all;
  if (!all) return e->status;
  json_array_foreach(parts, n, part) {
    const json_t *text = text_of(part);
    if (n > 0) *at++ = '\n';
    memcpy(at, json_string_value(text), json_string_length(text));
    at += json_string_length(text);
  }
  json_t *joined = json_stringn_nocheck(all, (size_t)(at - all));
  if (json_object_set_new(message, "content", joined)) error_no_memory(e);
  return e->status;
}

static enum status make_content(json_t *message, size_t i, struct arena *a, struct error *e) {
  const json_t *content = json_object_get(message, "content");
  if (json_is_string(content)) return STATUS_OK;
  if (json_array_size(content) > 0) return join_parts(message, content, i, a, e);
  return refuse(e, i, "/content", "content must be a text, or a list of text parts");
}

/* Tools are not supported: no message may call one. */
static enum status check_calls(const json_t *message, size_t i, struct error *e) {
  const json_t *calls = json_object_get(message, "tool_calls"),
               *call = json_object_get(message, "function_call");
  const bool empty = json_is_array(calls) && json_array_size(calls) == 0;
  if (calls && !json_is_null(calls) && !empty)
    return refuse(e, i, "/tool_calls", "tools are not supported: remove \"tool_calls\"");
  if (call && !json_is_null(call))
    return refuse(e, i, "/function_call", "tools are not supported: remove \"function_call\"");
  return STATUS_OK;
}

enum status chat_messages_make(json_t *messages, struct arena *a, struct error *e) {
  size_t i;
  json_t *message;
  if (json_array_size(messages) == 0)
    return error_at(e, "/messages", "messages must be a list of at least one message");
  json_array_foreach(messages, i, message) {
    if (!json_is_object(message))
      return refuse(e, i, "", "a message must be an object: {\"role\", \"content\"}");
    if (check_calls(message, i, e) || make_role(message, i, e) || make_content(message, i, a, e))
      return e->status;
  }
  return STATUS_OK;
}
