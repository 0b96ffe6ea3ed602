/* normalizer: the steps of a normalizer, in the order in which they are applied. */
#include "config/tokenizer/normalizer/normalizer.h"

#include <stdlib.h>

#include "config/document/text.h"
#include "config/tokenizer/normalizer/normalizer_parts.h"

static const char bert[] = "clean_text handle_chinese_chars strip_accents lowercase ";

static const struct part_kind kinds[] = {
    {{"BertNormalizer", bert}, normalizer_read_bert},
    {{"Bert", bert}, normalizer_read_bert}, /* in older files */
    {{"ByteLevel", ""}, normalizer_read_byte_level},
    {{"Lowercase", ""}, normalizer_read_lowercase},
    {{"NFC", ""}, normalizer_read_form},
    {{"NFD", ""}, normalizer_read_form},
    {{"NFKC", ""}, normalizer_read_form},
    {{"NFKD", ""}, normalizer_read_form},
    {{"Nmt", ""}, normalizer_read_nmt},
    {{"Precompiled", "precompiled_charsmap "}, normalizer_read_charsmap},
    {{"Prepend", "prepend "}, normalizer_read_prepend},
    {{"Replace", "pattern content "}, normalizer_read_replace},
    {{"Strip", "strip_left strip_right "}, normalizer_read_strip},
    {{"StripAccents", ""}, normalizer_read_strip_accents},
    {{"Sequence", "normalizers "}, NULL},
};
static const struct part_kinds normalizers = {kinds, sizeof kinds / sizeof *kinds, "normalizers",
                                              true};

struct normalizer *normalizer_new(const json_t *json, struct error *e) {
  struct normalizer *n = calloc(1, sizeof *n);
  if (!n)
    error_no_memory(e);
  else if (!json || part_read(&normalizers, json, n, e) == STATUS_OK)
    return n;
  if (e->status == STATUS_CONFIG) text_plain(e);
  normalizer_free(n);
  return NULL;
}

void normalizer_free(struct normalizer *n) {
  if (!n) return;
  const struct normalizer_step *step = n->steps.item;
  for (size_t i = 0; i < n->steps.count; i++) step[i].release(step[i].settings);
  free(n->steps.item);
  free(n);
}

enum status normalizer_apply(const struct normalizer *n, struct passage *p) {
  const struct normalizer_step *step = n->steps.item;
  for (size_t i = 0; i < n->steps.count && p->now.length > 0 && p->e->status == STATUS_OK; i++) {
    p->ask_at = 0;
    step[i].apply(step[i].settings, p);
  }
  return p->e->status;
}
