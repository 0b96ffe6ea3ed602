/* body_safetensors: a body that is safetensors: a header, and then the bytes of its tensors.
 *
 * The header is collected, read, and forgotten: what it says of each field is kept. Each tensor's
 * bytes go into memory of their own, so that they lie aligned and are used where they are. */
#include "server/body/body_safetensors.h"

#include <string.h>

#include "config/checkpoint/safetensors.h"
#include "server/body/json_small.h"
#include "server/body/tensor_bytes.h"
#include "server/body/tensor_json.h"
#include "server/text/blank.h"

/* Bytes of a header. All fields take some two thousand; Jansson takes up to 77 times as many. */
enum { HEADER_MAX = 16 * 1024 };

enum state { PREFIX, HEADER, DATA, AFTER };

/* A tensor that the header announces. */
struct announced {
  enum attention_field field;
  struct tensor_rule rule;
  struct tensor_form form;
  size_t bytes;
};

struct body_safetensors {
  const struct model *model;
  struct body_terms head;
  struct body_limits limits;
  struct arena *arena;
  enum state state;
  uint64_t offset;           /* bytes of the body that have been taken */
  struct tensor_bytes bytes; /* being collected: the prefix, the header, or a tensor */
  uint32_t seen;             /* a bit per field */
  size_t count, next;        /* tensors announced, and which of them comes now */
  struct announced announced[FIELD_TENSORS]; /* in the order of their data */
  struct tensor tensor[FIELD_TENSORS];
  struct fields fields;
  struct error *e; /* the first failure; then nothing is looked at any more */
};

struct body_safetensors *body_safetensors_new(const struct model *m, const struct body_terms *head,
                                              const struct body_limits *limits, struct arena *a,
                                              struct error *e) {
  struct body_safetensors *d = arena_alloc(a, 1, sizeof *d, e);
  if (!d) return NULL;
  *d = (struct body_safetensors){
      .model = m, .head = *head, .limits = *limits, .arena = a, .e = e, .state = PREFIX};
  tensor_bytes_init(&d->bytes, SAFETENSORS_PREFIX, a);
  fields_init(&d->fields, m);
  return d;
}

/* --- __metadata__ --- */

/* A value there is text within text: where it stands in the body nobody can say. */
static enum status refuse_metadata(struct body_safetensors *d, enum attention_field field) {
  struct error *e = d->e;
  if (e->status != STATUS_INVALID_JSON) return e->status;
  *e = (struct error){0};
  return error_at(e, field_pointer(field), "%s in __metadata__ must hold a JSON value, as text",
                  field_name(field));
}

static enum status read_small(struct body_safetensors *d, enum attention_field field,
                              const char *text, size_t length) {
  field_read(&d->fields, field, text, length, 0, d->e);
  return refuse_metadata(d, field);
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* A word that means nothing in JSON is a string. */
static bool is_bare_word(const char *text) {
  if (!is_letter(text[0])) return false;
  for (const char *p = text; *p; p++)
    if (!is_letter(*p) && (*p < '0' || *p > '9') && *p != '_' && *p != '-') return false;
  return strcmp(text, "true") && strcmp(text, "false") && strcmp(text, "null");
}

static enum status read_word(struct body_safetensors *d, enum attention_field field,
                             const char *text, size_t length) {
  char quoted[JSON_SMALL_MAX];
  quoted[0] = quoted[length + 1] = '"';
  memcpy(quoted + 1, text, length);
  return read_small(d, field, quoted, length + 2);
}

/* causal_offset as one integer, or one for each item. */
static enum status read_offsets(struct body_safetensors *d, const char *text, size_t length) {
  const enum attention_field field = FIELD_CAUSAL_OFFSET;
  struct error *e = d->e;
  const struct tensor_rule rule = field_rule(field, d->model, &d->limits);
  struct tensor_reader *r = tensor_reader_new(&rule, d->arena, e);
  size_t used = 0, ended = 0;
  bool complete = false;
  if (!r) return e->status;
  tensor_reader_feed(r, text, length, 0, &used, &complete, e);
  /* A number alone ends at what follows it. */
  if (!e->status && !complete) tensor_reader_feed(r, " ", 1, length, &ended, &complete, e);
  while (!e->status && used < length && is_blank(text[used])) used++;
  if (!e->status && (!complete || used < length)) error_json(e, used, "more than a value");
  if (e->status) return refuse_metadata(d, field);
  d->fields.tensor[field] = tensor_reader_view(r);
  return STATUS_OK;
}

static enum status read_metadata(struct body_safetensors *d, const char *key, const char *text) {
  struct error *e = d->e;
  const size_t length = strlen(text);
  enum attention_field field;
  if (strcmp(key, "format") == 0) return STATUS_OK; /* {"format":"pt"}: libraries add it */
  if (field_of_word(key, strlen(key), &field, e) || field_note(&d->seen, field, d->head.ask, e))
    return e->status;
  if (field < FIELD_CAUSAL_OFFSET)
    return error_at(e, field_pointer(field), "%s belongs into a tensor, not into __metadata__",
                    field_name(field));
  if (length > JSON_SMALL_MAX - 2)
    return error_at(e, field_pointer(field), "%s is longer than %d bytes", field_name(field),
                    JSON_SMALL_MAX - 2);
  if (is_bare_word(text)) return read_word(d, field, text, length);
  size_t blanks = 0;
  while (is_blank(text[blanks])) blanks++;
  if (field == FIELD_CAUSAL_OFFSET && text[blanks] != '"') return read_offsets(d, text, length);
  return read_small(d, field, text, length);
}

/* --- the header --- */

static enum status announce(struct body_safetensors *d, const struct safetensors_entry *entry) {
  struct error *e = d->e;
  enum attention_field field;
  if (field_of_word(entry->name, strlen(entry->name), &field, e) ||
      field_note(&d->seen, field, d->head.ask, e))
    return e->status;
  if (field >= FIELD_TENSORS)
    return error_at(e, field_pointer(field), "%s belongs into __metadata__, not into a tensor",
                    field_name(field));
  struct announced *t = &d->announced[d->count];
  t->field = field;
  t->rule = field_rule(field, d->model, &d->limits);
  t->form.dtype = tensor_dtype_of(entry->dtype, strlen(entry->dtype));
  t->form.rank = (unsigned)entry->rank;
  for (size_t i = 0; i < entry->rank && i < TENSOR_DEPTH_MAX; i++) t->form.dim[i] = entry->dim[i];
  if (tensor_form_check(&t->form, &t->rule, &t->bytes, e)) return e->status;
  must(t->bytes == entry->bytes);
  d->count++;
  return STATUS_OK;
}

static enum status take_header(struct body_safetensors *d, const struct safetensors *s) {
  for (size_t i = 0; i < safetensors_metadata_count(s); i++) {
    const char *text, *key = safetensors_metadata_at(s, i, &text);
    if (read_metadata(d, key, text)) return d->e->status;
  }
  for (size_t i = 0; i < safetensors_count(s); i++)
    if (announce(d, safetensors_at(s, i))) return d->e->status;
  return STATUS_OK;
}

/* What reading the header takes is charged like all else, and given back when it is read. */
static enum status parse_header(struct body_safetensors *d, struct arena *a) {
  struct error *e = d->e;
  const size_t length = d->bytes.size;
  struct json_reserve reserve = {.size = JSON_RESERVE_TIMES * (length + 1)};
  reserve.room = arena_alloc(a, reserve.size, 1, e);
  if (!reserve.room) return e->status;
  uint64_t data = SAFETENSORS_UNKNOWN;
  if (d->head.body_bytes != BODY_UNKNOWN) data = d->head.body_bytes - SAFETENSORS_PREFIX - length;
  struct error fault = {0};
  json_reserve_begin(&reserve);
  struct safetensors *s = safetensors_parse((const char *)d->bytes.data, length, data, &fault);
  const bool no_memory = reserve.used > 0 || fault.status == STATUS_OUT_OF_MEMORY;
  if (no_memory) safetensors_free(s);
  json_reserve_end();
  if (no_memory) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the body's header");
  if (!s) return error_at(e, "", "safetensors: %s", fault.detail);
  take_header(d, s);
  safetensors_free(s);
  return e->status;
}

static enum status header_ended(struct body_safetensors *d) {
  struct arena a;
  arena_init(&a, d->arena->budget);
  a.beside = d->arena->bytes;
  parse_header(d, &a);
  arena_free(&a);
  return d->e->status;
}

static enum status prefix_ended(struct body_safetensors *d) {
  static const char json[] = "the body looks like JSON, whose Content-Type is application/json";
  struct error *e = d->e, fault = {0};
  size_t length = 0;
  if (safetensors_measure(d->bytes.data, SAFETENSORS_UNKNOWN, HEADER_MAX, &length, &fault))
    return error_at(e, "", "safetensors: %s", d->bytes.data[0] == '{' ? json : fault.detail);
  if (d->head.body_bytes != BODY_UNKNOWN && d->head.body_bytes < SAFETENSORS_PREFIX + length)
    return error_at(e, "", "safetensors: a header of %zu bytes does not fit into this body",
                    length);
  tensor_bytes_init(&d->bytes, length, d->arena);
  return STATUS_OK;
}

/* --- the data --- */

static enum status tensor_ended(struct body_safetensors *d) {
  const struct announced *t = &d->announced[d->next];
  struct tensor *out = &d->tensor[t->field];
  if (tensor_bytes_settle(&d->bytes, &t->form, &t->rule, out, d->e)) return d->e->status;
  d->fields.tensor[t->field] = out;
  d->next++;
  return STATUS_OK;
}

/* All bytes of a part are there: what comes next. */
static enum status part_ended(struct body_safetensors *d) {
  switch (d->state) {
  case PREFIX:
    d->state = HEADER;
    return prefix_ended(d);
  case HEADER:
    if (header_ended(d)) return d->e->status;
    break;
  default:
    if (tensor_ended(d)) return d->e->status;
  }
  d->state = d->next < d->count ? DATA : AFTER;
  if (d->state == DATA) tensor_bytes_init(&d->bytes, d->announced[d->next].bytes, d->arena);
  return STATUS_OK;
}

static enum status refuse_at_offset(struct body_safetensors *d, const char *pointer,
                                    const char *why) {
  struct error *e = d->e;
  error_at(e, pointer, "%s", why);
  e->has_offset = true;
  e->offset = d->offset;
  return e->status;
}

void body_safetensors_feed(struct body_safetensors *d, const char *bytes, size_t size) {
  struct error *const failure = d->e;
  for (size_t at = 0; at < size && !failure->status;) {
    if (d->state == AFTER) {
      refuse_at_offset(d, "", "bytes behind the last tensor");
      break;
    }
    const size_t taken = tensor_bytes_feed(&d->bytes, bytes + at, size - at, failure);
    at += taken;
    d->offset += taken;
    /* A part may have no bytes. */
    while (!failure->status && d->state != AFTER && d->bytes.size == d->bytes.most) part_ended(d);
  }
}

static void truncated(struct body_safetensors *d) {
  if (d->offset == 0)
    refuse_at_offset(d, "", "the body is empty");
  else if (d->state == DATA)
    refuse_at_offset(d, field_pointer(d->announced[d->next].field),
                     "the body ends before its tensors do");
  else
    refuse_at_offset(d, "", "the body ends before the header of safetensors does");
}

const struct fields *body_safetensors_finish(struct body_safetensors *d) {
  if (!d->e->status && d->state != AFTER) truncated(d);
  return &d->fields;
}
