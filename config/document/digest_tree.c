/* digest_tree: the digest of much data, as a tree of SHA-256. */
#include "config/document/digest_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/sha256.h"
#include "core/run/size.h"
#include "core/run/team.h"

enum { PIECE = 32 }; /* leaves that one thread hashes at a time, a multiple of all lanes */

_Static_assert(PIECE % SHA256_LANES_MOST == 0, "a piece fills all lanes");

struct digest_tree {
  const struct digest_part *part;
  size_t size, leaves;
  unsigned char (*leaf)[DIGEST_SIZE]; /* [leaves], the digests */
};

/* Bytes of the leaf. */
static size_t leaf_size(const struct digest_tree *t, size_t leaf) {
  return size_min(DIGEST_TREE_LEAF, t->size - leaf * DIGEST_TREE_LEAF);
}

/* Where the leaf lies; NULL: in more than one part. */
static const unsigned char *leaf_place(const struct digest_tree *t, size_t leaf) {
  size_t at = leaf * DIGEST_TREE_LEAF;
  const struct digest_part *p = t->part;
  for (; at >= p->size; p++) at -= p->size;
  return leaf_size(t, leaf) <= p->size - at ? (const unsigned char *)p->bytes + at : NULL;
}

static void gather_leaf(const struct digest_tree *t, size_t leaf, unsigned char *out) {
  size_t at = leaf * DIGEST_TREE_LEAF, left = leaf_size(t, leaf);
  for (const struct digest_part *p = t->part; left > 0; p++) {
    const size_t n = at < p->size ? size_min(left, p->size - at) : 0;
    if (n > 0) memcpy(out, (const unsigned char *)p->bytes + at, n);
    at -= n > 0 ? at : p->size;
    out += n;
    left -= n;
  }
}

static void hash_leaf(const struct digest_tree *t, size_t leaf, const unsigned char *place) {
  unsigned char gathered[DIGEST_TREE_LEAF];
  if (!place) gather_leaf(t, leaf, gathered);
  digest_bytes(place ? place : gathered, leaf_size(t, leaf), t->leaf[leaf]);
}

/* Leaves that lie in one part and are whole fill the lanes; the few others are hashed alone. */
static enum status hash_piece(void *of, size_t index, struct error *e) {
  const struct digest_tree *t = of;
  const struct sha256_level *level = sha256_level(cpu_level());
  const size_t end = size_min(t->leaves, (index + 1) * PIECE);
  const unsigned char *message[SHA256_LANES_MOST];
  size_t leaf[SHA256_LANES_MOST], filled = 0;
  unsigned char digest[SHA256_LANES_MOST][DIGEST_SIZE];
  for (size_t i = index * PIECE; i < end; i++) {
    message[filled] = leaf_place(t, i);
    if (!level || !message[filled] || leaf_size(t, i) < DIGEST_TREE_LEAF) {
      hash_leaf(t, i, message[filled]);
      continue;
    }
    leaf[filled++] = i;
    if (filled < level->lanes) continue;
    level->hash(message, DIGEST_TREE_LEAF, digest);
    for (size_t lane = 0; lane < filled; lane++)
      memcpy(t->leaf[leaf[lane]], digest[lane], DIGEST_SIZE);
    filled = 0;
  }
  for (size_t lane = 0; lane < filled; lane++) hash_leaf(t, leaf[lane], message[lane]);
  return e->status;
}

enum status digest_tree_text(const struct digest_part *part, size_t parts,
                             char out[DIGEST_TREE_TEXT_SIZE], struct error *e) {
  struct digest_tree t = {.part = part};
  for (size_t i = 0; i < parts; i++) t.size += part[i].size;
  t.leaves = (t.size + DIGEST_TREE_LEAF - 1) / DIGEST_TREE_LEAF;
  t.leaf = malloc(t.leaves * DIGEST_SIZE + 1);
  if (!t.leaf) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a digest");
  unsigned char top[DIGEST_SIZE];
  team_split((t.leaves + PIECE - 1) / PIECE, hash_piece, &t, e);
  digest_bytes(t.leaf, t.leaves * DIGEST_SIZE, top);
  free(t.leaf);
  memcpy(out, DIGEST_TREE_PREFIX, sizeof DIGEST_TREE_PREFIX - 1);
  digest_hex(top, out + sizeof DIGEST_TREE_PREFIX - 1);
  return e->status;
}
