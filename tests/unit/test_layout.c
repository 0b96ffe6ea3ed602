/* test_layout: which tensors of a checkpoint are used, converted and refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/blas_start.h"
#include "tests/support/model_load.h"

static int enter(void **state) { return place_make(state, "w.safetensors"); }

static void d2l_is_found_behind_any_prefix(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  add_roles(&m, "net.attention.", d2l, ".weight");
  write_made(p, &m);
  layout_is(p, W "}", "d2l");
  layout_is(p, W ",\"layout\":\"d2l\"}", "d2l");
  layout_is(p, W ",\"prefix\":\"net.attention.\"}", "d2l");
  load_ill(W ",\"prefix\":\"net.\"}", p->folder,
           "prefix: no attention has this prefix; there is one at \"net.attention.\"");
  load_ill(W ",\"layout\":\"torch\"}", p->folder, "fit none of torch");
  load_ill(W ",\"layout\":\"d2l\",\"layer\":0}", p->folder,
           "layer: the layout d2l has no numbered layers");
  load_ill(W ",\"layer\":0}", p->folder,
           "layer: no attention here has this number; there is one at \"net.attention.\"");
  load_ill(W ",\"layout\":\"torch\",\"prefix\":\"net.\"}", p->folder,
           "fit none of torch after this prefix, which ends with its dot; name them with");
  load_ill(W ",\"bias\":true}", p->folder, "bias: true, but there is none");
  add_roles(&m, "a.", d2l, ".weight");
  add_roles(&m, "b.", d2l, ".weight");
  add_roles(&m, "b.", d2l, ".bias");
  add_roles(&m, "xb", d2l, ".weight"); /* no dot: another name */
  write_made(p, &m);
  load_ill(W "}", p->folder, "prefix: required: \"a.\" or \"b.\"");
  layout_is(p, W ",\"prefix\":\"b.\",\"bias\":true}", "d2l");
  load_ill(W ",\"prefix\":\"b.\",\"bias\":false}", p->folder,
           "bias: false, but the checkpoint has biases");
}

static void prefixes_have_an_end(void **state) {
  const struct place *p = *state;
  char definition[400];
  struct made m = {0};
  add_roles(&m, "", d2l, ".weight");
  write_made(p, &m);
  snprintf(definition, sizeof definition, W ",\"prefix\":\"%0256d\"}", 0);
  load_ill(definition, p->folder, "prefix: longer than 255 bytes");
  snprintf(definition, sizeof definition, W ",\"prefix\":\"%0255d\"}", 0);
  load_ill(definition, p->folder, "prefix: no attention has this prefix; there is one at \"\"");
  layout_is(p, W ",\"prefix\":\"\"}", "d2l");
  add_roles(&m, "attention_", d2l, ".weight"); /* no dot: only where the definition says so */
  write_made(p, &m);
  load_ill(W "}", p->folder, "fit none of plain, torch, d2l, bert, clip, gpt2, t5, llama, whisper");
  layout_is(p, W ",\"prefix\":\"attention_\"}", "d2l");
}

static void torch_layers_are_counted(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  for (size_t i = 0; i < 2; i++) {
    char name[128];
    snprintf(name, sizeof name, "encoder.layers.%zu.self_attn.in_proj_weight", i);
    made_add(&m, name, 12, 4);
    snprintf(name, sizeof name, "encoder.layers.%zu.self_attn.out_proj.weight", i);
    made_add(&m, name, 4 + i, 4);
  }
  write_made(p, &m);
  load_ill(W "}", p->folder,
           "prefix or layer: required: \"encoder.layers.0.self_attn.\" or "
           "\"encoder.layers.1.self_attn.\"");
  layout_is(p, W ",\"layer\":0}", "torch");
  layout_is(p, W ",\"layer\":0,\"prefix\":\"encoder.\"}", "torch");
  struct model *second = load_well(W ",\"layer\":1}", p->folder);
  assert_int_equal(second->shape.output_size, 5);
  model_free(second);
  load_ill(W ",\"layer\":2}", p->folder,
           "layer: no attention here has this number; there are 2, from "
           "\"encoder.layers.0.self_attn.\" on");
}

static void torch_is_read_as_torch_writes_it(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  made_add(&m, "in_proj_weight", 12, 4);
  made_add(&m, "out_proj.weight", 4, 4);
  made_add(&m, "bias_k", 4, 0);
  write_made(p, &m);
  load_ill(W "}", p->folder, "a learned key and value are not supported");
  made_add(&m, "in_proj_weight", 13, 4);
  made_add(&m, "out_proj.weight", 4, 4);
  write_made(p, &m);
  load_ill(W "}", p->folder, "tensor \"in_proj_weight\": 13 rows cannot be divided");
  made_add(&m, "in_proj_weight", 12, 4);
  made_add(&m, "in_proj_bias", 9, 0);
  write_made(p, &m);
  load_ill(W "}", p->folder, "tensor \"in_proj_bias\" has 3 numbers for the 4 rows");
  made_add(&m, "q_proj_weight", 4, 4);
  made_add(&m, "k_proj_weight", 4, 5);
  write_made(p, &m);
  load_ill(W "}", p->folder, "has no tensor \"v_proj_weight\" (did you mean");
}

static void names_that_fit_two_layouts_must_be_decided(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  add_roles(&m, "", plain, ".weight");
  add_roles(&m, "", d2l, ".weight");
  write_made(p, &m);
  load_ill(W "}", p->folder, "layout: required: the tensor names match both plain and d2l");
  layout_is(p, W ",\"layout\":\"plain\"}", "plain");
}

static void tensors_are_stems_or_whole_names(void **state) {
  const struct place *p = *state;
  static const char *const stems[] = {"a", "b", "c", "d"};
  struct made m = {0};
  add_roles(&m, "x.", stems, ".weight");
  add_roles(&m, "x.", stems, ".bias");
  write_made(p, &m);
  struct model *whole = load_well(
      W ",\"tensors\":{\"query\":\"x.a.weight\",\"key\":\"x.b.weight\",\"value\":\"x.c.weight\","
        "\"output\":\"x.d\"}}",
      p->folder);
  assert_int_equal(whole->parameters, 4 * 16 + 4);
  model_free(whole);
  layout_is(p,
            W ",\"prefix\":\"x.\",\"tensors\":{\"query\":\"a\",\"key\":\"a\",\"value\":\"a\","
              "\"output\":\"d\"}}",
            "tensors");
  load_ill(W ",\"tensors\":{\"query\":\"x.a\",\"key\":\"x.b\",\"value\":\"x.c\"}}", p->folder,
           "tensors: the role \"output\" is missing; without one output_projection must be false");
  layout_is(p,
            W ",\"output_projection\":false,\"tensors\":{\"query\":\"x.a\",\"key\":\"x.b\","
              "\"value\":\"x.c\"}}",
            "tensors");
  load_ill(W ",\"tensors\":{\"query\":\"x.q\",\"key\":\"x.b\",\"value\":\"x.c\"}}", p->folder,
           "has no tensor \"x.q.weight\" (did you mean \"x.");
  made_add(&m, "linear_k.weight", 4, 4);
  made_add(&m, "linear_out.weight", 4, 4);
  write_made(p, &m);
  load_ill(W ",\"tensors\":{\"query\":\"linear_o\",\"key\":\"linear_k\",\"value\":\"linear_k\","
             "\"output\":\"linear_k\"}}",
           p->folder, "has no tensor \"linear_o.weight\" (did you mean \"linear_out.weight\"?)");
}

static void an_output_alone_serves_split_columns(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  made_add(&m, "output.weight", 3, 4);
  made_add(&m, "output.bias", 3, 0);
  write_made(p, &m);
  struct model *one = load_well(W ",\"projection\":\"none\",\"query_size\":4,"
                                  "\"output_projection\":true,\"bias\":true}",
                                p->folder);
  assert_shape(&one->shape, 2, 2, 2, 2, (size_t[]){4, 4, 4, 3});
  assert_int_equal(one->parameters, 15);
  model_free(one);
  load_ill(W ",\"projection\":\"none\",\"query_size\":6,\"output_projection\":true}", p->folder,
           "tensor \"output.weight\" has 4 columns, but the heads together 6");
  load_ill(W ",\"projection\":\"none\",\"query_size\":4,\"output_projection\":true,"
             "\"output_size\":4}",
           p->folder, "output_size: 4 in the definition, but it must be 3");
}

/* --- tensors that do not fit --- */

static void sizes_that_disagree_are_named_with_both_numbers(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  made_add(&m, "query.weight", 6, 5);
  made_add(&m, "key.weight", 6, 7);
  made_add(&m, "value.weight", 10, 8);
  made_add(&m, "output.weight", 9, 10);
  write_made(p, &m);
  struct model *one = load_well(W ",\"hidden\":6,\"query_size\":5,\"key_size\":7,\"value_size\":8,"
                                  "\"output_size\":9}",
                                p->folder);
  assert_shape(&one->shape, 2, 2, 3, 5, (size_t[]){5, 7, 8, 9});
  model_free(one);
  load_ill(W ",\"hidden\":7}", p->folder, "hidden: 7 in the definition, but it must be 6");
  load_ill(W ",\"query_size\":6}", p->folder, "query_size: 6 in the definition, but it must be 5");
  load_ill(W ",\"key_size\":6}", p->folder, "key_size: 6 in the definition, but it must be 7");
  load_ill(W ",\"value_size\":6}", p->folder, "value_size: 6 in the definition, but it must be 8");
  load_ill(W ",\"output_size\":6}", p->folder,
           "output_size: 6 in the definition, but it must be 9");
  load_ill(W ",\"kv_heads\":1}", p->folder, "kv_heads: keys of 6 columns are not 1 heads of 3");
  load_ill("{\"checkpoint\":\"w.safetensors\",\"heads\":4}", p->folder,
           "w.safetensors: heads: 4 do not divide the 6 columns of the queries");
}

static void groups_multiply_the_columns_of_the_checkpoint(void **state) {
  const struct place *p = *state;
#define SLICES "{\"checkpoint\":\"w.safetensors\",\"projection\":\"grouped\",\"heads\":4"
  struct made m = {0};
  made_add(&m, "query.weight", 8, 3);
  made_add(&m, "key.weight", 4, 5);
  made_add(&m, "value.weight", 6, 7);
  made_add(&m, "value.bias", 6, 0);
  made_add(&m, "output.weight", 9, 12);
  write_made(p, &m);
  struct parameters one =
      parameters_of(SLICES ",\"kv_heads\":2,\"query_size\":12,\"key_size\":10,\"hidden\":8}",
                    p->file);
  assert_shape(&one.shape, 4, 2, 2, 3, (size_t[]){12, 10, 14, 9});
  assert_true(one.shape.grouped);
  assert_int_equal(one.matrix[ROLE_VALUE].in, 7);
  parameters_free(&one);
  load_ill(SLICES ",\"kv_heads\":2,\"query_size\":3}", p->folder,
           "query_size: 3 in the definition, but it must be 12");
  load_ill(SLICES ",\"kv_heads\":2,\"value_size\":7}", p->folder,
           "value_size: 7 in the definition, but it must be 14");
  load_ill(SLICES "}", p->folder, "heads: 4 do not divide the 6 columns of the values");
  load_ill("{\"checkpoint\":\"w.safetensors\",\"projection\":\"grouped\",\"heads\":3}", p->folder,
           "heads: 3 do not divide the 8 columns of the queries");
}

static void only_tensors_that_are_used_are_judged(void **state) {
  const struct place *p = *state;
  static const unsigned char nan[64] = {0, 0, 0xc0, 0x7f};
  struct made m = {0};
  add_roles(&m, "", plain, ".weight");
  made_add_bytes(&m, "other.weight", "F32", "[4,4]", nan, sizeof nan);
  made_add_bytes(&m, "ids", "I64", "[8]", nan, sizeof nan);
  made_add_bytes(&m, "odd", "F6_NEW", "[9,9]", nan, sizeof nan);
  write_made(p, &m);
  layout_is(p, W "}", "plain");
  static const struct {
    const char *dtype, *shape, *detail;
    size_t size;
  } cases[] = {
      {"F32", "[4,4]", "w.safetensors: tensor \"output.weight\" holds a number that is not fin",
       64},
      {"I32", "[4,4]", "tensor \"output.weight\" is of type I32", 64},
      {"F6_NEW", "[4,4]", "tensor \"output.weight\" is of type F6_NEW", 64},
      {"F32", "[16]", "tensor \"output.weight\" has 1 dimensions, not 2", 64},
      {"F32", "[0,4]", "tensor \"output.weight\" holds no numbers", 0},
      {"F32", "[2,8]", "tensor \"output.weight\" has 8 columns, but the heads together 4", 64},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    add_roles(&m, "", (const char *const[]){"query", "key", "value", "spare"}, ".weight");
    made_add_bytes(&m, "output.weight", cases[i].dtype, cases[i].shape, nan, cases[i].size);
    write_made(p, &m);
    load_ill(W "}", p->folder, cases[i].detail);
    layout_is(p, W ",\"output_projection\":false}", "plain");
  }
  add_roles(&m, "", plain, ".weight");
  made_add(&m, "key.bias", 5, 0);
  write_made(p, &m);
  load_ill(W "}", p->folder, "tensor \"key.bias\" has 5 numbers for the 4 rows of \"key.weight\"");
}

/* Numbers of a checkpoint are finite; what is computed from them may not be. */
static void layers_that_could_answer_nothing_are_refused(void **state) {
  const struct place *p = *state;
  static const float huge[] = {3e38f, 3e38f, 3e38f, 3e38f};
  struct made m = {0};
  add_roles(&m, "", plain, ".weight");
  made_add_bytes(&m, "query.bias", "F32", "[4]", huge, sizeof huge);
  write_made(p, &m);
  layout_is(p, W "}", "plain"); /* keys of zeros are zeros */
  add_roles(&m, "", plain, ".weight");
  made_add_bytes(&m, "query.bias", "F32", "[4]", huge, sizeof huge);
  made_add_bytes(&m, "key.bias", "F32", "[4]", huge, sizeof huge);
  write_made(p, &m);
  load_ill(W "}", p->folder,
           "self-test failed: the output for zeros is not finite: a score of query 0 of item 0 "
           "exceeds");
}

static void smaller_types_are_converted(void **state) {
  const struct place *p = *state;
  static const unsigned char half[] = {0, 0x3c, 0, 0xc0, 1, 0, 0, 0}; /* 1, -2, 2^-24, 0 */
  struct made m = {0};
  made_add(&m, "pad", 1, 0);
  made_add_bytes(&m, "odd", "U8", "[1]", "x", 1); /* what follows lies unaligned */
  made_add_bytes(&m, "query.weight", "F16", "[2,2]", half, sizeof half);
  made_add_bytes(&m, "key.weight", "BF16", "[2,2]", "\x80\x3f\0\xc0\0\0\0\0", 8);
  made_add(&m, "value.weight", 2, 2);
  write_made(p, &m);
  struct parameters values =
      parameters_of("{\"heads\":1,\"checkpoint\":\"x\",\"output_projection\":false}", p->file);
  const float *query = values.matrix[ROLE_QUERY].weight, *key = values.matrix[ROLE_KEY].weight;
  assert_true(query[0] == 1 && query[1] == -2 && query[2] == 0x1p-24f && query[3] == 0);
  assert_true(key[0] == 1 && key[1] == -2 && key[2] == 0 && key[3] == 0);
  assert_true(values.matrix[ROLE_VALUE].weight[3] == 1.1875f);
  assert_null(values.matrix[ROLE_OUTPUT].weight);
  assert_null(values.matrix[ROLE_QUERY].bias);
  parameters_free(&values);
}

static void a_checkpoint_that_is_none_is_named(void **state) {
  const struct place *p = *state;
  struct made m;
  made_raw(&m, "{\"a\":1}", 7, 0);
  made_write(&m, p->file);
  made_free(&m);
  load_ill(W "}", p->folder, "/w.safetensors: tensor \"a\" is not described by");
  load_ill("{\"checkpoint\":\"v.safetensors\",\"heads\":2}", p->folder, "No such file");
  FILE *empty = fopen(p->file, "wb");
  assert_non_null(empty);
  fclose(empty);
  load_ill(W "}", p->folder, "too short for a safetensors file: 0 bytes");
}

int main(void) {
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, enter, place_remove)
  const struct CMUnitTest tests[] = {
      IN_PLACE(d2l_is_found_behind_any_prefix),
      IN_PLACE(prefixes_have_an_end),
      IN_PLACE(torch_layers_are_counted),
      IN_PLACE(torch_is_read_as_torch_writes_it),
      IN_PLACE(names_that_fit_two_layouts_must_be_decided),
      IN_PLACE(tensors_are_stems_or_whole_names),
      IN_PLACE(an_output_alone_serves_split_columns),
      IN_PLACE(sizes_that_disagree_are_named_with_both_numbers),
      IN_PLACE(groups_multiply_the_columns_of_the_checkpoint),
      IN_PLACE(only_tensors_that_are_used_are_judged),
      IN_PLACE(layers_that_could_answer_nothing_are_refused),
      IN_PLACE(smaller_types_are_converted),
      IN_PLACE(a_checkpoint_that_is_none_is_named),
  };
  return cmocka_run_group_tests(tests, blas_start, NULL);
}
