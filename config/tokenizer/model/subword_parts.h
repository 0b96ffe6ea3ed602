/* subword_parts: what the kinds of subword models share. Private to subword. */
#ifndef CONFIG_SUBWORD_PARTS_H
#define CONFIG_SUBWORD_PARTS_H

#include "config/document/member.h"
#include "config/tokenizer/model/subword.h"
#include "config/tokenizer/model/trie.h"
#include "config/tokenizer/sentencepiece/sentencepiece.h"

enum {
  SUBWORD_AFFIX_MAX = 32, /* bytes of an affix */
  SUBWORD_STEPS = 1 << 14 /* of long words, between questions to the caller's patience */
};

struct subword_affix {
  char bytes[SUBWORD_AFFIX_MAX];
  size_t length;
};

/* Two neighbors, and the piece that they become. */
struct subword_merge {
  int32_t left, right; /* left -1: an empty slot */
  uint32_t rank;
  int32_t id;
};

struct subword_kind {
  struct member_type type;
  enum status (*read)(struct subword_model *m, const json_t *json, struct error *e);
  enum status (*tokenize)(const struct subword_model *m, const char *word, size_t length, size_t at,
                          struct subword_work *w);
};

struct subword_model {
  const struct subword_kind *kind;
  struct vocabulary vocabulary;
  bool raw;
  int32_t unknown;   /* token of what the pieces lack; -1: none */
  bool fallback;     /* whether that is written by tokens of bytes: */
  int32_t byte[256]; /* tokens "<0x00>" to "<0xFF>"; -1: none */

  /* WordPiece and Unigram */
  struct trie trie;
  struct subword_affix inside; /* of pieces that do not begin a word: "##" */
  int32_t inside_node;         /* of the trie, after that affix; -1: no piece begins with it */
  size_t longest_word;         /* characters; a longer word is unknown */
  double *score;               /* [vocabulary.size] */
  double unknown_score;

  /* BPE, which has `inside`, too */
  struct subword_affix last;   /* of pieces that end a word: "</w>" */
  bool fuses;                  /* whether unknown neighbors are one token */
  bool takes_words;            /* whether a word that is a piece is that one, whatever its merges */
  struct subword_merge *merge; /* [merges] by the hash of both */
  size_t merges;               /* a power of two */
  int32_t symbol[4][256];      /* tokens of a byte, or an ASCII character: at the beginning (bit 0)
                                  or the end (bit 1) of a word, or both; -1: none */
  uint64_t *whole;             /* a bit for each id: whether a word of these bytes is this token */

  /* A model of sentencepiece, whose pieces have places besides their ids: the trie, the merges and
   * `whole` have places. */
  struct subword_places *places; /* NULL: it is of another kind */
};

/* A node of a trie (trie.h) with the score of the piece that ends there. */
struct subword_node {
  int32_t base, check;
  int32_t place; /* -1: none */
  float score;
};

/* The pieces of a model of sentencepiece by their places in its file; after them come, of a BPE,
 * the characters that occur in pieces but are none, which are unknown. */
struct subword_places {
  int32_t *id;  /* [count] */
  size_t count; /* pieces */
  /* Unigram */
  double *score;             /* [count] */
  struct subword_node *node; /* [nodes] the trie of the pieces */
  size_t nodes;
  float unknown_score;
  /* BPE */
  struct vocabulary found; /* what a word's parts can be, by place */
  struct trie user;        /* texts that are always one token: their places */
  bool has_user;
  bool stops[256];              /* whether a word may end before this byte */
  bool cuts_before, cuts_after; /* whether words end there: before the mark of a blank that comes
                                   after another character; between it and another after it */
  int32_t character[256];       /* place of an ASCII character; -1: none */
};

/* A word of sentencepiece that is being cut. */
struct subword_run {
  const struct subword_model *m;
  struct subword_work *w;
  const char *word;
  size_t at;        /* where the word begins in its text */
  bool was_unknown; /* whether the last token is unknown */
};

/* Appends the token of a place, or of a negative one, which is unknown. Unknown neighbors are one
 * token; with byte fallback they are the tokens of their bytes. */
void subword_append_place(struct subword_run *r, int32_t place, size_t begin, size_t end);

extern const struct subword_kind subword_wordpiece, subword_bpe, subword_unigram;
extern const struct subword_kind subword_sentence_bpe, subword_sentence_unigram;

/* Makes what a BPE of sentencepiece needs besides the ids. */
enum status subword_sentence_merges(struct subword_model *m, const struct sentencepiece *s,
                                    struct error *e);

/* The best way to a place in a text: its last piece. */
struct subword_way {
  double sum;    /* of scores */
  uint32_t from; /* where that piece begins; SUBWORD_NOWHERE: there is no way yet */
  int32_t id;    /* or its place */
};
#define SUBWORD_NOWHERE UINT32_MAX

/* Ways to all places of a text, none of which is known but the one to its begin; NULL: no memory.
 */
struct subword_way *subword_ways_begin(struct subword_work *w, size_t length);

/* Lists the ends of the pieces of the best way to the end, the last one first, and returns how many
 * there are. */
size_t subword_ways_end(struct subword_way *way, size_t length, uint32_t **end);

/* Reads "vocab", an object of pieces with their ids. */
enum status subword_read_object(struct subword_model *m, const json_t *json, struct error *e);

/* Reads "unk_token"; null or absent means none, if `may_lack`. */
enum status subword_read_unknown(struct subword_model *m, const json_t *json, bool may_lack,
                                 struct error *e);

/* Reads an affix; null or absent means none. */
enum status subword_read_affix(const json_t *json, const char *key, struct subword_affix *out,
                               struct error *e);

/* Finds the tokens of bytes. */
void subword_find_bytes(struct subword_model *m);

/* Appends the tokens of a text's bytes, each as if it came from the whole text; false: not all of
 * the bytes have one, and none is appended. */
bool subword_byte_fallback(const struct subword_model *m, const char *text, size_t length,
                           size_t at, struct subword_work *w);

/* Makes the trie of all pieces that can be found. */
enum status subword_make_trie(struct subword_model *m, struct error *e);

/* At least `bytes` bytes of scratch; NULL: no memory. */
void *subword_scratch(struct subword_work *w, size_t bytes);

static inline void subword_append(struct subword_work *w, int32_t id, size_t begin, size_t end) {
  tokens_add(w->out, (struct token){.id = id, .begin = (uint32_t)begin, .end = (uint32_t)end});
}

/* Counts steps; true: the caller's patience has ended, as the list's error says then. `w` may be
 * NULL: nobody waits. */
static inline bool subword_is_over(struct subword_work *w, size_t steps) {
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

/* Rejects a text without a token, at byte `at` of the whole. */
enum status subword_refuse(struct subword_work *w, const char *text, size_t length, size_t at);

/* --- subword_merge --- */

/* Reads "merges". The vocabulary must be complete. */
enum status subword_read_merges(struct subword_model *m, const json_t *json, struct error *e);

/* Makes room for as many merges; then each is added. Of equal pairs the last one counts. */
enum status subword_make_merges(struct subword_model *m, size_t count, struct error *e);
void subword_add_merge(struct subword_model *m, struct subword_merge merge);

/* A part of a word: a token, and how many bytes of the word it has. */
struct subword_symbol {
  int32_t id;
  uint32_t length;
};

/* Bytes of scratch, besides the symbols, for merging `count` symbols. */
size_t subword_merge_scratch(size_t count);

/* Merges neighbors, the pair of the lowest rank first, of equal ones the first, until no pair can
 * be merged or the caller's patience has ended. Returns how many symbols are left. `w` may be NULL.
 */
size_t subword_merge_all(const struct subword_model *m, struct subword_symbol *symbol, size_t count,
                         void *scratch, struct subword_work *w);

#endif
