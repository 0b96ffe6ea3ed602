/* passage: a text on its way to tokens: its bytes as they are by now, which bytes of the original
 * each of them came from, and the pieces that it is cut into.
 *
 * A step that changes the text reads the current bytes, appends others to a second room, and then
 * commits that. A step that cuts reads the current pieces, adds new ones, and commits those. All
 * text is well-formed UTF-8.
 *
 * It belongs to one thread. Its memory is an arena's, and serves one text after the other. Failures
 * are kept in `e`: without memory, what is appended is lost, and who commits it tests `e`. */
#ifndef CONFIG_PASSAGE_H
#define CONFIG_PASSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/tokenizer/pattern/pattern.h"
#include "core/base/arena.h"
#include "core/base/patience.h"

enum { PASSAGE_LONGEST = INT32_MAX }; /* bytes of an original, and of a changed text */

/* The bytes of the original that a byte came from: whole characters. */
struct passage_place {
  uint32_t from, to;
};

struct passage_bytes {
  const char *bytes;
  size_t length;
  size_t leading; /* how many bytes came from the first character of the text, as it began */
  const struct passage_place *place; /* [length] if the text is traced and has changed; neither end
                                        decreases from byte to byte */
};

struct passage_room {
  char *bytes;                 /* [room] */
  struct passage_place *place; /* [places] */
  size_t room, places;
};

struct passage_piece {
  uint32_t begin, end; /* bytes */
};

struct passage_pieces {
  struct passage_piece *piece;
  size_t count, room;
};

struct passage {
  struct passage_bytes now; /* borrowed, or in the room that is not appended to */
  struct passage_room room[2];
  unsigned next;                             /* the room that is appended to, */
  size_t length, leading;                    /* and its bytes, as in passage_bytes */
  struct passage_pieces pieces, next_pieces; /* the current ones, and those being added */
  size_t at;                                 /* byte of the original where this text begins */
  bool whole;    /* whether nothing has changed: the bytes are the original's at their own places */
  size_t most;   /* bytes that the text may have: PASSAGE_LONGEST, unless the owner sets less */
  bool traced;   /* whether places in the original are recorded */
  void *scratch; /* [scratch_room] bytes of the current step */
  size_t scratch_room;
  struct pattern_watch watch; /* of all searches in the text */
  struct patience *patience;  /* of the caller; or NULL */
  size_t ask_at;              /* the place in the text where it is asked next; 0 before a step */
  struct arena *arena;
  struct error *e;
};

/* `e` holds no failure. */
void passage_init(struct passage *p, struct arena *a, struct error *e);

/* Becomes this text in one piece: it begins at byte `at` of the original, and must outlive the
 * passage. Returns the status of `e`, as every function here that returns a status. */
enum status passage_begin(struct passage *p, const char *text, size_t length, size_t at,
                          bool traced);

/* Becomes a stretch of another passage, which must not change meanwhile. */
enum status passage_begin_within(struct passage *p, const struct passage *of,
                                 const struct passage_piece *stretch);

/* Each loop over a text asks at the places that it reaches whether it must end: a failure, or the
 * caller's patience has ended, as `e` says then. */
bool passage_check_patience(struct passage *p, size_t at);
static inline bool passage_is_over(struct passage *p, size_t at) {
  return at >= p->ask_at && passage_check_patience(p, at);
}

/* --- another text --- */

/* Appends bytes that came from the bytes from `from` to before `to` of the current text. Where
 * these are none (an insertion), the origin is the empty stretch at their beginning. */
void passage_append(struct passage *p, const char *bytes, size_t length, size_t from, size_t to);

/* Appends the current bytes from `from` to before `to`. Returns the copy, in which the caller may
 * replace bytes one by one; NULL: no bytes, or no memory. */
char *passage_copy(struct passage *p, size_t from, size_t to);

/* Drops these bytes from the end of the appended ones; false: they end otherwise. */
bool passage_drop_end(struct passage *p, const char *bytes, size_t length);

/* Makes the appended bytes the text, in one piece if no pieces were added. */
enum status passage_commit(struct passage *p);

/* --- other pieces --- */

/* Adds a piece: of the appended bytes if there are any, else of the current text. An empty one is
 * ignored. */
void passage_add_piece(struct passage *p, size_t begin, size_t end);

/* Makes the added pieces the current ones. */
enum status passage_commit_pieces(struct passage *p);

/* --- memory of a step --- */

/* At least `bytes` bytes, aligned for anything, with what the step wrote to them before. The next
 * step gets the same memory. NULL: no memory. */
void *passage_scratch(struct passage *p, size_t bytes);

/* --- origins --- */

/* The bytes of the original, whole characters, that the bytes from `begin` to before `end` of a
 * traced text came from. */
void passage_origin(const struct passage *p, size_t begin, size_t end, uint32_t *from,
                    uint32_t *to);

/* Whether the byte at `at` came from the first character of the original; also if not traced. */
static inline bool passage_is_first(const struct passage *p, size_t at) {
  return p->at == 0 && at < p->now.leading;
}

#endif
