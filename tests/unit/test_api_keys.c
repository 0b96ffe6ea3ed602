/* test_api_keys: the file of bearer keys, how a key is compared, and what a request's header must
 * bring. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/http/bearer.h"

#define KEY_A "first-key.0123456789_~+/=="
#define KEY_B "SECOND-KEY-abcdefghijklmno"

static char folder[] = "/tmp/attend-keys-XXXXXX";

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  char path[64];
  snprintf(path, sizeof path, "%s/keys", folder);
  unlink(path);
  return rmdir(folder);
}

/* Writes the file and reads it as a server would; NULL with the error. */
static struct api_keys *load_mode(const void *bytes, size_t size, mode_t mode, struct error *e) {
  char path[64];
  struct api_keys *k;
  snprintf(path, sizeof path, "%s/keys", folder);
  unlink(path);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
  assert_int_equal(chmod(path, mode), 0);
  const struct config c = {.api_key_file = "keys", .directory = folder};
  *e = (struct error){0};
  const enum status status = api_keys_load(&c, &k, e);
  assert_int_equal(status, e->status);
  assert_int_equal(e->status == STATUS_OK, k != NULL);
  return k;
}

static struct api_keys *load(const char *text) {
  struct error e;
  struct api_keys *k = load_mode(text, strlen(text), 0600, &e);
  if (!k) fail_msg("%s", e.detail);
  return k;
}

static void is_refused(const void *bytes, size_t size, const char *why) {
  struct error e;
  assert_null(load_mode(bytes, size, 0600, &e));
  assert_int_equal(e.status, STATUS_CONFIG);
  assert_int_equal(strncmp(e.detail, "api_key_file: ", 14), 0);
  if (!strstr(e.detail, why)) fail_msg("\"%s\" is not in: %s", why, e.detail);
  /* No part of a key appears in a message. */
  assert_null(strstr(e.detail, "first-key"));
  assert_null(strstr(e.detail, "SECOND"));
  assert_null(strstr(e.detail, "abcdef"));
}

static void refused(const char *text, const char *why) { is_refused(text, strlen(text), why); }

static uint64_t found(const struct api_keys *k, const char *token) {
  return api_keys_look(k, token, strlen(token)).found;
}

static void a_key_a_line(void **state) {
  (void)state;
  static const char *const texts[] = {
      KEY_A "\n" KEY_B "\n",
      KEY_A "\n" KEY_B,
      "# keys\r\n\r\n  " KEY_A "\t\r\n\n   # the other one\n" KEY_B " \n\n",
      "\n\n" KEY_B "\n#" KEY_A "x\n" KEY_A,
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct api_keys *k = load(texts[i]);
    assert_int_equal(api_keys_count(k), 2);
    assert_int_equal(found(k, KEY_A), 1);
    assert_int_equal(found(k, KEY_B), 1);
    assert_int_equal(found(k, KEY_A "x"), 0);
    assert_int_equal(found(k, ""), 0);
    api_keys_free(k);
  }
  struct api_keys *twice = load(KEY_A "\n" KEY_A "\n");
  assert_int_equal(found(twice, KEY_A), 2);
  api_keys_free(twice);
  api_keys_free(NULL);
}

static void bad_lines_are_told_by_number_alone(void **state) {
  (void)state;
  refused("", "there is no key in it");
  refused("# nothing\n\n", "there is no key in it");
  refused(KEY_A "\nSECOND KEY abcdefghij\n", "line 2: character 7 is not allowed");
  refused(KEY_A " # mine\n", "line 1: character 27 is not allowed");
  refused("\n\nSECOND\n", "line 3: a key has 16 to 512 characters, not 6");
  refused("SECOND-45678901\n", "not 15");
  refused("SECOND-4567=89012345\n", "line 1: character 13 is not allowed");
  refused("================\n", "line 1: character 1 is not allowed");
  refused("SECOND-4567890123,\n", "character 18");
  refused("\xef\xbb\xbf" KEY_A "\n", "line 1: character 1 is not allowed");
  refused(KEY_A "\r" KEY_B "\n", "line 1: character 27");
  static const char nul[] = KEY_A "\0" KEY_B;
  is_refused(nul, sizeof nul - 1, "line 1: character 27");
}

static void as_long_as_they_may_be(void **state) {
  (void)state;
  char text[API_KEY_LONGEST + 3];
  memset(text, 'a', sizeof text);
  text[API_KEY_LONGEST + 1] = '\n';
  text[API_KEY_LONGEST + 2] = 0;
  refused(text, "not 513");
  struct api_keys *k = load(text + 1);
  assert_int_equal(api_keys_look(k, text, API_KEY_LONGEST).found, 1);
  assert_int_equal(api_keys_look(k, text, API_KEY_LONGEST - 1).found, 0);
  api_keys_free(k);
}

static void as_many_as_there_may_be(void **state) {
  (void)state;
  char *text = malloc(32 * (API_KEYS_MOST + 1)), token[32];
  assert_non_null(text);
  for (int i = 0; i <= API_KEYS_MOST; i++) sprintf(text + 21 * i, "key-%016d\n", i);
  refused(text, "line 1001: more than 1000 keys");
  text[21 * API_KEYS_MOST] = 0;
  struct api_keys *k = load(text);
  assert_int_equal(api_keys_count(k), API_KEYS_MOST);
  for (int i = 0; i <= API_KEYS_MOST; i++) {
    sprintf(token, "key-%016d", i);
    assert_int_equal(found(k, token), i < API_KEYS_MOST);
  }
  api_keys_free(k);
  free(text);
}

static void a_file_too_large(void **state) {
  (void)state;
  const size_t size = 1024 * 1024 + 1;
  char *text = malloc(size);
  assert_non_null(text);
  memset(text, '\n', size);
  is_refused(text, size, "larger than 1048576 bytes");
  memcpy(text, KEY_A, strlen(KEY_A));
  struct error e;
  struct api_keys *k = load_mode(text, size - 1, 0600, &e);
  assert_non_null(k);
  api_keys_free(k);
  free(text);
}

/* All words are compared, whatever is presented and wherever in the list an equal key is. */
static void each_look_compares_everything(void **state) {
  (void)state;
  char text[8 * 40] = "";
  for (int i = 0; i < 7; i++) sprintf(text + strlen(text), "key-number-%d-0123456789\n", i);
  struct api_keys *k = load(text);
  const uint64_t all = 7 * 4; /* of 8 bytes in a digest of 32 */
  char huge[40000];
  memset(huge, 'k', sizeof huge);
  static const char *const tokens[] = {"", "k", "key-number-0-0123456789",
                                       "key-number-6-0123456789", "key-number-6-012345678"};
  for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
    assert_int_equal(api_keys_look(k, tokens[i], strlen(tokens[i])).words, all);
  assert_int_equal(api_keys_look(k, huge, sizeof huge).words, all);
  api_keys_free(k);
}

static void who_may_write_it_matters(void **state) {
  (void)state;
  static const mode_t good[] = {0400, 0440, 0600, 0640, 0644, 0444, 0755},
                      bad[] = {0620, 0602, 0666, 0664, 0777};
  struct error e;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    struct api_keys *k = load_mode(KEY_A, strlen(KEY_A), good[i], &e);
    if (!k) fail_msg("%s", e.detail);
    assert_int_equal(api_keys_exposed(k), (good[i] & 04) != 0);
    api_keys_free(k);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_null(load_mode(KEY_A, strlen(KEY_A), bad[i], &e));
    assert_non_null(strstr(e.detail, "chmod go-w"));
  }
}

static void files_that_are_none(void **state) {
  (void)state;
  struct api_keys *k;
  struct error e = {0};
  struct config c = {.api_key_file = "", .directory = folder};
  assert_int_equal(api_keys_load(&c, &k, &e), STATUS_OK);
  assert_null(k);
  static const char *const none[][2] = {{"missing", "No such file"},
                                        {".", "is a directory"},
                                        {"/dev/zero", "is not a regular file"}};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    c.api_key_file = none[i][0];
    e = (struct error){0};
    assert_int_equal(api_keys_load(&c, &k, &e), STATUS_CONFIG);
    assert_null(k);
    if (!strstr(e.detail, none[i][1])) fail_msg("%s", e.detail);
  }
}

/* --- the head --- */

static void judged(const struct api_keys *k, const char *value, enum status expected,
                   const char *challenge) {
  struct header h;
  struct error e = {0};
  header_init(&h);
  if (value) header_add(&h, "authorization", 13, value);
  header_finish(&h);
  assert_int_equal(bearer_check(&h, k, &e), expected);
  assert_string_equal(bearer_challenge(&h), challenge);
}

static void what_a_head_brings(void **state) {
  (void)state;
  static const char plain[] = "Bearer", wrong[] = "Bearer error=\"invalid_token\"";
  struct api_keys *k = load(KEY_A "\n" KEY_B);
  static const char *const good[] = {"Bearer " KEY_A, "bearer " KEY_B, "BEARER   " KEY_A,
                                     "  Bearer \t" KEY_A "  "};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) judged(k, good[i], STATUS_OK, wrong);
  static const char *const none[] = {NULL,           "",    "   ",           "Basic " KEY_A,
                                     "Bearer" KEY_A, KEY_A, "Bearers " KEY_A};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++)
    judged(k, none[i], STATUS_UNAUTHORIZED, plain);
  static const char *const bad[] = {"Bearer",
                                    "Bearer  ",
                                    "Bearer " KEY_A "x",
                                    "Bearer " KEY_A " " KEY_B,
                                    "Bearer " KEY_A "," KEY_B,
                                    "Bearer first-key"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    judged(k, bad[i], STATUS_UNAUTHORIZED, wrong);
  struct header h;
  struct error e = {0};
  header_init(&h);
  header_add(&h, "Authorization", 13, "Bearer " KEY_A);
  header_add(&h, "Authorization", 13, "Bearer " KEY_A);
  header_finish(&h);
  assert_int_equal(bearer_check(&h, k, &e), STATUS_UNAUTHORIZED);
  api_keys_free(k);
}

static void which_paths_need_a_key(void **state) {
  (void)state;
  const struct config shut = {.metrics_open = false}, open = {.metrics_open = true};
  for (int r = 0; r < ROUTE_COUNT; r++) {
    const enum route route = (enum route)r;
    const bool anyone = route == ROUTE_PROBLEMS || route == ROUTE_PROBLEM ||
                        route == ROUTE_HEALTH || route == ROUTE_READY || route == ROUTE_V2_LIVE ||
                        route == ROUTE_V2_READY || route == ROUTE_PAGE;
    assert_int_equal(bearer_is_needed(route, &shut), !anyone);
    assert_int_equal(bearer_is_needed(route, &open), !anyone && route != ROUTE_METRICS);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_key_a_line),
      cmocka_unit_test(bad_lines_are_told_by_number_alone),
      cmocka_unit_test(as_long_as_they_may_be),
      cmocka_unit_test(as_many_as_there_may_be),
      cmocka_unit_test(a_file_too_large),
      cmocka_unit_test(each_look_compares_everything),
      cmocka_unit_test(who_may_write_it_matters),
      cmocka_unit_test(files_that_are_none),
      cmocka_unit_test(what_a_head_brings),
      cmocka_unit_test(which_paths_need_a_key),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
