/* guard: the table of guarded keys, in the order of notes. */
#include "config/family/guard.h"

#define KEY(name, supported) .key = name, .only = supported
#define NO_MODEL             .models = GUARD_NO_MODEL

static const struct guard guards[] = {
    {KEY("is_decoder", "false"), .models = GUARD_ENCODERS},
    {KEY("add_cross_attention", "false"), .models = GUARD_ENCODERS},
    {KEY("pruned_heads", "{}"), .layers = GUARD_LAYER},
    {KEY("quantization_config", "{}"), .layers = GUARD_LAYER},
    {KEY("is_causal", "false"), .models = GUARD_ENCODERS},
    {KEY("is_causal", "true"), .models = GUARD_DECODERS, .rotary = true},
    {KEY("use_bidirectional_attention", "false"), .models = GUARD_DECODERS, .rotary = true},
    /* The library takes it for the windows of layers differently from version to version. */
    {KEY("is_causal", "true"), .family = "gemma2"},
    {KEY("is_causal", "true"), .family = "gemma3"},

    {KEY("query_pre_attn_scalar", "the size of a head"), .value = GUARD_HEAD_SIZE,
     .layers = GUARD_UNSCALED},
    {KEY("attention_multiplier", "1 / sqrt(the size of a head)"), .value = GUARD_HEAD_SCALE,
     .layers = GUARD_UNSCALED},
    {KEY("scale_attn_weights", "true"), .family = "gpt2", .layers = GUARD_UNSCALED},
    {KEY("scale_attn_by_inverse_layer_idx", "false"), .family = "gpt2", .layers = GUARD_DIVIDED},

    {KEY("rope_scaling", "null"), .rotary = true, .layers = GUARD_TURNS},
    {KEY("partial_rotary_factor", "1"), .layers = GUARD_ROTARY},
    {KEY("rope_parameters", "null"), NO_MODEL, .layers = GUARD_TURNS},
    {KEY("rotary_pct", "1"), .layers = GUARD_ROTARY},
    {KEY("rope_scaling", "null"), .family = "modernbert"},
    {KEY("rotary_emb_base", "20000"), .family = "jina_v3"},
    {KEY("no_rope_layers", "1"), .value = GUARD_EACH, .layers = GUARD_ROTARY},

    {KEY("sliding_window", "null"), .moot = "use_sliding_window", .layers = GUARD_REACH},
    {KEY("layer_types", "\"full_attention\""), .value = GUARD_EACH, NO_MODEL, .layers = GUARD_KIND},
    {KEY("attention_chunk_size", "null"), .value = GUARD_OFF, .layers = GUARD_REACH},
    {KEY("attention_type", "\"original_full\""), .layers = GUARD_REACH},
    {KEY("position_embedding_type", "\"absolute\""), .family = "bert", .layers = GUARD_POSITIONS},

    {KEY("position_embedding_type", "\"alibi\""), .family = "jina_bert"},
    {KEY("feed_forward_type", "\"geglu\""), .family = "jina_bert"},
    {KEY("hidden_act", "\"gelu\""), .family = "jina_bert"},

    {KEY("attn_logit_softcapping", "null"), .layers = GUARD_LAYER},
    {KEY("final_logit_softcapping", "null")},
    {KEY("clip_qkv", "null"), .value = GUARD_OFF, .layers = GUARD_LAYER},
    {KEY("alibi", "false"), .layers = GUARD_LAYER},
    {KEY("use_alibi", "false"), .layers = GUARD_LAYER},
    {KEY("use_qk_norm", "false"), .layers = GUARD_LAYER},
    {KEY("qk_norm", "false"), .layers = GUARD_LAYER},
    {KEY("qk_layernorm", "false"), .layers = GUARD_LAYER},

    /* Experts are feed-forward layers: an attention beside them is computed as usual. */
    {KEY("num_experts", "0")},
    {KEY("num_local_experts", "0")},
    {KEY("add_cross_attention", "false"), .family = "gpt2"},
    {KEY("normalize_before", "false"), .family = "bart"},
    {KEY("normalize_embedding", "true"), .family = "bart"},
    {KEY("add_final_layer_norm", "false"), .family = "bart"},
    {KEY("normalize_before", "true"), .family = "mbart"},
    {KEY("normalize_embedding", "true"), .family = "mbart"},
    {KEY("add_final_layer_norm", "true"), .family = "mbart"},
    {KEY("normalize_before", "true"), .family = "m2m100"},
    {KEY("normalize_embedding", "false"), .family = "m2m100"},
    {KEY("add_final_layer_norm", "true"), .family = "m2m100"},
    {KEY("normalize_before", "true"), .family = "pegasus"},
    {KEY("normalize_embedding", "false"), .family = "pegasus"},
    {KEY("add_final_layer_norm", "true"), .family = "pegasus"},
    {KEY("normalize_before", "false"), .family = "marian"},
    {KEY("normalize_embedding", "false"), .family = "marian"},
    {KEY("add_final_layer_norm", "false"), .family = "marian"},
    {KEY("extra_pos_embeddings", "2"), .family = "bart"},
    {KEY("extra_pos_embeddings", "2"), .family = "mbart"},
    {KEY("position_embedding_type", "\"absolute\""), .family = "electra"},
    {KEY("position_embedding_type", "\"absolute\""), .family = "albert"},
    {KEY("relative_attention_num_buckets", "32"), .family = "mpnet"},
    {KEY("conv_groups", "1"), .family = "deberta-v2"},
    {KEY("pooler_hidden_act", "\"gelu\""), .family = "deberta-v2"},
    {KEY("prenorm", "false"), .family = "nomic_bert"},
    {KEY("use_rms_norm", "false"), .family = "nomic_bert"},
    {KEY("parallel_block", "false"), .family = "nomic_bert"},
    {KEY("causal", "false"), .family = "nomic_bert"},
    {KEY("norm_mlp", "false"), .family = "nomic_bert"},
    {KEY("num_heads_kv", "null"), .family = "nomic_bert"},
    {KEY("moe_every_n_layers", "0"), .family = "nomic_bert"},
    {KEY("rotary_emb_fraction", "1"), .family = "nomic_bert"},
    {KEY("rotary_emb_interleaved", "false"), .family = "nomic_bert"},
    {KEY("rotary_emb_scale_base", "null"), .family = "nomic_bert"},
    {KEY("rotary_head_dim", "false"), .family = "nomic_bert"},
    {KEY("pack_qkv", "true"), .family = "gte"},
    {KEY("layer_norm_type", "\"layer_norm\""), .family = "gte"},
    {KEY("position_embedding_type", "\"rope\""), .family = "gte"},
    {KEY("logn_attention_scale", "false"), .family = "gte"},
    {KEY("pooler_act", "\"tanh\""), .family = "vit"},
};

size_t guard_count(void) { return sizeof guards / sizeof *guards; }

const struct guard *guard_at(size_t index) { return &guards[index]; }
