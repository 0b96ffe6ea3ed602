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
static json_t *variables_of(const struct chat *c, const struct chat_ask *ask) {
  json_t *all = json_object();
  const struct {
    const char *name;
    json_t *value;
  } given[] = {{"messages", ask->messages}, {"tools", ask->tools}, {"documents", ask->documents}};
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

/* The text of a message: its content, or the last part of it that is a text; NULL: none. */
static const json_t *text_of(const json_t *message) {
  const json_t *content = json_object_get(message, "content");
  for (size_t i = json_array_size(content); i-- > 0;) {
    const json_t *text = json_object_get(json_array_get(content, i), "text");
    if (json_is_string(text)) return text;
  }
  return json_is_string(content) ? content : NULL;
}

static char *reverse(const char *text, size_t length, struct arena *a, struct error *e) {
  char *copy = arena_alloc(a, length, 1, e);
  for (size_t i = 0; copy && i < length; i++) copy[length - 1 - i] = text[i];
  return copy;
}

/* Cuts a prompt after the last place of the last message's text, as Hugging Face transformers does:
 * the text without the spaces around it is found, and those at its end stay if the template has
 * kept them. */
static enum status cut_prompt(const json_t *messages, const char *prompt, size_t *length,
                              struct arena *a, struct error *e) {
  static const char here[] = "/continue_final_message";
  const json_t *said = text_of(json_array_get(messages, json_array_size(messages) - 1));
  const char *text = json_string_value(said);
  size_t begin = 0, size = json_string_length(said), end = size, bytes;
  while (begin < end && letters_is_space(unicode_read(text + begin, &bytes))) begin += bytes;
  while (end > begin && letters_is_space(unicode_read_before(text, end, &bytes))) end -= bytes;
  if (begin == end)
    return error_at(e, here, "continue_final_message requires a text in the last message");
  /* The search runs from the end: in linear time, whatever the texts are. */
  const char *all = reverse(prompt, *length, a, e),
             *part = reverse(text + begin, end - begin, a, e);
  if (e->status) return e->status;
  const char *found = memmem(all, *length, part, end - begin);
  if (!found)
    return error_at(e, here,
                    "the chat template changes the text of the last message: the prompt cannot end "
                    "with it");
  const size_t after = *length - (size_t)(found - all); /* the end of the text in the prompt */
  const size_t spaces = size - end;
  const bool keeps = *length - after >= spaces && memcmp(prompt + after, text + end, spaces) == 0;
  *length = after + (keeps ? spaces : 0);
  return STATUS_OK;
}

enum status chat_render(const struct chat *c, const struct chat_ask *ask, struct arena *a,
                        const char **text, size_t *length, struct error *e) {
  const bool tools = c->tools && ask->tools && !json_is_null(ask->tools);
  const struct template *t = tools ? c->tools : c->template;
  if (!t && c->why.status)
    *e = c->why;
  else if (!t)
    error_set(e, STATUS_INVALID_REQUEST,
              "the model has a template for conversations with tools only");
  struct template_limits limits = TEMPLATE_LIMITS;
  limits.patience = ask->patience;
  json_t *variables = e->status ? NULL : variables_of(c, ask);
  if (!variables && !e->status) error_no_memory(e);
  if (variables) template_render(t, variables, &ask->now, &limits, a, text, length, e);
  json_decref(variables);
  if (e->status == STATUS_INVALID_REQUEST) return text_before(e, "chat template: ");
  if (e->status || !ask->continues) return e->status;
  return cut_prompt(ask->messages, *text, length, a, e);
}
