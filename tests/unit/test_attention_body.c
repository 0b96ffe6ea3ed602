/* test_attention_body: the text of a request into the core's call, and every way to get it wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/attention/trace.h"
#include "server/attention/attention_checking.h"
#include "tests/support/body_read.h"

static const struct body_terms json_terms[] = {
    {.ask = ASK_ATTENTION, .body_bytes = BODY_UNKNOWN, .json_bytes = BODY_UNKNOWN},
    {.ask = ASK_HEADS, .body_bytes = BODY_UNKNOWN, .json_bytes = BODY_UNKNOWN},
};

/* The reader looks at a model's shape and its default for `causal` only. */
static const struct model equal = {.name = "equal",
                                   .shape = {.heads = 2,
                                             .kv_heads = 2,
                                             .head_size = 1,
                                             .key_head_size = 1,
                                             .value_head_size = 1,
                                             .query_size = 2,
                                             .key_size = 2,
                                             .value_size = 2,
                                             .output_size = 2}};
static const struct model unequal = {
    .name = "unequal",
    .shape = {.heads = 2, .query_size = 2, .key_size = 3, .value_size = 1, .output_size = 2},
    .causal = true};
static const struct model values_differ = {
    .name = "values-differ",
    .shape = {.heads = 2, .query_size = 2, .key_size = 2, .value_size = 1, .output_size = 2}};

/* Its outputs are wider than its queries. */
static const struct model sigmoid = {.name = "sigmoid",
                                     .shape = {.heads = 2,
                                               .query_size = 2,
                                               .key_size = 2,
                                               .value_size = 2,
                                               .output_size = 3,
                                               .sigmoid = true}};

/* Reads a body in two chunks, cut at `cut`. */
static void read_as(struct body_result *r, const struct model *m, enum body_ask ask,
                    const struct body_limits *limits, const char *body, size_t length, size_t cut) {
  const struct body_terms terms = body_read_terms(ask, BODY_JSON);
  memset(r, 0, sizeof *r);
  body_read(r, m, &terms, limits, body, length, cut, SIZE_MAX);
}

static void read_cut(struct body_result *r, const struct model *m, const struct body_limits *limits,
                     const char *body, size_t length, size_t cut) {
  read_as(r, m, ASK_ATTENTION, limits, body, length, cut);
}

static void accept_as(struct body_result *r, const struct model *m, enum body_ask ask,
                      const char *body) {
  read_as(r, m, ask, &body_read_wide, body, strlen(body), strlen(body));
  if (r->error.status)
    fail_msg("%s\nrefused: %s (%s, %zu)", body, r->error.detail, r->error.pointer, r->error.offset);
}

static void accept(struct body_result *r, const struct model *m, const char *body) {
  accept_as(r, m, ASK_ATTENTION, body);
}

static void assert_item(const struct layer_run *c, size_t i, size_t q, size_t k, size_t q_row,
                        size_t k_row) {
  assert_int_equal(c->geometry.item[i].q, q);
  assert_int_equal(c->geometry.item[i].k, k);
  assert_int_equal(c->geometry.item[i].q_row, q_row);
  assert_int_equal(c->geometry.item[i].k_row, k_row);
}

/* --- what is accepted --- */

static const char full[] =
    "{ \"queries\" : [[[1,2],[3,4]], [[5,6.5]]],\n"
    "\t\"keys\":[[[1,2,3],[4,5,6],[7,8,9]],[[-1,-2e0,-3],[0.5,0,1e-3]]] ,"
    "\"valu\\u0065s\":[[[1],[2],[3]],[[4],[5]]],\r\n"
    "\"valid_lens\":[[3,0],[2]],\"mask\":[[[1,0,true],[false,1,1]],[[0,1]]],"
    "\"bias\":[[[[1,2,3],[4,5,6]],[[7,8,9],[10,11,12]]],[[[13,14]],[[15,16]]]],"
    "\"causal\":false,\"causal_offset\":[-1,7],\"window\":[ 3 , -1 ],\"head_mask\":[1,0.25],"
    "\"select\":\"so\\u0066t\",\"seed\":9007199254740991,\"empty_rows\":\"uniform\","
    "\"return_attention\":\"average\",\"return_pointers\":false,\"encoding_format\":\"float\","
    "\"trace\" : {\"query\": 1 ,\"item\":0,\"h\\u0065ad\":1} } \n";

/* What does not go with all of that: two levels, and the measures' gradients. */
static const char two_levels[] =
    "{\"segments\":[[0,2,-0,1],[2]] , \"gradients\" : [[[0.5,-1],[2,3]],[[4,5e-1]]],"
    "\"queries\":[[[1,2],[3,4]],[[5,6]]],\"keys\":[[[1,2,3],[4,5,6],[7,8,9]],"
    "[[1,2,3],[4,5,6]]],\"values\":[[[1],[2],[3]],[[4],[5]]],"
    "\"return_attention\":true,\"return_pointers\" :true ,\"seed\":0} \n";

static void check_two_levels(const struct attention_request *d) {
  const struct layer_run *c = &d->asked;
  const int32_t ends[] = {0, 2, 2, 3, 2};
  const float gradients[] = {0.5f, -1, 2, 3, 4, 0.5f};
  assert_int_equal(c->geometry.item[0].segments, 4);
  assert_int_equal(c->geometry.item[0].segments_at, 0);
  assert_int_equal(c->geometry.item[1].segments, 1);
  assert_int_equal(c->geometry.item[1].segments_at, 4);
  assert_memory_equal(c->geometry.segment_end, ends, sizeof ends);
  assert_memory_equal(c->call.gradients, gradients, sizeof gradients);
  assert_int_equal(c->call.select, SELECT_SOFT);
  assert_int_equal(c->call.seed, 0);
  assert_int_equal(c->call.want, WEIGHTS_PER_HEAD);
  assert_true(c->call.want_pointers);
  assert_true(c->call.want_measures);
  assert_null(c->call.trace);
}

static void check_full(const struct attention_request *d) {
  const struct layer_run *c = &d->asked;
  assert_false(d->unbatched);
  assert_int_equal(c->geometry.items, 2);
  assert_int_equal(c->geometry.q_rows, 3);
  assert_int_equal(c->geometry.k_rows, 5);
  assert_item(c, 0, 2, 3, 0, 0);
  assert_item(c, 1, 1, 2, 2, 3);
  const float queries[] = {1, 2, 3, 4, 5, 6.5f}, values[] = {1, 2, 3, 4, 5};
  const float keys[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -2, -3, 0.5f, 0, 1e-3f};
  const float bias[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  const float head_mask[] = {1, 0.25f};
  const int32_t lens[] = {3, 0, 2};
  const uint8_t mask[] = {1, 0, 1, 0, 1, 1, 0, 1};
  assert_memory_equal(c->call.queries, queries, sizeof queries);
  assert_memory_equal(c->call.keys, keys, sizeof keys);
  assert_memory_equal(c->call.values, values, sizeof values);
  assert_memory_equal(c->geometry.lens, lens, sizeof lens);
  assert_memory_equal(c->geometry.mask, mask, sizeof mask);
  assert_memory_equal(c->geometry.bias, bias, sizeof bias);
  assert_memory_equal(c->call.head_mask, head_mask, sizeof head_mask);
  assert_true(c->geometry.bias_per_head);
  assert_int_equal(c->geometry.item[1].mask_at, 6);
  assert_int_equal(c->geometry.item[1].bias_at, 12);
  assert_int_equal(c->geometry.item[0].offset, -1);
  assert_int_equal(c->geometry.item[1].offset, 7);
  assert_false(c->geometry.causal);
  assert_int_equal(c->geometry.window_left, 3);
  assert_int_equal(c->geometry.window_right, -1);
  assert_true(c->call.uniform_rows);
  assert_int_equal(c->call.want, WEIGHTS_AVERAGE);
  assert_int_equal(c->call.select, SELECT_SOFT);
  assert_int_equal(c->call.seed, 9007199254740991);
  assert_false(c->call.want_pointers);
  assert_false(c->call.want_measures);
  assert_int_equal(c->call.trace->item, 0);
  assert_int_equal(c->call.trace->head, 1);
  assert_int_equal(c->call.trace->row, 1);
  assert_null(c->geometry.segment_end);
  assert_null(c->call.gradients);
}

/* Requests that have, together, every field. */
static const struct whole {
  enum body_ask ask;
  const char *text;
  size_t length;
  void (*check)(const struct attention_request *d);
} wholes[] = {{ASK_ATTENTION, full, sizeof full - 1, check_full},
              {ASK_HEADS, two_levels, sizeof two_levels - 1, check_two_levels}};
enum { WHOLES = sizeof wholes / sizeof *wholes };

static void every_field_cut_at_every_byte(void **state) {
  (void)state;
  for (const struct whole *w = wholes; w < wholes + WHOLES; w++)
    for (size_t cut = 0; cut <= w->length; cut++) {
      struct body_result r;
      read_as(&r, &unequal, w->ask, &body_read_wide, w->text, w->length, cut);
      if (r.error.status) fail_msg("cut at %zu: %s", cut, r.error.detail);
      w->check(&r.request);
      arena_free(&r.arena);
    }
}

static void every_byte_a_chunk(void **state) {
  (void)state;
  for (const struct whole *w = wholes; w < wholes + WHOLES; w++) {
    struct body_result r = {0};
    struct attention_body *d =
        attention_body_new(&unequal, &json_terms[w->ask], &body_read_wide, &r.arena, &r.error);
    for (size_t i = 0; i < w->length; i++) body_feed(attention_body_of(d), w->text + i, 1);
    attention_body_finish(d, &r.request);
    assert_int_equal(r.error.status, STATUS_OK);
    w->check(&r.request);
    arena_free(&r.arena);
  }
}

static void every_truncation_is_no_json(void **state) {
  (void)state;
  for (const struct whole *w = wholes; w < wholes + WHOLES; w++)
    for (size_t length = 0; length < w->length - 2; length++) { /* behind '}' are two blanks */
      struct body_result r;
      read_as(&r, &unequal, w->ask, &body_read_wide, w->text, length, length / 2);
      assert_int_equal(r.error.status, STATUS_INVALID_JSON);
      assert_true(r.error.has_offset);
      assert_int_equal(r.error.offset, length);
      arena_free(&r.arena);
    }
}

static void defaults_and_self_attention(void **state) {
  (void)state;
  struct body_result r;
  accept(&r, &equal, "{\"queries\":[[[1,2]],[[3,4],[5,6]]]}");
  const struct layer_run *c = &r.request.asked;
  assert_int_equal(c->geometry.items, 2);
  assert_ptr_equal(c->call.keys, c->call.queries);
  assert_ptr_equal(c->call.values, c->call.queries);
  assert_item(c, 1, 2, 2, 1, 1);
  assert_null(c->geometry.lens);
  assert_null(c->geometry.mask);
  assert_null(c->geometry.bias);
  assert_null(c->call.head_mask);
  assert_false(c->geometry.causal);
  assert_int_equal(c->geometry.window_left, -1);
  assert_int_equal(c->geometry.window_right, -1);
  assert_int_equal(c->call.want, WEIGHTS_NONE);
  assert_int_equal(c->call.select, SELECT_SOFT);
  assert_int_equal(c->call.seed, 0);
  assert_false(c->call.want_pointers);
  assert_false(c->call.want_measures);
  assert_null(c->geometry.segment_end);
  assert_null(c->call.gradients);
  arena_free(&r.arena);

  accept(&r, &equal, "{\"queries\":[[[1,2]]],\"keys\":[[[3,4],[5,6]]],\"valid_lens\":null}");
  assert_ptr_equal(r.request.asked.call.values, r.request.asked.call.keys);
  assert_null(r.request.asked.geometry.lens);
  arena_free(&r.arena);

  accept(&r, &unequal, "{\"queries\":[],\"keys\":[],\"values\":[],\"return_attention\":true}");
  assert_true(r.request.asked.geometry.causal);
  assert_int_equal(r.request.asked.call.want, WEIGHTS_PER_HEAD);
  arena_free(&r.arena);
}

static void unbatched_loses_the_first_dimension(void **state) {
  (void)state;
  struct body_result r;
  accept(&r, &equal,
         "{\"keys\":[[1,2],[3,4],[5,6]],\"queries\":[[1,2],[3,4]],\"valid_lens\":[1,3],"
         "\"mask\":[[1,1,1],[1,0,1]],\"bias\":[[[1,2,3],[4,5,6]],[[7,8,9],[0,1,2]]],"
         "\"causal_offset\":\"end\"}");
  const struct layer_run *c = &r.request.asked;
  assert_true(r.request.unbatched);
  assert_int_equal(c->geometry.items, 1);
  assert_item(c, 0, 2, 3, 0, 0);
  assert_int_equal(c->geometry.lens[0], 1);
  assert_int_equal(c->geometry.lens[1], 3);
  assert_int_equal(c->geometry.mask[4], 0);
  assert_true(c->geometry.bias_per_head);
  assert_int_equal(c->geometry.item[0].offset, 1);
  arena_free(&r.arena);

  accept(&r, &equal, "{\"queries\":[[1,2],[3,4]],\"valid_lens\":2,\"bias\":[[1,2],[3,4]]}");
  assert_int_equal(r.request.asked.geometry.lens[1], 2);
  assert_false(r.request.asked.geometry.bias_per_head);
  arena_free(&r.arena);

  accept(&r, &equal, "{\"queries\":[[1,2]],\"keys\":[],\"causal_offset\":-2,\"valid_lens\":0}");
  assert_true(r.request.unbatched);
  assert_item(&r.request.asked, 0, 1, 0, 0, 0);
  assert_int_equal(r.request.asked.geometry.item[0].offset, -2);
  arena_free(&r.arena);
}

static void one_item_alone_may_have_more_rows_than_max_items(void **state) {
  (void)state;
  const struct body_limits one = {.max_items = 1, .max_pairs = 100, .max_answer_bytes = 10000};
  const char *body = "{\"valid_lens\":[1,2,3],\"mask\":[[1,1,1],[1,1,1],[1,1,1]],"
                     "\"queries\":[[1,2],[3,4],[5,6]],\"bias\":[[[1,1,1],[1,1,1],[1,1,1]],"
                     "[[1,1,1],[1,1,1],[1,1,1]]]}";
  struct body_result r;
  read_cut(&r, &equal, &one, body, strlen(body), 0);
  if (r.error.status) fail_msg("%s", r.error.detail);
  arena_free(&r.arena);
}

static void one_mask_for_items_of_one_shape(void **state) {
  (void)state;
  struct body_result r;
  accept(&r, &equal,
         "{\"queries\":[[[1,2],[3,4]],[[5,6],[7,8]]],\"mask\":[[1,0],[1,1]],"
         "\"bias\":[[1,2],[3,4]],\"valid_lens\":[0,2],\"causal_offset\":[3,4]}");
  const struct layer_run *c = &r.request.asked;
  assert_int_equal(c->geometry.item[1].mask_at, 0);
  assert_int_equal(c->geometry.item[1].bias_at, 0);
  const int32_t lens[] = {0, 0, 2, 2};
  assert_memory_equal(c->geometry.lens, lens, sizeof lens);
  assert_int_equal(c->geometry.item[1].offset, 4);
  arena_free(&r.arena);
}

static void empty_shapes_are_legal(void **state) {
  (void)state;
  static const struct {
    const char *body;
    size_t items, q_rows, k_rows;
  } legal[] = {
      {"{\"queries\":[]}", 0, 0, 0},
      {"{\"queries\":[],\"valid_lens\":[],\"mask\":[],\"bias\":[],\"causal_offset\":[]}", 0, 0, 0},
      {"{\"queries\":[],\"mask\":[[1,0],[1,1]]}", 0, 0, 0},
      {"{\"queries\":[[]]}", 1, 0, 0},
      {"{\"queries\":[[],[]],\"valid_lens\":[0,0]}", 2, 0, 0},
      {"{\"queries\":[[],[]],\"valid_lens\":[[],[]],\"mask\":[[],[]],\"bias\":[[],[]]}", 2, 0, 0},
      {"{\"queries\":[[],[]],\"mask\":[],\"bias\":[[[],[]],[[],[]]]}", 2, 0, 0},
      {"{\"queries\":[[[1,2]]],\"keys\":[[]],\"mask\":[[[]]],\"bias\":[[]]}", 1, 1, 0},
      {"{\"queries\":[[[1,2]]],\"keys\":[[]],\"values\":[[]],\"bias\":[[[[]],[[]]]]}", 1, 1, 0},
      {"{\"queries\":[[]],\"keys\":[[[1,2],[3,4]]],\"valid_lens\":[2],\"mask\":[[]]}", 1, 0, 2},
      {"{\"queries\":[[],[[1,2]]],\"valid_lens\":[[],[1]],\"mask\":[[],[[1]]]}", 2, 1, 1},
      {"{\"queries\":[[[1,2]],[]],\"keys\":[[],[[1,2]]]}", 2, 1, 1},
      {"{\"queries\":[[1,2],[3,4]],\"keys\":[],\"values\":[],\"mask\":[[],[]]}", 1, 2, 0},
  };
  for (size_t i = 0; i < sizeof legal / sizeof *legal; i++) {
    struct body_result r;
    accept(&r, &equal, legal[i].body);
    assert_int_equal(r.request.asked.geometry.items, legal[i].items);
    assert_int_equal(r.request.asked.geometry.q_rows, legal[i].q_rows);
    assert_int_equal(r.request.asked.geometry.k_rows, legal[i].k_rows);
    arena_free(&r.arena);
  }
}

static void keys_are_selected(void **state) {
  (void)state;
  struct body_result r;
  accept(&r, &equal, "{\"queries\":[[1,2]],\"select\":\"hard\",\"return_pointers\":true}");
  assert_int_equal(r.request.asked.call.select, SELECT_HARD);
  assert_true(r.request.asked.call.want_pointers);
  assert_false(r.request.asked.call.want_measures);
  arena_free(&r.arena);
  accept(&r, &equal, "{\"seed\":42,\"queries\":[[1,2]],\"select\":\"sample\"}");
  assert_int_equal(r.request.asked.call.select, SELECT_SAMPLE);
  assert_int_equal(r.request.asked.call.seed, 42);
  arena_free(&r.arena);
  accept(&r, &sigmoid, "{\"queries\":[[1,2]],\"select\":\"hard\"}");
  arena_free(&r.arena);
  accept(&r, &sigmoid, "{\"queries\":[[1,2]],\"select\":\"soft\",\"empty_rows\":\"uniform\"}");
  arena_free(&r.arena);
  accept(&r, &equal,
         "{\"queries\":[[1,2]],\"segments\":[1],\"select\":\"soft\",\"empty_rows\":\"zero\"}");
  arena_free(&r.arena);
  accept_as(&r, &equal, ASK_HEADS, "{\"queries\":[[1,2]],\"select\":\"hard\"}");
  assert_true(r.request.asked.call.want_measures);
  assert_null(r.request.asked.call.gradients);
  arena_free(&r.arena);
}

static void segments_end_where_the_next_begin(void **state) {
  (void)state;
#define K3  "{\"queries\":[[1,2]],\"keys\":[[1,2],[3,4],[5,6]]"
#define K03 "{\"queries\":[[[1,2]],[[1,2]]],\"keys\":[[],[[1,2],[3,4],[5,6]]]"
  static const struct {
    const char *body;
    size_t segments[2];
    int32_t end[4];
  } list[] = {
      {K3 ",\"segments\":[3]}", {1}, {3}},
      {K3 ",\"segments\":[1,0,2,0]}", {4}, {1, 1, 3, 3}},
      {K03 ",\"segments\":[[],[1,2]]}", {0, 2}, {1, 3}},
      {K03 ",\"segments\":[[0],[3]]}", {1, 1}, {0, 3}},
      {K03 ",\"segments\":[[0,0],[1,2]]}", {2, 2}, {0, 0, 1, 3}},
      {"{\"queries\":[],\"segments\":[]}", {0}, {0}},
      {"{\"queries\":[[]],\"segments\":[[]]}", {0}, {0}},
      {"{\"queries\":[[1,2]],\"keys\":[],\"segments\":[]}", {0}, {0}},
      {"{\"queries\":[[1,2]],\"keys\":[],\"segments\":[0,0]}", {2}, {0, 0}},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct body_result r;
    accept(&r, &equal, list[i].body);
    const struct layer_run *c = &r.request.asked;
    assert_non_null(c->geometry.segment_end);
    size_t all = 0;
    for (size_t n = 0; n < c->geometry.items; n++) {
      assert_int_equal(c->geometry.item[n].segments, list[i].segments[n]);
      assert_int_equal(c->geometry.item[n].segments_at, all);
      all += list[i].segments[n];
    }
    assert_memory_equal(c->geometry.segment_end, list[i].end, all * sizeof *list[i].end);
    arena_free(&r.arena);
  }
}

static void gradients_are_one_for_each_query(void **state) {
  (void)state;
  static const struct {
    const char *body;
    size_t rows;
  } list[] = {
      {"{\"queries\":[[1,2],[3,4]],\"gradients\":[[1,2,3],[4,5,6]]}", 2},
      {"{\"queries\":[[],[[1,2],[3,4]]],\"gradients\":[[],[[1,2,3],[4,5,6]]]}", 2},
      {"{\"queries\":[[[1,2]],[[3,4]]],\"gradients\":[[[1,2,3]],[[4,5,6]]]}", 2},
      {"{\"queries\":[],\"gradients\":[]}", 0},
      {"{\"queries\":[[],[]],\"gradients\":[[],[]]}", 0},
  };
  const float gradients[] = {1, 2, 3, 4, 5, 6};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct body_result r;
    accept_as(&r, &sigmoid, ASK_HEADS, list[i].body);
    assert_true(r.request.asked.call.want_measures);
    assert_non_null(r.request.asked.call.gradients);
    if (list[i].rows)
      assert_memory_equal(r.request.asked.call.gradients, gradients, sizeof gradients);
    arena_free(&r.arena);
  }
}

static void huge_window_is_unbounded(void **state) {
  (void)state;
  struct body_result r;
  accept(&r, &equal, "{\"queries\":[[1,2]],\"window\":[9223372036854775807,0]}");
  assert_true(r.request.asked.geometry.window_left > (int64_t)1 << 50);
  assert_true(r.request.asked.geometry.window_left < INT64_MAX / 2);
  arena_free(&r.arena);
}

/* --- what is refused --- */

struct refusal {
  const char *body;
  const char *pointer; /* of an invalid request; or NULL: no JSON, */
  size_t offset;       /* at this byte */
  const char *words;   /* in the detail, or NULL */
};

static void refuse_all(const struct model *m, enum body_ask ask, const struct refusal *all,
                       size_t count) {
  for (const struct refusal *want = all; want < all + count; want++) {
    size_t length = strlen(want->body);
    for (size_t cut = 0; cut <= length; cut++) {
      struct body_result r;
      read_as(&r, m, ask, &body_read_wide, want->body, length, cut);
      enum status status = want->pointer ? STATUS_INVALID_REQUEST : STATUS_INVALID_JSON;
      const char *pointer = want->pointer ? want->pointer : "";
      bool words = !want->words || strstr(r.error.detail, want->words);
      if (r.error.status != status || strcmp(r.error.pointer, pointer) != 0 || !words ||
          r.error.offset != want->offset || r.error.has_offset != !want->pointer)
        fail_msg("%s\ncut at %zu: status %d, pointer \"%s\", offset %zu: %s", want->body, cut,
                 r.error.status, r.error.pointer, r.error.offset, r.error.detail);
      arena_free(&r.arena);
    }
  }
}

#define REFUSE(model, list)       refuse_all(model, ASK_ATTENTION, list, sizeof(list) / sizeof *(list))
#define REFUSE_HEADS(model, list) refuse_all(model, ASK_HEADS, list, sizeof(list) / sizeof *(list))

#define DEEP "[[[[[[[[[[[[[[[["

static void what_is_no_json(void **state) {
  (void)state;
  static const struct refusal list[] = {
      {"", NULL, 0, "empty"},
      {" \n\t", NULL, 3, "empty"},
      {"\xef\xbb\xbf{\"queries\":[]}", NULL, 0, "byte order mark"},
      {"\xff\xfe{", NULL, 0, "byte order mark"},
      {"x", NULL, 0, "'x'"},
      {" ]", NULL, 1, "'{'"},
      {"[1,2", NULL, 4, NULL},
      {"[1 2]", NULL, 3, "'2'"},
      {DEEP DEEP DEEP DEEP "[[", NULL, 64, "deep"},
      {"nul", NULL, 3, "unexpected end"},
      {"nul]", NULL, 3, "']'"},
      {"-", NULL, 1, "unexpected end"},
      {"\"a", NULL, 2, NULL},
      {"{", NULL, 1, "unexpected end"},
      {"{queries:1}", NULL, 1, "'q'"},
      {"{,", NULL, 1, NULL},
      {"{\"queries\" []", NULL, 11, "':'"},
      {"{\"queries\":[]]", NULL, 13, "','"},
      {"{\"queries\":[],}", NULL, 14, "name"},
      {"{\"queries\":[]} x", NULL, 15, "end"},
      {"{\"queries\":[]}{", NULL, 14, "end"},
      {"{\"queries\":}", NULL, 11, "value"},
      {"{\"queries\":,", NULL, 11, "value"},
      {"{\"queries\":NaN", NULL, 11, "value"},
      {"{\"queries\":+1", NULL, 11, "value"},
      {"{\"causal\":True}", NULL, 10, "'T'"},
      {"{\"causal\":tru}", NULL, 13, "'}'"},
      {"{\"causal\":true", NULL, 14, "object is incomplete"},
      {"{\"seed\":01}", NULL, 9, "expected the rest of a number, got '1'"},
      {"{\"seed\":1.}", NULL, 10, "'}'"},
      {"{\"seed\":.5}", NULL, 8, "'.'"},
      {"{\"seed\":0x1}", NULL, 9, "'x'"},
      {"{\"window\":[1,2}", NULL, 14, "',' or ']'"},
      {"{\"window\":" DEEP DEEP DEEP DEEP "[[", NULL, 74, "deep"},
      {"{\"select\":\"\\x\"}", NULL, 12, NULL},
      {"{\"select\":\"a\nb\"}", NULL, 12, "control"},
      {"{\"select\":\"a\xff\"}", NULL, 12, "UTF-8"},
      {"{\"a\xc3\":1}", NULL, 4, "0x22"},
      {"{\"a\tb\":1}", NULL, 3, "control"},
      {"{\"\\ud800\":1}", NULL, 8, NULL},
  };
  REFUSE(&equal, list);
}

static void nul_bytes(void **state) {
  (void)state;
  static const struct {
    const char *body;
    size_t length, offset;
  } list[] = {
      {"{\0\"queries\":[]}", 15, 1},       {"\0{", 2, 0},
      {"{\"queries\":[]}\0", 15, 14},      {"{\"que\0ries\":[]}", 15, 5},
      {"{\"window\":[1\0,2]}", 17, 12},    {"{\"causal\":tr\0ue}", 16, 12},
      {"{\"queries\":[[1\0,2]]}", 20, 14},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    for (size_t cut = 0; cut <= list[i].length; cut++) {
      struct body_result r;
      read_cut(&r, &equal, &body_read_wide, list[i].body, list[i].length, cut);
      assert_int_equal(r.error.status, STATUS_INVALID_JSON);
      assert_int_equal(r.error.offset, list[i].offset);
      arena_free(&r.arena);
    }
}

static void what_is_no_request(void **state) {
  (void)state;
  static const struct refusal list[] = {
      {"[1,2]", "", 0, "object"},
      {"3", "", 0, "object"},
      {" null ", "", 0, "object"},
      {"\"text\"", "", 0, "object"},
      {"{}", "/queries", 0, "missing"},
      {"{\"keys\":[]}", "/queries", 0, "missing"},
      {"{\"queries\":[],\"queries\":[]}", "/queries", 0, "duplicate"},
      {"{\"causal\":true,\"c\\u0061usal\":true}", "/causal", 0, "duplicate"},
      {"{\"query\":[]}", "/query", 0, "\"queries\""},
      {"{\"\":1}", "/", 0, "unknown"},
      {"{\"a/b~c\":1}", "/a~1b~0c", 0, "a/b~c"},
      {"{\"\\n\\u0000\\u007f\":1}", "/\?\?\?", 0, "\"\?\?\?\""},
      {"{\"gr\xc3\xb6\xc3\x9f"
       "e\":1}",
       "/gr\xc3\xb6\xc3\x9f"
       "e",
       0, "gr\xc3\xb6"},
      {"{\"queries\":[[1,2]],\"causal\":1}", "/causal", 0, "true or false"},
      {"{\"causal\":null}", "/causal", 0, NULL},
      {"{\"window\":3}", "/window", 0, NULL},
      {"{\"window\":[1]}", "/window", 0, NULL},
      {"{\"window\":[1,2,3]}", "/window", 0, NULL},
      {"{\"window\":[1,2.0]}", "/window/1", 0, NULL},
      {"{\"window\":[-2,0]}", "/window/0", 0, NULL},
      {"{\"window\":[99999999999999999999,0]}", "/window", 0, "range"},
      {"{\"select\":\"SOFT\"}", "/select", 0, "must be"},
      {"{\"select\":true}", "/select", 0, "must be"},
      {"{\"select\":\"hard\\u0000\"}", "/select", 0, "must be"},
      {"{\"select\":null}", "/select", 0, "must be"},
      {"{\"seed\":-1}", "/seed", 0, NULL},
      {"{\"seed\":9007199254740992}", "/seed", 0, NULL},
      {"{\"seed\":1.0}", "/seed", 0, NULL},
      {"{\"seed\":1e999}", "/seed", 0, "range"},
      {"{\"empty_rows\":\"none\"}", "/empty_rows", 0, NULL},
      {"{\"empty_rows\":\"zero\\u0000\"}", "/empty_rows", 0, NULL},
      {"{\"empty_rows\":{\"a\":1,\"a\":1}}", "/empty_rows", 0, "duplicate"},
      {"{\"empty_rows\":{\"a\\u0000\":1}}", "/empty_rows", 0, "NUL"},
      {"{\"return_attention\":\"all\"}", "/return_attention", 0, NULL},
      {"{\"return_attention\":null}", "/return_attention", 0, NULL},
      {"{\"return_pointers\":0}", "/return_pointers", 0, "true or false"},
      {"{\"return_pointers\":\"true\"}", "/return_pointers", 0, "true or false"},
      {"{\"encoding_format\":\"hex\"}", "/encoding_format", 0, NULL},
      {"{\"trace\":true}", "/trace", 0, "must be an object"},
      {"{\"trace\":{\"item\":0,\"head\":1}}", "/trace", 0, "requires \"query\""},
      {"{\"trace\":{\"item\":0,\"head\":1.0,\"query\":2}}", "/trace/head", 0, "integer"},
      {"{\"trace\":{\"item\":-1,\"head\":1,\"query\":2}}", "/trace/item", 0, "integer"},
      {"{\"trace\":{\"items\":0}}", "/trace/items", 0, "unknown key \"items\""},
      {"{\"trace\":{\"\":0}}", "/trace", 0, "only the keys"},
      {"{\"trace\":{\"i~m\":0}}", "/trace", 0, "only the keys"},
      {"{\"trace\":{\"attention\":\"encoder.0.self\"}}", "/trace/attention", 0, "a single layer"},
      {"{\"segments\":null}", "/segments", 0, NULL},
      {"{\"segments\":3}", "/segments", 0, NULL},
      {"{\"segments\":[[[1]]]}", "/segments/0/0", 0, NULL},
      {"{\"segments\":[[1,2.0]]}", "/segments/0/1", 0, NULL},
      {"{\"segments\":[1,\"2\"]}", "/segments/1", 0, NULL},
      {"{\"segments\":[1,true]}", "/segments/1", 0, NULL},
      {"{\"segments\":[99999999999]}", "/segments/0", 0, NULL},
      {"{\"segments\":{\"dtype\":\"I32\"}}", "/segments", 0, "cannot be base64"},
      {"{\"gradients\":[[1]]}", "/gradients", 0, "/v1/models/{model}/heads"},
      {"{\"gradients\":null}", "/gradients", 0, "/v1/models/{model}/heads"},
      {"{\"keys\":{\"dtype\":\"F32\"}}", "/keys", 0, "shape is missing"},
      {"{\"keys\":[{\"dtype\":\"F32\"}]}", "/keys/0", 0, NULL},
      {"{\"queries\":null}", "/queries", 0, NULL},
      {"{\"queries\":\"x\"}", "/queries", 0, NULL},
      {"{\"queries\":1}", "/queries", 0, NULL},
      {"{\"queries\":[[[1,2,3]]]}", "/queries/0/0", 0,
       "has 3 elements, expected 2 (the model's query_size)"},
      {"{\"queries\":[[[1]]]}", "/queries/0/0", 0, NULL},
      {"{\"queries\":[[[1,1e39]]]}", "/queries/0/0/1", 0, NULL},
      {"{\"causal_offset\":\"start\"}", "/causal_offset", 0, "end"},
      {"{\"causal_offset\":1.5}", "/causal_offset", 0, NULL},
      {"{\"causal_offset\":99999999999}", "/causal_offset", 0, NULL},
      {"{\"causal_offset\":null}", "/causal_offset", 0, NULL},
      {"{\"head_mask\":[[1,2]]}", "/head_mask/0", 0, NULL},
  };
  REFUSE(&equal, list);
}

static void fields_that_disagree(void **state) {
  (void)state;
#define Q2 "{\"queries\":[[[1,2]],[[3,4],[5,6]]]"
#define Q1 "{\"queries\":[[1,2],[3,4]]"
  static const struct refusal list[] = {
      {Q2 ",\"keys\":[[[1,2]]]}", "/keys", 0, "1 items"},
      {Q2 ",\"keys\":[]}", "/keys", 0, NULL},
      {Q2 ",\"keys\":[[1,2],[3,4]]}", "/keys", 0, "dimensions"},
      {Q2 ",\"values\":[[[1,2]],[[1,2]]]}", "/values/1", 0, "1 values for 2 keys"},
      {Q2 ",\"keys\":[[],[]],\"values\":[[],[[1,2]]]}", "/values/1", 0, NULL},
      {Q1 ",\"keys\":[[[1,2]]]}", "/keys", 0, "dimensions"},
      {Q1 ",\"keys\":[[]]}", "/keys", 0, NULL},
      {Q1 ",\"values\":[[1,2]]}", "/values", 0, "1 values for 2 keys"},
      {"{\"queries\":[[]],\"keys\":[[1,2]]}", "/keys", 0, "dimensions"},
      {Q2 ",\"valid_lens\":[1]}", "/valid_lens", 0, "1 valid lengths for 2 items"},
      {Q2 ",\"valid_lens\":2}", "/valid_lens", 0, "dimensions"},
      {Q2 ",\"valid_lens\":[1,3]}", "/valid_lens/1", 0, "has 2 keys"},
      {Q2 ",\"valid_lens\":[-1,2]}", "/valid_lens/0", 0, NULL},
      {Q2 ",\"valid_lens\":[1,2.0]}", "/valid_lens/1", 0, NULL},
      {Q2 ",\"valid_lens\":[[1],[2]]}", "/valid_lens/1", 0, "1 valid lengths for 2 queries"},
      {Q2 ",\"valid_lens\":[[1],[2,3]]}", "/valid_lens/1/1", 0, NULL},
      {Q2 ",\"valid_lens\":[[1]]}", "/valid_lens", 0, NULL},
      {Q1 ",\"valid_lens\":3}", "/valid_lens", 0, "has 2 keys"},
      {Q1 ",\"valid_lens\":[1]}", "/valid_lens", 0, NULL},
      {Q1 ",\"valid_lens\":[1,-1]}", "/valid_lens/1", 0, NULL},
      {Q1 ",\"valid_lens\":[[1,1]]}", "/valid_lens", 0, "dimensions"},
      {Q2 ",\"mask\":[[1,0],[1,1]]}", "/mask", 0, "one shape"},
      {Q2 ",\"bias\":[[1,0],[1,1]]}", "/bias", 0, "one shape"},
      {Q2 ",\"mask\":[[[1]]]}", "/mask", 0, "[b][q][k]"},
      {Q2 ",\"mask\":[[[1]],[[1,0]]]}", "/mask/1", 0, NULL},
      {Q2 ",\"mask\":[[],[]]}", "/mask", 0, NULL},
      {Q2 ",\"mask\":[[[1]],[[1,2],[1,1]]]}", "/mask/1/0/1", 0, NULL},
      {Q2 ",\"bias\":[[[[1]]],[[[1,2],[3,4]]]]}", "/bias/0", 0, "heads"},
      {Q1 ",\"mask\":[[1,0]]}", "/mask", 0, "[q][k]"},
      {Q1 ",\"mask\":[[1],[0]]}", "/mask/0", 0, NULL},
      {Q1 ",\"mask\":[[[1,0],[1,1]]]}", "/mask", 0, "dimensions"},
      {Q1 ",\"bias\":[[[1,0],[1,1]]]}", "/bias", 0, "[h][q][k]"},
      {Q1 ",\"bias\":[[[1,0],[1,1]],[[1,2]]]}", "/bias/1", 0, NULL},
      {Q1 ",\"bias\":[[[[1,0],[1,1]]]]}", "/bias", 0, "dimensions"},
      {Q2 ",\"causal_offset\":[1]}", "/causal_offset", 0, NULL},
      {Q1 ",\"causal_offset\":[1]}", "/causal_offset", 0, NULL},
      {Q1 ",\"head_mask\":[1]}", "/head_mask", 0, NULL},
      {Q1 ",\"head_mask\":[]}", "/head_mask", 0, NULL},
      {Q2 ",\"segments\":[[1],[1,2]]}", "/segments/1", 0,
       "the segments have 3 keys in total, but the item has 2"},
      {Q2 ",\"segments\":[[1],[1]]}", "/segments/1", 0,
       "the segments have 1 keys in total, but the item has 2"},
      {Q2 ",\"segments\":[[0],[2]]}", "/segments/0", 0,
       "the segments have 0 keys in total, but the item has 1"},
      {Q2 ",\"segments\":[[1],[]]}", "/segments/1", 0,
       "the segments have 0 keys in total, but the item has 2"},
      {Q2 ",\"segments\":[[],[]]}", "/segments/0", 0, "the item has 1"},
      {Q2 ",\"segments\":[[1],[0,3,-1]]}", "/segments/1/2", 0, "must not be negative: -1"},
      {Q2 ",\"segments\":[[1],[2147483647,2147483647,2147483647]]}", "/segments/1", 0,
       "6442450941 keys"},
      {Q2 ",\"segments\":[[1]]}", "/segments", 0, "segments has 1 items, but queries has 2"},
      {Q2 ",\"segments\":[]}", "/segments", 0, "0 items"},
      {Q2 ",\"segments\":[1,2]}", "/segments", 0, "dimensions"},
      {Q1 ",\"segments\":[1,-1,2]}", "/segments/1", 0, "must not be negative: -1"},
      {Q1 ",\"segments\":[1]}", "/segments", 0,
       "the segments have 1 keys in total, but the item has 2"},
      {Q1 ",\"segments\":[]}", "/segments", 0, "the item has 2"},
      {Q1 ",\"segments\":[[2]]}", "/segments", 0, "dimensions"},
      {Q1 ",\"segments\":[[]]}", "/segments", 0, "dimensions"},
  };
  REFUSE(&equal, list);
  static const struct refusal gradients[] = {
      {Q2 ",\"gradients\":[[[1,2,3]],[[1,2,3],[4,5]]]}", "/gradients/1/1", 0, "output_size"},
      {Q2 ",\"gradients\":[[[1,2,3,4]],[]]}", "/gradients/0/0", 0,
       "has 4 elements, expected 3 (the model's"},
      {Q2 ",\"gradients\":[[[1,2,3]],[[4,5,6]]]}", "/gradients/1", 0, "1 gradients for 2 queries"},
      {Q2 ",\"gradients\":[[],[]]}", "/gradients/0", 0, "0 gradients for 1 queries"},
      {Q2 ",\"gradients\":[[[1,2,3]]]}", "/gradients", 0, "1 items"},
      {Q2 ",\"gradients\":[]}", "/gradients", 0, "0 items"},
      {Q2 ",\"gradients\":[[1,2,3],[4,5,6]]}", "/gradients", 0, "dimensions"},
      {Q2 ",\"gradients\":null}", "/gradients", 0, NULL},
      {Q2 ",\"gradients\":[[[1,2,1e39]]]}", "/gradients/0/0/2", 0, NULL},
      {Q1 ",\"gradients\":[[1,2,3]]}", "/gradients", 0, "1 gradients for 2 queries"},
      {Q1 ",\"gradients\":[]}", "/gradients", 0, "0 gradients for 2 queries"},
      {Q1 ",\"gradients\":[[],[]]}", "/gradients", 0, "at least one number"},
      {Q1 ",\"gradients\":[[[1,2,3],[4,5,6]]]}", "/gradients", 0, "dimensions"},
      {Q1 ",\"gradients\":{}}", "/gradients", 0, "dtype is missing"},
  };
  REFUSE_HEADS(&sigmoid, gradients);
  static const struct refusal sizes[] = {{Q1 "}", "/keys", 0, "requires"}};
  REFUSE(&unequal, sizes);
  static const struct refusal value_sizes[] = {{Q1 "}", "/values", 0, "requires"}};
  REFUSE(&values_differ, value_sizes);
}

/* What cannot agree with the queries any more is refused while it comes; the bodies have no end. */
static void what_has_far_too_many_numbers_is_not_read_on(void **state) {
  (void)state;
  enum { MANY = 20000 };
  static const struct {
    const char *begin, *unit, *field; /* NULL: nothing is certain yet */
  } bodies[] = {
      {Q2 ",\"valid_lens\":[", "1,", "valid_lens"},
      {Q2 ",\"valid_lens\":[[", "1,", "valid_lens"},
      {Q1 ",\"valid_lens\":[", "1 , ", "valid_lens"},
      {Q2 ",\"causal_offset\":[", "1,", "causal_offset"},
      {Q2 ",\"keys\":[[[1,2]],[]],\"mask\":[[[", "0,", "mask"},
      {Q2 ",\"keys\":[[[1,2]],[[1,2]]],\"mask\":[[", "true, ", "mask"},
      {Q1 ",\"keys\":[[1,2]],\"bias\":[[", "0.5,", "bias"},
      {Q1 ",\"mask\":[[", "0,", NULL},
      {Q2 ",\"keys\":[[[1,2]]],\"mask\":[[", "0,", NULL},
      {Q2 ",\"segments\":[[", "0,", NULL},
      {"{\"valid_lens\":[", "1,", NULL},
      {"{\"queries\":[],\"keys\":[],\"mask\":[[", "1,", NULL},
  };
  static char text[MANY * 8];
  for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
    char *out = text + sprintf(text, "%s", bodies[i].begin), want[80], pointer[32];
    for (size_t n = 0; n < MANY; n++) out += sprintf(out, "%s", bodies[i].unit);
    struct body_result r;
    read_as(&r, &equal, ASK_ATTENTION, &body_read_wide, text, (size_t)(out - text), 1000);
    snprintf(want, sizeof want, "%s has more than", bodies[i].field ? bodies[i].field : "-");
    snprintf(pointer, sizeof pointer, "/%s", bodies[i].field ? bodies[i].field : "");
    if ((strncmp(r.error.detail, want, strlen(want)) == 0) != (bodies[i].field != NULL))
      fail_msg("%s: %s", bodies[i].begin, r.error.detail);
    if (bodies[i].field) assert_string_equal(r.error.pointer, pointer);
    arena_free(&r.arena);
  }
}

static void combinations_without_meaning(void **state) {
  (void)state;
#define Q "{\"queries\":[[1,2]],"
  static const struct refusal list[] = {
      {Q "\"segments\":[1],\"select\":\"hard\"}", "/select", 0, "segments require \"soft\""},
      {Q "\"select\":\"sample\",\"segments\":[1]}", "/select", 0, "segments require \"soft\""},
      {Q "\"select\":\"hard\",\"empty_rows\":\"uniform\"}", "/empty_rows", 0,
       "requires \"select\": \"soft\""},
      {Q "\"empty_rows\":\"uniform\",\"select\":\"sample\"}", "/empty_rows", 0,
       "requires \"select\": \"soft\""},
      {Q "\"empty_rows\":\"uniform\",\"segments\":[1]}", "/empty_rows", 0, "segments"},
      /* All at once: the first rule is told, and no field's value before. */
      {Q "\"empty_rows\":\"uniform\",\"segments\":[-5],\"select\":\"hard\"}", "/select", 0, NULL},
  };
  REFUSE(&equal, list);
  REFUSE_HEADS(&equal, list);
  static const struct refusal of_sigmoid[] = {
      {Q "\"select\":\"sample\"}", "/select", 0, "sigmoid"},
      {Q "\"segments\":[1]}", "/segments", 0, "sigmoid"},
  };
  REFUSE(&sigmoid, of_sigmoid);
  REFUSE_HEADS(&sigmoid, of_sigmoid);
}

static void names_and_small_values_are_bounded(void **state) {
  (void)state;
  static char body[200000];
  struct body_result r;
  memset(body, 'q', sizeof body);
  memcpy(body, "{\"qu\x7f", 5);
  for (size_t at = 513; at < 516; at++) { /* what is behind 512 bytes is not looked at */
    body[at] = '\n';
    for (size_t cut = 0; cut < 1000; cut += 100) {
      read_cut(&r, &equal, &body_read_wide, body, sizeof body, cut);
      assert_int_equal(r.error.status, at > 513 ? STATUS_INVALID_REQUEST : STATUS_INVALID_JSON);
      if (at > 513) assert_int_equal(strlen(r.error.pointer), 47);
      if (at > 513) assert_string_equal(strrchr(r.error.pointer, '?') + 1, r.error.pointer + 4);
      arena_free(&r.arena);
    }
    body[at] = 'q';
  }

  /* A name that is too long to show is cut between characters. */
  int n = snprintf(body, sizeof body, "{\"%045d\xc3\xb6\":1}", 0);
  read_cut(&r, &equal, &body_read_wide, body, (size_t)n, 0);
  assert_int_equal(strlen(r.error.pointer), 46);
  arena_free(&r.arena);

  /* The pointer holds a name of slashes, each of which takes two bytes there. */
  memset(body, '/', 200);
  memcpy(body, "{\"", 2);
  memcpy(body + 198, "\":", 2);
  read_cut(&r, &equal, &body_read_wide, body, 200, 0);
  assert_int_equal(strlen(r.error.pointer), 1 + 2 * 46);
  arena_free(&r.arena);

  n = snprintf(body, sizeof body, "{\"window\":[%*d,2]}", 100000, 1);
  read_cut(&r, &equal, &body_read_wide, body, (size_t)n, 0);
  assert_int_equal(r.error.status, STATUS_INVALID_REQUEST);
  assert_string_equal(r.error.pointer, "/window");
  arena_free(&r.arena);

  n = snprintf(body, sizeof body, "[%*d]", 100000, 1);
  read_cut(&r, &equal, &body_read_wide, body, (size_t)n, 0);
  assert_int_equal(r.error.status, STATUS_INVALID_REQUEST);
  assert_string_equal(r.error.pointer, "");
  assert_true(r.arena.bytes < 64 * 1024);
  arena_free(&r.arena);

  /* Blanks between names and values are no part of them. */
  n = snprintf(body, sizeof body, "{%*s:%*s,\"window\":[1,1]%*s", 50000, "\"queries\"", 50000, "[]",
               50000, "}");
  read_cut(&r, &equal, &body_read_wide, body, (size_t)n, 777);
  assert_int_equal(r.error.status, STATUS_OK);
  arena_free(&r.arena);
}

#define Q12     "\"queries\":[[1,2],[3,4]]"
#define AVERAGE ",\"return_attention\":\"average\""

static void limits_are_named(void **state) {
  (void)state;
  static const struct {
    enum body_ask ask;
    struct body_limits limits;
    const char *body, *limit;
  } list[] = {
      {ASK_ATTENTION,
       {2, 100, 10000, 9, 9, 0},
       "{\"queries\":[[[1,2]],[[1,2]],[[1,2]]]}",
       "max_items"},
      {ASK_ATTENTION, {2, 100, 10000, 9, 9, 0}, "{\"queries\":[[],[],[]]}", "max_items"},
      {ASK_ATTENTION, {2, 100, 10000, 9, 9, 0}, "{\"keys\":[[],[[1,2]],[]]}", "max_items"},
      {ASK_ATTENTION, {2, 100, 10000, 9, 9, 0}, "{\"segments\":[[],[0],[1]]}", "max_items"},
      {ASK_HEADS, {2, 100, 10000, 9, 9, 0}, "{\"gradients\":[[],[[1,2]],[]]}", "max_items"},
      {ASK_ATTENTION, {9, 7, 10000, 9, 9, 0}, "{\"queries\":[[1,2],[3,4]]}", "max_pairs"},
      {ASK_ATTENTION, {9, 9, 10000, 9, 9, 0}, "{\"queries\":[[[1,2],[3,4]],[[1,2]]]}", "max_pairs"},
      /* Segments without keys are work: 2 queries times 3 of them, times 2 heads. */
      {ASK_ATTENTION, {9, 11, 10000, 9, 9, 0}, "{" Q12 ",\"segments\":[0,2,0]}", "max_pairs"},
      /* Two heads make three pairs, each head beside itself included. */
      {ASK_HEADS, {9, 11, 10000, 9, 9, 0}, "{" Q12 "}", "max_pairs"},
      {ASK_HEADS, {9, 17, 10000, 9, 9, 0}, "{" Q12 ",\"segments\":[0,2,0]}", "max_pairs"},
      {ASK_ATTENTION, {9, 100, 63, 9, 9, 0}, "{" Q12 "}", "max_answer_bytes"},
      {ASK_ATTENTION,
       {9, 100, 191, 9, 9, 0},
       "{" Q12 ",\"return_attention\":true}",
       "max_answer_bytes"},
      {ASK_ATTENTION, {9, 100, 127, 9, 9, 0}, "{" Q12 AVERAGE "}", "max_answer_bytes"},
      {ASK_ATTENTION,
       {9, 100, 127, 9, 9, 0},
       "{" Q12 ",\"return_pointers\":true}",
       "max_answer_bytes"},
      /* 4 numbers of outputs, 8 weights, 12 of segments. */
      {ASK_ATTENTION,
       {9, 100, 16 * 24 - 1, 9, 9, 0},
       "{" Q12 ",\"segments\":[0,2,0],\"return_attention\":true}",
       "max_answer_bytes"},
      {ASK_ATTENTION,
       {9, 100, 127, 9, 9, 0},
       "{" Q12 AVERAGE ",\"segments\":[0,2,0]}",
       "max_answer_bytes"},
      /* 7 measures and a rank of each head, a divergence of each two; no outputs. */
      {ASK_HEADS, {9, 100, 16 * 20 - 1, 9, 9, 0}, "{" Q12 "}", "max_answer_bytes"},
      {ASK_HEADS, {9, 100, 16 * 24 - 1, 9, 9, 0}, "{" Q12 AVERAGE "}", "max_answer_bytes"},
      {ASK_HEADS,
       {9, 100, 16 * 24 - 1, 9, 9, 0},
       "{" Q12 ",\"return_pointers\":true}",
       "max_answer_bytes"},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    const char *body = list[i].body;
    struct body_result r;
    read_as(&r, &equal, list[i].ask, &list[i].limits, body, strlen(body), 5);
    if (r.error.status != STATUS_TOO_LARGE || !r.error.limit ||
        strcmp(r.error.limit, list[i].limit) != 0)
      fail_msg("%s: status %d, %s", body, r.error.status, r.error.detail);
    arena_free(&r.arena);
    if (strcmp(list[i].limit, "max_items") == 0) continue;
    /* One more of each is enough. */
    struct body_limits more = list[i].limits;
    more.max_pairs += 1;
    more.max_answer_bytes += 1;
    read_as(&r, &equal, list[i].ask, &more, body, strlen(body), 5);
    if (r.error.status) fail_msg("%s: %s", body, r.error.detail);
    arena_free(&r.arena);
  }
}

static void limits_say_what_they_count(void **state) {
  (void)state;
  static const struct body_limits none = {.max_items = 9};
  static const struct {
    enum body_ask ask;
    const char *body, *words;
  } list[] = {
      {ASK_ATTENTION, "{" Q12 "}", "query-key pairs, counted for each of 2 heads"},
      {ASK_ATTENTION, "{" Q12 ",\"segments\":[2]}",
       "query-key or query-segment pairs, counted for each of 2 heads"},
      {ASK_HEADS, "{" Q12 "}", "counted for each of 3 pairs of heads, which are compared"},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct body_result r;
    read_as(&r, &equal, list[i].ask, &none, list[i].body, strlen(list[i].body), 0);
    assert_int_equal(r.error.status, STATUS_TOO_LARGE);
    if (!strstr(r.error.detail, list[i].words)) fail_msg("%s", r.error.detail);
    arena_free(&r.arena);
  }
}

static void the_first_failure_stays(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena, NULL);
  struct error e = {0};
  struct attention_request request;
  struct attention_body *d =
      attention_body_new(&equal, &json_terms[ASK_ATTENTION], &body_read_wide, &arena, &e);
  assert_int_equal(body_feed(attention_body_of(d), "{\"x\":", 5), STATUS_INVALID_REQUEST);
  assert_int_equal(body_feed(attention_body_of(d), "\"queries\":[]}", 13), STATUS_INVALID_REQUEST);
  assert_int_equal(attention_body_finish(d, &request), STATUS_INVALID_REQUEST);
  assert_string_equal(e.pointer, "/x");
  arena_free(&arena);
}

static void what_never_fits_the_budget_is_too_large(void **state) {
  (void)state;
  struct budget budget;
  for (const struct whole *w = wholes; w < wholes + WHOLES; w++)
    for (size_t limit = 1000; limit < 80000; limit += 5000) {
      budget_init(&budget, limit);
      struct arena arena;
      arena_init(&arena, &budget);
      struct error e = {0};
      struct attention_request request;
      struct attention_body *d =
          attention_body_new(&unequal, &json_terms[w->ask], &body_read_wide, &arena, &e);
      if (d && !body_feed(attention_body_of(d), w->text, w->length))
        attention_body_finish(d, &request);
      assert_true(limit > 1000 || e.status);
      if (e.status) assert_string_equal(e.limit, "memory_budget_bytes");
      arena_free(&arena);
      assert_int_equal(atomic_load(&budget.used), 0);
    }
}

/* What is read of an array is there already when room for its ends is missing. */
static void what_has_no_room_for_the_ends_is_too_large(void **state) {
  (void)state;
  enum { SEGMENTS = 20000 };
  static char body[100 + 2 * SEGMENTS];
  int n = snprintf(body, sizeof body, "{\"queries\":[[1,2]],\"segments\":[1");
  for (size_t i = 1; i < SEGMENTS; i++, n += 2) memcpy(body + n, ",0", 2);
  memcpy(body + n, "]}", 3);
  struct budget budget;
  size_t finished = 0, refused = 0;
  for (size_t limit = 80000; limit < 320000; limit += 20000) {
    budget_init(&budget, limit);
    struct arena arena;
    arena_init(&arena, &budget);
    struct error e = {0};
    struct attention_request request;
    struct attention_body *d =
        attention_body_new(&equal, &json_terms[ASK_ATTENTION], &body_read_wide, &arena, &e);
    if (d && !body_feed(attention_body_of(d), body, strlen(body))) {
      attention_body_finish(d, &request);
      finished += e.status == STATUS_OK;
      refused += e.status == STATUS_TOO_LARGE;
    }
    arena_free(&arena);
    assert_int_equal(atomic_load(&budget.used), 0);
  }
  assert_true(finished > 0 && refused > 0);
}

/* --- mutants --- */

static uint32_t random_below(uint64_t *state, uint32_t n) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((*state >> 33) % n);
}

/* Changes a few bytes of `text`, which has room for them. Returns the new length. */
static size_t mutate(char *text, size_t length, uint64_t *state) {
  static const char bytes[] = "[]{},:\"\\ \n0123456789.-+eEtrufalsn\0\x80\xc3";
  for (uint32_t edits = 1 + random_below(state, 3); edits > 0; edits--) {
    size_t at = random_below(state, (uint32_t)length);
    char byte = bytes[random_below(state, sizeof bytes - 1)];
    switch (random_below(state, 4)) {
    case 0: /* another byte */
      text[at] = byte;
      break;
    case 1: /* one more */
      memmove(text + at + 1, text + at, length - at);
      text[at] = byte;
      length++;
      break;
    case 2: /* one less */
      memmove(text + at, text + at + 1, length - at - 1);
      length--;
      break;
    default: /* a byte of the same text */
      text[at] = text[random_below(state, (uint32_t)length)];
    }
  }
  return length;
}

static bool is_json(const char *text, size_t length) {
  size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL;
  json_t *value = memchr(text, 0, length) ? NULL : json_loadb(text, length, flags, NULL);
  json_decref(value);
  return value != NULL;
}

/* What is accepted is JSON, what is JSON is never called no JSON but for its nesting, and a cut
 * changes nothing. */
static void mutants_are_judged_alike(void **state) {
  (void)state;
  uint64_t seed = 20;
  size_t accepted = 0, requests = 0;
  for (int i = 0; i < 10000; i++) {
    const struct whole *w = &wholes[i % WHOLES];
    char text[sizeof full + 8];
    assert_true(w->length < sizeof full);
    memcpy(text, w->text, w->length + 1);
    size_t length = mutate(text, w->length, &seed);
    struct body_result whole, cut;
    read_as(&whole, &unequal, w->ask, &body_read_wide, text, length, length);
    read_as(&cut, &unequal, w->ask, &body_read_wide, text, length,
            random_below(&seed, (uint32_t)length));
    bool json = is_json(text, length);
    enum status status = whole.error.status;
    bool called_no_json = status == STATUS_INVALID_JSON && !strstr(whole.error.detail, "deep");
    if (json ? called_no_json : status == STATUS_OK)
      fail_msg("%s\n%s (%zu)", text, whole.error.detail, whole.error.offset);
    if (cut.error.status != status || cut.error.offset != whole.error.offset ||
        strcmp(cut.error.pointer, whole.error.pointer) != 0)
      fail_msg("%s\n%s (%zu)\n%s (%zu)", text, whole.error.detail, whole.error.offset,
               cut.error.detail, cut.error.offset);
    accepted += status == STATUS_OK;
    requests += status == STATUS_INVALID_REQUEST;
    arena_free(&whole.arena);
    arena_free(&cut.arena);
  }
  /* The mutants reach every verdict often. */
  assert_in_range(accepted, 100, 9000);
  assert_in_range(requests, 100, 9000);
}

/* Such arrays are too large to be sent here: only their shapes are made up. */
static void rows_beyond_32_bits_are_refused(void **state) {
  (void)state;
  static const size_t rows[][2] = {{0, (size_t)INT32_MAX + 1}, {(size_t)INT32_MAX + 1, 0}};
  for (size_t i = 0; i < 2; i++) {
    struct tensor tensor[2];
    struct contract_reading reading;
    struct attention_values values;
    struct body_result r = {0};
    attention_fields_init(&reading, &values, ASK_ATTENTION, &equal, body_read_wide.max_items);
    for (size_t t = 0; t < 2; t++) {
      tensor[t] = (struct tensor){.depth = 3, .elements = 1, .count = 2 * rows[i][t]};
      tensor[t].common = (struct tensor_shape){{rows[i][t], 2}};
    }
    reading.tensor[FIELD_QUERIES] = &tensor[0];
    reading.tensor[FIELD_KEYS] = &tensor[1];
    arena_init(&r.arena, NULL);
    attention_check(&reading, &equal, &json_terms[ASK_ATTENTION], &body_read_wide, &r.arena,
                    &r.request, &r.error);
    assert_int_equal(r.error.status, STATUS_TOO_LARGE);
    assert_string_equal(r.error.limit, "max_pairs");
    arena_free(&r.arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_field_cut_at_every_byte),
      cmocka_unit_test(every_byte_a_chunk),
      cmocka_unit_test(every_truncation_is_no_json),
      cmocka_unit_test(defaults_and_self_attention),
      cmocka_unit_test(rows_beyond_32_bits_are_refused),
      cmocka_unit_test(unbatched_loses_the_first_dimension),
      cmocka_unit_test(one_item_alone_may_have_more_rows_than_max_items),
      cmocka_unit_test(one_mask_for_items_of_one_shape),
      cmocka_unit_test(empty_shapes_are_legal),
      cmocka_unit_test(keys_are_selected),
      cmocka_unit_test(segments_end_where_the_next_begin),
      cmocka_unit_test(gradients_are_one_for_each_query),
      cmocka_unit_test(huge_window_is_unbounded),
      cmocka_unit_test(what_is_no_json),
      cmocka_unit_test(nul_bytes),
      cmocka_unit_test(what_is_no_request),
      cmocka_unit_test(fields_that_disagree),
      cmocka_unit_test(what_has_far_too_many_numbers_is_not_read_on),
      cmocka_unit_test(combinations_without_meaning),
      cmocka_unit_test(names_and_small_values_are_bounded),
      cmocka_unit_test(limits_are_named),
      cmocka_unit_test(limits_say_what_they_count),
      cmocka_unit_test(the_first_failure_stays),
      cmocka_unit_test(what_never_fits_the_budget_is_too_large),
      cmocka_unit_test(what_has_no_room_for_the_ends_is_too_large),
      cmocka_unit_test(mutants_are_judged_alike),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
