/* digest_tree: the digest of much data, as a tree of SHA-256. Threads of a team hash pieces of
 * PIECE leaves each. */
#include "config/document/digest_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/size.h"
#include "core/base/team.h"

enum { PIECE = 32 }; /* leaves that one thread hashes at a time, a multiple of all lanes */

_Static_assert(PIECE % SHA256_LANES_MOST == 0, "a piece fills all lanes");

struct digest_tree {
  const struct digest_part *part;
  size_t size, leaves;
  unsigned char (*leaf)[DIGEST_SIZE]; /* [leaves], the digests */
};

/* The size of the leaf in bytes. */
static size_t leaf_size(const struct digest_tree *t, size_t leaf) {
  return size_min(DIGEST_TREE_LEAF, t->size - leaf * DIGEST_TREE_LEAF);
}

/* The bytes of the leaf; NULL if they lie in more than one part. */
static const unsigned char *leaf_place(const struct digest_tree *t, size_t leaf) {
  size_t at = leaf * DIGEST_TREE_LEAF;
  const struct digest_part *p = t->part;
  for (; at >= p->size; p++) at -= p->size;
  return leaf_size(t, leaf) <= p->size - at ? (const unsigned char *)p->bytes + at : NULL;
}

/* Hashes a leaf that leaf_place has found, or that it must gather. */
static void hash_leaf(const struct digest_tree *t, size_t leaf, const unsigned char *place) {
  unsigned char gathered[DIGEST_TREE_LEAF];
  size_t at = leaf * DIGEST_TREE_LEAF, got = 0;
  for (const struct digest_part *p = t->part; !place && got < leaf_size(t, leaf); p++) {
    const size_t n = at < p->size ? size_min(leaf_size(t, leaf) - got, p->size - at) : 0;
    if (n > 0) memcpy(gathered + got, (const unsigned char *)p->bytes + at, n);
    at -= n > 0 ? at : p->size;
    got += n;
  }
  digest_bytes(place ? place : gathered, leaf_size(t, leaf), t->leaf[leaf]);
}

/* Complete leaves that lie in one part fill the lanes; the few others are hashed alone. */
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

static enum status hash_leaves(struct digest_tree *t, struct error *e) {
  return team_split((t->leaves + PIECE - 1) / PIECE, hash_piece, t, e);
}

static void write_top(const void *leaf, size_t leaves, char out[DIGEST_TREE_TEXT_SIZE]) {
  unsigned char top[DIGEST_SIZE];
  digest_bytes(leaf, leaves * DIGEST_SIZE, top);
  memcpy(out, DIGEST_TREE_PREFIX, sizeof DIGEST_TREE_PREFIX - 1);
  digest_hex(top, out + sizeof DIGEST_TREE_PREFIX - 1);
}

enum status digest_tree_text(const struct digest_part *part, size_t parts,
                             char out[DIGEST_TREE_TEXT_SIZE], struct error *e) {
  struct digest_tree t = {.part = part};
  for (size_t i = 0; i < parts; i++) t.size += part[i].size;
  t.leaves = (t.size + DIGEST_TREE_LEAF - 1) / DIGEST_TREE_LEAF;
  t.leaf = malloc(t.leaves * DIGEST_SIZE + 1);
  if (!t.leaf) return error_no_memory(e);
  hash_leaves(&t, e);
  write_top(t.leaf, t.leaves, out);
  free(t.leaf);
  return e->status;
}

/* --- in pieces --- */

struct digest_tree_flow {
  size_t most, made; /* leaves in all, and leaves whose digests are known */
  size_t held;       /* bytes of the next leaf */
  unsigned char bytes[DIGEST_TREE_LEAF];
  unsigned char leaf[][DIGEST_SIZE]; /* [most] */
};

struct digest_tree_flow *digest_tree_flow_new(uint64_t size, struct error *e) {
  const uint64_t leaves = size / DIGEST_TREE_LEAF + 1;
  struct digest_tree_flow *f = NULL;
  if (leaves < SIZE_MAX / (2 * DIGEST_SIZE)) f = malloc(sizeof *f + (size_t)leaves * DIGEST_SIZE);
  if (!f) {
    error_no_memory(e);
    return NULL;
  }
  f->most = (size_t)leaves;
  f->made = f->held = 0;
  return f;
}

void digest_tree_flow_free(struct digest_tree_flow *f) { free(f); }

/* Appends to the incomplete leaf, at most to its end; returns how many bytes it took. */
static size_t hold_bytes(struct digest_tree_flow *f, const unsigned char *bytes, size_t size) {
  const size_t n = size_min(size, DIGEST_TREE_LEAF - f->held);
  memcpy(f->bytes + f->held, bytes, n);
  f->held += n;
  if (f->held < DIGEST_TREE_LEAF) return n;
  must(f->made < f->most);
  digest_bytes(f->bytes, DIGEST_TREE_LEAF, f->leaf[f->made++]);
  f->held = 0;
  return n;
}

enum status digest_tree_flow_add(struct digest_tree_flow *f, const void *bytes, size_t size,
                                 struct error *e) {
  const unsigned char *at = bytes;
  if (size == 0) return STATUS_OK;
  if (f->held > 0) {
    const size_t n = hold_bytes(f, at, size);
    at += n;
    size -= n;
  }
  const size_t whole = f->held > 0 ? 0 : size / DIGEST_TREE_LEAF;
  if (whole > 0) {
    const struct digest_part part = {at, whole * DIGEST_TREE_LEAF};
    struct digest_tree t = {
        .part = &part, .size = part.size, .leaves = whole, .leaf = f->leaf + f->made};
    must(whole <= f->most - f->made);
    if (hash_leaves(&t, e)) return e->status;
    f->made += whole;
    at += part.size;
    size -= part.size;
  }
  if (size > 0) hold_bytes(f, at, size);
  return STATUS_OK;
}

void digest_tree_flow_end(struct digest_tree_flow *f, char out[DIGEST_TREE_TEXT_SIZE]) {
  if (f->held > 0) {
    must(f->made < f->most);
    digest_bytes(f->bytes, f->held, f->leaf[f->made++]);
    f->held = 0;
  }
  write_top(f->leaf, f->made, out);
}
