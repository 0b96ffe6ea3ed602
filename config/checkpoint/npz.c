/* npz: reads archives; the only file that calls libzip.
 *
 * A zip archive describes itself in three places that may contradict each other, in fields of two
 * sizes. libzip has met hostile archives for twenty years; with zlib alone all of that would have
 * to be written here. libzip reads through a source of this file, so that the reason of a failed
 * read is in our words. */
#include "config/checkpoint/npz.h"

#include <stdlib.h>
#include <string.h>

#include <zip.h>

#include "config/document/file.h"
#include "config/document/text.h"
#include "core/base/size.h"

enum {
  OPEN_MOST = 4,          /* members open at once: a weight and its bias are read alternately */
  SKIP = 16 * 1024,       /* bytes that are skipped at a time */
  DEFLATE_AT_MOST = 1032, /* most bytes that one deflated byte expands to */
  ZLIB_NO_MEMORY = -4,    /* Z_MEM_ERROR, which libzip passes on */
};

/* An open member, and the position in it. */
struct npz_stream {
  zip_file_t *file; /* NULL: unused */
  size_t index;
  uint64_t at;   /* in the array's numbers */
  uint64_t used; /* time of the last use, by the clock of the archive */
};

struct npz_member {
  struct npz_array array;
  char *name;
  zip_uint64_t place; /* in the archive */
  size_t front;       /* bytes before the numbers */
};

struct npz {
  zip_t *archive;
  /* The source that libzip reads from. */
  int fd;
  uint64_t size, at;
  struct error fault; /* the reason of a failed read */
  zip_error_t zip_fault;

  struct npz_stream open[OPEN_MOST];
  uint64_t clock;
  size_t count;
  struct npz_member *member; /* [count], by name */
};

bool npz_begins(const unsigned char *bytes, size_t size) {
  return size >= 4 && (memcmp(bytes, "PK\3\4", 4) == 0 || memcmp(bytes, "PK\5\6", 4) == 0);
}

/* --- the source: libzip's requests, served from the file --- */

static zip_int64_t source_read(struct npz *z, void *out, uint64_t size) {
  const uint64_t n = z->at < z->size ? z->size - z->at : 0;
  const size_t part = (size_t)(n < size ? n : size);
  z->fault = (struct error){0};
  if (file_read_at(z->fd, z->at, out, part, &z->fault)) {
    zip_error_set(&z->zip_fault, ZIP_ER_READ, 0);
    return -1;
  }
  z->at += part;
  return (zip_int64_t)part;
}

static zip_int64_t source_serve(void *context, void *data, zip_uint64_t size,
                                zip_source_cmd_t command) {
  struct npz *z = context;
  zip_stat_t *about = data;
  zip_int64_t to;
  switch (command) {
  case ZIP_SOURCE_SUPPORTS:
    return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE,
                                          ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE,
                                          ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, -1);
  case ZIP_SOURCE_OPEN:
    z->at = 0;
    return 0;
  case ZIP_SOURCE_READ:
    return source_read(z, data, size);
  case ZIP_SOURCE_SEEK:
    to = zip_source_seek_compute_offset(z->at, z->size, data, size, &z->zip_fault);
    if (to < 0) return -1;
    z->at = (uint64_t)to;
    return 0;
  case ZIP_SOURCE_TELL:
    return (zip_int64_t)z->at;
  case ZIP_SOURCE_STAT:
    zip_stat_init(about);
    about->size = z->size;
    about->valid = ZIP_STAT_SIZE;
    return sizeof *about;
  case ZIP_SOURCE_ERROR:
    return zip_error_to_data(&z->zip_fault, data, size);
  default: /* close and free: nothing to do, the file is the caller's */
    return 0;
  }
}

/* Sets the reason: in our words if the file could not be read, else in libzip's. */
static enum status explain_zip_error(struct npz *z, zip_error_t *fault, struct error *e) {
  const int code = zip_error_code_zip(fault);
  const struct error own = z->fault;
  z->fault = (struct error){0};
  const bool zlib_has_none = code == ZIP_ER_ZLIB && zip_error_code_system(fault) == ZLIB_NO_MEMORY;
  if (code == ZIP_ER_MEMORY || zlib_has_none) return error_no_memory(e);
  if (own.status) return error_set(e, own.status, "%s", own.detail);
  if (code == ZIP_ER_CRC)
    return error_set(e, STATUS_CONFIG, "does not match its checksum in the zip archive");
  if (code == ZIP_ER_NOZIP)
    return error_set(e, STATUS_CONFIG, "the zip archive has no directory at its end: cut short?");
  return error_set(e, STATUS_CONFIG, "the zip archive is damaged: %s", zip_error_strerror(fault));
}

/* --- members --- */

/* Reads `size` bytes, or fewer at the end of the member. Returns the number read; -1
 * with an error. */
static int64_t read_some(struct npz *z, zip_file_t *file, void *out, size_t size, struct error *e) {
  size_t got = 0;
  while (got < size) {
    const zip_int64_t n = zip_fread(file, (char *)out + got, size - got);
    if (n < 0) explain_zip_error(z, zip_file_get_error(file), e);
    if (n < 0) return -1;
    if (n == 0) break;
    got += (size_t)n;
  }
  return (int64_t)got;
}

static zip_file_t *open_member(struct npz *z, zip_uint64_t place, struct error *e) {
  zip_file_t *file = zip_fopen_index(z->archive, place, 0);
  if (!file) explain_zip_error(z, zip_get_error(z->archive), e);
  return file;
}

/* Reads the .npy header of an open member, up to its first number. */
static enum status read_npy_header(struct npz *z, struct npz_member *m, zip_file_t *file,
                                   struct error *e) {
  unsigned char prefix[NPY_PREFIX_MOST];
  char literal[NPY_LITERAL_MOST];
  size_t length, first;
  int64_t n = read_some(z, file, prefix, NPY_PREFIX_LEAST, e);
  if (n == NPY_PREFIX_LEAST && prefix[6] > 1) {
    const int64_t more = read_some(z, file, prefix + n, NPY_PREFIX_MOST - NPY_PREFIX_LEAST, e);
    n = more < 0 ? more : n + more;
  }
  if (n < 0 || npy_measure(prefix, (size_t)n, &first, &length, e)) return e->status;
  n = read_some(z, file, literal, length, e);
  if (n < 0) return e->status;
  if ((size_t)n < length) return error_set(e, STATUS_CONFIG, "ends within its .npy header");
  m->front = first + length;
  return npy_parse(literal, length, &m->array.about, e);
}

/* Checks the description of a member: that its kind is supported, and that its bytes can expand to
 * as many as it claims. */
static enum status check_member(const struct npz *z, const zip_stat_t *about, struct error *e) {
  static const zip_uint64_t all = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                                  ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if ((about->valid & all) != all)
    return error_set(e, STATUS_CONFIG, "is described incompletely by the zip archive");
  if (about->encryption_method != ZIP_EM_NONE) return error_set(e, STATUS_CONFIG, "is encrypted");
  if (about->comp_method != ZIP_CM_STORE && about->comp_method != ZIP_CM_DEFLATE)
    return error_set(e, STATUS_CONFIG,
                     "is compressed by method %u of zip; supported: stored (0), deflated (8)",
                     about->comp_method);
  const uint64_t most = about->comp_method == ZIP_CM_STORE ? 1 : DEFLATE_AT_MOST;
  if (about->comp_size > z->size || about->size / most > about->comp_size)
    return error_set(e, STATUS_CONFIG, "claims %ju bytes, more than the archive can hold",
                     (uintmax_t)about->size);
  return STATUS_OK;
}

static enum status read_member(struct npz *z, struct npz_member *m, const zip_stat_t *stat,
                               struct error *e) {
  const struct npy *about = &m->array.about;
  uint64_t needed;
  if (check_member(z, stat, e)) return e->status;
  zip_file_t *file = open_member(z, m->place, e);
  if (!file) return e->status;
  read_npy_header(z, m, file, e);
  zip_fclose(file);
  if (e->status) return e->status;
  m->array.bytes = stat->size - m->front;   /* not negative: the header has been read */
  if (about->number == 0) return STATUS_OK; /* an unknown type, whose numbers are never used */
  if (__builtin_mul_overflow(about->count, about->number, &needed) || needed != m->array.bytes)
    return error_set(e, STATUS_CONFIG, "%ju numbers of type %s do not fill its %ju bytes",
                     (uintmax_t)about->count, about->dtype, (uintmax_t)m->array.bytes);
  return STATUS_OK;
}

static enum status add_member(struct npz *z, zip_uint64_t place, struct error *e) {
  static const char end[] = ".npy";
  zip_stat_t about;
  if (zip_stat_index(z->archive, place, 0, &about) < 0)
    return explain_zip_error(z, zip_get_error(z->archive), e);
  if (!(about.valid & ZIP_STAT_NAME) || !about.name || !text_ends_with(about.name, end))
    return STATUS_OK;
  struct npz_member *m = &z->member[z->count];
  *m = (struct npz_member){.place = place,
                           .name = strndup(about.name, strlen(about.name) - (sizeof end - 1))};
  if (!m->name) return error_no_memory(e);
  z->count++;
  m->array.name = m->name;
  if (read_member(z, m, &about, e) == STATUS_OK) return STATUS_OK;
  const struct error why = *e;
  *e = (struct error){0};
  return error_set(e, why.status, "array \"%.100s\": %.500s", m->name, why.detail);
}

static int compare_members(const void *left, const void *right) {
  const struct npz_member *a = left, *b = right;
  return strcmp(a->name, b->name);
}

/* Has it the member in which torch.save describes its tensors? Its folder may have any name. */
static bool holds_pickle(struct npz *z) {
  const zip_int64_t members = zip_get_num_entries(z->archive, 0);
  for (zip_int64_t i = 0; i < members; i++) {
    const char *name = zip_get_name(z->archive, (zip_uint64_t)i, ZIP_FL_ENC_RAW);
    if (name && text_file_name(name) > name + 1 && text_ends_with(name, "/data.pkl")) return true;
  }
  return false;
}

static enum status list_members(struct npz *z, struct error *e) {
  const zip_int64_t members = zip_get_num_entries(z->archive, 0);
  const size_t count = members > 0 ? (size_t)members : 0;
  z->member = calloc(count + 1, sizeof *z->member);
  if (!z->member) return error_no_memory(e);
  for (size_t i = 0; i < count; i++)
    if (add_member(z, i, e)) return e->status;
  if (z->count == 0)
    return error_set(e, STATUS_CONFIG, "a zip archive without a member whose name ends with .npy");
  qsort(z->member, z->count, sizeof *z->member, compare_members);
  for (size_t i = 1; i < z->count; i++)
    if (compare_members(&z->member[i - 1], &z->member[i]) == 0)
      return error_set(e, STATUS_CONFIG, "two arrays are called \"%.100s\"", z->member[i].name);
  return STATUS_OK;
}

/* --- numbers --- */

static enum status read_member_bytes(struct npz *z, zip_file_t *file, void *out, size_t size,
                                     struct error *e) {
  const int64_t n = read_some(z, file, out, size, e);
  if (n >= 0 && (size_t)n < size) error_set(e, STATUS_CONFIG, "ends before its last number");
  return e->status;
}

static enum status skip_bytes(struct npz *z, zip_file_t *file, uint64_t size, struct error *e) {
  unsigned char passed[SKIP];
  for (size_t n; size > 0; size -= n) {
    n = size < SKIP ? (size_t)size : SKIP;
    if (read_member_bytes(z, file, passed, n, e)) return e->status;
  }
  return STATUS_OK;
}

static void close_stream(struct npz_stream *s) {
  if (s->file) zip_fclose(s->file);
  *s = (struct npz_stream){0};
}

/* A stream of the array at byte `from`: the open one if that is not past it, else a new one in
 * place of the least recently used one. */
static struct npz_stream *stream_at(struct npz *z, size_t index, uint64_t from, struct error *e) {
  struct npz_stream *s = NULL, *oldest = &z->open[0];
  for (size_t i = 0; i < OPEN_MOST; i++) {
    struct npz_stream *other = &z->open[i];
    if (other->file && other->index == index) s = other;
    if (other->used < oldest->used) oldest = other;
  }
  if (!s || s->at > from) {
    s = s ? s : oldest;
    close_stream(s);
    s->file = open_member(z, z->member[index].place, e);
    if (!s->file) return NULL;
    s->index = index;
    skip_bytes(z, s->file, z->member[index].front, e);
  }
  s->used = ++z->clock;
  if (e->status == STATUS_OK) skip_bytes(z, s->file, from - s->at, e);
  s->at = from;
  if (e->status == STATUS_OK) return s;
  close_stream(s);
  return NULL;
}

enum status npz_read(struct npz *z, size_t index, uint64_t from, void *out, size_t size,
                     struct error *e) {
  struct npz_stream *s = stream_at(z, index, from, e);
  if (!s) return e->status;
  if (read_member_bytes(z, s->file, out, size, e) == STATUS_OK) s->at += size;
  /* Reading past the last number makes libzip compare the checksum. */
  char more;
  if (e->status == STATUS_OK && s->at == z->member[index].array.bytes &&
      read_some(z, s->file, &more, 1, e) > 0)
    error_set(e, STATUS_CONFIG, "has bytes after its last number");
  if (e->status) close_stream(s);
  return e->status;
}

/* --- the archive --- */

static enum status open_archive(struct npz *z, struct error *e) {
  zip_error_t fault;
  zip_error_init(&fault);
  zip_source_t *source = zip_source_function_create(source_serve, z, &fault);
  if (source) z->archive = zip_open_from_source(source, ZIP_RDONLY, &fault);
  if (!z->archive) {
    explain_zip_error(z, &fault, e);
    if (source) zip_source_free(source);
  }
  zip_error_fini(&fault);
  return e->status;
}

struct npz *npz_open(int fd, uint64_t size, bool *pickled, struct error *e) {
  struct npz *z = calloc(1, sizeof *z);
  *pickled = false;
  if (!z) {
    error_no_memory(e);
    return NULL;
  }
  z->fd = fd;
  z->size = size;
  zip_error_init(&z->zip_fault);
  if (open_archive(z, e) == STATUS_OK && !(*pickled = holds_pickle(z)) &&
      list_members(z, e) == STATUS_OK)
    return z;
  npz_free(z);
  return NULL;
}

void npz_free(struct npz *z) {
  if (!z) return;
  for (size_t i = 0; i < OPEN_MOST; i++) close_stream(&z->open[i]);
  if (z->archive) zip_discard(z->archive);
  for (size_t i = 0; i < z->count; i++) free(z->member[i].name);
  free(z->member);
  zip_error_fini(&z->zip_fault);
  free(z);
}

size_t npz_count(const struct npz *z) { return z->count; }

const struct npz_array *npz_at(const struct npz *z, size_t index) {
  return &z->member[index].array;
}
