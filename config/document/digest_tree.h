/* digest_tree: the digest of much data, as a tree of SHA-256 whose leaves are hashed side by side.
 *
 * The data are cut into leaves of 64 KiB, of which the last may be shorter; the digest is the
 * SHA-256 of the concatenated SHA-256s of the leaves, 32 bytes each. */
#ifndef CONFIG_DIGEST_TREE_H
#define CONFIG_DIGEST_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "config/document/digest.h"
#include "core/base/status.h"

#define DIGEST_TREE_PREFIX "sha256-tree-64KiB:"

enum {
  DIGEST_TREE_LEAF = 64 * 1024,
  DIGEST_TREE_TEXT_SIZE = sizeof DIGEST_TREE_PREFIX - 1 + DIGEST_TEXT_SIZE
};

/* Writes DIGEST_TREE_PREFIX and the digest of the parts in lower-case hexadecimal. In a job of a
 * team, its threads share the leaves (core/base/team.h). STATUS_OUT_OF_MEMORY. */
enum status digest_tree_text(const struct digest_part *part, size_t parts,
                             char out[DIGEST_TREE_TEXT_SIZE], struct error *e);

/* The same digest of `size` bytes that arrive in pieces of any size. */
struct digest_tree_flow;

struct digest_tree_flow *digest_tree_flow_new(uint64_t size, struct error *e); /* NULL: no memory */
enum status digest_tree_flow_add(struct digest_tree_flow *f, const void *bytes, size_t size,
                                 struct error *e);
void digest_tree_flow_end(struct digest_tree_flow *f, char out[DIGEST_TREE_TEXT_SIZE]);
void digest_tree_flow_free(struct digest_tree_flow *f); /* NULL is fine */

#endif
