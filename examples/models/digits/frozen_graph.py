"""Writes frozen_graph.pb: the network of model.onnx as TensorFlow would freeze it, images and filters NHWC and HWIO.

    python3 frozen_graph.py
"""

import pathlib
import struct

import numpy
import onnx
import onnx.numpy_helper

HERE = pathlib.Path(__file__).parent
FLOAT, INT32 = 1, 3


# Protobuf's wire format: https://protobuf.dev/programming-guides/encoding
def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def extents(lens):
    return b"".join(field(2, field(1, n)) for n in lens)


def node(name, op, inputs=(), **attributes):
    out = field(1, name) + field(2, op) + b"".join(field(3, i) for i in inputs)
    for key, value in attributes.items():
        out += field(5, field(1, key) + field(2, value))
    return field(1, out)


def constant(name, array):
    array = numpy.ascontiguousarray(array)
    kind = FLOAT if array.dtype == numpy.float32 else INT32
    tensor = field(1, kind) + field(2, extents(array.shape)) + field(4, array.tobytes())
    return node(name, "Const", dtype=field(6, kind), value=field(8, tensor))


def numbers(*of):
    return field(1, b"".join(field(3, n) for n in of))


def main():
    model = onnx.load(HERE / "model.onnx")
    weights = {w.name: onnx.numpy_helper.to_array(w) for w in model.graph.initializer}
    out = node("image", "Placeholder", dtype=field(6, FLOAT), shape=field(7, extents((-1, 8, 8, 1))))
    last = "image"

    def add(name, op, *others, **attributes):
        nonlocal out, last
        out += node(name, op, (last, *others), T=field(6, FLOAT), **attributes)
        last = name

    nhwc, window = field(2, "NHWC"), numbers(1, 2, 2, 1)
    for layer, (conv, norm, pools) in enumerate([(0, 1, False), (3, 4, True), (7, 8, True)]):
        at = f"conv{layer}"
        out += constant(at + "/filter", weights[f"net.{conv}.weight"].transpose(2, 3, 1, 0))
        add(at, "Conv2D", at + "/filter", strides=numbers(1, 1, 1, 1), padding=field(2, "SAME"), data_format=nhwc)
        names = []
        for part in ("weight", "bias", "running_mean", "running_var"):
            names.append(f"norm{layer}/{part}")
            out += constant(names[-1], weights[f"net.{norm}.{part}"])
        add(f"norm{layer}", "FusedBatchNormV3", *names, epsilon=field(4, 1e-5), is_training=field(5, 0), data_format=nhwc)
        add(f"relu{layer}", "Relu")
        if pools:
            add(f"pool{layer}", "MaxPool", ksize=window, strides=window, padding=field(2, "VALID"), data_format=nhwc)
    out += constant("flat/shape", numpy.array([-1, 256], numpy.int32))
    add("flat", "Reshape", "flat/shape")
    # rows in the order of [height, width, channels]
    hidden = weights["net.12.weight"].reshape(64, 64, 2, 2).transpose(2, 3, 1, 0).reshape(256, 64)
    for name, matrix, bias in [("hidden", hidden, "net.12.bias"), ("scores", weights["net.14.weight"].T, "net.14.bias")]:
        out += constant(name + "/matrix", matrix) + constant(name + "/bias", weights[bias])
        add(name + "/product", "MatMul", name + "/matrix", transpose_a=field(5, 0), transpose_b=field(5, 0))
        add(name, "BiasAdd", name + "/bias")
        if name == "hidden":
            add("hidden/relu", "Relu")
    add("probabilities", "Softmax")
    (HERE / "frozen_graph.pb").write_bytes(out)


if __name__ == "__main__":
    main()
