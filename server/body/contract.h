/* contract: the fields that a request may have, as one table, and what has been read of them.
 *
 * Every reader of a body is driven by the table: how a field is called, whether it is an array, a
 * small value or either, what keeps an array's rule, and who reads a small value. A contract is
 * constant; its table and its small values belong to its owner (server/attention). */
#ifndef SERVER_CONTRACT_H
#define SERVER_CONTRACT_H

#include "server/body/tensor.h"
#include "server/body/tensor_bytes.h"

struct json_t;

enum {
  CONTRACT_FIELDS_MAX = 64, /* a bit each */
  CONTRACT_ARRAYS_MAX = 10,
  CONTRACT_SIZES_MAX = 6,
  CONTRACT_INPUTS_MAX = 5,
  CONTRACT_OUTPUTS_MAX = 2
};

/* One field. The first fields of a contract are arrays, and have a rule; the others are small
 * values, and have a reader; an array with a reader may be a string as well. */
struct contract_field {
  const char *pointer;   /* "/keys": the name behind a slash */
  size_t name_length;    /* of the name */
  const char *elsewhere; /* why it is refused where contract.elsewhere says so; or NULL */

  struct tensor_rule rule; /* but for its name, and what the model and the limits say: */
  unsigned width;          /* which size of the model its width is; 0: any width */
  unsigned outermost;      /* which size the outermost array may have even above max_items; or 0 */

  /* Reads a small value to `to`, which is at `at` among the contract's values. */
  enum status (*read)(const struct json_t *value, const struct contract_field *field, void *to,
                      struct error *e);
  size_t at;
};

/* An input of the Open Inference Protocol, and the array field that it is. */
struct contract_input {
  const char *name;
  unsigned field;
  enum tensor_dtype dtype, other; /* the types that it takes; the same twice: one */
  unsigned depth_min;             /* instead of the rule's: in that protocol a batch is a batch */
  bool required;
};

/* What is said of a model by the Open Inference Protocol. */
struct contract_v2 {
  const struct contract_input *input;
  size_t inputs; /* at most CONTRACT_INPUTS_MAX */
  const char *const *output;
  size_t outputs;      /* at most CONTRACT_OUTPUTS_MAX; the first is meant where none is named */
  uint64_t parameters; /* a bit for each field that is a parameter of the request */
};

struct contract {
  const struct contract_field *field;
  unsigned arrays, fields; /* of the fields so many are arrays */
  uint64_t elsewhere;      /* a bit for each field that belongs to another path */
  const struct contract_v2 *v2;
};

/* What has been read, and what the rules need to know of the model. */
struct contract_reading {
  const struct contract *contract;
  size_t size[CONTRACT_SIZES_MAX]; /* of the model; size[0] is 0 */
  size_t max_items;
  uint64_t seen;                                    /* a bit per field */
  const struct tensor *tensor[CONTRACT_ARRAYS_MAX]; /* NULL: absent */
  void *values;                                     /* the contract's own; hold its defaults */
};

static inline const char *contract_name(const struct contract_field *field) {
  return field->pointer + 1;
}

/* May the field be a small value? */
static inline bool contract_is_small(const struct contract_field *field) {
  return field->read != NULL;
}

/* Is it the array of that index? */
static inline bool contract_is_array(const struct contract *c, unsigned field) {
  return field < c->arrays;
}

/* The field of this name, or c->fields. */
unsigned contract_find(const struct contract *c, const char *name, size_t length);

/* Finds the field of a name that is UTF-8, and notes that it is there: it may stand once, and only
 * where the contract has it. Fails with invalid-request: of an unknown one the nearest known is
 * named. */
enum status contract_meet(struct contract_reading *r, const char *name, size_t length,
                          unsigned *field, struct error *e);

/* The same of a name that is the JSON string `raw`, quotes included, at `offset` of the body. */
enum status contract_meet_raw(struct contract_reading *r, const char *raw, size_t length,
                              size_t offset, unsigned *field, struct error *e);

/* A name that is longer than any known one, of which `raw` is the beginning. */
enum status contract_refuse_long(const struct contract *c, const char *raw, size_t length,
                                 struct error *e);

/* What the array of a field may look like. */
struct tensor_rule contract_rule(const struct contract_reading *r, unsigned field);

/* Parses the text of a small value, which stands at `offset` of the body, and keeps it. */
enum status contract_read(struct contract_reading *r, unsigned field, const char *text,
                          size_t length, size_t offset, struct error *e);

/* A reader of small values: true or false to a bool. */
enum status contract_read_flag(const struct json_t *value, const struct contract_field *field,
                               void *to, struct error *e);

#endif
