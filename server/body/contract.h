/* contract: the fields that a request may have, as one table, and what has been read of them.
 *
 * The table drives every reader of a body. It has the name of each field, whether it is an array, a
 * small value or either, or texts, the rule of an array, and the reader of a small value. A
 * contract is constant; its table and the struct of its small values are its owner's
 * (server/attention, server/model). */
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
 * and have a reader, but for one, which may be texts. An array with a reader may be a string
 * instead, and one with `texts` texts. */
struct contract_field {
  const char *pointer;   /* "/keys": the name behind a slash */
  size_t name_length;    /* of the name */
  const char *elsewhere; /* the error, if contract.elsewhere has the field's bit; or NULL */

  struct tensor_rule rule; /* without what contract_rule sets */
  unsigned width;          /* which of contract_reading.size its rows have; 0: rows of any width */
  unsigned outermost;      /* which size its outermost array may have, even above max_items; or 0 */
  bool nullable;           /* a small value that may be null, as if it were absent */
  bool texts;              /* it holds texts, which only a body that is JSON has */
  enum texts_form texts_form; /* ... in this form */

  /* Reads a small value to `to`, which lies `at` bytes into contract_reading.values. */
  enum status (*read)(const struct json_t *value, const struct contract_field *field, void *to,
                      struct error *e);
  size_t at;
  size_t longest; /* bytes of the text of a small value, where it is no small one; 0:
                     JSON_SMALL_MAX */
};

/* An input of the Open Inference Protocol, and the array field that it is. */
struct contract_input {
  const char *name;
  unsigned field;
  enum tensor_dtype dtype, other; /* the types that it takes; the same twice: one */
  unsigned depth_min;             /* instead of the rule's: in that protocol a batch is a batch */
  bool required;
};

/* The contract as the Open Inference Protocol has it. */
struct contract_v2 {
  const struct contract_input *input;
  size_t inputs; /* at most CONTRACT_INPUTS_MAX */
  const char *const *output;
  size_t outputs; /* at most CONTRACT_OUTPUTS_MAX; a request that names none asks for the first */
  uint64_t parameters; /* a bit for each field that is a parameter of the request */
};

/* A name that is no field, but is often sent as one. */
struct contract_stray {
  const char *name, *instead; /* what the error says to do instead */
};

struct contract_reading;

struct contract {
  const struct contract_field *field;
  unsigned arrays, fields; /* how many arrays, which come first, and how many fields in all */
  uint64_t elsewhere;      /* a bit for each field that belongs to another path */
  const struct contract_v2 *v2;
  const struct contract_stray *stray;
  size_t strays;

  /* How many numbers an array field may have at most, beside the arrays that were read before it;
   * 0: that is not known. NULL: it never is. */
  size_t (*max_count)(const struct contract_reading *r, unsigned field);

  /* How long it takes to prepare a run and plan its answer beyond what going through the arrays
   * takes, in nanoseconds, about. NULL: no longer. */
  uint64_t (*plan_cost)(const struct contract_reading *r);
};

/* The fields of one request as far as they were read, and the sizes that its rules need. */
struct contract_reading {
  const struct contract *contract;
  size_t size[CONTRACT_SIZES_MAX]; /* of the model; size[0] is 0 */
  size_t max_items;
  uint64_t seen;                                    /* a bit per field */
  uint64_t null;                                    /* of these, those whose value is null */
  const struct tensor *tensor[CONTRACT_ARRAYS_MAX]; /* NULL: absent */
  const struct texts *texts;                        /* of the one field of them; NULL: absent */
  size_t prompt; /* bytes of the model's prompt before each text, at most */
  void *values;  /* the contract's own struct, with its defaults where no value was read */
  struct patience *patience; /* of who waits, where a worker prepares the request; or NULL */
  struct arena *arena;       /* the request's, and its first failure: from body_init */
  struct error *e;
};

static inline const char *contract_name(const struct contract_field *field) {
  return field->pointer + 1;
}

/* How long it takes to make tokens of texts, nanoseconds a byte, about; at most. */
enum { CONTRACT_TEXT_NS = 100 };

/* The same of all texts of a request, each behind a prompt of so many bytes. */
static inline uint64_t contract_texts_cost(const struct texts *t, size_t prompt) {
  return CONTRACT_TEXT_NS * (t->length + t->items * (uint64_t)(1 + prompt));
}

/* May the field be a small value? */
static inline bool contract_is_small(const struct contract_field *field) {
  return field->read != NULL;
}

/* Is the field an array? */
static inline bool contract_is_array(const struct contract *c, unsigned field) {
  return field < c->arrays;
}

/* Bytes that the text of a small value may have. */
size_t contract_longest(const struct contract_field *field);

enum { CONTRACT_NAME_SHOWN = 46 }; /* bytes of a name that an error repeats */

/* Writes a name, which is UTF-8, as it may be shown and, escaped, as a JSON Pointer of less than
 * `room` bytes, which is at least 2: no control bytes, and both cut between two characters. */
void contract_show_name(const char *name, size_t length, char shown[CONTRACT_NAME_SHOWN + 1],
                        char *pointer, size_t room);

/* The field of this name, or c->fields. */
unsigned contract_find(const struct contract *c, const char *name, size_t length);

/* Finds the field of a name, which is UTF-8, and notes that the request has it. Fails with
 * invalid-request for a second time, for a field of another path, and for an unknown name: then the
 * error names a known one that is near, or says what to do instead. */
enum status contract_meet(struct contract_reading *r, const char *name, size_t length,
                          unsigned *field, struct error *e);

/* The same for a name that is the JSON string `raw`, quotes included, at `offset` of the body. */
enum status contract_meet_raw(struct contract_reading *r, const char *raw, size_t length,
                              size_t offset, unsigned *field, struct error *e);

/* Refuses a name that is longer than any known one; `raw` is its beginning, with the quote. */
enum status contract_refuse_long(const struct contract *c, const char *raw, size_t length,
                                 struct error *e);

/* The rule of an array field, with the sizes of this model and the limit of items. */
struct tensor_rule contract_rule(const struct contract_reading *r, unsigned field);

/* How long it takes to go through all that was read, in nanoseconds, about. */
uint64_t contract_reading_cost(const struct contract_reading *r);

/* Parses a small value, whose text is at `offset` of the body, and stores it. */
enum status contract_read(struct contract_reading *r, unsigned field, const char *text,
                          size_t length, size_t offset, struct error *e);

/* A reader of small values: true or false to a bool. */
enum status contract_read_flag(const struct json_t *value, const struct contract_field *field,
                               void *to, struct error *e);

/* Another: an integer that any JSON reader keeps as it is, to a uint64_t. */
enum status contract_read_seed(const struct json_t *value, const struct contract_field *field,
                               void *to, struct error *e);

/* Another: "float" or "base64", as which an answer's arrays are written, to a bool. */
enum status contract_read_base64(const struct json_t *value, const struct contract_field *field,
                                 void *to, struct error *e);

/* Another: a text, to a struct contract_text. */
enum status contract_read_text(const struct json_t *value, const struct contract_field *field,
                               void *to, struct error *e);

/* A text that a field holds, with a zero behind it; its bytes are NULL where there is none. */
struct contract_text {
  struct arena *arena; /* set before it is read */
  const char *bytes;
  size_t length;
};

#endif
