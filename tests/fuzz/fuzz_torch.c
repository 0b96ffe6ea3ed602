/* fuzz_torch: files of torch.save.
 *
 * The first byte says what follows: `p` the pickle of an archive with three small storages, which
 * this program makes around it; `z` a whole file. What is accepted agrees with itself: each tensor
 * can be read from any number on, and is the same in whichever stretches it is read. */
#include <stdlib.h>
#include <string.h>

#include "config/checkpoint/checkpoint.h"
#include "core/base/size.h"
#include "tests/fuzz/fuzz.h"

enum { NUMBERS_MOST = 4096, AT_ONCE = 7, MEMBERS_MOST = 8, FILE_MOST = 16 * 1024 };

/* A zip archive of stored members, without their checksums. */
struct zipped {
  unsigned char bytes[FILE_MOST];
  size_t size, count;
  struct {
    const char *name;
    size_t at, size;
  } member[MEMBERS_MOST];
};

static void put(struct zipped *z, uint32_t value, size_t size) {
  for (size_t i = 0; i < size; i++) z->bytes[z->size++] = (unsigned char)(value >> 8 * i);
}

static void put_bytes(struct zipped *z, const void *bytes, size_t size) {
  memcpy(z->bytes + z->size, bytes, size);
  z->size += size;
}

/* The fields that the header of a member and its entry in the directory share. */
static void put_front(struct zipped *z, const char *name, size_t size) {
  put(z, 0, 2);          /* flags */
  put(z, 0, 2);          /* stored */
  put(z, 0x00210000, 4); /* 1980-01-01 */
  put(z, 0, 4);          /* checksum */
  put(z, (uint32_t)size, 4);
  put(z, (uint32_t)size, 4);
  put(z, (uint32_t)strlen(name), 2);
  put(z, 0, 2); /* extra field */
}

static void add_member(struct zipped *z, const char *name, const void *bytes, size_t size) {
  z->member[z->count].name = name;
  z->member[z->count].at = z->size;
  z->member[z->count++].size = size;
  put_bytes(z, "PK\3\4", 4);
  put(z, 20, 2); /* version */
  put_front(z, name, size);
  put_bytes(z, name, strlen(name));
  put_bytes(z, bytes, size);
}

static void finish(struct zipped *z) {
  const size_t begin = z->size;
  for (size_t i = 0; i < z->count; i++) {
    put_bytes(z, "PK\1\2", 4);
    put(z, 20, 2); /* made by */
    put(z, 20, 2); /* version */
    put_front(z, z->member[i].name, z->member[i].size);
    put(z, 0, 2); /* comment */
    put(z, 0, 4); /* disk, attributes within */
    put(z, 0, 4); /* attributes */
    put(z, (uint32_t)z->member[i].at, 4);
    put_bytes(z, z->member[i].name, strlen(z->member[i].name));
  }
  const size_t size = z->size - begin;
  put_bytes(z, "PK\5\6\0\0\0\0", 8);
  put(z, (uint32_t)z->count, 2);
  put(z, (uint32_t)z->count, 2);
  put(z, (uint32_t)size, 4);
  put(z, (uint32_t)begin, 4);
  put(z, 0, 2);
}

static void config_must_be_told(const struct error *e) {
  must(e->status == STATUS_CONFIG && e->detail[0] && !strchr(e->detail, '\n'));
}

/* Reads the numbers at once, and then a few at a time from the last ones on. */
static void read_tensor(struct checkpoint *c, const struct checkpoint_entry *t) {
  static float whole[NUMBERS_MOST], part[AT_ONCE];
  struct error e = {0};
  const size_t count = t->count < NUMBERS_MOST ? (size_t)t->count : NUMBERS_MOST;
  if (checkpoint_read_floats(c, t, 0, count, whole, &e)) {
    config_must_be_told(&e);
    return;
  }
  for (size_t end = count; end > 0;) {
    const size_t n = size_min(end, AT_ONCE);
    end -= n;
    must(checkpoint_read_floats(c, t, end, n, part, &e) == STATUS_OK);
    must(memcmp(whole + end, part, n * sizeof *part) == 0);
  }
}

static void read_file(struct input in) {
  struct error e = {0};
  struct fuzz_file f = fuzz_file_make(in);
  struct checkpoint *c = checkpoint_open(f.path, &e);
  if (!c) config_must_be_told(&e);
  for (size_t i = 0; c && i < checkpoint_count(c); i++) {
    const struct checkpoint_entry *t = checkpoint_at(c, i);
    must(checkpoint_find(c, t->name) && t->bytes <= in.size);
    read_tensor(c, t);
  }
  checkpoint_free(c);
  fuzz_file_close(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const float floats[] = {0, 1, -2, 3e38f, 5, 6, 7, 8, 9, 10, 11, 12};
  static struct zipped z;
  struct input in = {(const char *)data, size};
  if (input_byte(&in) != 'p') {
    read_file(in);
  } else if (in.size <= FILE_MOST / 2) {
    z.size = z.count = 0;
    add_member(&z, "w/data.pkl", in.bytes, in.size);
    add_member(&z, "w/data/0", floats, sizeof floats);
    add_member(&z, "w/data/1", "\0\1\2\3\4\5\6\7", 8);
    add_member(&z, "w/data/2", "", 0);
    finish(&z);
    char *copy = input_copy((struct input){(char *)z.bytes, z.size});
    read_file((struct input){copy, z.size});
    free(copy);
  }
  return 0;
}
