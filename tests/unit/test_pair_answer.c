/* test_pair_answer: answers of a model of an encoder and a decoder: what both runs have, under the
 * names of their parts and in every form. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "tests/support/made_model.h"
#include "tests/support/whole_answer.h"

/* --- what a part of the model holds --- */

/* Of each item [heads][rows][width], and what a rectangle of all has. */
struct part {
  const struct stack_side *side;
  bool weights, across;
  size_t heads, padded_rows, padded_width;
  const float *data;
  const size_t *at; /* of weights */
};

static size_t rows_of(const struct part *p, size_t item) {
  return p->side->run->geometry.item[item].q;
}

static size_t width_of(const struct stack_request *r, const struct part *p, size_t item) {
  if (!p->weights) return WHOLE_MADE_WIDTH;
  return p->across ? r->source.run->geometry.item[item].q : rows_of(p, item);
}

static const float *begin_of(const struct part *p, size_t item) {
  return p->data +
         (p->weights ? p->at[item] : p->side->run->geometry.item[item].q_row * WHOLE_MADE_WIDTH);
}

/* "encoder.1", "decoder.0.cross", "decoder.0.cross.input". */
static struct part find_part(const struct stack_request *r, const char *group, const char *name) {
  struct part p = {.side = strncmp(name, "encoder.", 8) == 0 ? &r->source : &r->main,
                   .weights = strcmp(group, "attention") == 0,
                   .across = strstr(name, ".cross") != NULL,
                   .heads = 1,
                   .padded_width = WHOLE_MADE_WIDTH};
  const size_t layer = (size_t)atoi(name + 8), at = layer + (p.across ? p.side->form->layers : 0);
  const struct stack_shown *shown = p.side->run->shown;
  p.padded_rows = p.side->widest;
  if (p.weights) {
    p.heads = stack_side_shape(p.side, at)->heads;
    if (p.side->wish[at].weights == STACK_WEIGHTS_AVERAGE) p.heads = 1;
    p.padded_width = p.across ? r->source.widest : p.padded_rows;
    p.data = shown[at].weights;
    p.at = shown[at].weights_at;
  } else if (strstr(name, ".input")) {
    p.data = shown[at].input;
  } else {
    p.data = layer ? shown[layer - 1].hidden : p.side->run->embedding;
  }
  return p;
}

/* Lists of rows, in a list of heads where there are any. */
static void check_lists(const struct stack_request *r, const struct part *p, size_t item,
                        const json_t *list) {
  const float *number = begin_of(p, item);
  const bool heads = p->heads > 1;
  const size_t rows = rows_of(p, item), width = width_of(r, p, item);
  if (heads) assert_int_equal(json_array_size(list), p->heads);
  for (size_t h = 0; h < p->heads; h++) {
    const json_t *of = heads ? json_array_get(list, h) : list;
    assert_int_equal(json_array_size(of), rows);
    for (size_t i = 0; i < rows; i++) {
      const json_t *row = json_array_get(of, i);
      assert_int_equal(json_array_size(row), width);
      for (size_t n = 0; n < width; n++)
        assert_true((float)json_number_value(json_array_get(row, n)) == *number++);
    }
  }
}

static void check_rectangle(const struct stack_request *r, const struct part *p, const void *bytes,
                            size_t size) {
  const size_t items = r->main.run->geometry.items;
  const float *at = bytes;
  assert_int_equal(size, sizeof(float) * items * p->heads * p->padded_rows * p->padded_width);
  for (size_t item = 0; item < items; item++) {
    const float *number = begin_of(p, item);
    const size_t rows = rows_of(p, item), width = width_of(r, p, item);
    for (size_t list = 0; list < p->heads * p->padded_rows; list++)
      for (size_t n = 0; n < p->padded_width; n++, at++) {
        const bool there = list % p->padded_rows < rows && n < width;
        assert_true(*at == (there ? *number : 0));
        number += there;
      }
  }
}

/* --- forms --- */

#define RAGGED "{\"tokens\":[[1,2,3],[4],[]],\"targets\":[[5],[6,7,8],[9,10]],"
#define EVEN   "{\"tokens\":[[1,2,3],[4,5,6]],\"targets\":[[5,4],[6,7]],"

static const char *const asked[] = {
    RAGGED "\"return_hidden\":\"all\",\"return_attention\":true}",
    RAGGED
    "\"return_hidden\":[\"decoder.*.cross.input\",\"encoder.-1.self.input\",\"decoder.0.self."
    "input\"],\"return_attention\":\"average\"}",
    EVEN "\"return_hidden\":true,\"return_attention\":[\"decoder.*.cross\",\"encoder.0.self\"]}",
    EVEN "\"valid_lens\":[3,2],\"target_lens\":[1,2],\"return_attention\":[\"decoder.-1.cross\"]}",
    "{\"tokens\":[[1,2],[3,4]],\"targets\":[[5],[6,7,8]],\"return_attention\":true}",
    "{\"tokens\":[],\"targets\":[],\"return_hidden\":\"all\",\"return_attention\":true}",
};
enum { REQUESTS = sizeof asked / sizeof *asked };

static size_t count_asked(const struct stack_request *r) {
  size_t count = 0;
  for (unsigned i = 0; i < STACK_SIDES; i++) {
    const struct stack_side *s = stack_request_side(r, i);
    count += s->embedded;
    for (size_t a = 0; a < stack_form_attentions(s->form); a++)
      count += s->wish[a].hidden + s->wish[a].input + (s->wish[a].weights != STACK_WEIGHTS_NONE);
  }
  return count;
}

static void text_is_the_runs(void **state) {
  (void)state;
  static const char *const groups[] = {"hidden", "attention"};
  for (size_t i = 0; i < REQUESTS; i++) {
    struct whole_answer a;
    const char *name;
    json_t *part;
    size_t parts = 0;
    whole_answer_ask(&a, &model, ASK_SCORE, asked[i], ANSWER_JSON);
    json_t *answer = whole_answer_json(&a);
    for (unsigned g = 0; g < 2; g++)
      json_object_foreach(json_object_get(answer, groups[g]), name, part) {
        const struct part p = find_part(&a.request, groups[g], name);
        assert_int_equal(json_array_size(part), a.request.main.run->geometry.items);
        for (size_t item = 0; item < json_array_size(part); item++)
          check_lists(&a.request, &p, item, json_array_get(part, item));
        parts++;
      }
    assert_int_equal(parts, count_asked(&a.request));
    json_decref(answer);
    whole_answer_done(&a);
  }
}

static void base64_is_the_runs(void **state) {
  (void)state;
  static const char *const groups[] = {"hidden", "attention"};
  for (size_t i = 0; i < REQUESTS; i++) {
    struct whole_answer a;
    char body[400];
    const char *name;
    json_t *part;
    size_t parts = 0, size;
    snprintf(body, sizeof body, "{\"encoding_format\":\"base64\",%s", asked[i] + 1);
    whole_answer_ask(&a, &model, ASK_SCORE, body, ANSWER_JSON);
    json_t *answer = whole_answer_json(&a);
    for (unsigned g = 0; g < 2; g++)
      json_object_foreach(json_object_get(answer, groups[g]), name, part) {
        const struct part p = find_part(&a.request, groups[g], name);
        unsigned char *bytes = whole_answer_base64(part, &size);
        check_rectangle(&a.request, &p, bytes, size);
        free(bytes);
        parts++;
      }
    assert_int_equal(parts, count_asked(&a.request));
    json_decref(answer);
    whole_answer_done(&a);
  }
}

static void tensors_are_the_runs(void **state) {
  (void)state;
  for (size_t i = 0; i < REQUESTS; i++) {
    struct whole_answer a;
    const char *name;
    json_t *tensor;
    const char *data;
    whole_answer_ask(&a, &model, ASK_SCORE, asked[i], ANSWER_SAFETENSORS);
    json_t *header = whole_answer_header(&a, &data);
    /* beside the parts: the metadata, log probabilities, the lengths of sources and targets */
    assert_int_equal(json_object_size(header), 4 + count_asked(&a.request));
    json_object_foreach(header, name, tensor) {
      char group[16] = "";
      const char *dot = strchr(name, '.');
      size_t size;
      if (strcmp(name, "__metadata__") == 0) continue;
      const char *bytes = whole_answer_tensor(tensor, data, &size);
      if (strcmp(name, "valid_lens") == 0)
        assert_memory_equal(bytes, a.request.source.lens, size);
      else if (strcmp(name, "target_lens") == 0)
        assert_memory_equal(bytes, a.request.main.lens, size);
      if (dot) {
        snprintf(group, sizeof group, "%.*s", (int)(dot - name), name);
        const struct part p = find_part(&a.request, group, dot + 1);
        check_rectangle(&a.request, &p, bytes, size);
      }
    }
    json_decref(header);
    whole_answer_done(&a);
  }
}

/* --- the text around them --- */

static void parts_stand_in_the_order_of_their_layers(void **state) {
  (void)state;
  static const char *const names[] = {"\"log_probabilities\":",
                                      "\"hidden\":{\"encoder.0\":",
                                      "\"encoder.0.self.input\":",
                                      "\"encoder.1\":",
                                      "\"encoder.1.self.input\":",
                                      "\"encoder.2\":",
                                      "\"encoder.2.self.input\":",
                                      "\"encoder.3\":",
                                      "\"decoder.0\":",
                                      "\"decoder.0.self.input\":",
                                      "\"decoder.0.cross.input\":",
                                      "\"decoder.1\":",
                                      "\"decoder.1.self.input\":",
                                      "\"decoder.1.cross.input\":",
                                      "\"decoder.2\":",
                                      "\"attention\":{\"encoder.0.self\":",
                                      "\"encoder.1.self\":",
                                      "\"encoder.2.self\":",
                                      "\"decoder.0.self\":",
                                      "\"decoder.0.cross\":",
                                      "\"decoder.1.self\":",
                                      "\"decoder.1.cross\":",
                                      "\"trace\":",
                                      "\"usage\":{\"tokens\":10,\"cached\":0,\"generated\":0}}"};
  struct whole_answer a;
  whole_answer_ask(
      &a, &model, ASK_SCORE,
      RAGGED "\"return_hidden\":[\"encoder.*\",\"decoder.*\",\"encoder.*.self.input\",\"decoder.*."
             "self.input\",\"decoder.*.cross.input\"],\"return_attention\":true,\"trace\":{"
             "\"attention\":\"decoder.1.cross\",\"item\":0,\"head\":1,\"query\":0}}",
      ANSWER_JSON);
  const char *at = a.bytes;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *next = strstr(at, names[i]);
    if (!next) fail_msg("%s is not behind %.40s", names[i], at);
    at = next;
  }
  whole_answer_done(&a);
}

static void thumbnails_have_the_sides_of_their_items(void **state) {
  (void)state;
  struct whole_answer a;
  whole_answer_ask(
      &a, &model, ASK_SCORE,
      RAGGED
      "\"return_attention\":{\"of\":[\"encoder.0.self\",\"decoder.0.self\",\"decoder.0.cross\"]"
      ",\"as\":{\"thumbnails\":2}}}",
      ANSWER_JSON);
  json_t *answer = whole_answer_json(&a);
  static const struct {
    const char *name;
    int shape[3][3];
  } list[] = {{"encoder.0.self", {{2, 2, 2}, {2, 1, 1}, {2, 0, 0}}},
              {"decoder.0.self", {{2, 1, 1}, {2, 2, 2}, {2, 2, 2}}},
              {"decoder.0.cross", {{4, 1, 2}, {4, 2, 1}, {4, 2, 0}}}};
  for (size_t i = 0; i < 3; i++)
    for (size_t item = 0; item < 3; item++) {
      const json_t *all = json_object_get(json_object_get(answer, "thumbnails"), list[i].name);
      const json_t *shape = json_object_get(json_array_get(all, item), "shape");
      assert_int_equal(json_array_size(shape), 3);
      for (size_t n = 0; n < 3; n++)
        assert_int_equal(json_integer_value(json_array_get(shape, n)), list[i].shape[item][n]);
    }
  json_decref(answer);
  whole_answer_done(&a);
}

/* Across, weights of a row with a source sum to one; without, there are none. */
static void a_row_looks_at_its_own_source(void **state) {
  (void)state;
  struct whole_answer a, alone;
  whole_answer_ask(&a, &model, ASK_SCORE, RAGGED "\"return_attention\":true}", ANSWER_JSON);
  whole_answer_ask(&alone, &model, ASK_SCORE,
                   "{\"tokens\":[4],\"targets\":[6,7,8],\"return_attention\":true}", ANSWER_JSON);
  json_t *answer = whole_answer_json(&a), *second = whole_answer_json(&alone);
  const char *name;
  json_t *part;
  assert_true(json_equal(json_array_get(json_object_get(answer, "log_probabilities"), 1),
                         json_object_get(second, "log_probabilities")));
  json_object_foreach(json_object_get(second, "attention"), name, part) {
    const json_t *all = json_object_get(json_object_get(answer, "attention"), name);
    assert_true(json_equal(json_array_get(all, 1), part));
  }
  json_decref(answer);
  json_decref(second);
  whole_answer_done(&a);
  whole_answer_done(&alone);
}

/* --- generated --- */

static json_t *answer_of(enum body_ask what, const char *body) {
  struct whole_answer a;
  whole_answer_ask(&a, &model, what, body, ANSWER_JSON);
  json_t *answer = whole_answer_json(&a);
  whole_answer_done(&a);
  return answer;
}

/* Are these the last rows of those, as far as they go? */
static void check_last_rows(const json_t *rows, const json_t *of) {
  const size_t count = json_array_size(rows), all = json_array_size(of);
  assert_true(count > 0 && count <= all);
  for (size_t i = 0; i < count; i++)
    assert_true(json_equal(json_array_get(rows, i), json_array_get(of, all - count + i)));
}

#define SHOWN ",\"return_hidden\":\"all\",\"return_attention\":true"

/* Row t is the pass that chose token t: the same as /score has, behind what an answer begins with.
 */
static void sequences_show_what_scores_show(void **state) {
  (void)state;
  static const char *const sources[] = {"[1,2,3]", "[4]"}, *const begins[] = {"5,6,", ""};
  json_t *answer = answer_of(ASK_GENERATE, "{\"tokens\":[[1,2,3],[4]],\"targets\":[[5,6],[]],"
                                           "\"max_tokens\":4" SHOWN "}");
  for (size_t item = 0; item < 2; item++) {
    const json_t *all = json_array_get(json_object_get(answer, "sequences"), item);
    const json_t *sequence = json_array_get(all, 0);
    const char *name;
    json_t *part;
    char body[400];
    char *tokens = json_dumps(json_object_get(sequence, "tokens"), JSON_COMPACT);
    assert_non_null(tokens);
    assert_int_equal(json_array_size(json_object_get(sequence, "tokens")), 4);
    snprintf(body, sizeof body, "{\"tokens\":%s,\"targets\":[%s%s" SHOWN "}", sources[item],
             begins[item], tokens + 1);
    free(tokens);
    json_t *scored = answer_of(ASK_SCORE, body);
    check_last_rows(json_object_get(sequence, "log_probabilities"),
                    json_object_get(scored, "log_probabilities"));
    json_object_foreach(json_object_get(scored, "hidden"), name, part) {
      if (strncmp(name, "decoder", 7) == 0)
        check_last_rows(json_object_get(json_object_get(sequence, "hidden"), name), part);
      else
        assert_true(json_equal(
            json_array_get(json_object_get(json_object_get(answer, "hidden"), name), item), part));
    }
    json_object_foreach(json_object_get(scored, "attention"), name, part) {
      const json_t *own = json_object_get(json_object_get(sequence, "attention"), name);
      if (strncmp(name, "decoder", 7) == 0)
        for (size_t h = 0; h < json_array_size(part); h++)
          check_last_rows(json_array_get(own, h), json_array_get(part, h));
      else
        assert_true(json_equal(
            json_array_get(json_object_get(json_object_get(answer, "attention"), name), item),
            part));
    }
    json_decref(scored);
  }
  json_decref(answer);
}

/* As base64 the parts of all sequences stand in one array beside those of the source. */
static void sequences_as_base64(void **state) {
  (void)state;
  static const struct {
    const char *group, *name;
    size_t rank, dim[4];
  } list[] = {{"hidden", "encoder.3", 3, {2, 3, 8}},
              {"hidden", "decoder.2", 3, {4, 3, 8}},
              {"attention", "encoder.0.self", 4, {2, 2, 3, 3}},
              {"attention", "decoder.1.self", 4, {4, 2, 3, 4}},
              {"attention", "decoder.0.cross", 4, {4, 4, 3, 3}}};
  json_t *answer =
      answer_of(ASK_GENERATE,
                "{\"tokens\":[[1,2,3],[4]],\"targets\":[[5],[]],\"max_tokens\":3,"
                "\"temperature\":1,\"returns\":2,\"encoding_format\":\"base64\"" SHOWN "}");
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    const json_t *array = json_object_get(json_object_get(answer, list[i].group), list[i].name);
    const json_t *shape = json_object_get(array, "shape");
    size_t size, product = sizeof(float);
    assert_int_equal(json_array_size(shape), list[i].rank);
    for (size_t n = 0; n < list[i].rank; n++) {
      assert_int_equal(json_integer_value(json_array_get(shape, n)), list[i].dim[n]);
      product *= list[i].dim[n];
    }
    free(whole_answer_base64(array, &size));
    assert_int_equal(size, product);
  }
  const json_t *lens = json_object_get(answer, "valid_lens");
  assert_int_equal(json_integer_value(json_array_get(lens, 0)), 3);
  assert_int_equal(json_integer_value(json_array_get(lens, 1)), 1);
  json_decref(answer);
}

/* Of a search: the best first, as /score has them; and each way follows upon one before. */
static void searches_show_their_ways(void **state) {
  (void)state;
  json_t *answer =
      answer_of(ASK_GENERATE,
                "{\"tokens\":[[1,2,3],[4],[]],\"max_tokens\":5,\"beams\":3,\"returns\":2,"
                "\"return_search\":true,\"return_hidden\":[\"encoder.0\"],\"return_top\":1}");
  const json_t *all = json_object_get(answer, "sequences"),
               *search = json_object_get(answer, "search");
  size_t generated = 0;
  assert_int_equal(json_array_size(json_object_get(json_object_get(answer, "hidden"), "encoder.0")),
                   3);
  assert_int_equal(json_array_size(search), 3);
  for (size_t item = 0; item < 3; item++) {
    const json_t *found = json_array_get(all, item), *steps = json_array_get(search, item);
    double before = INFINITY;
    assert_int_equal(json_array_size(found), 2);
    for (size_t i = 0; i < 2; i++) {
      const json_t *sequence = json_array_get(found, i);
      const double score = json_number_value(json_object_get(sequence, "score"));
      const size_t count = json_array_size(json_object_get(sequence, "tokens"));
      double sum = 0;
      for (size_t t = 0; t < count; t++)
        sum += json_number_value(json_array_get(json_object_get(sequence, "log_probabilities"), t));
      assert_true(score <= before && fabs(score - sum / (double)count) < 1e-5);
      assert_int_equal(json_array_size(json_object_get(sequence, "top")), count);
      before = score;
      generated += count;
    }
    assert_int_equal(json_array_size(json_array_get(steps, 0)), 3);
    assert_int_equal(json_array_size(json_array_get(steps, json_array_size(steps) - 1)), 0);
  }
  const json_t *usage = json_object_get(answer, "usage");
  assert_int_equal(json_integer_value(json_object_get(usage, "generated")), generated);
  assert_int_equal(json_integer_value(json_object_get(usage, "tokens")), 4 + 3);
  json_decref(answer);
}

int main(void) {
  made_model_how = (struct whole_made_how){.pair = true};
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_is_the_runs),
      cmocka_unit_test(base64_is_the_runs),
      cmocka_unit_test(tensors_are_the_runs),
      cmocka_unit_test(parts_stand_in_the_order_of_their_layers),
      cmocka_unit_test(thumbnails_have_the_sides_of_their_items),
      cmocka_unit_test(a_row_looks_at_its_own_source),
      cmocka_unit_test(sequences_show_what_scores_show),
      cmocka_unit_test(sequences_as_base64),
      cmocka_unit_test(searches_show_their_ways),
  };
  return cmocka_run_group_tests(tests, made_model_enter, made_model_leave);
}
