/* test_answer: answers as lists of numbers: their shape, their numbers, their pieces and their
 * limit. */
#include <stdio.h>

#include <jansson.h>

#include "tests/support/answered.h"

/* The text of the answer as JSON. The caller frees it. */
static char *text_of_model(struct answered *a, const struct model *m, struct answer *answer) {
  size_t bytes;
  return answer_of(a, ANSWER_JSON, m, answer, &bytes);
}

static char *text_of(struct answered *a, struct answer *answer) {
  return text_of_model(a, &model, answer);
}

static void assert_text(struct answered *a, const char *want) {
  struct answer answer;
  char *text = text_of(a, &answer);
  assert_string_equal(text, want);
  assert_int_equal(answer.pieces, 1);
  free(text);
  arena_free(&a->arena);
}

static void small_answers_to_the_letter(void **state) {
  (void)state;
  struct answered a;
  make(&a, 1, (const size_t[][2]){{2, 1}}, WEIGHTS_NONE);
  assert_text(&a, "{\"model\":\"demo\",\"outputs\":[[[-1000.5,-1000.375,-1000.25],"
                  "[-1000.125,-1000,-999.875]]]}");
  make(&a, 2, (const size_t[][2]){{1, 2}, {2, 1}}, WEIGHTS_PER_HEAD);
  memset(a.request.asked.call.outputs, 0, 9 * sizeof(float));
  assert_text(&a, "{\"model\":\"demo\",\"outputs\":[[[0,0,0]],[[0,0,0],[0,0,0]]],"
                  "\"attention_weights\":[[[[0.125,0.25]],[[0.375,0.5]]],"
                  "[[[0.625],[0.75]],[[0.875],[1]]]]}");
  make(&a, 2, (const size_t[][2]){{1, 2}, {2, 1}}, WEIGHTS_AVERAGE);
  memset(a.request.asked.call.outputs, 0, 9 * sizeof(float));
  assert_text(&a, "{\"model\":\"demo\",\"outputs\":[[[0,0,0]],[[0,0,0],[0,0,0]]],"
                  "\"attention_weights\":[[[0.125,0.25]],[[0.375],[0.5]]]}");
}

static void unbatched_has_one_level_less(void **state) {
  (void)state;
  struct answered a;
  make(&a, 1, (const size_t[][2]){{1, 2}}, WEIGHTS_PER_HEAD);
  a.request.unbatched = true;
  assert_text(&a, "{\"model\":\"demo\",\"outputs\":[[-1000.5,-1000.375,-1000.25]],"
                  "\"attention_weights\":[[[0.125,0.25]],[[0.375,0.5]]]}");
  make(&a, 1, (const size_t[][2]){{1, 2}}, WEIGHTS_AVERAGE);
  a.request.unbatched = true;
  assert_text(&a, "{\"model\":\"demo\",\"outputs\":[[-1000.5,-1000.375,-1000.25]],"
                  "\"attention_weights\":[[0.125,0.25]]}");
}

static void empty_batches_items_and_rows(void **state) {
  (void)state;
  struct answered a;
  make(&a, 0, NULL, WEIGHTS_PER_HEAD);
  assert_text(&a, "{\"model\":\"demo\",\"outputs\":[],\"attention_weights\":[]}");
  make(&a, 2, (const size_t[][2]){{0, 3}, {0, 0}}, WEIGHTS_PER_HEAD);
  assert_text(&a, "{\"model\":\"demo\",\"outputs\":[[],[]],"
                  "\"attention_weights\":[[[],[]],[[],[]]]}");
  make(&a, 2, (const size_t[][2]){{0, 3}, {0, 0}}, WEIGHTS_AVERAGE);
  assert_text(&a, "{\"model\":\"demo\",\"outputs\":[[],[]],\"attention_weights\":[[],[]]}");
  make(&a, 2, (const size_t[][2]){{0, 1}, {2, 0}}, WEIGHTS_PER_HEAD);
  memset(a.request.asked.call.outputs, 0, 6 * sizeof(float));
  assert_text(&a, "{\"model\":\"demo\",\"outputs\":[[],[[0,0,0],[0,0,0]]],"
                  "\"attention_weights\":[[[],[]],[[[],[]],[[],[]]]]}");
}

static void segments_and_pointers_follow_the_weights(void **state) {
  (void)state;
  struct answered a;
  make(&a, 2, (const size_t[][2]){{1, 1}, {2, 1}}, WEIGHTS_PER_HEAD);
  add_segments(&a, (const size_t[]){2, 1});
  add_pointers(&a);
  memset(a.request.asked.call.outputs, 0, 9 * sizeof(float));
  assert_text(&a, "{\"model\":\"demo\",\"outputs\":[[[0,0,0]],[[0,0,0],[0,0,0]]],"
                  "\"attention_weights\":[[[[0.125]],[[0.25]]],[[[0.375],[0.5]],[[0.625],[0.75]]]],"
                  "\"segment_weights\":[[[[7,7.125]],[[7.25,7.375]]],"
                  "[[[7.5],[7.625]],[[7.75],[7.875]]]],"
                  "\"pointers\":[[[-1],[0]],[[1,2],[3,4]]]}");
  make(&a, 1, (const size_t[][2]){{2, 0}}, WEIGHTS_NONE);
  add_segments(&a, (const size_t[]){2});
  add_pointers(&a);
  a.request.unbatched = true;
  a.request.asked.call.pointers[3] = INT32_MAX;
  memset(a.request.asked.call.outputs, 0, 6 * sizeof(float));
  assert_text(&a, "{\"model\":\"demo\",\"outputs\":[[0,0,0],[0,0,0]],"
                  "\"pointers\":[[-1,0],[1,2147483647]]}");
  make(&a, 1, (const size_t[][2]){{1, 1}}, WEIGHTS_AVERAGE);
  add_segments(&a, (const size_t[]){2});
  memset(a.request.asked.call.outputs, 0, 3 * sizeof(float));
  assert_text(&a, "{\"model\":\"demo\",\"outputs\":[[[0,0,0]]],\"attention_weights\":[[[0.125]]]}");
}

static void no_rows_and_no_segments(void **state) {
  (void)state;
  struct answered a;
  make(&a, 0, NULL, WEIGHTS_PER_HEAD);
  add_segments(&a, NULL);
  add_pointers(&a);
  assert_text(&a, "{\"model\":\"demo\",\"outputs\":[],\"attention_weights\":[],"
                  "\"segment_weights\":[],\"pointers\":[]}");
  make(&a, 2, (const size_t[][2]){{0, 3}, {1, 0}}, WEIGHTS_PER_HEAD);
  add_segments(&a, (const size_t[]){2, 0});
  add_pointers(&a);
  memset(a.request.asked.call.outputs, 0, 3 * sizeof(float));
  assert_text(&a, "{\"model\":\"demo\",\"outputs\":[[],[[0,0,0]]],"
                  "\"attention_weights\":[[[],[]],[[[]],[[]]]],"
                  "\"segment_weights\":[[[],[]],[[[]],[[]]]],"
                  "\"pointers\":[[[],[]],[[-1],[0]]]}");
}

static void measures_to_the_letter(void **state) {
  (void)state;
  struct answered a;
  make(&a, 1, (const size_t[][2]){{2, 3}}, WEIGHTS_NONE);
  measure(&a, true, true);
  assert_text(&a, "{\"model\":\"demo\",\"rows\":512,\"heads\":["
                  "{\"confidence\":0.5,\"entropy\":0.25,\"distance\":1e+10,\"norm\":3,"
                  "\"share\":0.75,\"delta\":0.33333334,\"michel\":1e-09},"
                  "{\"confidence\":1,\"entropy\":0,\"distance\":0,\"norm\":0,"
                  "\"share\":0,\"delta\":2,\"michel\":1e-20}],"
                  "\"divergence\":[[0,0.1],[0.1,0]],\"ranking\":[1,0]}");
  make(&a, 0, NULL, WEIGHTS_PER_HEAD);
  measure(&a, false, false);
  add_segments(&a, NULL);
  add_pointers(&a);
  assert_text(&a, "{\"model\":\"demo\",\"rows\":512,\"heads\":["
                  "{\"confidence\":0.5,\"entropy\":null,\"distance\":1e+10,\"norm\":3,"
                  "\"share\":0.75,\"delta\":0.33333334},"
                  "{\"confidence\":1,\"entropy\":null,\"distance\":0,\"norm\":0,"
                  "\"share\":0,\"delta\":2}],"
                  "\"divergence\":null,\"ranking\":[1,0],\"attention_weights\":[],"
                  "\"segment_weights\":[],\"pointers\":[]}");
}

static void measures_keep_their_lists_where_the_batch_is_one_item(void **state) {
  (void)state;
  struct answered a;
  make(&a, 1, (const size_t[][2]){{1, 2}}, WEIGHTS_AVERAGE);
  measure(&a, false, true);
  add_pointers(&a);
  a.request.unbatched = true;
  assert_text(&a, "{\"model\":\"demo\",\"rows\":512,\"heads\":["
                  "{\"confidence\":0.5,\"entropy\":0.25,\"distance\":1e+10,\"norm\":3,"
                  "\"share\":0.75,\"delta\":0.33333334},"
                  "{\"confidence\":1,\"entropy\":0,\"distance\":0,\"norm\":0,"
                  "\"share\":0,\"delta\":2}],"
                  "\"divergence\":[[0,0.1],[0.1,0]],\"ranking\":[1,0],"
                  "\"attention_weights\":[[0.125,0.25]],\"pointers\":[[-1],[0]]}");
}

/* --- long answers, read back by another reader --- */

static void assert_row(const json_t *row, const float *want, size_t count) {
  assert_int_equal(json_array_size(row), count);
  for (size_t i = 0; i < count; i++) {
    float read = (float)json_number_value(json_array_get(row, i));
    assert_memory_equal(&read, want + i, sizeof read);
  }
}

static void assert_rows(const json_t *rows, const float *want, size_t count, size_t width) {
  assert_true(json_is_array(rows));
  assert_int_equal(json_array_size(rows), count);
  for (size_t i = 0; i < count; i++) assert_row(json_array_get(rows, i), want + i * width, width);
}

static void assert_reads_back(const struct answered *a, const char *text) {
  const struct layer_run *c = &a->request.asked;
  json_t *body = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
  assert_non_null(body);
  assert_string_equal(json_string_value(json_object_get(body, "model")), "demo");
  const json_t *outputs = json_object_get(body, "outputs");
  const json_t *weights = json_object_get(body, "attention_weights");
  assert_int_equal(json_object_size(body), c->call.want == WEIGHTS_NONE ? 2 : 3);
  assert_int_equal(json_array_size(outputs), c->geometry.items);
  for (size_t i = 0; i < c->geometry.items; i++) {
    const struct item *item = &c->geometry.item[i];
    assert_rows(json_array_get(outputs, i), c->call.outputs + item->q_row * OUTPUT, item->q,
                OUTPUT);
    const json_t *of_item = json_array_get(weights, i);
    const float *want = c->call.weights + c->call.weights_at[i];
    if (c->call.want == WEIGHTS_AVERAGE) assert_rows(of_item, want, item->q, item->k);
    if (c->call.want != WEIGHTS_PER_HEAD) continue;
    assert_int_equal(json_array_size(of_item), HEADS);
    for (size_t h = 0; h < HEADS; h++)
      assert_rows(json_array_get(of_item, h), want + h * item->q * item->k, item->q, item->k);
  }
  json_decref(body);
}

static void assert_integers(const json_t *list, const int32_t *want, size_t count) {
  assert_int_equal(json_array_size(list), count);
  for (size_t i = 0; i < count; i++) {
    assert_true(json_is_integer(json_array_get(list, i)));
    assert_int_equal(json_integer_value(json_array_get(list, i)), want[i]);
  }
}

static void long_segments_and_pointers_read_back(void **state) {
  (void)state;
  struct answered a;
  make(&a, 3, (const size_t[][2]){{3000, 2}, {0, 5}, {2, 1}}, WEIGHTS_PER_HEAD);
  add_segments(&a, (const size_t[]){1, 2, 9000});
  add_pointers(&a);
  const struct layer_run *c = &a.request.asked;
  struct answer answer;
  char *text = text_of(&a, &answer);
  assert_true(answer.pieces > 8);
  json_t *body = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
  assert_non_null(body);
  assert_int_equal(json_object_size(body), 5);
  for (size_t i = 0; i < c->geometry.items; i++)
    for (size_t h = 0; h < HEADS; h++) {
      const struct item *item = &c->geometry.item[i];
      const json_t *of_item = json_array_get(json_object_get(body, "segment_weights"), i);
      assert_rows(json_array_get(of_item, h),
                  c->call.segment_weights + c->call.segment_weights_at[i] +
                      h * item->q * item->segments,
                  item->q, item->segments);
      of_item = json_array_get(json_object_get(body, "pointers"), i);
      assert_integers(json_array_get(of_item, h),
                      c->call.pointers + HEADS * item->q_row + h * item->q, item->q);
    }
  json_decref(body);
  free(text);
  arena_free(&a.arena);
}

static void measures_of_many_heads_read_back(void **state) {
  (void)state;
  enum { MANY = 300 };
  const struct model many = {.name = name, .shape = {.heads = MANY, .output_size = OUTPUT}};
  struct answered a;
  make(&a, 0, NULL, WEIGHTS_NONE);
  struct measures m = {0};
  m.head = arena_alloc(&a.arena, MANY, sizeof *m.head, &a.error);
  m.divergence = arena_alloc(&a.arena, MANY * MANY, sizeof *m.divergence, &a.error);
  m.ranking = arena_alloc(&a.arena, MANY, sizeof *m.ranking, &a.error);
  assert_true(m.head && m.divergence && m.ranking);
  const double longest = (double)-1.00000016e-35f;
  for (size_t i = 0; i < MANY; i++) {
    m.head[i] =
        (struct head_measures){longest, longest, longest, longest, longest, longest, (double)i};
    m.ranking[i] = MANY - 1 - i;
  }
  for (size_t i = 0; i < (size_t)MANY * MANY; i++) m.divergence[i] = longest;
  const float gradient = 0;
  struct layer_run *c = &a.request.asked;
  c->call.want_measures = true;
  c->call.measures = &m;
  c->call.gradients = &gradient;
  struct answer answer;
  char *text = text_of_model(&a, &many, &answer);
  assert_in_range(answer.pieces, 22, 25); /* 2400 numbers and 90000, of 4096 to a piece */
  json_t *body = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
  assert_non_null(body);
  assert_int_equal(json_integer_value(json_object_get(body, "rows")), 512);
  const json_t *heads = json_object_get(body, "heads");
  const json_t *ranking = json_object_get(body, "ranking");
  const json_t *divergence = json_object_get(body, "divergence");
  assert_int_equal(json_array_size(heads), MANY);
  assert_int_equal(json_array_size(ranking), MANY);
  assert_int_equal(json_array_size(divergence), MANY);
  for (size_t i = 0; i < MANY; i++) {
    const json_t *head = json_array_get(heads, i);
    assert_int_equal(json_object_size(head), 7);
    assert_true(json_number_value(json_object_get(head, "michel")) == (double)i);
    assert_true((float)json_number_value(json_object_get(head, "share")) == -1.00000016e-35f);
    assert_int_equal(json_integer_value(json_array_get(ranking, i)), MANY - 1 - i);
    assert_int_equal(json_array_size(json_array_get(divergence, i)), MANY);
  }
  json_decref(body);

  /* All of it is counted: its own length is less than its longest, which is not far away. */
  struct body_limits limits = {.max_answer_bytes = strlen(text)};
  attention_answer_plan(&answer, ANSWER_JSON, &many, &a.request, &limits, &a.arena, &a.error);
  assert_int_equal(a.error.status, STATUS_TOO_LARGE);
  limits.max_answer_bytes += limits.max_answer_bytes / 10;
  a.error = (struct error){0};
  assert_int_equal(attention_answer_plan(&answer, ANSWER_JSON, &many, &a.request, &limits, &a.arena,
                                         &a.error),
                   STATUS_OK);
  free(text);
  arena_free(&a.arena);
}

static void long_answers_read_back(void **state) {
  (void)state;
  static const size_t rows[][ITEMS_MAX][2] = {
      {{3, 9000}, {2, 1}},                         /* rows longer than a piece */
      {{5000, 3}, {0, 7}, {1, 1}, {2500, 4}},      /* items longer than a piece */
      {{9000, 0}, {1, 4096}, {1, 4095}, {1, 4097}} /* empty rows; rows that fill a piece */
  };
  static const size_t items[] = {2, 4, 4};
  for (size_t i = 0; i < 3; i++)
    for (enum weights want = WEIGHTS_NONE; want <= WEIGHTS_AVERAGE; want++) {
      struct answered a;
      make(&a, items[i], rows[i], want);
      struct answer answer;
      char *text = text_of(&a, &answer);
      assert_reads_back(&a, text);
      assert_true(answer.pieces > 1 || want == WEIGHTS_NONE);
      for (size_t p = 0; p < answer.pieces; p++) assert_true(answer.piece[p].iov_len > 0);
      free(text);
      arena_free(&a.arena);
    }
}

/* The lists of items that agree are counted, and those of others walked over, item by item: the
 * answer is cut into the same pieces, and reads back. */
static void many_lists_are_cut_alike_and_read_back(void **state) {
  (void)state;
  static const size_t shapes[][2] = {{0, 0}, {0, 5}, {3, 0}, {1, 1}, {3, 5}, {40, 7}, {1, 300}};
  static size_t rows[ITEMS_MAX][2];
  for (size_t n = 0; n <= sizeof shapes / sizeof *shapes; n++) {
    const bool ragged = n == sizeof shapes / sizeof *shapes;
    for (size_t i = 0; i < ITEMS_MAX; i++)
      memcpy(rows[i], shapes[ragged ? i * i % 7 % 5 : n], sizeof rows[i]);
    struct answered a;
    struct answer walked, counted;
    make(&a, ITEMS_MAX, rows, WEIGHTS_PER_HEAD);
    char *text = text_of(&a, &walked);
    assert_reads_back(&a, text);
    a.request.rectangular = !ragged;
    char *again = text_of(&a, &counted);
    assert_string_equal(text, again);
    assert_int_equal(walked.pieces, counted.pieces);
    for (size_t i = 0; i < walked.pieces; i++)
      assert_int_equal(walked.piece[i].iov_len, counted.piece[i].iov_len);
    if (n >= 2) assert_true(walked.pieces > 1);
    free(again);
    free(text);
    arena_free(&a.arena);
  }
}

static void pieces_are_neither_tiny_nor_huge(void **state) {
  (void)state;
  struct answered a;
  make(&a, 2, (const size_t[][2]){{300, 100}, {300, 100}}, WEIGHTS_PER_HEAD);
  struct answer answer;
  free(text_of(&a, &answer));
  /* 121800 numbers of 4096 to a piece, or a row more. */
  assert_in_range(answer.pieces, 29, 31);
  arena_free(&a.arena);
}

static void pieces_of_a_large_answer_are_few(void **state) {
  (void)state;
  struct answered a;
  make(&a, 1, (const size_t[][2]){{1100, 1100}}, WEIGHTS_PER_HEAD);
  struct answer answer;
  char *text = text_of(&a, &answer);
  assert_in_range(answer.pieces, ANSWER_PIECES_MAX / 2, ANSWER_PIECES_MAX);
  assert_reads_back(&a, text);
  free(text);
  arena_free(&a.arena);
}

/* What the call leaves is used first, as far as pieces fit into it. */
static void text_lies_in_what_the_call_leaves(void **state) {
  (void)state;
  enum { LEFT = 200000 };
  static char left[2][LEFT];
  struct answered a;
  make(&a, 2, (const size_t[][2]){{300, 100}, {300, 100}}, WEIGHTS_PER_HEAD);
  struct answer answer;
  char *text = text_of(&a, &answer), *again;
  const size_t before = a.arena.bytes;
  spare_add(&a.request.asked.call.left, left[0], LEFT);
  spare_add(&a.request.asked.call.left, left[1], LEFT);
  again = text_of(&a, &answer);
  assert_string_equal(again, text);
  size_t there = 0;
  for (size_t i = 0; i < answer.pieces; i++) {
    const char *piece = answer.piece[i].iov_base;
    there += piece >= left[0] && piece < left[0] + sizeof left;
  }
  assert_in_range(there, 4, 8);
  assert_true(a.arena.bytes - before < before);
  free(text);
  free(again);
  arena_free(&a.arena);
}

static void the_longest_numbers_fit(void **state) {
  (void)state;
  struct answered a;
  make(&a, 2, (const size_t[][2]){{3, 5000}, {40, 7}}, WEIGHTS_PER_HEAD);
  struct layer_run *c = &a.request.asked;
  for (size_t i = 0; i < c->geometry.q_rows * OUTPUT; i++) c->call.outputs[i] = -1.00000016e-35f;
  for (size_t i = 0; i < c->call.weight_count; i++) c->call.weights[i] = -1.00000016e-35f;
  struct answer answer;
  char *text = text_of(&a, &answer);
  assert_reads_back(&a, text);
  struct body_limits limits = {.max_answer_bytes = strlen(text)};
  free(text);

  /* The limit is on an upper bound, which is not far from the longest text. */
  attention_answer_plan(&answer, ANSWER_JSON, &model, &a.request, &limits, &a.arena, &a.error);
  assert_int_equal(a.error.status, STATUS_TOO_LARGE);
  assert_string_equal(a.error.limit, "max_answer_bytes");
  assert_int_equal(answer.pieces, 0);
  limits.max_answer_bytes += limits.max_answer_bytes / 100;
  a.error = (struct error){0};
  assert_int_equal(attention_answer_plan(&answer, ANSWER_JSON, &model, &a.request, &limits,
                                         &a.arena, &a.error),
                   STATUS_OK);
  arena_free(&a.arena);
}

/* Fills with '#' all pieces but the last, of which it is not known where it ends. */
static void mark_pieces(const struct answer *answer) {
  char *begin = answer->piece[0].iov_base, *end = answer->piece[answer->pieces - 1].iov_base;
  memset(begin, '#', (size_t)(end - begin));
}

/* Other workers write the neighbours meanwhile: what a piece touches behind its text is its own.
 * Rows of all widths, so that pieces end everywhere; the longest numbers fill their room. */
static void a_piece_leaves_its_neighbours_alone(void **state) {
  (void)state;
  for (size_t width = 1; width <= 40; width++) {
    struct answered a;
    make(&a, 2, (const size_t[][2]){{9000 / width, width}, {3, 5000 + width}}, WEIGHTS_PER_HEAD);
    struct layer_run *c = &a.request.asked;
    for (size_t i = 0; i < c->geometry.q_rows * OUTPUT; i++) c->call.outputs[i] = -1.00000016e-35f;
    for (size_t i = 0; i < c->call.weight_count; i++) c->call.weights[i] = -1.00000016e-35f;
    struct answer answer;
    attention_answer_plan(&answer, ANSWER_JSON, &model, &a.request, &wide, &a.arena, &a.error);
    assert_int_equal(a.error.status, STATUS_OK);
    assert_in_range(answer.pieces, 4, 40);
    const char *last = answer.piece[answer.pieces - 1].iov_base;
    for (size_t i = 0; i + 1 < answer.pieces; i++) {
      mark_pieces(&answer);
      answer_write_piece(&answer, i);
      for (const char *p = answer.piece[0].iov_base; p < last; p++) {
        if (p == answer.piece[i].iov_base) p = answer.piece[i + 1].iov_base;
        if (p < last && *p != '#') fail_msg("piece %zu touches another one", i);
      }
    }
    arena_free(&a.arena);
  }
}

static void over_the_limit_nothing_is_allocated(void **state) {
  (void)state;
  struct answered a;
  make(&a, 1, (const size_t[][2]){{100, 100}}, WEIGHTS_PER_HEAD);
  size_t before = a.arena.bytes;
  const struct body_limits limits = {.max_answer_bytes = 100000};
  struct answer answer;
  assert_int_equal(attention_answer_plan(&answer, ANSWER_JSON, &model, &a.request, &limits,
                                         &a.arena, &a.error),
                   STATUS_TOO_LARGE);
  assert_in_range(a.arena.bytes, before, before + 16384);
  arena_free(&a.arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(small_answers_to_the_letter),
      cmocka_unit_test(unbatched_has_one_level_less),
      cmocka_unit_test(empty_batches_items_and_rows),
      cmocka_unit_test(segments_and_pointers_follow_the_weights),
      cmocka_unit_test(no_rows_and_no_segments),
      cmocka_unit_test(measures_to_the_letter),
      cmocka_unit_test(measures_keep_their_lists_where_the_batch_is_one_item),
      cmocka_unit_test(long_answers_read_back),
      cmocka_unit_test(long_segments_and_pointers_read_back),
      cmocka_unit_test(measures_of_many_heads_read_back),
      cmocka_unit_test(many_lists_are_cut_alike_and_read_back),
      cmocka_unit_test(pieces_are_neither_tiny_nor_huge),
      cmocka_unit_test(pieces_of_a_large_answer_are_few),
      cmocka_unit_test(text_lies_in_what_the_call_leaves),
      cmocka_unit_test(the_longest_numbers_fit),
      cmocka_unit_test(a_piece_leaves_its_neighbours_alone),
      cmocka_unit_test(over_the_limit_nothing_is_allocated),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
