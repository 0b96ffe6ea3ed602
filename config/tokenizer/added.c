/* added: reads the list of added tokens, and searches for them. */
#include "config/tokenizer/added.h"

#include <stdlib.h>
#include <string.h>

#include "config/document/member.h"
#include "config/document/text.h"
#include "config/tokenizer/model/vocabulary.h"
#include "config/tokenizer/pattern/unicode.h"
#include "core/base/clock.h"
#include "core/base/size.h"

/* --- reading --- */

static enum status read_token(struct added *a, const json_t *one, const struct subword_model *m,
                              struct error *e) {
  const json_t *content = json_object_get(one, "content"), *id = json_object_get(one, "id");
  struct added_token *t = &a->token[a->count];
  if (!json_is_string(content) || json_string_length(content) == 0)
    return error_set(e, STATUS_CONFIG, "content: needs a text");
  if (!json_is_integer(id) || json_integer_value(id) < 0 ||
      json_integer_value(id) >= VOCABULARY_MAX)
    return error_set(e, STATUS_CONFIG, "\"%.60s\": id: needs one from 0 to %d",
                     json_string_value(content), VOCABULARY_MAX - 1);
  member_known(one, "id content single_word lstrip rstrip normalized special ", e);
  const bool special = member_flag_or(one, "special", false, e);
  *t = (struct added_token){.content = malloc(json_string_length(content)),
                            .length = json_string_length(content),
                            .id = (int32_t)json_integer_value(id),
                            .single_word = member_flag_or(one, "single_word", false, e),
                            .strips = {member_flag_or(one, "lstrip", false, e),
                                       member_flag_or(one, "rstrip", false, e)},
                            .normalized = member_flag_or(one, "normalized", !special, e),
                            .special = special};
  if (!t->content) return error_no_memory(e);
  a->count++;
  if (e->status) return text_before(e, "\"%.60s\": ", json_string_value(content));
  memcpy(t->content, json_string_value(content), t->length);
  const int32_t piece = subword_find(m, t->content, t->length);
  if (piece >= 0) t->id = piece;
  a->ids = size_max(a->ids, (size_t)t->id + 1);
  return STATUS_OK;
}

static enum status read_tokens(struct added *a, const json_t *json, const struct subword_model *m,
                               struct error *e) {
  const size_t count = json_array_size(json);
  const json_t *one;
  size_t i;
  if (!json_is_array(json)) return error_set(e, STATUS_CONFIG, "needs a list");
  a->token = calloc(count + 1, sizeof *a->token);
  if (!a->token) return error_no_memory(e);
  json_array_foreach((json_t *)json, i, one) {
    if (read_token(a, one, m, e)) return e->status;
  }
  a->by_id = malloc((a->ids + 1) * sizeof *a->by_id);
  if (!a->by_id) return error_no_memory(e);
  for (size_t id = 0; id < a->ids; id++) a->by_id[id] = -1;
  for (i = 0; i < a->count; i++) a->by_id[a->token[i].id] = (int32_t)i;
  return STATUS_OK;
}

/* --- normalizing --- */

/* The normalizing of all tokens of a file; a file that is meant to be used takes milliseconds. */
enum { CHANGE_MS = 5000 };

struct added_patience {
  struct patience patience;
  uint64_t ends;
};

static enum status ask_clock(struct patience *p) {
  return p->asked >= ((struct added_patience *)p)->ends ? STATUS_DEADLINE : STATUS_OK;
}

static enum status change(struct added_token *t, const struct normalizer *n,
                          struct patience *patience, struct error *e) {
  struct arena arena;
  struct passage p;
  arena_init(&arena, NULL);
  passage_init(&p, &arena, e);
  /* A useful normalizer makes less of a token; one that doubles it again and again would take
   * minutes to load. */
  p.most = size_min(32 * t->length + 1024, PASSAGE_LONGEST);
  p.patience = p.watch.patience = patience;
  if (passage_begin(&p, t->content, t->length, 0, false) == STATUS_OK &&
      normalizer_apply(n, &p) == STATUS_OK &&
      !(p.now.length == t->length && memcmp(p.now.bytes, t->content, t->length) == 0)) {
    t->changed = malloc(p.now.length + 1);
    if (!t->changed) error_no_memory(e);
    if (t->changed) memcpy(t->changed, p.now.bytes, p.now.length);
    t->changed_length = t->changed ? p.now.length : 0;
  }
  arena_free(&arena);
  const bool large = e->status == STATUS_TOO_LARGE, late = e->status == STATUS_DEADLINE;
  if (!large && !late && e->status != STATUS_INVALID_REQUEST) return e->status;
  *e = (struct error){0};
  const int shown = (int)size_min(t->length, 60);
  if (large)
    return error_set(e, STATUS_CONFIG, "\"%.*s\": the normalizer makes more than %zu bytes of it",
                     shown, t->content, p.most);
  return error_set(e, STATUS_CONFIG, "\"%.*s\": the normalizer takes too long%s", shown, t->content,
                   late ? " with the tokens up to this one" : " with it");
}

/* The trie of the tokens that are searched for in original, or in normalized texts; one whose
 * normalized content is empty is never found. */
static enum status make_trie(struct added *a, bool changed, bool searched, struct error *e) {
  struct trie_string *string = malloc((a->count + 1) * sizeof *string);
  size_t count = 0;
  if (!string) return error_no_memory(e);
  for (size_t i = 0; i < a->count && searched; i++) {
    const struct added_token *t = &a->token[i];
    const char *bytes = t->changed ? t->changed : t->content;
    const size_t length = t->changed ? t->changed_length : t->length;
    if (t->normalized != changed || length == 0) continue;
    string[count++] = (struct trie_string){bytes, length, (int32_t)i};
    a->begins[changed][(unsigned char)bytes[0]] = true;
  }
  trie_init(&a->trie[changed], string, count, e);
  free(string);
  return e->status;
}

enum status added_init(struct added *a, const json_t *json, const struct normalizer *n,
                       const struct subword_model *m, bool searched, struct error *e) {
  *a = (struct added){0};
  if (json && !json_is_null(json) && read_tokens(a, json, m, e)) return e->status;
  struct added_patience p = {.patience = {.ask = ask_clock},
                             .ends = clock_now() + CHANGE_MS * (uint64_t)CLOCK_MS};
  for (size_t i = 0; i < a->count && n && e->status == STATUS_OK; i++)
    if (a->token[i].normalized) change(&a->token[i], n, &p.patience, e);
  if (e->status || make_trie(a, false, searched, e)) return e->status;
  return make_trie(a, true, searched, e);
}

void added_done(struct added *a) {
  for (size_t i = 0; i < a->count; i++) {
    free(a->token[i].content);
    free(a->token[i].changed);
  }
  free(a->token);
  free(a->by_id);
  trie_done(&a->trie[0]);
  trie_done(&a->trie[1]);
  *a = (struct added){0};
}

size_t added_bytes(const struct added *a) {
  size_t bytes = a->count * sizeof *a->token + a->ids * sizeof *a->by_id;
  for (size_t i = 0; i < a->count; i++) bytes += a->token[i].length + a->token[i].changed_length;
  return bytes + trie_bytes(&a->trie[0]) + trie_bytes(&a->trie[1]);
}

/* --- searching --- */

/* Whether no word continues at either end of the token. */
static bool is_single(const struct added_search *s) {
  size_t length;
  const bool before =
      s->begin > 0 && unicode_is_word(unicode_read_before(s->text, s->begin, &length));
  return !before &&
         (s->end == s->length || !unicode_is_word(unicode_read(s->text + s->end, &length)));
}

/* Counts bytes that were read: from each place as many as the longest token has. */
static bool is_over(struct added_search *s, size_t steps) {
  enum { STEPS = 1 << 14 };
  s->steps += steps;
  if (s->steps < STEPS) return false;
  s->steps = 0;
  return patience_ends(s->patience, s->e);
}

bool added_next(struct added_search *s) {
  const struct trie *trie = &s->added->trie[s->changed];
  const bool *begins = s->added->begins[s->changed];
  for (size_t length, steps, size; s->at < s->length; s->at++) {
    if (!begins[(unsigned char)s->text[s->at]]) continue;
    const int32_t place =
        trie_longest(trie, TRIE_ROOT, s->text + s->at, s->length - s->at, &length, &steps);
    if (is_over(s, steps)) return false;
    if (place < 0) continue;
    s->token = &s->added->token[place];
    s->begin = s->at;
    s->end = s->at + length;
    s->at += length - 1;
    if (s->begin < s->done || (s->token->single_word && !is_single(s))) continue;
    s->at++;
    /* Blanks next to the token belong to it, except those of the last one. */
    while (s->token->strips[0] && s->begin > s->done &&
           unicode_is_space(unicode_read_before(s->text, s->begin, &size)))
      s->begin -= size;
    while (s->token->strips[1] && s->end < s->length &&
           unicode_is_space(unicode_read(s->text + s->end, &size)))
      s->end += size;
    s->done = s->end;
    return true;
  }
  return false;
}
