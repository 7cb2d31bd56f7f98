#!/usr/bin/env python3
"""Writes weights.bin from model.onnx: little-endian float32 in the order in which static_digits.cpp names the weights,
batch normalisation folded into the convolutions, matrices as [in, out]. Needs Debian's python3-onnx."""
import pathlib

import numpy
import onnx
import onnx.numpy_helper

folder = pathlib.Path(__file__).parent
model = onnx.load(folder / "model.onnx")
tensor = {t.name: onnx.numpy_helper.to_array(t).astype(numpy.float64) for t in model.graph.initializer}
epsilon = next(a.f for n in model.graph.node if n.op_type == "BatchNormalization" for a in n.attribute if a.name == "epsilon")

parts = []
for conv, norm in ((0, 1), (3, 4), (7, 8)):
    scale, bias, mean, variance = (
        tensor[f"net.{norm}.{part}"] for part in ("weight", "bias", "running_mean", "running_var")
    )
    factor = scale / numpy.sqrt(variance + epsilon)
    parts += [tensor[f"net.{conv}.weight"] * factor[:, None, None, None], bias - mean * factor]
for layer in (12, 14):
    parts += [tensor[f"net.{layer}.weight"].T, tensor[f"net.{layer}.bias"]]
(folder / "weights.bin").write_bytes(b"".join(p.astype("<f4").tobytes() for p in parts))
