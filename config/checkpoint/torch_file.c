/* torch_file: finds the tensors in what the pickle describes, and their numbers in the storages. */
#include "config/checkpoint/torch_file.h"

#include <stdlib.h>
#include <string.h>

#include "config/checkpoint/pickle.h"
#include "config/document/file.h"
#include "config/document/text.h"
#include "core/base/size.h"

enum {
  NAME_MOST = 1000, /* bytes of the name of a tensor */
  ORDER_SIZE = 6,   /* of "little" */
};

/* --- what a pickle of tensors may name --- */

enum torch_global { ORDERED_DICT, REBUILD_TENSOR, REBUILD_PARAMETER, FIRST_STORAGE };

static const struct pickle_global globals[] = {
    [ORDERED_DICT] = {"collections OrderedDict", true},
    [REBUILD_TENSOR] = {"torch._utils _rebuild_tensor_v2", false},
    [REBUILD_PARAMETER] = {"torch._utils _rebuild_parameter", false},
    [FIRST_STORAGE] = {"torch FloatStorage", false},
    {"torch HalfStorage", false},
    {"torch BFloat16Storage", false},
    {"torch DoubleStorage", false},
    {"torch LongStorage", false},
    {"torch IntStorage", false},
    {"torch ShortStorage", false},
    {"torch CharStorage", false},
    {"torch ByteStorage", false},
    {"torch BoolStorage", false},
};

enum { GLOBALS = sizeof globals / sizeof *globals };

/* The numbers of the storages from FIRST_STORAGE on. */
static const struct torch_type {
  const char *dtype;
  size_t size;
} types[GLOBALS - FIRST_STORAGE] = {{"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F64", 8}, {"I64", 8},
                                    {"I32", 4}, {"I16", 2}, {"I8", 1},   {"U8", 1},  {"BOOL", 1}};

/* The members of a checkpoint of training under which a model's tensors are, if the file's own
 * dictionary has none. */
static const char *const nested[] = {"state_dict", "model_state_dict", "model"};

/* --- the file --- */

/* A member of the archive. */
struct torch_member {
  const char *name; /* owned by the archive */
  size_t place;
  bool found;        /* whether its bytes in the file are known: */
  uint64_t at, size; /* finding them takes as long as a thousand tensors that share them */
};

struct torch_view {
  struct torch_tensor tensor;
  char *name;
  size_t size;    /* bytes of a number */
  uint64_t begin; /* offset in the file of the first number */
  uint64_t span;  /* bytes from the first number to the end of the last one */
  uint64_t stride[SAFETENSORS_RANK_MAX]; /* in numbers */
  bool contiguous;
};

struct torch_file {
  int fd;
  size_t count;
  struct torch_view *view; /* [count], by name */
  bool gathers;            /* whether one is not contiguous */
  const struct torch_view *copied;
  unsigned char *copy; /* the span of `copied` */
};

/* A file while it is opened. */
struct torch_reader {
  struct torch_file *file;
  struct archive *archive;
  uint64_t size; /* of the file */
  size_t members;
  struct torch_member *member; /* [members], by name */
  char *root;                  /* what the names of all members begin with: "archive/" */
  size_t pickle_place, pickle_size;
  unsigned char *bytes; /* of the pickle */
  struct pickle *pickle;
};

static int compare_members(const void *left, const void *right) {
  const struct torch_member *a = left, *b = right;
  return strcmp(a->name, b->name);
}

/* Is it the pickle of torch.save? Its folder may have any name. */
static bool is_pickle_name(const char *name) {
  return text_file_name(name) > name + 1 && text_ends_with(name, "/data.pkl");
}

bool torch_file_is(struct archive *archive, struct error *e) {
  for (size_t i = 0; i < archive_count(archive) && !e->status; i++) {
    const char *name = archive_name(archive, i, e);
    if (name && is_pickle_name(name)) return true;
  }
  return false;
}

static enum status list_members(struct torch_reader *r, struct error *e) {
  const char *pickle = NULL;
  r->members = archive_count(r->archive);
  r->member = calloc(r->members + 1, sizeof *r->member);
  if (!r->member) return error_no_memory(e);
  for (size_t i = 0; i < r->members; i++) {
    const char *name = archive_name(r->archive, i, e);
    if (!name) return e->status;
    r->member[i] = (struct torch_member){.name = name, .place = i};
    if (!is_pickle_name(name)) continue;
    if (pickle) return error_set(e, STATUS_CONFIG, "the zip archive has two members data.pkl");
    pickle = name;
    r->pickle_place = i;
  }
  must(pickle);
  qsort(r->member, r->members, sizeof *r->member, compare_members);
  r->root = strndup(pickle, (size_t)(text_file_name(pickle) - pickle));
  return r->root ? STATUS_OK : error_no_memory(e);
}

/* The member of this name after the root; NULL without an error: there is none. */
static struct torch_member *find_member(const struct torch_reader *r, const char *folder,
                                        const char *name, size_t size, struct error *e) {
  const size_t root = strlen(r->root), front = root + strlen(folder);
  char *whole = malloc(front + size + 1);
  if (!whole) {
    error_no_memory(e);
    return NULL;
  }
  memcpy(whole, r->root, root);
  memcpy(whole + root, folder, front - root);
  memcpy(whole + front, name, size);
  whole[front + size] = '\0';
  const struct torch_member key = {.name = whole};
  struct torch_member *found =
      bsearch(&key, r->member, r->members, sizeof *r->member, compare_members);
  free(whole);
  return found;
}

/* Finds the bytes of a member in the file. */
static enum status place_member(const struct torch_reader *r, struct torch_member *m,
                                struct error *e) {
  struct archive_member about;
  if (m->found) return STATUS_OK;
  if (archive_check(r->archive, m->place, &about, e)) return e->status;
  if (!about.stored)
    return error_set(e, STATUS_CONFIG, "is compressed, which torch.save does not do");
  m->size = about.size;
  m->at = 0;
  if (about.size > 0 && archive_place(r->archive, m->place, &m->at, e)) return e->status;
  if (m->at > r->size || m->size > r->size - m->at)
    return error_set(e, STATUS_CONFIG, "ends after the file");
  m->found = true;
  return STATUS_OK;
}

/* Numbers are read as little-endian, which the member `byteorder` of newer versions confirms. */
static enum status check_byte_order(const struct torch_reader *r, struct error *e) {
  static const char name[] = "byteorder";
  char order[ORDER_SIZE];
  const struct torch_member *member = find_member(r, "", name, sizeof name - 1, e);
  if (!member) return e->status;
  const int64_t n = archive_read(r->archive, member->place, 0, order, sizeof order, e);
  if (n < 0 || (n == ORDER_SIZE && memcmp(order, "little", ORDER_SIZE) == 0)) return e->status;
  return error_set(e, STATUS_CONFIG, "its numbers are not little-endian: its byteorder is \"%.*s\"",
                   (int)n, order);
}

static enum status read_pickle(struct torch_reader *r, struct error *e) {
  struct torch_member data = {.place = r->pickle_place};
  if (place_member(r, &data, e)) return text_before(e, "its data.pkl ");
  r->pickle_size = (size_t)data.size;
  if (data.size <= PICKLE_MOST) { /* else pickle_read rejects it, and reads nothing */
    r->bytes = malloc(r->pickle_size + 1);
    if (!r->bytes) return error_no_memory(e);
    if (file_read_at(r->file->fd, data.at, r->bytes, r->pickle_size, e)) return e->status;
  }
  r->pickle = pickle_read(r->bytes, r->pickle_size, globals, GLOBALS, e);
  return r->pickle ? STATUS_OK : text_before(e, "its data.pkl ");
}

/* --- a tensor --- */

enum { ARGUMENTS_MOST = 7 };

/* Takes the arguments of a call, if it is one of this global. */
static bool take_call(const struct pickle *p, struct pickle_value v, enum torch_global global,
                      struct pickle_value *out, size_t *count) {
  struct pickle_value called, arguments;
  uint32_t at = pickle_first(p, v);
  if (v.kind != PICKLE_CALL) return false;
  pickle_next(p, &at, &called);
  pickle_next(p, &at, &arguments);
  *count = pickle_count(p, arguments);
  if (called.global != global || *count > ARGUMENTS_MOST) return false;
  at = pickle_first(p, arguments);
  for (size_t i = 0; i < *count; i++) pickle_next(p, &at, &out[i]);
  return true;
}

/* Is the value a tensor, or a parameter, which holds one? *arguments become those of the tensor. */
static bool take_tensor(const struct pickle *p, struct pickle_value v,
                        struct pickle_value arguments[ARGUMENTS_MOST], size_t *count) {
  if (take_call(p, v, REBUILD_PARAMETER, arguments, count) && *count > 0) v = arguments[0];
  return take_call(p, v, REBUILD_TENSOR, arguments, count);
}

static enum status read_natural(struct pickle_value v, const char *what, uint64_t *out,
                                struct error *e) {
  if (v.kind != PICKLE_INTEGER)
    return error_set(e, STATUS_CONFIG, "its %s is %s, not an integer", what,
                     pickle_kind_name(v.kind));
  if (v.integer < 0)
    return error_set(e, STATUS_CONFIG, "its %s is negative: %jd", what, (intmax_t)v.integer);
  *out = (uint64_t)v.integer;
  return STATUS_OK;
}

/* Reads sizes or strides. */
static enum status read_naturals(const struct pickle *p, struct pickle_value v, const char *what,
                                 size_t *count, uint64_t out[SAFETENSORS_RANK_MAX],
                                 struct error *e) {
  struct pickle_value item;
  *count = pickle_count(p, v);
  if (v.kind != PICKLE_TUPLE)
    return error_set(e, STATUS_CONFIG, "its %ss are %s, not a tuple", what,
                     pickle_kind_name(v.kind));
  if (*count > SAFETENSORS_RANK_MAX)
    return error_set(e, STATUS_CONFIG, "has more than %d dimensions", SAFETENSORS_RANK_MAX);
  uint32_t at = pickle_first(p, v);
  for (size_t i = 0; pickle_next(p, &at, &item); i++)
    if (read_natural(item, what, &out[i], e)) return e->status;
  return STATUS_OK;
}

/* Reads the storage ("storage", type, key, place, count), and finds its numbers in the file. */
static enum status read_storage(const struct torch_reader *r, struct pickle_value v,
                                struct torch_view *t, uint64_t *numbers, struct error *e) {
  enum { NAME, TYPE, KEY, LOCATION, COUNT, PARTS };
  const struct pickle *p = r->pickle;
  struct pickle_value tuple, part[PARTS];
  uint32_t at = pickle_first(p, v);
  if (v.kind != PICKLE_PERSISTENT || !pickle_next(p, &at, &tuple) || tuple.kind != PICKLE_TUPLE ||
      pickle_count(p, tuple) != PARTS)
    return error_set(e, STATUS_CONFIG, "its first argument is not a storage");
  at = pickle_first(p, tuple);
  for (size_t i = 0; i < PARTS; i++) pickle_next(p, &at, &part[i]);
  if (!pickle_is_text(p, part[NAME], "storage") || part[TYPE].kind != PICKLE_GLOBAL ||
      part[TYPE].global < FIRST_STORAGE || part[KEY].kind != PICKLE_TEXT)
    return error_set(e, STATUS_CONFIG, "its first argument is not a storage");
  if (read_natural(part[COUNT], "storage's size", numbers, e)) return e->status;
  const struct torch_type *type = &types[part[TYPE].global - FIRST_STORAGE];
  size_t size;
  const char *key = pickle_text(p, part[KEY], &size);
  struct torch_member *member = find_member(r, "data/", key, size, e);
  if (e->status) return e->status;
  if (!member)
    return error_set(e, STATUS_CONFIG, "its storage \"%.*s\" is not in the file",
                     (int)size_min(size, 60), key);
  uint64_t needed;
  if (place_member(r, member, e))
    return text_before(e, "its storage \"%.*s\" ", (int)size_min(size, 60), key);
  if (__builtin_mul_overflow(*numbers, type->size, &needed) || needed > member->size)
    return error_set(e, STATUS_CONFIG, "its storage \"%.*s\" has %ju bytes, too few for %ju of %s",
                     (int)size_min(size, 60), key, (uintmax_t)member->size, (uintmax_t)*numbers,
                     type->dtype);
  t->begin = member->at;
  t->tensor.dtype = type->dtype;
  t->size = type->size;
  return STATUS_OK;
}

/* Do two places of the tensor mean the same number, except by a stride of 0? Views of one storage
 * that PyTorch makes by slicing, transposing and expanding never do. */
static bool overlaps_itself(const struct torch_view *t) {
  bool used[SAFETENSORS_RANK_MAX] = {false};
  uint64_t reach = 0; /* from the first to the last number of the dimensions that were looked at */
  for (size_t n = 0; n < t->tensor.rank; n++) {
    size_t least = SAFETENSORS_RANK_MAX;
    for (size_t d = 0; d < t->tensor.rank; d++)
      if (!used[d] && (least == SAFETENSORS_RANK_MAX || t->stride[d] < t->stride[least])) least = d;
    used[least] = true;
    if (t->tensor.dim[least] < 2 || t->stride[least] == 0) continue;
    if (t->stride[least] <= reach) return true;
    reach += (t->tensor.dim[least] - 1) * t->stride[least]; /* within the storage: no overflow */
  }
  return false;
}

/* Checks that the view is within its storage of so many numbers. */
static enum status check_view(struct torch_view *t, uint64_t offset, uint64_t numbers,
                              uint64_t most, struct error *e) {
  uint64_t last = offset, step, row = 1;
  bool fits = true;
  t->tensor.count = 1;
  for (size_t d = 0; d < t->tensor.rank; d++)
    if (__builtin_mul_overflow(t->tensor.count, t->tensor.dim[d], &t->tensor.count))
      return error_set(e, STATUS_CONFIG, "the product of its sizes overflows");
  if (__builtin_mul_overflow(t->tensor.count, t->size, &t->tensor.bytes) || t->tensor.bytes > most)
    return error_set(e, STATUS_CONFIG, "has %ju numbers, more than the file can hold",
                     (uintmax_t)t->tensor.count);
  t->contiguous = true;
  for (size_t d = t->tensor.rank; d-- > 0 && t->tensor.count > 0;) {
    fits = fits && !__builtin_mul_overflow(t->tensor.dim[d] - 1, t->stride[d], &step) &&
           !__builtin_add_overflow(last, step, &last);
    if (t->tensor.dim[d] > 1 && t->stride[d] != row) t->contiguous = false;
    row *= t->tensor.dim[d];
  }
  if (!fits || (t->tensor.count > 0 && last >= numbers) || offset > numbers)
    return error_set(e, STATUS_CONFIG,
                     "its sizes and strides reach beyond its storage of %ju numbers",
                     (uintmax_t)numbers);
  if (t->tensor.count > 0 && overlaps_itself(t))
    return error_set(e, STATUS_CONFIG, "its strides make it overlap itself");
  t->begin += offset * t->size;
  t->span = t->tensor.count > 0 ? (last - offset + 1) * t->size : 0;
  return STATUS_OK;
}

/* Reads (storage, offset, sizes, strides, requires_grad, hooks[, metadata]). */
static enum status read_tensor(const struct torch_reader *r,
                               const struct pickle_value arguments[ARGUMENTS_MOST], size_t count,
                               struct torch_view *t, struct error *e) {
  enum { STORAGE, OFFSET, SIZES, STRIDES, METADATA = 6 };
  uint64_t offset, numbers;
  size_t strides;
  if (count < METADATA)
    return error_set(e, STATUS_CONFIG, "is made of %zu arguments, not of 6 or 7", count);
  if (count > METADATA && arguments[METADATA].kind != PICKLE_NONE)
    return error_set(e, STATUS_CONFIG, "has metadata, which is not supported");
  if (read_storage(r, arguments[STORAGE], t, &numbers, e) ||
      read_natural(arguments[OFFSET], "offset", &offset, e) ||
      read_naturals(r->pickle, arguments[SIZES], "size", &t->tensor.rank, t->tensor.dim, e) ||
      read_naturals(r->pickle, arguments[STRIDES], "stride", &strides, t->stride, e))
    return e->status;
  if (strides != t->tensor.rank)
    return error_set(e, STATUS_CONFIG, "has %zu sizes and %zu strides", t->tensor.rank, strides);
  return check_view(t, offset, numbers, r->size, e);
}

/* --- the dictionary --- */

static enum status add_tensor(struct torch_reader *r, struct pickle_value key, size_t offset,
                              const struct pickle_value arguments[ARGUMENTS_MOST], size_t count,
                              struct error *e) {
  struct torch_view *t = &r->file->view[r->file->count];
  size_t size = 0;
  if (key.kind != PICKLE_TEXT)
    return error_set(e, STATUS_CONFIG, "the name of a tensor is %s", pickle_kind_name(key.kind));
  const char *name = pickle_text(r->pickle, key, &size);
  if (size > NAME_MOST || memchr(name, '\0', size))
    return error_set(e, STATUS_CONFIG, "the name of a tensor has a NUL or more than %d bytes",
                     NAME_MOST);
  *t = (struct torch_view){.name = malloc(size + 1)};
  if (!t->name) return error_no_memory(e);
  memcpy(t->name, name, size);
  t->name[size] = '\0';
  r->file->count++;
  t->tensor.name = t->name;
  if (read_tensor(r, arguments, count, t, e))
    return text_before(e, "tensor \"%.100s\" at byte %zu of data.pkl: ", t->name, offset);
  if (!t->contiguous) r->file->gathers = true;
  return STATUS_OK;
}

/* Adds the tensors of a dictionary; its other values are ignored. */
static enum status add_tensors(struct torch_reader *r, struct pickle_value dict, struct error *e) {
  struct pickle_value key, value, arguments[ARGUMENTS_MOST];
  size_t count;
  r->file->view = calloc(pickle_count(r->pickle, dict) + 1, sizeof *r->file->view);
  if (!r->file->view) return error_no_memory(e);
  for (uint32_t at = pickle_first(r->pickle, dict); pickle_next(r->pickle, &at, &key);) {
    pickle_next(r->pickle, &at, &value);
    if (take_tensor(r->pickle, value, arguments, &count) &&
        add_tensor(r, key, pickle_offset(r->pickle, value), arguments, count, e))
      return e->status;
  }
  return STATUS_OK;
}

/* Finds the value of a key, the last one if there are several. */
static bool find_value(const struct pickle *p, struct pickle_value dict, const char *name,
                       struct pickle_value *out) {
  struct pickle_value key, value;
  bool found = false;
  for (uint32_t at = pickle_first(p, dict); pickle_next(p, &at, &key);) {
    pickle_next(p, &at, &value);
    if (!pickle_is_text(p, key, name)) continue;
    *out = value;
    found = true;
  }
  return found;
}

static int compare_views(const void *left, const void *right) {
  const struct torch_view *a = left, *b = right;
  return strcmp(a->name, b->name);
}

static enum status list_tensors(struct torch_reader *r, struct error *e) {
  struct pickle_value dict = pickle_top(r->pickle), inner;
  if (dict.kind != PICKLE_DICT)
    return error_set(e, STATUS_CONFIG, "its data.pkl holds %s, not a dictionary of tensors",
                     pickle_kind_name(dict.kind));
  if (add_tensors(r, dict, e)) return e->status;
  for (size_t i = 0; r->file->count == 0 && i < sizeof nested / sizeof *nested; i++) {
    if (!find_value(r->pickle, dict, nested[i], &inner) || inner.kind != PICKLE_DICT) continue;
    free(r->file->view);
    r->file->view = NULL;
    if (add_tensors(r, inner, e)) return e->status;
  }
  if (r->file->count == 0)
    return error_set(e, STATUS_CONFIG, "its data.pkl holds a dictionary without tensors");
  qsort(r->file->view, r->file->count, sizeof *r->file->view, compare_views);
  for (size_t i = 1; i < r->file->count; i++)
    if (compare_views(&r->file->view[i - 1], &r->file->view[i]) == 0)
      return error_set(e, STATUS_CONFIG, "two tensors are called \"%.100s\"",
                       r->file->view[i].name);
  return STATUS_OK;
}

/* --- the public part --- */

struct torch_file *torch_file_open(struct archive *archive, int fd, uint64_t size,
                                   struct error *e) {
  struct torch_reader r = {.archive = archive,
                           .size = size,
                           .file = calloc(1, sizeof(struct torch_file))};
  if (!r.file) {
    error_no_memory(e);
    return NULL;
  }
  r.file->fd = fd;
  if (list_members(&r, e) == STATUS_OK && check_byte_order(&r, e) == STATUS_OK &&
      read_pickle(&r, e) == STATUS_OK)
    list_tensors(&r, e);
  pickle_free(r.pickle);
  free(r.bytes);
  free(r.root);
  free(r.member);
  if (!e->status) return r.file;
  text_plain(e);
  torch_file_free(r.file);
  return NULL;
}

void torch_file_free(struct torch_file *f) {
  if (!f) return;
  for (size_t i = 0; i < f->count; i++) free(f->view[i].name);
  free(f->view);
  free(f->copy);
  free(f);
}

size_t torch_file_count(const struct torch_file *f) { return f->count; }

const struct torch_tensor *torch_file_at(const struct torch_file *f, size_t index) {
  return &f->view[index].tensor;
}

bool torch_file_reads_anywhere(const struct torch_file *f) { return !f->gathers; }

/* Copies the part of the storage from the first to the last number of a view into memory. */
static enum status copy_span(struct torch_file *f, const struct torch_view *t, struct error *e) {
  if (f->copied == t) return STATUS_OK;
  free(f->copy);
  f->copied = NULL;
  f->copy = malloc((size_t)t->span);
  if (!f->copy) return error_no_memory(e);
  if (file_read_at(f->fd, t->begin, f->copy, (size_t)t->span, e)) return e->status;
  f->copied = t;
  return STATUS_OK;
}

/* Copies numbers one after the other, from number `first` on, out of the span. */
static void gather(const struct torch_view *t, const unsigned char *span, uint64_t first,
                   unsigned char *out, size_t count) {
  uint64_t index[SAFETENSORS_RANK_MAX], at = 0;
  for (size_t d = t->tensor.rank; d-- > 0; first /= t->tensor.dim[d]) {
    index[d] = first % t->tensor.dim[d];
    at += index[d] * t->stride[d];
  }
  for (; count > 0; count--, out += t->size) {
    memcpy(out, span + at * t->size, t->size);
    for (size_t d = t->tensor.rank; d-- > 0;) { /* the next place */
      at += t->stride[d];
      if (++index[d] < t->tensor.dim[d]) break;
      at -= t->tensor.dim[d] * t->stride[d];
      index[d] = 0;
    }
  }
}

enum status torch_file_read(struct torch_file *f, size_t index, uint64_t from, void *out,
                            size_t size, struct error *e) {
  const struct torch_view *t = &f->view[index];
  if (t->contiguous) return file_read_at(f->fd, t->begin + from, out, size, e);
  if (copy_span(f, t, e)) return e->status;
  gather(t, f->copy, from / t->size, out, size / t->size);
  return STATUS_OK;
}
