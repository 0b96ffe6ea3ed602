/* pretokenizer: the steps of a pre-tokenizer, in the order in which they are done. */
#include "config/tokenizer/pretokenizer/pretokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "config/document/text.h"
#include "config/tokenizer/pretokenizer/pretokenizer_parts.h"

struct pretokenizer {
  struct pretokenizer_step *step;
  size_t count, room;
};

const char *const split_behavior_names[] = {"Removed",        "Isolated",   "MergedWithPrevious",
                                            "MergedWithNext", "Contiguous", NULL};

/* Cuts words off, each with the blank before it. */
static const char gpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/* --- steps --- */

/* A new step at the end, all zeros; what it is given when there is no memory belongs to none. */
static struct pretokenizer_step *add_step(struct pretokenizer *s, struct error *e) {
  if (s->count == s->room) {
    const size_t room = 2 * s->room + 1;
    struct pretokenizer_step *moved = realloc(s->step, room * sizeof *moved);
    if (!moved) {
      error_no_memory(e);
      return NULL;
    }
    s->step = moved;
    s->room = room;
  }
  struct pretokenizer_step *step = &s->step[s->count++];
  *step = (struct pretokenizer_step){0};
  return step;
}

static void add_chars(struct pretokenizer *s, enum pretokenizer_chars chars,
                      enum split_behavior behavior, struct error *e) {
  struct pretokenizer_step *step = add_step(s, e);
  if (step) pretokenizer_chars_init(step, chars, behavior);
}

static void add_change(struct pretokenizer *s,
                       void (*apply)(const struct pretokenizer_step *step, struct passage *p),
                       struct error *e) {
  struct pretokenizer_step *step = add_step(s, e);
  if (step) step->apply = apply;
}

static void add_pattern(struct pretokenizer *s, struct pattern *pattern,
                        enum split_behavior behavior, bool invert, struct error *e) {
  struct pretokenizer_step *step = pattern ? add_step(s, e) : NULL;
  if (!step) {
    pattern_free(pattern);
    return;
  }
  step->apply = pretokenizer_pattern_apply;
  step->pattern = pattern;
  step->behavior = behavior;
  step->invert = invert;
}

/* --- types --- */

static void read_byte_level(struct pretokenizer *s, const json_t *json, struct error *e) {
  member_flag(json, "trim_offsets", e); /* is the post-processor's */
  if (member_flag(json, "add_prefix_space", e)) add_change(s, pretokenizer_prefix_apply, e);
  const bool cuts = !json_object_get(json, "use_regex") || member_flag(json, "use_regex", e);
  if (cuts) add_pattern(s, pattern_of(gpt2, e), SPLIT_ISOLATED, false, e);
  add_change(s, pretokenizer_bytes_apply, e);
}

static void read_delimiter(struct pretokenizer *s, const json_t *json, struct error *e) {
  const struct member_text text = member_character(json, "delimiter", e);
  size_t length;
  struct pretokenizer_step *step = e->status ? NULL : add_step(s, e);
  if (!step) return;
  step->character = unicode_read(text.bytes, &length);
  pretokenizer_chars_init(step, SPLIT_ONE, SPLIT_REMOVED);
}

static void read_digits(struct pretokenizer *s, const json_t *json, struct error *e) {
  const bool each = member_flag(json, "individual_digits", e);
  add_chars(s, SPLIT_NUMBERS, each ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS, e);
}

static void read_length(struct pretokenizer *s, const json_t *json, struct error *e) {
  enum { USUAL = 5 };
  const bool said = json_object_get(json, "length");
  const size_t length = said ? member_count(json, "length", 1, PASSAGE_LONGEST, e) : USUAL;
  struct pretokenizer_step *step = add_step(s, e);
  if (!step) return;
  step->apply = pretokenizer_length_apply;
  step->length = length;
}

static void read_metaspace(struct pretokenizer *s, const json_t *json, struct error *e) {
  struct metaspace metaspace;
  struct pretokenizer_step *step = metaspace_read(&metaspace, json, e) ? NULL : add_step(s, e);
  if (!step) return;
  step->apply = pretokenizer_metaspace_apply;
  step->metaspace = metaspace;
  step = metaspace.split ? add_step(s, e) : NULL;
  if (!step) return;
  step->character = metaspace.character;
  pretokenizer_chars_init(step, SPLIT_ONE, SPLIT_MERGED_WITH_NEXT);
}

static enum split_behavior read_behavior(const json_t *json, struct error *e) {
  return (enum split_behavior)member_word(json, "behavior", split_behavior_names, e);
}

static void read_punctuation(struct pretokenizer *s, const json_t *json, struct error *e) {
  const bool said = json_object_get(json, "behavior");
  add_chars(s, SPLIT_PUNCTUATION, said ? read_behavior(json, e) : SPLIT_ISOLATED, e);
}

static void read_split(struct pretokenizer *s, const json_t *json, struct error *e) {
  const bool invert = member_flag(json, "invert", e);
  const enum split_behavior behavior = read_behavior(json, e);
  if (e->status) return;
  struct pattern *pattern = pattern_new(json_object_get(json, "pattern"), e);
  if (e->status == STATUS_CONFIG) text_before(e, "pattern: ");
  add_pattern(s, pattern, behavior, invert, e);
}

enum pretokenizer_type {
  TYPE_BERT,
  TYPE_BYTE_LEVEL,
  TYPE_DELIMITER,
  TYPE_DIGITS,
  TYPE_LENGTH,
  TYPE_METASPACE,
  TYPE_PUNCTUATION,
  TYPE_SEQUENCE,
  TYPE_SPLIT,
  TYPE_WHITESPACE,
  TYPE_WHITESPACE_SPLIT,
  TYPES
};

static const struct member_type types[TYPES] = {
    [TYPE_BERT] = {"BertPreTokenizer", ""},
    [TYPE_BYTE_LEVEL] = {"ByteLevel", "add_prefix_space trim_offsets use_regex "},
    [TYPE_DELIMITER] = {"CharDelimiterSplit", "delimiter "},
    [TYPE_DIGITS] = {"Digits", "individual_digits "},
    [TYPE_LENGTH] = {"FixedLength", "length "},
    [TYPE_METASPACE] = {"Metaspace", METASPACE_MEMBERS},
    [TYPE_PUNCTUATION] = {"Punctuation", "behavior "},
    [TYPE_SEQUENCE] = {"Sequence", "pretokenizers "},
    [TYPE_SPLIT] = {"Split", "pattern behavior invert "},
    [TYPE_WHITESPACE] = {"Whitespace", ""},
    [TYPE_WHITESPACE_SPLIT] = {"WhitespaceSplit", ""},
};

enum { DEEPEST = 32 }; /* sequences in one another */

static void read_part(struct pretokenizer *s, const json_t *json, size_t depth, struct error *e);

/* Sequences leave no trace: their steps are done one behind the other anyway. */
static void read_sequence(struct pretokenizer *s, const json_t *json, size_t depth,
                          struct error *e) {
  const json_t *list = member_list(json, "pretokenizers", e);
  if (depth == DEEPEST)
    error_set(e, STATUS_CONFIG, "more than %d sequences in one another", DEEPEST);
  for (size_t i = 0; i < json_array_size(list) && e->status == STATUS_OK; i++) {
    read_part(s, json_array_get(list, i), depth + 1, e);
    if (e->status == STATUS_CONFIG) text_before(e, "pretokenizers, %zu: ", i);
  }
}

static void read_part(struct pretokenizer *s, const json_t *json, size_t depth, struct error *e) {
  const enum pretokenizer_type type = (enum pretokenizer_type)member_type(json, types, TYPES, e);
  if (e->status) return;
  switch (type) {
  case TYPE_BERT:
    add_chars(s, SPLIT_BERT, SPLIT_ISOLATED, e);
    break;
  case TYPE_BYTE_LEVEL:
    read_byte_level(s, json, e);
    break;
  case TYPE_DELIMITER:
    read_delimiter(s, json, e);
    break;
  case TYPE_DIGITS:
    read_digits(s, json, e);
    break;
  case TYPE_LENGTH:
    read_length(s, json, e);
    break;
  case TYPE_METASPACE:
    read_metaspace(s, json, e);
    break;
  case TYPE_PUNCTUATION:
    read_punctuation(s, json, e);
    break;
  case TYPE_SEQUENCE:
    read_sequence(s, json, depth, e);
    break;
  case TYPE_SPLIT:
    read_split(s, json, e);
    break;
  case TYPE_WHITESPACE:
    add_chars(s, SPLIT_WORDS, SPLIT_CONTIGUOUS, e);
    break;
  case TYPE_WHITESPACE_SPLIT:
    add_chars(s, SPLIT_SPACES, SPLIT_REMOVED, e);
    break;
  case TYPES:
    break;
  }
  if (e->status == STATUS_CONFIG) text_before(e, "%s: ", types[type].name);
}

/* --- the whole --- */

struct pretokenizer *pretokenizer_new(const json_t *json, struct error *e) {
  struct pretokenizer *s = calloc(1, sizeof *s);
  if (!s)
    error_no_memory(e);
  else
    read_part(s, json, 0, e);
  if (e->status == STATUS_OK) return s;
  if (e->status == STATUS_CONFIG) text_plain(e);
  pretokenizer_free(s);
  return NULL;
}

void pretokenizer_free(struct pretokenizer *s) {
  if (!s) return;
  for (size_t i = 0; i < s->count; i++) pattern_free(s->step[i].pattern);
  free(s->step);
  free(s);
}

bool pretokenizer_writes_bytes(const struct pretokenizer *s) {
  return s->count > 0 && s->step[s->count - 1].apply == pretokenizer_bytes_apply;
}

void pretokenizer_leave_bytes(struct pretokenizer *s) {
  must(pretokenizer_writes_bytes(s));
  s->count--;
}

enum status pretokenizer_apply(const struct pretokenizer *s, struct passage *p) {
  for (size_t i = 0; i < s->count && p->e->status == STATUS_OK; i++) {
    p->ask_at = 0;
    s->step[i].apply(&s->step[i], p);
  }
  return p->e->status;
}
