/* tokenize_texts: all texts of a request, one after the other. */
#include "server/tokenize/tokenize_texts.h"

#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/size.h"

/* An error about one text says which. */
static enum status locate(struct error *e, const struct texts *t, size_t item) {
  if (e->status != STATUS_INVALID_REQUEST || *e->pointer) return e->status;
  if (t->alone)
    snprintf(e->pointer, sizeof e->pointer, "/text");
  else
    snprintf(e->pointer, sizeof e->pointer, "/text/%zu", item);
  return e->status;
}

enum status tokenize_texts_check(const struct tokenizer *t, const struct texts *texts,
                                 const struct tokenizer_options *ask, size_t said,
                                 struct error *e) {
  const size_t around = ask->special ? tokenizer_special_count(t, texts->of_item == TEXTS_PAIR) : 0;
  if (said == 0 || said >= around) return STATUS_OK;
  return error_at(
      e, "/truncate",
      "the tokenizer adds %zu special tokens to each %s: truncate to at least that number", around,
      texts->of_item == TEXTS_PAIR ? "pair" : "text");
}

/* --- prompts --- */

/* Counts the tokens that a prompt alone becomes, without a special one at its end: so
 * sentence-transformers count the rows that are left out. (Within a text its last token may be
 * another one: byte-level BPE puts a blank at the end of a prompt to the word that follows.) */
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

static size_t behind(size_t place, size_t length) { return place - size_min(place, length); }

/* Places in a text with a prompt become those in the text. */
static void move_places(struct tokens *tokens, size_t from, size_t length) {
  for (size_t i = from; i < tokens->count; i++) {
    struct token *token = &tokens->token[i];
    if (token->text > 0) continue;
    token->begin = (uint32_t)behind(token->begin, length);
    token->end = (uint32_t)behind(token->end, length);
  }
}

/* --- texts --- */

/* Is the first text of an item the one that the item before it has? */
static bool is_again(const struct texts *t, size_t item) {
  const struct texts_part *part = &t->part[item * t->of_item];
  return item > 0 && t->of_item == TEXTS_PAIR && part->at == part[-TEXTS_PAIR].at &&
         part->length == part[-TEXTS_PAIR].length;
}

/* Cuts an item, which needs room for its first text behind a prompt. */
static enum status cut_item(struct tokenize_texts *d, size_t item, struct tokenizer_work *work,
                            const struct tokenize_ask *ask, char *room) {
  const struct texts *texts = d->texts;
  const struct tokenizer_text *prompt = &ask->prompt[tokenize_prompt_of(texts, item)];
  const unsigned there = texts_of(texts, item);
  const size_t from = d->tokens.count;
  struct tokenizer_options of_each = ask->of_each;
  struct tokenizer_text text[TEXTS_PAIR];
  for (size_t j = 0; j < there; j++) {
    const struct texts_part *part = &texts->part[item * texts->of_item + j];
    text[j] = (struct tokenizer_text){texts->bytes + part->at, part->length};
  }
  of_each.first_again = is_again(texts, item);
  if (prompt->length && !of_each.first_again) {
    memcpy(room, prompt->bytes, prompt->length);
    if (text->length) memcpy(room + prompt->length, text->bytes, text->length);
    *text = (struct tokenizer_text){room, prompt->length + text->length};
  }
  if (tokenizer_encode(d->tokenizer, work, text, there, &of_each, &d->tokens))
    return locate(d->tokens.e, texts, item);
  if (prompt->length && of_each.traced) move_places(&d->tokens, from, prompt->length);
  return STATUS_OK;
}

/* Room for the longest first text behind a prompt; NULL: there is no prompt, or no memory. */
static char *make_room(const struct texts *t, const struct tokenize_ask *ask, struct arena *a,
                       struct error *e) {
  const size_t prompt =
      size_max(ask->prompt[TOKENIZE_OF_TEXT].length, ask->prompt[TOKENIZE_OF_QUERY].length);
  size_t longest = 0;
  for (size_t i = 0; i < t->items; i++) longest = size_max(longest, t->part[i * t->of_item].length);
  return prompt ? arena_alloc(a, prompt + longest, 1, e) : NULL;
}

enum status tokenize_texts(struct tokenize_texts *d, const struct tokenizer *t,
                           const struct texts *texts, const struct tokenize_ask *ask,
                           struct arena *a, struct error *e) {
  const uint64_t begun = clock_now();
  struct tokenizer_work work;
  size_t pairs = 0;
  *d = (struct tokenize_texts){.tokenizer = t,
                               .texts = texts,
                               .first = arena_alloc(a, texts->items + 1, sizeof *d->first, e)};
  tokens_init(&d->tokens, a, e);
  tokenizer_work_init(&work, a, e);
  char *room = make_room(texts, ask, a, e);
  for (unsigned i = 0; ask->counts_prompts && i < TOKENIZE_PROMPTS; i++)
    if (count_prompt(&d->prompt_tokens[i], t, &ask->prompt[i], &ask->of_each, &work)) break;
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
