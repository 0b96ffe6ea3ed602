/* stack_answer_sparse: the weights of tokens of each item. How many there are is known when they
 * are computed: a response has room for those of all tokens. */
#include "server/model/answer/stack_answer_sparse.h"

#include "core/base/size.h"
#include "server/model/answer/stack_token_json.h"

static const char INDICES[] = "{\"indices\":[", VALUES[] = "],\"values\":[",
                  STRINGS[] = "],\"strings\":[", INDEX[] = "{\"index\":", VALUE[] = ",\"value\":";

enum {
  AROUND = sizeof INDICES + sizeof VALUES + sizeof STRINGS + sizeof "]}",
  DIGITS = sizeof "2147483648,", /* of an index */
  ENTRY = sizeof INDEX + sizeof VALUE + sizeof "},"
};

/* The weights of an item. */
struct token_weights {
  const int32_t *token;
  const float *weight;
  size_t count;
};

static struct token_weights weights_of(const struct answer_rows *rows, size_t item) {
  const struct stack_request *r = rows->section->data;
  const struct stack_weights_of_tokens *s = &r->main.run->sparse;
  const size_t at = s->at[item];
  return (struct token_weights){s->token + at, s->weight + at, s->count[item]};
}

/* Do rows weigh their own tokens? */
static bool stack_weighs_rows(const struct stack_request *r) {
  return r->main.form->sparse.row.weight != NULL;
}

static bool has_strings(const struct stack_request *r) {
  return r->tells_tokens && r->main_tokenizer;
}

static char *write_item(const struct stack_request *r, const struct token_weights *w, char *out) {
  out = answer_write_text(out, INDICES);
  for (size_t i = 0; i < w->count; i++) {
    if (i > 0) *out++ = ',';
    out = number_write_integer(out, w->token[i]);
  }
  out = answer_write_text(out, VALUES);
  for (size_t i = 0; i < w->count; i++) {
    if (i > 0) *out++ = ',';
    out = number_write(out, w->weight[i]);
  }
  if (has_strings(r)) out = answer_write_text(out, STRINGS);
  for (size_t i = 0; has_strings(r) && i < w->count; i++) {
    if (i > 0) *out++ = ',';
    out = stack_write_piece(out, r->main_tokenizer, w->token[i]);
  }
  *out++ = ']';
  *out++ = '}';
  return out;
}

static char *write_items(const struct answer_rows *rows, char *out) {
  for (size_t i = 0; i < rows->count; i++) {
    const struct token_weights w = weights_of(rows, rows->first + i);
    if (i > 0) *out++ = ',';
    out = write_item(rows->section->data, &w, out);
  }
  return out;
}

static char *write_lists(const struct answer_rows *rows, char *out) {
  for (size_t i = 0; i < rows->count; i++) {
    const struct token_weights w = weights_of(rows, rows->first + i);
    if (i > 0) *out++ = ',';
    *out++ = '[';
    for (size_t k = 0; k < w.count; k++) {
      if (k > 0) *out++ = ',';
      out = answer_write_text(out, INDEX);
      out = number_write_integer(out, w.token[k]);
      out = answer_write_text(out, VALUE);
      out = number_write(out, w.weight[k]);
      *out++ = '}';
    }
    *out++ = ']';
  }
  return out;
}

/* The most weights that an item may have: of all tokens, or of its own. */
static const size_t *most_of(const struct stack_request *r) {
  return stack_weighs_rows(r) ? &r->main.widest : &r->main.form->embedding.tokens;
}

/* A section with an element for each item, of at most `room` bytes beside the numbers. */
static struct answer_section make(const struct stack_request *r, size_t room, bool objects) {
  static const size_t zero = 0;
  const size_t *most = most_of(r);
  return (struct answer_section){.number = NUMBER_TOKEN, /* text in any case */
                                 .batch = true,
                                 .single = true,
                                 .alike = true,
                                 .items = 1,
                                 .heads = 1,
                                 .rows = {&r->main.run->geometry.items, 0},
                                 .width = {most, 0},
                                 .begin = {&zero, 0},
                                 .row_room = ROW_ROOM + AROUND + room,
                                 .object_room = NUMBER_ROOM + room / size_max(*most, 1) + 1,
                                 .data = r,
                                 .write = objects ? write_items : write_lists};
}

struct answer_section stack_answer_sparse(const struct stack_request *r) {
  const size_t tokens = *most_of(r);
  size_t room = DIGITS * tokens;
  for (size_t t = 0; has_strings(r) && t < tokens; t++)
    room += stack_piece_room(r->main_tokenizer, stack_weighs_rows(r) ? -1 : (int64_t)t);
  if (has_strings(r)) room += stack_piece_room(r->main_tokenizer, -1);
  struct answer_section s = make(r, room, true);
  s.name = "sparse";
  return s;
}

struct answer_section stack_answer_sparse_list(const struct stack_request *r) {
  return make(r, (DIGITS + ENTRY) * *most_of(r), false);
}
