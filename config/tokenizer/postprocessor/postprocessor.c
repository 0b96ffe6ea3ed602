/* postprocessor: what stands around one text, and around two. */
#include "config/tokenizer/postprocessor/postprocessor.h"

#include <stdlib.h>

#include "config/document/member.h"
#include "config/document/text.h"

enum { SPECIAL = 2 }; /* as a text */

/* All tokens of a text, 0 or 1, or one special token. */
struct postprocessor_piece {
  unsigned text;
  uint8_t type;
  int32_t id;
};

struct postprocessor_order {
  struct postprocessor_piece *piece;
  size_t count, room;
  size_t special; /* of the pieces */
};

struct postprocessor {
  struct postprocessor_order of[2]; /* one text, and two */
  int64_t last;
  bool framed; /* a type that puts tokens there was read */
  bool trims, leaves_first;
};

/* --- pieces --- */

static void add_piece(struct postprocessor *f, bool pair, struct postprocessor_piece piece,
                      struct error *e) {
  struct postprocessor_order *o = &f->of[pair];
  if (o->count == o->room) {
    const size_t room = 2 * o->room + 4;
    struct postprocessor_piece *moved = realloc(o->piece, room * sizeof *moved);
    if (!moved) {
      error_no_memory(e);
      return;
    }
    o->piece = moved;
    o->room = room;
  }
  o->piece[o->count++] = piece;
  if (piece.text != SPECIAL) return;
  o->special++;
  if (piece.id > f->last) f->last = piece.id;
}

static void add_text(struct postprocessor *f, bool pair, unsigned text, uint8_t type,
                     struct error *e) {
  add_piece(f, pair, (struct postprocessor_piece){.text = text, .type = type}, e);
}

static void add_special(struct postprocessor *f, bool pair, int32_t id, uint8_t type,
                        struct error *e) {
  add_piece(f, pair, (struct postprocessor_piece){SPECIAL, type, id}, e);
}

/* Two of these, one around the other, would put tokens around tokens. */
static bool begin_framing(struct postprocessor *f, struct error *e) {
  if (f->framed)
    error_set(e, STATUS_CONFIG, "a second one that puts special tokens there is not supported");
  f->framed = true;
  return e->status == STATUS_OK;
}

/* --- types with fixed places --- */

/* ["[SEP]", 102]: the word is not looked at. */
static int32_t read_named(const json_t *json, const char *key, struct error *e) {
  const json_t *value = json_object_get(json, key), *id = json_array_get(value, 1);
  const json_int_t number = json_integer_value(id);
  if (json_array_size(value) != 2 || !json_is_string(json_array_get(value, 0)) ||
      !json_is_integer(id) || number < 0 || number > INT32_MAX)
    member_refuse(json, key, "a list of a token and its id", e);
  return (int32_t)number;
}

static void read_bert(struct postprocessor *f, const json_t *json, struct error *e) {
  const int32_t begin = read_named(json, "cls", e), end = read_named(json, "sep", e);
  if (!begin_framing(f, e)) return;
  for (int pair = 0; pair < 2; pair++) {
    add_special(f, pair, begin, 0, e);
    add_text(f, pair, 0, 0, e);
    add_special(f, pair, end, 0, e);
  }
  add_text(f, true, 1, 1, e);
  add_special(f, true, end, 1, e);
}

static void read_roberta(struct postprocessor *f, const json_t *json, struct error *e) {
  const int32_t begin = read_named(json, "cls", e), end = read_named(json, "sep", e);
  f->trims = member_flag(json, "trim_offsets", e);
  f->leaves_first = member_flag(json, "add_prefix_space", e);
  if (!begin_framing(f, e)) return;
  for (int pair = 0; pair < 2; pair++) {
    add_special(f, pair, begin, 0, e);
    add_text(f, pair, 0, 0, e);
    add_special(f, pair, end, 0, e);
  }
  add_special(f, true, end, 0, e);
  add_text(f, true, 1, 0, e);
  add_special(f, true, end, 0, e);
}

static void read_byte_level(struct postprocessor *f, const json_t *json, struct error *e) {
  f->trims = member_flag(json, "trim_offsets", e);
  f->leaves_first = member_flag(json, "add_prefix_space", e);
  if (json_object_get(json, "use_regex")) member_flag(json, "use_regex", e);
}

/* --- templates --- */

/* A token of a template may be several. */
static void add_tokens(struct postprocessor *f, bool pair, const json_t *tokens, const char *name,
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
    add_special(f, pair, (int32_t)number, type, e);
  }
}

/* {"Sequence": {"id": "A", "type_id": 0}} or {"SpecialToken": {"id": "[CLS]", "type_id": 0}} */
static void read_piece(struct postprocessor *f, bool pair, const json_t *piece,
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
    if (e->status == STATUS_OK) add_tokens(f, pair, tokens, name, (uint8_t)type, e);
    return;
  }
  const size_t which = member_word(said, "id", letters, e);
  if (which == 1 && !pair) error_set(e, STATUS_CONFIG, "id: is B, but there is no second text");
  add_text(f, pair, (unsigned)which, (uint8_t)type, e);
}

static void read_template(struct postprocessor *f, const json_t *json, struct error *e) {
  static const char *const keys[] = {"single", "pair"};
  const json_t *tokens = json_object_get(json, "special_tokens");
  if (!json_is_object(tokens)) member_refuse(json, "special_tokens", "an object", e);
  if (!begin_framing(f, e)) return;
  for (int pair = 0; pair < 2; pair++) {
    const json_t *list = member_list(json, keys[pair], e);
    for (size_t i = 0; i < json_array_size(list) && e->status == STATUS_OK; i++) {
      read_piece(f, pair, json_array_get(list, i), tokens, e);
      if (e->status == STATUS_CONFIG) text_before(e, "%s, %zu: ", keys[pair], i);
    }
  }
}

/* --- types --- */

enum postprocessor_type {
  TYPE_BERT,
  TYPE_BYTE_LEVEL,
  TYPE_ROBERTA,
  TYPE_SEQUENCE,
  TYPE_TEMPLATE,
  TYPES
};

static const struct member_type types[TYPES] = {
    [TYPE_BERT] = {"BertProcessing", "sep cls "},
    [TYPE_BYTE_LEVEL] = {"ByteLevel", "add_prefix_space trim_offsets use_regex "},
    [TYPE_ROBERTA] = {"RobertaProcessing", "sep cls trim_offsets add_prefix_space "},
    [TYPE_SEQUENCE] = {"Sequence", "processors "},
    [TYPE_TEMPLATE] = {"TemplateProcessing", "single pair special_tokens "},
};

enum { DEEPEST = 32 }; /* sequences in one another */

static void read_part(struct postprocessor *f, const json_t *json, size_t depth, struct error *e);

static void read_sequence(struct postprocessor *f, const json_t *json, size_t depth,
                          struct error *e) {
  const json_t *list = member_list(json, "processors", e);
  if (depth == DEEPEST)
    error_set(e, STATUS_CONFIG, "more than %d sequences in one another", DEEPEST);
  for (size_t i = 0; i < json_array_size(list) && e->status == STATUS_OK; i++) {
    read_part(f, json_array_get(list, i), depth + 1, e);
    if (e->status == STATUS_CONFIG) text_before(e, "processors, %zu: ", i);
  }
}

static void read_part(struct postprocessor *f, const json_t *json, size_t depth, struct error *e) {
  const enum postprocessor_type type = (enum postprocessor_type)member_type(json, types, TYPES, e);
  if (e->status) return;
  switch (type) {
  case TYPE_BERT:
    read_bert(f, json, e);
    break;
  case TYPE_BYTE_LEVEL:
    read_byte_level(f, json, e);
    break;
  case TYPE_ROBERTA:
    read_roberta(f, json, e);
    break;
  case TYPE_SEQUENCE:
    read_sequence(f, json, depth, e);
    break;
  case TYPE_TEMPLATE:
    read_template(f, json, e);
    break;
  case TYPES:
    break;
  }
  if (e->status == STATUS_CONFIG) text_before(e, "%s: ", types[type].name);
}

/* --- the whole --- */

static void read_all(struct postprocessor *f, const json_t *json, struct error *e) {
  if (json && !json_is_null(json)) read_part(f, json, 0, e);
  if (f->framed || e->status) return;
  add_text(f, false, 0, 0, e);
  add_text(f, true, 0, 0, e);
  add_text(f, true, 1, 1, e);
}

struct postprocessor *postprocessor_new(const json_t *json, struct error *e) {
  struct postprocessor *f = calloc(1, sizeof *f);
  if (!f) {
    error_no_memory(e);
    return NULL;
  }
  f->last = -1;
  read_all(f, json, e);
  if (e->status == STATUS_OK) return f;
  if (e->status == STATUS_CONFIG) text_plain(e);
  postprocessor_free(f);
  return NULL;
}

void postprocessor_free(struct postprocessor *f) {
  if (!f) return;
  free(f->of[0].piece);
  free(f->of[1].piece);
  free(f);
}

size_t postprocessor_count(const struct postprocessor *f, bool pair) { return f->of[pair].special; }

int64_t postprocessor_last(const struct postprocessor *f) { return f->last; }

bool postprocessor_trims(const struct postprocessor *f) { return f->trims; }

bool postprocessor_leaves_first(const struct postprocessor *f) { return f->leaves_first; }

static void append_text(const struct tokens *from, const struct postprocessor_piece *piece,
                        struct tokens *out) {
  for (size_t i = 0; i < from->count; i++) {
    struct token t = from->token[i];
    t.text = (uint8_t)piece->text;
    t.type = piece->type;
    tokens_add(out, t);
  }
}

enum status postprocessor_apply(const struct postprocessor *f, const struct tokens *first,
                                const struct tokens *second, bool special, struct tokens *out) {
  const struct postprocessor_order *o = &f->of[second != NULL];
  uint8_t text = 0;
  for (size_t i = 0; i < o->count; i++) {
    const struct postprocessor_piece *piece = &o->piece[i];
    if (piece->text != SPECIAL) {
      text = (uint8_t)piece->text;
      append_text(text ? second : first, piece, out);
    } else if (special) {
      tokens_add(
          out, (struct token){.id = piece->id, .text = text, .type = piece->type, .special = true});
    }
  }
  return out->e->status;
}
