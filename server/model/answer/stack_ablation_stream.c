/* stack_ablation_stream: which event comes next. */
#include "server/model/answer/stack_ablation_stream.h"

#include <string.h>

#include "core/base/size.h"
#include "server/model/answer/stack_ablation_answer.h"
#include "server/model/answer/stack_speech.h"
#include "server/model/answer/stack_stream.h"
#include "server/number/number.h"

enum {
  EVENT_ROOM = 96 + STACK_ABLATION_NAME_ROOM + NUMBER_WRITE_MARGIN, /* of a head */
  HELD_MOST = STACK_PROBLEM_MOST + STACK_AROUND_PROBLEM             /* of any */
};

enum status stack_ablation_stream_init(struct stack_ablation_stream *s,
                                       const struct stack_request *of, const struct answer *answer,
                                       struct arena *a, struct error *e) {
  *s = (struct stack_ablation_stream){.of = of,
                                      .answer = answer,
                                      .held = arena_alloc(a, HELD_MOST, 1, e)};
  return e->status;
}

static size_t count_measured(const struct stack_ablation_stream *s) {
  return atomic_load_explicit(&s->of->ablation.done, memory_order_acquire);
}

bool stack_ablation_stream_has_begun(const struct stack_ablation_stream *s) {
  return count_measured(s) > 0;
}

/* --- the parts --- */

static char *write_head(const struct stack_ablation_stream *s, const struct stack_cut *cut,
                        char *out) {
  out = answer_write_text(out, "data: {\"attention\":");
  out = stack_ablation_write_name(s->of, cut, out);
  out = answer_write_text(out, ",\"head\":");
  out = number_write_integer(out, (int64_t)cut->head);
  out = answer_write_text(out, ",\"loss\":");
  out = number_write(out, (float)cut->loss);
  return answer_write_text(out, "}\n\n");
}

static void give(struct stack_ablation_stream *s, const char *text, size_t length) {
  s->text = text;
  s->left = length;
}

static void give_word(struct stack_ablation_stream *s, const char *word) {
  give(s, word, strlen(word));
}

/* The answer is an event: its pieces stand between a word and two line ends. */
static bool next_of_answer(struct stack_ablation_stream *s) {
  const size_t pieces = s->answer->pieces, part = s->part;
  if (part > pieces + 1) return false;
  s->part++;
  if (part == 0)
    give_word(s, "data: ");
  else if (part <= pieces)
    give(s, s->answer->piece[part - 1].iov_base, s->answer->piece[part - 1].iov_len);
  else
    give_word(s, "\n\n");
  return true;
}

static bool next_of_problem(struct stack_ablation_stream *s, const char *problem) {
  if (s->part++ > 0) return false;
  must(strlen(problem) + STACK_AROUND_PROBLEM <= HELD_MOST);
  give(s, s->held, (size_t)(stack_speech.problem(problem, s->held) - s->held));
  return true;
}

/* Makes what follows once all that was there has been given; false: there is nothing, or not yet.
 */
static bool next_part(struct stack_ablation_stream *s, bool done, const char *problem) {
  if (s->sent < count_measured(s)) {
    give(s, s->held, (size_t)(write_head(s, &s->of->ablation.cut[s->sent++], s->held) - s->held));
    return true;
  }
  if (!done) return false;
  return problem ? next_of_problem(s, problem) : next_of_answer(s);
}

size_t stack_ablation_stream_write(struct stack_ablation_stream *s, bool done, const char *problem,
                                   char *out, size_t room) {
  _Static_assert((int)EVENT_ROOM <= (int)HELD_MOST, "the event of a head fits");
  size_t bytes = 0;
  while (bytes < room && (s->left > 0 || next_part(s, done, problem))) {
    const size_t n = size_min(room - bytes, s->left);
    if (n > 0) memcpy(out + bytes, s->text, n);
    s->text += n;
    s->left -= n;
    bytes += n;
  }
  return bytes;
}
