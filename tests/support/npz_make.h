/* npz_make: zip archives of arrays for tests, right ones and wrong ones. */
#ifndef TESTS_NPZ_MAKE_H
#define TESTS_NPZ_MAKE_H

#include <stddef.h>

enum { NPZ_STORED = 0, NPZ_DEFLATED = 8, NPZ_BZIP2 = 12 };

/* A .npy file in memory: the front of a version (1 to 3) with a literal, and bytes behind it. */
struct npy_made {
  unsigned char *bytes; /* malloc'ed to exactly its size */
  size_t size;
};

struct npy_made npy_make(unsigned major, const char *literal, const void *data, size_t size);

/* An array whose numbers count up from 1 by 1/16, of rank 1 (columns 0) or 2. */
struct npy_made npy_make_floats(size_t rows, size_t columns);

struct npz_made {
  void *archive;
  const char *path;
};

struct npz_made npz_make(const char *path);
void npz_add(struct npz_made *z, const char *member, struct npy_made npy,
             int method); /* frees it */
void npz_add_encrypted(struct npz_made *z, const char *member, struct npy_made npy);
void npz_write(struct npz_made *z);

#endif
