/* normalizer_sentence: the normalizer of a sentencepiece model: replaces by its rules the longest
 * text that begins at each place, removes and marks blanks, and adds one. */
#include <stdlib.h>
#include <string.h>

#include "config/document/text.h"
#include "config/tokenizer/model/trie.h"
#include "config/tokenizer/normalizer/charsmap.h"
#include "config/tokenizer/normalizer/normalizer_parts.h"
#include "config/tokenizer/pattern/unicode.h"

struct normalizer_sentence {
  struct charsmap map; /* without bytes: none */
  struct trie user;    /* texts that are left as they are */
  bool has_user;
  bool prefix, suffix; /* a blank is added before or after the text */
  bool first;          /* the blank before: only where the original begins */
  bool removes, escapes;
  bool same[0x80]; /* whether an ASCII character stays as it is if ASCII follows */
};

struct sentence_prefix {
  const char *bytes;
  size_t length;
  size_t used;  /* bytes of the text that became these */
  size_t steps; /* of the searches for it */
};

/* The first part of the text from `at` on, normalized. */
static struct sentence_prefix read_prefix(const struct normalizer_sentence *s,
                                          const struct passage *p, size_t at) {
  const char *text = p->now.bytes + at;
  const size_t left = p->now.length - at;
  size_t found, steps = 0;
  if (s->has_user && trie_longest(&s->user, TRIE_ROOT, text, left, &found, &steps) >= 0)
    return (struct sentence_prefix){text, found, found, steps};
  if (s->map.bytes) {
    const struct charsmap_found rule = charsmap_find(&s->map, text, left, true);
    steps += rule.steps;
    if (rule.bytes) return (struct sentence_prefix){rule.bytes, rule.length, rule.used, steps};
  }
  unicode_read(text, &found);
  return (struct sentence_prefix){text, found, found, steps};
}

static void append_blank(const struct normalizer_sentence *s, struct passage *p, size_t from,
                         size_t to) {
  if (s->escapes)
    passage_append(p, SENTENCEPIECE_BLANK, SENTENCEPIECE_BLANK_SIZE, from, to);
  else
    passage_append(p, " ", 1, from, to);
}

/* Appends a prefix with its blanks marked. */
static void append_prefix(const struct normalizer_sentence *s, struct passage *p,
                          const struct sentence_prefix *x, size_t from) {
  for (size_t at = 0, end; at < x->length; at = end) {
    const char *blank = s->escapes ? memchr(x->bytes + at, ' ', x->length - at) : NULL;
    end = blank ? (size_t)(blank - x->bytes) : x->length;
    passage_append(p, x->bytes + at, end - at, from, from + x->used);
    if (blank) append_blank(s, p, from, from + x->used);
    end += blank != NULL;
  }
}

/* The end of the ASCII from `at` on that stays as it is. The last one may continue with a character
 * that is not. */
static size_t end_same(const struct normalizer_sentence *s, const struct passage_bytes *now,
                       size_t at) {
  size_t end = at;
  while (end < now->length && (unsigned char)now->bytes[end] < sizeof s->same &&
         s->same[(unsigned char)now->bytes[end]])
    end++;
  const bool ascii = end == now->length || (unsigned char)now->bytes[end] < sizeof s->same;
  return ascii || end == at ? end : end - 1;
}

/* Appends all from `at` on, after so many steps. */
static void append_all(const struct normalizer_sentence *s, struct passage *p, size_t at,
                       size_t steps) {
  const struct passage_bytes *now = &p->now;
  bool blank = s->removes; /* whether the text so far ends with a blank, and the next is removed */
  for (size_t end; at < now->length && !passage_is_over(p, at + steps); at = end) {
    end = end_same(s, now, at);
    if (end > at) {
      passage_copy(p, at, end);
      blank = false;
      continue;
    }
    struct sentence_prefix x = read_prefix(s, p, at);
    end = at + x.used;
    steps += x.steps;
    while (blank && x.length > 0 && *x.bytes == ' ') {
      x.bytes++;
      x.length--;
    }
    append_prefix(s, p, &x, at);
    if (x.length > 0) blank = s->removes && x.bytes[x.length - 1] == ' ';
  }
}

static void apply_sentence(const void *settings, struct passage *p) {
  const struct normalizer_sentence *s = settings;
  size_t at = 0, steps = 0, first;
  while (s->removes && at < p->now.length && !passage_is_over(p, at + steps)) {
    const struct sentence_prefix x = read_prefix(s, p, at);
    steps += x.steps;
    if (x.length != 1 || *x.bytes != ' ') break;
    at += x.used;
  }
  if (at < p->now.length) {
    unicode_read(p->now.bytes + at, &first);
    if (s->prefix && (!s->first || passage_is_first(p, 0))) append_blank(s, p, at, at + first);
    append_all(s, p, at, steps);
    const char *blank = s->escapes ? SENTENCEPIECE_BLANK : " ";
    while (s->removes && passage_drop_end(p, blank, strlen(blank))) {
    }
    if (s->suffix) append_blank(s, p, p->now.length, p->now.length);
  }
  passage_commit(p);
}

/* --- making --- */

static void release_sentence(void *settings) {
  struct normalizer_sentence *s = settings;
  if (s) charsmap_done(&s->map);
  if (s) trie_done(&s->user);
  free(s);
}

static enum status copy_map(struct charsmap *map, const struct sentencepiece_text *from,
                            struct error *e) {
  map->bytes = malloc(from->length);
  if (!map->bytes) return error_no_memory(e);
  memcpy(map->bytes, from->bytes, from->length);
  map->size = from->length;
  return charsmap_begin(map, e);
}

static enum status make_user(struct normalizer_sentence *to, const struct sentencepiece *s,
                             struct error *e) {
  struct trie_string *string = malloc(s->count * sizeof *string);
  size_t count = 0;
  if (!string) return error_no_memory(e);
  for (size_t i = 0; i < s->count; i++)
    if (s->piece[i].type == SENTENCEPIECE_USER)
      string[count++] =
          (struct trie_string){s->piece[i].text.bytes, s->piece[i].text.length, (int32_t)i};
  to->has_user = count > 0;
  trie_init(&to->user, string, count, e);
  free(string);
  return e->status;
}

enum status normalizer_add_sentence(struct normalizer *n, const struct sentencepiece *s, bool first,
                                    struct error *e) {
  struct normalizer_sentence *to =
      normalizer_add_step(n, sizeof *to, apply_sentence, release_sentence, e);
  if (!to) return e->status;
  to->prefix = s->prefix && !s->suffix;
  to->suffix = s->prefix && s->suffix;
  to->first = first;
  to->removes = s->removes;
  to->escapes = s->escapes;
  if (s->charsmap.length && copy_map(&to->map, &s->charsmap, e)) return e->status;
  if (make_user(to, s, e)) return e->status;
  for (unsigned c = 0; c < sizeof to->same; c++)
    to->same[c] = !to->map.bytes || charsmap_leaves(&to->map, (unsigned char)c);
  for (size_t i = 0; i < s->count; i++)
    if (s->piece[i].type == SENTENCEPIECE_USER && (unsigned char)*s->piece[i].text.bytes < 0x80)
      to->same[(unsigned char)*s->piece[i].text.bytes] = false;
  to->same[' '] = false;
  return STATUS_OK;
}
