/* test_torch: files of torch.save: those of tests/golden/torch, pickles with each fault that has a
 * message, and views of a storage of all kinds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/checkpoint/checkpoint.h"
#include "config/checkpoint/pickle.h"
#include "tests/support/npz_make.h"
#include "tests/support/place.h"

static int enter(void **state) { return place_make(state, "w.bin"); }

/* A text with NUL bytes. */
struct bytes {
  const char *at;
  size_t size;
};

#define OF(text) \
  { text, sizeof text - 1 }

/* --- files --- */

static void add(struct npz_made *z, const char *name, struct bytes b, int method) {
  struct npy_made made = {.bytes = malloc(b.size + 1), .size = b.size};
  assert_non_null(made.bytes);
  memcpy(made.bytes, b.at, b.size);
  npz_add(z, name, made, method);
}

static const float storage[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

/* A file with a pickle and two storages: "0" of twelve floats, "1" of eight bytes. */
static void write_file(const struct place *p, struct bytes pickle) {
  struct npz_made z = npz_make(p->file);
  add(&z, "w/data.pkl", pickle, NPZ_STORED);
  add(&z, "w/byteorder", (struct bytes)OF("little"), NPZ_STORED);
  add(&z, "w/data/0", (struct bytes){(const char *)storage, sizeof storage}, NPZ_STORED);
  add(&z, "w/data/1", (struct bytes)OF("\1\0\0\0\0\0\0\0"), NPZ_STORED);
  npz_write(&z);
}

static struct checkpoint *open_well(const char *path) {
  struct error e = {0};
  struct checkpoint *c = checkpoint_open(path, &e);
  assert_string_equal(e.detail, "");
  assert_non_null(c);
  return c;
}

/* The message begins with the path and continues so. */
static void open_ill(const char *path, const char *detail) {
  struct error e = {0};
  struct checkpoint *c = checkpoint_open(path, &e);
  if (c) fail_msg("opened, but should say \"%s\"", detail);
  assert_int_equal(e.status, STATUS_CONFIG);
  const size_t length = strlen(path);
  assert_memory_equal(e.detail, path, length);
  assert_memory_equal(e.detail + length, ": ", 2);
  if (strncmp(e.detail + length + 2, detail, strlen(detail)) != 0)
    fail_msg("\"%s\" does not say \"%s\"", e.detail, detail);
  assert_null(strchr(e.detail, '\n'));
}

static void assert_numbers(struct checkpoint *c, const char *name, const float *expected,
                           size_t count) {
  struct error e = {0};
  float out[16];
  const struct checkpoint_entry *t = checkpoint_find(c, name);
  assert_non_null(t);
  assert_int_equal(t->count, count);
  for (size_t first = 0; first < count; first++) { /* from each place on */
    checkpoint_read_floats(c, t, first, count - first, out, &e);
    assert_string_equal(e.detail, "");
    assert_memory_equal(out, expected + first, (count - first) * sizeof *out);
  }
}

/* --- the files of PyTorch --- */

/* Has one checkpoint the numbers of all tensors of the other? */
static void same_numbers(const char *path, const char *twin) {
  struct checkpoint *one = open_well(path), *other = open_well(twin);
  for (size_t i = 0; i < checkpoint_count(other); i++) {
    struct error e = {0};
    const struct checkpoint_entry *b = checkpoint_at(other, i), *a = checkpoint_find(one, b->name);
    if (!a) fail_msg("%s has no \"%s\"", path, b->name);
    if (checkpoint_check_tensor(b, &e)) continue;
    assert_int_equal(a->rank, b->rank);
    assert_memory_equal(a->dim, b->dim, sizeof a->dim);
    const size_t count = (size_t)a->count;
    float *of_a = malloc((count + 1) * sizeof *of_a), *of_b = malloc((count + 1) * sizeof *of_b);
    assert_true(of_a && of_b);
    checkpoint_read_floats(one, a, 0, count, of_a, &e);
    checkpoint_read_floats(other, b, 0, count, of_b, &e);
    assert_string_equal(e.detail, "");
    if (memcmp(of_a, of_b, count * sizeof *of_a) != 0) fail_msg("%s: %s differs", path, a->name);
    free(of_a);
    free(of_b);
  }
  checkpoint_free(one);
  checkpoint_free(other);
}

static void files_of_torch_are_read(void **state) {
  (void)state;
  static const char twin[] = "tests/golden/models/electra-cls/model.safetensors";
  same_numbers("tests/golden/models/bin-zip", twin);
  same_numbers("tests/golden/models/bin-views", twin);
  same_numbers("tests/golden/models/bin-protocol4/pytorch_model.bin", twin);
  same_numbers("tests/golden/models/bin-float16",
               "tests/golden/models/xlm-roberta-tags/model.safetensors");
  same_numbers("tests/golden/torch/bfloat16.bin", "tests/golden/torch/bfloat16.safetensors");
  same_numbers("tests/golden/torch/shards/pytorch_model.bin.index.json",
               "tests/golden/torch/shards/twin.safetensors");
}

static void a_good_file_holds_two_tensors(void **state) {
  (void)state;
  static const float a[] = {0, 1, 2, 3, 4, 5}, b[] = {1, 1};
  struct checkpoint *c = open_well("tests/golden/torch/good.bin");
  assert_int_equal(checkpoint_count(c), 2);
  assert_string_equal(checkpoint_container(c), "a PyTorch file");
  assert_true(checkpoint_reads_anywhere(c));
  assert_numbers(c, "a", a, 6);
  assert_numbers(c, "b", b, 2);
  checkpoint_free(c);
  c = open_well("tests/golden/models/bin-views");
  assert_false(checkpoint_reads_anywhere(c)); /* some numbers are gathered */
  checkpoint_free(c);
}

static void what_is_wrong_is_refused_by_name(void **state) {
  (void)state;
#define NOT_ALLOWED ", which is not allowed: only tensors are read, and nothing is executed"
  static const struct {
    const char *file, *detail;
  } cases[] = {
      {"calls-getcwd", "its data.pkl asks for the global \"posix.getcwd\" at byte 13" NOT_ALLOWED},
      {"calls-eval",
       "its data.pkl asks for the global \"__builtin__.eval\" at byte 13" NOT_ALLOWED},
      {"counter", "its data.pkl asks for the global \"collections.Counter\" at byte 2" NOT_ALLOWED},
      {"no-storage", "tensor \"a\" at byte 165 of data.pkl: its storage \"0\" is not in the file"},
      {"short-storage", "tensor \"a\" at byte 165 of data.pkl: its storage \"0\" has 20 bytes, too "
                        "few for 6 of F32"},
      {"cut-pickle", "its data.pkl ends without a STOP at byte 113"},
      {"no-pickle", "a zip archive with neither a member whose name ends with .npy, as numpy.savez "
                    "writes it, nor one with /data.pkl, as torch.save does"},
      {"list", "its data.pkl holds a list, not a dictionary of tensors"},
      {"beyond-storage", "tensor \"a\" at byte 165 of data.pkl: its sizes and strides reach beyond "
                         "its storage of 6 numbers"},
      {"negative-stride", "tensor \"a\" at byte 168 of data.pkl: its stride is negative: -3"},
      {"deep", "its data.pkl holds a list, not a dictionary of tensors"},
      {"memo", "its data.pkl takes memo entry 255 at byte 3, which was never put"},
      {"cut", "the zip archive has no directory at its end: cut short?"},
      {"text", "is a Git LFS pointer: run git lfs pull"},
      {"../legacy", "is a pickle outside a zip archive, as torch.save wrote before PyTorch 1.6, "
                    "which is not supported: load it with torch.load(..., weights_only=True) and"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char path[120];
    snprintf(path, sizeof path, "tests/golden/torch/refused/%s.bin", cases[i].file);
    open_ill(path, cases[i].detail);
  }
}

/* --- pickles --- */

static const struct pickle_global globals[] = {{"a dict", true}, {"a call", false}};

static void refused(struct bytes b, const char *detail) {
  struct error e = {0};
  unsigned char *copy = malloc(b.size + 1);
  assert_non_null(copy);
  memcpy(copy, b.at, b.size);
  struct pickle *p = pickle_read(copy, b.size, globals, 2, &e);
  if (p) fail_msg("is read, but should say \"%s\"", detail);
  assert_int_equal(e.status, STATUS_CONFIG);
  assert_string_equal(e.detail, detail);
  free(copy);
}

static void faults_of_a_pickle_are_told_with_their_offset(void **state) {
  (void)state;
#define P "\x80\2"
  static const struct {
    struct bytes pickle;
    const char *detail;
  } cases[] = {
      {OF(""), "ends without a STOP at byte 0"},
      {OF("N."), "does not begin with PROTO at byte 0"},
      {OF("\x80"), "ends within the instruction at byte 0"},
      {OF("\x80\1N."), "is of protocol 1; supported: 2 to 5"},
      {OF("\x80\6N."), "is of protocol 6; supported: 2 to 5"},
      {OF(P "N"), "ends without a STOP at byte 3"},
      {OF(P "N.N"), "has 1 bytes after its STOP at byte 3"},
      {OF(P "."), "leaves 0 values on its stack at byte 2 instead of one"},
      {OF(P "NN."), "leaves 2 values on its stack at byte 4 instead of one"},
      {OF(P "(."), "leaves 1 values on its stack at byte 3 instead of one"},
      {OF(P "\x95\4\0\0\0\0\0\0\0N."), "has a frame beyond its end at byte 2"},
      {OF(P "\x95\4\0\0"), "ends within the instruction at byte 2"},
      {OF(P "K"), "ends within the instruction at byte 2"},
      {OF(P "J\1\2\3"), "ends within the instruction at byte 2"},
      {OF(P "G1234567"), "ends within the instruction at byte 2"},
      {OF(P "\x8a\x09\1\1\1\1\1\1\1\1\1."), "has an integer of more than 64 bits at byte 2"},
      {OF(P "\x8a"), "ends within the instruction at byte 2"},
      {OF(P "\x8a\2\1"), "ends within the instruction at byte 2"},
      {OF(P "\x8c\3ab"), "ends within the instruction at byte 2"},
      {OF(P "X\xff\xff\xff\xff"
            "ab"),
       "ends within the instruction at byte 2"},
      {OF(P "X\1\0"), "ends within the instruction at byte 2"},
      {OF(P "\x8c\1\xff."), "has a string that is not UTF-8 at byte 2"},
      {OF(P "t"), "looks for a mark that is not on its stack at byte 2"},
      {OF(P "\x85"), "takes a value from an empty stack at byte 2"},
      {OF(P "N(\x86"), "takes a value from an empty stack at byte 4"},
      {OF(P "Na"), "appends to what is not a list at byte 3"},
      {OF(P "a"), "takes a value from an empty stack at byte 2"},
      {OF(P "]NNs"), "sets an item of what is not a dictionary at byte 5"},
      {OF(P "}Ns"), "sets an item of what is not a dictionary at byte 4"},
      {OF(P "s"), "takes a value from an empty stack at byte 2"},
      {OF(P "}(Nu"), "sets a key without a value at byte 5"},
      {OF(P "(Nu"), "sets an item of what is not a dictionary at byte 4"},
      {OF(P "u"), "looks for a mark that is not on its stack at byte 2"},
      {OF(P "e"), "looks for a mark that is not on its stack at byte 2"},
      {OF(P "}(Ne"), "appends to what is not a list at byte 5"},
      {OF(P "q\0"), "takes a value from an empty stack at byte 2"},
      {OF(P "Nq\1."), "puts memo entry 1 after 0 others at byte 3"},
      {OF(P "Nr\xff\xff\xff\xff."), "puts memo entry 4294967295 after 0 others at byte 3"},
      {OF(P "Nq"), "ends within the instruction at byte 3"},
      {OF(P "(\x94"), "takes a value from an empty stack at byte 3"},
      {OF(P "h\0"), "takes memo entry 0 at byte 2, which was never put"},
      {OF(P "j\1\0\0\0"), "takes memo entry 1 at byte 2, which was never put"},
      {OF(P "j\1"), "ends within the instruction at byte 2"},
      {OF(P "cos\nsystem\n"), "asks for the global \"os.system\" at byte 2" NOT_ALLOWED},
      {OF(P "ca\ndict\0\n"), "asks for the global \"a.dict\" at byte 2" NOT_ALLOWED},
      {OF(P "ca\rb\nc\n"), "asks for the global \"a?b.c\" at byte 2" NOT_ALLOWED},
      {OF(P "cos\nsystem"), "ends within the instruction at byte 2"},
      {OF(P "cos"), "ends within the instruction at byte 2"},
      {OF(P "\x8c\2os\x8c\6system\x93."),
       "asks for the global \"os.system\" at byte 14" NOT_ALLOWED},
      {OF(P "N\x8c\6system\x93."), "asks for a global whose name is not a string at byte 11"},
      {OF(P "N\x93"), "takes a value from an empty stack at byte 3"},
      {OF(P "Q"), "takes a value from an empty stack at byte 2"},
      {OF(P "R"), "takes a value from an empty stack at byte 2"},
      {OF(P ")R"), "takes a value from an empty stack at byte 3"},
      {OF(P "N)R"), "calls something other than a global with a tuple at byte 4"},
      {OF(P "ca\ncall\nNR"), "calls something other than a global with a tuple at byte 11"},
      {OF(P "ca\ndict\nN\x85R"), "calls a dict with arguments at byte 12"},
      {OF(P "b"), "takes a value from an empty stack at byte 2"},
      {OF(P "}b"), "takes a value from an empty stack at byte 3"},
      {OF(P "]}b"), "sets attributes of what is not a dictionary at byte 4"},
      {OF(P "}Nb"), "sets attributes of what is not a dictionary at byte 4"},
      {OF(P "(ios\nsystem\n"), "has the instruction INST at byte 3, which is not allowed"},
      {OF(P "N)\x81"), "has the instruction NEWOBJ at byte 4, which is not allowed"},
      {OF(P "N0"), "has the instruction POP at byte 3, which is not allowed"},
      {OF(P "\xff"), "has an unknown instruction, 0xff, at byte 2"},
      {OF(P "\0"), "has an unknown instruction, 0x00, at byte 2"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    refused(cases[i].pickle, cases[i].detail);
}

/* Every instruction that makes objects, or that no writer of tensors uses, is known by its name. */
static void instructions_that_are_not_allowed_are_named(void **state) {
  (void)state;
  static const char codes[] = "012FILPSTUVdgilop\x81\x82\x83\x84\x8b"
                              "BC\x8d\x8e\x8f\x90\x91\x92\x96\x97\x98";
  for (const char *code = codes; *code; code++) {
    struct error e = {0};
    const unsigned char pickle[] = {0x80, 2, (unsigned char)*code, '.'};
    assert_null(pickle_read(pickle, sizeof pickle, globals, 2, &e));
    assert_memory_equal(e.detail, "has the instruction ", 20);
    assert_non_null(strstr(e.detail, " at byte 2, which is not allowed"));
  }
}

static void pickles_are_bounded(void **state) {
  (void)state;
  struct error e = {0};
  enum { NAME = 300, STACK = PICKLE_STACK_MOST };
  unsigned char *bytes = malloc(STACK + 8);
  assert_non_null(bytes);
  memcpy(bytes, P, 2);
  memset(bytes + 2, ']', STACK + 1);
  refused((struct bytes){(char *)bytes, STACK + 3},
          "has too many values on its stack at byte 65538");
  memset(bytes + 2, 'c', NAME); /* a global with a long name */
  memcpy(bytes + 2 + NAME, "\n\n", 2);
  refused((struct bytes){(char *)bytes, NAME + 4},
          "asks for a global with a very long name, which is not allowed, at byte 2");
  free(bytes);
  assert_null(pickle_read((const unsigned char *)P, PICKLE_MOST + 1, globals, 2, &e));
  assert_string_equal(e.detail, "has 16777217 bytes; at most 16777216 are read");
}

static void values_are_described(void **state) {
  (void)state;
  static const struct bytes b =
      OF("\x80\4\x95\x02\0\0\0\0\0\0\0]\x94(N\x88\x89K\xffM\1\1J\xff\xff\xff\xff\x8a\0\x8a\1\x80"
         "\x8a\x08\0\0\0\0\0\0\0\x80G12345678\x8c\2ab\x8c\1a\x8c\4call\x93N\x85R"
         "\x8c\1a\x8c\4dict\x93)R\x8c\1kN\x86Q(NNNtKeh\0e.");
  static const struct {
    enum pickle_kind kind;
    int64_t integer;
  } expected[] = {{PICKLE_NONE, 0},      {PICKLE_BOOL, 1},       {PICKLE_BOOL, 0},
                  {PICKLE_INTEGER, 255}, {PICKLE_INTEGER, 257},  {PICKLE_INTEGER, -1},
                  {PICKLE_INTEGER, 0},   {PICKLE_INTEGER, -128}, {PICKLE_INTEGER, INT64_MIN},
                  {PICKLE_FLOAT, 0},     {PICKLE_TEXT, 0},       {PICKLE_CALL, 2},
                  {PICKLE_DICT, 0},      {PICKLE_PERSISTENT, 1}, {PICKLE_TUPLE, 3},
                  {PICKLE_INTEGER, 'e'}, {PICKLE_LIST, 17}};
  struct error e = {0};
  struct pickle *p = pickle_read((const unsigned char *)b.at, b.size, globals, 2, &e);
  assert_string_equal(e.detail, "");
  const struct pickle_value top = pickle_top(p);
  struct pickle_value v;
  assert_int_equal(top.kind, PICKLE_LIST);
  assert_int_equal(pickle_count(p, top), 17);
  assert_int_equal(pickle_offset(p, top), 11);
  uint32_t at = pickle_first(p, top);
  for (size_t i = 0; i < 17; i++) {
    assert_true(pickle_next(p, &at, &v));
    assert_int_equal(v.kind, expected[i].kind);
    if (v.kind == PICKLE_BOOL || v.kind == PICKLE_INTEGER)
      assert_int_equal(v.integer, expected[i].integer);
    if (v.kind >= PICKLE_LIST) assert_int_equal(pickle_count(p, v), expected[i].integer);
    if (v.kind < PICKLE_LIST) assert_int_equal(pickle_count(p, v) + pickle_offset(p, v), 0);
    if (v.kind == PICKLE_TEXT) assert_true(pickle_is_text(p, v, "ab"));
    if (v.kind == PICKLE_TEXT) assert_false(pickle_is_text(p, v, "a"));
    assert_non_null(pickle_kind_name(v.kind));
  }
  assert_false(pickle_next(p, &at, &v));
  pickle_free(p);
}

/* --- tensors --- */

#define STRING(size, text) "\x8c" size text
#define TENSOR_OF(storage_tuple, offset_and_on) \
  "ctorch._utils\n_rebuild_tensor_v2\n(" storage_tuple offset_and_on "tR"
#define STORAGE(type, key, count) \
  "(\x8c\7storagectorch\n" type "Storage\n\x8c\1" key "\x8c\3cpu" count "tQ"
#define FLOATS STORAGE("Float", "0", "K\x0c")
#define REST \
  "\x89"     \
  "ccollections\nOrderedDict\n)R"
#define ONE(tensor) OF(P "}\x8c\1w" tensor "s.")
/* A view of the twelve floats. */
#define VIEW(offset, sizes, strides) \
  ONE(TENSOR_OF(FLOATS, "K" offset "(" sizes "t(" strides "t" REST))

static void views_of_a_storage_are_gathered(void **state) {
  const struct place *p = *state;
  static const struct {
    struct bytes pickle;
    bool anywhere;
    size_t count;
    float expected[12];
  } cases[] = {
      {VIEW("\0", "K\3K\4", "K\4K\1"), true, 12, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
      {VIEW("\7", "K\5", "K\1"), true, 5, {7, 8, 9, 10, 11}},
      {VIEW("\3", "", ""), true, 1, {3}},
      {VIEW("\x0c", "K\0K\3", "K\3K\1"), true, 0, {0}},
      {VIEW("\0", "K\0K\xff", "K\xffK\xff"), true, 0, {0}},
      {VIEW("\1", "K\1K\3K\1", "K\x63K\1K\x63"), true, 3, {1, 2, 3}},
      {VIEW("\0", "K\4K\3", "K\1K\4"), false, 12, {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}},
      {VIEW("\1", "K\2K\2", "K\6K\2"), false, 4, {1, 3, 7, 9}},
      {VIEW("\2", "K\3K\2", "K\4K\1"), false, 6, {2, 3, 6, 7, 10, 11}},
      {VIEW("\5", "K\3", "K\0"), false, 3, {5, 5, 5}},
      {VIEW("\5", "K\2K\3", "K\0K\2"), false, 6, {5, 7, 9, 5, 7, 9}},
      {VIEW("\0", "K\2K\3K\2", "K\1K\4K\2"), false, 12, {0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_file(p, cases[i].pickle);
    struct checkpoint *c = open_well(p->file);
    assert_int_equal(checkpoint_reads_anywhere(c), cases[i].anywhere);
    assert_numbers(c, "w", cases[i].expected, cases[i].count);
    checkpoint_free(c);
  }
}

/* Two views that are read alternately. */
static void views_may_be_read_in_any_order(void **state) {
  const struct place *p = *state;
  static const float first[] = {0, 2, 4}, second[] = {1, 5, 9};
  write_file(p, (struct bytes)OF(
                    P "}(\x8c\1a" TENSOR_OF(FLOATS, "K\0(K\3t(K\2t" REST) "\x8c\1b" TENSOR_OF(
                        FLOATS, "K\1(K\3t(K\4t" REST) "u."));
  struct checkpoint *c = open_well(p->file);
  for (size_t i = 0; i < 3; i++) {
    assert_numbers(c, "a", first, 3);
    assert_numbers(c, "b", second, 3);
  }
  checkpoint_free(c);
}

/* The tensors of a checkpoint of training; parameters; and values that are no tensors. */
static void dictionaries_within_are_looked_into(void **state) {
  const struct place *p = *state;
  static const float expected[] = {3};
#define SCALAR             \
  TENSOR_OF(FLOATS, "K\3)" \
                    ")" REST)
#define PARAMETER                                      \
  "ctorch._utils\n_rebuild_parameter\n(" SCALAR "\x88" \
  "ccollections\nOrderedDict\n)RtR"
  static const struct bytes cases[] = {
      OF(P "}(\x8c\5epochK\3\x8c\x0astate_dict}\x8c\1w" SCALAR "su."),
      OF(P "}(\x8c\4lossG12345678\x8c\x10model_state_dict}\x8c\1w" PARAMETER "s\x8c\1xNu."),
      OF(P "}(\x8c\5model}\x8c\1w" SCALAR "s\x8c\x0astate_dict]u."),
      OF(P "}(\x8c\1w" SCALAR "\x8c\x0astate_dict}\x8c\1v" SCALAR "sK\1K\2u."), /* its own first */
      OF(P "ccollections\nOrderedDict\n)R\x8c\1w" PARAMETER "s}\x8c\x09_metadata}sb."),
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_file(p, cases[i]);
    struct checkpoint *c = open_well(p->file);
    assert_int_equal(checkpoint_count(c), 1);
    assert_numbers(c, "w", expected, 1);
    checkpoint_free(c);
  }
}

static void types_are_those_of_safetensors(void **state) {
  const struct place *p = *state;
  static const struct {
    struct bytes pickle;
    const char *dtype;
  } cases[] = {
#define TYPED(type, name) {ONE(TENSOR_OF(STORAGE(type, "1", "K\1"), "K\0))" REST)), name}
      TYPED("Float", "F32"),  TYPED("Half", "F16"), TYPED("BFloat16", "BF16"),
      TYPED("Double", "F64"), TYPED("Long", "I64"), TYPED("Int", "I32"),
      TYPED("Short", "I16"),  TYPED("Char", "I8"),  TYPED("Byte", "U8"),
      TYPED("Bool", "BOOL"),
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct error e = {0};
    write_file(p, cases[i].pickle);
    struct checkpoint *c = open_well(p->file);
    assert_string_equal(checkpoint_at(c, 0)->dtype, cases[i].dtype);
    assert_int_equal(checkpoint_check_tensor(checkpoint_at(c, 0), &e),
                     i < 4 ? STATUS_OK : STATUS_CONFIG);
    checkpoint_free(c);
  }
}

static void faults_of_tensors_are_named(void **state) {
  const struct place *p = *state;
#define NO_STORAGE "its first argument is not a storage"
#define BEYOND     "its sizes and strides reach beyond its storage of 12 numbers"
#define LARGE      "\x8a\x08\0\0\0\0\0\0\0\x7f"
  static const struct {
    struct bytes pickle;
    const char *detail;
  } cases[] = {
      {ONE(TENSOR_OF("N", "K\0))" REST)), NO_STORAGE},
      {ONE(TENSOR_OF("NQ", "K\0))" REST)), NO_STORAGE},
      {ONE(TENSOR_OF("\x8c\7storage\x85Q", "K\0))" REST)), NO_STORAGE},
      {ONE(TENSOR_OF("(\x8c\7modulesctorch\nFloatStorage\n\x8c\1"
                     "0NK\1tQ",
                     "K\0))" REST)),
       NO_STORAGE},
      {ONE(TENSOR_OF("(\x8c\7storageN\x8c\1"
                     "0NK\1tQ",
                     "K\0))" REST)),
       NO_STORAGE},
      {ONE(TENSOR_OF("(\x8c\7storageccollections\nOrderedDict\n\x8c\1"
                     "0NK\1tQ",
                     "K\0))" REST)),
       NO_STORAGE},
      {ONE(TENSOR_OF("(\x8c\7storagectorch\nFloatStorage\nK\0NK\1tQ", "K\0))" REST)), NO_STORAGE},
      {ONE(TENSOR_OF(STORAGE("Float", "0", "N"), "K\0))" REST)),
       "its storage's size is None, not an integer"},
      {ONE(TENSOR_OF(STORAGE("Float", "0", "J\xff\xff\xff\xff"), "K\0))" REST)),
       "its storage's size is negative: -1"},
      {ONE(TENSOR_OF(STORAGE("Float", "7", "K\1"), "K\0))" REST)),
       "its storage \"7\" is not in the file"},
      {ONE(TENSOR_OF(STORAGE("Float", "0", "K\x0d"), "K\0))" REST)),
       "its storage \"0\" has 48 bytes, too few for 13 of F32"},
      {ONE(TENSOR_OF(STORAGE("Float", "0", LARGE), "K\0))" REST)),
       "its storage \"0\" has 48 bytes, too few for 9151314442816847872 of F32"},
      {ONE(TENSOR_OF(FLOATS, "N))" REST)), "its offset is None, not an integer"},
      {ONE(TENSOR_OF(FLOATS, "J\xff\xff\xff\xff))" REST)), "its offset is negative: -1"},
      {ONE(TENSOR_OF(FLOATS, "K\0]]" REST)), "its sizes are a list, not a tuple"},
      {ONE(TENSOR_OF(FLOATS, "K\0)}" REST)), "its strides are a dictionary, not a tuple"},
      {ONE(TENSOR_OF(FLOATS, "K\0(NtN" REST)), "its size is None, not an integer"},
      {VIEW("\0", "J\xff\xff\xff\xff", "K\1"), "its size is negative: -1"},
      {VIEW("\0", "K\1", "J\xff\xff\xff\xff"), "its stride is negative: -1"},
      {VIEW("\0", "K\1K\1K\1K\1K\1K\1K\1K\1K\1", ""), "has more than 8 dimensions"},
      {VIEW("\0", "K\1K\1", "K\1"), "has 2 sizes and 1 strides"},
      {VIEW("\0", LARGE LARGE, "K\0K\0"), "the product of its sizes overflows"},
      {VIEW("\0", LARGE, "K\0"), "has 9151314442816847872 numbers, more than the file can hold"},
      {VIEW("\0", "M\xff\xff", "K\0"), "has 65535 numbers, more than the file can hold"},
      {VIEW("\0", "K\x0d", "K\1"), BEYOND},
      {VIEW("\1", "K\x0c", "K\1"), BEYOND},
      {VIEW("\x0c", "", ""), BEYOND},
      {VIEW("\x0d", "K\0", "K\1"), BEYOND},
      {VIEW("\0", "K\2K\3", "K\6K\4"), BEYOND},
      {VIEW("\0", "K\2K\2", LARGE LARGE), BEYOND},
      {VIEW("\0", "K\3", LARGE), BEYOND},
      {ONE(TENSOR_OF(FLOATS, LARGE "(K\2t(" LARGE "t" REST)), BEYOND},
      {VIEW("\0", "K\3K\3", "K\1K\1"), "its strides make it overlap itself"},
      {VIEW("\0", "K\3K\3", "K\2K\1"), "its strides make it overlap itself"},
      {VIEW("\0", "K\2K\2K\2", "K\4K\3K\1"), "its strides make it overlap itself"},
      {ONE(TENSOR_OF(FLOATS, "K\0)")), "is made of 3 arguments, not of 6 or 7"},
      {ONE(TENSOR_OF(FLOATS, "K\0))" REST "}")), "has metadata, which is not supported"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct error e = {0};
    write_file(p, cases[i].pickle);
    struct checkpoint *c = checkpoint_open(p->file, &e);
    if (c) fail_msg("opened, but should say \"%s\"", cases[i].detail);
    assert_int_equal(e.status, STATUS_CONFIG);
    const char *at = strstr(e.detail, " of data.pkl: ");
    assert_non_null(strstr(e.detail, ": tensor \"w\" at byte "));
    assert_non_null(at);
    assert_string_equal(at + 14, cases[i].detail);
  }
}

static void faults_of_dictionaries_are_named(void **state) {
  const struct place *p = *state;
  static const struct {
    struct bytes pickle;
    const char *detail;
  } cases[] = {
      {OF(P "N."), "its data.pkl holds None, not a dictionary of tensors"},
      {OF(P SCALAR "."), "its data.pkl holds an object, not a dictionary of tensors"},
      {OF(P "}."), "its data.pkl holds a dictionary without tensors"},
      {OF(P "}\x8c\x0astate_dict}\x8c\1w}ss."), "its data.pkl holds a dictionary without tensors"},
      {OF(P "}q\0\x8c\x0astate_dicth\0s."), "its data.pkl holds a dictionary without tensors"},
      {OF(P "}K\1" SCALAR "s."), "the name of a tensor is an integer"},
      {OF(P "}\x8c\3a\0b" SCALAR "s."), "the name of a tensor has a NUL or more than 1000 bytes"},
      {OF(P "}(\x8c\1w" SCALAR "\x8c\1w" SCALAR "u."), "two tensors are called \"w\""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_file(p, cases[i].pickle);
    open_ill(p->file, cases[i].detail);
  }
}

static void faults_of_the_archive_are_named(void **state) {
  const struct place *p = *state;
  static const struct bytes pickle = VIEW("\0", "K\3", "K\1");
  static const struct bytes numbers = {(const char *)storage, sizeof storage};
  static const struct {
    const char *order, *again;
    int of_pickle, of_storage;
    const char *detail;
  } cases[] = {
      {"big", NULL, NPZ_STORED, NPZ_STORED,
       "its numbers are not little-endian: its byteorder is \"big\""},
      {"lit", NULL, NPZ_STORED, NPZ_STORED,
       "its numbers are not little-endian: its byteorder is \"lit\""},
      {"little", "v/data.pkl", NPZ_STORED, NPZ_STORED, "the zip archive has two members data.pkl"},
      {"little", NULL, NPZ_DEFLATED, NPZ_STORED,
       "its data.pkl is compressed, which torch.save does not do"},
      {"little", NULL, NPZ_BZIP2, NPZ_STORED, "its data.pkl is compressed by method 12 of zip"},
      {"little", NULL, NPZ_STORED, NPZ_DEFLATED,
       "tensor \"w\" at byte 121 of data.pkl: its storage \"0\" is compressed, which torch.save "
       "does not do"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct npz_made z = npz_make(p->file);
    add(&z, "w/data.pkl", pickle, cases[i].of_pickle);
    add(&z, "w/data/0", numbers, cases[i].of_storage);
    add(&z, "w/byteorder", (struct bytes){cases[i].order, strlen(cases[i].order)}, NPZ_STORED);
    if (cases[i].again) add(&z, cases[i].again, pickle, NPZ_STORED);
    npz_write(&z);
    open_ill(p->file, cases[i].detail);
  }
  /* Files of older versions do not name their byte order. */
  struct npz_made z = npz_make(p->file);
  add(&z, "w/data.pkl", pickle, NPZ_STORED);
  add(&z, "w/data/0", numbers, NPZ_STORED);
  npz_write(&z);
  struct checkpoint *c = open_well(p->file);
  assert_numbers(c, "w", storage, 3);
  checkpoint_free(c);
}

static void long_pickles_and_names_are_refused(void **state) {
  const struct place *p = *state;
  static const struct bytes scalar = OF(SCALAR "s.");
  enum { NAME = 1001 };
  char *bytes = calloc(1, PICKLE_MOST + 1);
  assert_non_null(bytes);
  write_file(p, (struct bytes){bytes, PICKLE_MOST + 1});
  open_ill(p->file, "its data.pkl has 16777217 bytes; at most 16777216 are read");
  memcpy(bytes, P "}X\xe9\3\0\0", 8);
  memset(bytes + 8, 'w', NAME);
  memcpy(bytes + 8 + NAME, scalar.at, scalar.size);
  write_file(p, (struct bytes){bytes, 8 + NAME + scalar.size});
  open_ill(p->file, "the name of a tensor has a NUL or more than 1000 bytes");
  free(bytes);
}

/* The directory of the archive gives a storage more bytes than follow it in the file. */
static void a_storage_that_is_cut_off_is_told(void **state) {
  const struct place *p = *state;
  enum { CENTRAL_PACKED = 20, CENTRAL_SIZE = 24, CENTRAL_NAME = 46 };
  static const struct bytes pickle = VIEW("\0", "K\3", "K\1");
  static unsigned char bytes[4096];
  struct npz_made z = npz_make(p->file);
  add(&z, "w/data.pkl", pickle, NPZ_STORED);
  add(&z, "w/data/0", (struct bytes){(const char *)storage, sizeof storage}, NPZ_STORED);
  npz_write(&z);
  FILE *file = fopen(p->file, "r+b");
  assert_non_null(file);
  const size_t size = fread(bytes, 1, sizeof bytes, file);
  unsigned char *name = memmem(bytes, size, "w/data/0PK\5\6", 12);
  assert_non_null(name);
  for (size_t i = 0; i < 2; i++) { /* the size of the whole file */
    name[CENTRAL_PACKED - CENTRAL_NAME + (int)i] = (unsigned char)(size >> 8 * i);
    name[CENTRAL_SIZE - CENTRAL_NAME + (int)i] = (unsigned char)(size >> 8 * i);
  }
  rewind(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
  open_ill(p->file, "tensor \"w\" at byte 121 of data.pkl: its storage \"0\" ends after the file");
}

/* How many times this process has read; -1: the system does not tell. */
static long count_reads(void) {
  long reads = -1;
  char line[80];
  FILE *file = fopen("/proc/self/io", "r");
  while (file && fgets(line, sizeof line, file)) sscanf(line, "syscr: %ld", &reads);
  if (file) fclose(file);
  return reads;
}

/* Opens a file of so many views of one storage; returns how many times that has read. */
static long open_views(const struct place *p, unsigned views) {
  static const struct bytes begin = OF(P "}("), view = OF(TENSOR_OF(FLOATS, "K\0(K\3t(K\1t" REST));
  char *bytes = malloc(begin.size + views * (view.size + 10) + 3);
  assert_non_null(bytes);
  memcpy(bytes, begin.at, begin.size);
  size_t size = begin.size;
  for (unsigned i = 0; i < views; i++) {
    size += (size_t)sprintf(bytes + size, "\x8c\4%04u", i);
    memcpy(bytes + size, view.at, view.size);
    size += view.size;
  }
  size += (size_t)sprintf(bytes + size, "u.");
  write_file(p, (struct bytes){bytes, size});
  free(bytes);
  const long before = count_reads();
  struct checkpoint *c = open_well(p->file);
  const long after = count_reads();
  assert_int_equal(checkpoint_count(c), views);
  checkpoint_free(c);
  return after - before;
}

/* A pickle of 16 MB may have millions of tensors in one storage. */
static void a_storage_is_found_once(void **state) {
  if (count_reads() < 0) skip();
  const long few = open_views(*state, 1), many = open_views(*state, 1000);
  if (many > few + 10) fail_msg("%ld reads for 1 view, %ld for 1000", few, many);
}

/* A file that becomes shorter, with a view in place and with one that is gathered. */
static void a_file_that_shrinks_is_told(void **state) {
  const struct place *p = *state;
  static const struct bytes views[] = {VIEW("\0", "K\3", "K\1"), VIEW("\0", "K\3", "K\2")};
  for (size_t i = 0; i < 2; i++) {
    struct error e = {0};
    float out[3];
    write_file(p, views[i]);
    struct checkpoint *c = open_well(p->file);
    assert_int_equal(truncate(p->file, 100), 0);
    assert_int_equal(checkpoint_read_floats(c, checkpoint_at(c, 0), 0, 3, out, &e), STATUS_CONFIG);
    assert_string_equal(e.detail, "tensor \"w\": the file has become shorter while it was read");
    checkpoint_free(c);
  }
}

int main(void) {
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, enter, place_remove)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(files_of_torch_are_read),
      cmocka_unit_test(a_good_file_holds_two_tensors),
      cmocka_unit_test(what_is_wrong_is_refused_by_name),
      cmocka_unit_test(faults_of_a_pickle_are_told_with_their_offset),
      cmocka_unit_test(instructions_that_are_not_allowed_are_named),
      cmocka_unit_test(pickles_are_bounded),
      cmocka_unit_test(values_are_described),
      IN_PLACE(views_of_a_storage_are_gathered),
      IN_PLACE(views_may_be_read_in_any_order),
      IN_PLACE(dictionaries_within_are_looked_into),
      IN_PLACE(types_are_those_of_safetensors),
      IN_PLACE(faults_of_tensors_are_named),
      IN_PLACE(faults_of_dictionaries_are_named),
      IN_PLACE(faults_of_the_archive_are_named),
      IN_PLACE(long_pickles_and_names_are_refused),
      IN_PLACE(a_storage_that_is_cut_off_is_told),
      IN_PLACE(a_storage_is_found_once),
      IN_PLACE(a_file_that_shrinks_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
