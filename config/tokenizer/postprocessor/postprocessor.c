/* postprocessor: the order of special tokens and texts, for one text and for two. */
#include "config/tokenizer/postprocessor/postprocessor.h"

#include <stdlib.h>

#include "config/document/part.h"
#include "config/document/text.h"

enum { SPECIAL = 2 }; /* in the place of a text */

/* All tokens of a text, 0 or 1, or one special token. */
struct postprocessor_piece {
  unsigned text;
  uint8_t type;
  int32_t id;
};

struct postprocessor {
  struct part_list pieces[2]; /* of postprocessor_piece: for one text, and for two */
  size_t special[2];          /* how many of the pieces are special tokens */
  int64_t last;               /* the largest id of a special token; -1: none */
  bool complete;              /* a type that orders the pieces was read */
  bool trims, leaves_first;
};

/* --- pieces --- */

static void add_piece(struct postprocessor *p, bool pair, struct postprocessor_piece piece,
                      struct error *e) {
  struct postprocessor_piece *to = part_list_add(&p->pieces[pair], sizeof piece, e);
  if (!to) return;
  *to = piece;
  if (piece.text != SPECIAL) return;
  p->special[pair]++;
  if (piece.id > p->last) p->last = piece.id;
}

static void add_text(struct postprocessor *p, bool pair, unsigned text, uint8_t type,
                     struct error *e) {
  add_piece(p, pair, (struct postprocessor_piece){.text = text, .type = type}, e);
}

static void add_special(struct postprocessor *p, bool pair, int32_t id, uint8_t type,
                        struct error *e) {
  add_piece(p, pair, (struct postprocessor_piece){SPECIAL, type, id}, e);
}

/* Two types that order the pieces, one around the other, would add tokens to tokens. */
static bool begin_pieces(struct postprocessor *p, struct error *e) {
  if (p->complete)
    error_set(e, STATUS_CONFIG, "a second one that puts special tokens there is not supported");
  p->complete = true;
  return e->status == STATUS_OK;
}

/* --- types with a fixed order --- */

/* ["[SEP]", 102]: the word is ignored. */
static int32_t read_named(const json_t *json, const char *key, struct error *e) {
  const json_t *value = json_object_get(json, key), *id = json_array_get(value, 1);
  const json_int_t number = json_integer_value(id);
  if (json_array_size(value) != 2 || !json_is_string(json_array_get(value, 0)) ||
      !json_is_integer(id) || number < 0 || number > INT32_MAX)
    member_refuse(json, key, "a list of a token and its id", e);
  return (int32_t)number;
}

/* [CLS] text [SEP], and [CLS] text [SEP] text [SEP]; RoBERTa's has two separators between them. */
static void read_bert(void *to, const json_t *json, struct error *e) {
  struct postprocessor *p = to;
  const int32_t begin = read_named(json, "cls", e), end = read_named(json, "sep", e);
  if (!begin_pieces(p, e)) return;
  for (int pair = 0; pair < 2; pair++) {
    add_special(p, pair, begin, 0, e);
    add_text(p, pair, 0, 0, e);
    add_special(p, pair, end, 0, e);
  }
  add_text(p, true, 1, 1, e);
  add_special(p, true, end, 1, e);
}

static void read_roberta(void *to, const json_t *json, struct error *e) {
  struct postprocessor *p = to;
  const int32_t begin = read_named(json, "cls", e), end = read_named(json, "sep", e);
  p->trims = member_flag(json, "trim_offsets", e);
  p->leaves_first = member_flag(json, "add_prefix_space", e);
  if (!begin_pieces(p, e)) return;
  for (int pair = 0; pair < 2; pair++) {
    add_special(p, pair, begin, 0, e);
    add_text(p, pair, 0, 0, e);
    add_special(p, pair, end, 0, e);
  }
  add_special(p, true, end, 0, e);
  add_text(p, true, 1, 0, e);
  add_special(p, true, end, 0, e);
}

static void read_byte_level(void *to, const json_t *json, struct error *e) {
  struct postprocessor *p = to;
  p->trims = member_flag(json, "trim_offsets", e);
  p->leaves_first = member_flag(json, "add_prefix_space", e);
  if (json_object_get(json, "use_regex")) member_flag(json, "use_regex", e);
}

/* --- templates --- */

/* A special token of a template may be several tokens. */
static void add_tokens(struct postprocessor *p, bool pair, const json_t *tokens, const char *name,
                       uint8_t type, struct error *e) {
  const json_t *one = json_object_get(tokens, name);
  if (!one) {
    error_set(e, STATUS_CONFIG, "\"%.60s\" is not one of special_tokens", name);
    return;
  }
  const json_t *ids = member_list(one, "ids", e), *words = member_list(one, "tokens", e);
  if (json_array_size(ids) != json_array_size(words))
    error_set(e, STATUS_CONFIG, "\"%.60s\": has not as many ids as tokens", name);
  for (size_t i = 0; i < json_array_size(ids) && e->status == STATUS_OK; i++) {
    const json_t *id = json_array_get(ids, i);
    const json_int_t number = json_is_integer(id) ? json_integer_value(id) : -1;
    if (number < 0 || number > INT32_MAX)
      error_set(e, STATUS_CONFIG, "\"%.60s\": ids: needs integers from 0 to %d", name, INT32_MAX);
    add_special(p, pair, (int32_t)number, type, e);
  }
}

/* {"Sequence": {"id": "A", "type_id": 0}} or {"SpecialToken": {"id": "[CLS]", "type_id": 0}} */
static void read_piece(struct postprocessor *p, bool pair, const json_t *piece,
                       const json_t *tokens, struct error *e) {
  static const char *const letters[] = {"A", "B", NULL};
  const json_t *text = json_object_get(piece, "Sequence"),
               *special = json_object_get(piece, "SpecialToken"), *said = text ? text : special;
  if (!json_is_object(said) || json_object_size(piece) != 1) {
    error_set(e, STATUS_CONFIG, "needs {\"Sequence\": ...} or {\"SpecialToken\": ...}");
    return;
  }
  const size_t type = member_count(said, "type_id", 0, UINT8_MAX, e);
  if (special) {
    const char *name = member_string(said, "id", e).bytes;
    if (e->status == STATUS_OK) add_tokens(p, pair, tokens, name, (uint8_t)type, e);
    return;
  }
  const size_t which = member_word(said, "id", letters, e);
  if (which == 1 && !pair) error_set(e, STATUS_CONFIG, "id: is B, but there is no second text");
  add_text(p, pair, (unsigned)which, (uint8_t)type, e);
}

static void read_template(void *to, const json_t *json, struct error *e) {
  static const char *const keys[] = {"single", "pair"};
  struct postprocessor *p = to;
  const json_t *tokens = json_object_get(json, "special_tokens");
  if (!json_is_object(tokens)) member_refuse(json, "special_tokens", "an object", e);
  if (!begin_pieces(p, e)) return;
  for (int pair = 0; pair < 2; pair++) {
    const json_t *list = member_list(json, keys[pair], e);
    for (size_t i = 0; i < json_array_size(list) && e->status == STATUS_OK; i++) {
      read_piece(p, pair, json_array_get(list, i), tokens, e);
      if (e->status == STATUS_CONFIG) text_before(e, "%s, %zu: ", keys[pair], i);
    }
  }
}

/* --- all types --- */

static const struct part_kind kinds[] = {
    {{"BertProcessing", "sep cls "}, read_bert},
    {{"ByteLevel", "add_prefix_space trim_offsets use_regex "}, read_byte_level},
    {{"RobertaProcessing", "sep cls trim_offsets add_prefix_space "}, read_roberta},
    {{"Sequence", "processors "}, NULL},
    {{"TemplateProcessing", "single pair special_tokens "}, read_template},
};
static const struct part_kinds processors = {kinds, sizeof kinds / sizeof *kinds, "processors",
                                             false};

struct postprocessor *postprocessor_new(const json_t *json, struct error *e) {
  struct postprocessor *p = calloc(1, sizeof *p);
  if (!p) {
    error_no_memory(e);
    return NULL;
  }
  p->last = -1;
  if (json && !json_is_null(json)) part_read(&processors, json, p, e);
  if (!p->complete && e->status == STATUS_OK) {
    add_text(p, false, 0, 0, e);
    add_text(p, true, 0, 0, e);
    add_text(p, true, 1, 1, e);
  }
  if (e->status == STATUS_OK) return p;
  if (e->status == STATUS_CONFIG) text_plain(e);
  postprocessor_free(p);
  return NULL;
}

void postprocessor_free(struct postprocessor *p) {
  if (!p) return;
  free(p->pieces[0].item);
  free(p->pieces[1].item);
  free(p);
}

/* --- use --- */

size_t postprocessor_count(const struct postprocessor *p, bool pair) { return p->special[pair]; }

int64_t postprocessor_last(const struct postprocessor *p) { return p->last; }

bool postprocessor_trims(const struct postprocessor *p) { return p->trims; }

bool postprocessor_leaves_first(const struct postprocessor *p) { return p->leaves_first; }

enum status postprocessor_apply(const struct postprocessor *p, const struct tokens *first,
                                const struct tokens *second, bool special, struct tokens *out) {
  const struct part_list *pieces = &p->pieces[second != NULL];
  uint8_t text = 0;
  for (size_t i = 0; i < pieces->count; i++) {
    const struct postprocessor_piece *piece = (struct postprocessor_piece *)pieces->item + i;
    if (piece->text != SPECIAL) {
      text = (uint8_t)piece->text;
      const struct tokens *from = text ? second : first;
      for (size_t j = 0; j < from->count; j++) {
        struct token t = from->token[j];
        t.text = text;
        t.type = piece->type;
        tokens_add(out, t);
      }
    } else if (special) {
      tokens_add(
          out, (struct token){.id = piece->id, .text = text, .type = piece->type, .special = true});
    }
  }
  return out->e->status;
}
