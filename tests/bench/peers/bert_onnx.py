"""bert_onnx: writes what ONNX Runtime serves of BERT: bert_onnx.py MODEL FOLDER (python3-torch, python3-onnx).

MODEL is the folder of bert.py. `exported.onnx` is what PyTorch exports; `fused.onnx` has ONNX
Runtime's own operators for embedding, attention, bias with gelu, and the norm of a sum: as its
offline optimiser makes them of such a model. (The one that runs when a model is opened leaves the
attention of that export in pieces.) `exported-int8.onnx` and `fused-int8.onnx` are the same with
products of bytes, as its tool for dynamic quantization makes them. `cases.json` holds the tokens of
bert.py's cases, and the mean of each item's last hidden state as PyTorch computes it.
"""
import json
import os
import sys

import numpy
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

import bert_torch
from bert_torch import PARTS, bert_make
from bert import EPSILON, HEADS, LAYERS, NAME, WIDTH, batches

INPUTS, OUTPUTS = ("input_ids", "attention_mask"), ("last_hidden_state", "embedding")


class Graph:
    """Nodes and weights as they are added."""

    def __init__(self, weights):
        self.weights, self.nodes, self.constants = weights, [], []

    def constant(self, name, numbers):
        self.constants.append(numpy_helper.from_array(numpy.ascontiguousarray(numbers), name))
        return name

    def part(self, name):
        return self.constant(name, self.weights[name])

    def add(self, kind, inputs, output, domain="", **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **attributes))
        return output

    def own(self, kind, inputs, output, **attributes):
        """An operator of ONNX Runtime's own."""
        return self.add(kind, inputs, output, "com.microsoft", **attributes)

    def product(self, x, name, output):
        matrix = self.constant(name + ".weight", self.weights[name + ".weight"].T)
        return self.add("MatMul", [x, matrix], output)

    def sum_norm(self, x, y, bias, norm, output):
        inputs = [x, y, self.part(norm + ".weight"), self.part(norm + ".bias"), self.part(bias)]
        return self.own("SkipLayerNormalization", inputs, output, epsilon=EPSILON)

    def model(self):
        def value(name, kind, *shape):
            return helper.make_tensor_value_info(name, kind, ["items", *shape])

        graph = helper.make_graph(
            self.nodes, NAME, [value(name, TensorProto.INT64, "tokens") for name in INPUTS],
            [value(OUTPUTS[0], TensorProto.FLOAT, "tokens", WIDTH),
             value(OUTPUTS[1], TensorProto.FLOAT, WIDTH)], self.constants)
        return helper.make_model(graph, ir_version=8, opset_imports=[
            helper.make_opsetid("", 14), helper.make_opsetid("com.microsoft", 1)])


def add_embedding(g):
    for name, short in zip(INPUTS, ("tokens", "mask")):
        g.add("Cast", [name], short, to=TensorProto.INT32)
    place = g.weights["embeddings.position_embeddings.weight"]
    kind = g.weights["embeddings.token_type_embeddings.weight"][0]
    inputs = ["tokens", "", g.part("embeddings.word_embeddings.weight"),
              g.constant("places", place + kind), "", g.part("embeddings.LayerNorm.weight"),
              g.part("embeddings.LayerNorm.bias")]
    g.nodes.append(helper.make_node("EmbedLayerNormalization", inputs, ["embedded", "unused"],
                                    domain="com.microsoft", epsilon=EPSILON))
    return "embedded"


def add_layer(g, i, x, output):
    at = f"encoder.layer.{i}."
    part = {ours: at + theirs for ours, theirs in PARTS.items()}
    roles = [part[role] for role in ("query", "key", "value")]
    matrix = numpy.concatenate([g.weights[role + ".weight"].T for role in roles], axis=1)
    bias = numpy.concatenate([g.weights[role + ".bias"] for role in roles])
    inputs = [x, g.constant(at + "qkv.weight", matrix), g.constant(at + "qkv.bias", bias), "mask"]
    y = g.own("Attention", inputs, at + "context", num_heads=HEADS)
    y = g.product(y, part["out"], at + "attended")
    x = g.sum_norm(y, x, part["out"] + ".bias", part["norm1"], at + "middle")
    y = g.product(x, part["up"], at + "up")
    y = g.own("BiasGelu", [y, g.part(part["up"] + ".bias")], at + "gelu")
    y = g.product(y, part["down"], at + "down")
    return g.sum_norm(y, x, part["down"] + ".bias", part["norm2"], output)


def add_mean(g, x):
    g.constant("axis1", numpy.array([1])), g.constant("axis2", numpy.array([2]))
    g.add("Cast", [INPUTS[1]], "real", to=TensorProto.FLOAT)
    g.add("Unsqueeze", ["real", "axis2"], "column")
    g.add("Mul", [x, "column"], "kept")
    g.add("ReduceSum", ["kept", "axis1"], "sum", keepdims=0)
    g.add("ReduceSum", ["real", "axis1"], "count", keepdims=1)
    g.add("Div", ["sum", "count"], OUTPUTS[1])


def fused(weights):
    g = Graph(weights)
    x = add_embedding(g)
    for i in range(LAYERS):
        x = add_layer(g, i, x, OUTPUTS[0] if i == LAYERS - 1 else f"encoder.layer.{i}.out")
    add_mean(g, x)
    return g.model()


def quantized(model):
    """The model with weights as signed bytes, with a scale for each column. Rows become unsigned bytes
    when they are multiplied, with one scale for all of them."""
    g = Graph({weight.name: numpy_helper.to_array(weight) for weight in model.graph.initializer})
    for node in model.graph.node:
        if node.op_type not in ("MatMul", "Attention") or node.input[1] not in g.weights:
            g.nodes.append(node)
            continue
        (x, name, *more), (y,) = node.input, node.output
        rows, weight = ([of + part for part in (".bytes", ".scale", ".zero")] for of in (x, name))
        if not any(rows[0] in made.output for made in g.nodes):
            g.nodes.append(helper.make_node("DynamicQuantizeLinear", [x], rows))
        matrix = g.weights.pop(name)
        scale = numpy.abs(matrix).max(0) / 127
        for part, numbers in zip(weight, (numpy.rint(matrix / scale).astype(numpy.int8), scale,
                                          numpy.zeros(len(scale), numpy.int8))):
            g.constant(part, numbers)
        if node.op_type == "Attention":
            bias, mask = more
            g.own("QAttention", [rows[0], weight[0], bias, rows[1], weight[1], mask, rows[2], weight[2]],
                  y, num_heads=HEADS)
            continue
        g.add("MatMulInteger", [rows[0], weight[0], rows[2], weight[2]], y + ".sum")
        g.add("Cast", [y + ".sum"], y + ".real", to=TensorProto.FLOAT)
        g.add("Mul", [y + ".real", g.add("Mul", [rows[1], weight[1]], y + ".scale")], y)
    for name, numbers in g.weights.items():
        g.constant(name, numbers)
    return g.model()


def export(model, path):
    axes = {name: {0: "items", 1: "tokens"} for name in (*INPUTS, OUTPUTS[0])}
    torch.onnx.export(model, bert_torch.padded(batches()["b32 s8..128"][:2]), path,
                      opset_version=14, input_names=list(INPUTS), output_names=list(OUTPUTS),
                      dynamic_axes=dict(axes, embedding={0: "items"}))


def answers(model):
    found = {}
    for case, tokens in batches().items():
        _, means = model(*bert_torch.padded(tokens))
        found[case] = {"tokens": tokens, "embeddings": means.tolist()}
    return found


def main(folder, into):
    os.makedirs(into, exist_ok=True)
    torch.set_grad_enabled(False)
    weights = bert_make.read_safetensors(os.path.join(folder, "model.safetensors"))
    model = bert_torch.Bert(weights)
    export(model, os.path.join(into, "exported.onnx"))
    onnx.save(fused(weights), os.path.join(into, "fused.onnx"))
    with open(os.path.join(into, "cases.json"), "w", encoding="utf-8") as file:
        json.dump(answers(model), file)
    for name in ("exported", "fused"):
        graph = quantized(onnx.load(os.path.join(into, name + ".onnx")))
        onnx.save(graph, os.path.join(into, name + "-int8.onnx"))


if __name__ == "__main__":
    main(*sys.argv[1:])
