/* exchange_contract: how the fields of each kind of request become work and a plan of the response.
 */
#include "core/base/size.h"
#include "server/attention/attention_answer.h"
#include "server/attention/attention_trace.h"
#include "server/dialect/dialect_body.h"
#include "server/model/answer/stack_ablation_answer.h"
#include "server/model/answer/stack_answer.h"
#include "server/model/answer/stack_stream.h"
#include "server/route/find_model.h"
#include "server/service/exchange.h"
#include "server/tokenize/render_body.h"
#include "server/tokenize/tokenize_answer.h"

/* Sets the form of the response. `why_json` is the error if Accept requires safetensors and the
 * response has no such form. */
static enum status choose_form(struct exchange *x, bool has_binary, const char *why_json,
                               enum answer_form *form) {
  *form = body_terms_answer(&x->terms, has_binary);
  if (*form != ANSWER_SAFETENSORS && x->terms.refuses_json)
    return error_set(&x->error, STATUS_NOT_ACCEPTABLE, "%s", why_json);
  return STATUS_OK;
}

/* --- attention and heads --- */

static void begin_attention(struct exchange *x) {
  struct attention_body *b =
      attention_body_new(x->model, &x->terms, &x->service->limits, &x->arena, &x->error);
  x->fields = b;
  x->body = b ? attention_body_of(b) : NULL;
}

static enum status finish_attention(struct exchange *x) {
  struct attention_request *r = &x->request.attention;
  enum answer_form form;
  x->run = &r->asked.run;
  if (attention_body_finish(x->fields, r) ||
      choose_form(x, attention_request_has_binary(r), attention_request_why_json(r), &form) ||
      layer_prepare(x->model->layer, &r->asked, &x->arena, &x->error))
    return x->error.status;
  x->timeout_us = r->v2.timeout_us;
  return attention_answer_plan(&x->answer, form, x->model, r, &x->service->limits, &x->arena,
                               &x->error);
}

/* --- models: encode, classify, score, generate, head importance --- */

static void begin_stack(struct exchange *x) {
  struct stack_body *b =
      stack_body_new(x->model->whole, &x->terms, &x->service->limits, &x->arena, &x->error);
  x->fields = b;
  x->body = b ? stack_body_of(b) : NULL;
}

/* The longest round of prompts, about: other requests to the same model wait for it. */
static const double round_seconds = 0.1;

/* Prepares the run of a checked request. */
static enum status prepare_stack(struct exchange *x) {
  struct stack_request *r = &x->request.stack;
  r->generation.prefixes = x->service->prefixes;
  r->generation.round_work = round_seconds * x->service->pace.second_work;
  if (stack_request_prepare(r, &x->arena, &x->error)) return x->error.status;
  x->run = stack_request_run(r);
  x->timeout_us = r->v2.timeout_us;
  x->tokens = stack_answer_given(r);
  x->recalled = r->generates ? stack_answer_recalled(r) : 0;
  x->stream = r->stream;
  return STATUS_OK;
}

/* Why the response of a request is JSON, and what to do. */
static const char *why_json(const struct stack_request *r) {
  if (r->weighs) return "Accept excludes application/json, the only format of head measures";
  if (r->generates)
    return "Accept excludes application/json, the only format of generated sequences";
  if (r->fills_of) return "Accept excludes application/json, the only format of filled tokens";
  if (r->main.run->want_sparse)
    return "Accept excludes application/json, the only format of sparse embeddings";
  if (r->trace) return attention_traced_is_json;
  return "tokens are returned as JSON only: accept application/json, or remove \"return_tokens\"";
}

/* Makes the run of a body. */
static enum status read_stack(struct exchange *x, enum answer_form *form) {
  struct stack_request *r = &x->request.stack;
  if (stack_body_finish(x->fields, r) ||
      choose_form(x, stack_request_has_binary(r), why_json(r), form))
    return x->error.status;
  return prepare_stack(x);
}

static enum status finish_stack(struct exchange *x) {
  enum answer_form form;
  if (read_stack(x, &form)) return x->error.status;
  return stack_answer_plan(&x->answer, form, x->model->name, &x->request.stack, &x->service->limits,
                           &x->arena, &x->error);
}

static enum status finish_generation(struct exchange *x) {
  struct stack_request *r = &x->request.stack;
  enum answer_form form;
  if (read_stack(x, &form)) return x->error.status;
  if (r->stream)
    return stack_stream_init(&x->streamed, &stack_events, NULL, r, &x->arena, &x->error);
  return stack_answer_plan(&x->answer, form, x->model->name, r, &x->service->limits, &x->arena,
                           &x->error);
}

/* A stream of head measures ends with its response. */
static enum status finish_ablation(struct exchange *x) {
  struct stack_request *r = &x->request.stack;
  enum answer_form form;
  if (read_stack(x, &form) || stack_ablation_answer_plan(&x->answer, x->model->name, r,
                                                         &x->service->limits, &x->arena, &x->error))
    return x->error.status;
  if (r->stream) stack_ablation_stream_init(&x->measured, r, &x->answer, &x->arena, &x->error);
  return x->error.status;
}

/* --- tokenize and detokenize --- */

static void begin_tokenize(struct exchange *x) {
  struct tokenize_body *b = tokenize_body_new(x->model->whole, &x->terms,
                                              x->service->limits.max_items, &x->arena, &x->error);
  x->fields = b;
  x->body = b ? tokenize_body_of(b) : NULL;
}

static enum status finish_tokenize(struct exchange *x) {
  struct tokenize_request *r = &x->request.tokenize;
  enum answer_form form;
  if (choose_form(x, false, "Accept excludes application/json, the only format of texts", &form) ||
      tokenize_body_finish(x->fields, r))
    return x->error.status;
  x->run = &r->run;
  return tokenize_answer_plan(&x->answer, x->model->name, r, x->service->limits.max_answer_bytes,
                              &x->arena, &x->error);
}

/* --- render --- */

static void begin_render(struct exchange *x) {
  struct render_body *b = render_body_new(x->model->whole, &x->terms, &x->arena, &x->error);
  x->fields = b;
  x->body = b ? render_body_of(b) : NULL;
}

static enum status finish_render(struct exchange *x) {
  struct tokenize_request *r = &x->request.tokenize;
  enum answer_form form;
  if (choose_form(x, false, "Accept excludes application/json, the only format of texts", &form) ||
      render_body_finish(x->fields, r))
    return x->error.status;
  x->run = &r->run;
  return render_answer_plan(&x->answer, x->model->name, r, x->service->limits.max_answer_bytes,
                            &x->arena, &x->error);
}

static void end_render(struct exchange *x) { render_body_done(x->fields); }

/* --- the forms of other services: the body names the model --- */

static void begin_dialect(struct exchange *x) {
  const struct registry *all = x->hold.registry;
  struct dialect_body *b = dialect_body_new(&x->terms, &x->service->limits, &x->arena, &x->error);
  x->fields = b;
  x->body = b ? dialect_body_of(b) : NULL;
  /* The body has not named its model yet: it may be the one with the longest prompt. */
  size_t longest = 0;
  for (size_t i = 0; i < registry_count(all); i++) {
    const struct whole *w = registry_at(all, i)->whole;
    if (w) longest = size_max(longest, w->longest_prompt);
  }
  if (b) x->body->reading.prompt = longest;
}

/* Finds the model that the body names. */
static enum status find_dialect_model(struct exchange *x) {
  const char *name;
  if (dialect_body_finish(x->fields, &name) == STATUS_OK)
    x->model =
        find_model_of_body(route_of_dialect(x->terms.dialect), name, x->hold.registry, &x->error);
  return x->error.status;
}

static enum status finish_dialect(struct exchange *x) {
  struct stack_request *r = &x->request.stack;
  if (find_dialect_model(x) || dialect_body_ask(x->fields, x->model->whole, r) || prepare_stack(x))
    return x->error.status;
  return r->stream ? dialect_body_stream(x->fields, x->model->name, r, &x->streamed)
                   : dialect_body_answer(x->fields, x->model->name, r, &x->answer);
}

static void end_dialect(struct exchange *x) { dialect_body_done(x->fields); }

static enum status finish_dialect_tokens(struct exchange *x) {
  struct tokenize_request *r = &x->request.tokenize;
  if (find_dialect_model(x)) return x->error.status;
  x->run = &r->run;
  return dialect_body_tokenize(x->fields, x->model->whole, r, &x->answer);
}

/* --- the table --- */

static const struct exchange_contract attention = {begin_attention, finish_attention, NULL};
static const struct exchange_contract stack = {begin_stack, finish_stack, NULL};
static const struct exchange_contract generation = {begin_stack, finish_generation, NULL};
static const struct exchange_contract ablation = {begin_stack, finish_ablation, NULL};
static const struct exchange_contract tokens = {begin_tokenize, finish_tokenize, NULL};
static const struct exchange_contract rendering = {begin_render, finish_render, end_render};
static const struct exchange_contract dialect = {begin_dialect, finish_dialect, end_dialect};
static const struct exchange_contract dialect_tokens = {begin_dialect, finish_dialect_tokens, NULL};

static const struct {
  const struct exchange_contract *own, *dialect; /* of our own form; of other services' forms */
  const struct exchange_work *work;
} table[] = {
    [ASK_ATTENTION] = {&attention, NULL, &exchange_plain},
    [ASK_HEADS] = {&attention, NULL, &exchange_plain},
    [ASK_ENCODE] = {&stack, &dialect, &exchange_pass},
    [ASK_CLASSIFY] = {&stack, &dialect, &exchange_pass},
    [ASK_QUESTION] = {&stack, NULL, &exchange_pass},
    [ASK_CLASSIFY_TOKENS] = {&stack, NULL, &exchange_pass},
    [ASK_FILL] = {&stack, NULL, &exchange_pass},
    [ASK_SCORE] = {&stack, &dialect, &exchange_pass},
    [ASK_GENERATE] = {&generation, &dialect, &exchange_generation},
    [ASK_TOKENIZE] = {&tokens, &dialect_tokens, &exchange_tokens},
    [ASK_DETOKENIZE] = {&tokens, &dialect_tokens, &exchange_plain},
    [ASK_RENDER] = {&rendering, NULL, &exchange_tokens},
};

void exchange_choose(struct exchange *x) {
  struct body_terms *t = &x->terms;
  if (t->ask == ASK_HEADS && x->model->whole) {
    /* The importance of a model's heads is measured on the log probabilities of targets, or on the
     * outputs if there are no logits. */
    t->ask = whole_has_output(x->model->whole) ? ASK_SCORE : ASK_ENCODE;
    t->ablation = true;
    x->contract = &ablation;
    x->work = &exchange_ablation;
    return;
  }
  x->contract = t->dialect ? table[t->ask].dialect : table[t->ask].own;
  x->work = table[t->ask].work;
}
