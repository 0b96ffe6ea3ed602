/* stack_entities: entities from the classes of tokens, as the pipeline of Hugging Face transformers
 * makes them: tokens become words, words become groups, and those of class "O" are left out. */
#include "server/model/answer/stack_entities.h"

#include <string.h>

#include "core/base/size.h"
#include "server/text/json_string.h"
#include "server/tokenize/tokenize_answer.h"

static const char LABEL[] = "{\"label\":", SCORE[] = ",\"score\":", START[] = ",\"start\":",
                  END[] = ",\"end\":", TEXT[] = ",\"text\":";
enum {
  OBJECT_ROOM =
      sizeof LABEL + sizeof SCORE + sizeof START + sizeof END + sizeof TEXT + 5 * NUMBER_ROOM
};

/* Tokens that are added around a text belong to no word. No request has entities and a prompt,
 * whose tokens are empty, too. */
struct entities {
  const struct stack_request *r;
  bool *inside; /* [tokens] whether a token belongs to the word before it */
  double *mean; /* [classes] of a word's scores */
};

/* --- tokens and words --- */

static size_t count_characters(const char *text, size_t bytes) {
  struct tokenize_offset at = {0};
  return (size_t)tokenize_offset_move(text, &at, bytes);
}

/* Whether the token continues a word. Where pieces inside words are marked, these have more
 * characters than the text that they are; else a word begins after a space. */
static bool is_inside(const struct tokenizer *t, const struct token *token, const char *text,
                      size_t length, struct arena *a, struct error *e) {
  if (tokenizer_is_unknown(t, token->id)) return false;
  if (!tokenizer_marks_inside(t))
    return token->begin > 0 && text[token->begin - 1] != ' ' &&
           !(token->begin < length && text[token->begin] == ' ');
  const struct tokenizer_text piece = tokenizer_piece(t, token->id, a, e);
  return count_characters(piece.bytes, piece.length) !=
         count_characters(text + token->begin, token->end - token->begin);
}

static size_t greatest(const float *score, size_t count) {
  size_t top = 0;
  for (size_t i = 1; i < count; i++) top = score[i] > score[top] ? i : top;
  return top;
}

/* Tokens that are one: their class, the score of that, and their place in the text. */
struct word {
  size_t class;
  double score;
  uint32_t begin, end;
};

/* The class with the greatest mean of the scores of tokens first .. end - 1, rows of them. */
static void average(const struct entities *x, const float *score, size_t first, size_t end,
                    struct word *w) {
  const size_t classes = x->r->classes_of->classes;
  const struct token *token = x->r->tokenized->tokens.token;
  size_t count = 0;
  for (size_t i = 0; i < classes; i++) x->mean[i] = 0;
  for (size_t t = first; t < end; t++) {
    if (token_is_added(&token[t])) continue;
    count++;
    for (size_t i = 0; i < classes; i++) x->mean[i] += (double)score[t * classes + i];
  }
  w->class = 0;
  for (size_t i = 0; i < classes; i++) {
    x->mean[i] = (float)(x->mean[i] / (double)count);
    if (x->mean[i] > x->mean[w->class]) w->class = i;
  }
  w->score = x->mean[w->class];
}

/* Makes the next word of the tokens from *at to end - 1, and moves after it. `score` has a row for
 * each token of the request. False: no word is left. */
static bool next_word(const struct entities *x, const float *score, size_t *at, size_t end,
                      struct word *w) {
  const struct stack_request *r = x->r;
  const size_t classes = r->classes_of->classes;
  const struct token *token = r->tokenized->tokens.token;
  while (*at < end && token_is_added(&token[*at])) ++*at;
  if (*at == end) return false;
  const size_t first = *at;
  size_t best = first; /* the token whose scores the word has */
  *w = (struct word){.begin = token[first].begin, .end = token[first].end};
  for (++*at; *at < end && r->group > STACK_GROUP_SIMPLE; ++*at) {
    if (token_is_added(&token[*at])) continue;
    if (!x->inside[*at]) break;
    w->end = token[*at].end;
    const float *row = score + *at * classes, *top = score + best * classes;
    if (r->group == STACK_GROUP_MAX && row[greatest(row, classes)] > top[greatest(top, classes)])
      best = *at;
  }
  if (r->group == STACK_GROUP_AVERAGE) {
    average(x, score, first, *at, w);
  } else {
    const float *row = score + best * classes;
    w->class = greatest(row, classes);
    w->score = (double)row[w->class];
  }
  return true;
}

/* --- words and groups --- */

/* The class without the mark of a first or a further part of an entity. */
static const char *tag_of(const char *label, bool *begins) {
  *begins = strncmp(label, "B-", 2) == 0;
  return *begins || strncmp(label, "I-", 2) == 0 ? label + 2 : label;
}

/* Whether the word continues the group that ends with the other one. */
static bool continues(const struct whole *w, const struct word *word, const struct word *last) {
  bool begins, began;
  const char *tag = tag_of(w->label[word->class], &begins);
  return !begins && strcmp(tag, tag_of(w->label[last->class], &began)) == 0;
}

/* The name of a group: what follows the first hyphen of its first word's class. */
static const char *group_name(const char *label) {
  const char *hyphen = strchr(label, '-');
  return hyphen ? hyphen + 1 : label;
}

/* --- the section --- */

struct writing {
  const struct entities *x;
  const char *text;
  struct tokenize_offset begin, end;
  bool any; /* has an entity been written? */
};

static char *write_entity(struct writing *w, const struct word *all, char *out) {
  const struct stack_request *r = w->x->r;
  const char *label = r->classes_of->label[all->class];
  if (r->group != STACK_GROUP_NONE) label = group_name(label);
  if (strcmp(label, "O") == 0) return out;
  if (w->any) *out++ = ',';
  w->any = true;
  out = answer_write_text(out, LABEL);
  out = json_string_write(label, strlen(label), out);
  out = answer_write_text(out, SCORE);
  out = number_write(out, (float)all->score);
  out = answer_write_text(out, START);
  out = number_write_integer(out, tokenize_offset_move(w->text, &w->begin, all->begin));
  out = answer_write_text(out, END);
  out = number_write_integer(out, tokenize_offset_move(w->text, &w->end, all->end));
  out = answer_write_text(out, TEXT);
  out = json_string_write(w->text + all->begin, all->end > all->begin ? all->end - all->begin : 0,
                          out);
  *out++ = '}';
  return out;
}

static char *write_item(const struct entities *x, size_t item, char *out) {
  const struct stack_request *r = x->r;
  const struct tokenize_texts *d = r->tokenized;
  struct writing w = {.x = x, .text = d->texts->bytes + d->texts->part[item].at};
  struct word group = {0}, last = {0}, word;
  size_t words = 0, at = d->first[item]; /* words: of the group */
  while (next_word(x, r->main.run->outputs, &at, d->first[item + 1], &word)) {
    if (words > 0 && r->group != STACK_GROUP_NONE && continues(r->classes_of, &word, &last)) {
      group.score += word.score;
      group.end = word.end;
      words++;
    } else {
      if (words > 0) group.score /= (double)words, out = write_entity(&w, &group, out);
      group = word;
      words = 1;
    }
    last = word;
  }
  if (words > 0) group.score /= (double)words, out = write_entity(&w, &group, out);
  return out;
}

/* Writes the entities of all items as one row. */
static char *write_items(const struct answer_rows *rows, char *out) {
  const struct entities *x = rows->section->data;
  for (size_t i = 0; i < x->r->tokenized->texts->items; i++) {
    if (i > 0) *out++ = ',';
    *out++ = '[';
    out = write_item(x, i, out);
    *out++ = ']';
  }
  return out;
}

/* The most bytes of all entities. A group has the text of its tokens, and what is between them. */
static bool count_room(const struct stack_request *r, size_t *room) {
  const struct tokenize_texts *d = r->tokenized;
  const struct whole *w = r->classes_of;
  size_t longest = 0, bytes = d->texts->length, objects, brackets;
  for (size_t i = 0; i < w->classes; i++) longest = size_max(longest, strlen(w->label[i]));
  for (size_t i = 0; i < d->tokens.count; i++)
    bytes += d->tokens.token[i].end - d->tokens.token[i].begin;
  return size_mul(bytes, JSON_STRING_ROOM, room) &&
         size_mul(d->tokens.count, OBJECT_ROOM + JSON_STRING_ROOM * longest, &objects) &&
         size_mul(d->texts->items, ROW_ROOM, &brackets) && size_add(*room, objects, room) &&
         size_add(*room, brackets, room);
}

/* Fills the memory that writing needs. */
static enum status make_entities(struct entities *x, struct arena *a, struct error *e) {
  const struct tokenize_texts *d = x->r->tokenized;
  x->inside = arena_alloc(a, d->tokens.count, sizeof *x->inside, e);
  x->mean = arena_alloc(a, x->r->classes_of->classes, sizeof *x->mean, e);
  for (size_t item = 0; !e->status && item < d->texts->items; item++) {
    const struct texts_part *part = &d->texts->part[item];
    for (size_t i = d->first[item]; i < d->first[item + 1]; i++)
      x->inside[i] = is_inside(d->tokenizer, &d->tokens.token[i], d->texts->bytes + part->at,
                               part->length, a, e);
  }
  return e->status;
}

enum status stack_entities_add(struct stack_listing *l, struct arena *a, struct error *e) {
  size_t room;
  if (!count_room(l->r, &room))
    return error_set(e, STATUS_TOO_LARGE, "the entities exceed the address space");
  struct entities *x = NULL;
  if (l->part) {
    x = arena_alloc(a, 1, sizeof *x, e);
    if (!x) return e->status;
    *x = (struct entities){.r = l->r};
    if (make_entities(x, a, e)) return e->status;
  }
  stack_listing_add_text(l, "entities", room, write_items, x);
  return STATUS_OK;
}
