/* render_body: the body of a request to render a conversation with the model's chat template. */
#include "server/tokenize/render_body.h"

#include <stddef.h>
#include <string.h>

#include "server/tokenize/conversation.h"

/* --- the contract --- */

enum render_field {
  RENDER_MESSAGES,
  RENDER_TOOLS,
  RENDER_DOCUMENTS,
  RENDER_VARIABLES,
  RENDER_PROMPTS,
  RENDER_CONTINUES,
  RENDER_NOW,
  RENDER_FIELDS
};

struct render_values {
  struct conversation conversation;
};

static const struct contract_request requests[] = {{1, "POST /v1/models/NAME/render"}, {0, NULL}};

static const struct contract_field fields[RENDER_FIELDS] = {
    [RENDER_MESSAGES] = CONVERSATION_KEEPS(struct render_values, "messages", conversation_read_list,
                                           CONVERSATION_MESSAGES),
    [RENDER_TOOLS] = CONVERSATION_KEEPS(struct render_values, "tools", conversation_read_list,
                                        CONVERSATION_TOOLS),
    [RENDER_DOCUMENTS] = CONVERSATION_KEEPS(struct render_values, "documents",
                                            conversation_read_list, CONVERSATION_DOCUMENTS),
    [RENDER_VARIABLES] = CONVERSATION_KEEPS(struct render_values, "chat_template_kwargs",
                                            conversation_read_object, CONVERSATION_VARIABLES),
    [RENDER_PROMPTS] = CONVERSATION_FLAG(struct render_values, "add_generation_prompt", prompts),
    [RENDER_CONTINUES] =
        CONVERSATION_FLAG(struct render_values, "continue_final_message", continues),
    [RENDER_NOW] = CONVERSATION_NOW(struct render_values),
};

static const struct contract_stray strays[] = {
    {"text", "use \"messages\", a list of {\"role\", \"content\"}"},
    {"prompt", "use \"messages\", a list of {\"role\", \"content\"}"},
    {"conversation", "use \"messages\""},
    {"chat_template", "set \"chat_template\" in the model's definition"},
    {"model", "name the model in the path: POST /v1/models/NAME/render"},
};

static uint64_t render_cost(const struct contract_reading *r) {
  (void)r;
  return CONVERSATION_NS;
}

static const struct contract contract = {.field = fields,
                                         .fields = RENDER_FIELDS,
                                         .stray = strays,
                                         .strays = sizeof strays / sizeof *strays,
                                         .requests = requests,
                                         .request = 1,
                                         .plan_cost = render_cost};

/* --- the body --- */

struct render_body {
  struct body body;
  const struct whole *whole;
  struct render_values values;
};

struct render_body *render_body_new(const struct whole *w, const struct body_terms *terms,
                                    struct arena *a, struct error *e) {
  struct render_body *b = arena_alloc(a, 1, sizeof *b, e);
  if (!b) return NULL;
  *b = (struct render_body){.whole = w};
  conversation_init(&b->values.conversation, a);
  b->body.reading = (struct contract_reading){.contract = &contract, .values = &b->values};
  return body_init(&b->body, terms, a, e) ? NULL : b;
}

void render_body_done(struct render_body *b) { conversation_done(&b->values.conversation); }

struct body *render_body_of(struct render_body *b) {
  return &b->body;
}

enum status render_body_finish(struct render_body *b, struct tokenize_request *out) {
  const struct contract_reading *r = &b->body.reading;
  struct body_v2_asked none;
  memset(out, 0, sizeof *out);
  if (body_finish(&b->body, &none)) return b->body.e->status;
  struct conversation *c = &b->values.conversation;
  const struct texts *prompt =
      conversation_parse(c, r->e) ? NULL : conversation_render(c, b->whole->chat, r);
  conversation_done(c);
  struct decoder_text *text = prompt ? arena_alloc(r->arena, 1, sizeof *text, r->e) : NULL;
  if (!text) return r->e->status;
  *text = (struct decoder_text){.bytes = prompt->bytes, .length = prompt->length};
  out->alone = true;
  out->items = 1;
  out->text = text;
  return tokenize_rendered(r, b->whole, prompt, out);
}
