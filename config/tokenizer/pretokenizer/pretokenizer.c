/* pretokenizer: the steps of a pre-tokenizer, in the order in which they are applied. */
#include "config/tokenizer/pretokenizer/pretokenizer.h"

#include <stdlib.h>

#include "config/document/part.h"
#include "config/document/text.h"
#include "config/tokenizer/pretokenizer/pretokenizer_parts.h"

struct pretokenizer {
  struct part_list steps; /* of pretokenizer_step */
};

/* GPT-2's expression: words, numbers and punctuation, each with the blank before it. */
static const char gpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/* --- steps --- */

/* A new step at the end; NULL: no memory, or a failure before. */
static struct pretokenizer_step *
add_step(struct pretokenizer *p,
         void (*apply)(const struct pretokenizer_step *step, struct passage *p), struct error *e) {
  struct pretokenizer_step *step =
      e->status ? NULL : part_list_add(&p->steps, sizeof(struct pretokenizer_step), e);
  if (step) step->apply = apply;
  return step;
}

static void add_chars(struct pretokenizer *p, enum pretokenizer_chars chars, uint32_t character,
                      enum split_behavior behavior, struct error *e) {
  struct pretokenizer_step *step = add_step(p, pretokenizer_chars_apply, e);
  if (step) pretokenizer_chars_init(step, chars, character, behavior);
}

/* The step owns the pattern, which may be NULL after a failure. */
static void add_pattern(struct pretokenizer *p, struct pattern *pattern,
                        enum split_behavior behavior, bool invert, struct error *e) {
  struct pretokenizer_step *step = add_step(p, pretokenizer_pattern_apply, e);
  if (!step) {
    pattern_free(pattern);
    return;
  }
  step->pattern = pattern;
  step->behavior = behavior;
  step->invert = invert;
}

/* --- types --- */

static void read_bert(void *to, const json_t *json, struct error *e) {
  (void)json;
  add_chars(to, SPLIT_BERT, 0, SPLIT_ISOLATED, e);
}

static void read_byte_level(void *to, const json_t *json, struct error *e) {
  member_flag(json, "trim_offsets", e); /* is the post-processor's */
  if (member_flag(json, "add_prefix_space", e)) add_step(to, pretokenizer_prefix_apply, e);
  const bool cuts = !json_object_get(json, "use_regex") || member_flag(json, "use_regex", e);
  if (cuts) add_pattern(to, pattern_of(gpt2, e), SPLIT_ISOLATED, false, e);
  add_step(to, pretokenizer_bytes_apply, e);
}

static void read_delimiter(void *to, const json_t *json, struct error *e) {
  const struct member_text text = member_character(json, "delimiter", e);
  size_t length;
  if (e->status == STATUS_OK)
    add_chars(to, SPLIT_ONE, unicode_read(text.bytes, &length), SPLIT_REMOVED, e);
}

static void read_digits(void *to, const json_t *json, struct error *e) {
  const bool each = member_flag(json, "individual_digits", e);
  add_chars(to, SPLIT_NUMBERS, 0, each ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS, e);
}

static void read_length(void *to, const json_t *json, struct error *e) {
  enum { USUAL = 5 };
  const bool given = json_object_get(json, "length");
  const size_t length = given ? member_count(json, "length", 1, PASSAGE_LONGEST, e) : USUAL;
  struct pretokenizer_step *step = add_step(to, pretokenizer_length_apply, e);
  if (step) step->length = length;
}

static void read_metaspace(void *to, const json_t *json, struct error *e) {
  struct metaspace metaspace;
  metaspace_read(&metaspace, json, e);
  struct pretokenizer_step *step = add_step(to, pretokenizer_metaspace_apply, e);
  if (!step) return;
  step->metaspace = metaspace;
  if (metaspace.split) add_chars(to, SPLIT_ONE, metaspace.character, SPLIT_MERGED_WITH_NEXT, e);
}

static enum split_behavior read_behavior(const json_t *json, struct error *e) {
  static const char *const names[] = {"Removed",        "Isolated",   "MergedWithPrevious",
                                      "MergedWithNext", "Contiguous", NULL};
  return (enum split_behavior)member_word(json, "behavior", names, e);
}

static void read_punctuation(void *to, const json_t *json, struct error *e) {
  const bool given = json_object_get(json, "behavior");
  add_chars(to, SPLIT_PUNCTUATION, 0, given ? read_behavior(json, e) : SPLIT_ISOLATED, e);
}

static void read_split(void *to, const json_t *json, struct error *e) {
  const bool invert = member_flag(json, "invert", e);
  const enum split_behavior behavior = read_behavior(json, e);
  if (e->status) return;
  struct pattern *pattern = pattern_new(json_object_get(json, "pattern"), e);
  if (e->status == STATUS_CONFIG) text_before(e, "pattern: ");
  add_pattern(to, pattern, behavior, invert, e);
}

static void read_whitespace(void *to, const json_t *json, struct error *e) {
  (void)json;
  add_chars(to, SPLIT_WORDS, 0, SPLIT_CONTIGUOUS, e);
}

static void read_whitespace_split(void *to, const json_t *json, struct error *e) {
  (void)json;
  add_chars(to, SPLIT_SPACES, 0, SPLIT_REMOVED, e);
}

static const struct part_kind kinds[] = {
    {{"BertPreTokenizer", ""}, read_bert},
    {{"ByteLevel", "add_prefix_space trim_offsets use_regex "}, read_byte_level},
    {{"CharDelimiterSplit", "delimiter "}, read_delimiter},
    {{"Digits", "individual_digits "}, read_digits},
    {{"FixedLength", "length "}, read_length},
    {{"Metaspace", METASPACE_MEMBERS}, read_metaspace},
    {{"Punctuation", "behavior "}, read_punctuation},
    {{"Sequence", "pretokenizers "}, NULL},
    {{"Split", "pattern behavior invert "}, read_split},
    {{"Whitespace", ""}, read_whitespace},
    {{"WhitespaceSplit", ""}, read_whitespace_split},
};
static const struct part_kinds pretokenizers = {kinds, sizeof kinds / sizeof *kinds,
                                                "pretokenizers", false};

struct pretokenizer *pretokenizer_new(const json_t *json, struct error *e) {
  struct pretokenizer *p = calloc(1, sizeof *p);
  if (!p)
    error_no_memory(e);
  else if (part_read(&pretokenizers, json, p, e) == STATUS_OK)
    return p;
  if (e->status == STATUS_CONFIG) text_plain(e);
  pretokenizer_free(p);
  return NULL;
}

void pretokenizer_free(struct pretokenizer *p) {
  if (!p) return;
  const struct pretokenizer_step *step = p->steps.item;
  for (size_t i = 0; i < p->steps.count; i++) pattern_free(step[i].pattern);
  free(p->steps.item);
  free(p);
}

bool pretokenizer_writes_bytes(const struct pretokenizer *p) {
  const struct pretokenizer_step *step = p->steps.item;
  return p->steps.count > 0 && step[p->steps.count - 1].apply == pretokenizer_bytes_apply;
}

void pretokenizer_leave_bytes(struct pretokenizer *p) {
  must(pretokenizer_writes_bytes(p));
  p->steps.count--;
}

enum status pretokenizer_apply(const struct pretokenizer *p, struct passage *passage) {
  const struct pretokenizer_step *step = p->steps.item;
  for (size_t i = 0; i < p->steps.count && passage->e->status == STATUS_OK; i++) {
    passage->ask_at = 0;
    step[i].apply(&step[i], passage);
  }
  return passage->e->status;
}
