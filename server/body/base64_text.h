/* base64_text: a JSON string of base64, chunk by chunk, into an array of bytes. Private to
 * tensor_base64. */
#ifndef SERVER_BASE64_TEXT_H
#define SERVER_BASE64_TEXT_H

#include "server/json/tensor_bytes.h"
#include "server/text/base64.h"
#include "server/text/json_string.h"

enum {
  BASE64_GROUP = 4,                           /* characters for three bytes */
  BASE64_TEXT_MARGIN = 2 + BASE64_READ_MARGIN /* bytes: a group may have two too many */
};

struct base64_text {
  struct tensor_bytes *bytes;
  const char *pointer; /* JSON Pointer of the string */
  struct json_string string;
  char group[BASE64_GROUP]; /* a group that is read character by character */
  size_t group_length, group_offset;
  bool padded; /* the last group has been read */
};

/* Begins after the opening quote. `bytes` is at the beginning of an array and knows its size. */
void base64_text_init(struct base64_text *t, struct tensor_bytes *bytes, const char *pointer);

/* Reads the bytes of text[0 .. length), which is at `offset` of the body, that belong to the
 * string. Returns the byte to continue from, or NULL with an error. *complete is whether the string
 * has ended. */
const char *base64_text_feed(struct base64_text *t, const char *text, size_t length, size_t offset,
                             bool *complete, struct error *e);

#endif
