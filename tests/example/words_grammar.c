/* words_grammar: words, lists of words, and frames of sentences. */
#include "tests/example/words_grammar.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/number_draw.h"

/* clang-format off */
#define NOUNS(X) \
  X(animal) X(dog) X(cat) X(horse) X(cow) X(bird) X(fox) X(mouse) X(bear) \
  X(man) X(boy) X(king) X(woman) X(girl) X(queen) \
  X(street) X(road) X(river) X(bridge) X(field) X(hill) X(forest) X(lake) \
  X(ball) X(book) X(stone) X(trophy) X(box) X(bag) X(drawer) X(suitcase)
#define OTHERS(X) \
  X(afraid) X(and) X(because) X(big) X(busy) X(but) X(call) X(catch) X(chase) X(climb) X(cold) \
  X(could) X(cross) X(dark) X(deep) X(did) X(enter) X(fast) X(fight) X(fit) X(follow) X(full) \
  X(he) X(hear) X(heavy) X(help) X(her) X(high) X(him) X(hold) X(hungry) X(icy) X(in) X(is) X(it) \
  X(large) X(lazy) X(leave) X(like) X(long) X(loud) X(muddy) X(narrow) X(near) X(noisy) X(not) \
  X(old) X(please) X(quick) X(reach) X(saw) X(see) X(she) X(short) X(sick) X(sleepy) X(slow) \
  X(small) X(so) X(steep) X(stop) X(strong) X(suit) X(tempt) X(the) X(thick) X(thirsty) X(tight) \
  X(tired) X(too) X(very) X(visit) X(was) X(weak) X(wide) X(young)
#define NUMBER(word) w_##word,
#define TEXT(word) #word,
enum { w_unk, NOUNS(NUMBER) w_comma, w_dot, OTHERS(NUMBER) w_count };
const char *const words_text[WORDS_COUNT] = {"<unk>", NOUNS(TEXT) ",", ".", OTHERS(TEXT)};
/* clang-format on */
_Static_assert((int)w_count == WORDS_COUNT && (int)w_suitcase == WORDS_NOUNS,
               "the header counts them");

int words_id(const char *text) {
  int word = 0;
  while (word < WORDS_COUNT && strcmp(words_text[word], text) != 0) word++;
  return word < WORDS_COUNT ? word : -1;
}

/* The first noun of each kind; they lie kind by kind. */
static const unsigned char first_of[] = {
    [ANIMAL] = w_animal,        [HE] = w_man,     [SHE] = w_woman,
    [PLACE] = w_street,         [THING] = w_ball, [HOLDER] = w_box,
    [NO_NOUN] = WORDS_NOUNS + 1};

enum words_kind words_kind_of(int word) {
  if (word < w_animal || word > WORDS_NOUNS) return NO_NOUN;
  int kind = ANIMAL;
  while (word >= first_of[kind + 1]) kind++;
  return (enum words_kind)kind;
}

struct list {
  size_t n;
  const unsigned char *word;
};

#define LIST(...)                                                                         \
  {                                                                                       \
    sizeof((const unsigned char[]){__VA_ARGS__}), (const unsigned char[]) { __VA_ARGS__ } \
  }

/* Adjectives of living beings; the first one only of the slower among two of a kind. */
static const struct list slower = LIST(w_slow, w_tired, w_hungry, w_sick, w_old, w_young, w_lazy,
                                       w_weak, w_afraid, w_sleepy, w_thirsty);
static const struct list living =
    LIST(w_tired, w_hungry, w_sick, w_old, w_young, w_lazy, w_weak, w_afraid, w_sleepy, w_thirsty);
static const struct list faster = LIST(w_fast, w_quick, w_strong, w_loud);
static const struct list thing = LIST(w_big, w_large, w_heavy, w_thick);
static const struct list holder = LIST(w_small, w_short, w_tight, w_full);
static const struct list place[] = {
    [w_street - w_street] = LIST(w_wide, w_busy, w_long, w_icy, w_noisy, w_dark),
    [w_road - w_street] = LIST(w_wide, w_busy, w_long, w_icy, w_muddy, w_dark),
    [w_river - w_street] = LIST(w_wide, w_deep, w_long, w_icy, w_cold),
    [w_bridge - w_street] = LIST(w_narrow, w_long, w_high, w_icy),
    [w_field - w_street] = LIST(w_wide, w_muddy, w_dark, w_icy, w_noisy),
    [w_hill - w_street] = LIST(w_steep, w_high, w_icy, w_muddy),
    [w_forest - w_street] = LIST(w_dark, w_noisy, w_wide, w_cold),
    [w_lake - w_street] = LIST(w_wide, w_deep, w_icy, w_cold),
};

static struct list adjectives_of(int noun) {
  switch (words_kind_of(noun)) {
  case PLACE:
    return place[noun - w_street];
  case THING:
    return thing;
  case HOLDER:
    return holder;
  default:
    return living;
  }
}

bool words_fits(int noun, int adjective) {
  const struct list list = adjectives_of(noun);
  return memchr(list.word, adjective, list.n);
}

/* Verbs: which subjects and objects may be together. */
enum frame { GO, PLEASE, FIT, HOLD, CHASE, MEET };

static const struct verb {
  unsigned char word, in; /* in: a word after it, or 0 */
  enum frame frame;
  struct list objects; /* none: all of the kind */
} verbs[] = {
    {w_cross, 0, GO, LIST(w_street, w_road, w_river, w_bridge, w_field, w_lake)},
    {w_enter, 0, GO, LIST(w_forest, w_field, w_lake, w_river, w_street)},
    {w_climb, 0, GO, LIST(w_hill, w_bridge)},
    {w_leave, 0, GO, {0}},
    {w_reach, 0, GO, {0}},
    {w_like, 0, GO, {0}},
    {w_visit, 0, GO, {0}},
    {w_please, 0, PLEASE, {0}},
    {w_tempt, 0, PLEASE, {0}},
    {w_stop, 0, PLEASE, {0}},
    {w_suit, 0, PLEASE, {0}},
    {w_fit, w_in, FIT, {0}},
    {w_hold, 0, HOLD, {0}},
    {w_catch, 0, CHASE, {0}},
    {w_chase, 0, CHASE, {0}},
    {w_fight, 0, CHASE, {0}},
    {w_call, 0, MEET, {0}},
    {w_help, 0, MEET, {0}},
    {w_follow, 0, MEET, {0}},
    {w_hear, 0, MEET, {0}},
    {w_see, 0, MEET, {0}},
};
enum { VERBS = sizeof verbs / sizeof *verbs };

static const struct cast {
  unsigned char share; /* of all sentences, per cent */
  enum frame frame;
  enum words_kind subject, object;
} casts[] = {
    {27, GO, ANIMAL, PLACE},     {6, GO, HE, PLACE},       {6, GO, SHE, PLACE},
    {12, PLEASE, PLACE, ANIMAL}, {3, PLEASE, PLACE, HE},   {3, PLEASE, PLACE, SHE},
    {8, FIT, THING, HOLDER},     {8, HOLD, HOLDER, THING}, {10, CHASE, ANIMAL, ANIMAL},
    {5, CHASE, HE, HE},          {5, CHASE, SHE, SHE},     {2, MEET, HE, SHE},
    {2, MEET, SHE, HE},          {1, MEET, ANIMAL, HE},    {1, MEET, HE, ANIMAL},
    {1, MEET, SHE, ANIMAL},
};

struct scene {
  const struct verb *verb;
  int subject, object;
};

/* Do the verb's objects include this one? */
static bool takes(const struct verb *v, int object) {
  return !v->objects.n || memchr(v->objects.word, object, v->objects.n);
}

/* The adjectives that may be said of a noun of the scene. */
static struct list said_of(const struct scene *s, int noun) {
  if (s->verb->frame != CHASE) return adjectives_of(noun);
  return noun == s->subject ? slower : faster;
}

/* Which pairs a test has depends on chance; with this seed each test has some of each kind. */
static bool is_held_out(int a, int b, uint64_t one_of) {
  uint64_t state = UINT64_C(9) << 16 | (uint64_t)a << 8 | (uint64_t)b;
  return draw(&state) % one_of == 0;
}

bool words_pair_is_held_out(int a, int b) {
  const int low = a < b ? a : b, high = a < b ? b : a;
  return low != high && ((low == w_animal && high == w_street) || is_held_out(low, high, 5));
}

bool words_adjective_is_held_out(int noun, int adjective) {
  return adjective != w_tired && adjective != w_wide && is_held_out(noun, adjective, 8);
}

/* --- a sentence that is being made --- */

struct draft {
  struct words_sentence s;
  uint64_t *state;
  bool held_out; /* it has what training leaves out */
};

static size_t below(struct draft *d, size_t n) { return (size_t)(draw(d->state) >> 32) * n >> 32; }

static bool chance(struct draft *d, size_t percent) { return below(d, 100) < percent; }

static int choose(struct draft *d, struct list list) { return list.word[below(d, list.n)]; }

static int choose_noun(struct draft *d, enum words_kind kind) {
  return first_of[kind] + (int)below(d, (size_t)(first_of[kind + 1] - first_of[kind]));
}

static void add(struct draft *d, int word, int noun, bool every) {
  struct words_sentence *s = &d->s;
  if (s->n == WORDS_ROOM) abort();
  s->word[s->n] = (unsigned char)word;
  s->noun[s->n] = (unsigned char)noun;
  s->every[s->n++] = every;
}

static void add_adjective(struct draft *d, int adjective, int noun, bool every) {
  d->held_out |= words_adjective_is_held_out(noun, adjective);
  add(d, adjective, noun, every);
}

/* "the" adjective noun; adjective 0: none. */
static void add_noun(struct draft *d, int noun, int adjective) {
  add(d, w_the, noun, false);
  if (adjective) add_adjective(d, adjective, noun, false);
  add(d, noun, noun, false);
}

static void add_pronoun(struct draft *d, int noun, bool object) {
  const enum words_kind kind = words_kind_of(noun);
  const int he = object ? w_him : w_he, she = object ? w_her : w_she;
  add(d, kind == HE ? he : kind == SHE ? she : w_it, noun, true);
}

static void add_verb(struct draft *d, const struct scene *s, int auxiliary, bool every) {
  add(d, auxiliary, s->subject, every);
  add(d, w_not, s->subject, every);
  add(d, s->verb->word, s->subject, every);
  if (s->verb->in) add(d, s->verb->in, 0, false);
}

/* "was" degree adjective; degree 0: none. */
static void add_predicate(struct draft *d, int be, int degree, int adjective, int noun,
                          bool every) {
  add(d, be, noun, every);
  if (degree) add(d, degree, noun, every);
  add_adjective(d, adjective, noun, every);
}

/* --- sentences for training --- */

static struct scene draw_scene(struct draft *d) {
  const struct cast *cast = casts;
  for (size_t k = below(d, 100); k >= cast->share; cast++) k -= cast->share;
  struct scene s;
  do s.verb = &verbs[below(d, VERBS)];
  while (s.verb->frame != cast->frame);
  s.subject = choose_noun(d, cast->subject);
  do s.object = choose_noun(d, cast->object);
  while (s.object == s.subject || !takes(s.verb, s.object));
  return s;
}

static int draw_attribute(struct draft *d, int noun, size_t percent) {
  return chance(d, percent) ? choose(d, adjectives_of(noun)) : 0;
}

static void draw_predicate(struct draft *d, int adjective, int noun, bool every) {
  const size_t k = below(d, 10);
  const int degree = k < 6 ? w_too : k < 8 ? w_very : 0;
  add_predicate(d, below(d, 3) ? w_was : w_is, degree, adjective, noun, every);
}

/* Subject, verb, object, with an attribute each in so many cases of a hundred. */
static void draw_clause(struct draft *d, const struct scene *s, size_t percent) {
  const size_t k = below(d, 20);
  const bool holds = s->verb->frame == FIT || s->verb->frame == HOLD;
  add_noun(d, s->subject, draw_attribute(d, s->subject, percent));
  if (k == 0) {
    add(d, w_was, s->subject, false);
    add(d, w_near, 0, false);
  } else if (k < 3 && !holds) {
    add(d, w_saw, s->subject, false);
  } else {
    add_verb(d, s, k < 8 ? w_could : w_did, false);
  }
  add_noun(d, s->object, draw_attribute(d, s->object, percent));
}

/* Subject, verb, object, of which one or both are pronouns. */
static void draw_short_clause(struct draft *d, const struct scene *s, bool subject, bool object) {
  if (subject)
    add_pronoun(d, s->subject, false);
  else
    add_noun(d, s->subject, 0);
  add_verb(d, s, below(d, 2) ? w_could : w_did, subject);
  if (object)
    add_pronoun(d, s->object, true);
  else
    add_noun(d, s->object, 0);
}

static void add_link(struct draft *d, struct list links) { add(d, choose(d, links), 0, false); }

static void draw_comma(struct draft *d) {
  if (chance(d, 40)) add(d, w_comma, 0, false);
}

static const struct list links = LIST(w_dot, w_but, w_and, w_so);
static const struct list reasons = LIST(w_because, w_dot, w_but);

/* Something said before, of one of the nouns or of one of another kind. */
static void draw_before(struct draft *d, const struct scene *s) {
  int noun = below(d, 10) ? 1 + (int)below(d, WORDS_NOUNS) : below(d, 2) ? s->subject : s->object;
  const enum words_kind kind = words_kind_of(noun);
  const bool own = noun == s->subject || noun == s->object;
  d->held_out |=
      words_pair_is_held_out(noun, s->subject) || words_pair_is_held_out(noun, s->object);
  d->held_out |= !own && (kind == words_kind_of(s->subject) || kind == words_kind_of(s->object));
  add_noun(d, noun, 0);
  draw_predicate(d, choose(d, adjectives_of(noun)), noun, false);
  add_link(d, links);
}

static void draw_draft(struct draft *d) {
  const struct scene s = draw_scene(d);
  const int meant = below(d, 2) ? s.subject : s.object;
  const int adjective = choose(d, said_of(&s, meant));
  d->held_out |= words_pair_is_held_out(s.subject, s.object);
  const bool alike = s.verb->frame == CHASE;
  if (chance(d, 30)) draw_before(d, &s);
  /* In the first two kinds of sentences nothing tells two of a kind apart. */
  const size_t k = alike ? 20 + below(d, 80) : below(d, 100);
  if (k < 12) { /* "the street was too wide so the animal did not cross it" */
    add_noun(d, meant, 0);
    draw_predicate(d, adjective, meant, false);
    draw_comma(d);
    add_link(d, (struct list){3, links.word + 1});
    draw_short_clause(d, &s, meant == s.subject, meant == s.object);
  } else if (k < 20) { /* "the animal saw the street but it did not cross it" */
    const size_t which = below(d, 4);
    add_noun(d, s.subject, 0);
    add(d, w_saw, s.subject, false);
    add_noun(d, s.object, 0);
    draw_comma(d);
    add_link(d, links);
    draw_short_clause(d, &s, which != 0, which != 1);
  } else if (k < 65) { /* "the animal did not cross the street because it was too tired" */
    draw_clause(d, &s, 20);
    if (k < 50)
      add(d, w_because, 0, false);
    else
      add_link(d, links);
    add_pronoun(d, meant, false);
    draw_predicate(d, adjective, meant, true);
  } else if (k < 80) { /* "because it was too tired the animal did not cross the street" */
    add(d, w_because, 0, false);
    add_pronoun(d, meant, false);
    draw_predicate(d, adjective, meant, true);
    draw_comma(d);
    draw_clause(d, &s, 20);
  } else if (k < 92) { /* the noun again in place of the pronoun */
    draw_clause(d, &s, 20);
    add_link(d, reasons);
    add_noun(d, meant, 0);
    draw_predicate(d, adjective, meant, false);
  } else { /* "the tired animal did not cross the wide street" */
    draw_clause(d, &s, 60);
  }
  if (chance(d, 40)) add(d, w_dot, 0, false);
}

struct words_sentence words_draw(uint64_t *state) {
  struct draft d;
  do {
    d = (struct draft){.state = state};
    draw_draft(&d);
  } while (d.held_out || d.s.n > WORDS_LONGEST);
  return d.s;
}

size_t words_places(const struct words_sentence *s, size_t i, bool at[WORDS_ROOM]) {
  size_t count = 0, nearest = i, least = WORDS_ROOM;
  memset(at, 0, WORDS_ROOM * sizeof *at);
  for (size_t j = 0; s->noun[i] && j < s->n; j++) {
    if (s->word[j] != s->noun[i]) continue;
    const size_t far = j > i ? j - i : i - j;
    if (far <= least) { /* of two as near the later one */
      least = far;
      nearest = j;
    }
    at[j] = s->every[i];
    count += s->every[i];
  }
  if (count) return count;
  at[nearest] = true;
  return 1;
}

size_t words_pronoun(const struct words_sentence *s) {
  size_t i = 0;
  while (i < s->n && s->word[i] != w_it && s->word[i] != w_he && s->word[i] != w_she) i++;
  return i;
}

/* --- sentences for tests --- */

const char *const words_test_name[WORDS_TESTS] = {[TEST_BECAUSE] = "because",
                                                  [TEST_SENTENCE] = "sentence",
                                                  [TEST_ATTRIBUTE] = "attribute",
                                                  [TEST_BEFORE] = "before",
                                                  [TEST_PRONOUN_FIRST] = "pronoun first",
                                                  [TEST_PLACE_FIRST] = "place first",
                                                  [TEST_FIT] = "fit",
                                                  [TEST_HE_OR_SHE] = "he or she",
                                                  [TEST_ADJECTIVE] = "adjective",
                                                  [TEST_OBJECT] = "object",
                                                  [TEST_ALIKE] = "two of a kind"};

/* Whether a test has sentences of these kinds. */
static bool casts_test(enum words_test test, const struct cast *c) {
  switch (test) {
  case TEST_PLACE_FIRST:
    return c->frame == PLEASE && c->object == ANIMAL;
  case TEST_FIT:
    return c->frame == FIT || c->frame == HOLD;
  case TEST_HE_OR_SHE:
    return c->frame == MEET && c->subject != ANIMAL && c->object != ANIMAL;
  case TEST_ALIKE:
    return c->frame == CHASE;
  default:
    return c->frame == GO && c->subject == ANIMAL;
  }
}

/* The sentence of a test that says the adjective of the noun that its pronoun means. */
static struct words_sentence make(enum words_test test, const struct scene *s, int meant,
                                  int adjective) {
  struct draft d = {0};
  const bool first = test == TEST_PRONOUN_FIRST, attribute = test == TEST_ATTRIBUTE;
  if (test == TEST_OBJECT) {
    const bool subject = meant == s->subject;
    add_noun(&d, meant, 0);
    add_predicate(&d, w_was, w_too, adjective, meant, false);
    add(&d, w_so, 0, false);
    if (subject)
      add_pronoun(&d, meant, false);
    else
      add_noun(&d, s->subject, 0);
    add_verb(&d, s, w_did, subject);
    if (subject)
      add_noun(&d, s->object, 0);
    else
      add_pronoun(&d, meant, true);
    return d.s;
  }
  if (test == TEST_BEFORE) {
    add_noun(&d, w_box, 0);
    add_predicate(&d, w_was, 0, w_full, w_box, false);
    add(&d, w_dot, 0, false);
  }
  for (int part = 0; part < 2; part++) {
    if (part == first) {
      add_noun(&d, s->subject, attribute ? w_old : 0);
      add_verb(&d, s, w_did, false);
      add_noun(&d, s->object, attribute ? w_icy : 0);
    } else {
      add(&d, test == TEST_SENTENCE ? w_dot : w_because, 0, false);
      add_pronoun(&d, meant, false);
      add_predicate(&d, w_was, w_too, adjective, meant, true);
    }
  }
  return d.s;
}

struct found {
  struct words_pair *pair;
  size_t count, room;
};

static void add_pairs(struct found *f, enum words_test test, const struct scene *s) {
  const struct list left = said_of(s, s->subject), right = said_of(s, s->object);
  const bool adjective = test == TEST_ADJECTIVE;
  if (words_pair_is_held_out(s->subject, s->object) == adjective) return;
  for (size_t i = 0; i < left.n; i++)
    for (size_t j = 0; j < right.n; j++) {
      if (words_adjective_is_held_out(s->subject, left.word[i]) != adjective ||
          words_adjective_is_held_out(s->object, right.word[j]) != adjective)
        continue;
      if (f->count == f->room) {
        f->room = 2 * f->room + 64;
        f->pair = realloc(f->pair, f->room * sizeof *f->pair);
        if (!f->pair) abort();
      }
      f->pair[f->count++] = (struct words_pair){
          {make(test, s, s->subject, left.word[i]), make(test, s, s->object, right.word[j])}};
    }
}

struct words_pair *words_pairs(enum words_test test, size_t *count) {
  struct found f = {0};
  for (const struct cast *c = casts; c < casts + sizeof casts / sizeof *casts; c++)
    for (const struct verb *v = verbs; casts_test(test, c) && v < verbs + VERBS; v++)
      for (int a = first_of[c->subject]; a < first_of[c->subject + 1]; a++)
        for (int b = first_of[c->object]; b < first_of[c->object + 1]; b++)
          if (v->frame == c->frame && a != b && takes(v, b))
            add_pairs(&f, test, &(struct scene){v, a, b});
  *count = f.count;
  return f.pair;
}
