/* safetensors_make: builds checkpoint files in memory, right ones and wrong ones. */
#ifndef TESTS_SAFETENSORS_MAKE_H
#define TESTS_SAFETENSORS_MAKE_H

#include <stddef.h>

struct made {
  unsigned char *bytes; /* malloc'ed to exactly its size, so that a read beyond it is seen */
  size_t size;
  char header[32768]; /* what has been added so far, without the braces */
  unsigned char *data;
  size_t data_size;
};

/* Adds a tensor of rank 1 (columns 0) or 2 whose numbers count up from 1 by 1/16; or bytes as they
 * are, of any type and shape. */
void made_add(struct made *m, const char *name, size_t rows, size_t columns);
void made_add_bytes(struct made *m, const char *name, const char *dtype, const char *shape,
                    const void *bytes, size_t size);
void made_finish(struct made *m);

/* A file from a header as it is written, with `data_size` zero bytes behind it. */
void made_raw(struct made *m, const void *header, size_t header_size, size_t data_size);

void made_write(const struct made *m, const char *path);
void made_free(struct made *m);

#endif
