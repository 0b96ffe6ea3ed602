/* fuzz_safetensors: requests in binary, in one piece and in many.
 *
 * The first byte: bit 0: what follows is the header and, behind FUZZ_PART, the data, which this
 * program joins to a body; else the body itself; bit 1: the measures of heads are wanted; bit 2:
 * the length of the body is not announced. The second byte says how the body is cut and which model
 * it is for. */
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {(const char *)data, size};
  const unsigned char how = input_byte(&in), cut = input_byte(&in);
  const struct model *m = fuzz_model(cut);
  struct input body = in;
  if (how & 1) {
    const struct input header = input_part(&in);
    body = input_framed(header, in);
  }
  const struct body_terms terms = {.ask = how & 2 ? ASK_HEADS : ASK_ATTENTION,
                                   .form = BODY_SAFETENSORS,
                                   .body_bytes = how & 4 ? BODY_UNKNOWN : body.size,
                                   .json_bytes = BODY_UNKNOWN,
                                   .wants_binary = true};
  struct fuzz_body whole, pieces;
  fuzz_body_run(&whole, m, &terms, body, 0);
  fuzz_body_run(&pieces, m, &terms, body, cut);
  fuzz_body_must_agree(&whole, &pieces, m);
  if (whole.error.status) error_must_be_told(&whole.error);
  fuzz_body_end(&whole);
  fuzz_body_end(&pieces);
  if (how & 1) free((char *)body.bytes);
  return 0;
}
