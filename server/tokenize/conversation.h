/* conversation: the fields of a conversation, and the prompt that the model's chat template makes
 * of them. /render and chat completions have them. */
#ifndef SERVER_CONVERSATION_H
#define SERVER_CONVERSATION_H

#include <stddef.h>

#include "config/template/chat.h"
#include "server/body/contract.h"

/* A value that is kept as Jansson has it. A long one is a text until conversation_parse. */
struct conversation_value {
  json_t *json;        /* a reference; NULL: absent */
  struct arena *arena; /* of the request, to which it is charged */
  size_t charged;      /* bytes */
  const struct contract_field *field;
  const char *text; /* NULL: `json` is the value */
  size_t length, offset;
};

enum conversation_part {
  CONVERSATION_MESSAGES,
  CONVERSATION_TOOLS,
  CONVERSATION_DOCUMENTS,
  CONVERSATION_VARIABLES, /* chat_template_kwargs */
  CONVERSATION_PARTS
};

struct conversation {
  struct conversation_value part[CONVERSATION_PARTS];
  bool prompts;   /* whether the beginning of the assistant's message follows */
  bool continues; /* whether the prompt ends in the last message */
  bool timed;     /* is `now` given? */
  struct format_time now;
};

/* Most bytes of a value's text. As Jansson has it, it takes several times that: this is charged. */
enum { CONVERSATION_LONGEST = 4 << 20 };

/* Rows of a contract whose values have the member `conversation`: an object or a list that is kept
 * as one of its parts, and a flag. */
#define CONVERSATION_KEEPS(values, name, reader, number)                                    \
  {                                                                                         \
    .pointer = "/" name, .name_length = sizeof name - 1, .read = reader,                    \
    .read_text = conversation_keep_text, .at = offsetof(values, conversation.part[number]), \
    .nullable = true, .longest = CONVERSATION_LONGEST                                       \
  }
#define CONVERSATION_FLAG(values, name, member)                                      \
  {                                                                                  \
    .pointer = "/" name, .name_length = sizeof name - 1, .read = contract_read_flag, \
    .at = offsetof(values, conversation.member), .nullable = true                    \
  }
#define CONVERSATION_NOW(values)                                                       \
  {                                                                                    \
    .pointer = "/now", .name_length = sizeof "now" - 1, .read = conversation_read_now, \
    .at = offsetof(values, conversation), .nullable = true                             \
  }

/* Readers. The first two keep a list or an object in a struct conversation_value; the last one
 * reads a time into the whole struct conversation. */
enum status conversation_read_list(const json_t *value, const struct contract_field *field,
                                   void *to, struct error *e);
enum status conversation_read_object(const json_t *value, const struct contract_field *field,
                                     void *to, struct error *e);
enum status conversation_keep_text(const char *text, size_t length, size_t offset,
                                   const struct contract_field *field, void *to, struct error *e);
enum status conversation_read_now(const json_t *value, const struct contract_field *field, void *to,
                                  struct error *e);

/* Begins an empty conversation. Its values are not in the arena, but charged beside it. */
void conversation_init(struct conversation *c, struct arena *a);
void conversation_done(struct conversation *c);

/* Parses the long values, on a worker: 4 MiB take half a second, and as long to free. Returns the
 * status of `e`. */
enum status conversation_parse(struct conversation *c, struct error *e);

/* Nanoseconds in a contract's plan_cost: a template may take long, so that a worker renders it. */
enum { CONVERSATION_NS = 1000000 };

/* Renders the prompt of values that were parsed, as one text of a request, in the arena of what was
 * read. NULL after a failure in r->e: without messages, if both flags are set, and as chat_render
 * fails. */
const struct texts *conversation_render(const struct conversation *c, const struct chat *chat,
                                        const struct contract_reading *r);

#endif
