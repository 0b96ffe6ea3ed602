/* archive: reads zip files; the only file that calls libzip.
 *
 * A zip archive describes itself in three places that may contradict each other, in fields of two
 * sizes. libzip has met hostile archives for twenty years; with zlib alone all of that would have
 * to be written here. libzip reads through a source of this file, so that the reason of a failed
 * read is in our words, and so that the place of a member is known. */
#include "config/checkpoint/archive.h"

#include <stdlib.h>
#include <string.h>

#include <zip.h>

#include "config/document/file.h"

enum {
  OPEN_MOST = 4,          /* members open at once: a weight and its bias are read alternately */
  SKIP = 16 * 1024,       /* bytes that are skipped at a time */
  DEFLATE_AT_MOST = 1032, /* most bytes that one deflated byte expands to */
  ZLIB_NO_MEMORY = -4,    /* Z_MEM_ERROR, which libzip passes on */
};

/* An open member, and the position in it. */
struct archive_stream {
  zip_file_t *file; /* NULL: unused */
  size_t member;
  uint64_t at;
  uint64_t used; /* time of the last use, by the clock of the archive */
};

struct archive {
  zip_t *zip;
  /* The source that libzip reads from. */
  int fd;
  uint64_t size, at;
  struct error fault; /* the reason of a failed read */
  zip_error_t zip_fault;

  struct archive_stream open[OPEN_MOST];
  uint64_t clock;
};

bool archive_begins(const unsigned char *bytes, size_t size) {
  return size >= 4 && (memcmp(bytes, "PK\3\4", 4) == 0 || memcmp(bytes, "PK\5\6", 4) == 0);
}

/* --- the source: libzip's requests, served from the file --- */

static zip_int64_t source_read(struct archive *a, void *out, uint64_t size) {
  const uint64_t n = a->at < a->size ? a->size - a->at : 0;
  const size_t part = (size_t)(n < size ? n : size);
  a->fault = (struct error){0};
  if (file_read_at(a->fd, a->at, out, part, &a->fault)) {
    zip_error_set(&a->zip_fault, ZIP_ER_READ, 0);
    return -1;
  }
  a->at += part;
  return (zip_int64_t)part;
}

static zip_int64_t source_serve(void *context, void *data, zip_uint64_t size,
                                zip_source_cmd_t command) {
  struct archive *a = context;
  zip_stat_t *about = data;
  zip_int64_t to;
  switch (command) {
  case ZIP_SOURCE_SUPPORTS:
    return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE,
                                          ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE,
                                          ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, -1);
  case ZIP_SOURCE_OPEN:
    a->at = 0;
    return 0;
  case ZIP_SOURCE_READ:
    return source_read(a, data, size);
  case ZIP_SOURCE_SEEK:
    to = zip_source_seek_compute_offset(a->at, a->size, data, size, &a->zip_fault);
    if (to < 0) return -1;
    a->at = (uint64_t)to;
    return 0;
  case ZIP_SOURCE_TELL:
    return (zip_int64_t)a->at;
  case ZIP_SOURCE_STAT:
    zip_stat_init(about);
    about->size = a->size;
    about->valid = ZIP_STAT_SIZE;
    return sizeof *about;
  case ZIP_SOURCE_ERROR:
    return zip_error_to_data(&a->zip_fault, data, size);
  default: /* close and free: nothing to do, the file is the caller's */
    return 0;
  }
}

/* Sets the reason: in our words if the file could not be read, else in libzip's. */
static enum status explain_zip_error(struct archive *a, zip_error_t *fault, struct error *e) {
  const int code = zip_error_code_zip(fault);
  const struct error own = a->fault;
  a->fault = (struct error){0};
  const bool zlib_has_none = code == ZIP_ER_ZLIB && zip_error_code_system(fault) == ZLIB_NO_MEMORY;
  if (code == ZIP_ER_MEMORY || zlib_has_none) return error_no_memory(e);
  if (own.status) return error_set(e, own.status, "%s", own.detail);
  if (code == ZIP_ER_CRC)
    return error_set(e, STATUS_CONFIG, "does not match its checksum in the zip archive");
  if (code == ZIP_ER_NOZIP)
    return error_set(e, STATUS_CONFIG, "the zip archive has no directory at its end: cut short?");
  return error_set(e, STATUS_CONFIG, "the zip archive is damaged: %s", zip_error_strerror(fault));
}

/* --- the archive --- */

static enum status open_zip(struct archive *a, struct error *e) {
  zip_error_t fault;
  zip_error_init(&fault);
  zip_source_t *source = zip_source_function_create(source_serve, a, &fault);
  if (source) a->zip = zip_open_from_source(source, ZIP_RDONLY, &fault);
  if (!a->zip) {
    explain_zip_error(a, &fault, e);
    if (source) zip_source_free(source);
  }
  zip_error_fini(&fault);
  return e->status;
}

struct archive *archive_open(int fd, uint64_t size, struct error *e) {
  struct archive *a = calloc(1, sizeof *a);
  if (!a) {
    error_no_memory(e);
    return NULL;
  }
  a->fd = fd;
  a->size = size;
  zip_error_init(&a->zip_fault);
  if (open_zip(a, e) == STATUS_OK) return a;
  archive_free(a);
  return NULL;
}

static void close_stream(struct archive_stream *s) {
  if (s->file) zip_fclose(s->file);
  *s = (struct archive_stream){0};
}

void archive_rest(struct archive *a) {
  for (size_t i = 0; i < OPEN_MOST; i++) close_stream(&a->open[i]);
}

void archive_free(struct archive *a) {
  if (!a) return;
  archive_rest(a);
  if (a->zip) zip_discard(a->zip);
  zip_error_fini(&a->zip_fault);
  free(a);
}

/* --- members --- */

size_t archive_count(const struct archive *a) {
  const zip_int64_t members = zip_get_num_entries(a->zip, 0);
  return members > 0 ? (size_t)members : 0;
}

const char *archive_name(struct archive *a, size_t member, struct error *e) {
  const char *name = zip_get_name(a->zip, member, ZIP_FL_ENC_GUESS);
  if (!name) explain_zip_error(a, zip_get_error(a->zip), e);
  return name;
}

enum status archive_check(struct archive *a, size_t member, struct archive_member *out,
                          struct error *e) {
  static const zip_uint64_t all =
      ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  zip_stat_t about;
  if (zip_stat_index(a->zip, member, 0, &about) < 0)
    return explain_zip_error(a, zip_get_error(a->zip), e);
  if ((about.valid & all) != all)
    return error_set(e, STATUS_CONFIG, "is described incompletely by the zip archive");
  if (about.encryption_method != ZIP_EM_NONE) return error_set(e, STATUS_CONFIG, "is encrypted");
  if (about.comp_method != ZIP_CM_STORE && about.comp_method != ZIP_CM_DEFLATE)
    return error_set(e, STATUS_CONFIG,
                     "is compressed by method %u of zip; supported: stored (0), deflated (8)",
                     about.comp_method);
  *out = (struct archive_member){.size = about.size, .stored = about.comp_method == ZIP_CM_STORE};
  if (about.comp_size > a->size ||
      about.size / (out->stored ? 1 : DEFLATE_AT_MOST) > about.comp_size)
    return error_set(e, STATUS_CONFIG, "claims %ju bytes, more than the archive can hold",
                     (uintmax_t)about.size);
  return STATUS_OK;
}

/* Reads `size` bytes, or fewer at the end of the member. Returns the number read; -1
 * with an error. */
static int64_t read_some(struct archive *a, struct archive_stream *s, void *out, size_t size,
                         struct error *e) {
  size_t got = 0;
  while (got < size) {
    const zip_int64_t n = zip_fread(s->file, (char *)out + got, size - got);
    if (n < 0) explain_zip_error(a, zip_file_get_error(s->file), e);
    if (n < 0) return -1;
    if (n == 0) break;
    got += (size_t)n;
  }
  s->at += got;
  return (int64_t)got;
}

/* The open stream of the member if it is not past byte `from`, else a new one in place of the least
 * recently used one. NULL with an error. */
static struct archive_stream *stream_of(struct archive *a, size_t member, uint64_t from,
                                        struct error *e) {
  struct archive_stream *s = NULL, *oldest = &a->open[0];
  for (size_t i = 0; i < OPEN_MOST; i++) {
    struct archive_stream *other = &a->open[i];
    if (other->file && other->member == member) s = other;
    if (other->used < oldest->used) oldest = other;
  }
  if (!s || s->at > from) {
    s = s ? s : oldest;
    close_stream(s);
    s->file = zip_fopen_index(a->zip, member, 0);
    if (!s->file) {
      explain_zip_error(a, zip_get_error(a->zip), e);
      return NULL;
    }
    s->member = member;
  }
  s->used = ++a->clock;
  return s;
}

int64_t archive_read(struct archive *a, size_t member, uint64_t from, void *out, size_t size,
                     struct error *e) {
  struct archive_stream *s = stream_of(a, member, from, e);
  unsigned char passed[SKIP];
  int64_t n = s ? 0 : -1;
  while (s && s->at < from) {
    const uint64_t left = from - s->at;
    n = read_some(a, s, passed, left < SKIP ? (size_t)left : SKIP, e);
    if (n <= 0) break;
  }
  if (s && s->at == from) n = read_some(a, s, out, size, e);
  if (s && n < 0) close_stream(s);
  return n;
}

enum status archive_place(struct archive *a, size_t member, uint64_t *offset, struct error *e) {
  char first;
  zip_file_t *file = zip_fopen_index(a->zip, member, 0);
  if (!file) return explain_zip_error(a, zip_get_error(a->zip), e);
  /* The byte is the last thing that libzip asks the source for. */
  if (zip_fread(file, &first, 1) != 1) explain_zip_error(a, zip_file_get_error(file), e);
  *offset = a->at - 1;
  zip_fclose(file);
  return e->status;
}
