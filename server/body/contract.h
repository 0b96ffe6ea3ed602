/* contract: the fields that a request may have, as one table, and their values as they were read.
 *
 * The table drives every reader of a body. It has the name of each field, its kind (an array, a
 * small value, either of them, texts), the rule of an array, and the reader of a small value. A
 * contract is constant; its owner (server/attention, server/model/fields) has the table and the
 * struct of the small values. */
#ifndef SERVER_CONTRACT_H
#define SERVER_CONTRACT_H

#include "server/json/tensor.h"
#include "server/json/tensor_bytes.h"
#include "server/json/texts.h"

struct json_t;

enum {
  CONTRACT_FIELDS_MAX = 64, /* a bit each */
  CONTRACT_ARRAYS_MAX = 10,
  CONTRACT_SIZES_MAX = 6,
  CONTRACT_INPUTS_MAX = 6,
  CONTRACT_OUTPUTS_MAX = 4
};

/* One field. The first fields of a contract are arrays and have a rule. The others are small values
 * and have a reader, except texts. An array with a reader may be a string instead, and one with
 * `texts` may be texts. */
struct contract_field {
  const char *pointer;   /* "/keys": a slash and the name */
  size_t name_length;    /* bytes of the name */
  unsigned of;           /* bits of the requests that have it, as in contract.request; 0: all */
  const char *elsewhere; /* the error for other requests; NULL: it names those that have it */

  struct tensor_rule rule; /* without what contract_rule sets */
  unsigned width;          /* index into contract_reading.size: width of the rows; 0: any width */
  unsigned
      outermost;  /* index of the size that its outermost array may have above max_items; or 0 */
  bool nullable;  /* a small value that may be null, which means absent */
  bool parameter; /* of requests in the Open Inference Protocol */
  bool texts;     /* may have texts, in JSON bodies only */
  bool second;    /* its texts are the second ones of pairs, apart from the first ones */
  enum texts_form texts_form; /* their form */

  /* Reads a small value to `to`, which is `at` bytes into contract_reading.values. Returns the
   * status of `e`. */
  enum status (*read)(const struct json_t *value, const struct contract_field *field, void *to,
                      struct error *e);
  size_t at;
  /* Reads, instead of `read`, a text of more than JSON_SMALL_MAX bytes, whose parsing may take
   * long. It is JSON and stays in the arena. NULL: `read` does. */
  enum status (*read_text)(const char *text, size_t length, size_t offset,
                           const struct contract_field *field, void *to, struct error *e);
  const char *const *words; /* of contract_read_word; the end is NULL */
  size_t longest;           /* most bytes of a small value's text; 0: JSON_SMALL_MAX */
};

/* An input of the Open Inference Protocol, and the array field that it is. */
struct contract_input {
  const char *name;
  unsigned field;
  enum tensor_dtype dtype, other; /* the types that it accepts; equal if there is only one */
  unsigned depth_min; /* overrides the rule's: this protocol requires the batch dimension */
  bool required;
};

/* The inputs and outputs of a contract in the Open Inference Protocol. */
struct contract_v2 {
  const struct contract_input *input;
  size_t inputs; /* at most CONTRACT_INPUTS_MAX */
  const char *const *output;
  size_t outputs; /* at most CONTRACT_OUTPUTS_MAX; the first is the default */
};

/* Requests, as bits of contract.request, and their path for errors: "POST /v1/models". */
struct contract_request {
  unsigned bits; /* 0: the end of a list */
  const char *path;
};

/* A name that is no field, but is often sent as one. */
struct contract_stray {
  const char *name, *instead; /* advice for the error */
};

struct contract_reading;

struct contract {
  const struct contract_field *field;
  unsigned arrays, fields; /* how many arrays, which are first, and how many fields in total */
  unsigned request;        /* the bit of this kind of request among those that share the fields */
  const struct contract_request *requests; /* all kinds; NULL: no error names them */
  const struct contract_v2 *v2;
  const struct contract_stray *stray;
  size_t strays;

  /* Returns the most numbers that an array field may have, given the arrays read before it; 0:
   * unknown. NULL: always unknown. */
  size_t (*max_count)(const struct contract_reading *r, unsigned field);

  /* Estimates the nanoseconds to prepare a run and plan its response, without those to go through
   * the arrays. NULL: 0. */
  uint64_t (*plan_cost)(const struct contract_reading *r);
};

/* The fields of one request as far as they were read, and the sizes that its rules need. */
struct contract_reading {
  const struct contract *contract;
  size_t size[CONTRACT_SIZES_MAX]; /* sizes of the model; size[0] is 0 */
  size_t max_items;
  uint64_t seen;                                    /* a bit per field that the request has */
  uint64_t null;                                    /* a bit per field whose value is null */
  const struct tensor *tensor[CONTRACT_ARRAYS_MAX]; /* NULL: absent */
  const struct texts *texts;                        /* the texts of their field; NULL: absent */
  const struct texts *second; /* those of a field that has the second texts; NULL: absent */
  size_t prompt;              /* most bytes of the model's prompt before each text */
  void *values;               /* the contract's own struct, with defaults for missing values */
  struct patience *patience;  /* the client's, if a worker prepares the request; or NULL */
  struct arena *arena;        /* the request's arena and its first failure, set by body_init */
  struct error *e;
};

static inline const char *contract_name(const struct contract_field *field) {
  return field->pointer + 1;
}

/* Estimated nanoseconds to tokenize a byte of text; an upper bound. */
enum { CONTRACT_TEXT_NS = 100 };

/* Estimates the nanoseconds to tokenize all texts of a request, each after a prompt of this many
 * bytes. */
static inline uint64_t contract_texts_cost(const struct texts *t, size_t prompt) {
  return CONTRACT_TEXT_NS * (t->length + t->items * (uint64_t)(1 + prompt));
}

/* Returns whether the field may be a small value. */
static inline bool contract_is_small(const struct contract_field *field) {
  return field->read != NULL;
}

/* Returns whether the field may be an array. */
static inline bool contract_is_array(const struct contract *c, unsigned field) {
  return field < c->arrays;
}

/* Returns the most bytes of a small value's text. */
size_t contract_longest(const struct contract_field *field);

enum { CONTRACT_NAME_SHOWN = 46 }; /* most bytes of a name that an error repeats */

/* Writes a name, which is UTF-8, for an error message and, escaped, as a JSON Pointer of less than
 * `room` bytes, which is at least 2. Both have no control bytes and are cut between two characters.
 */
void contract_show_name(const char *name, size_t length, char shown[CONTRACT_NAME_SHOWN + 1],
                        char *pointer, size_t room);

/* Returns the field of this name, or c->fields. */
unsigned contract_find(const struct contract *c, const char *name, size_t length);

/* Finds the field of a name, which is UTF-8, and records that the request has it. Returns the
 * status of `e`: invalid-request for a duplicate field, a field of another path, and an unknown
 * name, with the nearest known name or advice. */
enum status contract_meet(struct contract_reading *r, const char *name, size_t length,
                          unsigned *field, struct error *e);

/* Does the same for a name that is the JSON string `raw`, quotes included, at `offset` of the body.
 */
enum status contract_meet_raw(struct contract_reading *r, const char *raw, size_t length,
                              size_t offset, unsigned *field, struct error *e);

/* Fails for a name that is longer than any known one; `raw` is its beginning, with the quote. */
enum status contract_refuse_long(const struct contract *c, const char *raw, size_t length,
                                 struct error *e);

/* Returns the rule of an array field, with the sizes of this model and the limit of items. */
struct tensor_rule contract_rule(const struct contract_reading *r, unsigned field);

/* Estimates the nanoseconds to go through all values that were read. */
uint64_t contract_reading_cost(const struct contract_reading *r);

/* Parses a small value, whose text is at `offset` of the body, and stores it. Returns the status of
 * `e`. */
enum status contract_read(struct contract_reading *r, unsigned field, const char *text,
                          size_t length, size_t offset, struct error *e);

/* Does the same for a text that is JSON and, if it is longer than JSON_SMALL_MAX, in the arena. */
enum status contract_read_kept(struct contract_reading *r, unsigned field, const char *text,
                               size_t length, size_t offset, struct error *e);

/* Reads an integer of a range, of which negative ones become 0. `most`, if not INT64_MAX, is at
 * most 2^53 - 1, as are the integers that every JSON parser keeps exactly. */
enum status contract_integer(const struct json_t *value, const struct contract_field *field,
                             int64_t least, int64_t most, size_t *to, struct error *e);

/* Readers of small values. true or false, to a bool. */
enum status contract_read_flag(const struct json_t *value, const struct contract_field *field,
                               void *to, struct error *e);

/* An integer from 0 to 2^53 - 1, to a uint64_t. */
enum status contract_read_seed(const struct json_t *value, const struct contract_field *field,
                               void *to, struct error *e);

/* "float" or "base64", the format of a response's arrays, to a bool. */
enum status contract_read_base64(const struct json_t *value, const struct contract_field *field,
                                 void *to, struct error *e);

/* One of field->words, to an enum that numbers them from 0. */
enum status contract_read_word(const struct json_t *value, const struct contract_field *field,
                               void *to, struct error *e);

/* A string, to a struct contract_text. */
enum status contract_read_text(const struct json_t *value, const struct contract_field *field,
                               void *to, struct error *e);

/* The string of a field, NUL-terminated; `bytes` is NULL if it is absent. */
struct contract_text {
  struct arena *arena; /* set before it is read */
  const char *bytes;
  size_t length;
};

#endif
