/* test_config: settings from every source, which source wins, and what is refused with which
 * message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/document/nearest.h"
#include "config/document/text.h"
#include "config/settings/address.h"
#include "config/settings/config.h"
#include "config/settings/option.h"
#include "core/kernel/gemm.h"
#include "tests/support/place.h"

static int enter(void **state) { return place_make(state, "attend.json"); }

static void write_bytes(const struct place *p, const char *bytes, size_t size) {
  FILE *out = fopen(p->file, "wb");
  assert_non_null(out);
  assert_int_equal(fwrite(bytes, 1, size, out), size);
  assert_int_equal(fclose(out), 0);
}

static void write_text(const struct place *p, const char *text) {
  write_bytes(p, text, strlen(text));
}

static char *const nothing[] = {NULL};

/* A list of words or of variables, as main gets it. */
#define WORDS(...) ((char *const[]){__VA_ARGS__, NULL})

static void read_well(struct config *c, char *const *args, char *const *environment) {
  struct error e = {0};
  config_read(c, args, environment, &e);
  assert_string_equal(e.detail, "");
  assert_int_equal(e.status, STATUS_OK);
}

static void read_ill(char *const *args, char *const *environment, const char *detail) {
  struct config c;
  struct error e = {0};
  assert_int_equal(config_read(&c, args, environment, &e), STATUS_CONFIG);
  if (!strstr(e.detail, detail)) fail_msg("\"%s\" does not say \"%s\"", e.detail, detail);
  assert_null(strchr(e.detail, '\n'));
  assert_null(c.store);
  config_free(&c);
}

static void file_ill(const struct place *p, const char *text, const char *detail) {
  write_text(p, text);
  read_ill(WORDS("--config", (char *)p->file), nothing, detail);
}

static void without_anything_the_defaults_and_the_demo_models_serve(void **state) {
  (void)state;
  struct config c;
  read_well(&c, nothing, nothing);
  assert_string_equal(c.listen, "127.0.0.1:8080");
  assert_string_equal(c.default_model, "");
  assert_string_equal(c.gemm, "auto");
  assert_string_equal(c.compute, "float32");
  assert_true(c.merge);
  assert_int_equal(c.max_queue, 1024);
  assert_int_equal(c.max_pairs, 1ull << 36);
  assert_string_equal(c.directory, ".");
  assert_null(c.file);
  assert_int_equal(json_object_size(c.models), 6);
  assert_string_equal(json_object_iter_key(json_object_iter(c.models)), "words");
  assert_non_null(json_object_get(c.models, "base"));
  assert_non_null(json_object_get(c.models, "additive"));
  config_free(&c);
}

static void the_later_source_wins(void **state) {
  const struct place *p = *state;
  struct config c;
  write_text(p, "{\"max_queue\": 2, \"max_items\": 2, \"workers\": 2, \"merge\": false}");
  char variable[128];
  snprintf(variable, sizeof variable, "ATTEND_CONFIG=%s", p->file);
  read_well(&c, WORDS("--workers", "4"),
            WORDS("PATH=/bin", variable, "ATTEND_WORKERS=3", "ATTEND_MAX_ITEMS=3"));
  assert_int_equal(c.max_queue, 2);
  assert_int_equal(c.max_items, 3);
  assert_int_equal(c.workers, 4);
  assert_false(c.merge);
  assert_int_equal(c.max_connections, 1024);
  assert_string_equal(c.file, p->file);
  assert_string_equal(c.directory, p->folder);
  config_free(&c);
}

static void config_on_the_command_line_wins_over_the_variable(void **state) {
  const struct place *p = *state;
  struct config c;
  char word[128];
  write_text(p, "{\"max_queue\": 5}");
  snprintf(word, sizeof word, "--config=%s", p->file);
  read_well(&c, WORDS(word), WORDS("ATTEND_CONFIG=/nowhere"));
  assert_int_equal(c.max_queue, 5);
  config_free(&c);
  read_well(&c, nothing, WORDS("ATTEND_CONFIG="));
  assert_null(c.file);
  config_free(&c);
}

static void a_file_without_a_folder_lies_here(void **state) {
  const struct place *p = *state;
  char here[4096];
  struct config c;
  write_text(p, "{}");
  assert_non_null(getcwd(here, sizeof here));
  assert_int_equal(chdir(p->folder), 0);
  struct error e = {0};
  config_read(&c, WORDS("--config", "attend.json"), nothing, &e);
  assert_int_equal(chdir(here), 0);
  assert_int_equal(e.status, STATUS_OK);
  assert_string_equal(c.directory, ".");
  config_free(&c);
}

static void flags_have_every_form(void **state) {
  (void)state;
  static const struct {
    char *word;
    bool on;
  } forms[] = {{"--merge", true},     {"--merge=on", true},   {"--merge=true", true},
               {"--no-merge", false}, {"--merge=off", false}, {"--merge=false", false}};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    struct config c;
    read_well(&c, WORDS(forms[i].word), nothing);
    assert_int_equal(c.merge, forms[i].on);
    config_free(&c);
  }
  struct config c;
  read_well(&c, WORDS("--max-queue=7", "--max-queue", "8"), WORDS("ATTEND_MERGE=off"));
  assert_false(c.merge);
  assert_int_equal(c.max_queue, 8);
  config_free(&c);
  read_well(&c, WORDS("--merge", "off", "--max-queue", "9", "--merge"), nothing);
  assert_true(c.merge);
  assert_int_equal(c.max_queue, 9);
  config_free(&c);
  read_well(&c, WORDS("--merge", "false"), nothing);
  assert_false(c.merge);
  config_free(&c);
  read_ill(nothing, WORDS("ATTEND_CPU=sse"), "ATTEND_CPU: \"sse\" is not one of portable");
  read_ill(WORDS("--merge=1"), nothing, "command line: --merge: \"1\" is not one of on, off");
  read_ill(WORDS("--no-merge=on"), nothing, "--no-merge: takes no value");
  read_ill(WORDS("--no-merge", "on"), nothing, "unexpected argument \"on\"");
  read_ill(WORDS("--merge", "maybe"), nothing, "unexpected argument \"maybe\"");
  read_ill(nothing, WORDS("ATTEND_MERGE="), "environment: ATTEND_MERGE: \"\" is not one of");
}

static void unknown_names_are_answered_with_the_nearest(void **state) {
  const struct place *p = *state;
  read_ill(WORDS("--max-qeue", "3"), nothing,
           "unknown setting --max-qeue (did you mean --max-queue?)");
  read_ill(WORDS("--confg=x"), nothing, "did you mean --config?");
  read_ill(WORDS("--no-workers"), nothing, "unknown setting --no-workers");
  read_ill(WORDS("--max_queue=3"), nothing, "--max_queue (did you mean --max-queue?)");
  read_ill(nothing, WORDS("ATTEND_WORKER=3"),
           "unknown variable ATTEND_WORKER (did you mean ATTEND_WORKERS?)");
  read_ill(nothing, WORDS("ATTEND_CONFIGS=3"), "did you mean ATTEND_CONFIG?");
  read_ill(nothing, WORDS("ATTEND_PORT=9000"), "unknown variable ATTEND_PORT");
  file_ill(p, "{\"max_que\": 3}", "unknown setting \"max_que\" (did you mean \"max_queue\"?)");
  file_ill(p, "{\"queue\": 3}", "unknown setting \"queue\" (did you mean \"max_queue\"?)");
  read_ill(WORDS("--body-bytes=3"), nothing, "did you mean --max-body-bytes?");
  file_ill(p, "{\"model\": 1}", "unknown setting \"model\" (did you mean \"models\"?)");
  file_ill(p, "{\"additive\": {\"heads\": 1}}", "; put a model into \"models\"");
  file_ill(p, "{\"a\\nb\": 1}", "\"a?b\"");
  read_ill(WORDS("serve"), nothing, "unexpected argument \"serve\"");
  read_ill(WORDS("-w", "3"), nothing, "unexpected argument \"-w\"");
  read_ill(WORDS("--"), nothing, "unexpected argument \"--\"");
  read_ill(WORDS("--=3"), nothing, "unknown setting --");
}

static void variables_that_are_not_ours_are_passed_over(void **state) {
  (void)state;
  struct config c;
  read_well(&c, nothing,
            WORDS("ATTEND_CPU=avx2", "ATTENDANCE=1", "ATTEND_PORT=tcp://10.0.0.1:80",
                  "ATTEND_SERVICE_HOST=10.0.0.1", "ATTEND_SERVICE_PORT=80",
                  "ATTEND_SERVICE_PORT_HTTP=80", "ATTEND_PORT_80_TCP=tcp://10.0.0.1:80",
                  "ATTEND_PORT_80_TCP_ADDR=10.0.0.1", "ATTEND_WEB_PORT_80_TCP_PORT=80"));
  config_free(&c);
}

static void numbers_are_plain_and_within_bounds(void **state) {
  const struct place *p = *state;
  static const char *const bad[] = {"", " 1", "1 ", "+1", "-1", "1e3", "0x10", "1k", "1.0", "1_0"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char word[64];
    snprintf(word, sizeof word, "--max-queue=%s", bad[i]);
    read_ill(WORDS(word), nothing, "must be an integer from 1 to 1048576 (requests)");
  }
  read_ill(WORDS("--max-queue", "0"), nothing, "--max-queue: 0 is outside 1 to 1048576 requests");
  read_ill(WORDS("--max-queue", "1048577"), nothing, "1048577 is outside");
  read_ill(WORDS("--max-queue", "18446744073709551617"), nothing,
           "must be an integer from 1 to 1048576 (requests)");
  read_ill(WORDS("--max-queue"), nothing, "--max-queue: needs a value");
  file_ill(p, "{\"max_queue\": 0}", "max_queue in /tmp/");
  file_ill(p, "{\"max_queue\": -1}", ": -1 is outside 1 to 1048576");
  file_ill(p, "{\"max_queue\": 1.0}", "needs an integer, not a number with a fraction");
  file_ill(p, "{\"max_queue\": \"1\"}", "needs an integer, not a string");
  file_ill(p, "{\"max_queue\": 99999999999999999999}", "line 1");
  file_ill(p, "{\"merge\": 1}", "needs true or false, not an integer");
  file_ill(p, "{\"listen\": null}", "needs a string, not null");
  file_ill(p, "{\"gemm\": []}", "needs a string, not an array");
  file_ill(p, "{\"gemm\": \"aut\"}", "\"aut\" is not one of auto|packed|openblas");
  read_ill(WORDS("--gemm="), nothing, "\"\" is not one of");
  read_ill(nothing, WORDS("ATTEND_COMPUTE=int4"),
           "environment: ATTEND_COMPUTE: \"int4\" is not one of float32|int8|int8-block");
  read_ill(WORDS("--log-level", "auto|packed"), nothing, "is not one of error|warning|info|debug");
  read_ill(WORDS("--access-log", "off|errors"), nothing, "\"off|errors\" is not one of");
  struct config c;
  read_well(&c, WORDS("--max-pairs=4611686018427387904"), nothing);
  assert_int_equal(c.max_pairs, 1ull << 62);
  config_free(&c);
}

static void listen_is_an_address_and_a_port(void **state) {
  (void)state;
  static char *const good[] = {
      "127.0.0.1:0",        "0.0.0.0:65535", "[::]:80", "[::1]:8080",
      "localhost:80",       "*:80",          ":80",     "[2001:db8::ffff:1.2.3.4]:1",
      "[fe80::1%eth0]:8080"};
  static char *const bad[] = {"",
                              "8080",
                              "127.0.0.1",
                              "127.0.0.1:",
                              "[::1]",
                              "[::1]80",
                              "::1:80",
                              "[::1:80",
                              "[]:80",
                              "[:80",
                              "[1.2.3.4]:80",
                              "**:80",
                              "a b:80",
                              "1.2.3.4:65536",
                              "1.2.3.4:-1",
                              "1.2.3.4:+1",
                              "1.2.3.4:8 0",
                              "a/b:80",
                              "[::1]x:80",
                              "http://a:80",
                              "[::1%]:80",
                              "[fe80::1%e/0]:80",
                              "[%eth0]:80"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    struct config c;
    read_well(&c, WORDS("--listen", good[i]), nothing);
    assert_string_equal(c.listen, good[i]);
    config_free(&c);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    read_ill(WORDS("--listen", bad[i]), nothing, "is not ADDRESS:PORT");
}

static void two_sockets_have_two_addresses(void **state) {
  (void)state;
  static char *const same[][2] = {{"127.0.0.1:80", "127.0.0.1:80"},
                                  {"127.0.0.1:80", "127.0.0.1:080"},
                                  {":80", "*:80"},
                                  {"[::1]:80", "[::1]:80"}};
  static char *const other[][2] = {{"127.0.0.1:80", "127.0.0.1:81"},
                                   {"127.0.0.1:80", "127.0.0.2:80"},
                                   {"127.0.0.1:0", "127.0.0.1:0"},
                                   {"127.0.0.1:80", ""}};
  for (size_t i = 0; i < sizeof same / sizeof *same; i++)
    read_ill(WORDS("--listen", same[i][0], "--admin-listen", same[i][1]), nothing,
             "choose another port");
  for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
    struct config c;
    read_well(&c, WORDS("--listen", other[i][0], "--admin-listen", other[i][1]), nothing);
    assert_string_equal(c.admin_listen, other[i][1]);
    config_free(&c);
  }
}

static void loopback_is_known(void **state) {
  (void)state;
  static const struct {
    const char *text;
    bool loopback;
  } cases[] = {{"127.0.0.1:1", true},          {"127.9.8.7:1", true},   {"[::1]:1", true},
               {"[::ffff:127.0.0.1]:1", true}, {"0.0.0.0:1", false},    {"[::]:1", false},
               {"[::ffff:10.0.0.1]:1", false}, {"10.0.0.127:1", false}, {"*:1", false},
               {"localhost:1", false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct address a;
    assert_true(address_parse(&a, cases[i].text));
    assert_int_equal(address_is_loopback(&a), cases[i].loopback);
  }
}

static void addresses_are_taken_apart(void **state) {
  (void)state;
  static const struct {
    const char *text, *host, *port, *reached;
  } cases[] = {{"*:080", "", "80", "127.0.0.1"},
               {":0", "", "0", "127.0.0.1"},
               {"0.0.0.0:1", "0.0.0.0", "1", "127.0.0.1"},
               {"[::]:65535", "::", "65535", "::1"},
               {"[fe80::1%eth0]:7", "fe80::1%eth0", "7", "fe80::1%eth0"},
               {"a-b.c_d:9", "a-b.c_d", "9", "a-b.c_d"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct address a;
    assert_true(address_parse(&a, cases[i].text));
    assert_string_equal(a.host, cases[i].host);
    assert_string_equal(a.port, cases[i].port);
    address_reach(&a);
    assert_string_equal(a.host, cases[i].reached);
  }
  struct address a;
  char longest[ADDRESS_HOST_SIZE + 8];
  memset(longest, 'a', sizeof longest);
  strcpy(longest + ADDRESS_HOST_SIZE - 1, ":80");
  assert_true(address_parse(&a, longest));
  strcpy(longest + ADDRESS_HOST_SIZE - 1, "a:80");
  assert_false(address_parse(&a, longest));
}

static void documents_are_read_strictly(void **state) {
  const struct place *p = *state;
  file_ill(p, "", "line 1");
  file_ill(p, "[]", "needs an object, not an array");
  file_ill(p, "{\"workers\": 1,\n  \"workers\": 2}", "line 2, column");
  file_ill(p, "{\n\"workers\": 1,,}", "line 2, column 14");
  file_ill(p, "{} {}", "line 1");
  file_ill(p, "\xef\xbb\xbf{}", "byte order mark");
  file_ill(p, "{\"listen\": \"\xff\"}", "line 1");
  write_bytes(p, "{\"workers\":\n1}\0", 15);
  read_ill(WORDS("--config", (char *)p->file), nothing, "line 2: a NUL byte");
  read_ill(WORDS("--config", (char *)p->folder), nothing, "is a directory");
  read_ill(WORDS("--config", "/nowhere/attend.json"), nothing,
           "/nowhere/attend.json: No such file");
  read_ill(WORDS("--config", "/proc/self/mem"), nothing,
           "Input/output error"); /* after it was opened */
  read_ill(WORDS("--config"), nothing, "--config: needs a path");
  read_ill(WORDS("--config="), nothing, "--config: needs a path");
}

static void a_document_cut_anywhere_is_refused(void **state) {
  const struct place *p = *state;
  static const char text[] =
      "{\"merge\":false,\"models\":{\"a\":{\"heads\":1,\"projection\":\"none\"}}}";
  for (size_t size = 0; size + 1 < sizeof text; size++) {
    write_bytes(p, text, size);
    read_ill(WORDS("--config", (char *)p->file), nothing, "line 1");
  }
}

static void models_are_named_and_the_default_is_one_of_them(void **state) {
  const struct place *p = *state;
  struct config c;
  write_text(p, "{\"models\":{\"z\":{\"heads\":1},\"a.b_C-9\":{}},\"default_model\":\"a.b_C-9\"}");
  read_well(&c, WORDS("--config", (char *)p->file), nothing);
  assert_string_equal(json_object_iter_key(json_object_iter(c.models)), "z");
  assert_string_equal(c.default_model, "a.b_C-9");
  config_free(&c);
  read_ill(WORDS("--config", (char *)p->file), WORDS("ATTEND_DEFAULT_MODEL=demo"),
           "environment: ATTEND_DEFAULT_MODEL: there is no model \"demo\"");
  file_ill(p, "{\"models\": {}}", "models: must have at least one model");
  file_ill(p, "{\"models\": []}", "models: needs an object, not an array");
  file_ill(p, "{\"models\": {\"a\": 1}}", "model a: needs an object, not an integer");
  file_ill(p, "{\"models\": {\"\": {}}}", "is not a model name");
  static const char *const no_names[] = {"a/b/c",    "/a",       "a/", "a//b",
                                         "a/encode", "a/layers", "a b"};
  for (size_t i = 0; i < sizeof no_names / sizeof *no_names; i++) {
    char text[64];
    snprintf(text, sizeof text, "{\"models\": {\"%s\": {}}}", no_names[i]);
    file_ill(p, text, "is not a model name");
  }
  file_ill(p, "{\"default_model\": \"bose\"}", "default_model in /tmp/");
  file_ill(p, "{\"default_model\": \"bose\"}", "no model \"bose\" (did you mean \"base\"?)");
}

static void what_is_printed_reads_back_the_same(void **state) {
  const struct place *p = *state;
  struct config c, again;
  char *first = NULL, *second = NULL;
  size_t size;
  read_well(&c, WORDS("--max-queue=9", "--no-merge", "--listen=[::1]:0", "--default-model=base"),
            nothing);
  FILE *out = open_memstream(&first, &size);
  assert_true(config_print(&c, out));
  fclose(out);
  assert_non_null(strstr(first, "{\n  \"listen\": \"[::1]:0\",\n  \"admin_listen\": \"\",\n"
                                "  \"page\": true,\n"));
  assert_non_null(strstr(first, "\n  \"default_model\": \"base\","));
  assert_non_null(strstr(first, "\n  \"merge\": false,\n"));
  write_text(p, first);
  read_well(&again, WORDS("--config", (char *)p->file), nothing);
  out = open_memstream(&second, &size);
  assert_true(config_print(&again, out));
  fclose(out);
  assert_string_equal(first, second);
  free(first);
  free(second);
  config_free(&c);
  config_free(&again);
}

static void add_word(void *of, const char *name, const char *value) {
  char *text = of;
  snprintf(text + strlen(text), 200 - strlen(text), "%s=%s ", name, value);
}

/* The words of `compute` are those of the core. */
static void modes_are_those_of_the_core(void **state) {
  (void)state;
  char words[80] = "";
  for (size_t i = 0; compute_names[i]; i++)
    snprintf(words + strlen(words), sizeof words - strlen(words), "%s%s", i ? "|" : "",
             compute_names[i]);
  assert_string_equal(option_find("compute")->unit, words);
  assert_string_equal(option_find("compute")->text, compute_names[COMPUTE_FLOAT32]);
}

static void what_differs_is_told(void **state) {
  const struct place *p = *state;
  struct config a, b;
  char said[200] = "";
  write_text(p, "{\"models\": {\"x\": {\"heads\": 2}, \"y\": {\"heads\": 2}}}");
  read_well(&a, WORDS("--config", (char *)p->file), nothing);
  config_differ(&a, &a, add_word, said);
  assert_string_equal(said, "");
  write_text(p, "{\"max_queue\": 5, \"merge\": false, \"default_model\": \"x\", \"listen\": "
                "\":9\", \"compute\": \"int8\","
                " \"models\": {\"y\": {\"heads\": 4}, \"x\": {\"heads\": 2}, \"z\": {}}}");
  read_well(&b, WORDS("--config", (char *)p->file), nothing);
  config_differ(&a, &b, add_word, said);
  assert_string_equal(said, "listen=:9 merge=off max_queue=5 ");
  assert_true(config_same_model(&a, &b, "x"));
  assert_false(config_same_model(&a, &b, "y"));
  assert_false(config_same_model(&a, &b, "z"));
  assert_false(config_same_model(&a, &b, "none"));
  config_free(&a);
  config_free(&b);
}

/* A definition of all layers makes the models NAME.NUMBER. */
static void layers_are_models(void **state) {
  const struct place *p = *state;
  struct config a, b;
#define LAYERS "\"models\": {\"x\": {\"layers\": \"all\"}, \"y\": {}, \"x.3\": {\"heads\": 4}}"
  write_text(p, "{\"default_model\": \"x.12\", " LAYERS "}");
  read_well(&a, WORDS("--config", (char *)p->file), nothing);
  assert_ptr_equal(config_definition(&a, "x.0"), json_object_get(a.models, "x"));
  assert_ptr_equal(config_definition(&a, "x.3"), json_object_get(a.models, "x.3"));
  static const char *const none[] = {"y.0", "x.", "x.1a", "z.1", ".1", "x-1", ""};
  for (size_t i = 0; i < 7; i++) assert_null(config_definition(&a, none[i]));
  write_text(p, "{\"models\": {\"x\": {\"layers\": \"all\", \"heads\": 2}, \"y\": {}, \"x.3\": "
                "{\"heads\": 4}}}");
  read_well(&b, WORDS("--config", (char *)p->file), nothing);
  assert_false(config_same_model(&a, &b, "x.0"));
  assert_true(config_same_model(&a, &b, "x.3"));
  assert_true(config_same_model(&b, &b, "x.0"));
  config_free(&a);
  config_free(&b);
  file_ill(p, "{\"default_model\": \"x\", " LAYERS "}",
           "\"x\" is one model per layer: name one of them, such as \"x.0\"");
  file_ill(p, "{\"default_model\": \"y.1\", " LAYERS "}", "there is no model \"y.1\"");
#define WHOLE "\"models\": {\"x\": {\"transformer\": \"f\", \"layers\": 2}}"
  write_text(p, "{\"default_model\": \"x\", " WHOLE "}");
  read_well(&a, WORDS("--config", (char *)p->file), nothing);
  assert_null(config_definition(&a, "x.0"));
  config_free(&a);
  file_ill(p, "{\"default_model\": \"x.0\", " WHOLE "}", "there is no model \"x.0\"");
}

static void help_names_every_setting(void **state) {
  (void)state;
  char *help = NULL;
  size_t size;
  FILE *out = open_memstream(&help, &size);
  config_help(out);
  fclose(out);
  assert_non_null(strstr(help, "--max-queue N"));
  assert_non_null(strstr(help, "(default: 1024)"));
  assert_non_null(strstr(help, "\nNetwork:\n  --listen "));
  for (size_t i = 0; i < option_count(); i++) {
    char name[64];
    assert_non_null(strstr(help, option_switch(option_at(i), name)));
    assert_non_null(strstr(help, option_at(i)->brief));
  }
  free(help);
}

/* Asks about one setting; what is printed is the caller's. */
static char *help_on(const char *name, struct error *e) {
  char *help = NULL;
  size_t size;
  FILE *out = open_memstream(&help, &size);
  config_help_setting(name, out, e);
  fclose(out);
  return help;
}

static void help_describes_one_setting(void **state) {
  (void)state;
  static const char *const same[] = {"max_queue", "max-queue", "--max-queue", "ATTEND_MAX_QUEUE",
                                     "Max-Queue"};
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
    struct error e = {0};
    char *help = help_on(same[i], &e);
    assert_string_equal(e.detail, "");
    assert_string_equal(help, "max_queue: requests that may wait for a worker\n\n"
                              "  Requests that may wait for a worker. One more is rejected with "
                              "status 429.\n\n"
                              "  default        1024 requests\n"
                              "  range          1 to 1048576 requests\n"
                              "  file           \"max_queue\": N\n"
                              "  environment    ATTEND_MAX_QUEUE=N\n"
                              "  command line   --max-queue N\n"
                              "  a change       requires a restart\n");
    free(help);
  }
  static const struct {
    const char *name, *part;
  } well[] = {{"no-merge", "command line   --merge or --no-merge\n"},
              {"merge", "file           \"merge\": true or false\n"},
              {"gemm", "environment    ATTEND_GEMM=auto|packed|openblas\n"},
              {"default_model", "a change       SIGHUP applies it\n"},
              {"compute", "a change       SIGHUP applies it\n"},
              {"--config", "environment    ATTEND_CONFIG=FILE\n"},
              {"settings", "\n\nlisten: address of the server\n"},
              {"settings", "\n\nslow_ms: "}};
  for (size_t i = 0; i < sizeof well / sizeof *well; i++) {
    struct error e = {0};
    char *help = help_on(well[i].name, &e);
    assert_string_equal(e.detail, "");
    assert_non_null(strstr(help, well[i].part));
    free(help);
  }
}

static void help_refuses_what_is_no_setting(void **state) {
  (void)state;
  static const struct {
    const char *name, *detail;
  } ill[] = {{"--max-que", "unknown setting \"--max-que\" (did you mean \"max_queue\"?)"},
             {"confg", "unknown setting \"confg\" (did you mean \"config\"?)"},
             {"", "unknown setting \"\""}};
  for (size_t i = 0; i < sizeof ill / sizeof *ill; i++) {
    struct error e = {0};
    char *help = help_on(ill[i].name, &e);
    assert_int_equal(e.status, STATUS_CONFIG);
    assert_string_equal(e.detail, ill[i].detail);
    assert_string_equal(help, "");
    free(help);
  }
}

/* Each default must be a value that the setting allows, so that it may be written in a file. */
static void defaults_are_values(void **state) {
  (void)state;
  struct config c = {0};
  for (size_t i = 0; i < option_count(); i++) {
    const struct option *o = option_at(i);
    struct error e = {0};
    char number[32];
    snprintf(number, sizeof number, "%ju", (uintmax_t)o->number);
    if (o->kind == OPTION_IS_FLAG) continue;
    option_set(o, &c, o->kind == OPTION_IS_COUNT ? number : o->text, o->name, &e);
    assert_string_equal(e.detail, "");
    assert_true(strlen(o->name) < 48);
  }
}

static void nearest_counts_edits(void **state) {
  (void)state;
  static const struct {
    const char *word, *name;
    size_t distance;
  } cases[] = {{"heads", "heads", 0}, {"head", "heads", 1},        {"haeds", "heads", 1},
               {"HEADS", "heads", 0}, {"kv-heads", "kv_heads", 0}, {"", "abc", 3},
               {"abc", "", 3},        {"kitten", "sitting", 3},    {"ca", "abc", 3}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char word[32], name[32]; /* so long that all are near */
    struct nearest n;
    snprintf(word, sizeof word, "longbefore%s", cases[i].word);
    snprintf(name, sizeof name, "longbefore%s", cases[i].name);
    nearest_init(&n, word);
    nearest_offer(&n, name);
    assert_ptr_equal(n.name, name);
    assert_int_equal(n.distance, cases[i].distance);
  }
  char longer[300];
  memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = '\0';
  struct nearest n;
  nearest_init(&n, longer);
  nearest_offer(&n, longer);
  assert_int_equal(n.distance, 0);
}

/* More than a third of the characters, rounded up, and no part in common: then there is no hint. */
static void nearest_is_none_of_distant_names(void **state) {
  (void)state;
  static const struct {
    const char *word, *name;
    bool near;
  } cases[] = {{"buket", "buckets", true},
               {"bkt", "buckets", false},
               {"theta", "base", false},
               {"seed", "random", false},
               {"lens", "valid_lens", true},
               {"querys", "queries", true},
               {"query", "queries", true},
               {"quarrelsome", "queries", false},
               {"xy", "kl", false},
               {"", "abc", false},
               {"abc", "", false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct nearest n;
    char hint[NEAREST_HINT], wanted[NEAREST_HINT] = "";
    nearest_init(&n, cases[i].word);
    nearest_offer(&n, cases[i].name);
    if (cases[i].near) snprintf(wanted, sizeof wanted, " (did you mean \"%s\"?)", cases[i].name);
    assert_string_equal(nearest_hint(&n, hint), wanted);
  }
}

static void utf8_is_told_from_what_is_not(void **state) {
  (void)state;
  static const char *const good[] = {"",
                                     "a",
                                     "\xc2\x80",
                                     "\xe0\xa0\x80",
                                     "\xed\x9f\xbf",
                                     "\xef\xbf\xbf",
                                     "\xf0\x90\x80\x80",
                                     "\xf4\x8f\xbf\xbf"};
  static const char *const bad[] = {"\x80",
                                    "\xc0\x80",
                                    "\xc1\xbf",
                                    "\xc2",
                                    "\xc2\x41",
                                    "\xe0\x9f\xbf",
                                    "\xed\xa0\x80",
                                    "\xe2\x82",
                                    "\xe2\x82\x41",
                                    "\xf0\x8f\xbf\xbf",
                                    "\xf4\x90\x80\x80",
                                    "\xf5\x80\x80\x80",
                                    "\xf0\x9f\x98",
                                    "\xff"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    assert_true(text_is_utf8(good[i], strlen(good[i])));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_false(text_is_utf8(bad[i], strlen(bad[i])));
}

int main(void) {
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, enter, place_remove)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_anything_the_defaults_and_the_demo_models_serve),
      IN_PLACE(the_later_source_wins),
      IN_PLACE(config_on_the_command_line_wins_over_the_variable),
      IN_PLACE(a_file_without_a_folder_lies_here),
      cmocka_unit_test(flags_have_every_form),
      IN_PLACE(unknown_names_are_answered_with_the_nearest),
      cmocka_unit_test(variables_that_are_not_ours_are_passed_over),
      IN_PLACE(numbers_are_plain_and_within_bounds),
      cmocka_unit_test(listen_is_an_address_and_a_port),
      cmocka_unit_test(two_sockets_have_two_addresses),
      cmocka_unit_test(addresses_are_taken_apart),
      cmocka_unit_test(loopback_is_known),
      IN_PLACE(documents_are_read_strictly),
      IN_PLACE(a_document_cut_anywhere_is_refused),
      IN_PLACE(models_are_named_and_the_default_is_one_of_them),
      IN_PLACE(what_is_printed_reads_back_the_same),
      cmocka_unit_test(modes_are_those_of_the_core),
      IN_PLACE(what_differs_is_told),
      IN_PLACE(layers_are_models),
      cmocka_unit_test(help_names_every_setting),
      cmocka_unit_test(help_describes_one_setting),
      cmocka_unit_test(help_refuses_what_is_no_setting),
      cmocka_unit_test(defaults_are_values),
      cmocka_unit_test(nearest_counts_edits),
      cmocka_unit_test(nearest_is_none_of_distant_names),
      cmocka_unit_test(utf8_is_told_from_what_is_not),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
