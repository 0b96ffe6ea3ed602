/* chat: the chat template of a model's folder, and the prompt that it makes of a conversation. */
#ifndef CONFIG_CHAT_H
#define CONFIG_CHAT_H

#include "config/template/template.h"

/* Immutable: any number of threads may render it. */
struct chat {
  struct template *template; /* NULL: it cannot be read, as `why` says */
  struct template *tools;    /* another one for conversations with tools; NULL: the same */
  struct error why;
  json_t *words; /* {"bos_token": "<s>", ...}: the special tokens that a template may name */
};

/* A conversation. All are borrowed; NULL: absent. */
struct chat_ask {
  json_t *messages, *tools, *documents;
  json_t *variables; /* an object: more of them, which override all others */
  bool prompts;      /* add_generation_prompt */
  bool continues;    /* continue_final_message: the prompt ends with the text of the last message */
  struct format_time now;
  struct patience *patience; /* of the caller; or NULL */
};

/* Finds the template of a folder: chat_template.jinja, or `chat_template` of tokenizer_config.json,
 * a text or a list of named ones, or of chat_template.json. `file`, if it is not NULL, is the path
 * of a template, which replaces these. *out is NULL if there is none. A template that cannot be
 * read is no failure: its requests are. STATUS_CONFIG with the reason, which names the file, or
 * STATUS_OUT_OF_MEMORY. */
enum status chat_find(const char *folder, const char *file, struct chat **out, struct error *e);
void chat_free(struct chat *c); /* NULL is fine */

/* Renders the prompt of a conversation. Fails as template_render does, with "chat template: "
 * before the reason; and at "/continue_final_message" if the last message has no text, or the
 * prompt does not have it. */
enum status chat_render(const struct chat *c, const struct chat_ask *ask, struct arena *a,
                        const char **text, size_t *length, struct error *e);

#endif
