/* fuzz_dialect: a request in another service's words, from its bytes to the bytes of its answer or
 * the events of its stream, however it is cut.
 *
 * The first byte is the dialect; the second how the body is cut the second time. */
#include <stdlib.h>
#include <string.h>

#include "config/build/whole.h"
#include "config/template/chat.h"
#include "server/dialect/dialect_body.h"
#include "server/service/exchange.h"
#include "tests/fuzz/asked.h"

enum { EVENTS = 1 << 20 };

static const double work = 1e3;

static const char words[] =
    "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"a\":1,\"b\":2,"
    "\"c\":3,\"é\":4,\"\\\"\":5,\"\\n\":6}},\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":"
    "{\"String\":\"\"},\"behavior\":\"Isolated\",\"invert\":false},\"decoder\":{\"type\":\"Fuse\"}"
    "}";

#define MODEL                                                                       \
  "\"transformer\":{\"random\":{\"seed\":1}},\"layers\":2,\"width\":4,\"heads\":2," \
  "\"feed_forward\":8,\"vocabulary\":9,\"positions\":\"learned\",\"max_positions\":14}"

/* A dialect, the model that it asks, and the list of its answers; NULL: they are lists. */
struct dial {
  const struct dialect *dialect;
  enum body_ask ask;
  const char *model, *list;
};

static const struct dial dials[] = {
    {&embeddings, ASK_ENCODE, "{\"kind\":\"decoder\"," MODEL, "data"},
    {&completions, ASK_GENERATE, "{\"kind\":\"decoder\"," MODEL, "choices"},
    {&rerank, ASK_ENCODE, "{\"kind\":\"encoder\",\"classes\":1," MODEL, "results"},
    {&rerank, ASK_ENCODE, "{\"kind\":\"decoder\"," MODEL, "results"},
    {&tei_embed, ASK_ENCODE, "{\"kind\":\"encoder\"," MODEL, NULL},
    {&tei_rerank, ASK_ENCODE, "{\"kind\":\"encoder\",\"classes\":1," MODEL, NULL},
    {&tei_predict, ASK_CLASSIFY, "{\"kind\":\"encoder\",\"labels\":[\"a\",\"\\n\"]," MODEL, NULL},
    {&tei_embed_all, ASK_ENCODE, "{\"kind\":\"encoder\"," MODEL, NULL},
    {&tei_similarity, ASK_ENCODE, "{\"kind\":\"encoder\"," MODEL, NULL},
    {&tei_tokenize, ASK_TOKENIZE, "{\"kind\":\"encoder\"," MODEL, NULL},
    {&tei_decode, ASK_DETOKENIZE, "{\"kind\":\"encoder\"," MODEL, NULL},
    {&cohere_embed, ASK_ENCODE, "{\"kind\":\"encoder\"," MODEL, "embeddings"},
    {&cohere_embed_v2, ASK_ENCODE, "{\"kind\":\"encoder\"," MODEL, "embeddings"},
    {&chat_completions, ASK_GENERATE, "{\"kind\":\"decoder\"," MODEL, "choices"},
};
enum { DIALS = sizeof dials / sizeof *dials };

static const char template[] =
    "{% for m in messages %}{% if m.name %}{{ m.name.x.y }}{% endif %}{{ 'a' if m.role == 'user' "
    "else 'b' }}{{ m.content | trim }}{{ x }}\n{% endfor %}{% if add_generation_prompt %}b{% endif "
    "%}";

/* A chat template for all of them, which has no folder. */
static struct chat *chat_of_template(void) {
  static struct chat chat;
  struct error e = {0};
  if (chat.template) return &chat;
  chat.template = template_parse(template, sizeof template - 1, &TEMPLATE_LIMITS, &e);
  chat.words = json_object();
  must(chat.template && chat.words);
  return &chat;
}

static const struct model *model_of(const struct dial *of) {
  static const struct model *all[DIALS];
  const struct model *m = asked_model_of_words(of->model, words, &all[of - dials]);
  m->whole->chat = chat_of_template();
  return m;
}

/* --- reading --- */

struct dialled {
  const struct dial *dial;
  struct asked asked;
  struct body_terms terms;
  struct dialect_body *body;
};

static void read_body(struct dialled *d, const struct dial *dial, struct input body, unsigned cut) {
  const char *model;
  memset(d, 0, sizeof *d);
  d->dial = dial;
  d->terms = (struct body_terms){.ask = dial->ask,
                                 .dialect = dial->dialect,
                                 .body_bytes = BODY_UNKNOWN,
                                 .json_bytes = BODY_UNKNOWN};
  budget_init(&d->asked.budget, 32 << 20);
  arena_init(&d->asked.arena, &d->asked.budget);
  d->body = dialect_body_new(&d->terms, &fuzz_limits, &d->asked.arena, &d->asked.error);
  must(d->body);
  fuzz_feed(dialect_body_of(d->body), body, cut, &d->asked.error);
  if (dialect_body_finish(d->body, &model) == STATUS_OK && dial->ask < ASK_TOKENIZE)
    dialect_body_ask(d->body, model_of(dial)->whole, &d->asked.request);
}

/* --- the answer --- */

/* Has the list something for each item, and in any case? A text alone has one for each class. */
static bool is_of_items(const struct dial *d) {
  return d->ask != ASK_CLASSIFY && d->dialect != &rerank && d->dialect != &tei_rerank &&
         d->dialect != &tei_similarity;
}

/* Of each token there is one entry in each list, and of a likely one a name that is there once:
 * the reader refuses a second. */
static void check_logprobs(const json_t *logprobs) {
  static const char *const list[] = {"tokens", "token_logprobs", "top_logprobs", "text_offset"};
  if (json_object_get(logprobs, "content")) return; /* of a chat: an object for each token */
  const size_t count = json_array_size(json_object_get(logprobs, list[0]));
  for (size_t i = 0; json_is_object(logprobs) && i < sizeof list / sizeof *list; i++)
    must(json_array_size(json_object_get(logprobs, list[i])) == count);
}

static void check_answer(const struct dialled *d, struct answer *a) {
  const struct stack_request *r = &d->asked.request;
  const struct input text = answer_text(a);
  const size_t items = r->main.run->geometry.items;
  json_t *json = d->dial->list ? answer_json(text) : json_loadb(text.bytes, text.size, 0, NULL);
  const json_t *list = d->dial->list ? json_object_get(json, d->dial->list) : json;
  if (json_is_object(list)) list = json_object_get(list, "float"); /* by their types */
  must(json_is_array(list));
  must(is_of_items(d->dial) ? json_array_size(list) == items : json_array_size(list) > 0);
  must(!d->dial->list || d->dial->dialect == &cohere_embed ||
       d->dial->dialect == &cohere_embed_v2 || json_is_object(json_object_get(json, "usage")));
  for (size_t i = 0; i < json_array_size(list); i++)
    check_logprobs(json_object_get(json_array_get(list, i), "logprobs"));
  json_decref(json);
  free((char *)text.bytes);
}

static void compute_all(struct dialled *d) {
  void *scratch = asked_scratch(model_of(d->dial));
  for (struct run *run = stack_request_run(&d->asked.request); run;)
    run = asked_compute(&d->asked, run, work, scratch);
  free(scratch);
}

static void answer(struct dialled *d) {
  struct answer a;
  if (dialect_body_answer(d->body, "m", &d->asked.request, &a)) return;
  compute_all(d);
  if (!d->asked.error.status) check_answer(d, &a);
}

static void stream(struct dialled *d) {
  static const char end[] = "data: [DONE]\n\n";
  struct stack_stream s;
  static char text[EVENTS];
  size_t size = 0;
  if (dialect_body_stream(d->body, "m", &d->asked.request, &s)) return;
  compute_all(d);
  for (size_t bytes = 1; bytes > 0; size += bytes)
    bytes = stack_stream_write(&s, true, d->asked.error.status ? "{}" : NULL, text + size,
                               EVENTS - size);
  must(size >= sizeof end - 1 && !memcmp(text + size - (sizeof end - 1), end, sizeof end - 1));
}

/* Nothing is computed: a list for each text, or a text for each list, is there at once. */
static void tokenize(struct dialled *d) {
  struct tokenize_request r;
  struct answer a;
  if (dialect_body_tokenize(d->body, model_of(d->dial)->whole, &r, &a)) return;
  for (size_t i = 0; i < a.pieces; i++) answer_write_piece(&a, i);
  const struct input text = answer_text(&a);
  json_t *json = json_loadb(text.bytes, text.size, 0, NULL);
  must(json_array_size(json) == (r.back ? r.items : r.texts.texts->items));
  json_decref(json);
  free((char *)text.bytes);
}

static void compute(struct dialled *d) {
  struct stack_request *r = &d->asked.request;
  if (d->dial->ask >= ASK_TOKENIZE) {
    tokenize(d);
    return;
  }
  if (stack_request_prepare(r, &d->asked.arena, &d->asked.error)) return;
  if (r->stream)
    stream(d);
  else
    answer(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {(const char *)data, size};
  const unsigned char which = input_byte(&in), cut = input_byte(&in);
  const struct dial *dial = &dials[which % DIALS];
  struct dialled whole, parts;
  read_body(&whole, dial, in, 0);
  read_body(&parts, dial, in, cut);
  error_must_agree(&whole.asked.error, &parts.asked.error);
  if (!whole.asked.error.status) compute(&whole);
  if (whole.asked.error.status) error_must_be_told(&whole.asked.error);
  dialect_body_done(whole.body);
  dialect_body_done(parts.body);
  asked_end(&whole.asked);
  asked_end(&parts.asked);
  return 0;
}
