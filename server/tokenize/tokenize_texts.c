/* tokenize_texts: tokenizes all texts of a request, one after the other. */
#include "server/tokenize/tokenize_texts.h"

#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/size.h"

enum status tokenize_texts_check(const struct tokenizer *t, const struct texts *texts,
                                 const struct tokenize_ask *ask, size_t said, struct error *e) {
  const bool pair = texts->of_item == TEXTS_PAIR, marked = ask->form[TOKENIZE_OF_TEXT].marked;
  const size_t around =
      (ask->of_each.special ? tokenizer_special_count(t, pair) : 0) + (marked ? 1 : 0);
  if (said == 0 || (said >= around && said > marked)) return STATUS_OK;
  return error_at(
      e, "/truncate",
      "the tokenizer adds %zu special tokens to each %s: truncate to at least that number", around,
      pair ? "pair" : "text");
}

/* --- prompts --- */

/* Counts the tokens of a prompt alone, without a special token at its end, as sentence-transformers
 * count the rows that pooling leaves out. (Before a text the prompt's last token may differ:
 * byte-level BPE joins a blank at its end to the next word.) */
static enum status count_prompt(size_t *count, const struct tokenizer *t,
                                const struct tokenizer_text *prompt,
                                const struct tokenizer_options *ask, struct tokenizer_work *work) {
  struct tokenizer_options alone = *ask;
  struct tokens tokens;
  alone.first_again = false;
  alone.longest = 0;
  tokens_init(&tokens, work->text[0].arena, work->text[0].e);
  if (!prompt->length || tokenizer_encode(t, work, prompt, 1, &alone, &tokens))
    return tokens.e->status;
  *count = tokens.count;
  if (tokens.count > 0 && tokens.token[tokens.count - 1].special) --*count;
  return STATUS_OK;
}

/* --- texts --- */

/* Adds the marker and the padding of an item, whose tokens begin at `from`. */
static enum status add_form(struct tokenize_texts *d, size_t item, size_t from,
                            const struct tokenize_form *form) {
  struct tokens *t = &d->tokens;
  const struct token marker = {.id = form->marker, .special = true},
                     filler = {.id = form->filler, .special = true};
  if (form->marked && t->count > from) {
    tokens_add(t, marker);
    if (t->e->status) return t->e->status;
    struct token *at = &t->token[from + 1];
    memmove(at + 1, at, (t->count - from - 2) * sizeof *at);
    *at = marker;
  }
  d->own[item] = t->count - from;
  while (t->count - from < form->filled && !t->e->status) tokens_add(t, filler);
  return t->e->status;
}

/* Tokenizes an item; `room` is memory for its first text after a prompt. */
static enum status cut_item(struct tokenize_texts *d, size_t item, struct tokenizer_work *work,
                            const struct tokenize_ask *ask, char *room) {
  const struct texts *texts = d->texts;
  const struct texts_part *part = &texts->part[item * texts->of_item];
  const struct tokenize_form *form = &ask->form[tokenize_kind_of(texts, item)];
  const struct tokenizer_text *prompt = &form->prompt;
  const unsigned there = texts_of(texts, item);
  const size_t from = d->tokens.count;
  struct tokenizer_options of_each = ask->of_each;
  struct tokenizer_text text[TEXTS_PAIR];
  of_each.longest = form->longest - (form->longest && form->marked ? 1 : 0);
  for (size_t j = 0; j < there; j++)
    text[j] = (struct tokenizer_text){texts->bytes + part[j].at, part[j].length};
  /* The first text of a pair may be that of the item before. */
  of_each.first_again = item > 0 && texts->of_item == TEXTS_PAIR &&
                        part->at == part[-TEXTS_PAIR].at &&
                        part->length == part[-TEXTS_PAIR].length;
  if (prompt->length && !of_each.first_again) {
    memcpy(room, prompt->bytes, prompt->length);
    if (text->length) memcpy(room + prompt->length, text->bytes, text->length);
    *text = (struct tokenizer_text){room, prompt->length + text->length};
  }
  if (tokenizer_encode(d->tokenizer, work, text, there, &of_each, &d->tokens)) {
    struct error *e = d->tokens.e;
    if (e->status != STATUS_INVALID_REQUEST || *e->pointer) return e->status;
    if (texts->alone)
      snprintf(e->pointer, sizeof e->pointer, "/text");
    else
      snprintf(e->pointer, sizeof e->pointer, "/text/%zu", item);
    return e->status;
  }
  /* Offsets into a text with a prompt become offsets into the text. */
  for (size_t i = from; prompt->length && of_each.traced && i < d->tokens.count; i++) {
    struct token *token = &d->tokens.token[i];
    if (token->text > 0) continue;
    token->begin -= (uint32_t)size_min(token->begin, prompt->length);
    token->end -= (uint32_t)size_min(token->end, prompt->length);
  }
  return add_form(d, item, from, form);
}

enum status tokenize_texts(struct tokenize_texts *d, const struct tokenizer *t,
                           const struct texts *texts, const struct tokenize_ask *ask,
                           struct arena *a, struct error *e) {
  const uint64_t begun = clock_now();
  struct tokenizer_work work;
  size_t pairs = 0;
  *d = (struct tokenize_texts){.tokenizer = t,
                               .texts = texts,
                               .first = arena_alloc(a, texts->items + 1, sizeof *d->first, e),
                               .own = arena_alloc(a, texts->items, sizeof *d->own, e)};
  tokens_init(&d->tokens, a, e);
  tokenizer_work_init(&work, a, e);
  /* Memory for the longest first text after a prompt. */
  const size_t prompt = size_max(ask->form[TOKENIZE_OF_TEXT].prompt.length,
                                 ask->form[TOKENIZE_OF_QUERY].prompt.length);
  size_t longest = 0;
  for (size_t i = 0; i < texts->items; i++)
    longest = size_max(longest, texts->part[i * texts->of_item].length);
  char *room = prompt ? arena_alloc(a, prompt + longest, 1, e) : NULL;
  for (unsigned i = 0; ask->counts_prompts && i < TOKENIZE_KINDS; i++)
    if (count_prompt(&d->prompt_tokens[i], t, &ask->form[i].prompt, &ask->of_each, &work)) break;
  size_t i = 0;
  for (bool fits = true; !e->status && i < texts->items && fits; i++) {
    d->first[i] = d->tokens.count;
    if (patience_ends(ask->of_each.patience, e) || cut_item(d, i, &work, ask, room))
      return e->status;
    const size_t count = d->tokens.count - d->first[i];
    fits = !ask->most_tokens || count <= ask->most_tokens;
    d->too_many_pairs =
        fits && (!size_add(pairs, count * count, &pairs) || pairs > ask->most_pairs);
    fits = fits && !d->too_many_pairs;
  }
  if (e->status) return e->status;
  for (; i <= texts->items; i++) d->first[i] = d->tokens.count;
  d->ns = clock_now() - begun;
  return STATUS_OK;
}
