/* stack_texts: the texts that a request is to go on from, and the sequences that become of them. */
#include "server/stack/stack_texts.h"

#include <string.h>

#include "core/run/size.h"
#include "server/stack/stack_items.h"

/* --- how many tokens --- */

/* The tokens that may follow a text: those that are asked for; by default no more than the model
 * has positions for. 0 with an error. */
static size_t tokens_behind(struct stack_check *k, size_t text, size_t tokens) {
  const size_t asked = k->values->max_tokens, positions = k->w->positions;
  const size_t room = positions ? positions + 1 - tokens : SIZE_MAX; /* the last one is not fed */
  const size_t most = k->limits->max_tokens;
  if (!asked) return size_min(size_min(k->w->max_tokens, room), most);
  if (asked > most) {
    error_limit(k->e, "max_tokens", "%zu tokens are asked for; %zu are allowed", asked, most);
    return 0;
  }
  if (asked <= room && asked <= (size_t)INT32_MAX - tokens) return asked;
  if (positions)
    error_at(
        k->e, "/max_tokens",
        "%zu tokens of item %zu and all but the last of %zu that follow are more rows than the "
        "%zu positions of the model",
        tokens, text, asked, positions);
  else
    error_limit(k->e, "max_pairs", "item %zu has more than %d rows", text, INT32_MAX);
  return 0;
}

static enum status check_returns(struct stack_check *k) {
  const struct stack_values *v = k->values;
  if (v->returns > 1 && v->choice.temperature == 0)
    return error_at(k->e, "/returns",
                    "%zu sequences would be the same one: several are drawn where \"temperature\" "
                    "is above 0",
                    v->returns);
  return STATUS_OK;
}

/* Events are tokens; what is shown inside comes with the whole answer. */
static enum status check_stream(struct stack_check *k) {
  const char *shown = k->run->embedded ? "return_hidden" : NULL;
  if (!k->values->stream) return STATUS_OK;
  for (size_t l = 0; k->run->wish && l < k->form->layers; l++) {
    const struct stack_wish *wish = &k->run->wish[l];
    if (wish->hidden || wish->input) shown = "return_hidden";
    if (wish->weights != STACK_WEIGHTS_NONE) shown = "return_attention";
  }
  if (!shown) return STATUS_OK;
  return error_at(k->e, "/stream", "a stream has no place for what \"%s\" asks for", shown);
}

/* --- sequences --- */

/* Texts become items, one after the other for each of their sequences. */
static enum status make_sequences(struct stack_check *k, size_t items) {
  struct geometry *g = &k->run->geometry;
  struct stack_request *out = k->out;
  struct stack_sequence *q = arena_alloc(k->reading->arena, items, sizeof *q, k->e);
  struct item *item = arena_alloc(k->reading->arena, items, sizeof *item, k->e);
  if (!q || !item) return k->e->status;
  size_t rows = 0;
  for (size_t i = 0; i < items; i++) {
    const size_t text = i / out->returns, n = g->item[text].q;
    const size_t most = n ? tokens_behind(k, text, n) : 0;
    if (n == 0)
      return stack_items_refuse(k, STACK_FIELD_TOKENS, text,
                                "an item without tokens: there is nothing to go on from");
    if (most == 0) return k->e->status;
    q[i] = (struct stack_sequence){.item = (uint32_t)text,
                                   .sample = (uint32_t)(i % out->returns),
                                   .most = most};
    item[i] = (struct item){.q = n, .k = n, .q_row = rows, .k_row = rows};
    if (!size_add(rows, n, &rows)) return error_limit(k->e, "max_pairs", "too many rows to count");
  }
  g->items = items;
  g->item = item;
  g->q_rows = g->k_rows = rows;
  out->generation.sequence = q;
  return STATUS_OK;
}

enum status stack_texts_check(struct stack_check *k) {
  const struct stack_values *v = k->values;
  struct stack_request *out = k->out;
  size_t items;
  if (check_returns(k) || check_stream(k)) return k->e->status;
  out->generates = true;
  out->stream = v->stream;
  out->returns = v->returns;
  out->texts = k->run->geometry.items;
  out->text_tokens = k->run->geometry.q_rows;
  out->generation.choice = v->choice;
  out->generation.top = out->top;
  k->run->generation = &out->generation;
  if (!size_mul(out->texts, v->returns, &items) || items > k->limits->max_items)
    return error_limit(k->e, "max_items", "%zu sequences of each of %zu items; %zu are allowed",
                       v->returns, out->texts, k->limits->max_items);
  if (items > k->limits->max_sequences)
    return error_limit(k->e, "max_sequences", "%zu sequences; %zu are allowed at the same time",
                       items, k->limits->max_sequences);
  return make_sequences(k, items);
}

enum status stack_texts_take(struct stack_check *k) {
  const struct geometry *g = &k->run->geometry;
  const int32_t *token = stack_check_tensor(k, STACK_FIELD_TOKENS)->data;
  int32_t *fed = arena_alloc(k->reading->arena, g->q_rows, sizeof *fed, k->e);
  if (!fed) return k->e->status;
  k->run->tokens = fed;
  for (size_t text = 0; text < k->out->texts; text++) {
    const struct item *item = &g->item[text * k->out->returns];
    if (stack_items_below(k, STACK_FIELD_TOKENS, text, token, item->q, k->w->vocabulary))
      return k->e->status;
    for (size_t i = 0; i < k->out->returns; i++)
      memcpy(fed + item[i].q_row, token, item[i].q * sizeof *fed);
    token += stack_items_count(k, STACK_FIELD_TOKENS, text);
  }
  return STATUS_OK;
}
