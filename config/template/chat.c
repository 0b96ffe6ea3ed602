/* chat: the chat template of a model's folder, and the prompt that it makes of a conversation. */
#include "config/template/chat.h"

#include <stdlib.h>
#include <string.h>

#include "config/document/file.h"
#include "config/document/text.h"
#include "config/template/value/letters.h"
#include "config/tokenizer/pattern/unicode.h"
#include "config/tokenizer/tokenizer_folder.h"

/* --- the folder --- */

/* A template that cannot be read is kept as the reason. False: no memory. */
static bool read_template(struct chat *c, struct template **out, const char *text, size_t length,
                          struct error *e) {
  struct error why = {0};
  *out = template_parse(text, length, &TEMPLATE_LIMITS, &why);
  if (why.status == STATUS_OUT_OF_MEMORY) error_no_memory(e);
  if (!*out && !c->why.status) c->why = why;
  return !e->status;
}

/* Reads a file that is a template. */
static void read_text(struct chat *c, const char *path, struct error *e) {
  size_t length = 0;
  char *text = file_text(path, &length, e);
  if (text) read_template(c, &c->template, text, length, e);
  free(text);
}

/* Reads a text, or a list of {"name", "template"}, of which "default" and "tool_use" are used.
 * Returns whether there is one. */
static bool read_value(struct chat *c, const json_t *value, struct error *e) {
  size_t i;
  const json_t *one;
  if (json_is_string(value))
    return read_template(c, &c->template, json_string_value(value), json_string_length(value), e);
  json_array_foreach(value, i, one) {
    const char *name = json_string_value(json_object_get(one, "name"));
    const json_t *text = json_object_get(one, "template");
    const bool tools = name && strcmp(name, "tool_use") == 0;
    struct template **const to = tools ? &c->tools : &c->template;
    if (!name || *to || !json_is_string(text) || (!tools && strcmp(name, "default") != 0)) continue;
    read_template(c, to, json_string_value(text), json_string_length(text), e);
  }
  return c->template || c->tools || c->why.status;
}

/* Adds the special tokens of a document, a text each or an object with one, that are not known. */
static void read_words(struct chat *c, const json_t *document, struct error *e) {
  static const char *const names[] = {"bos_token", "eos_token", "unk_token",  "sep_token",
                                      "pad_token", "cls_token", "mask_token", NULL};
  for (size_t i = 0; names[i] && !e->status; i++) {
    json_t *said = json_object_get(document, names[i]);
    if (json_is_object(said)) said = json_object_get(said, "content");
    if (!json_is_string(said) || json_object_get(c->words, names[i])) continue;
    if (json_object_set(c->words, names[i], said)) error_no_memory(e);
  }
}

static bool read_document(struct chat *c, const char *folder, const char *name, bool template,
                          struct error *e) {
  json_t *json = e->status ? NULL : tokenizer_folder_json(folder, name, e);
  if (json) read_words(c, json, e);
  const bool found =
      json && template && !e->status && read_value(c, json_object_get(json, "chat_template"), e);
  json_decref(json);
  return found;
}

static bool read_folder(struct chat *c, const char *folder, const char *file, struct error *e) {
  char *path = file ? NULL : file_path(folder, "chat_template.jinja");
  if (!file && !path) return error_no_memory(e), false;
  const bool is_file = file || file_is_there(path);
  if (is_file) read_text(c, file ? file : path, e);
  free(path);
  bool found = read_document(c, folder, "tokenizer_config.json", !is_file, e) || is_file;
  read_document(c, folder, "special_tokens_map.json", false, e);
  if (!found) found = read_document(c, folder, "chat_template.json", true, e);
  return found;
}

enum status chat_find(const char *folder, const char *file, struct chat **out, struct error *e) {
  struct chat *c = calloc(1, sizeof *c);
  *out = NULL;
  if (!c || !(c->words = json_object()))
    error_no_memory(e);
  else if (read_folder(c, folder, file, e) && !e->status)
    *out = c;
  if (!*out) chat_free(c);
  return e->status;
}

void chat_free(struct chat *c) {
  if (!c) return;
  template_free(c->template);
  template_free(c->tools);
  json_decref(c->words);
  free(c);
}

/* --- a conversation --- */

/* All variables of a template; tools and documents that are absent are none. NULL: no memory. */
static json_t *variables_of(const struct chat *c, const struct chat_ask *ask, json_t *messages) {
  json_t *all = json_object();
  const struct {
    const char *name;
    json_t *value;
  } given[] = {{"messages", messages}, {"tools", ask->tools}, {"documents", ask->documents}};
  bool done = all && json_object_update(all, c->words) == 0 &&
              json_object_set_new(all, "add_generation_prompt", json_boolean(ask->prompts)) == 0;
  for (size_t i = 0; done && i < sizeof given / sizeof *given; i++)
    done = given[i].value ? json_object_set(all, given[i].name, given[i].value) == 0
                          : json_object_set_new(all, given[i].name, json_null()) == 0;
  if (done && ask->variables) done = json_object_update(all, ask->variables) == 0;
  if (done) return all;
  json_decref(all);
  return NULL;
}

/* --- a prompt that ends in the last message --- */

/* As in Hugging Face transformers: the tag follows the text that is continued, and the prompt ends
 * before its last place. The space shows whether the template keeps the spaces at the end. */
static const char tag[] = "CONTINUE_FINAL_MESSAGE_TAG ";
enum { TAG_BARE = sizeof tag - 2, TAG_LENGTH = sizeof tag - 1 };

/* A copy of an object whose member is the text and the tag. NULL: the member is no text, or there
 * is no memory. */
static json_t *tag_member(json_t *object, const char *member, struct arena *a, struct error *e) {
  const json_t *text = json_object_get(object, member);
  const size_t length = json_string_length(text);
  char *tagged = json_is_string(text) ? arena_alloc(a, length + TAG_LENGTH, 1, e) : NULL;
  if (!tagged) return NULL;
  memcpy(tagged, json_string_value(text), length);
  memcpy(tagged + length, tag, TAG_LENGTH);
  json_t *copy = json_copy(object);
  json_t *value = json_stringn_nocheck(tagged, length + TAG_LENGTH);
  if (!copy || json_object_set_new(copy, member, value)) error_no_memory(e);
  return copy;
}

/* A copy of a message with the tag after its text, which is its content or the last text part of
 * it. NULL: it has none, or there is no memory. */
static json_t *tag_message(json_t *message, struct arena *a, struct error *e) {
  json_t *parts = json_object_get(message, "content"), *part = NULL;
  size_t i = json_array_size(parts);
  if (!json_is_array(parts)) return tag_member(message, "content", a, e);
  while (!part && i-- > 0 && !e->status) part = tag_member(json_array_get(parts, i), "text", a, e);
  if (!part) return NULL;
  json_t *copy = json_copy(message), *list = json_copy(parts);
  if (json_array_set_new(list, i, part) || json_object_set_new(copy, "content", list))
    error_no_memory(e);
  return copy;
}

/* A copy of the messages with the tag in the last one. NULL with an error. */
static json_t *tag_messages(json_t *messages, struct arena *a, struct error *e) {
  const size_t last = json_array_size(messages) - 1;
  json_t *message = tag_message(json_array_get(messages, last), a, e);
  if (!message && !e->status)
    error_at(e, "/continue_final_message",
             "continue_final_message requires a text in the last message");
  json_t *copy = e->status ? NULL : json_copy(messages);
  if (!e->status && json_array_set(copy, last, message)) error_no_memory(e);
  json_decref(message);
  if (!e->status) return copy;
  json_decref(copy);
  return NULL;
}

/* Ends a prompt before the last place of the tag. */
static enum status cut_prompt(const char *text, size_t *length, struct error *e) {
  const char *end = text + *length, *last = NULL, *at = text;
  while ((at = memmem(at, (size_t)(end - at), tag, TAG_BARE))) last = at++;
  if (!last)
    return error_at(e, "/continue_final_message",
                    "the chat template leaves out the text of the last message: the prompt cannot "
                    "end with it");
  const bool keeps = end - last >= TAG_LENGTH && last[TAG_BARE] == ' ';
  size_t bytes;
  *length = (size_t)(last - text);
  while (!keeps && *length > 0 && letters_is_space(unicode_read_before(text, *length, &bytes)))
    *length -= bytes;
  return STATUS_OK;
}

/* Renders with these messages. Fails as template_render does, with "chat template: " before the
 * reason. */
static enum status render(const struct chat *c, const struct chat_ask *ask, json_t *messages,
                          struct arena *a, const char **text, size_t *length, struct error *e) {
  const bool tools = c->tools && ask->tools && !json_is_null(ask->tools);
  const struct template *t = tools ? c->tools : c->template;
  struct template_limits limits = TEMPLATE_LIMITS;
  limits.patience = ask->patience;
  json_t *variables = variables_of(c, ask, messages);
  if (!variables)
    error_no_memory(e);
  else if (t)
    template_render(t, variables, &ask->now, &limits, a, text, length, e);
  else if (c->why.status)
    *e = c->why;
  else
    error_set(e, STATUS_INVALID_REQUEST,
              "the model has a template for conversations with tools only");
  json_decref(variables);
  return e->status == STATUS_INVALID_REQUEST ? text_before(e, "chat template: ") : e->status;
}

enum status chat_render(const struct chat *c, const struct chat_ask *ask, struct arena *a,
                        const char **text, size_t *length, struct error *e) {
  if (!ask->continues) return render(c, ask, ask->messages, a, text, length, e);
  json_t *messages = tag_messages(ask->messages, a, e);
  if (messages && render(c, ask, messages, a, text, length, e) == STATUS_OK)
    cut_prompt(*text, length, e);
  json_decref(messages);
  return e->status;
}
