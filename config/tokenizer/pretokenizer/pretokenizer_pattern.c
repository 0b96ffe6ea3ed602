/* pretokenizer_pattern: a step that cuts where a pattern is found. */
#include "config/tokenizer/pretokenizer/pretokenizer_parts.h"

/* What becomes of a match, and of what is between two. */
struct split_ways {
  enum split_class match, rest;
};

static const struct split_ways ways[] = {
    [SPLIT_REMOVED] = {SPLIT_DROP, SPLIT_ALONE},
    [SPLIT_ISOLATED] = {SPLIT_ALONE, SPLIT_ALONE},
    [SPLIT_MERGED_WITH_PREVIOUS] = {SPLIT_END, SPLIT_BEGIN},
    [SPLIT_MERGED_WITH_NEXT] = {SPLIT_BEGIN, SPLIT_END},
    [SPLIT_CONTIGUOUS] = {SPLIT_OTHER_RUN, SPLIT_RUN},
};

/* Where a step is inverted, a match is what is otherwise between two. */
static struct split_ways ways_of(const struct pretokenizer_step *s) {
  const struct split_ways w = ways[s->behavior];
  return s->invert ? (struct split_ways){w.rest, w.match} : w;
}

static void cut_piece(struct split_ways w, struct splitter *cutter, struct pattern_search *search,
                      struct passage_piece piece) {
  struct passage *p = cutter->p;
  const size_t length = piece.end - piece.begin;
  size_t at = 0;
  pattern_search_turn(search, p->now.bytes + piece.begin, length);
  while (pattern_search_next(search, p->e) && !passage_is_over(p, piece.begin + search->end)) {
    if (at < search->begin)
      splitter_feed(cutter, piece.begin + at, piece.begin + search->begin, w.rest);
    splitter_feed(cutter, piece.begin + search->begin, piece.begin + search->end, w.match);
    at = search->end;
  }
  if (at < length) splitter_feed(cutter, piece.begin + at, piece.end, w.rest);
  splitter_close(cutter);
}

void pretokenizer_pattern_apply(const struct pretokenizer_step *s, struct passage *p) {
  const struct split_ways w = ways_of(s);
  struct splitter cutter = {.p = p};
  struct pattern_search search;
  if (pattern_search_begin(&search, s->pattern, &p->watch, NULL, 0, p->e)) return;
  for (size_t i = 0; i < p->pieces.count && p->e->status == STATUS_OK; i++)
    cut_piece(w, &cutter, &search, p->pieces.piece[i]);
  pattern_search_end(&search);
  passage_commit_pieces(p);
}
