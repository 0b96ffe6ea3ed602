/* body_safetensors: a body in safetensors: a header, then the bytes of its tensors.
 *
 * The header is collected, parsed and dropped; the form of each tensor is stored. Each tensor's
 * numbers go into memory of their own, so that they are aligned and used in place. */
#include <string.h>

#include "config/checkpoint/safetensors.h"
#include "server/body/form/body_readers.h"
#include "server/json/json_small.h"
#include "server/json/tensor_bytes.h"
#include "server/json/tensor_json.h"
#include "server/number/number.h"

/* Most bytes of a header. All fields take some two thousand; Jansson takes up to 77 times the size.
 */
enum { HEADER_MAX = 16 * 1024 };

enum { QUOTES = 2 }; /* bytes added to a bare word */

enum body_safetensors_state { PREFIX, HEADER, DATA, AFTER };

/* A tensor that the header announces. */
struct body_announced {
  unsigned field;
  struct tensor_rule rule;
  struct tensor_form form;
  size_t bytes;
};

struct body_safetensors {
  struct contract_reading *into;
  uint64_t body_bytes; /* announced bytes, or BODY_UNKNOWN */
  struct arena *arena;
  enum body_safetensors_state state;
  uint64_t offset;           /* bytes of the body that have been read */
  struct tensor_bytes bytes; /* the prefix, the header, or the tensor that arrives */
  size_t count, next;        /* tensors announced, and the next one of them */
  struct body_announced announced[CONTRACT_ARRAYS_MAX]; /* in the order of their data */
  struct tensor tensor[CONTRACT_ARRAYS_MAX];
  struct error *e; /* the first failure; nothing is read after it */
};

struct body_safetensors *body_safetensors_new(struct contract_reading *into,
                                              const struct body_terms *terms, struct arena *a,
                                              struct error *e) {
  struct body_safetensors *b = arena_alloc(a, 1, sizeof *b, e);
  if (!b) return NULL;
  *b = (struct body_safetensors){
      .into = into, .body_bytes = terms->body_bytes, .arena = a, .e = e, .state = PREFIX};
  tensor_bytes_init(&b->bytes, DTYPE_NONE, SAFETENSORS_PREFIX, a);
  return b;
}

static const struct contract_field *row_of(const struct body_safetensors *b, unsigned field) {
  return &b->into->contract->field[field];
}

/* --- __metadata__ --- */

/* A JSON value in __metadata__ is a string within JSON: an error has no offset in the body. */
static enum status refuse_metadata(struct body_safetensors *b, unsigned field) {
  struct error *e = b->e;
  if (e->status != STATUS_INVALID_JSON) return e->status;
  *e = (struct error){0};
  return error_at(e, row_of(b, field)->pointer,
                  "%s in __metadata__ must hold a JSON value, as text",
                  contract_name(row_of(b, field)));
}

static enum status read_small(struct body_safetensors *b, unsigned field, const char *text,
                              size_t length) {
  if (!contract_read(b->into, field, text, length, 0, b->e)) return STATUS_OK;
  return refuse_metadata(b, field);
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* Returns whether the text is a word that JSON does not have: it is read as a string. */
static bool is_bare_word(const char *text) {
  if (!is_letter(text[0])) return false;
  for (const char *p = text; *p; p++)
    if (!is_letter(*p) && (*p < '0' || *p > '9') && *p != '_' && *p != '-') return false;
  return strcmp(text, "true") && strcmp(text, "false") && strcmp(text, "null");
}

/* Reads an array that is JSON in __metadata__, not a tensor. */
static enum status read_array(struct body_safetensors *b, unsigned field, const char *text,
                              size_t length) {
  struct error *e = b->e;
  const struct tensor_rule rule = contract_rule(b->into, field);
  struct tensor_json *r = tensor_json_new(&rule, b->arena, e);
  size_t used = 0, ended = 0;
  bool complete = false;
  if (!r) return e->status;
  tensor_json_feed(r, text, length, 0, &used, &complete, e);
  /* A number alone ends only at another byte. */
  if (!e->status && !complete) tensor_json_feed(r, " ", 1, length, &ended, &complete, e);
  while (!e->status && used < length && is_blank(text[used])) used++;
  if (!e->status && (!complete || used < length)) error_json(e, used, "more than a value");
  if (e->status) return refuse_metadata(b, field);
  b->into->tensor[field] = tensor_json_view(r);
  return STATUS_OK;
}

static enum status refuse_texts(struct body_safetensors *b, const struct contract_field *f) {
  return error_at(b->e, f->pointer, "%s is supported in JSON bodies only", contract_name(f));
}

static enum status read_meta(struct body_safetensors *b, const char *key, const char *text) {
  const size_t length = strlen(text);
  unsigned field;
  if (strcmp(key, "format") == 0) return STATUS_OK; /* {"format":"pt"}: libraries add it */
  if (contract_meet(b->into, key, strlen(key), &field, b->e)) return b->e->status;
  const struct contract_field *f = row_of(b, field);
  if (f->texts) return refuse_texts(b, f);
  if (!contract_is_small(f))
    return error_at(b->e, f->pointer, "%s must be a tensor, not an entry of __metadata__",
                    contract_name(f));
  if (length > contract_longest(f) - QUOTES)
    return error_at(b->e, f->pointer, "%s is longer than %zu bytes", contract_name(f),
                    contract_longest(f) - QUOTES);
  if (length <= JSON_SMALL_MAX - QUOTES && is_bare_word(text)) {
    char quoted[JSON_SMALL_MAX];
    quoted[0] = quoted[length + 1] = '"';
    memcpy(quoted + 1, text, length);
    return read_small(b, field, quoted, length + QUOTES);
  }
  size_t blanks = 0;
  while (is_blank(text[blanks])) blanks++;
  if (contract_is_array(b->into->contract, field) && text[blanks] != '"')
    return read_array(b, field, text, length);
  return read_small(b, field, text, length);
}

/* --- the header --- */

static enum status announce_tensor(struct body_safetensors *b,
                                   const struct safetensors_entry *entry) {
  unsigned field;
  if (contract_meet(b->into, entry->name, strlen(entry->name), &field, b->e)) return b->e->status;
  const struct contract_field *f = row_of(b, field);
  if (f->texts) return refuse_texts(b, f);
  if (!contract_is_array(b->into->contract, field))
    return error_at(b->e, f->pointer, "%s must be an entry of __metadata__, not a tensor",
                    contract_name(f));
  struct body_announced *t = &b->announced[b->count];
  t->field = field;
  t->rule = contract_rule(b->into, field);
  t->form.dtype = tensor_dtype_of(entry->dtype, strlen(entry->dtype));
  t->form.rank = (unsigned)entry->rank;
  for (size_t i = 0; i < entry->rank && i < TENSOR_DEPTH_MAX; i++) t->form.dim[i] = entry->dim[i];
  if (tensor_form_check(&t->form, &t->rule, &t->bytes, b->e)) return b->e->status;
  must(t->bytes == entry->bytes);
  b->count++;
  return STATUS_OK;
}

/* Parses the header with memory of `a`, and reads its entries. */
static enum status parse_header(struct body_safetensors *b, struct arena *a) {
  struct error *e = b->e;
  const size_t length = b->bytes.size;
  struct json_reserve reserve = {.size = JSON_RESERVE_TIMES * (length + 1)};
  reserve.room = arena_alloc(a, reserve.size, 1, e);
  if (!reserve.room) return e->status;
  uint64_t data = SAFETENSORS_UNKNOWN;
  if (b->body_bytes != BODY_UNKNOWN) data = b->body_bytes - SAFETENSORS_PREFIX - length;
  struct error fault = {0};
  json_reserve_begin(&reserve);
  struct safetensors *s = safetensors_parse((const char *)b->bytes.data, length, data, &fault);
  const bool no_memory = reserve.used > 0 || fault.status == STATUS_OUT_OF_MEMORY;
  if (no_memory) safetensors_free(s);
  json_reserve_end();
  if (no_memory) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the body's header");
  if (!s) return error_at(e, "", "safetensors: %s", fault.detail);
  for (size_t i = 0; i < safetensors_metadata_count(s) && !e->status; i++) {
    const char *text, *key = safetensors_metadata_at(s, i, &text);
    read_meta(b, key, text);
  }
  for (size_t i = 0; i < safetensors_count(s) && !e->status; i++)
    announce_tensor(b, safetensors_at(s, i));
  safetensors_free(s);
  return e->status;
}

/* The memory for parsing is charged to the request's budget, and returned at once. */
static enum status end_header(struct body_safetensors *b) {
  struct arena a;
  arena_init(&a, b->arena->budget);
  a.beside = b->arena->bytes;
  parse_header(b, &a);
  arena_free(&a);
  return b->e->status;
}

static enum status end_prefix(struct body_safetensors *b) {
  static const char json[] = "the body looks like JSON, whose Content-Type is application/json";
  struct error *e = b->e, fault = {0};
  size_t length = 0;
  if (safetensors_measure(b->bytes.data, SAFETENSORS_UNKNOWN, HEADER_MAX, &length, &fault))
    return error_at(e, "", "safetensors: %s", b->bytes.data[0] == '{' ? json : fault.detail);
  if (b->body_bytes != BODY_UNKNOWN && b->body_bytes < SAFETENSORS_PREFIX + length)
    return error_at(e, "", "safetensors: a header of %zu bytes does not fit into this body",
                    length);
  tensor_bytes_init(&b->bytes, DTYPE_NONE, length, b->arena);
  return STATUS_OK;
}

/* --- the data --- */

/* Ends the prefix, the header or a tensor, whose bytes are complete, and begins what follows. */
static enum status end_stretch(struct body_safetensors *b) {
  const struct body_announced *t = &b->announced[b->next];
  switch (b->state) {
  case PREFIX:
    b->state = HEADER;
    return end_prefix(b);
  case HEADER:
    if (end_header(b)) return b->e->status;
    break;
  default:
    if (tensor_bytes_finish(&b->bytes, &t->form, &t->rule, &b->tensor[t->field], b->e))
      return b->e->status;
    b->into->tensor[t->field] = &b->tensor[t->field];
    t = &b->announced[++b->next];
  }
  b->state = b->next < b->count ? DATA : AFTER;
  if (b->state == DATA) tensor_bytes_init(&b->bytes, t->form.dtype, t->bytes, b->arena);
  return STATUS_OK;
}

static enum status refuse_here(struct body_safetensors *b, const char *pointer, const char *why) {
  error_at(b->e, pointer, "%s", why);
  b->e->has_offset = true;
  b->e->offset = b->offset;
  return b->e->status;
}

enum status body_safetensors_feed(struct body_safetensors *b, const char *bytes, size_t size) {
  struct error *const e = b->e;
  for (size_t at = 0; at < size && !e->status;) {
    if (b->state == AFTER) return refuse_here(b, "", "extra bytes after the last tensor");
    const size_t used = tensor_bytes_feed(&b->bytes, bytes + at, size - at, e);
    at += used;
    b->offset += used;
    /* A tensor may have no bytes. */
    while (!e->status && b->state != AFTER && tensor_bytes_whole(&b->bytes)) end_stretch(b);
  }
  return e->status;
}

enum status body_safetensors_finish(struct body_safetensors *b) {
  if (b->e->status || b->state == AFTER) return b->e->status;
  if (b->offset == 0) return refuse_here(b, "", "the body is empty");
  if (b->state != DATA)
    return refuse_here(b, "", "unexpected end of the body: the safetensors header is incomplete");
  return refuse_here(b, row_of(b, b->announced[b->next].field)->pointer,
                     "unexpected end of the body: the tensors are incomplete");
}
