/* fuzz_v2: requests of the Open Inference Protocol, with and without binary data behind the JSON,
 * in one piece and in many.
 *
 * The first byte: bit 0: the length of the JSON is said, and is wrong if bit 1 is set. The second
 * says how the body is cut and which model it is for. Then the JSON, FUZZ_PART, the binary data. */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/rfc8259.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {(const char *)data, size};
  const unsigned char how = input_byte(&in), cut = input_byte(&in);
  const struct model *m = fuzz_model(cut);
  char *bytes = input_copy(in);
  const struct input json = input_part(&in);
  if (json.size) memcpy(bytes, json.bytes, json.size);
  if (in.size) memcpy(bytes + json.size, in.bytes, in.size);
  const struct input body = {bytes, json.size + in.size};
  const struct body_terms terms = {.form = BODY_V2,
                                   .body_bytes = body.size,
                                   .json_bytes =
                                       how & 1 ? json.size + (how >> 1 & 1) : BODY_UNKNOWN};
  struct fuzz_body whole, pieces;
  fuzz_body_run(&whole, m, &terms, body, 0);
  fuzz_body_run(&pieces, m, &terms, body, cut);
  fuzz_body_must_agree(&whole, &pieces, m);
  if (whole.error.status) error_must_be_told(&whole.error);
  const struct rfc8259 judge = rfc8259_check(body.bytes, json.size);
  if (!whole.error.status) must(how & 1 ? judge.json : rfc8259_check(bytes, body.size).json);
  fuzz_body_end(&whole);
  fuzz_body_end(&pieces);
  free(bytes);
  return 0;
}
