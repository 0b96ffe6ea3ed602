/* layout: which tensors of a checkpoint make the layer.
 *
 * plain  {query,key,value,output}.weight, .bias; score.{query,key,vector,weight}
 * torch  in_proj_weight [3E, E] or {q,k,v}_proj_weight, one in_proj_bias [3E], out_proj.weight,
 *        .bias; with `layer` i all behind layers.{i}.self_attn.
 * d2l    {W_q,W_k,W_v,W_o}.weight, .bias; in additive attention without projections
 *        {W_q,W_k,w_v}.weight, which belong to the score
 * Else the parameters of a score have plain's names in all layouts. They are called exactly so or
 * have .weight behind; a .bias beside one is refused.
 * A `prefix` stands before all names. Without one, torch and d2l names are looked for behind any
 * prefix that ends with a dot, and must be found only once. `auto` is the one layout whose names
 * are found. A `tensors` map names the roles instead: a tensor of exactly that name is taken as
 * it is and alone; otherwise the name is a stem for .weight and, if there is one, .bias. */
#ifndef CONFIG_LAYOUT_H
#define CONFIG_LAYOUT_H

#include "config/checkpoint.h"
#include "config/definition.h"

/* One role. Entries borrow from the file; where a tensor holds several roles they are cut to the
 * shape of this one's part, which begins with so many numbers of the whole. */
struct layout_matrix {
  bool found, has_bias;
  struct checkpoint_entry weight; /* rank 2, or maybe 1 of score.vector; no dimension 0 */
  struct checkpoint_entry bias;   /* rank 1, as long as the weight has rows */
  uint64_t weight_from, bias_from;
};

/* Finds the roles that the definition has. Returns what the layout is called ("plain",
 * "torch", "d2l", "tensors"; "none" if it has no role), or NULL with STATUS_CONFIG naming the
 * tensor. */
const char *layout_find(const struct checkpoint *file, const struct definition *d,
                        struct layout_matrix matrix[ROLE_COUNT], struct error *e);

#endif
