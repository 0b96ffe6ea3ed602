/* test_whole_pair: models of an encoder and a decoder as they are loaded: what their decoders are,
 * what they share, how they go on from a text, and what is refused. The golden models lie in
 * tests/golden/models; what they answer is compared by tests/http/test_seq2seq.py. */
#include <math.h>

#include "config/build/layer/random.h"
#include "tests/support/blas_start.h"
#include "tests/support/whole_place.h"
#include "tests/support/whole_read.h"

static void read_place(struct whole_read *m, const struct place *p, const char *more) {
  char definition[512];
  whole_place_definition(p, more, definition);
  whole_read(m, json_of(definition), "/");
}

/* A golden model whose tensors and config.json were changed so. */
static void prepare(const struct place *p, const char *golden, const struct whole_edit *edit,
                    const char *change) {
  whole_place_tensors(p, golden, edit);
  whole_place_config(p, golden, change);
}

static void refused(const struct place *p, const char *golden, const struct whole_edit *edit,
                    const char *change, const char *detail) {
  prepare(p, golden, edit, change);
  whole_place_refused(p, "", detail);
}

/* --- what decoders are --- */

static const struct decoder {
  const char *folder;
  size_t layers, heads, forward_size, vocabulary, positions;
  bool tied, shared, biased; /* its logits are biased */
  float scale;               /* of what enters the matrix of the logits */
} decoders[] = {{"t5-a", 2, 4, 64, 100, 0, true, true, false, 0.17677669f},
                {"t5-b", 2, 3, 72, 80, 0, true, true, false, 1 / 6.0f},
                {"t5-v11", 2, 4, 80, 90, 0, false, true, false, 1},
                {"bart-a", 2, 4, 64, 90, 40, true, true, true, 1},
                {"bart-b", 3, 2, 96, 70, 40, true, true, true, 1},
                {"marian-a", 2, 4, 96, 100, 0, true, true, true, 1},
                {"marian-b", 1, 3, 64, 80, 40, true, true, true, 1},
                {"d2l-a", 2, 4, 48, 60, 0, false, false, true, 1},
                {"torch-post", 2, 4, 64, 80, 0, true, true, false, 1},
                {"torch-pre", 3, 3, 80, 64, 0, true, true, false, 1}};

static void check_form(const struct decoder *d, const struct stack_form *f, size_t width) {
  assert_string_equal(f->name, "decoder");
  assert_true(f->causal);
  assert_int_equal(f->layers, d->layers);
  assert_int_equal(f->kind->self.heads, d->heads);
  assert_int_equal(f->cross.heads, d->heads);
  assert_int_equal(f->cross.key_size, width);
  assert_int_equal(f->cross.value_size, width);
  assert_int_equal(f->cross.relative_buckets, 0);
  assert_int_equal(f->kind->self.relative_both, 0);
  assert_true(f->cross.scale == f->kind->self.scale &&
              f->cross.head_size == f->kind->self.head_size);
  assert_int_equal(f->forward_size, d->forward_size);
  assert_int_equal(f->embedding.tokens, d->vocabulary);
  assert_int_equal(f->output.tied, d->tied);
  assert_int_equal(f->output.matrix.weight != NULL, !d->tied);
  assert_int_equal(f->output.matrix.bias != NULL, d->biased);
  assert_true(f->output.scale == d->scale);
  for (size_t i = 0; i < f->layers; i++) {
    const struct stack_layer *l = &f->layer[i];
    assert_true(l->cross[ROLE_QUERY].weight && l->cross[ROLE_OUTPUT].weight &&
                l->norm_cross.factor);
    assert_true(l->cross[ROLE_KEY].weight != l->self[ROLE_KEY].weight);
    assert_null(l->cross[ROLE_RELATIVE].weight);
  }
}

static void golden_decoders_are_what_they_were(void **unused) {
  (void)unused;
  for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++) {
    const struct decoder *d = &decoders[i];
    struct whole_read m;
    print_message("%s\n", d->folder);
    whole_read_golden(&m, d->folder);
    check_form(d, &m.decoder, m.form.width);
    const struct whole_stack *encoder = &m.plan.stack[WHOLE_ENCODER];
    assert_int_equal(whole_plan_is_lent(&m.plan, encoder, WHOLE_TOKEN), d->shared);
    assert_int_equal(m.plan.stack[WHOLE_DECODER].positions, d->positions);
    assert_int_equal(m.form.cross.heads, 0);
    assert_false(m.form.causal);
    whole_read_free(&m);
  }
}

static void sizes_of_both_are_told(void **unused) {
  (void)unused;
  struct model *m = load_well("{\"transformer\":\"d2l-a\"}", "tests/golden/models");
  const struct whole *w = m->whole;
  assert_int_equal(w->vocabulary, 70);
  assert_int_equal(w->target_vocabulary, 60);
  assert_true(whole_is_pair(w) && whole_has_output(w) && whole_can_generate(w));
  assert_true(whole_scratch_bytes(w) >= stack_scratch_bytes(w->decoder));
  model_free(m);
  m = load_well("{\"transformer\":\"bart-b\",\"max_positions\":9}", "tests/golden/models");
  assert_int_equal(m->whole->positions, 9);
  assert_int_equal(m->whole->target_positions, 9);
  assert_int_equal(m->notes.count, 1); /* although both tables have more */
  model_free(m);
  m = load_well("{\"transformer\":\"gpt2-a\"}", "tests/golden/models");
  assert_int_equal(m->whole->target_vocabulary, 96);
  assert_int_equal(m->whole->target_positions, 40);
  model_free(m);
}

/* An attention across is a plain layer, whose keys are the encoder's rows. */
static void attentions_across_are_models(void **unused) {
  (void)unused;
  struct model *m = load_well("{\"transformer\":\"t5-b\"}", "tests/golden/models");
  const struct whole *w = m->whole;
  assert_int_equal(w->parts, 3 + 2 + 2);
  const struct whole_part *cross = whole_find_part(w, "decoder.1.cross");
  const struct whole_part *self = whole_find_part(w, "decoder.1.self");
  assert_ptr_equal(cross, &w->part[6]);
  assert_ptr_equal(cross->model.layer, stack_attention(w->decoder, 3));
  assert_false(cross->model.causal || cross->model.bias || cross->model.shape.relative_buckets);
  assert_true(self->model.causal);
  assert_int_equal(self->model.parameters - cross->model.parameters, 12 * 3); /* its table */
  assert_null(whole_find_part(w, "encoder.0.cross"));
  model_free(m);
}

/* The encoder alone is served where that is said: then nothing of the decoder is read. */
static void an_encoder_may_be_served_alone(void **state) {
  const struct place *p = *state;
  prepare(p, "bart-b",
          &(struct whole_edit){.broken = "model.decoder.layers.2.fc1.weight",
                               .add = "model.decoder.layers.0.x",
                               .rows = 2},
          "{}");
  struct model *m = whole_place_load(p, ",\"kind\":\"encoder\"");
  assert_int_equal(m->kind, MODEL_ENCODER);
  assert_null(m->whole->decoder);
  assert_false(whole_has_output(m->whole));
  assert_int_equal(m->parameters, 12480);
  model_free(m);
}

/* --- what they share --- */

static void tables_of_tokens(void **state) {
  static const char *const apart =
      "{\"share_encoder_decoder_embeddings\":false,\"decoder_vocab_size\":90}";
  static const struct whole_edit two = {.rename = "model.shared",
                                        .to = "model.encoder.embed_tokens",
                                        .add = "model.decoder.embed_tokens.weight",
                                        .rows = 90,
                                        .columns = 32};
  const struct place *p = *state;
  struct whole_edit edit = two;
  edit.drop = "final_logits_bias";
  prepare(p, "marian-a", &edit, apart);
  whole_place_refused(p, "", "decoder_start_token_id: 99 is outside the vocabulary of 90");
  struct model *m = whole_place_load(p, ",\"begin\":3");
  assert_int_equal(m->whole->vocabulary, 100);
  assert_int_equal(m->whole->target_vocabulary, 90);
  assert_int_equal(m->whole->choice.banned_count, 0); /* the pad is no token of the decoder */
  model_free(m);
  refused(p, "marian-a", &edit,
          "{\"share_encoder_decoder_embeddings\":false,\"decoder_vocab_size\":91}",
          "config.json: decoder_vocab_size: 91 in the configuration, but tensor");
  refused(p, "marian-a", &two, apart, "tensor \"final_logits_bias\" has 1 times 100 numbers");
  edit.add = "lm_head.weight"; /* a copy of nothing */
  refused(p, "marian-a", &edit, apart, "there is no tensor \"model.decoder.embed_tokens.weight\"");
}

static void copies_must_agree(void **state) {
  const struct place *p = *state;
  refused(p, "t5-b", &(struct whole_edit){.add = "lm_head.weight", .rows = 80, .columns = 36}, "{}",
          "tensor \"lm_head.weight\" differs from \"shared.weight\", of which it should be a copy");
  refused(p, "bart-a",
          &(struct whole_edit){.drop = "model.decoder.embed_tokens",
                               .add = "model.decoder.embed_tokens.weight",
                               .rows = 90,
                               .columns = 32},
          "{}",
          "tensor \"model.decoder.embed_tokens.weight\" differs from \"model.shared.weight\"");
  refused(p, "torch-post", &(struct whole_edit){.add = "output.weight", .rows = 80, .columns = 32},
          "{}", "tensor \"output.weight\" differs from \"embedding.weight\"");
  whole_place_config(p, "torch-post", "{\"tie_output\":\"-\"}"); /* then it is the output */
  struct model *m = whole_place_load(p, "");
  assert_false(stack_form(m->whole->decoder)->output.tied);
  model_free(m);
  whole_place_tensors(p, "t5-v11", NULL); /* whose matrix is its own */
  whole_place_config(p, "t5-v11", "{\"tie_word_embeddings\":true}");
  whole_place_refused(p, "", "tensor \"lm_head.weight\" differs from");
}

static void what_is_added_to_logits(void **state) {
  const struct place *p = *state;
  struct whole_read m;
  prepare(p, "torch-post", &(struct whole_edit){.add = "output.bias", .rows = 80}, "{}");
  read_place(&m, p, "");
  assert_true(m.decoder.output.tied && m.decoder.output.matrix.bias);
  whole_read_free(&m);
  prepare(p, "bart-b", &(struct whole_edit){.rename = "final_", .to = "a.final_"}, "{}");
  read_place(&m, p, "");
  assert_null(m.decoder.output.matrix.bias); /* another model's */
  whole_read_free(&m);
  refused(p, "bart-b",
          &(struct whole_edit){.drop = "final_logits", .add = "final_logits_bias", .rows = 69},
          "{}", "tensor \"final_logits_bias\" has 1 times 69 numbers here, not 1 times 70");
}

/* --- sizes of their own --- */

static void either_stack_has_sizes_of_its_own(void **state) {
  const struct place *p = *state;
  prepare(p, "bart-b", NULL, "{\"decoder_attention_heads\":3}");
  struct model *m = whole_place_load(p, ",\"decoder\":{\"heads\":2}");
  assert_int_equal(stack_form(m->whole->encoder)->kind->self.heads, 3);
  assert_int_equal(stack_form(m->whole->decoder)->kind->self.heads, 2);
  assert_string_equal(m->notes.text[0],
                      "config.json: decoder_attention_heads is 3, but here decoder: heads is 2");
  model_free(m);
  m = whole_place_load(p, ",\"heads\":6,\"decoder\":{\"layers\":1}");
  assert_int_equal(stack_form(m->whole->encoder)->kind->self.heads, 6);
  assert_int_equal(stack_form(m->whole->decoder)->kind->self.heads, 6);
  assert_int_equal(stack_form(m->whole->decoder)->layers, 1);
  assert_int_equal(m->notes.count, 4);
  model_free(m);
  prepare(p, "t5-b", NULL, "{\"num_decoder_layers\":null}");
  whole_place_refused(p, "",
                      "there is no tensor \"decoder.block.2.layer.0.SelfAttention.q.weight\"");
  whole_place_config(p, "t5-b", "{\"num_decoder_layers\":1}");
  m = whole_place_load(p, "");
  assert_int_equal(stack_form(m->whole->decoder)->layers, 1);
  model_free(m);
  refused(p, "bart-b", NULL, "{\"decoder_attention_heads\":5}",
          "config.json: decoder_attention_heads: 5 do not match the 24 rows");
  refused(p, "bart-b", NULL, "{\"decoder_attention_heads\":\"-\"}",
          "decoder: heads: 16 do not match the 24 rows of the query weights");
  refused(p, "bart-b", NULL, "{\"decoder_ffn_dim\":48}",
          "config.json: decoder_ffn_dim: 48 in the configuration, but tensor "
          "\"model.decoder.layers.0.fc1.weight\" implies 96");
  refused(p, "bart-b", NULL, "{\"decoder_layers\":4}",
          "there is no tensor \"model.decoder.layers.3.self_attn.q_proj.weight\"");
  refused(p, "bart-b", NULL, "{\"decoder_layers\":0}",
          "config.json: decoder_layers: 0 is outside 1 to 10000");
  refused(p, "torch-post", NULL, "{\"decoder\":{\"heads\":5}}",
          "config.json: decoder: heads: 5 do not match the 32 rows");
}

/* --- what is refused --- */

static void tensors_of_decoders(void **state) {
  const struct place *p = *state;
  refused(p, "bart-b",
          &(struct whole_edit){.add = "model.decoder.layers.0.encoder_attn.r.weight", .rows = 24},
          "{}",
          "unexpected tensor \"model.decoder.layers.0.encoder_attn.r.weight\" in a bart model");
  refused(p, "marian-a", &(struct whole_edit){.add = "model.decoder.layer_norm.weight", .rows = 32},
          "{}", "unexpected tensor \"model.decoder.layer_norm.weight\" in a marian model");
  refused(p, "bart-b",
          &(struct whole_edit){.drop = "decoder.layers.1.encoder_attn_layer_norm.bias"}, "{}",
          "there is no tensor \"model.decoder.layers.1.encoder_attn_layer_norm.bias\"");
  refused(p, "torch-post",
          &(struct whole_edit){.drop = "decoder.layers.0.multihead_attn.in_proj_weight"}, "{}",
          "there is no tensor \"decoder.layers.0.multihead_attn.in_proj_weight\"");
  refused(p, "torch-post", &(struct whole_edit){.drop = "decoder.layers.0."}, "{}",
          "there is no tensor \"decoder.layers.0.self_attn.in_proj_weight\"");
  refused(p, "torch-post", &(struct whole_edit){.rename = "embedding.", .to = "encoder.embedding."},
          "{}", "there is no tensor \"decoder.embedding.weight\"");
  refused(p, "d2l-a", &(struct whole_edit){.drop = "decoder.dense.weight"}, "{}",
          "there is no tensor \"decoder.dense.weight\"");
  refused(p, "d2l-a", NULL, "{\"tie_output\":true}", "tie_output: cannot be changed for d2l");
  refused(p, "d2l-a", &(struct whole_edit){.drop = "decoder.embedding"}, "{}",
          "there is no tensor \"decoder.embedding.weight\"");
  static const char cross[] = "decoder.block.1.layer.1.EncDecAttention.k.weight";
  refused(p, "t5-b", &(struct whole_edit){.drop = cross, .add = cross, .rows = 30, .columns = 35},
          "{}", "has 30 times 35 numbers here, not 30 times 36");
  refused(p, "t5-b",
          &(struct whole_edit){.add = "decoder.block.1.layer.1.EncDecAttention."
                                      "relative_attention_bias.weight",
                               .rows = 12,
                               .columns = 3},
          "{}", "relative_attention_bias.weight\" in a t5 model");
  refused(p, "t5-b",
          &(struct whole_edit){.huge = "decoder.block.1.layer.2.DenseReluDense.wo.weight"}, "{}",
          "self-test failed: the output for a few tokens is not finite: decoder layer 1: ");
  refused(p, "torch-post",
          &(struct whole_edit){.add = "relative_bias.weight", .rows = 32, .columns = 4},
          "{\"positions\":\"-\"}",
          "positions: there is no tensor \"decoder.relative_bias.weight\"");
}

/* The first files of T5 have a table of distances that is not used. */
static void a_table_across_has_no_effect(void **state) {
  const struct place *p = *state;
  prepare(p, "t5-b",
          &(struct whole_edit){.add = "decoder.block.0.layer.1.EncDecAttention."
                                      "relative_attention_bias.weight",
                               .rows = 12,
                               .columns = 3},
          "{}");
  struct model *m = whole_place_load(p, "");
  assert_int_equal(m->whole->aside, 1);
  model_free(m);
}

/* --- how they go on --- */

static void begin_and_end(void **state) {
  const struct place *p = *state;
  prepare(p, "bart-b", NULL, "{\"forced_bos_token_id\":0,\"forced_eos_token_id\":2}");
  struct model *m = whole_place_load(p, "");
  assert_int_equal(m->whole->choice.forced_begin, 0);
  assert_int_equal(m->whole->choice.forced_end, 2);
  model_free(m);
  prepare(p, "bart-b", NULL, "{\"forced_bos_token_id\":70}"); /* none of its tokens */
  m = whole_place_load(p, ",\"forced_end\":null");
  assert_int_equal(m->whole->choice.forced_begin, -1);
  assert_int_equal(m->whole->choice.forced_end, -1);
  model_free(m);
  whole_place_refused(p, ",\"forced_begin\":70",
                      "forced_begin: 70 is outside the vocabulary of 70");
  whole_place_refused(p, ",\"forced_end\":70", "forced_end: 70 is outside the vocabulary of 70");
  whole_place_refused(p, ",\"end\":[1,500]", "end: 500 is outside the vocabulary of 70");
  whole_place_refused(p, ",\"pad\":70", "pad: 70 is outside the vocabulary of 70");
  refused(p, "bart-b", NULL, "{\"decoder_start_token_id\":70}",
          "config.json: decoder_start_token_id: 70 is outside the vocabulary of 70");
  prepare(p, "torch-post", NULL, "{\"begin\":\"-\"}");
  m = whole_place_load(p, "");
  assert_false(whole_has_output(m->whole) || whole_can_generate(m->whole));
  assert_int_equal(m->notes.count, 1);
  model_free(m);
  m = whole_place_load(p, ",\"begin\":4");
  assert_true(whole_can_generate(m->whole));
  assert_int_equal(m->notes.count, 0);
  model_free(m);
}

static void marian_never_pads(void **state) {
  const struct place *p = *state;
  prepare(p, "marian-a", NULL, "{}");
  struct model *m = whole_place_load(p, "");
  assert_int_equal(m->whole->choice.banned_count, 1);
  assert_int_equal(m->whole->choice.banned[0], 99);
  model_free(m);
  m = whole_place_load(p, ",\"generate\":{\"banned_tokens\":[4,99,4]}");
  assert_int_equal(m->whole->choice.banned_count, 2);
  model_free(m);
  m = whole_place_load(p, ",\"pad\":null");
  assert_int_equal(m->whole->choice.banned_count, 0);
  model_free(m);
}

/* Of a model with this generation_config.json, and this config.json. */
static struct whole *load_with(const struct place *p, struct model **m, const char *generation,
                               const char *change, const char *more) {
  whole_place_write(p, "generation_config.json", generation);
  whole_place_config(p, "bart-b", change);
  *m = whole_place_load(p, more);
  return (*m)->whole;
}

static void searches_and_lengths(void **state) {
  static const char said[] = "{\"num_beams\":4,\"length_penalty\":2.0,\"early_stopping\":true,"
                             "\"max_length\":13,\"min_length\":3,\"no_repeat_ngram_size\":3}";
  const struct place *p = *state;
  struct model *m;
  whole_place_tensors(p, "bart-b", NULL);
  const struct whole *w = load_with(p, &m, said, "{}", "");
  assert_int_equal(w->choice.beams, 4);
  assert_true(w->choice.length_penalty == 2 && w->choice.early_stopping == STACK_EARLY_YES);
  assert_int_equal(w->max_tokens, 12); /* of which the first was given */
  assert_int_equal(w->choice.min_tokens, 2);
  assert_int_equal(w->choice.no_repeat_ngram, 3);
  model_free(m);
  w = load_with(p, &m, NULL, said, ""); /* which config.json says where it is alone, */
  assert_true(w->choice.beams == 4 && w->max_tokens == 12);
  model_free(m);
  w = load_with(p, &m, "{\"max_new_tokens\":9,\"max_length\":5,\"early_stopping\":\"never\"}", said,
                "");
  assert_true(w->choice.beams == 0 && w->choice.length_penalty == 1); /* and else not */
  assert_int_equal(w->max_tokens, 9);
  assert_int_equal(w->choice.early_stopping, STACK_EARLY_NEVER);
  model_free(m);
  w = load_with(p, &m, said, "{}",
                ",\"generate\":{\"beams\":2,\"length_penalty\":-0.5,\"early_stopping\":false}");
  assert_true(w->choice.beams == 2 && w->choice.length_penalty == -0.5);
  assert_int_equal(w->choice.early_stopping, STACK_EARLY_NOT);
  model_free(m);
}

/* What draws does not search; what a definition says switches the other off. */
static void drawing_or_searching(void **state) {
  const struct place *p = *state;
  struct model *m;
  whole_place_tensors(p, "bart-b", NULL);
  const struct whole *w =
      load_with(p, &m, "{\"do_sample\":true,\"num_beams\":4,\"top_k\":7}", "{}", "");
  assert_true(w->choice.temperature == 1 && w->choice.beams == 0 && w->choice.top_k == 7);
  assert_string_equal(m->notes.text[0],
                      "generation_config.json: num_beams is ignored, because do_sample is true");
  model_free(m);
  w = load_with(p, &m, "{\"do_sample\":true}", "{}", ",\"generate\":{\"beams\":3}");
  assert_true(w->choice.temperature == 0 && w->choice.beams == 3);
  model_free(m);
  w = load_with(p, &m, "{\"num_beams\":4}", "{}", ",\"generate\":{\"temperature\":0.5}");
  assert_true(w->choice.temperature == 0.5 && w->choice.beams == 0);
  model_free(m);
  whole_place_refused(p, ",\"generate\":{\"temperature\":0.5,\"beams\":2}",
                      "generate: beams: 2 and a temperature above 0 cannot be combined");
}

static void what_is_left_aside_is_noted(void **state) {
  const struct place *p = *state;
  struct model *m;
  whole_place_tensors(p, "bart-b", NULL);
  load_with(p, &m,
            "{\"num_beam_groups\":2,\"diversity_penalty\":0.0,\"typical_p\":0.5,"
            "\"guidance_scale\":null,\"bad_words_ids\":[[3,4]],\"renormalize_logits\":false}",
            "{}", "");
  assert_int_equal(m->notes.count, 2);
  assert_string_equal(m->notes.text[0],
                      "generation_config.json: bad_words_ids of several tokens are ignored");
  assert_string_equal(m->notes.text[1], "generation_config.json: num_beam_groups is ignored");
  model_free(m);
}

/* The library's files ban tokens that a model lacks; a definition may not. */
static void banned_tokens_that_are_none(void **state) {
  const struct place *p = *state;
  whole_place_tensors(p, "bart-b", NULL);
  whole_place_config(p, "bart-b", "{}");
  whole_place_write(p, "generation_config.json", "{\"bad_words_ids\":[[3],[70]]}");
  struct model *m = whole_place_load(p, "");
  assert_int_equal(m->whole->choice.banned_count, 1);
  assert_int_equal(m->whole->choice.banned[0], 3);
  assert_int_equal(m->notes.count, 1);
  model_free(m);
  whole_place_refused(p, ",\"generate\":{\"banned_tokens\":[70]}",
                      "generate: banned_tokens: 70 is outside the vocabulary of 70");
  whole_place_write(p, "generation_config.json", NULL);
}

static void what_is_said_wrongly(void **state) {
  const struct place *p = *state;
  static const char *const said[][2] = {
      {"{\"num_beams\":0}", "generation_config.json: num_beams: 0 is outside 1 to 64"},
      {"{\"num_beams\":65}", "generation_config.json: num_beams: 65 is outside 1 to 64"},
      {"{\"early_stopping\":\"soon\"}", "early_stopping: needs true, false or \"never\""},
      {"{\"length_penalty\":\"2\"}", "generation_config.json: length_penalty: needs a number"},
      {"{\"max_length\":2.5}", "generation_config.json: max_length: needs an integer"},
      {"{\"min_length\":-1}", "generation_config.json: min_length: needs an integer"}};
  whole_place_tensors(p, "bart-b", NULL);
  whole_place_config(p, "bart-b", "{}");
  for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
    whole_place_write(p, "generation_config.json", said[i][0]);
    whole_place_refused(p, "", said[i][1]);
  }
  whole_place_write(p, "generation_config.json", NULL);
  whole_place_config(p, "bart-b", "{\"num_beams\":0}");
  whole_place_refused(p, "", "config.json: num_beams: 0 is outside 1 to 64");
}

/* --- drawn ones --- */

#define DRAWN                                                                        \
  "{\"transformer\":{\"random\":{\"seed\":5}},\"layers\":2,\"width\":8,\"heads\":2," \
  "\"feed_forward\":6,\"vocabulary\":9"

/* An encoder has the numbers that it would have alone; a decoder has others everywhere. */
static void drawn_numbers(void **unused) {
  (void)unused;
  struct whole_read m, alone;
  float weight[8 * 8], factor[8];
  const uint32_t first = 1 << 20;
  const char *more = ",\"norm\":\"pre\",\"positions\":\"learned\",\"max_positions\":7";
  char definition[400];
  snprintf(definition, sizeof definition, "%s,\"kind\":\"seq2seq\"%s}", DRAWN, more);
  whole_read(&m, json_of(definition), ".");
  snprintf(definition, sizeof definition, "%s,\"kind\":\"encoder\"%s}", DRAWN, more);
  whole_read(&alone, json_of(definition), ".");
  assert_memory_equal(m.form.embedding.token, alone.form.embedding.token, 9 * 8 * sizeof(float));
  assert_memory_equal(m.form.layer[1].forward.up.weight, alone.form.layer[1].forward.up.weight,
                      6 * 8 * sizeof(float));
  assert_memory_equal(m.decoder.embedding.token, m.form.embedding.token, 9 * 8 * sizeof(float));
  assert_memory_equal(m.decoder.embedding.position, m.form.embedding.position,
                      7 * 8 * sizeof(float));
  random_weight(5, first + 64 * 2 + 3, 8, 8, weight);
  assert_memory_equal(m.decoder.layer[1].self[ROLE_OUTPUT].weight, weight, sizeof weight);
  random_weight(5, first + 64 + 17, 8, 8, weight);
  assert_memory_equal(m.decoder.layer[0].cross[ROLE_KEY].weight, weight, sizeof weight);
  random_bias(5, first + 64 + 20 + 32, 8, factor);
  assert_true(m.decoder.layer[0].norm_cross.factor[3] == factor[3] + 1);
  assert_true(m.decoder.last.factor[3] != m.form.last.factor[3]);
  assert_true(m.decoder.output.tied);
  /* The table and the positions count once. */
  const uint64_t layer = 4 * (64 + 8) + 2 * 48 + 6 + 8, norm = 2 * 8;
  assert_int_equal(alone.plan.count, 9 * 8 + 7 * 8 + 2 * (layer + 2 * norm) + norm);
  assert_int_equal(m.plan.count - alone.plan.count, 2 * (layer + 4 * 72 + 3 * norm) + norm);
  whole_read_free(&m);
  whole_read_free(&alone);
}

static void drawn_stacks_may_differ(void **unused) {
  (void)unused;
  struct model *m = load_well(DRAWN ",\"kind\":\"seq2seq\",\"positions\":\"relative\","
                                    "\"decoder\":{\"layers\":1,\"heads\":4,\"feed_forward\":5}}",
                              ".");
  const struct stack_form *f = stack_form(m->whole->decoder);
  assert_true(f->layers == 1 && f->kind->self.heads == 4 && f->forward_size == 5);
  assert_true(f->kind->self.relative_buckets == 32 && !f->kind->self.relative_both);
  assert_true(f->cross.heads == 4 && f->cross.relative_buckets == 0);
  assert_true(stack_form(m->whole->encoder)->kind->self.relative_both);
  assert_int_equal(m->whole->token.begin, 1);
  assert_true(whole_can_generate(m->whole));
  model_free(m);
  ill(DRAWN ",\"kind\":\"seq2seq\",\"decoder\":{\"heads\":3}}",
      "m: decoder: heads: 3 do not match the 8 rows");
  ill(DRAWN ",\"kind\":\"encoder\",\"encoder\":{\"heads\":3}}",
      "m: heads: 3 do not match the 8 rows");
}

int main(void) {
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, whole_place_enter, whole_place_leave)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(golden_decoders_are_what_they_were),
      cmocka_unit_test(sizes_of_both_are_told),
      cmocka_unit_test(attentions_across_are_models),
      IN_PLACE(an_encoder_may_be_served_alone),
      IN_PLACE(tables_of_tokens),
      IN_PLACE(copies_must_agree),
      IN_PLACE(what_is_added_to_logits),
      IN_PLACE(either_stack_has_sizes_of_its_own),
      IN_PLACE(tensors_of_decoders),
      IN_PLACE(a_table_across_has_no_effect),
      IN_PLACE(begin_and_end),
      IN_PLACE(marian_never_pads),
      IN_PLACE(searches_and_lengths),
      IN_PLACE(drawing_or_searching),
      IN_PLACE(what_is_left_aside_is_noted),
      IN_PLACE(banned_tokens_that_are_none),
      IN_PLACE(what_is_said_wrongly),
      cmocka_unit_test(drawn_numbers),
      cmocka_unit_test(drawn_stacks_may_differ),
  };
  return cmocka_run_group_tests(tests, blas_start, NULL);
}
