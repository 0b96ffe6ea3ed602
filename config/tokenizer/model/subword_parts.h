/* subword_parts: what the kinds of lexicons share. Private to subword_model. */
#ifndef CONFIG_SUBWORD_PARTS_H
#define CONFIG_SUBWORD_PARTS_H

#include "config/document/member.h"
#include "config/tokenizer/model/subword.h"
#include "config/tokenizer/model/trie.h"

enum {
  SUBWORD_AFFIX_MAX = 32, /* bytes of what stands before or behind pieces of a word */
  SUBWORD_STEPS = 1 << 14 /* of long words, between questions whether they are still wanted */
};

struct subword_affix {
  char bytes[SUBWORD_AFFIX_MAX];
  size_t length;
};

/* What two neighbours become. */
struct subword_merge {
  int32_t left, right; /* -1: there is none in this place */
  uint32_t rank;
  int32_t id;
};

struct subword_kind;

struct subword_model {
  const struct subword_kind *kind;
  struct vocabulary vocabulary;
  bool raw;
  int32_t unknown;   /* the token of what the pieces lack; -1: none */
  bool fallback;     /* that is spelled by bytes: */
  int32_t byte[256]; /* the tokens "<0x00>" to "<0xFF>"; -1: none */

  /* WordPiece and Unigram */
  struct trie trie;
  struct subword_affix inside; /* of pieces that do not begin a word: "##" */
  int32_t inside_node;         /* of the trie, behind that; -1: no piece begins so */
  size_t longest_word;         /* characters; what is longer is unknown */
  double *score;               /* [vocabulary.size] */
  double unknown_score;

  /* BPE, which has `inside`, too */
  struct subword_affix last;   /* of pieces that end a word: "</w>" */
  bool fuses;                  /* unknown neighbours are one token */
  bool takes_words;            /* a word that is a piece is that one, whatever its merges */
  struct subword_merge *merge; /* [merges] by the hash of both */
  size_t merges;               /* a power of two */
  int32_t symbol[4][256];      /* of a byte, or of an ASCII character: at the beginning (bit 0) or
                                  the end (bit 1) of a word, or both; -1: none */
  uint64_t *whole;             /* a bit for each id: a word of these bytes becomes this token */
};

struct subword_kind {
  struct member_type type;
  enum status (*read)(struct subword_model *l, const json_t *json, struct error *e);
  enum status (*cut)(const struct subword_model *l, const char *word, size_t length, size_t at,
                     struct subword_work *w);
};

extern const struct subword_kind subword_wordpiece, subword_bpe, subword_unigram, subword_wordlevel;

/* Reads "vocab" as an object of pieces with their ids. */
enum status subword_read_object(struct subword_model *l, const json_t *json, struct error *e);

/* Reads "unk_token": null or absent is none, if `may_lack`. */
enum status subword_read_unknown(struct subword_model *l, const json_t *json, bool may_lack,
                                 struct error *e);

/* Reads an affix that may be absent or null: none. */
enum status subword_read_affix(const json_t *json, const char *key, struct subword_affix *out,
                               struct error *e);

/* Finds the tokens of bytes. */
void subword_find_bytes(struct subword_model *l);

/* The tokens that spell what the pieces lack are appended, each as if it came from all of it;
 * false: not all of its bytes have one. */
bool subword_byte_fallback(const struct subword_model *l, const char *text, size_t length,
                           size_t at, struct subword_work *w);

/* Makes the trie of all pieces that can be found. */
enum status subword_make_trie(struct subword_model *l, struct error *e);

/* Scratch of at least so many bytes. NULL without memory. */
void *subword_scratch(struct subword_work *w, size_t bytes);

static inline void subword_append(struct subword_work *w, int32_t id, size_t begin, size_t end) {
  tokens_add(w->out, (struct token){.id = id, .begin = (uint32_t)begin, .end = (uint32_t)end});
}

/* So many steps have been done. Are the words not wanted any more, as the list's error says then?
 * Of NULL they are. */
static inline bool subword_ends(struct subword_work *w, size_t steps) {
  if (!w) return false;
  w->steps += steps;
  if (w->steps < SUBWORD_STEPS) return false;
  w->steps = 0;
  return patience_ends(w->patience, w->out->e);
}

/* Bytes of the character that begins here. */
static inline size_t subword_character(const char *text) {
  const unsigned char c = (unsigned char)*text;
  return c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

/* The text that has no token is at byte `at` of the whole. */
enum status subword_refuse(struct subword_work *w, const char *text, size_t length, size_t at);

/* --- subword_merge --- */

/* Reads "merges". The vocabulary has ended. */
enum status subword_read_merges(struct subword_model *l, const json_t *json, struct error *e);

/* What two neighbours become; NULL: nothing. */
const struct subword_merge *subword_find_merge(const struct subword_model *l, int32_t left,
                                               int32_t right);

/* A part of a word: a token, and how many bytes of the word it has. */
struct subword_symbol {
  int32_t id;
  uint32_t length;
};

/* Bytes of scratch that the merging of so many symbols needs, behind these themselves. */
size_t subword_merge_scratch(size_t count);

/* Merges neighbours, the pair of the lowest rank first, of equal ones the first, until none is left
 * that becomes anything, or who waits for the work has ceased to. Returns how many symbols are
 * left. `w` may be NULL. */
size_t subword_merge_all(const struct subword_model *l, struct subword_symbol *symbol, size_t count,
                         void *scratch, struct subword_work *w);

#endif
