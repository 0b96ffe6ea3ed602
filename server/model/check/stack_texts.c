/* stack_texts: the prompts of a request to generate, and their sequences. */
#include "server/model/check/stack_texts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/size.h"
#include "server/model/answer/stack_detokenizer.h"
#include "server/model/check/stack_items.h"

/* --- how many tokens --- */

/* The most keys of a sequence of a text that max_pairs allows if all sequences have as many: keys²
 * in each head and layer, keys × rows of the source in each head that attends to them, and the
 * source's own pairs. Exact below 2^64. */
static long double keys_of_pairs(const struct stack_check *k, size_t text) {
  const struct stack_form *main = k->main->form, *reader = k->reader->form;
  const long double each = k->out->each, layers = main->layers,
                    source = stack_request_source_rows(k->out, text * k->out->each);
  const long double square = layers * main->kind->self.heads,
                    line = layers * main->cross.heads * source,
                    of_source = source * source * reader->layers * reader->kind->self.heads / each,
                    share = k->limits->max_pairs / (k->out->texts * each) - of_source;
  if (share <= 0) return 0;
  const long double keys = floorl((sqrtl(line * line + 4 * square * share) - line) / (2 * square));
  return keys * keys * square + keys * line <= share ? keys : keys - 1;
}

/* The default of max_tokens after a prompt of `tokens`: as many as the model has positions for and
 * max_pairs allows. At least 1: a prompt that is too long is rejected later. */
static size_t usual_tokens(const struct stack_check *k, size_t text, size_t tokens, size_t room) {
  const size_t most = size_min(size_min(k->values->usual_tokens, room), k->limits->max_tokens);
  const long double after = keys_of_pairs(k, text) - tokens + 1; /* the last one is not fed */
  return after >= most ? most : after > 1 ? (size_t)after : 1;
}

/* The most tokens that may follow a prompt of `tokens`: max_tokens or its default. 0 with an error.
 */
static size_t tokens_after(struct stack_check *k, size_t text, size_t tokens) {
  const size_t asked = k->values->max_tokens, positions = k->w->target_positions;
  const size_t room = positions ? positions + 1 - tokens : SIZE_MAX; /* the last one is not fed */
  const size_t most = k->limits->max_tokens;
  if (!asked) return usual_tokens(k, text, tokens, room);
  if (asked > most) {
    error_limit(k->e, "max_tokens", "%zu tokens exceed the limit of %zu", asked, most);
    return 0;
  }
  if (asked <= room && asked <= (size_t)INT32_MAX - tokens) return asked;
  if (positions && stack_check_has_source(k))
    error_at(k->e, "/max_tokens",
             "the decoder start token and %zu targets of item %zu, with max_tokens = %zu, exceed "
             "the decoder's context length of %zu",
             tokens - 1, text, asked, positions);
  else if (positions)
    error_at(k->e, "/max_tokens",
             "%zu tokens of item %zu, with max_tokens = %zu, exceed the model's context length of "
             "%zu: shorten the prompt or lower max_tokens",
             tokens, text, asked, positions);
  else
    error_limit(k->e, "max_pairs", "item %zu has more than %d positions", text, INT32_MAX);
  return 0;
}

/* --- the choice --- */

/* Sets how tokens are chosen, and checks it. Beam search does not sample: a request that sets the
 * temperature or the beams switches the model's default of the other one off. */
static enum status set_choice(struct stack_check *k, struct stack_choice *c) {
  const bool drawn = stack_field_is_seen(k->reading, STACK_FIELD_TEMPERATURE),
             searched = stack_field_is_seen(k->reading, STACK_FIELD_BEAMS);
  const size_t tokens = k->main->form->embedding.tokens, returns = k->values->returns;
  *c = k->values->choice;
  for (size_t i = 0; i < c->biases; i++) {
    char pointer[ERROR_POINTER_SIZE];
    if ((size_t)c->bias[i].token < tokens) continue;
    snprintf(pointer, sizeof pointer, "%s/%d", stack_field_pointer(STACK_FIELD_LOGIT_BIAS),
             (int)c->bias[i].token);
    return error_at(k->e, pointer, "is not a token of the model: its tokens are 0 to %zu",
                    tokens - 1);
  }
  if (k->values->ignores_end) c->ends = 0;
  if (drawn && !searched) c->beams = 1;
  c->beams = size_max(c->beams, 1);
  if (!drawn && (searched || c->beams > 1)) c->temperature = 0;
  if (c->beams > 1 && c->temperature != 0)
    return error_at(k->e, "/temperature",
                    "beam search (%zu beams) does not sample: use either \"beams\" above 1 or "
                    "\"temperature\" above 0",
                    c->beams);
  if (c->beams > 1 && returns > c->beams)
    return error_at(
        k->e, "/returns",
        "%zu sequences exceed the %zu beams of the search: lower \"returns\" or raise \"beams\"",
        returns, c->beams);
  if (c->beams == 1 && returns > 1 && c->temperature == 0)
    return error_at(k->e, "/returns",
                    "greedy decoding would return %zu identical sequences: set \"temperature\" "
                    "above 0 or \"beams\" above 1",
                    returns);
  if (c->beams == 1 && k->values->search)
    return error_at(k->e, "/return_search",
                    "\"return_search\" requires beam search: set \"beams\" above 1");
  return STATUS_OK;
}

/* Events of a stream are tokens: hidden states and attention come only with a whole response. */
static enum status check_stream(struct stack_check *k, size_t beams) {
  bool hidden = false, attention = false;
  if (!k->values->stream) return STATUS_OK;
  if (beams > 1)
    return error_at(k->e, "/stream",
                    "streaming is not supported with beam search (%zu beams): set \"beams\": 1 or "
                    "\"stream\": false",
                    beams);
  for (unsigned n = 0; n < STACK_SIDES; n++) {
    const struct stack_side *s = stack_request_side(k->out, n);
    hidden = hidden || s->embedded;
    for (size_t i = 0; s->stack && i < stack_form_attentions(s->form); i++) {
      hidden = hidden || s->wish[i].hidden || s->wish[i].input;
      attention = attention || s->wish[i].weights != STACK_WEIGHTS_NONE;
    }
  }
  if (!hidden && !attention) return STATUS_OK;
  return error_at(k->e, "/stream", "streaming excludes \"%s\": remove it or set \"stream\": false",
                  attention ? "return_attention" : "return_hidden");
}

/* --- sequences --- */

/* Makes an item for each sequence, those of a text one after the other. */
static enum status make_sequences(struct stack_check *k, size_t items) {
  struct geometry *g = &k->main->run->geometry;
  struct stack_request *out = k->out;
  struct stack_sequence *q = arena_alloc(k->reading->arena, items, sizeof *q, k->e);
  struct item *item = arena_alloc(k->reading->arena, items, sizeof *item, k->e);
  if (!q || !item) return k->e->status;
  size_t rows = 0;
  for (size_t i = 0; i < items; i++) {
    const size_t text = i / out->each, n = (size_t)k->begun[text];
    const size_t most = n ? tokens_after(k, text, n) : 0;
    if (n == 0)
      return stack_items_refuse(k, STACK_FIELD_TOKENS, text,
                                "the item has no tokens: the prompt must have at least one");
    if (most == 0) return k->e->status;
    q[i] = (struct stack_sequence){.item = (uint32_t)text,
                                   .sample = (uint32_t)(i % out->each),
                                   .most = most,
                                   .keys = n + most - 1}; /* the last token is not fed */
    item[i] = (struct item){.q = n, .k = n, .q_row = rows, .k_row = rows};
    if (!size_add(rows, n, &rows))
      return error_limit(k->e, "max_pairs", "too many positions to count");
  }
  g->items = items;
  g->item = item;
  g->q_rows = g->k_rows = rows;
  out->generation.sequence = q;
  return STATUS_OK;
}

/* --- generated text --- */

/* Sets k->out->detokenizer if the response has text or token strings, or a stop sequence ends it. A
 * request that sends texts or stop sequences gets text unless return_text says otherwise. */
static enum status check_text(struct stack_check *k) {
  const struct stack_values *v = k->values;
  const bool text = stack_field_is_seen(k->reading, STACK_FIELD_RETURN_TEXT)
                        ? v->text
                        : k->reading->texts || v->stops > 0;
  const char *field = stack_field_pointer(v->stops ? STACK_FIELD_STOP : STACK_FIELD_RETURN_TEXT);
  if (!text && v->stops == 0 && !v->tokens) return STATUS_OK;
  if (!k->w->tokenizer)
    return error_at(k->e, field,
                    "this model has no tokenizer and returns only token ids: remove "
                    "\"return_text\" and \"stop\"");
  if (tokenizer_text_max(k->w->tokenizer) == SIZE_MAX)
    return error_at(k->e, field,
                    "this model's tokenizer cannot return text (the size of its decoder's output "
                    "is unbounded): request tokens only");
  if (v->stops > 0 && k->out->generation.choice.beams > 1)
    return error_at(k->e, stack_field_pointer(STACK_FIELD_STOP),
                    "beam search does not support stop sequences: set \"beams\": 1 or use "
                    "\"stop_tokens\"");
  if (v->stream && v->tokens)
    return error_at(k->e, stack_field_pointer(STACK_FIELD_RETURN_TOKENS),
                    "streaming excludes \"return_tokens\": remove it or set \"stream\": false");
  const struct detokenizer_terms terms = {.tokenizer = k->w->tokenizer,
                                          .stop = v->stop,
                                          .stops = v->stops};
  struct stack_detokenizer *u = stack_detokenizer_new(&terms, k->out, k->reading->arena, k->e);
  if (!u) return k->e->status;
  u->shown = text;
  u->token_texts = v->token_texts;
  return STATUS_OK;
}

enum status stack_texts_check(struct stack_check *k) {
  const struct stack_values *v = k->values;
  struct stack_request *out = k->out;
  struct stack_generation *g = &out->generation;
  size_t items;
  if (set_choice(k, &g->choice) || check_stream(k, g->choice.beams)) return k->e->status;
  out->generates = true;
  out->stream = v->stream;
  out->search = v->search;
  out->returns = v->returns;
  out->each = g->each = g->choice.beams > 1 ? g->choice.beams : v->returns;
  out->texts = k->items;
  out->text_tokens = k->main->run->geometry.q_rows;
  if (stack_check_has_source(k)) out->text_tokens += k->reader->run->geometry.q_rows;
  g->top = out->top;
  k->main->run->generation = g;
  if (!size_mul(out->texts, out->each, &items) || items > k->limits->max_items)
    return error_limit(k->e, "max_items",
                       "%zu sequences of each of %zu items exceed the limit of %zu", out->each,
                       out->texts, k->limits->max_items);
  if (items > k->limits->max_sequences)
    return error_limit(k->e, "max_sequences",
                       "%zu sequences exceed the limit of %zu at the same time", items,
                       k->limits->max_sequences);
  return check_text(k) ? k->e->status : make_sequences(k, items);
}

/* --- tokens --- */

enum status stack_texts_set(struct stack_check *k) {
  const struct geometry *g = &k->main->run->geometry;
  const bool source = stack_check_has_source(k);
  const enum stack_field field = source ? STACK_FIELD_TARGETS : STACK_FIELD_TOKENS;
  const struct tensor *t = stack_check_tensor(k, field);
  const int32_t *from = t ? t->data : NULL;
  int32_t *fed = arena_alloc(k->reading->arena, g->q_rows, sizeof *fed, k->e);
  if (!fed) return k->e->status;
  k->main->run->tokens = fed;
  for (size_t text = 0; text < k->out->texts; text++) {
    const struct item *item = &g->item[text * k->out->each];
    int32_t *first = fed + item->q_row;
    /* The token that begins if there is a source, and the valid tokens that the field has. */
    const size_t begun = source ? 1 : 0, n = (size_t)k->begun[text] - begun;
    if (source) first[0] = (int32_t)k->w->token.begin;
    if (from) {
      if (stack_items_below(k, field, text, from, n, k->w->target_vocabulary)) return k->e->status;
      if (n > 0) memcpy(first + begun, from, n * sizeof *fed);
      from += stack_items_count(k, field, text);
    }
    for (size_t i = 1; i < k->out->each; i++)
      memcpy(fed + item[i].q_row, first, item->q * sizeof *fed);
  }
  return stack_detokenizer_begin(k->out, k->reading->arena, k->e);
}
