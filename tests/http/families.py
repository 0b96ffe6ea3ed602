"""families: small checkpoints as each family of models writes them, and what its layers compute.

A family is a function that fills a File with the tensors that its models have, under their names
and in their shapes, the layer norms, embeddings and buffers beside the attention included, and
returns the layers that can be served: Served(definition, module). The files are written as single
safetensors files, in shards with an index, or as .npz.
"""
import json
import os
import struct

import numpy as np

import modules

# How numpy holds what a type of safetensors stores. BF16 are the upper halves of float32.
HELD = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16,
        "I64": np.int64, "I32": np.int32, "U8": np.uint8, "BOOL": np.bool_, "F8_E4M3": np.uint8}
DTYPES = ("F32", "F16", "BF16", "F64")


def bfloat16(x):
    """The upper halves of float32 numbers, rounded to nearest, ties to even."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


class File:
    """The tensors of a checkpoint: name -> (type, array as stored)."""

    def __init__(self, seed, dtype="F32"):
        self.rng, self.dtype = np.random.default_rng(seed), dtype
        self.tensors = {}

    def add(self, name, array, dtype=None):
        dtype = dtype or self.dtype
        array = np.array(array, order="C")
        if dtype == "BF16":
            array = bfloat16(array)
        self.tensors[name] = dtype, array.astype(HELD[dtype])

    def normal(self, name, *shape, size=1.0):
        array = self.rng.normal(0, size, shape)
        if array.size > 4:
            array.flat[1:3] = 6e-8, -3e-5  # below the normal numbers of float16
        self.add(name, array)

    def weight(self, name, *shape, fan_in=None, size=1.0):
        """A matrix that makes numbers of unit scale of such."""
        self.normal(name, *shape, size=size * (fan_in or shape[1]) ** -0.5)

    def linear(self, stem, out, size, bias=True):
        self.weight(f"{stem}.weight", out, size)
        if bias:
            self.normal(f"{stem}.bias", out)

    def norm(self, stem, size, bias=True, names=("weight", "bias")):
        self.add(f"{stem}.{names[0]}", np.ones(size))
        if bias:
            self.add(f"{stem}.{names[1]}", np.zeros(size))

    def unused(self, name, *shape):
        """A tensor whose numbers nobody may look at: some are not finite."""
        array = self.rng.normal(0, 1, shape)
        array.flat[0], array.flat[-1] = np.nan, np.inf
        self.add(name, array)

    def get(self, name):
        """The numbers of a tensor as float32 holds them, as float64."""
        dtype, array = self.tensors[name]
        if dtype == "BF16":
            array = (array.astype(np.uint32) << 16).view(np.float32)
        return array.astype(np.float32).astype(np.float64)


class Served:
    """A layer of a file: what the configuration says to get it, and the module that it is.

    `cross`: its keys are made of other states than its queries."""

    def __init__(self, definition, module, cross=False):
        self.definition, self.module, self.cross = definition, module, cross


# --- the families ----------------------------------------------------------------------------------

def bert_layers(file, size, heads, stem, inner="attention.self", count=12, vit=False):
    """The encoder of BertModel, RobertaModel (the same) and ViTModel."""
    served = {}
    for i in range(count):
        layer = f"{stem}encoder.layer.{i}"
        for role in ("query", "key", "value"):
            file.linear(f"{layer}.{inner}.{role}", size, size)
        file.linear(f"{layer}.attention.output.dense", size, size)
        if vit:
            file.norm(f"{layer}.layernorm_before", size)
            file.norm(f"{layer}.layernorm_after", size)
        else:
            file.norm(f"{layer}.attention.output.LayerNorm", size,
                      names=("gamma", "beta") if i % 2 else ("weight", "bias"))
            file.norm(f"{layer}.output.LayerNorm", size)
        file.linear(f"{layer}.intermediate.dense", 2 * size, size)
        file.linear(f"{layer}.output.dense", size, 2 * size)
        if i in (0, 1, count - 1):  # 1 and 11 begin alike
            module = modules.Bert(file.get, heads, f"{layer}.{inner}", f"{layer}.attention.output")
            served[f"layer{i}"] = Served({"layer": i, "heads": heads}, module)
    return served


def bert(file):
    """BertForMaskedLM."""
    size = 24
    file.add("bert.embeddings.position_ids", np.arange(9)[None], "I64")
    file.unused("bert.embeddings.word_embeddings.weight", 31, size)
    file.normal("bert.embeddings.position_embeddings.weight", 9, size)
    file.normal("bert.embeddings.token_type_embeddings.weight", 2, size)
    file.norm("bert.embeddings.LayerNorm", size)
    served = bert_layers(file, size, 4, "bert.")
    file.linear("bert.pooler.dense", size, size)
    file.normal("cls.predictions.bias", 31)
    file.linear("cls.predictions.transform.dense", size, size)
    return served


def bert_bare(file):
    """BertModel, saved without the model's name before everything."""
    file.unused("embeddings.word_embeddings.weight", 31, 16)
    file.norm("embeddings.LayerNorm", 16)
    served = bert_layers(file, 16, 2, "", count=3)
    file.linear("pooler.dense", 16, 16)
    return served


def roberta(file):
    """RobertaForMaskedLM."""
    size = 30
    file.add("roberta.embeddings.position_ids", np.arange(11)[None], "I64")
    file.unused("roberta.embeddings.word_embeddings.weight", 31, size)
    file.norm("roberta.embeddings.LayerNorm", size)
    served = bert_layers(file, size, 5, "roberta.", count=3)
    file.normal("lm_head.bias", 31)
    file.linear("lm_head.dense", size, size)
    file.norm("lm_head.layer_norm", size)
    return served


def vit(file):
    """ViTModel."""
    size = 18
    file.normal("embeddings.cls_token", 1, 1, size)
    file.unused("embeddings.position_embeddings", 1, 5, size)
    file.normal("embeddings.patch_embeddings.projection.weight", size, 3, 2, 2)
    file.normal("embeddings.patch_embeddings.projection.bias", size)
    served = bert_layers(file, size, 3, "", "attention.attention", 3, vit=True)
    file.norm("layernorm", size)
    file.linear("pooler.dense", size, size)
    return served


def vit_classifier(file):
    """ViTForImageClassification: ViTModel behind "vit."."""
    size = 12
    file.normal("vit.embeddings.cls_token", 1, 1, size)
    served = bert_layers(file, size, 2, "vit.", "attention.attention", 2, vit=True)
    file.norm("vit.layernorm", size)
    file.linear("classifier", 10, size)
    return served


def clip(file):
    """CLIPModel: two encoders of different widths in one file."""
    served = {}
    file.add("logit_scale", np.array(2.6592))
    file.add("text_model.embeddings.position_ids", np.arange(7)[None], "I64")
    file.unused("text_model.embeddings.token_embedding.weight", 31, 16)
    file.normal("vision_model.embeddings.class_embedding", 20)
    file.normal("vision_model.embeddings.patch_embedding.weight", 20, 3, 2, 2)
    for model, size, heads in (("text_model", 16, 2), ("vision_model", 20, 5)):
        for i in range(2):
            layer = f"{model}.encoder.layers.{i}"
            for role in "kvq":
                file.linear(f"{layer}.self_attn.{role}_proj", size, size)
            file.linear(f"{layer}.self_attn.out_proj", size, size)
            file.norm(f"{layer}.layer_norm1", size)
            file.linear(f"{layer}.mlp.fc1", 2 * size, size)
            file.linear(f"{layer}.mlp.fc2", size, 2 * size)
            file.norm(f"{layer}.layer_norm2", size)
            module = modules.Clip(file.get, heads, f"{layer}.self_attn", model == "text_model")
            served[f"{model}.{i}"] = Served({"prefix": f"{model}.", "layer": i, "heads": heads},
                                            module)
    file.norm("text_model.final_layer_norm", 16)
    file.norm("vision_model.pre_layrnorm", 20)  # as the family spells it
    file.weight("text_projection.weight", 8, 16)
    file.weight("visual_projection.weight", 8, 20)
    return served


def gpt2_layers(file, stem, size, heads, count):
    served = {}
    for i in range(count):
        layer = f"{stem}h.{i}"
        file.norm(f"{layer}.ln_1", size)
        file.add(f"{layer}.attn.bias", np.tril(np.ones((9, 9)))[None, None],
                 "F32" if i else "BOOL")  # of an odd size: what follows is unaligned
        file.add(f"{layer}.attn.masked_bias", np.array(-1e4))
        file.weight(f"{layer}.attn.c_attn.weight", size, 3 * size, fan_in=size)
        file.normal(f"{layer}.attn.c_attn.bias", 3 * size)
        file.weight(f"{layer}.attn.c_proj.weight", size, size)
        file.normal(f"{layer}.attn.c_proj.bias", size)
        file.norm(f"{layer}.ln_2", size)
        file.weight(f"{layer}.mlp.c_fc.weight", size, 4 * size)
        file.normal(f"{layer}.mlp.c_fc.bias", 4 * size)
        file.weight(f"{layer}.mlp.c_proj.weight", 4 * size, size)
        file.normal(f"{layer}.mlp.c_proj.bias", size)
        module = modules.Gpt2(file.get, heads, f"{layer}.attn")
        served[f"layer{i}"] = Served({"layer": i, "heads": heads}, module)
    return served


def gpt2(file):
    """GPT2LMHeadModel."""
    file.unused("transformer.wte.weight", 31, 24)
    file.normal("transformer.wpe.weight", 9, 24)
    served = gpt2_layers(file, "transformer.", 24, 4, 3)
    file.norm("transformer.ln_f", 24)
    file.normal("lm_head.weight", 31, 24)
    return served


def gpt2_bare(file):
    """GPT2Model, as the file of the first release is."""
    file.unused("wte.weight", 31, 12)
    served = gpt2_layers(file, "", 12, 3, 2)
    file.norm("ln_f", 12)
    return served


def gpt2_wide(file):
    """Matrices of more numbers than are read at a time."""
    return gpt2_layers(file, "transformer.", 168, 6, 1)


def t5_attention(file, stem, size, heads, d_kv):
    """Queries are small, as the family begins them: scores are not scaled."""
    inner = heads * d_kv
    file.weight(f"{stem}.q.weight", inner, size, size=d_kv ** -0.5)
    for role in "kv":
        file.weight(f"{stem}.{role}.weight", inner, size)
    file.weight(f"{stem}.o.weight", size, inner)


def t5(file):
    """T5ForConditionalGeneration of the first release: a table lies in the first cross attention,
    too, and its models never look at it."""
    size, heads, d_kv, buckets = 20, 3, 8, 32
    served = {}
    file.unused("shared.weight", 31, size)
    for stack in ("encoder", "decoder"):
        file.unused(f"{stack}.embed_tokens.weight", 31, size)
        table = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        for i in range(2):
            block = f"{stack}.block.{i}"
            self_stem = f"{block}.layer.0.SelfAttention"
            t5_attention(file, self_stem, size, heads, d_kv)
            file.norm(f"{block}.layer.0.layer_norm", size, bias=False)
            if i == 0:
                file.normal(table, buckets, heads)
            module = modules.T5(file.get, heads, self_stem, table, stack == "encoder",
                                stack == "decoder")
            served[f"{stack}.{i}"] = Served(
                {"prefix": f"{stack}.", "layer": i, "heads": heads}, module)
            if stack == "decoder":
                cross_stem = f"{block}.layer.1.EncDecAttention"
                t5_attention(file, cross_stem, size, heads, d_kv)
                file.norm(f"{block}.layer.1.layer_norm", size, bias=False)
                if i == 0:
                    file.normal(f"{cross_stem}.relative_attention_bias.weight", buckets, heads)
                served[f"cross.{i}"] = Served({"prefix": f"{cross_stem}.", "heads": heads},
                                              modules.T5(file.get, heads, cross_stem), cross=True)
            last = 2 if stack == "decoder" else 1
            file.linear(f"{block}.layer.{last}.DenseReluDense.wi", 2 * size, size, bias=False)
            file.linear(f"{block}.layer.{last}.DenseReluDense.wo", size, 2 * size, bias=False)
            file.norm(f"{block}.layer.{last}.layer_norm", size, bias=False)
        file.norm(f"{stack}.final_layer_norm", size, bias=False)
    file.normal("lm_head.weight", 31, size)
    return served


def llama_layers(file, size, heads, kv_heads, d, count, biases=False, rope=None):
    served = {}
    for i in range(count):
        layer = f"model.layers.{i}"
        for role, wide in (("q", heads), ("k", kv_heads), ("v", kv_heads)):
            file.linear(f"{layer}.self_attn.{role}_proj", wide * d, size, bias=biases)
        file.linear(f"{layer}.self_attn.o_proj", size, heads * d, bias=False)
        for role, shape in (("gate", (2 * size, size)), ("up", (2 * size, size)),
                            ("down", (size, 2 * size))):
            file.linear(f"{layer}.mlp.{role}_proj", *shape, bias=False)
        file.norm(f"{layer}.input_layernorm", size, bias=False)
        file.norm(f"{layer}.post_attention_layernorm", size, bias=False)
        definition = {"layer": i, "heads": heads, "kv_heads": kv_heads}
        if rope:
            definition["rope"] = {"base": rope}
        module = modules.Llama(file.get, heads, kv_heads, f"{layer}.self_attn", biases,
                               rope or 10000.0)
        served[f"layer{i}"] = Served(definition, module)
    return served


def llama(file):
    """LlamaForCausalLM, with the buffer that earlier versions saved."""
    file.unused("model.embed_tokens.weight", 31, 32)
    served = llama_layers(file, 32, 4, 2, 8, 3)
    file.add("model.layers.0.self_attn.rotary_emb.inv_freq", 1e4 ** (-np.arange(4) / 4))
    file.norm("model.norm", 32, bias=False)
    file.normal("lm_head.weight", 31, 32)
    return served


def qwen2(file):
    """Qwen2ForCausalLM: biases of q, k and v, one key head for six, and a base of its own."""
    file.unused("model.embed_tokens.weight", 31, 36)
    served = llama_layers(file, 36, 6, 1, 10, 2, biases=True, rope=1000000.0)
    file.norm("model.norm", 36, bias=False)
    return served


def whisper(file):
    """WhisperForConditionalGeneration."""
    size, heads = 20, 4
    served = {}
    file.normal("model.encoder.conv1.weight", size, 8, 3)
    file.normal("model.encoder.conv1.bias", size)
    file.normal("model.encoder.embed_positions.weight", 15, size)
    file.unused("model.decoder.embed_tokens.weight", 31, size)
    for stack in ("encoder", "decoder"):
        for i in range(2):
            layer = f"model.{stack}.layers.{i}"
            for kind in ("self_attn", "encoder_attn")[:1 if stack == "encoder" else 2]:
                stem = f"{layer}.{kind}"
                file.linear(f"{stem}.k_proj", size, size, bias=False)
                for role in ("v", "q", "out"):
                    file.linear(f"{stem}.{role}_proj", size, size)
                file.norm(f"{stem}_layer_norm", size)
                cross = kind == "encoder_attn"
                causal = stack == "decoder" and not cross
                definition = {"prefix": f"{stem}."} if cross else \
                    {"prefix": f"model.{stack}.", "layer": i}
                served[f"cross.{i}" if cross else f"{stack}.{i}"] = Served(
                    dict(definition, heads=heads),
                    modules.Whisper(file.get, heads, stem, causal), cross=cross)
            file.linear(f"{layer}.fc1", 2 * size, size)
            file.linear(f"{layer}.fc2", size, 2 * size)
            file.norm(f"{layer}.final_layer_norm", size)
        file.norm(f"model.{stack}.layer_norm", size)
    file.normal("proj_out.weight", 31, size)
    return served


def torch_attention(file, stem, size, kdim=None, vdim=None, bias=True):
    if kdim or vdim:
        for role, width in (("q", size), ("k", kdim or size), ("v", vdim or size)):
            file.weight(f"{stem}{role}_proj_weight", size, width)
    else:
        file.weight(f"{stem}in_proj_weight", 3 * size, size)
    if bias:
        file.normal(f"{stem}in_proj_bias", 3 * size)
    file.linear(f"{stem}out_proj", size, size, bias)


def torch_feed_forward(file, layer, size, norms):
    file.linear(f"{layer}.linear1", 2 * size, size)
    file.linear(f"{layer}.linear2", size, 2 * size)
    for n in range(norms):
        file.norm(f"{layer}.norm{n + 1}", size)


def torch_encoder(file):
    """torch.nn.TransformerEncoder."""
    served = {}
    for i in range(12):
        torch_attention(file, f"layers.{i}.self_attn.", 16)
        torch_feed_forward(file, f"layers.{i}", 16, 2)
        if i in (0, 1, 10):
            module = modules.TorchMultihead(file.get, 4, f"layers.{i}.self_attn.")
            served[f"layer{i}"] = Served({"layer": i, "heads": 4}, module)
    file.norm("norm", 16)
    return served


def torch_transformer(file):
    """torch.nn.Transformer, whose decoder's cross attention takes keys and values of sizes of
    their own (a multihead_attn that was replaced)."""
    size, heads = 18, 3
    served = {}
    for stack in ("encoder", "decoder"):
        for i in range(2):
            layer = f"{stack}.layers.{i}"
            torch_attention(file, f"{layer}.self_attn.", size)
            served[f"{stack}.{i}"] = Served(
                {"prefix": f"{stack}.", "layer": i, "heads": heads} if stack == "encoder" else
                {"prefix": f"{layer}.self_attn.", "heads": heads},
                modules.TorchMultihead(file.get, heads, f"{layer}.self_attn."))
            if stack == "decoder":
                stem = f"{layer}.multihead_attn."
                torch_attention(file, stem, size, *((10, 14) if i else (None, None)))
                served[f"cross.{i}"] = Served(
                    {"prefix": stem, "heads": heads},
                    modules.TorchMultihead(file.get, heads, stem, packed=not i), cross=True)
            torch_feed_forward(file, layer, size, 3 if stack == "decoder" else 2)
        file.norm(f"{stack}.norm", size)
    return served


def torch_bare(file):
    """torch.nn.MultiheadAttention itself, without biases."""
    torch_attention(file, "", 15, bias=False)
    return {"all": Served({"heads": 5}, modules.TorchMultihead(file.get, 5, "", bias=False))}


def torch_wide(file):
    """torch.nn.MultiheadAttention with kdim and vdim, inside somebody's model."""
    file.norm("norm", 12)
    torch_attention(file, "body.attention.", 12, kdim=7, vdim=9)
    file.linear("body.classifier", 3, 12)
    return {"all": Served({"heads": 2}, modules.TorchMultihead(file.get, 2, "body.attention.",
                                                               packed=False), cross=True)}


def d2l_matrices(file, stem, hidden, sizes, bias=False):
    for role, size in zip("qkvo", sizes):
        file.linear(f"{stem}W_{role}", hidden, size, bias)


def d2l_dot(file):
    """The book's TransformerEncoder and a decoder's two attentions."""
    served = {}
    file.normal("embedding.weight", 31, 20)
    for stem, bias in (("blks.block0.attention.", False), ("blks.block1.attention.", True),
                       ("decoder.blks.block0.attention1.", False),
                       ("decoder.blks.block0.attention2.", False)):
        d2l_matrices(file, stem, 20, (20, 20, 20, 20), bias)
        file.norm(stem.rsplit(".", 2)[0] + ".addnorm1.ln", 20)
        served[stem.strip(".")] = Served({"prefix": stem, "heads": 4},
                                         modules.D2lMultihead(file.get, 4, stem, bias),
                                         cross=stem.endswith("2."))
    return served


def d2l_alone(file):
    """The book's MultiHeadAttention with sizes of its own, behind one prefix."""
    d2l_matrices(file, "attention.", 20, (11, 13, 7, 20))
    file.linear("dense", 3, 20)
    return {"all": Served({"heads": 5}, modules.D2lMultihead(file.get, 5, "attention."),
                          cross=True)}


def d2l_additive(file):
    """Seq2SeqAttentionDecoder: AdditiveAttention, which projects for its score alone."""
    for role, size in (("W_q", 12), ("W_k", 9)):
        file.weight(f"decoder.attention.{role}.weight", 8, size)
    file.weight("decoder.attention.w_v.weight", 1, 8, size=2.0)
    file.normal("decoder.embedding.weight", 31, 12)
    file.normal("decoder.rnn.weight_ih_l0", 48, 21)
    return {"all": Served({"score": "additive", "projection": "none", "value_size": 5},
                          modules.D2lAdditive(file.get, "decoder.attention.", 5), cross=True)}


def plain(file, width=14):
    """Matrices under the names of their roles; keys and values of sizes of their own."""
    heads, kv_heads, d, d_v = 6, 3, 5, 4
    for role, out, size in (("query", heads * d, width), ("key", kv_heads * d, 9),
                            ("value", kv_heads * d_v, 11), ("output", 8, heads * d_v)):
        file.linear(role, out, size)
    file.unused("embedding", 31, 14)
    file.add("steps", np.arange(5), "I64")
    return {"all": Served({"heads": heads, "kv_heads": kv_heads},
                          modules.Plain(file.get, heads, kv_heads), cross=True)}


# family -> (layout, function)
FAMILIES = {
    "bert": ("bert", bert), "bert-bare": ("bert", bert_bare), "roberta": ("bert", roberta),
    "vit": ("bert", vit), "vit-classifier": ("bert", vit_classifier), "clip": ("clip", clip),
    "gpt2": ("gpt2", gpt2), "gpt2-bare": ("gpt2", gpt2_bare), "gpt2-wide": ("gpt2", gpt2_wide),
    "t5": ("t5", t5),
    "llama": ("llama", llama), "qwen2": ("llama", qwen2), "whisper": ("whisper", whisper),
    "torch-encoder": ("torch", torch_encoder), "torch-transformer": ("torch", torch_transformer),
    "torch-bare": ("torch", torch_bare), "torch-wide": ("torch", torch_wide),
    "d2l-dot": ("d2l", d2l_dot), "d2l-alone": ("d2l", d2l_alone),
    "d2l-additive": ("d2l", d2l_additive), "plain": ("plain", plain),
}


# What the models' own config.json says, as far as attention goes.
CONFIGS = {
    "bert": {"model_type": "bert", "num_attention_heads": 4},
    "bert-bare": {"model_type": "bert", "num_attention_heads": 2},
    "roberta": {"model_type": "roberta", "num_attention_heads": 5},
    "vit": {"model_type": "vit", "num_attention_heads": 3},
    "vit-classifier": {"model_type": "vit", "num_attention_heads": 2},
    "clip": {"model_type": "clip", "text_config": {"num_attention_heads": 2},
             "vision_config": {"num_attention_heads": 5}},
    "gpt2": {"model_type": "gpt2", "n_head": 4},
    "gpt2-bare": {"model_type": "gpt2", "n_head": 3},
    "gpt2-wide": {"model_type": "gpt2", "n_head": 6},
    "t5": {"model_type": "t5", "num_heads": 3, "relative_attention_num_buckets": 32,
           "relative_attention_max_distance": 128},
    "llama": {"model_type": "llama", "num_attention_heads": 4, "num_key_value_heads": 2,
              "rope_theta": 10000.0, "rope_scaling": None},
    "qwen2": {"model_type": "qwen2", "num_attention_heads": 6, "num_key_value_heads": 1,
              "rope_theta": 1000000.0, "sliding_window": 4096, "use_sliding_window": False},
    "whisper": {"model_type": "whisper", "encoder_attention_heads": 4,
                "decoder_attention_heads": 4},
}


def make(family, dtype="F32"):
    """(file, its layers by name) of a family, in numbers of that type."""
    file = File(sum(map(ord, family)), dtype)
    served = FAMILIES[family][1](file)
    file.add("tail.scale", np.arange(3), "F8_E4M3")  # nobody reads this type
    file.add("tail.empty", np.zeros((0, 4)), "I32")
    return file, served


# --- containers ------------------------------------------------------------------------------------

def safetensors(tensors):
    """The bytes of a safetensors file. The header names the tensors in another order than that of
    their data, which follow each other without padding."""
    header, data = {}, []
    end = 0
    for name, (dtype, array) in tensors.items():
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [begin, end]}
        data.append(array.tobytes())
    header["__metadata__"] = {"format": "pt"}
    text = json.dumps(dict(reversed(header.items()))).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *data])


def write_single(folder, name, file):
    """Returns the file's name within the folder."""
    with open(os.path.join(folder, f"{name}.safetensors"), "wb") as out:
        out.write(safetensors(file.tensors))
    return f"{name}.safetensors"


def write_sharded(folder, name, file, shards=3):
    """In a folder of its own; neighbours in the file lie in different shards."""
    os.mkdir(os.path.join(folder, name))
    names = [f"model-{n + 1:05}-of-{shards:05}.safetensors" for n in range(shards)]
    weight_map = {tensor: names[n % shards] for n, tensor in enumerate(file.tensors)}
    for shard in names:
        own = {t: v for t, v in file.tensors.items() if weight_map[t] == shard}
        with open(os.path.join(folder, name, shard), "wb") as out:
            out.write(safetensors(own))
    index = {"metadata": {"total_size": sum(a.nbytes for _, a in file.tensors.values())},
             "weight_map": dict(sorted(weight_map.items()))}
    with open(os.path.join(folder, name, "model.safetensors.index.json"), "w") as out:
        json.dump(index, out, indent=2)
    return f"{name}/model.safetensors.index.json"


def write_npz(folder, name, file, compressed=False, fortran=False):
    """numpy's own writer: stored or deflated; matrices in Fortran's order where that is asked."""
    arrays = {tensor: np.asfortranarray(array) if fortran else array
              for tensor, (_, array) in file.tensors.items()}
    (np.savez_compressed if compressed else np.savez)(os.path.join(folder, f"{name}.npz"), **arrays)
    return f"{name}.npz"
