/* tokenizer_sentence: a row of sentence_family.h becomes a list of added tokens, a template and an
 * id for each piece. */
#include "config/tokenizer/tokenizer_sentence.h"

#include <stdlib.h>
#include <string.h>

#include "config/document/member.h"
#include "config/document/text.h"
#include "config/family/sentence_family.h"
#include "core/base/size.h"

static const char *const roles[ROLES] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                         "pad_token", "cls_token", "mask_token"};

static const char *text_of(const json_t *json, const char *key) {
  return json_string_value(json_object_get(json, key));
}

/* NULL: the files name no family, or `e` says that it is none of these. */
static const struct sentence_family *find_family(const struct tokenizer_beside *b,
                                                 struct error *e) {
  const char *class = text_of(b->tokenizer, "tokenizer_class"),
             *type = text_of(b->config, "model_type");
  if (!class) class = text_of(b->config, "tokenizer_class");
  const struct sentence_family *f = sentence_family_find(class, type);
  if (f || (!class && !type)) return f;
  error_set(e, STATUS_CONFIG,
            "%s \"%.60s\" is not supported with a sentencepiece model alone; tokenizer.json is "
            "needed",
            class ? "tokenizer_class" : "model_type", class ? class : type);
  return NULL;
}

/* --- added tokens --- */

/* A tokenizer that is being made. */
struct sentence_making {
  const struct sentence_family *f;
  struct sentencepiece *s;
  const struct tokenizer_beside *b;
  int32_t *id;              /* [s->count] */
  int64_t next;             /* the least id above all others */
  json_t *added;            /* list */
  json_t *known;            /* {content: id} of all added tokens */
  const char *token[ROLES]; /* NULL: none */
  char language[32];        /* the token of the source language */
  struct error *e;
};

static bool is_text(const struct sentencepiece_text *t, const char *text, size_t length) {
  return t->length == length && memcmp(t->bytes, text, length) == 0;
}

/* The place of a token before the pieces; -1: none. */
static int find_before(const struct sentence_family *f, const char *text, size_t length) {
  for (int i = 0; i < BEFORE_MOST && f->before[i]; i++)
    if (strlen(f->before[i]) == length && memcmp(f->before[i], text, length) == 0) return i;
  return -1;
}

/* The id of a piece in vocab.json; -1: none. */
static int64_t find_listed(const struct sentence_making *g, const char *text, size_t length) {
  const json_t *id = json_object_getn(g->b->vocabulary, text, length);
  return json_is_integer(id) ? json_integer_value(id) : -1;
}

/* Numbers pieces as vocab.json does; one that it lacks has the id of the unknown token. */
static void number_listed(struct sentence_making *g) {
  const char *unknown = g->token[UNK];
  const int64_t none = unknown ? find_listed(g, unknown, strlen(unknown)) : -1;
  const char *piece;
  json_t *id;
  if (!json_is_object(g->b->vocabulary))
    error_set(g->e, STATUS_CONFIG, "vocab.json: is needed beside a sentencepiece model of %.*s",
              (int)strcspn(g->f->classes + 1, " "), g->f->classes + 1);
  else if (none < 0)
    error_set(g->e, STATUS_CONFIG, "vocab.json: has no \"%.60s\"", unknown ? unknown : "<unk>");
  json_object_foreach((json_t *)g->b->vocabulary, piece, id) {
    if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > INT32_MAX)
      error_set(g->e, STATUS_CONFIG, "vocab.json: \"%.60s\": needs an id", piece);
    else if (json_integer_value(id) >= g->next)
      g->next = json_integer_value(id) + 1;
  }
  for (size_t i = 0; i < g->s->count && !g->e->status; i++) {
    const struct sentencepiece_text *t = &g->s->piece[i].text;
    const int64_t found = i == g->s->unknown ? none : find_listed(g, t->bytes, t->length);
    g->id[i] = (int32_t)(found < 0 ? none : found);
  }
}

static void number_pieces(struct sentence_making *g) {
  if (g->f->listed) {
    number_listed(g);
    return;
  }
  for (size_t i = 0; i < g->s->count; i++) {
    const struct sentencepiece_text *t = &g->s->piece[i].text;
    const struct sentencepiece_text unknown = {"<unk>", 5};
    const struct sentencepiece_text *name = i == g->s->unknown && g->f->offset ? &unknown : t;
    const int before = find_before(g->f, name->bytes, name->length);
    g->id[i] = before >= 0 ? before : (int32_t)i + g->f->offset;
    if (g->id[i] >= g->next) g->next = g->id[i] + 1;
  }
}

/* The id of a token that no file gives one: that of a piece, or the next one. */
static int64_t find_id(const struct sentence_making *g, const char *text) {
  const size_t length = strlen(text);
  const int before = find_before(g->f, text, length);
  if (before >= 0) return before;
  if (g->f->listed) {
    const int64_t id = find_listed(g, text, length);
    return id >= 0 ? id : g->next;
  }
  for (size_t i = 0; i < g->s->count; i++)
    if (is_text(&g->s->piece[i].text, text, length)) return g->id[i];
  return g->next;
}

/* Adds a token that is not known yet. `how` is an object with more about it, or anything else. A
 * negative id: find_id's. */
static void add_token(struct sentence_making *g, const char *text, int64_t id, const json_t *how,
                      bool strips, bool special) {
  if (g->e->status || !text || !*text || json_object_get(g->known, text)) return;
  const json_t *left = json_object_get(how, "lstrip");
  if (id < 0) id = find_id(g, text);
  if (id >= g->next) g->next = id + 1;
  json_t *one = json_pack("{s:I, s:s, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)id, "content",
                          text, "lstrip", left ? json_is_true(left) : strips, "rstrip",
                          json_is_true(json_object_get(how, "rstrip")), "single_word",
                          json_is_true(json_object_get(how, "single_word")), "normalized", 0,
                          "special", special);
  if (!one || json_array_append_new(g->added, one) ||
      json_object_set_new(g->known, text, json_integer((json_int_t)id)))
    error_no_memory(g->e);
}

/* A token is a text, or an object with its text. */
static const char *content_of(const json_t *token) {
  return json_is_object(token) ? text_of(token, "content") : json_string_value(token);
}

/* The value that the files give a token; NULL: none. */
static const json_t *find_said(const struct sentence_making *g, const char *key) {
  const json_t *listed = json_object_get(g->b->tokenizer, "added_tokens_decoder"),
               *mapped = json_object_get(g->b->special, key);
  return mapped && !listed ? mapped : json_object_get(g->b->tokenizer, key);
}

static void find_roles(struct sentence_making *g) {
  static const char more[] = "additional_special_tokens";
  enum { MORE_MOST = 4096 }; /* each of them is compared with all pieces */
  if (json_array_size(find_said(g, more)) > MORE_MOST)
    error_set(g->e, STATUS_CONFIG, "%s: more than %d", more, MORE_MOST);
  for (size_t i = 0; i < ROLES; i++) {
    const json_t *said = find_said(g, roles[i]);
    g->token[i] = said ? content_of(said) : g->f->role[i];
    if (said && !json_is_null(said) && (!g->token[i] || !*g->token[i]))
      error_set(g->e, STATUS_CONFIG, "%s: needs a token", roles[i]);
  }
}

static bool is_role(const struct sentence_making *g, const char *text) {
  bool is = false;
  for (size_t i = 0; i < ROLES && text; i++) is = is || (g->token[i] && !strcmp(g->token[i], text));
  const json_t *more = find_said(g, "additional_special_tokens"), *one;
  size_t i;
  json_array_foreach((json_t *)more, i, one) {
    is = is || (text && content_of(one) && strcmp(content_of(one), text) == 0);
  }
  return is;
}

/* Adds the tokens whose ids the files say: {"0": {"content": ...}, ...} and {"<mask>": 0, ...}. */
static void add_listed(struct sentence_making *g) {
  json_t *listed = json_object_get(g->b->tokenizer, "added_tokens_decoder"), *one;
  const char *key;
  uint64_t id;
  json_object_foreach(listed, key, one) {
    if (!text_decimal(key, &id) || id > INT32_MAX || !text_of(one, "content"))
      error_set(g->e, STATUS_CONFIG, "added_tokens_decoder: \"%.60s\": needs an id and a content",
                key);
    else
      add_token(g, text_of(one, "content"), (int64_t)id, one, false,
                json_is_true(json_object_get(one, "special")));
  }
  json_object_foreach((json_t *)g->b->added, key, one) {
    if (g->e->status) return;
    const double number = json_number_value(one);
    if (!json_is_number(one) || !(number >= 0 && number <= INT32_MAX))
      error_set(g->e, STATUS_CONFIG, "added_tokens.json: \"%.60s\": needs an id", key);
    else
      add_token(g, key, (int64_t)number, NULL, false, is_role(g, key));
  }
}

/* Adds the languages of a family. The one of sources is that of src_lang. */
static void add_languages(struct sentence_making *g) {
  const char *around = g->f->around, *list = g->f->languages, *next;
  const char *said = text_of(g->b->tokenizer, "src_lang"), *kind;
  kind = text_of(g->b->tokenizer, "language_codes");
  if (g->f->other && kind && strcmp(kind, "wmt21") == 0) list = g->f->other;
  int64_t id = g->f->listed ? (int64_t)json_object_size(g->b->vocabulary)
                            : (int64_t)g->s->count + g->f->offset;
  for (const char *at = list; at && *at; at = next + 1, id++) {
    char token[sizeof g->language];
    next = strchr(at, ' ');
    snprintf(token, sizeof token, "%s%.*s%s", around, (int)(next - at), at, around);
    add_token(g, token, id, NULL, false, true);
  }
  if (!list) return;
  snprintf(g->language, sizeof g->language, "%s%.20s%s", around, said ? said : g->f->language,
           around);
  if (!json_object_get(g->known, g->language))
    error_set(g->e, STATUS_CONFIG, "src_lang: \"%.20s\" is no language of this tokenizer",
              said ? said : g->f->language);
}

/* Adds the codes of target languages among the pieces of OPUS-MT, such as >>fra<<. */
static void add_codes(struct sentence_making *g) {
  const char *piece;
  json_t *id;
  json_object_foreach((json_t *)g->b->vocabulary, piece, id) {
    const size_t length = strlen(piece);
    if (length > 4 && strncmp(piece, ">>", 2) == 0 && text_ends_with(piece, "<<"))
      add_token(g, piece, json_integer_value(id), NULL, false, false);
  }
}

/* Adds the tokens of the roles, those before the pieces, and languages. */
static void add_roles(struct sentence_making *g) {
  for (int i = 0; i < BEFORE_MOST && g->f->before[i]; i++)
    add_token(g, g->f->before[i], i, NULL, false, true);
  add_languages(g);
  if (g->f->listed) add_codes(g);
  for (size_t i = 0; i < ROLES; i++)
    add_token(g, g->token[i], -1, find_said(g, roles[i]), i == MASK && g->f->strips, true);
}

/* Adds T5's sentinels, whose ids descend, and what else the files name. */
static void add_more(struct sentence_making *g) {
  const json_t *said = json_object_get(g->b->tokenizer, "extra_ids"), *one,
               *more = find_said(g, "additional_special_tokens");
  enum { EXTRA_MOST = 10000 };
  const double number = json_number_value(said);
  if (said && !(json_is_number(said) && number >= 0 && number <= EXTRA_MOST))
    error_set(g->e, STATUS_CONFIG, "extra_ids: needs a number from 0 to %d", EXTRA_MOST);
  const int extra = said && g->f->extra ? (int)number : g->f->extra;
  const int64_t end = (int64_t)g->s->count + g->f->offset + extra;
  for (int i = extra - 1; i >= 0; i--) {
    char text[32];
    snprintf(text, sizeof text, "<extra_id_%d>", i);
    const int64_t found = find_id(g, text);
    add_token(g, text, found < g->next ? found : end - 1 - i, NULL, false, true);
  }
  size_t i;
  json_array_foreach((json_t *)more, i, one) {
    add_token(g, content_of(one), -1, one, false, true);
  }
}

/* --- templates --- */

/* The role of a letter of a template; ROLES: none, or the files leave it out. */
static enum sentence_role role_of(const struct sentence_making *g, char letter) {
  const json_t *t = g->b->tokenizer;
  switch (letter) {
  case 'C':
    return CLS;
  case 'S':
    return SEP;
  case 'E':
    return EOS;
  case 'b':
    return member_says(t, "add_bos_token", true) ? BOS : ROLES;
  case 'e':
    return member_says(t, "add_eos_token", false) ? EOS : ROLES;
  default:
    return ROLES;
  }
}

/* The list of a template; the tokens in it are added to `tokens`. */
static json_t *make_list(struct sentence_making *g, const char *template, json_t *tokens) {
  json_t *list = json_array();
  int type = 0;
  for (const char *at = template; *at && !g->e->status; at++) {
    const bool text = *at == '1' || *at == '2';
    const enum sentence_role role = role_of(g, *at);
    /* The tokens before a text have its type, if they are its own. */
    if (g->f->typed && (*at == '2' || (*at == 'b' && at > template))) type = 1;
    if (!text && role == ROLES && *at != 'L') continue;
    const char *name = text ? *at == '1' ? "A" : "B" : *at == 'L' ? g->language : g->token[role];
    if (!name) {
      error_set(g->e, STATUS_CONFIG, "%s: is needed around texts", roles[role]);
      break;
    }
    json_t *one = json_pack("{s:{s:s, s:i}}", text ? "Sequence" : "SpecialToken", "id", name,
                            "type_id", type);
    const json_t *id = text ? NULL : json_object_get(g->known, name);
    if (!list || !one || json_array_append_new(list, one) ||
        (!text && json_object_set_new(tokens, name,
                                      json_pack("{s:s, s:[I], s:[s]}", "id", name, "ids",
                                                json_integer_value(id), "tokens", name))))
      error_no_memory(g->e);
  }
  return list;
}

static json_t *make_template(struct sentence_making *g) {
  json_t *tokens = json_object();
  const bool behind = g->f->languages && member_says(g->b->tokenizer, "legacy_behaviour", false);
  json_t *single = make_list(g, behind ? "1EL" : g->f->single, tokens),
         *pair = make_list(g, behind ? "12EL" : g->f->pair, tokens);
  return json_pack("{s:s, s:o, s:o, s:o}", "type", "TemplateProcessing", "single", single, "pair",
                   pair, "special_tokens", tokens);
}

/* --- texts --- */

static void append_step(json_t *steps, json_t *step, struct error *e) {
  if (!step || json_array_append_new(steps, step)) error_no_memory(e);
}

/* The steps before the model's normalizer, as the published converters of these families have them.
 */
static json_t *make_normalizer(const struct sentence_family *f, const struct tokenizer_beside *b,
                               struct error *e) {
  static const char *const quotes[] = {"``", "''"};
  json_t *steps = json_array();
  if (!steps) error_no_memory(e);
  if (b->lower) append_step(steps, json_pack("{s:s}", "type", "Lowercase"), e);
  for (size_t i = 0; i < 2 && f && f->plain; i++)
    append_step(steps,
                json_pack("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern", "String", quotes[i],
                          "content", "\""),
                e);
  if (f && f->plain && !member_says(b->tokenizer, "keep_accents", false)) {
    append_step(steps, json_pack("{s:s}", "type", "NFKD"), e);
    append_step(steps, json_pack("{s:s}", "type", "StripAccents"), e);
  }
  if (f && member_says(b->tokenizer, "do_lower_case", f->lowers))
    append_step(steps, json_pack("{s:s}", "type", "Lowercase"), e);
  return json_pack("{s:s, s:o}", "type", "Sequence", "normalizers", steps);
}

/* ALBERT does not use pieces that end in a digit and a comma if there is another way. */
static void avoid_commas(struct sentencepiece *s) {
  enum { PENALTY = 100 };
  for (size_t i = 0; i < s->count; i++) {
    const struct sentencepiece_text *t = &s->piece[i].text;
    const char *end = t->bytes + t->length;
    if (t->length > 1 && end[-1] == ',' && end[-2] >= '0' && end[-2] <= '9')
      s->piece[i].score -= PENALTY;
  }
}

/* --- the tokenizer --- */

/* The control symbols of a model without a family: special, and found in no text. */
static json_t *list_control(const struct sentencepiece *s, struct error *e) {
  json_t *list = json_array();
  for (size_t i = 0; i < s->count; i++) {
    const struct sentencepiece_text *t = &s->piece[i].text;
    if (s->piece[i].type != SENTENCEPIECE_CONTROL) continue;
    json_t *text = json_stringn(t->bytes, t->length);
    json_t *one = json_pack("{s:I, s:o, s:b}", "id", (json_int_t)i, "content", text, "special", 1);
    if (!list || !one || json_array_append_new(list, one)) error_no_memory(e);
  }
  return list;
}

static struct tokenizer *make(struct tokenizer_sentence *to, json_t *normalizer, json_t *template,
                              json_t *added, struct error *e) {
  json_t *json = json_pack("{s:o, s:o, s:o}", "normalizer", normalizer, "post_processor", template,
                           "added_tokens", added);
  if (!json) error_no_memory(e);
  to->json = json;
  struct tokenizer *t = e->status ? NULL : tokenizer_new_sentence(to, e);
  json_decref(json);
  return t;
}

static struct tokenizer *make_family(struct sentence_making *g) {
  struct tokenizer_sentence to = {.model = g->s, .id = g->id, .searched = true};
  const json_t *t = g->b->tokenizer;
  if (g->f->listed) {
    to.vocabulary = g->b->vocabulary;
    to.target = g->b->target;
  }
  if (member_says(t, "separate_vocabs", false))
    error_set(g->e, STATUS_CONFIG, "tokenizer_config.json: separate_vocabs: true is not supported");
  if (member_says(t, "split_by_punct", false))
    error_set(g->e, STATUS_CONFIG, "split_by_punct: true is not supported");
  find_roles(g);
  number_pieces(g);
  add_listed(g);
  add_roles(g);
  add_more(g);
  if (g->f->plain) avoid_commas(g->s);
  if (!member_says(t, "add_prefix_space", true)) g->s->prefix = false;
  to.first = !member_says(t, "legacy", true);
  return make(&to, make_normalizer(g->f, g->b, g->e), make_template(g), json_incref(g->added),
              g->e);
}

struct tokenizer *tokenizer_of_family(struct sentencepiece *model,
                                      const struct tokenizer_beside *beside, struct error *e) {
  const struct sentence_family *f = find_family(beside, e);
  if (e->status) return NULL;
  if (!f) {
    struct tokenizer_sentence to = {.model = model};
    return make(&to, make_normalizer(NULL, beside, e), json_null(), list_control(model, e), e);
  }
  struct sentence_making g = {.f = f,
                              .s = model,
                              .b = beside,
                              .id = calloc(model->count, sizeof *g.id),
                              .added = json_array(),
                              .known = json_object(),
                              .e = e};
  if (!g.id || !g.added || !g.known) error_no_memory(e);
  struct tokenizer *t = e->status ? NULL : make_family(&g);
  json_decref(g.added);
  json_decref(g.known);
  free(g.id);
  return t;
}
