/* whole_called: the tables of names. */
#include "config/describe/whole_called.h"

#include <stdio.h>
#include <string.h>

#include "config/describe/whole_choice.h"
#include "config/family/whole_family.h"

struct called {
  const char *key, *word; /* the library's, and a definition's; NULL: the library has none */
};

static const struct called tokens[] = {{"decoder_start_token_id", "begin"},
                                       {"bos_token_id", "begin"},
                                       {"eos_token_id", "end"},
                                       {"pad_token_id", "pad"},
                                       {"forced_bos_token_id", "forced_begin"},
                                       {"forced_eos_token_id", "forced_end"},
                                       {"tie_word_embeddings", "tie_output"},
                                       {"is_encoder_decoder", "kind"},
                                       {"is_decoder", "kind"},
                                       {"id2label", "labels"},
                                       {"num_labels", "classes"},
                                       {"problem_type", "function"},
                                       {"torch_dtype", "weights"},
                                       {"dtype", "weights"}};

/* Words that are the same in both stand here for a definition that says them in the wrong place. */
#define SAME(id, word, ...) {#word, #word},
static const struct called generating[] = {{"max_new_tokens", "max_tokens"},
                                           {"max_length", "max_tokens"},
                                           {"max_tokens", "max_tokens"},
                                           {"min_new_tokens", "min_tokens"},
                                           {"min_length", "min_tokens"},
                                           {"num_beams", "beams"},
                                           {"beams", "beams"},
                                           {"length_penalty", "length_penalty"},
                                           {"early_stopping", "early_stopping"},
                                           {"do_sample", "temperature"},
                                           {"no_repeat_ngram_size", "no_repeat_ngram"},
                                           {"suppress_tokens", "banned_tokens"},
                                           {"bad_words_ids", "banned_tokens"},
                                           {"banned_tokens", "banned_tokens"},
                                           WHOLE_OPTIONS(SAME)};

/* NULL: the key is none of these. */
static const char *find(const struct called *all, size_t count, const char *key) {
  for (size_t i = 0; i < count; i++)
    if (all[i].key && strcmp(all[i].key, key) == 0) return all[i].word;
  return NULL;
}

#define FIND(all, key) find(all, sizeof all / sizeof *all, key)

/* What a family's config.json calls a size of the model. */
static const char *find_size(const struct whole_keys *k, const char *key) {
  const struct called sizes[] = {{k->width, "width"},           {k->head_size, "head_size"},
                                 {k->vocabulary, "vocabulary"}, {k->positions, "max_positions"},
                                 {k->kv_heads, "kv_heads"},     {k->epsilon, "norm_eps"},
                                 {k->activation, "activation"}};
  return FIND(sizes, key);
}

/* And one that a stack has of its own. */
static const char *find_side_size(const struct whole_side_keys *k, const char *key) {
  const struct called sizes[] = {{k->layers, "layers"},
                                 {k->heads, "heads"},
                                 {k->forward_size, "feed_forward"}};
  return FIND(sizes, key);
}

/* Writes `"layers"`, or `"layers" in "decoder"`. */
static bool write_word(const char *word, const char *within, char out[DEFINITION_CALLED]) {
  if (!word) return false;
  snprintf(out, DEFINITION_CALLED, "\"%s\"%s%s%s", word, within ? " in \"" : "",
           within ? within : "", within ? "\"" : "");
  return true;
}

static bool write_size(const char *key, char out[DEFINITION_CALLED]) {
  for (size_t i = 0; i < whole_family_count(); i++) {
    const struct whole_keys *k = whole_family_at(i)->keys;
    if (!k) continue;
    if (write_word(find_size(k, key), NULL, out) ||
        write_word(find_side_size(&k->own, key), k->decoder.heads ? "encoder" : NULL, out) ||
        write_word(find_side_size(&k->decoder, key), "decoder", out))
      return true;
  }
  return false;
}

bool whole_called(const char *key, char out[DEFINITION_CALLED]) {
  return write_word(FIND(tokens, key), NULL, out) ||
         write_word(FIND(generating, key), "generate", out) || write_size(key, out);
}

bool whole_called_generating(const char *key, char out[DEFINITION_CALLED]) {
  return write_word(FIND(generating, key), NULL, out);
}
