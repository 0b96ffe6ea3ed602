/* chat_messages: the messages of OpenAI's chat completions, as chat templates expect them. */
#ifndef SERVER_CHAT_MESSAGES_H
#define SERVER_CHAT_MESSAGES_H

#include "core/base/arena.h"

struct json_t;

/* Checks the messages, a list, and changes them in place: "developer" becomes "system", and text
 * parts become one text, a line each, since templates of text models expect texts. Fails at the
 * place of the mistake. */
enum status chat_messages_make(struct json_t *messages, struct arena *a, struct error *e);

#endif
