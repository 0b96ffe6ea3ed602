/* test_digest: SHA-256 one by one and side by side at each level of instructions, and the tree that
 * is made of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/document/digest.h"
#include "config/document/digest_tree.h"
#include "core/base/size.h"

/* The digests of FIPS 180-2 and of the empty message. */
static const char of_nothing[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
static const char of_abc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
static const char of_two_blocks[] =
    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
static const char of_a_million[] =
    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

enum { MILLION = 1000000 }; /* which is a multiple of 64 */

static void assert_digest(const unsigned char digest[DIGEST_SIZE], const char *expected) {
  char text[DIGEST_TEXT_SIZE];
  digest_hex(digest, text);
  assert_string_equal(text, expected);
}

static void assert_bytes(const void *bytes, size_t size, const char *expected) {
  unsigned char digest[DIGEST_SIZE];
  digest_bytes(bytes, size, digest);
  assert_digest(digest, expected);
}

static unsigned char *random_bytes(size_t size, uint64_t seed) {
  unsigned char *bytes = malloc(size + 1);
  assert_non_null(bytes);
  for (size_t i = 0; i < size; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    bytes[i] = (unsigned char)(seed >> 56);
  }
  return bytes;
}

static void known_messages_have_their_digests(void **unused) {
  (void)unused;
  static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  char *million = malloc(MILLION);
  assert_non_null(million);
  memset(million, 'a', MILLION);
  assert_bytes("", 0, of_nothing);
  assert_bytes("abc", 3, of_abc);
  assert_bytes(two_blocks, strlen(two_blocks), of_two_blocks);
  assert_bytes(million, MILLION, of_a_million);
  free(million);
}

/* The levels that this processor has, and ATTEND_CPU allows. */
static const struct sha256_level *level_at(enum cpu_level level) {
  return level <= cpu_level() ? sha256_level(level) : NULL;
}

static void lanes_know_the_same(void **unused) {
  (void)unused;
  unsigned char *million = malloc(MILLION), digest[SHA256_LANES_MOST][DIGEST_SIZE];
  const unsigned char *message[SHA256_LANES_MOST];
  assert_non_null(million);
  memset(million, 'a', MILLION);
  for (size_t i = 0; i < SHA256_LANES_MOST; i++) message[i] = million;
  for (enum cpu_level at = 0; at < CPU_LEVEL_COUNT; at++) {
    const struct sha256_level *level = level_at(at);
    if (!level) continue;
    level->hash(message, MILLION, digest);
    for (size_t i = 0; i < level->lanes; i++) assert_digest(digest[i], of_a_million);
    level->hash(message, 0, digest);
    for (size_t i = 0; i < level->lanes; i++) assert_digest(digest[i], of_nothing);
  }
  free(million);
}

/* Each lane has a message of its own, at any address. */
static void lanes_do_not_mix(void **unused) {
  (void)unused;
  static const size_t sizes[] = {64, 128, 192, 4096, DIGEST_TREE_LEAF};
  unsigned char *bytes = random_bytes(DIGEST_TREE_LEAF + 100 * SHA256_LANES_MOST, 1);
  unsigned char digest[SHA256_LANES_MOST][DIGEST_SIZE], expected[DIGEST_SIZE];
  const unsigned char *message[SHA256_LANES_MOST];
  for (size_t i = 0; i < SHA256_LANES_MOST; i++) message[i] = bytes + 97 * i;
  for (enum cpu_level at = 0; at < CPU_LEVEL_COUNT; at++) {
    const struct sha256_level *level = level_at(at);
    for (size_t s = 0; level && s < sizeof sizes / sizeof *sizes; s++) {
      level->hash(message, sizes[s], digest);
      for (size_t i = 0; i < level->lanes; i++) {
        digest_bytes(message[i], sizes[s], expected);
        assert_memory_equal(digest[i], expected, DIGEST_SIZE);
      }
    }
  }
  free(bytes);
}

/* As its description has it, one leaf after the other. */
static void plain_tree(const unsigned char *bytes, size_t size, char out[DIGEST_TREE_TEXT_SIZE]) {
  const size_t leaves = (size + DIGEST_TREE_LEAF - 1) / DIGEST_TREE_LEAF;
  unsigned char *leaf = malloc(leaves * DIGEST_SIZE + 1), top[DIGEST_SIZE];
  assert_non_null(leaf);
  for (size_t i = 0; i < leaves; i++)
    digest_bytes(bytes + i * DIGEST_TREE_LEAF,
                 size_min(DIGEST_TREE_LEAF, size - i * DIGEST_TREE_LEAF), leaf + i * DIGEST_SIZE);
  digest_bytes(leaf, leaves * DIGEST_SIZE, top);
  memcpy(out, DIGEST_TREE_PREFIX, strlen(DIGEST_TREE_PREFIX));
  digest_hex(top, out + strlen(DIGEST_TREE_PREFIX));
  free(leaf);
}

/* However the data are cut into parts, empty ones among them, and however long they are. */
static void the_tree_is_that_of_its_description(void **unused) {
  (void)unused;
  static const size_t sizes[] = {0,
                                 1,
                                 63,
                                 DIGEST_TREE_LEAF - 1,
                                 DIGEST_TREE_LEAF,
                                 DIGEST_TREE_LEAF + 1,
                                 33 * DIGEST_TREE_LEAF,
                                 70 * DIGEST_TREE_LEAF + 12345};
  static const size_t cuts[] = {1, 0, 4096, 3 * DIGEST_TREE_LEAF, 0, 40 * DIGEST_TREE_LEAF + 4, 8};
  enum { CUTS = sizeof cuts / sizeof *cuts };
  unsigned char *bytes = random_bytes(71 * DIGEST_TREE_LEAF, 2);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char whole[DIGEST_TREE_TEXT_SIZE], text[DIGEST_TREE_TEXT_SIZE];
    struct digest_part part[CUTS + 1], all = {bytes, sizes[i]};
    struct error e = {0};
    size_t at = 0;
    for (size_t p = 0; p <= CUTS; p++) {
      const size_t n = p < CUTS ? size_min(cuts[p], sizes[i] - at) : sizes[i] - at;
      part[p] = (struct digest_part){n > 0 ? bytes + at : NULL, n};
      at += n;
    }
    plain_tree(bytes, sizes[i], whole);
    assert_int_equal(digest_tree_text(&all, 1, text, &e), STATUS_OK);
    assert_string_equal(text, whole);
    assert_int_equal(digest_tree_text(part, CUTS + 1, text, &e), STATUS_OK);
    assert_string_equal(text, whole);
    struct digest_tree_flow *flow = digest_tree_flow_new(sizes[i], &e);
    assert_non_null(flow);
    for (size_t j = 0; j <= CUTS; j++)
      assert_int_equal(digest_tree_flow_add(flow, part[j].bytes, part[j].size, &e), STATUS_OK);
    digest_tree_flow_end(flow, text);
    digest_tree_flow_free(flow);
    assert_string_equal(text, whole);
  }
  free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(known_messages_have_their_digests),
      cmocka_unit_test(lanes_know_the_same),
      cmocka_unit_test(lanes_do_not_mix),
      cmocka_unit_test(the_tree_is_that_of_its_description),
  };
  cmocka_set_message_output(CM_OUTPUT_TAP);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
