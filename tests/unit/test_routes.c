/* test_routes: which paths have which route, and which methods each route takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/dialect/dialect.h"
#include "server/route/routes.h"
#include "tests/support/whole_made.h"

/* Finds a route where no model's name has two parts. */
static enum route find_names(const char *path, struct route_names *names) {
  const enum route route = route_find(path, names);
  return names->joined ? route_separate(route, names) : route;
}

static enum route find_route(const char *path) {
  struct route_names names;
  return find_names(path, &names);
}

static const char *model_of(const char *path) {
  static struct route_names names;
  find_names(path, &names);
  return names.model;
}

static const char *layer_of(const char *path) {
  static struct route_names names;
  route_find(path, &names);
  return names.layer;
}

static void every_template_finds_its_route(void **state) {
  (void)state;
  for (unsigned r = 0; r < ROUTE_V2_NONE; r++)
    for (size_t i = 0; i < ROUTE_PATHS && route_row((enum route)r)->path[i].template; i++) {
      const char *path = route_row((enum route)r)->path[i].template;
      assert_int_equal(find_route(path), strcmp(path, "/") ? r : ROUTE_PAGE);
    }
}

static void other_paths_find_none(void **state) {
  (void)state;
  static const char *const paths[] = {
      "",
      "?",
      "#",
      "/#",
      "/healthz#x",
      "//",
      "/v2%20none",
      "/none",
      "none",
      "/.",
      "/%00",
      "/%",
      "/index.html",
      "*",
      "healthz",
      "/healthz/",
      "/metrics/",
      "/readyz/?a",
      "/openapi.json/",
      "/problems/a/b",
      "/problem",
      "/healthz/x",
      "/Healthz",
      "/v1",
      "/v1/",
      "/v1/modelsx",
      "//healthz",
      "/v1/models/a/heads/0",
      "/v1/models/a/Heads",
      "/v1/models/a/head",
      "/v1/heads",
      "/v1/models/a/attention/b",
      "/healthz%00",
      "/healthz%2",
      "http:/",
      "http://x//",
      "/v1%2Fmodels",
      "/v1/attention;x",
      "/v1/encode",
      "/v1/models/a/Encode",
      "/v1/models/a/layers",
      "/v1/models/a/layers/encoder.0.self",
      "/v1/models/a/layers/encoder.0.self/",
      "/v1/models/a/layers/encoder.0.self/encode",
      "/v1/models/a/layer/encoder.0.self/attention",
  };
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    enum route route = find_route(paths[i]);
    if (route != ROUTE_NONE) fail_msg("%s is %s", paths[i], route_template(route));
  }
}

/* Every word that stands behind a model's name is one that no name has behind its slash. */
static void words_of_paths_are_known(void **state) {
  (void)state;
  size_t words = 0;
  for (unsigned r = 0; r < ROUTE_COUNT; r++) {
    const char *behind = strstr(route_template((enum route)r), "{model}/");
    char word[32];
    if (!behind) continue;
    snprintf(word, sizeof word, "%.*s", (int)strcspn(behind + 8, "/"), behind + 8);
    if (!text_is_path_word(word)) fail_msg("%s", word);
    words++;
  }
  assert_true(words > 12);
}

static void names_of_two_parts(void **state) {
  (void)state;
  static const struct {
    const char *path;
    enum route route;
    const char *model;
    enum route separate; /* where no model has this name */
  } list[] = {
      {"/v1/models/BAAI/bge-m3", ROUTE_MODEL, "BAAI/bge-m3", ROUTE_NONE},
      {"/v1/models/BAAI/bge-m3/", ROUTE_MODEL, "BAAI/bge-m3", ROUTE_NONE},
      {"/v1/models/BAAI/bge-m3/encode?a", ROUTE_MODEL_ENCODE, "BAAI/bge-m3", ROUTE_NONE},
      {"/v1/models/a/b/layers/encoder.0.self/heads", ROUTE_LAYER_HEADS, "a/b", ROUTE_NONE},
      {"/v1/models/a/b/c", ROUTE_NONE, "a/b", ROUTE_NONE},
      {"/v2/models/a/b/infer", ROUTE_V2_INFER, "a/b", ROUTE_V2_NONE},
      {"/v2/models/a/b/versions/1/ready", ROUTE_V2_MODEL_READY, "a/b", ROUTE_V2_NONE},
      {"/v1/models/a%2Fb", ROUTE_MODEL, "a/b", ROUTE_COUNT},
      {"/v1/models/a%2fb/score", ROUTE_MODEL_SCORE, "a/b", ROUTE_COUNT},
      {"/v1/models/a/encode", ROUTE_MODEL_ENCODE, "a", ROUTE_COUNT},
      {"/v1/models/encode/score", ROUTE_MODEL_SCORE, "encode", ROUTE_COUNT},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct route_names names;
    if (route_find(list[i].path, &names) != list[i].route) fail_msg("%s", list[i].path);
    assert_string_equal(names.model, list[i].model);
    assert_int_equal(names.joined, list[i].separate != ROUTE_COUNT);
    if (!names.joined) continue;
    assert_int_equal(route_separate(list[i].route, &names), list[i].separate);
    assert_null(strchr(names.model, '/'));
  }
  char longest[2 * MODEL_NAME_SIZE] = "/v1/models/";
  struct route_names names;
  memset(longest + 11, 'a', MODEL_NAME_PART), longest[11 + MODEL_NAME_PART] = '/';
  memset(longest + 12 + MODEL_NAME_PART, 'b', MODEL_NAME_PART);
  assert_int_equal(route_find(longest, &names), ROUTE_MODEL);
  assert_int_equal(strlen(names.model), MODEL_NAME_SIZE - 1);
  longest[12 + 2 * MODEL_NAME_PART] = 'b';
  assert_int_equal(route_find(longest, &names), ROUTE_NONE);
}

static void a_slash_at_the_end_does_not_matter(void **state) {
  (void)state;
  static const char *const paths[] = {"/embed",
                                      "/v1/models",
                                      "/v1/models/a",
                                      "/v1/models/a/heads",
                                      "/v1/models/a/layers/encoder.0.self/attention",
                                      "/v2/models/a",
                                      "http://x/v1/attention"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    char longer[100];
    snprintf(longer, sizeof longer, "%s/", paths[i]);
    assert_int_equal(find_route(longer), find_route(paths[i]));
    assert_string_equal(model_of(longer), strstr(paths[i], "models/a") ? "a" : "");
    snprintf(longer, sizeof longer, "%s/?b=/c", paths[i]);
    assert_int_equal(find_route(longer), find_route(paths[i]));
  }
}

static void query_and_authority_do_not_matter(void **state) {
  (void)state;
  static const char *const roots[] = {"/",         "/?",         "/?a=/b",  "http://x",
                                      "HTTP://x/", "http://x?a", "http://", "http://x:80/?a"};
  for (size_t i = 0; i < sizeof roots / sizeof *roots; i++)
    if (find_route(roots[i]) != ROUTE_PAGE) fail_msg("%s", roots[i]);
  assert_int_equal(find_route("/healthz?"), ROUTE_HEALTH);
  assert_int_equal(find_route("/v1/attention?a=/b"), ROUTE_ATTENTION);
  assert_int_equal(find_route("http://example.com:80/healthz"), ROUTE_HEALTH);
  assert_int_equal(find_route("HTTPS://example.com/v1/models?x"), ROUTE_MODELS);
  assert_string_equal(model_of("/v1/models/a?b/attention"), "a");
}

static void names_are_decoded_within_their_segment(void **state) {
  (void)state;
  assert_string_equal(model_of("/v1/models/base/attention"), "base");
  assert_string_equal(model_of("/v1/models/b%61s%65"), "base");
  assert_string_equal(model_of("/v1/models/b%61se/heads?x"), "base");
  assert_string_equal(model_of("/v1/models/heads/heads"), "heads");
  assert_string_equal(model_of("/v1/models/a%2Fattention"), "a/attention");
  assert_int_equal(find_route("/v1/models/a%2Fattention"), ROUTE_MODEL);
  assert_string_equal(model_of("/v1/models/a+b"), "a+b");
  assert_int_equal(find_route("/%68ealthz"), ROUTE_HEALTH);
  assert_string_equal(model_of("/v1/models/b%61se/score"), "base"); /* no path, but a model */
  assert_string_equal(model_of("/v1/models/a/layers/b/attention"), "a");
  assert_string_equal(layer_of("/v1/models/a/layers/encoder%2e0.self/heads?x"), "encoder.0.self");
  assert_int_equal(find_route("/v1/models/a/layers/encoder%2e0.self/heads?x"), ROUTE_LAYER_HEADS);
  assert_string_equal(layer_of("/v1/models/a/layers/b"), "");
  assert_string_equal(layer_of("/v1/models/a/attention"), "");
}

static void impossible_names_are_empty(void **state) {
  (void)state;
  char path[MODEL_NAME_SIZE + 64] = "/v1/models/";
  memset(path + 11, 'x', MODEL_NAME_SIZE - 1);
  assert_int_equal(strlen(model_of(path)), MODEL_NAME_SIZE - 1);
  memset(path + 11, 'x', MODEL_NAME_SIZE);
  assert_int_equal(find_route(path), ROUTE_MODEL);
  assert_string_equal(model_of(path), "");
  assert_string_equal(model_of("/v1/models/a%00b"), "");
  assert_string_equal(model_of("/v1/models/a%"), "");
  assert_string_equal(model_of("/v1/models/a%4"), "");
  assert_string_equal(model_of("/v1/models/a%zz/attention"), "");
  assert_int_equal(find_route("/v1/models/a/layers/%/attention"), ROUTE_LAYER_ATTENTION);
  assert_string_equal(layer_of("/v1/models/a/layers/%/attention"), "");
}

static void methods_are_words_of_their_own_case(void **state) {
  (void)state;
  assert_int_equal(method_find("GET"), METHOD_GET);
  assert_int_equal(method_find("POST"), METHOD_POST);
  assert_int_equal(method_find("get"), METHOD_OTHER);
  assert_int_equal(method_find("BREW"), METHOD_OTHER);
  assert_int_equal(method_find("other"), METHOD_OTHER);
  assert_string_equal(method_name(METHOD_OTHER), "other");
}

static void each_route_takes_its_methods(void **state) {
  (void)state;
  for (unsigned r = 0; r < ROUTE_NONE; r++) {
    enum route route = (enum route)r;
    if (!route_exists(route)) continue;
    bool post = route < ROUTE_TEI_INFO || route == ROUTE_V2_INFER;
    assert_int_equal(route_allows(route, METHOD_POST), post);
    assert_int_equal(route_allows(route, METHOD_GET), !post);
    assert_int_equal(route_allows(route, METHOD_HEAD), !post);
    assert_false(route_allows(route, METHOD_OPTIONS));
    assert_false(route_allows(route, METHOD_OTHER));
    assert_int_equal(route_is_computed(route), post);
    assert_string_equal(route_allow(route), post ? "POST" : "GET, HEAD");
  }
}

static void paths_of_the_inference_protocol(void **state) {
  (void)state;
  static const struct {
    const char *path;
    enum route route;
    const char *model;
  } list[] = {
      {"/v2", ROUTE_V2, ""},
      {"/v2?x=1", ROUTE_V2, ""},
      {"/v2/health/live", ROUTE_V2_LIVE, ""},
      {"/v2/health/ready", ROUTE_V2_READY, ""},
      {"/v2/models", ROUTE_V2_MODELS, ""},
      {"/v2/models/m", ROUTE_V2_MODEL, "m"},
      {"/v2/models/m/ready?a=/b", ROUTE_V2_MODEL_READY, "m"},
      {"/v2/models/m/infer", ROUTE_V2_INFER, "m"},
      {"/v2/models/m/versions/1", ROUTE_V2_MODEL, "m"},
      {"/v2/models/m/versions/1/ready", ROUTE_V2_MODEL_READY, "m"},
      {"/v2/models/%6d/versions/%31/infer", ROUTE_V2_INFER, "m"},
      {"/v2/models/versions/versions/1", ROUTE_V2_MODEL, "versions"},
      {"/v2/models/m/versions/2", ROUTE_V2_VERSION, ""},
      {"/v2/models/m/versions/01/infer", ROUTE_V2_VERSION, ""},
      {"/v2/models/m/versions//ready", ROUTE_V2_VERSION, ""},
      {"/v2/", ROUTE_V2, ""},
      {"/v2/models/m/ready/?a", ROUTE_V2_MODEL_READY, "m"},
      {"/v2/x", ROUTE_V2_NONE, ""},
      {"/v2/health", ROUTE_V2_NONE, ""},
      {"/v2/health/x", ROUTE_V2_NONE, ""},
      {"/v2/models/m/stats", ROUTE_V2_NONE, ""},
      {"/v2/models/m/versions", ROUTE_V2_NONE, ""},
      {"/v2/models/m/ready/1", ROUTE_V2_NONE, ""},
      {"/v2/models/m/versions/1/x", ROUTE_V2_NONE, ""},
      {"/v2/models/m/versions/1/infer/x", ROUTE_V2_NONE, ""},
      {"/v2/models/m/versions/1/infer/x/y", ROUTE_V2_NONE, ""},
      {"/v2/repository/index", ROUTE_V2_NONE, ""},
      {"/v2x", ROUTE_NONE, ""},
      {"/v3/a/b/c/d/e/f/g", ROUTE_NONE, ""},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    if (find_route(list[i].path) != list[i].route) fail_msg("%s", list[i].path);
    assert_string_equal(model_of(list[i].path), list[i].model);
    assert_int_equal(route_is_v2(list[i].route), list[i].route != ROUTE_NONE);
    const bool there = list[i].route < ROUTE_V2_VERSION;
    assert_int_equal(route_exists(list[i].route), there);
    assert_int_equal(route_allows(list[i].route, METHOD_GET),
                     there && list[i].route != ROUTE_V2_INFER);
  }
  assert_false(route_is_v2(ROUTE_METRICS));
}

static void kinds_of_models_have_paths_of_their_own(void **state) {
  (void)state;
  static const struct {
    enum route route;
    bool served[4]; /* by kind */
  } list[] = {
      {ROUTE_MODEL_ATTENTION, {true, false, false, false}},
      {ROUTE_MODEL_HEADS, {true, true, true, true}},
      {ROUTE_MODEL_ENCODE, {false, true, true, true}},
      {ROUTE_MODEL_CLASSIFY, {false, false, false, false}},
      {ROUTE_MODEL_SCORE, {false, false, true, true}},
      {ROUTE_MODEL_GENERATE, {false, false, true, true}},
      {ROUTE_EMBEDDINGS, {false, true, true, true}},
      {ROUTE_COMPLETIONS, {false, false, false, false}}, /* without a tokenizer */
      {ROUTE_LAYER_ATTENTION, {false, true, true, true}},
      {ROUTE_LAYER_HEADS, {false, true, true, true}},
      {ROUTE_MODEL, {true, true, true, true}},
      {ROUTE_V2_INFER, {true, true, true, true}},
      {ROUTE_HEALTH, {false, false, false, false}},
  };
  struct whole_made made, mute, bare;
  whole_made_init(&made, &(struct whole_made_how){.decoder = true});
  whole_made_init(&mute, &(struct whole_made_how){.decoder = true, .mute = true});
  whole_made_init(&bare, &(struct whole_made_how){.bare = true});
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    for (unsigned kind = MODEL_ATTENTION; kind <= MODEL_SEQ2SEQ; kind++) {
      const struct model m = {.kind = (enum model_kind)kind,
                              .whole = kind == MODEL_ATTENTION ? NULL : &made.whole};
      assert_int_equal(route_serves(list[i].route, &m), list[i].served[kind]);
    }
  assert_false(route_serves(ROUTE_MODEL_SCORE, &mute.model));
  assert_false(route_serves(ROUTE_EMBEDDINGS, &bare.model));
  assert_string_equal(route_missing(ROUTE_EMBEDDINGS, &bare.model), " without token embeddings");
  assert_string_equal(route_missing(ROUTE_COMPLETIONS, &made.model), " without a tokenizer");
  const struct model encoder = {.kind = MODEL_ENCODER, .whole = &made.whole};
  char text[300], cut[20];
  struct whole_made sorts;
  whole_made_init(&sorts, &(struct whole_made_how){.classes = 2});
  assert_true(route_serves(ROUTE_MODEL_CLASSIFY, &sorts.model));
  assert_string_equal(route_missing(ROUTE_MODEL_CLASSIFY, &encoder), " without a classifier");
  assert_string_equal(route_missing(ROUTE_MODEL_CLASSIFY, &made.model), " without a classifier");
  assert_string_equal(route_missing(ROUTE_MODEL_CLASSIFY_TOKENS, &sorts.model),
                      " without a classifier of tokens");
  sorts.whole.head = WHOLE_HEAD_TOKENS;
  assert_false(route_serves(ROUTE_MODEL_CLASSIFY, &sorts.model));
  assert_true(route_serves(ROUTE_MODEL_CLASSIFY_TOKENS, &sorts.model));
  sorts.whole.head = WHOLE_HEAD_CLASSES;
  assert_string_equal(route_missing(ROUTE_MODEL_SCORE, &mute.model),
                      " without a language modeling head");
  route_list(&sorts.model, text, sizeof text);
  static const char first[] =
      "/v1/models/{model}/heads, /v1/models/{model}/encode, /v1/models/{model}/classify, ";
  assert_memory_equal(text, first, sizeof first - 1);
  whole_made_free(&sorts);
  route_list(&made.model, text, sizeof text);
  assert_non_null(strstr(text, "/v1/models/{model}/encode, /v1/models/{model}/score, "));
  route_list(&mute.model, text, sizeof text);
  assert_null(strstr(text, "score"));
  route_list(&encoder, text, sizeof text);
  assert_string_equal(text, "/v1/models/{model}/heads, /v1/models/{model}/encode, "
                            "/v1/models/{model}/layers/{layer}/attention, "
                            "/v1/models/{model}/layers/{layer}/heads, /v2/models/{model}/infer");
  route_list(&encoder, cut, sizeof cut);
  assert_string_equal(cut, "/v1/models/{model}/");
  whole_made_free(&made);
  whole_made_free(&mute);
  whole_made_free(&bare);
}

static void kinds_of_requests_have_a_path_with_a_model(void **state) {
  (void)state;
  assert_int_equal(route_of_ask(ASK_ATTENTION), ROUTE_MODEL_ATTENTION);
  assert_int_equal(route_of_ask(ASK_HEADS), ROUTE_MODEL_HEADS);
  assert_int_equal(route_of_ask(ASK_ENCODE), ROUTE_MODEL_ENCODE);
  assert_int_equal(route_of_ask(ASK_DETOKENIZE), ROUTE_MODEL_DETOKENIZE);
}

static void paths_that_settings_turn_on(void **state) {
  (void)state;
  const struct config none = {0}, page = {.page = true}, tei = {.text_embeddings_inference = true};
  for (unsigned r = 0; r < ROUTE_COUNT; r++) {
    const enum route route = (enum route)r;
    assert_int_equal(route_is_enabled(route, &none), !route_is_tei(route) && route != ROUTE_PAGE);
    assert_int_equal(route_is_enabled(route, &page), !route_is_tei(route));
    assert_int_equal(route_is_enabled(route, &tei), route != ROUTE_PAGE);
  }
}

static void the_admin_door_lists_its_paths(void **state) {
  (void)state;
  char text[ROUTE_LIST_SIZE], cut[12];
  route_list_admin(text, sizeof text);
  assert_string_equal(text, "/healthz, /readyz, /metrics, /v2/health/live and /v2/health/ready");
  route_list_admin(cut, sizeof cut);
  assert_string_equal(cut, "/healthz, /");
}

static const char *spaced(enum route route) {
  static char text[80];
  snprintf(text, sizeof text, " %s ", route_template(route));
  return text;
}

static void other_services_words_have_routes(void **state) {
  (void)state;
  assert_int_equal(route_of_dialect(&embeddings), ROUTE_EMBEDDINGS);
  for (unsigned r = 0; r < ROUTE_COUNT; r++) {
    const struct dialect *dialect = route_row((enum route)r)->dialect;
    if (dialect) {
      assert_int_equal(route_of_dialect(dialect), r);
      assert_true(route_is_computed((enum route)r));
      assert_null(strchr(route_template((enum route)r), '{'));
    }
  }
  assert_null(route_row(ROUTE_MODEL_ENCODE)->dialect);
  for (unsigned r = 0; r < ROUTE_COUNT; r++)
    assert_int_equal(route_is_tei((enum route)r),
                     strstr(" /embed /embed_all /embed_sparse /similarity /rerank "
                            "/predict /tokenize /decode /info ",
                            spaced((enum route)r)) != NULL);
}

static void templates_are_labels_of_their_own(void **state) {
  (void)state;
  for (unsigned r = 0; r < ROUTE_COUNT; r++)
    for (unsigned s = 0; s < r; s++)
      assert_string_not_equal(route_template((enum route)r), route_template((enum route)s));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_template_finds_its_route),
      cmocka_unit_test(other_paths_find_none),
      cmocka_unit_test(words_of_paths_are_known),
      cmocka_unit_test(names_of_two_parts),
      cmocka_unit_test(a_slash_at_the_end_does_not_matter),
      cmocka_unit_test(query_and_authority_do_not_matter),
      cmocka_unit_test(names_are_decoded_within_their_segment),
      cmocka_unit_test(impossible_names_are_empty),
      cmocka_unit_test(methods_are_words_of_their_own_case),
      cmocka_unit_test(each_route_takes_its_methods),
      cmocka_unit_test(paths_of_the_inference_protocol),
      cmocka_unit_test(kinds_of_models_have_paths_of_their_own),
      cmocka_unit_test(kinds_of_requests_have_a_path_with_a_model),
      cmocka_unit_test(paths_that_settings_turn_on),
      cmocka_unit_test(the_admin_door_lists_its_paths),
      cmocka_unit_test(other_services_words_have_routes),
      cmocka_unit_test(templates_are_labels_of_their_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
