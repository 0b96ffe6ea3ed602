/* fuzz: what the targets share: an input taken apart, bodies fed in chunks, results compared.
 *
 * A target is a file fuzz_NAME.c with LLVMFuzzerTestOneInput. libFuzzer runs it on what it thinks
 * of (`make fuzz`), replay.c on the files of tests/fuzz/corpus/fuzz_NAME (`make test`). What must
 * hold is said with must(), which ends the process. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/build/model.h"
#include "server/attention/attention_body.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is left of an input. */
struct input {
  const char *bytes;
  size_t size;
};

unsigned char input_byte(struct input *in); /* the next byte; 0 if there is none */

/* What stands before the next byte FUZZ_PART, which is dropped; everything if there is none. */
enum { FUZZ_PART = 0x1e };
struct input input_part(struct input *in);

/* A copy in memory of its own size, so that a sanitizer sees a read beyond it; the caller frees
 * it. And one with a zero behind it. */
char *input_copy(struct input in);
char *input_text(struct input in);

/* A safetensors file or body of a header and its data: their length is put before them, so that
 * changes of the header need not hit on it. The caller frees the bytes. */
struct input input_framed(struct input header, struct input data);

/* The body of a request in the form that its letter says, and what the terms say of it: `j` JSON,
 * `s` a header of safetensors and behind FUZZ_PART the data, `v` Open Inference Protocol with
 * binary data behind FUZZ_PART. The caller frees the bytes. */
struct input input_body(struct input in, char letter, struct body_terms *terms);

/* A file of these bytes, to be opened by its path until it is closed. */
struct fuzz_file {
  int fd;
  char path[32];
};
struct fuzz_file fuzz_file_make(struct input in);
void fuzz_file_close(struct fuzz_file *f);

/* How a text is cut: the next length, from what is left. Cut 0: not at all; below 64: into pieces
 * of that size; else by chance. */
struct cutter {
  unsigned cut;
  uint64_t state;
};
struct cutter cutter_of(unsigned cut);
size_t cutter_next(struct cutter *c, size_t left);

/* Small models that differ in what the reader, the layer and the answer look at. */
enum { FUZZ_MODELS = 6 };
const struct model *fuzz_model(unsigned index); /* modulo FUZZ_MODELS */

extern const struct body_limits fuzz_limits;

/* Hands a text to the reader of a body in chunks. `e` is where that reader puts its error. */
void fuzz_feed(struct body *b, struct input text, unsigned cut, const struct error *e);

/* A body request in chunks. */
struct fuzz_body {
  struct budget budget;
  struct arena arena;
  struct attention_request request;
  struct error error; /* else it was refused */
};
void fuzz_body_run(struct fuzz_body *d, const struct model *m, const struct body_terms *terms,
                   struct input body, unsigned cut);
void fuzz_body_end(struct fuzz_body *d);

/* Is what came of them the same, to the bit and to the word? */
void fuzz_body_must_agree(const struct fuzz_body *a, const struct fuzz_body *b,
                          const struct model *m);
void error_must_agree(const struct error *a, const struct error *b);

/* Is the error one that a client's bytes may lead to, told in one line? */
void error_must_be_told(const struct error *e);

#endif
