/* body_v2_parts: the state of reading a v2 request. Private to body_v2*.c. */
#ifndef SERVER_BODY_V2_PARTS_H
#define SERVER_BODY_V2_PARTS_H

#include "server/body/body_field.h"
#include "server/json/json_small.h"
#include "server/json/tensor_bytes.h"
#include "server/json/tensor_json.h"
#include "server/v2/body_v2.h"

/* The known objects of the JSON, and lists of objects. */
enum body_v2_level {
  V2_REQUEST,
  V2_PARAMETERS,
  V2_INPUTS,
  V2_INPUT,
  V2_INPUT_PARAMETERS,
  V2_OUTPUTS,
  V2_OUTPUT,
  V2_OUTPUT_PARAMETERS
};

/* The known keys, each at its level; all others are ignored. */
enum body_v2_key {
  V2_KEY_PARAMETERS,
  V2_KEY_INPUTS,
  V2_KEY_INPUT_PARAMETERS,
  V2_KEY_OUTPUTS,
  V2_KEY_OUTPUT_PARAMETERS,
  V2_KEY_DATA,
  V2_KEY_ID,
  V2_KEY_BINARY_OUTPUT, /* the values of this and later keys are collected and then parsed */
  V2_KEY_TIMEOUT,
  V2_KEY_INPUT_NAME,
  V2_KEY_DATATYPE,
  V2_KEY_SHAPE,
  V2_KEY_BINARY_SIZE,
  V2_KEY_OUTPUT_NAME,
  V2_KEY_BINARY_DATA,
  V2_KEYS,
  V2_KEY_FIELD = V2_KEYS, /* a parameter that is a field of the contract */
  V2_KEY_UNKNOWN
};

enum { V2_ID_MAX = 64 * 1024 }; /* most bytes of the id's text */

/* Most bytes of text that are kept of all inputs together. Kept numbers are read in one call when
 * their input ends; meanwhile the I/O thread serves no other request. */
enum { V2_KEPT_MAX = 1024 * 1024 };

/* Text that is kept unchanged. */
struct body_v2_text {
  char *text;
  size_t length, capacity;
};

/* One object of the list of inputs, and its numbers, which are in it or after the JSON. Its keys
 * come in any order: numbers before their name, shape and datatype are kept as text, up to
 * V2_KEPT_MAX. */
struct body_v2_input {
  size_t index;                    /* in the list */
  const struct contract_input *is; /* the contract's input; NULL: not known yet */
  enum tensor_dtype dtype;         /* the request's datatype */
  struct tensor_form form;
  struct tensor_rule rule;
  bool shaped, typed, has_data, has_size;
  bool prepared;              /* name, shape and datatype are known and fit together */
  size_t size;                /* binary_data_size */
  size_t expected;            /* bytes that shape and datatype require */
  struct tensor_json *reader; /* reads numbers in the JSON */
  bool opened, nested;        /* the data's bracket has been read; more brackets follow it */
  struct body_v2_text kept;   /* the text of the data, if it has to be kept */
  size_t kept_offset;         /* offset of the data in the body */
  struct tensor_bytes bytes;  /* numbers after the JSON */
  struct tensor tensor;
};

struct body_v2_output {
  bool named, chosen, binary; /* chosen: it has binary_data */
  unsigned which;             /* index of the contract's output */
};

enum body_v2_state {
  V2_BEFORE,
  V2_NAME_OR_END,
  V2_NAME,
  V2_IN_NAME,
  V2_COLON,
  V2_VALUE,
  V2_VALUE_OR_END, /* after '[' */
  V2_IN_SMALL,
  V2_IN_ID,
  V2_IN_UNKNOWN, /* within a value that is ignored */
  V2_IN_DATA,
  V2_IN_KEPT,  /* within data that is kept as text */
  V2_IN_FIELD, /* within a parameter that is a field */
  V2_COMMA_OR_END,
  V2_AFTER
};

struct body_v2 {
  struct contract_reading *into;
  uint64_t json_bytes; /* announced bytes, or BODY_UNKNOWN */
  struct arena *arena;
  struct body_v2_asked asked;
  struct body_v2_text id;
  bool binary_output;
  size_t inputs, outputs; /* how many have begun */
  struct body_v2_input input[CONTRACT_INPUTS_MAX];
  struct body_v2_output output[CONTRACT_OUTPUTS_MAX];

  enum body_v2_state state;
  size_t depth; /* levels open */
  struct {
    enum body_v2_level level;
    uint64_t seen; /* a bit per key */
  } open[4];
  enum body_v2_key key;     /* the key whose value is read */
  unsigned field;           /* V2_KEY_FIELD: index of the field */
  uint64_t parameters_seen; /* a bit per field */
  size_t offset;            /* bytes of the body that have been read */
  bool json_ended;
  size_t block;            /* the input whose binary data is next */
  struct body_field value; /* V2_KEY_FIELD: its value */
  struct error *e;         /* the first failure; nothing is read after it */
  struct small_text small;
};

/* The input or output whose object is open. */
static inline struct body_v2_input *body_v2_input(struct body_v2 *b) {
  return &b->input[b->inputs - 1];
}
static inline struct body_v2_output *body_v2_output(struct body_v2 *b) {
  return &b->output[b->outputs - 1];
}

/* --- body_v2_where --- */

/* A value of the JSON: an object of this level, in a list the `index`th, or the value of its key.
 */
struct body_v2_place {
  enum body_v2_level level;
  size_t index;
  const char *key; /* or NULL */
};

void body_v2_point(const struct body_v2_place *at, char pointer[ERROR_POINTER_SIZE]);

/* Fails with invalid-request at that place; for failures that only this format has. */
enum status body_v2_refuse(struct body_v2 *b, struct body_v2_place at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static inline struct body_v2_place body_v2_at_input(const struct body_v2_input *in,
                                                    const char *key) {
  return (struct body_v2_place){V2_INPUT, in->index, key};
}

/* Returns the place of the value of b->key. */
struct body_v2_place body_v2_at_key(const struct body_v2 *b);

/* Fails at the value of b->key: it must be of this kind. */
enum status body_v2_refuse_kind(struct body_v2 *b, const char *kind);

/* --- body_v2_values --- */

/* Finds the key with the name in b->small, a JSON string, in an object of this level; sets b->key
 * and b->field. */
enum status body_v2_find_key(struct body_v2 *b, enum body_v2_level level);
const char *body_v2_key_name(const struct body_v2 *b); /* name of b->key */
const char *body_v2_datatype_name(enum tensor_dtype dtype);

/* Parses the complete text of a small value, in b->small, and stores its value. */
enum status body_v2_end_small(struct body_v2 *b);

/* --- body_v2_input --- */

/* Returns whether the input's data can be read as it arrives. */
static inline bool body_v2_input_is_known(const struct body_v2_input *in) {
  return in->is && in->shaped && in->typed;
}

/* Reads the data of the open input, from its bracket on. Returns how many bytes were read. */
size_t body_v2_data_feed(struct body_v2 *b, const char *text, size_t length, size_t offset,
                         bool *complete);

/* Appends text that is kept. */
enum status body_v2_text_keep(struct body_v2 *b, struct body_v2_text *t, const char *text,
                              size_t length);

/* Ends the object of the open input. */
enum status body_v2_end_input(struct body_v2 *b);

/* Reads bytes after the JSON. */
enum status body_v2_blocks_feed(struct body_v2 *b, const char *bytes, size_t size);

/* Ends the binary data: fails if it is incomplete. */
enum status body_v2_end_blocks(struct body_v2 *b);

#endif
