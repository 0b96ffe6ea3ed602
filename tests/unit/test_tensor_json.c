/* test_tensor_json: what is read does not depend on how the text is cut; what is refused, and
 * where. Every chunk is a block of its own, so that a sanitizer sees a byte read behind it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/json/tensor_json.h"
#include "tests/support/rounds.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

enum { OFFSET = 1000 /* of the text in its body */ };

static const struct tensor_rule KEYS = {
    .field = "keys", .type = TENSOR_FLOAT, .depth_min = 2, .depth_max = 3, .ragged_depth = 3};
static const struct tensor_rule KEYS_OF_TWO = {.field = "keys",
                                               .type = TENSOR_FLOAT,
                                               .depth_min = 2,
                                               .depth_max = 3,
                                               .ragged_depth = 3,
                                               .width = 2,
                                               .max_elements = 3};
static const struct tensor_rule BIAS = {
    .field = "bias", .type = TENSOR_FLOAT, .depth_min = 2, .depth_max = 4, .ragged_depth = 3};
static const struct tensor_rule LENS = {.field = "valid_lens",
                                        .type = TENSOR_INTEGER,
                                        .nullable = true,
                                        .depth_min = 1,
                                        .depth_max = 2,
                                        .ragged_depth = 2,
                                        .max_elements = 4};
static const struct tensor_rule TOKENS = {
    .field = "tokens", .type = TENSOR_INTEGER, .nullable = true, .depth_max = 2, .ragged_depth = 2};
static const struct tensor_rule OFFSETS = {
    .field = "causal_offset", .type = TENSOR_INTEGER, .depth_max = 1, .ragged_depth = 1};
static const struct tensor_rule MASK = {
    .field = "mask", .type = TENSOR_FLAG, .depth_min = 2, .depth_max = 3, .ragged_depth = 3};
static const struct tensor_rule FLAG = {
    .field = "flag", .type = TENSOR_FLAG, .depth_max = 1, .ragged_depth = 1};
static const struct tensor_rule HEADS = {.field = "head_mask",
                                         .type = TENSOR_FLOAT,
                                         .depth_min = 1,
                                         .depth_max = 1,
                                         .ragged_depth = 2,
                                         .width = 3,
                                         .width_name = "heads"};
static const struct tensor_rule SCALAR = {.field = "scale", .type = TENSOR_FLOAT, .nullable = true};

struct reading {
  struct arena arena;
  struct budget budget;
  struct error error;
  const struct tensor *tensor; /* NULL: refused, or not ended */
  size_t used;
};

/* Feeds text[0 .. length) in pieces that `cut` gives: the next length, from what is left. */
static void read_pieces(struct reading *got, const struct tensor_rule *rule, const char *text,
                        size_t length, size_t budget, size_t (*cut)(void *state, size_t left),
                        void *state) {
  *got = (struct reading){0};
  budget_init(&got->budget, budget);
  arena_init(&got->arena, &got->budget);
  struct tensor_json *r = tensor_json_new(rule, &got->arena, &got->error);
  if (!r) return;
  bool complete = false;
  while (got->used < length && !complete) {
    size_t piece = cut(state, length - got->used), used = 0;
    char *copy = malloc(piece);
    assert_non_null(copy);
    memcpy(copy, text + got->used, piece);
    enum status status =
        tensor_json_feed(r, copy, piece, OFFSET + got->used, &used, &complete, &got->error);
    free(copy);
    assert_int_equal(status, got->error.status);
    if (status != STATUS_OK) return;
    assert_true(complete ? used <= piece : used == piece);
    got->used += used;
  }
  if (complete) got->tensor = tensor_json_view(r);
}

static size_t cut_none(void *state, size_t left) {
  (void)state;
  return left;
}

static void read_whole(struct reading *got, const struct tensor_rule *rule, const char *text) {
  read_pieces(got, rule, text, strlen(text), SIZE_MAX / 2, cut_none, NULL);
}

static void done(struct reading *r) {
  arena_free(&r->arena);
  assert_int_equal(r->budget.used, 0);
}

static size_t item_size(const struct tensor_rule *rule) {
  return rule->type == TENSOR_FLAG ? 1 : 4;
}

static void assert_same(const struct tensor_rule *rule, const struct reading *a,
                        const struct reading *b) {
  assert_int_equal(a->error.status, b->error.status);
  assert_string_equal(a->error.pointer, b->error.pointer);
  assert_string_equal(a->error.detail, b->error.detail);
  assert_int_equal(a->error.has_offset, b->error.has_offset);
  assert_int_equal(a->error.offset, b->error.offset);
  assert_int_equal(a->tensor != NULL, b->tensor != NULL);
  if (!a->tensor) return;
  const struct tensor *s = a->tensor, *t = b->tensor;
  assert_int_equal(a->used, b->used);
  assert_int_equal(s->null, t->null);
  assert_int_equal(s->depth, t->depth);
  assert_int_equal(s->elements, t->elements);
  assert_int_equal(s->count, t->count);
  if (s->count) assert_memory_equal(s->data, t->data, s->count * item_size(rule));
  assert_memory_equal(&s->common, &t->common, sizeof s->common);
  assert_int_equal(s->ragged != NULL, t->ragged != NULL);
  if (s->ragged) assert_memory_equal(s->ragged, t->ragged, s->elements * sizeof *s->ragged);
}

static size_t cut_at(void *state, size_t left) {
  size_t *at = state, piece = *at < left ? *at : left;
  *at = left; /* the rest in one piece */
  return piece;
}

static size_t cut_bytes(void *state, size_t left) {
  (void)state;
  (void)left;
  return 1;
}

/* In two pieces at every byte, and byte by byte: always the same. */
static void check_all_cuts(const struct tensor_rule *rule, const char *text) {
  struct reading whole, cut;
  size_t length = strlen(text);
  read_whole(&whole, rule, text);
  for (size_t i = 1; i < length; i++) {
    size_t at = i;
    read_pieces(&cut, rule, text, length, SIZE_MAX / 2, cut_at, &at);
    assert_same(rule, &whole, &cut);
    done(&cut);
  }
  read_pieces(&cut, rule, text, length, SIZE_MAX / 2, cut_bytes, NULL);
  assert_same(rule, &whole, &cut);
  done(&cut);
  done(&whole);
}

/* --- what is accepted --- */

/* A short form of a tensor: "depth elements (dims) or (dims)(dims)... numbers". */
static void describe(const struct tensor_rule *rule, const struct tensor *t, char *out) {
  if (t->null) {
    strcpy(out, "null");
    return;
  }
  out += sprintf(out, "%u %zu", t->depth, t->elements);
  size_t shapes = t->ragged ? t->elements : 1;
  for (size_t i = 0; i < shapes; i++) {
    struct tensor_shape s = tensor_shape_at(t, i);
    out += sprintf(out, " (%zu %zu %zu)", s.dim[0], s.dim[1], s.dim[2]);
  }
  for (size_t i = 0; i < t->count; i++) {
    if (rule->type == TENSOR_FLOAT) out += sprintf(out, " %g", (double)((float *)t->data)[i]);
    if (rule->type == TENSOR_FLAG) out += sprintf(out, " %d", ((uint8_t *)t->data)[i]);
    if (rule->type == TENSOR_INTEGER) out += sprintf(out, " %d", ((int32_t *)t->data)[i]);
  }
}

struct good {
  const struct tensor_rule *rule;
  const char *text, *tensor;
};

static const struct good GOOD[] = {
    {&KEYS, "[[[1,2],[3,4]],[[5,6],[7,8]]]", "3 2 (2 2 0) 1 2 3 4 5 6 7 8"},
    {&KEYS, " [ [\t[ 1 , 2 ] \r\n] ] ", "3 1 (1 2 0) 1 2"},
    {&KEYS, "[[1, -2.5e1], [0.125, -0]]", "2 2 (2 0 0) 1 -25 0.125 -0"},
    {&KEYS, "[]", "1 0 (0 0 0)"},
    {&KEYS, "[ ]", "1 0 (0 0 0)"},
    {&KEYS, "[[]]", "2 1 (0 0 0)"},
    {&KEYS, "[[],[]]", "2 2 (0 0 0)"},
    {&KEYS, "[[[]]]", "3 1 (1 0 0)"},
    {&KEYS, "[[],[[1,2]]]", "3 2 (0 0 0) (1 2 0) 1 2"},
    {&KEYS, "[[[1,2]],[]]", "3 2 (1 2 0) (0 0 0) 1 2"},
    {&KEYS, "[[[1,2]],[[3,4],[5,6]],[[7,8]]]", "3 3 (1 2 0) (2 2 0) (1 2 0) 1 2 3 4 5 6 7 8"},
    {&KEYS, "[[[1]],[[2,3]]]", "3 2 (1 1 0) (1 2 0) 1 2 3"},
    {&KEYS, "[[],[[]],[],[[],[]]]", "3 4 (0 0 0) (1 0 0) (0 0 0) (2 0 0)"},
    {&KEYS_OF_TWO, "[[[1,2]],[],[[3,4],[5,6]]]", "3 3 (1 2 0) (0 0 0) (2 2 0) 1 2 3 4 5 6"},
    {&KEYS_OF_TWO, "[[1,2],[3,4],[5,6],[7,8],[9,0]]", "2 5 (2 0 0) 1 2 3 4 5 6 7 8 9 0"},
    {&BIAS, "[[[[1,2]],[[3,4]]],[[[5,6]],[[7,8]]]]", "4 2 (2 1 2) 1 2 3 4 5 6 7 8"},
    {&BIAS, "[[[[1],[2]]],[[[3]]]]", "4 2 (1 2 1) (1 1 1) 1 2 3"},
    {&BIAS, "[[[[]]]]", "4 1 (1 1 0)"},
    {&LENS, "null", "null"},
    {&LENS, "[2,0,-1]", "1 3 (0 0 0) 2 0 -1"},
    {&LENS, "[2147483647,-2147483648,-0]", "1 3 (0 0 0) 2147483647 -2147483648 0"},
    {&LENS, "[[1,2],[3]]", "2 2 (2 0 0) (1 0 0) 1 2 3"},
    {&LENS, "[1,2,3,4]", "1 4 (0 0 0) 1 2 3 4"},
    {&TOKENS,
     "[101,7592,0,-0,-1, 2147483647,-2147483648,12345678,-1234567,123456789,\n 7,1 , 2,3\t]",
     "1 14 (0 0 0) 101 7592 0 0 -1 2147483647 -2147483648 12345678 -1234567 123456789 7 1 2 3"},
    {&TOKENS, "[[1,2,3,4,5,6,7,8,9],[10,11,12],[],[ 13,14, 15, 16]]",
     "2 4 (9 0 0) (3 0 0) (0 0 0) (4 0 0) 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16"},
    {&TOKENS, "2147483647}", "0 0 (0 0 0) 2147483647"},
    {&OFFSETS, "-17,", "0 0 (0 0 0) -17"},
    {&OFFSETS, "[-17]", "1 1 (0 0 0) -17"},
    {&MASK, "[[true,false],[1,0]]", "2 2 (2 0 0) 1 0 1 0"},
    {&MASK, "[[[true]],[[false , 0 ],[ 1,true ]]]", "3 2 (1 1 0) (2 2 0) 1 0 0 1 1"},
    {&MASK, "[[true, false, 1, 0, true, false, 1, 0, true, false, true, false, true, false, true]]",
     "2 1 (15 0 0) 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1"},
    {&MASK, "[[0,1,1,0,1,0,0,1,1,0,1],[1, 0, 0, 1, 1, 0,\n 0, 1, 1, true,false]]",
     "2 2 (11 0 0) 0 1 1 0 1 0 0 1 1 0 1 1 0 0 1 1 0 0 1 1 1 0"},
    {&FLAG, "true", "0 0 (0 0 0) 1"},
    {&FLAG, "false}", "0 0 (0 0 0) 0"},
    {&FLAG, "1}", "0 0 (0 0 0) 1"},
    {&HEADS, "[1,0,0.5]", "1 3 (0 0 0) 1 0 0.5"},
    {&SCALAR, "0.5}", "0 0 (0 0 0) 0.5"},
    {&SCALAR, "-1e-3 ", "0 0 (0 0 0) -0.001"},
    {&SCALAR, "16777217.0000000000000000000000000000000000000000000000000000000000000001,",
     "0 0 (0 0 0) 1.67772e+07"},
    {&SCALAR, "null}", "null"},
};

static void test_reads_shapes_and_numbers(void **state) {
  (void)state;
  for (size_t i = 0; i < LENGTH(GOOD); i++) {
    struct reading got;
    char text[1024];
    read_whole(&got, GOOD[i].rule, GOOD[i].text);
    if (!got.tensor) fail_msg("%s: %s", GOOD[i].text, got.error.detail);
    describe(GOOD[i].rule, got.tensor, text);
    assert_string_equal(text, GOOD[i].tensor);
    done(&got);
  }
}

static void test_cuts_do_not_matter_to_what_is_read(void **state) {
  (void)state;
  for (size_t i = 0; i < LENGTH(GOOD); i++) check_all_cuts(GOOD[i].rule, GOOD[i].text);
  check_all_cuts(&KEYS, "[[[1.17549435e-38,-0.00012345678901234567890123456789,16777217.000],"
                        "[3.4028234e38,1e-999,12345678901234567890123456789012345678]]]");
}

static void test_leaves_the_bytes_behind_the_value(void **state) {
  (void)state;
  static const struct {
    const struct tensor_rule *rule;
    const char *text;
    size_t used;
  } cases[] = {{&KEYS, "[[1]],\"values\":[[2]]}", 5},
               {&SCALAR, "12.5}", 4},
               {&SCALAR, "12.5 ,", 4},
               {&LENS, "null,\"x\"", 4},
               {&FLAG, "false}", 5},
               {&KEYS, "[] ", 2}};
  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct reading got;
    read_whole(&got, cases[i].rule, cases[i].text);
    assert_non_null(got.tensor);
    assert_int_equal(got.used, cases[i].used);
    done(&got);
  }
}

static void test_is_not_complete_before_the_value_is(void **state) {
  (void)state;
  static const char *const open[] = {"", " ", "[", "[[", "[[1", "[[1]", "[[1],", "[[1],["};
  for (size_t i = 0; i < LENGTH(open); i++) {
    struct reading got;
    read_whole(&got, &KEYS, open[i]);
    assert_int_equal(got.error.status, STATUS_OK);
    assert_null(got.tensor);
    done(&got);
  }
  struct reading got;
  read_whole(&got, &SCALAR, "12"); /* there may be more digits to come */
  assert_null(got.tensor);
  done(&got);
}

/* --- what is refused --- */

static const struct not_json {
  const struct tensor_rule *rule;
  const char *text;
  size_t offset; /* in text */
} NOT_JSON[] = {
    {&KEYS, "[[+1]]", 2},
    {&KEYS, "[[01]]", 3},
    {&KEYS, "[[.5]]", 2},
    {&KEYS, "[[1.]]", 4},
    {&KEYS, "[[1.,2]]", 4},
    {&KEYS, "[[0x1]]", 3},
    {&KEYS, "[[NaN]]", 2},
    {&KEYS, "[[nan]]", 3},
    {&KEYS, "[[Infinity]]", 2},
    {&KEYS, "[[-Infinity]]", 3},
    {&KEYS, "[[1,]]", 4},
    {&KEYS, "[[,1]]", 2},
    {&KEYS, "[[1 2]]", 4},
    {&KEYS, "[[1}]", 3},
    {&KEYS, "[[1],]", 5},
    {&KEYS, "[,[1]]", 1},
    {&KEYS, "[[1][2]]", 4},
    {&KEYS, "]", 0},
    {&KEYS, ",", 0},
    {&KEYS, "}", 0},
    {&KEYS, "\xef\xbb\xbf[[1]]", 0},
    {&KEYS, "[[1\x01]]", 3},
    {&KEYS, "[[\v1]]", 2},
    {&KEYS, "[[\f1]]", 2},
    {&KEYS, "[[1\xc2\xa0]]", 3},
    {&KEYS, "[[1e]]", 4},
    {&KEYS, "[[1e+]]", 5},
    {&KEYS, "[[-]]", 3},
    {&KEYS, "[[--1]]", 3},
    {&KEYS, "[[1-1]]", 3},
    {&KEYS, "[[1.5.5]]", 5},
    {&KEYS, "[[1,,2]]", 4},
    {&KEYS, "[[1,2],,[3,4]]", 7},
    {&KEYS, "[[tru]]", 5},
    {&KEYS, "[[nul1]]", 5},
    {&KEYS, "[[True]]", 2},
    {&KEYS, "[[1'2]]", 3},
    {&KEYS, "[[1:2]]", 3},
    {&KEYS, "[[00]]", 3},
    {&KEYS, "[[-01]]", 4},
    {&KEYS, "[[1,2],[3,4}]", 11},
    {&KEYS, "[[[[[[[[[[", 4},
    {&KEYS, "[[ [ [\n[", 7},
    {&BIAS, "[[[[[", 4},
    {&LENS, "[1.]", 3},
    {&LENS, "[01]", 2},
    {&LENS, "[1e]", 3},
    {&LENS, "[-]", 2},
    {&LENS, "[[[[[", 4},
    {&TOKENS, "[1,2,3,4,5,6,7,8,9,10,011]", 23},
    {&TOKENS, "[1,2,3,4,5,6,7,8,9,10,11 12]", 25},
    {&TOKENS, "[1,2,3,4,5,6,7,8,9,10,11,]", 25},
    {&TOKENS, "[1,2,3,4,5,6,7,8,9,10,-,11]", 23},
    {&TOKENS, "[1,2,3,4,5,6,7,8,9,10,11}]", 24},
    {&TOKENS, "[1,2,3,4,5,6,7,8,9,10,+11]", 22},
    {&MASK, "[[0,1,0,1,0,1,0,1,01]]", 19},
    {&MASK, "[[0, 1, 0, 1, 0, 1, 0 1]]", 22},
    {&MASK, "[[true,false,true,false,tru]]", 27},
    {&MASK, "[[truee]]", 6},
    {&MASK, "[[falsy]]", 6},
    {&MASK, "[[true false]]", 7},
    {&MASK, "[[01]]", 3},
    {&MASK, "[[true,]]", 7},
    {&MASK, "[[1,0 1]]", 6},
    {&MASK, "[[1true]]", 3},
    {&LENS, "nulL", 3},
    {&KEYS, "[[1,2],[3,4,5,6B]]", 15}, /* in rows that are too long, too */
    {&KEYS, "[[1,2],[3,4,5,,6]]", 14},
    {&KEYS, "[[1,2],[3,4,5}", 13},
    {&MASK, "[[true],[true,true,tru]]", 22},
    {&KEYS,
     "[[1.2345678901234567890123456789012345678901234567890123456789012345678901234567890.]]", 83},
    {&KEYS, "[[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,030]]",
     81},
};

static void test_finds_the_byte_that_is_no_json(void **state) {
  (void)state;
  for (size_t i = 0; i < LENGTH(NOT_JSON); i++) {
    const struct not_json *bad = &NOT_JSON[i];
    struct reading got;
    read_whole(&got, bad->rule, bad->text);
    if (got.error.status != STATUS_INVALID_JSON || got.error.offset != OFFSET + bad->offset)
      fail_msg("%s: status %d, offset %zu, %s %s", bad->text, (int)got.error.status,
               got.error.offset - OFFSET, got.error.pointer, got.error.detail);
    assert_true(got.error.has_offset);
    done(&got);
    check_all_cuts(bad->rule, bad->text);
  }
}

static void test_refuses_a_nul_byte(void **state) {
  (void)state;
  static const char text[] = "[[1\0,2]]";
  for (size_t i = 2; i <= 3; i++) {
    struct reading got;
    read_pieces(&got, &KEYS, i == 3 ? text : "[[\0]]", i == 3 ? sizeof text - 1 : 5, SIZE_MAX / 2,
                cut_none, NULL);
    assert_int_equal(got.error.status, STATUS_INVALID_JSON);
    assert_int_equal(got.error.offset, OFFSET + i);
    done(&got);
  }
}

static const struct refused {
  const struct tensor_rule *rule;
  const char *text, *pointer, *detail;
} REFUSED[] = {
    {&KEYS, "[[1,\"2\"]]", "/keys/0/1", "expected a number, got a string"},
    {&KEYS, "[[1,2],[{}]]", "/keys/1/0", "expected a number, got an object"},
    {&KEYS, "[[1,null]]", "/keys/0/1", "expected a number, got null"},
    {&KEYS, "[[[1,2],[3,true]]]", "/keys/0/1/1", "expected a number, got true"},
    {&KEYS, "[false]", "/keys/0", "expected an array, got false"},
    {&KEYS, "\"AAAA\"", "/keys", "expected an array, got a string"},
    {&KEYS, "null", "/keys", "expected an array, got null"},
    {&KEYS, "5,", "/keys", "expected an array, got a number"},
    {&KEYS, "[1,2]", "/keys/0", "expected an array of at least 2 dimensions, got 1"},
    {&KEYS, "[[[[1]]]]", "/keys/0/0/0", "expected a number, got an array"},
    {&KEYS, "[[[1,2],[3,[4]]]]", "/keys/0/1/1", "expected a number, got an array"},
    {&KEYS, "[[1,[2]]]", "/keys/0/1",
     "expected a number, got an array: all arrays must be nested equally deep"},
    {&KEYS, "[[[1],2]]", "/keys/0/1",
     "expected an array, got a number: all arrays must be nested equally deep"},
    {&KEYS, "[[[]],[1]]", "/keys/1/0",
     "expected an array, got a number: all arrays must be nested equally deep"},
    {&KEYS, "[[[1]],2]", "/keys/1",
     "expected an array, got a number: all arrays must be nested equally deep"},
    {&KEYS, "[[],1]", "/keys/1",
     "expected an array, got a number: all arrays must be nested equally deep"},
    {&KEYS, "[[[1,2],[3]]]", "/keys/0/1", "the array has 1 elements, expected 2"},
    {&KEYS, "[[[1,2],[3,4,5]]]", "/keys/0/1", "the array has 3 elements, expected 2"},
    {&KEYS, "[[1,2],[3]]", "/keys/1", "the array has 1 elements, expected 2"},
    {&KEYS, "[[1,2],[3,4,5 , 6]]", "/keys/1", "the array has 4 elements, expected 2"},
    {&KEYS, "[[],[1,2]]", "/keys/1", "the array has 2 elements, expected 0"},
    {&KEYS, "[[1,2],[]]", "/keys/1", "the array has 0 elements, expected 2"},
    {&KEYS, "[[[],[1]]]", "/keys/0/1", "the array has 1 elements, expected 0"},
    {&KEYS, "[[[1],[]]]", "/keys/0/1", "the array has 0 elements, expected 1"},
    {&KEYS_OF_TWO, "[[[1,2],[3]]]", "/keys/0/1", "the array has 1 elements, expected 2"},
    {&KEYS_OF_TWO, "[[[1,2],[3,4,5]]]", "/keys/0/1", "the array has 3 elements, expected 2"},
    {&KEYS_OF_TWO, "[[1],[2,3]]", "/keys/0", "the array has 1 elements, expected 2"},
    {&KEYS_OF_TWO, "[[[]]]", "/keys/0/0", "the array has 0 elements, expected 2"},
    {&KEYS_OF_TWO, "[[1,2],[]]", "/keys/1", "the array has 0 elements, expected 2"},
    {&KEYS_OF_TWO, "[[],[1,2]]", "/keys/0", "the array has 0 elements, expected 2"},
    {&HEADS, "[1,2]", "/head_mask", "the array has 2 elements, expected 3 (the model's heads)"},
    {&HEADS, "[]", "/head_mask", "the array has 0 elements, expected 3 (the model's heads)"},
    {&HEADS, "[1,2,3,4]", "/head_mask", "the array has 4 elements, expected 3 (the model's heads)"},
    {&HEADS, "[[1,2,3]]", "/head_mask/0", "expected a number, got an array"},
    {&BIAS, "[[[[1],[2]],[[3]]]]", "/bias/0/1", "the array has 1 elements, expected 2"},
    {&BIAS, "[[[[1]],[[3],[4]]]]", "/bias/0/1/1", "the array has more than 1 elements"},
    {&BIAS, "[[[[1,2]],[[3]]]]", "/bias/0/1/0", "the array has 1 elements, expected 2"},
    {&BIAS, "[[[[1]],[[2,3]]]]", "/bias/0/1/0", "the array has 2 elements, expected 1"},
    {&KEYS, "[[1e39]]", "/keys/0/0", "the number exceeds the float32 range"},
    {&KEYS, "[[1,2,-1e39]]", "/keys/0/2", "the number exceeds the float32 range"},
    {&KEYS, "[[1,2],[3,1e999]]", "/keys/1/1", "the number exceeds the float32 range"},
    {&KEYS, "[[340282356779733661637539395458142568448]]", "/keys/0/0",
     "the number exceeds the float32 range"},
    {&SCALAR, "[1]", "/scale", "expected a number, got an array"},
    {&SCALAR, "true", "/scale", "expected a number, got true"},
    {&LENS, "[1,2.0]", "/valid_lens/1",
     "expected an integer, got a number with a fraction or an exponent"},
    {&LENS, "[1e2]", "/valid_lens/0",
     "expected an integer, got a number with a fraction or an exponent"},
    {&LENS, "[2147483648]", "/valid_lens/0", "the number exceeds the 32-bit integer range"},
    {&LENS, "[[1],[2,-2147483649]]", "/valid_lens/1/1",
     "the number exceeds the 32-bit integer range"},
    {&LENS, "[99999999999999999999999999]", "/valid_lens/0",
     "the number exceeds the 32-bit integer range"},
    {&LENS, "[null]", "/valid_lens/0", "expected an integer, got null"},
    {&TOKENS, "[1,2,3,4,5,6,7,8,9,10,1e0]", "/tokens/10",
     "expected an integer, got a number with a fraction or an exponent"},
    {&TOKENS, "[1,2,3,4,5,6,7,8,9,10,11.0,12]", "/tokens/10",
     "expected an integer, got a number with a fraction or an exponent"},
    {&TOKENS, "[1,2,3,4,5,6,7,8,9,10,2147483648]", "/tokens/10",
     "the number exceeds the 32-bit integer range"},
    {&TOKENS, "[1,2,3,4,5,6,7,8,-2147483649,10]", "/tokens/8",
     "the number exceeds the 32-bit integer range"},
    {&TOKENS, "[1,2,3,4,5,6,7,8,4294967297,10]", "/tokens/8",
     "the number exceeds the 32-bit integer range"},
    {&TOKENS, "[1,2,3,4,5,6,7,8,9223372036854775808,10]", "/tokens/8",
     "the number exceeds the 32-bit integer range"},
    {&TOKENS, "[1,2,3,4,5,6,7,8,18446744073709551617,10]", "/tokens/8",
     "the number exceeds the 32-bit integer range"},
    {&TOKENS, "[[1,2,3,4],[5,6,7,8],9]", "/tokens/2",
     "expected an array, got a number: all arrays must be nested equally deep"},
    {&TOKENS, "[1,2,3,4,5,6,7,8,true]", "/tokens/8", "expected an integer, got true"},
    {&MASK, "[[0,1,0,1,0,1,0,1,2]]", "/mask/0/8",
     "expected true, false, 1 or 0, got another number"},
    {&MASK, "[[0,1,0],[1,0,1,0,1,0,1,0]]", "/mask/1", "the array has 8 elements, expected 3"},
    {&MASK, "[[true,2]]", "/mask/0/1", "expected true, false, 1 or 0, got another number"},
    {&MASK, "[[-1]]", "/mask/0/0", "expected true, false, 1 or 0, got another number"},
    {&MASK, "[[-0]]", "/mask/0/0", "expected true, false, 1 or 0, got another number"},
    {&MASK, "[[1.0]]", "/mask/0/0", "expected true, false, 1 or 0, got another number"},
    {&MASK, "[[99999999999999999999]]", "/mask/0/0",
     "expected true, false, 1 or 0, got another number"},
    {&MASK, "[[true,null]]", "/mask/0/1", "expected true, false, 1 or 0, got null"},
    {&MASK, "[[true,false],[true]]", "/mask/1", "the array has 1 elements, expected 2"},
    {&MASK, "[[true],[true,true, false]]", "/mask/1", "the array has 3 elements, expected 1"},
    {&MASK, "[[true],[true,true,[]]]", "/mask/1", "the array has more than 1 elements"},
    {&MASK, "[true]", "/mask/0", "expected an array of at least 2 dimensions, got 1"},
};

static void test_points_at_what_breaks_the_contract(void **state) {
  (void)state;
  for (size_t i = 0; i < LENGTH(REFUSED); i++) {
    const struct refused *bad = &REFUSED[i];
    struct reading got;
    read_whole(&got, bad->rule, bad->text);
    if (got.error.status != STATUS_INVALID_REQUEST ||
        strcmp(got.error.pointer, bad->pointer) != 0 || strcmp(got.error.detail, bad->detail) != 0)
      fail_msg("%s: status %d, %s: %s", bad->text, (int)got.error.status, got.error.pointer,
               got.error.detail);
    done(&got);
    check_all_cuts(bad->rule, bad->text);
  }
}

static void test_holds_the_limit_of_items(void **state) {
  (void)state;
  static const char *const text[] = {"[[],[],[],[]]", "[[[1,2]],[],[[3,4]],[[5,6]]]",
                                     "[[],[[1,2]],[],[[1"};
  for (size_t i = 0; i < LENGTH(text); i++) {
    struct reading got;
    read_whole(&got, &KEYS_OF_TWO, text[i]);
    assert_int_equal(got.error.status, STATUS_TOO_LARGE);
    assert_string_equal(got.error.limit, "max_items");
    done(&got);
    check_all_cuts(&KEYS_OF_TWO, text[i]);
  }
}

/* --- large texts --- */

static uint64_t draw(uint64_t *state) {
  *state += 0x9e3779b97f4a7c15;
  uint64_t z = *state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

static size_t cut_random(void *state, size_t left) {
  uint64_t x = draw(state);
  size_t piece = 1 + (x >> 8) % (x & 3 ? 300 : 20000);
  return piece < left ? piece : left;
}

static char *draw_blank(char *out, uint64_t *seed) {
  static const char blank[] = " \n\t\r";
  for (uint64_t x = draw(seed); (x & 15) == 0; x >>= 4) *out++ = blank[(x >> 4) & 3];
  return out;
}

static char *draw_number(char *out, uint64_t *seed) {
  uint64_t x = draw(seed);
  double value = (double)(int64_t)draw(seed) * 0x1p-62;
  switch (x % 12) {
  case 0:
    return out + sprintf(out, "%d", (int)(x >> 40) - 4000000);
  case 1:
    return out + sprintf(out, "%.17g", value);
  case 2:
    return out + sprintf(out, "%.*e", (int)(x >> 8) % 80, value * 1e-30);
  case 3:
    return out + sprintf(out, "%.*f", (int)(x >> 8) % 150, value);
  case 4:
    return out + sprintf(out, "%d", (int)(x >> 8) % 10);
  default:
    return out + sprintf(out, "%.9g", value);
  }
}

/* A ragged batch as text, and its numbers as strtof reads them. */
struct sample {
  char *text;
  float *number;
  size_t length, count, items, rows[64];
};

static void sample_draw(struct sample *s, size_t width, uint64_t *seed) {
  s->text = malloc(64 * 64 * width * 200);
  s->number = malloc(64 * 64 * width * sizeof *s->number);
  assert_non_null(s->text);
  assert_non_null(s->number);
  s->items = 1 + draw(seed) % 6;
  s->count = 0;
  char *out = s->text;
  *out++ = '[';
  for (size_t i = 0; i < s->items; i++) {
    s->rows[i] = draw(seed) % 9;
    if (i) *out++ = ',';
    *out++ = '[';
    for (size_t k = 0; k < s->rows[i]; k++) {
      if (k) *out++ = ',';
      *out++ = '[';
      for (size_t c = 0; c < width; c++) {
        if (c) *out++ = ',';
        out = draw_blank(out, seed);
        char *number = out;
        out = draw_number(out, seed);
        *out = '\0';
        s->number[s->count++] = strtof(number, NULL);
        out = draw_blank(out, seed);
      }
      *out++ = ']';
    }
    *out++ = ']';
  }
  *out++ = ']';
  s->length = (size_t)(out - s->text);
}

static void test_reads_large_texts_in_pieces_of_any_size(void **state) {
  (void)state;
  uint64_t seed = 11;
  for (size_t round = 0; round < rounds(60); round++) {
    struct sample s;
    size_t width = 1 + draw(&seed) % 200;
    sample_draw(&s, width, &seed);
    struct tensor_rule rule = KEYS;
    rule.width = round % 2 ? width : 0;
    for (size_t k = 0; k < 3; k++) {
      struct reading got;
      read_pieces(&got, &rule, s.text, s.length, SIZE_MAX / 2, k ? cut_random : cut_none, &seed);
      if (!got.tensor) fail_msg("refused: %s %s", got.error.pointer, got.error.detail);
      assert_int_equal(got.tensor->count, s.count);
      assert_int_equal(got.tensor->elements, s.items);
      if (s.count) assert_memory_equal(got.tensor->data, s.number, s.count * sizeof *s.number);
      for (size_t i = 0; i < s.items; i++) {
        assert_int_equal(tensor_shape_at(got.tensor, i).dim[0], s.rows[i]);
        assert_int_equal(tensor_shape_at(got.tensor, i).dim[1], s.rows[i] ? width : 0);
      }
      done(&got);
    }
    free(s.text);
    free(s.number);
  }
}

/* One byte of a good text is changed, lost or added: whole and in pieces, the verdict is one. */
static void test_judges_damaged_texts_alike_however_they_are_cut(void **state) {
  (void)state;
  static const char byte[] = "0123456789.,-+eE[] \n{}\"tfn";
  uint64_t seed = 12;
  for (size_t round = 0; round < rounds(300); round++) {
    struct sample s;
    sample_draw(&s, 1 + draw(&seed) % 12, &seed);
    for (size_t k = 0; k < 10; k++) {
      size_t at = draw(&seed) % s.length, kind = draw(&seed) % 3;
      char *text = malloc(s.length + 1);
      assert_non_null(text);
      memcpy(text, s.text, at);
      text[at] = byte[draw(&seed) % (sizeof byte - 1)];
      size_t lost = kind == 1 ? 0 : 1, added = kind == 2 ? 0 : 1;
      memcpy(text + at + added, s.text + at + lost, s.length - at - lost);
      size_t length = s.length - lost + added;
      struct reading whole, cut;
      read_pieces(&whole, &KEYS, text, length, SIZE_MAX / 2, cut_none, NULL);
      read_pieces(&cut, &KEYS, text, length, SIZE_MAX / 2, cut_random, &seed);
      assert_same(&KEYS, &whole, &cut);
      done(&whole);
      done(&cut);
      read_pieces(&whole, &MASK, text, length, SIZE_MAX / 2, cut_none, NULL);
      read_pieces(&cut, &MASK, text, length, SIZE_MAX / 2, cut_random, &seed);
      assert_same(&MASK, &whole, &cut);
      done(&whole);
      done(&cut);
      free(text);
    }
    free(s.text);
    free(s.number);
  }
}

static void test_reads_masks_of_any_notation_in_pieces(void **state) {
  (void)state;
  static const char *const flag[] = {"0", "1", "false", "true"};
  uint64_t seed = 13;
  enum { ROWS = 40, WIDTH = 60 };
  for (size_t round = 0; round < rounds(20); round++) {
    char *text = malloc(ROWS * WIDTH * 12), *out = text;
    uint8_t expected[ROWS * WIDTH];
    assert_non_null(text);
    *out++ = '[';
    for (size_t i = 0; i < ROWS * WIDTH; i++) {
      uint64_t x = draw(&seed);
      expected[i] = x & 1;
      if (i % WIDTH == 0) out += sprintf(out, "%s[", i ? "]," : "");
      out += sprintf(out, "%s%s%s%s", i % WIDTH ? "," : "", x & 14 ? "" : " ",
                     flag[x >> 4 & 1 ? 2 + (x & 1) : (x & 1)], x & 0xf00 ? "" : " ");
    }
    out += sprintf(out, "]]");
    struct reading got;
    read_pieces(&got, &MASK, text, (size_t)(out - text), SIZE_MAX / 2,
                round ? cut_random : cut_none, &seed);
    assert_non_null(got.tensor);
    assert_int_equal(got.tensor->count, ROWS * WIDTH);
    assert_memory_equal(got.tensor->data, expected, sizeof expected);
    done(&got);
    free(text);
  }
}

/* A ragged list of integers or a mask, written in one of several ways. Returns its length. */
static size_t draw_short_values(char *text, const struct tensor_rule *rule, uint64_t *seed) {
  static const char *const between[] = {",", ", ", ",\n  ", " , "};
  static const char *const flag[] = {"0", "1", "false", "true"};
  char *out = text;
  const size_t rows = 1 + draw(seed) % 5, width = 1 + draw(seed) % 60, style = draw(seed) % 4;
  *out++ = '[';
  for (size_t i = 0; i < rows; i++) {
    const size_t here = rule->type == TENSOR_FLAG ? width : draw(seed) % 60;
    out += sprintf(out, i ? ",[" : "[");
    for (size_t j = 0; j < here; j++) {
      const uint64_t x = draw(seed);
      if (j) out += sprintf(out, "%s", between[style]);
      if (rule->type == TENSOR_FLAG)
        out += sprintf(out, "%s", flag[x % (style % 2 ? 4 : 2)]);
      else
        out += sprintf(out, "%d", (int32_t)x >> (x >> 32) % 32);
    }
    *out++ = ']';
  }
  *out++ = ']';
  return (size_t)(out - text);
}

/* Byte by byte each value is read for itself: in larger pieces the verdict is the same. */
static void test_judges_damaged_integers_and_flags_alike_however_they_are_cut(void **state) {
  (void)state;
  static const char byte[] = "0123456789.,-+eE[] \n{}\"tfn";
  static char text[5 * 60 * 16];
  uint64_t seed = 16;
  for (size_t round = 0; round < rounds(3000); round++) {
    const struct tensor_rule *rule = round % 2 ? &MASK : &TOKENS;
    const size_t length = draw_short_values(text, rule, &seed);
    for (size_t damages = round % 3; damages > 0; damages--)
      text[draw(&seed) % length] = byte[draw(&seed) % (sizeof byte - 1)];
    struct reading bytes, cut;
    read_pieces(&bytes, rule, text, length, SIZE_MAX / 2, cut_bytes, NULL);
    for (size_t k = 0; k < 4; k++) {
      read_pieces(&cut, rule, text, length, SIZE_MAX / 2, k ? cut_random : cut_none, &seed);
      assert_same(rule, &bytes, &cut);
      done(&cut);
    }
    done(&bytes);
  }
}

static void test_reads_a_number_longer_than_its_chunks(void **state) {
  (void)state;
  enum { DIGITS = 100 * 1000 };
  char *text = malloc(DIGITS + 32);
  assert_non_null(text);
  memcpy(text, "[[1.", 4);
  memset(text + 4, '0', DIGITS);
  text[DIGITS] = '7';
  strcpy(text + 4 + DIGITS, "e1,2]]");
  uint64_t seed = 14;
  struct reading got;
  read_pieces(&got, &KEYS, text, strlen(text), 64 * 1024, cut_random, &seed);
  assert_non_null(got.tensor);
  assert_true(((float *)got.tensor->data)[0] == 10);
  assert_true(((float *)got.tensor->data)[1] == 2);
  done(&got);
  free(text);
}

/* A list that is a little too long is read to its end, for its length can be said then. One of many
 * more numbers is not read on, wherever it is cut and whatever comes next. */
static void test_does_not_read_on_what_has_too_many_numbers(void **state) {
  (void)state;
  enum { MANY = 6000 };
  static const char *const next[] = {"7", "0", "07", "-", "1e3", "99999999999", "true", "x"};
  static const struct tensor_rule *const rules[] = {&TOKENS, &MASK};
  static char text[2 * MANY + 32];
  uint64_t seed = 17;
  for (size_t r = 0; r < LENGTH(rules); r++) {
    struct tensor_rule rule = *rules[r];
    struct reading got, cut;
    rule.max_count = 8;
    for (size_t n = 9; n < MANY; n += 1 + n / 900 * 50) {
      char *out = text + sprintf(text, r ? "[[" : "[");
      for (size_t i = 0; i < n; i++) out += sprintf(out, "%zu,", i % 2);
      sprintf(out, "%s]]", next[n % LENGTH(next)]);
      read_pieces(&got, &rule, text, strlen(text), SIZE_MAX / 2, cut_bytes, NULL);
      read_pieces(&cut, &rule, text, strlen(text), SIZE_MAX / 2, cut_random, &seed);
      assert_same(&rule, &got, &cut);
      const bool many = strstr(got.error.detail, "has more than") != NULL;
      if (n < 900) assert_false(many);
      if (n > 5000) assert_true(many && got.used < (size_t)(out - text));
      if (many) assert_string_equal(got.error.pointer, r ? "/mask" : "/tokens");
      done(&got);
      done(&cut);
    }
  }
}

/* --- memory --- */

static void test_a_full_budget_is_an_answer(void **state) {
  (void)state;
  enum { NUMBERS = 20 * 1000, ROOM = 2 * NUMBERS + 16 };
  char *text = malloc(ROOM), *out = text;
  assert_non_null(text);
  *out++ = '[';
  *out++ = '[';
  for (size_t i = 0; i < NUMBERS; i++) out = memcpy(out, "7,", 2), out += 2;
  memcpy(out - 1, "]]", 2);
  size_t length = (size_t)(out + 1 - text), refused = 0;
  bool enough = false;
  for (size_t budget = 0; !enough; budget = budget ? budget + budget / 3 : 100) {
    struct reading got;
    uint64_t seed = 15;
    read_pieces(&got, &KEYS, text, length, budget, cut_random, &seed);
    enough = got.tensor != NULL;
    if (!enough) assert_string_equal(got.error.limit, "memory_budget_bytes");
    refused += !enough;
    if (enough) assert_in_range(got.arena.bytes, 1, 2 * NUMBERS * sizeof(float) + 32 * 1024);
    done(&got);
  }
  assert_true(refused > 10);
  free(text);
}

static void test_empty_items_cost_little_and_are_bounded(void **state) {
  (void)state;
  enum { ITEMS = 100 * 1000 };
  char *text = malloc(5 * ITEMS + 16), *out = text;
  assert_non_null(text);
  *out++ = '[';
  for (size_t i = 0; i < ITEMS; i++) out += sprintf(out, i % 2 ? "[]," : "[[]],");
  out[-1] = ']';
  struct tensor_rule rule = KEYS;
  rule.max_elements = 1000;
  struct reading got;
  read_pieces(&got, &rule, text, (size_t)(out - text), SIZE_MAX / 2, cut_none, NULL);
  assert_int_equal(got.error.status, STATUS_TOO_LARGE);
  assert_true(got.arena.bytes < 64 * 1024);
  done(&got);
  free(text);
}

static void test_a_million_brackets_are_no_json(void **state) {
  (void)state;
  enum { BRACKETS = 1000 * 1000 };
  char *text = malloc(BRACKETS);
  assert_non_null(text);
  memset(text, '[', BRACKETS);
  const struct tensor_rule *const rule[] = {&KEYS, &BIAS, &LENS, &MASK, &HEADS, &SCALAR};
  for (size_t i = 0; i < LENGTH(rule); i++) {
    struct reading got;
    read_pieces(&got, rule[i], text, BRACKETS, SIZE_MAX / 2, cut_none, NULL);
    assert_int_equal(got.error.status, STATUS_INVALID_JSON);
    assert_int_equal(got.error.offset, OFFSET + TENSOR_DEPTH_MAX);
    done(&got);
  }
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_reads_shapes_and_numbers),
      cmocka_unit_test(test_cuts_do_not_matter_to_what_is_read),
      cmocka_unit_test(test_leaves_the_bytes_behind_the_value),
      cmocka_unit_test(test_is_not_complete_before_the_value_is),
      cmocka_unit_test(test_finds_the_byte_that_is_no_json),
      cmocka_unit_test(test_refuses_a_nul_byte),
      cmocka_unit_test(test_points_at_what_breaks_the_contract),
      cmocka_unit_test(test_holds_the_limit_of_items),
      cmocka_unit_test(test_does_not_read_on_what_has_too_many_numbers),
      cmocka_unit_test(test_reads_large_texts_in_pieces_of_any_size),
      cmocka_unit_test(test_judges_damaged_texts_alike_however_they_are_cut),
      cmocka_unit_test(test_reads_masks_of_any_notation_in_pieces),
      cmocka_unit_test(test_judges_damaged_integers_and_flags_alike_however_they_are_cut),
      cmocka_unit_test(test_reads_a_number_longer_than_its_chunks),
      cmocka_unit_test(test_a_full_budget_is_an_answer),
      cmocka_unit_test(test_empty_items_cost_little_and_are_bounded),
      cmocka_unit_test(test_a_million_brackets_are_no_json),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
