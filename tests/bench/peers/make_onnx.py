"""make_onnx: writes the layers that ONNX Runtime serves: make_onnx.py FOLDER (python3-onnx).

A layer is four projections around ONNX Runtime's fused MultiHeadAttention, as its own optimiser
makes it of a Transformer. `mhaD.onnx` takes a mask of the visible keys, as requests with valid_lens
need it; `mhaD-all.onnx` has none: ONNX Runtime has a faster path for that. The weights are random.
"""
import os
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZES = {100: 5, 512: 8}  # width: heads


def projection(name, width):
    rng = numpy.random.default_rng(sum(map(ord, name)))
    numbers = (rng.standard_normal((width, width)) / width ** 0.5).astype(numpy.float32)
    return numpy_helper.from_array(numbers, name)


def layer(width, heads, masked):
    def value(name, rows, kind=TensorProto.FLOAT):
        shape = ["batch", rows] + ([width] if kind == TensorProto.FLOAT else [])
        return helper.make_tensor_value_info(name, kind, shape)

    def product(source, weight, target):
        return helper.make_node("MatMul", [source, weight], [target])

    attention = ["q", "k", "v", "", "mask"] if masked else ["q", "k", "v"]
    nodes = [product("queries", "W_q", "q"), product("keys", "W_k", "k"),
             product("values", "W_v", "v"),
             helper.make_node("MultiHeadAttention", attention, ["context"],
                              domain="com.microsoft", num_heads=heads),
             product("context", "W_o", "outputs")]
    inputs = [value("queries", "q_rows"), value("keys", "k_rows"), value("values", "k_rows")]
    if masked:
        inputs.append(value("mask", "k_rows", TensorProto.INT32))
    graph = helper.make_graph(nodes, "attention", inputs, [value("outputs", "q_rows")],
                              [projection(name, width) for name in ("W_q", "W_k", "W_v", "W_o")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17),
                                                    helper.make_opsetid("com.microsoft", 1)])
    model.ir_version = 8
    return model


def main(folder):
    for width, heads in SIZES.items():
        for masked, name in ((True, f"mha{width}.onnx"), (False, f"mha{width}-all.onnx")):
            onnx.save(layer(width, heads, masked), os.path.join(folder, name))


if __name__ == "__main__":
    main(sys.argv[1])
