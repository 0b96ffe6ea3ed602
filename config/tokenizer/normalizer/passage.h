/* passage: a text on its way to tokens: its bytes as they are by now, which bytes of the original
 * each of them came from, and the pieces that it is cut into.
 *
 * A step that changes the text reads the bytes that there are, puts others down one behind the
 * other, and then has them take the place of the first ones. A step that cuts goes through the
 * pieces, and likewise puts down those that take their place. All text is UTF-8, well-formed.
 *
 * It belongs to one thread. Its memory is an arena's, and serves one text after the other; where
 * there is none left, `e` says so, and what is put down then is lost: whoever takes it asks. */
#ifndef CONFIG_PASSAGE_H
#define CONFIG_PASSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/tokenizer/pattern/pattern.h"
#include "core/base/arena.h"
#include "core/base/patience.h"

enum { PASSAGE_LONGEST = INT32_MAX }; /* bytes of an original, and of what becomes of it */

/* Which bytes of the original a byte came from: whole characters. */
struct passage_place {
  uint32_t from, to;
};

struct passage_bytes {
  const char *bytes;
  size_t length;
  size_t leading; /* bytes that came from the first character of the text, as it was at first */
  const struct passage_place *place; /* [length] of a traced text that has changed; neither end
                                        decreases from byte to byte */
};

/* Memory for bytes, and for the places of so many of them. */
struct passage_room {
  char *bytes;
  struct passage_place *place;
  size_t room, places;
};

struct passage_piece {
  uint32_t begin, end; /* of the bytes */
};

struct passage_pieces {
  struct passage_piece *piece;
  size_t count, room;
};

struct passage {
  struct passage_bytes now; /* borrowed, or in the room that is not put down in */
  struct passage_room room[2];
  unsigned next;                             /* the room in which is put down, */
  size_t length, leading;                    /* and how many bytes, as of passage_bytes */
  struct passage_pieces pieces, next_pieces; /* of `now`; of what is being put down */
  size_t at;                                 /* of the original, where this text begins */
  bool whole;  /* nothing has changed: the bytes are the original's, at their own places */
  size_t most; /* bytes that it may become: PASSAGE_LONGEST, if whoever made it does not say less */
  bool traced; /* the places in the original are wanted */
  void *lent;  /* to the step that goes on */
  size_t lent_room;
  struct pattern_watch watch; /* of all searches in the texts that it becomes */
  struct patience *patience;  /* of who waits for it; or NULL */
  size_t ask_at;              /* the place in the text at which is asked next; 0 before a step */
  struct arena *arena;
  struct error *e;
};

/* `e` holds no failure. */
void passage_init(struct passage *p, struct arena *a, struct error *e);

/* Becomes this text, which outlives it, a part of the original from byte `at` on, in one piece. */
enum status passage_begin(struct passage *p, const char *text, size_t length, size_t at,
                          bool traced);

/* Becomes a stretch of another passage, of which `stretch` is a part that stays as it is. */
enum status passage_begin_within(struct passage *p, const struct passage *of,
                                 const struct passage_piece *stretch);

/* Each loop over a text asks this at the places that it comes to: is there no memory, or does
 * nobody wait any more, as `e` says then? The loop ends. */
bool passage_check_patience(struct passage *p, size_t at);
static inline bool passage_is_over(struct passage *p, size_t at) {
  return at >= p->ask_at && passage_check_patience(p, at);
}

/* --- another text --- */

/* Puts down bytes that came from bytes `from` to before `to` of the text as it is. Of none (a text
 * that is put between others) it is where those begin: an empty stretch. */
void passage_append(struct passage *p, const char *bytes, size_t length, size_t from, size_t to);

/* Puts down the bytes themselves from `from` to before `to`. Returns them, for who puts as many
 * others in their places; NULL: there are none, or there is no memory. */
char *passage_copy(struct passage *p, size_t from, size_t to);

/* What was put down is the text from now on, in one piece if none were put down. */
enum status passage_commit(struct passage *p);

/* --- other pieces --- */

/* Puts down a piece: of what has been put down if anything was, else of the text as it is. An empty
 * one is left out. */
void passage_add_piece(struct passage *p, size_t begin, size_t end);

/* The pieces that were put down take the place of those that there are. */
enum status passage_commit_pieces(struct passage *p);

/* --- memory of a step --- */

/* At least so many bytes, aligned for anything, with what was written to those lent before; the
 * next step has the same. NULL: no memory. */
void *passage_scratch(struct passage *p, size_t bytes);

/* --- where it came from --- */

/* The bytes of the original that the bytes from `begin` to before `end` came from, of a traced
 * text; whole characters. */
void passage_origin(const struct passage *p, size_t begin, size_t end, uint32_t *from,
                    uint32_t *to);

/* Did the byte at `at` come from the first character of the original? Of any text. */
static inline bool passage_is_first(const struct passage *p, size_t at) {
  return p->at == 0 && at < p->now.leading;
}

#endif
