/* npz: reads the .npy members of a zip archive. */
#include "config/checkpoint/npz.h"

#include <stdlib.h>
#include <string.h>

#include "config/document/text.h"

struct npz_member {
  struct npz_array array;
  char *name;
  size_t place; /* in the archive */
  size_t front; /* bytes before the numbers */
};

struct npz {
  struct archive *archive;
  size_t count;
  struct npz_member *member; /* [count], by name */
};

/* Reads the .npy header of a member, up to its first number. */
static enum status read_npy_header(struct npz *z, struct npz_member *m, struct error *e) {
  unsigned char prefix[NPY_PREFIX_MOST];
  char literal[NPY_LITERAL_MOST];
  size_t length, first;
  int64_t n = archive_read(z->archive, m->place, 0, prefix, NPY_PREFIX_LEAST, e);
  if (n == NPY_PREFIX_LEAST && prefix[6] > 1) {
    const int64_t more = archive_read(z->archive, m->place, NPY_PREFIX_LEAST, prefix + n,
                                      NPY_PREFIX_MOST - NPY_PREFIX_LEAST, e);
    n = more < 0 ? more : n + more;
  }
  if (n < 0 || npy_measure(prefix, (size_t)n, &first, &length, e)) return e->status;
  n = archive_read(z->archive, m->place, first, literal, length, e);
  if (n < 0) return e->status;
  if ((size_t)n < length) return error_set(e, STATUS_CONFIG, "ends within its .npy header");
  m->front = first + length;
  return npy_parse(literal, length, &m->array.about, e);
}

static enum status read_member(struct npz *z, struct npz_member *m, struct error *e) {
  const struct npy *about = &m->array.about;
  struct archive_member member;
  uint64_t needed;
  if (archive_check(z->archive, m->place, &member, e) || read_npy_header(z, m, e)) return e->status;
  m->array.bytes = member.size - m->front;  /* not negative: the header has been read */
  if (about->number == 0) return STATUS_OK; /* an unknown type, whose numbers are never used */
  if (__builtin_mul_overflow(about->count, about->number, &needed) || needed != m->array.bytes)
    return error_set(e, STATUS_CONFIG, "%ju numbers of type %s do not fill its %ju bytes",
                     (uintmax_t)about->count, about->dtype, (uintmax_t)m->array.bytes);
  return STATUS_OK;
}

static enum status add_member(struct npz *z, size_t place, struct error *e) {
  static const char end[] = ".npy";
  const char *name = archive_name(z->archive, place, e);
  if (!name || !text_ends_with(name, end)) return e->status;
  struct npz_member *m = &z->member[z->count];
  *m = (struct npz_member){.place = place, .name = strndup(name, strlen(name) - (sizeof end - 1))};
  if (!m->name) return error_no_memory(e);
  z->count++;
  m->array.name = m->name;
  if (read_member(z, m, e) == STATUS_OK) return STATUS_OK;
  const struct error why = *e;
  *e = (struct error){0};
  return error_set(e, why.status, "array \"%.100s\": %.500s", m->name, why.detail);
}

static int compare_members(const void *left, const void *right) {
  const struct npz_member *a = left, *b = right;
  return strcmp(a->name, b->name);
}

static enum status list_members(struct npz *z, struct error *e) {
  const size_t count = archive_count(z->archive);
  z->member = calloc(count + 1, sizeof *z->member);
  if (!z->member) return error_no_memory(e);
  for (size_t i = 0; i < count; i++)
    if (add_member(z, i, e)) return e->status;
  if (z->count == 0)
    return error_set(e, STATUS_CONFIG,
                     "a zip archive with neither a member whose name ends with .npy, as "
                     "numpy.savez writes it, nor one with /data.pkl, as torch.save does");
  qsort(z->member, z->count, sizeof *z->member, compare_members);
  for (size_t i = 1; i < z->count; i++)
    if (compare_members(&z->member[i - 1], &z->member[i]) == 0)
      return error_set(e, STATUS_CONFIG, "two arrays are called \"%.100s\"", z->member[i].name);
  return STATUS_OK;
}

struct npz *npz_open(struct archive *archive, struct error *e) {
  struct npz *z = calloc(1, sizeof *z);
  if (!z) {
    error_no_memory(e);
    return NULL;
  }
  z->archive = archive;
  list_members(z, e);
  archive_rest(archive);
  if (!e->status) return z;
  npz_free(z);
  return NULL;
}

void npz_free(struct npz *z) {
  if (!z) return;
  for (size_t i = 0; i < z->count; i++) free(z->member[i].name);
  free(z->member);
  free(z);
}

size_t npz_count(const struct npz *z) { return z->count; }

const struct npz_array *npz_at(const struct npz *z, size_t index) {
  return &z->member[index].array;
}

enum status npz_read(struct npz *z, size_t index, uint64_t from, void *out, size_t size,
                     struct error *e) {
  const struct npz_member *m = &z->member[index];
  const int64_t n = archive_read(z->archive, m->place, m->front + from, out, size, e);
  if (n >= 0 && (size_t)n < size) error_set(e, STATUS_CONFIG, "ends before its last number");
  /* Reading past the last number makes libzip compare the checksum. */
  char more;
  const uint64_t end = m->front + m->array.bytes;
  if (e->status == STATUS_OK && m->front + from + size == end &&
      archive_read(z->archive, m->place, end, &more, 1, e) > 0)
    error_set(e, STATUS_CONFIG, "has bytes after its last number");
  return e->status;
}
