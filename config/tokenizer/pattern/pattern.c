/* pattern: compiles expressions, and searches for them. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "config/tokenizer/pattern/pattern.h"

#include <pcre2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/tokenizer/pattern/pattern_newer.h"
#include "config/tokenizer/pattern/pattern_syntax.h"
#include "core/base/clock.h"
#include "core/base/size.h"

enum {
  KIB = 1024,
  HEAP_MOST = 64 * KIB,       /* KiB that the library's interpreter may use for one match */
  STACK_LEAST = 64 * KIB,     /* bytes of a stack for what it compiled, */
  STACK_MOST = 32 * KIB * KIB /* made where that of the thread is too small */
};

/* Limits of a search. The library limits how often a match is tried again from one place, but
 * neither how many places there are nor how far it looks ahead from each: so it is called for a few
 * places at a time, and a clock is read between the calls. */
enum {
  TRIES = 2000000, /* from one place, and more for each byte of the text: */
  TRIES_A_BYTE = 16,
  PLACES = 64,           /* bytes in which one call may find the beginning of a match */
  PLACES_LONG = 1 << 25, /* places times bytes of a text, at most */
  UNWATCHED = 1024,      /* bytes between readings of the clock, otherwise */
  GRACE = 200 * CLOCK_MS,
  TIME_A_BYTE = 500 /* nanoseconds */
};

struct pattern {
  char *plain; /* [length] a text to search for; NULL: an expression */
  size_t length;
  /* The second one has also characters that the library lacks; NULL: it is no other. */
  struct pattern_code {
    pcre2_code *code;
    bool compiled; /* to machine code */
  } code[2];
};

struct pattern_match {
  const struct pattern_code *code; /* the one for this text */
  pcre2_match_data *data;
  pcre2_match_context *limits;
  pcre2_jit_stack *stack; /* NULL: the thread's is enough so far */
  size_t limit;           /* the last place in the text where a match may begin */
  size_t passed;          /* bytes of the texts before this one */
  size_t watched;         /* the place, among the bytes of all texts, when the clock was read */
  uint64_t began;         /* by the watch's clock */
};

/* --- making --- */

static pcre2_code *compile(const char *expression, size_t length, int *why, size_t *where) {
  const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK | PCRE2_MULTILINE |
                           PCRE2_USE_OFFSET_LIMIT | PCRE2_NEVER_BACKSLASH_C;
  pcre2_compile_context *context = pcre2_compile_context_create(NULL);
  *why = PCRE2_ERROR_NOMEMORY;
  if (!context) return NULL;
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  pcre2_code *code = pcre2_compile((PCRE2_SPTR)expression, length, options, why, where, context);
  pcre2_compile_context_free(context);
  return code;
}

static bool knows(const char *expression) {
  int why;
  size_t where;
  pcre2_code *code = compile(expression, strlen(expression), &why, &where);
  pcre2_code_free(code);
  return code;
}

static enum status refuse(int why, struct error *e) {
  enum { NO_HEAP = 121 }; /* of compiling: the library gives it no name in all versions */
  char reason[160];
  if (why == PCRE2_ERROR_NOMEMORY || why == NO_HEAP) return error_no_memory(e);
  if (pcre2_get_error_message(why, (PCRE2_UCHAR *)reason, sizeof reason) < 0) reason[0] = '\0';
  return error_set(e, STATUS_CONFIG, "the expression cannot be compiled: %s", reason);
}

static struct pattern *new_expression(const char *expression, size_t length, struct error *e) {
  struct pattern *p = calloc(1, sizeof *p);
  struct pattern_text text[2] = {{0}};
  if (!p) {
    error_no_memory(e);
    return NULL;
  }
  for (size_t i = 0; i < 2; i++) {
    struct pattern_code *c = &p->code[i];
    int why;
    size_t where;
    if (pattern_syntax_rewrite(expression, length, i > 0, knows, &text[i], e)) break;
    const char *written = text[i].bytes ? text[i].bytes : "";
    if (i > 0 && (!text[0].bytes || strcmp(written, text[0].bytes) == 0)) break;
    c->code = compile(written, text[i].length, &why, &where);
    if (!c->code) {
      refuse(why, e);
      break;
    }
    /* A system may forbid executable memory that was written: then the library interprets. */
    c->compiled = pcre2_jit_compile(c->code, PCRE2_JIT_COMPLETE) == 0;
  }
  pattern_text_free(&text[0]);
  pattern_text_free(&text[1]);
  if (e->status == STATUS_OK) return p;
  pattern_free(p);
  return NULL;
}

static struct pattern *new_plain(const char *text, size_t length, struct error *e) {
  struct pattern *p = calloc(1, sizeof *p);
  char *plain = p ? malloc(length + 1) : NULL;
  if (!plain) {
    free(p);
    error_no_memory(e);
    return NULL;
  }
  memcpy(plain, text, length + 1);
  p->plain = plain;
  p->length = length;
  return p;
}

struct pattern *pattern_of(const char *expression, struct error *e) {
  return new_expression(expression, strlen(expression), e);
}

struct pattern *pattern_new(const json_t *json, struct error *e) {
  const json_t *plain = json_object_get(json, "String"), *regex = json_object_get(json, "Regex");
  const json_t *said = plain ? plain : regex;
  if (!json_is_string(said) || json_object_size(json) != 1) {
    error_set(e, STATUS_CONFIG, "needs {\"String\": text} or {\"Regex\": expression}");
    return NULL;
  }
  const char *text = json_string_value(said);
  const size_t length = json_string_length(said);
  return plain ? new_plain(text, length, e) : new_expression(text, length, e);
}

void pattern_free(struct pattern *p) {
  if (!p) return;
  pcre2_code_free(p->code[0].code);
  pcre2_code_free(p->code[1].code);
  free(p->plain);
  free(p);
}

/* --- a search --- */

static void free_match(struct pattern_match *m) {
  if (!m) return;
  pcre2_match_data_free(m->data);
  pcre2_match_context_free(m->limits);
  pcre2_jit_stack_free(m->stack);
  free(m);
}

static struct pattern_match *new_match(void) {
  struct pattern_match *m = calloc(1, sizeof *m);
  if (!m) return NULL;
  m->data = pcre2_match_data_create(1, NULL);
  m->limits = pcre2_match_context_create(NULL);
  if (m->data && m->limits) {
    pcre2_set_heap_limit(m->limits, HEAP_MOST);
    return m;
  }
  free_match(m);
  return NULL;
}

static uint64_t now_by(const struct pattern_watch *w) {
  struct timespec t;
  if (!w->by_processor) return clock_now();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

enum status pattern_search_begin(struct pattern_search *s, const struct pattern *p,
                                 struct pattern_watch *watch, const char *text, size_t length,
                                 struct error *e) {
  struct pattern_match *m = p->plain ? NULL : new_match();
  if (!p->plain && !m) return error_no_memory(e);
  *s = (struct pattern_search){.pattern = p, .match = m};
  s->watch = watch ? watch : &s->own;
  if (m && s->watch->may == 0) s->watch->may = GRACE;
  if (m) m->began = now_by(s->watch);
  pattern_search_text(s, text, length);
  return STATUS_OK;
}

/* A match may begin at `at`, or a few bytes later: fewer in a long text, whose end may be read from
 * each of these places. */
static void move_limit(struct pattern_match *m, size_t at, size_t length) {
  m->limit = at + size_max(1, size_min(PLACES, PLACES_LONG / (length + 1))) - 1;
  pcre2_set_offset_limit(m->limits, m->limit);
}

void pattern_search_text(struct pattern_search *s, const char *text, size_t length) {
  struct pattern_match *m = s->match;
  if (m) m->passed += s->length;
  s->text = length ? text : "";
  s->length = length;
  s->at = s->begin = s->end = 0;
  s->found = false;
  if (!m) return;
  const struct pattern_code *newer = &s->pattern->code[1];
  m->code = newer->code && pattern_newer_within(text, length) ? newer : s->pattern->code;
  const size_t most = (UINT32_MAX - TRIES) / TRIES_A_BYTE;
  pcre2_set_match_limit(m->limits, (uint32_t)(TRIES + TRIES_A_BYTE * size_min(length, most)));
  s->watch->may += length * TIME_A_BYTE;
  move_limit(m, 0, length);
}

void pattern_search_end(struct pattern_search *s) {
  const struct pattern_match *m = s->match;
  if (m) s->watch->took += now_by(s->watch) - m->began;
  free_match(s->match);
  s->match = NULL;
}

/* --- its limits --- */

/* Reads the watch. The clock is cheaper, but it also counts while other threads compute: once it
 * exceeds the limit, the thread's processor time counts from then on. */
static bool is_late(const struct pattern_search *s, size_t at) {
  struct pattern_match *m = s->match;
  struct pattern_watch *w = s->watch;
  m->watched = m->passed + at;
  if (w->took + (now_by(w) - m->began) <= w->may) return false;
  if (w->by_processor) return true;
  w->by_processor = true;
  w->took = 0;
  m->began = now_by(w);
  return false;
}

/* The same, if the clock was not read for long; short texts count together. */
static bool is_overdue(const struct pattern_search *s, size_t at) {
  const struct pattern_match *m = s->match;
  return m->passed + at - m->watched >= UNWATCHED && is_late(s, at);
}

static bool refuse_text(int why, struct error *e) {
  if (why == PCRE2_ERROR_NOMEMORY) return error_no_memory(e) == STATUS_OK;
  must(why == PCRE2_ERROR_MATCHLIMIT || why == PCRE2_ERROR_HEAPLIMIT ||
       why == PCRE2_ERROR_DEPTHLIMIT || why == PCRE2_ERROR_JIT_STACKLIMIT);
  error_set(e, STATUS_INVALID_REQUEST,
            "the text takes too long: an expression of the model's tokenizer is tried on it in too "
            "many ways");
  return false;
}

/* --- matches --- */

static int call(const struct pattern_search *s) {
  const struct pattern_match *m = s->match;
  const PCRE2_SPTR text = (PCRE2_SPTR)s->text;
  const pcre2_code *code = m->code->code;
  if (m->code->compiled)
    return pcre2_jit_match(code, text, s->length, s->at, PCRE2_NO_UTF_CHECK, m->data, m->limits);
  return pcre2_match(code, text, s->length, s->at, PCRE2_NO_UTF_CHECK, m->data, m->limits);
}

/* The same, with a larger stack if one is needed. */
static int call_on_stack(const struct pattern_search *s) {
  struct pattern_match *m = s->match;
  const int found = call(s);
  if (found != PCRE2_ERROR_JIT_STACKLIMIT || m->stack) return found;
  m->stack = pcre2_jit_stack_create(STACK_LEAST, STACK_MOST, NULL);
  if (!m->stack) return PCRE2_ERROR_NOMEMORY;
  pcre2_jit_stack_assign(m->limits, NULL, m->stack);
  return call(s);
}

/* The place of the next character. */
static size_t next_place(const struct pattern_search *s, size_t at) {
  do at++;
  while (at < s->length && ((unsigned char)s->text[at] & 0xc0) == 0x80);
  return at;
}

/* Finds a match from s->at on; false: there is none, or it failed. */
static bool find_expression(struct pattern_search *s, size_t *begin, size_t *end, struct error *e) {
  struct pattern_match *m = s->match;
  for (;;) {
    if (s->at > m->limit) move_limit(m, s->at, s->length);
    const int found = call_on_stack(s);
    if (found >= 0) break;
    if (found != PCRE2_ERROR_NOMATCH) return refuse_text(found, e);
    if (m->limit >= s->length)
      return is_overdue(s, s->length) ? refuse_text(PCRE2_ERROR_MATCHLIMIT, e) : false;
    s->at = next_place(s, m->limit);
    if (patience_ends(s->watch->patience, e)) return false;
    if (is_late(s, s->at)) return refuse_text(PCRE2_ERROR_MATCHLIMIT, e);
  }
  const size_t *pair = pcre2_get_ovector_pointer(m->data);
  *begin = pair[0];
  *end = pair[1];
  return !is_overdue(s, *end) || refuse_text(PCRE2_ERROR_MATCHLIMIT, e);
}

static bool find_plain(struct pattern_search *s, size_t *begin, size_t *end) {
  const struct pattern *p = s->pattern;
  const char *from = s->text + s->at;
  const char *found = p->length ? memmem(from, s->length - s->at, p->plain, p->length) : from;
  if (!found) return false;
  *begin = (size_t)(found - s->text);
  *end = *begin + p->length;
  return true;
}

bool pattern_search_next(struct pattern_search *s, struct error *e) {
  size_t begin = 0, end = 0;
  for (;;) {
    if (s->at > s->length) return false;
    if (!(s->match ? find_expression(s, &begin, &end, e) : find_plain(s, &begin, &end)))
      return false;
    if (begin < end || !s->found || end != s->end) break;
    s->at = next_place(s, s->at);
  }
  s->begin = begin;
  s->end = s->at = end;
  s->found = true;
  return true;
}
