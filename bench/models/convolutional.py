"""Convolutional networks: ResNet-50 in fp32, fp16, and int8 (QDQ)."""
import math

import numpy as np

from graph import Graph, model


def batchnorm_values(g, name, c, var):
    return [g.random(name + ".gamma", (c,), 0.1, 1.0), g.random(name + ".beta", (c,), 0.1),
            g.random(name + ".mean", (c,), 0.1 * math.sqrt(var)), var * np.abs(g.random(name + ".var", (c,), 0.1, 1.0))]


def conv_bn(g, x, name, cin, cout, k, stride=1, group=1, m2=1.0, gamma=1.0, pad=None, dilation=1):
    """A bias-free convolution with BatchNorm; m2 is the mean square of x, so that the output's is gamma^2."""
    y = g.conv(x, name, cin, cout, k, stride, group, bias=False, pad=pad, dilation=dilation)
    gm, bt, mean, var = batchnorm_values(g, name, cout, m2)
    ins = [g.init(f"{name}.{n}", v.astype(g.dtype)) for n, v in (("gamma", gm * gamma), ("beta", bt), ("mean", mean), ("var", var))]
    return g.op("BatchNormalization", y, *ins, epsilon=1e-5)


RELU_RANGE = 5.0  # a calibrated range, in standard deviations


def quantized_conv(g, x, xscale, name, cin, cout, k, stride, m2, gamma, out_scale, relu, zero):
    """conv_bn with the BatchNorm folded, in QDQ form (the weights are those of the float model)."""
    gm, bt, mean, var = batchnorm_values(g, name, cout, m2)
    f = gm * gamma / np.sqrt(var + 1e-5)
    w = g.random(name + ".w", (cout, cin, k, k), 1 / math.sqrt(cin * k * k)) * f.reshape(-1, 1, 1, 1)
    wq, wscale = g.quantized(name + ".w", w, 0)
    b = g.bias32(name + ".b", bt - mean * f, wscale * np.float32(xscale))
    y = g.op("Conv", x, wq, b, kernel_shape=[k, k], strides=[stride] * 2, pads=[k // 2] * 4, group=1, dilations=[1, 1])
    if relu:
        y = g.op("Relu", y)
    return g.qdq(y, out_scale, zero)


def resnet_blocks(small):
    width, depth = (8, [1, 1, 1, 1]) if small else (64, [3, 4, 6, 3])
    cin = width
    for stage, n in enumerate(depth):
        mid = width << stage
        for i in range(n):
            yield f"s{stage}b{i}", cin, mid, 4 * mid, (2 if stage and not i else 1), i == 0
            cin = 4 * mid


def resnet50_features(g, x, small):
    """Features of an image at a 32nd of its extents, and their channels."""
    width = 8 if small else 64
    x = g.op("Relu", conv_bn(g, x, "stem", 3, width, 7, 2, m2=1 / 3))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    m2 = 2.5
    for name, cin, mid, cout, stride, first in resnet_blocks(small):
        y = g.op("Relu", conv_bn(g, x, name + ".1", cin, mid, 1, m2=m2))
        y = g.op("Relu", conv_bn(g, y, name + ".2", mid, mid, 3, stride, m2=0.5))
        y = conv_bn(g, y, name + ".3", mid, cout, 1, m2=0.5, gamma=0.5)
        if first:
            x, m2 = conv_bn(g, x, name + ".d", cin, cout, 1, stride, m2=m2), 1.0
        m2 = 0.75 if first else m2 + 0.3
        x = g.op("Relu", g.op("Add", y, x))
    return x, width * 32


def resnet50_graph(g, small):
    size, classes = (32, 10) if small else (224, 1000)
    x, cin = resnet50_features(g, g.input("data", [1, 3, size, size]), small)
    x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    g.output(g.op("Gemm", x, g.weight("fc.w", (classes, cin), 2 / math.sqrt(cin)), g.weight("fc.b", (classes,), 0.02), transB=1), "logits")


@model
def resnet50(small, seed):
    g = Graph("resnet50", seed)
    resnet50_graph(g, small)
    return g


@model
def resnet50_fp16(small, seed):
    g = Graph("resnet50_fp16", seed, np.float16)
    resnet50_graph(g, small)
    return g


@model
def resnet50_int8(small, seed):
    g = Graph("resnet50_int8", seed)
    size, classes, width = (32, 10, 8) if small else (224, 1000, 64)
    relu = RELU_RANGE / 255
    x = g.qdq(g.input("data", [1, 3, size, size]), 2 / 255, 128)
    x, xs = quantized_conv(g, x, 2 / 255, "stem", 3, width, 7, 2, 1 / 3, 1.0, relu, True, 0), relu
    # As quantizers do, a pool keeps its input's scale.
    x = g.qdq(g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), relu, 0)
    m2 = 2.5
    for name, cin, mid, cout, stride, first in resnet_blocks(small):
        y = quantized_conv(g, x, xs, name + ".1", cin, mid, 1, 1, m2, 1.0, relu, True, 0)
        y = quantized_conv(g, y, relu, name + ".2", mid, mid, 3, stride, 0.5, 1.0, relu, True, 0)
        y = quantized_conv(g, y, relu, name + ".3", mid, cout, 1, 1, 0.5, 0.5, relu, False, 128)
        if first:
            x, m2 = quantized_conv(g, x, xs, name + ".d", cin, cout, 1, stride, m2, 1.0, 2 * relu, False, 128), 1.0
        m2 = 0.75 if first else m2 + 0.3
        xs = relu * math.sqrt(2 * m2)
        x = g.qdq(g.op("Relu", g.op("Add", y, x)), xs, 0)
    x = g.qdq(g.op("GlobalAveragePool", x), xs, 0)
    x = g.op("Flatten", x, axis=1)
    cin = width * 32
    wq, ws = g.quantized("fc.w", g.random("fc.w", (classes, cin), 2 / math.sqrt(cin)), 0)
    b = g.bias32("fc.b", g.random("fc.b", (classes,), 0.02), ws * np.float32(xs))
    x = g.op("Gemm", x, wq, b, transB=1)
    g.output(g.qdq(x, 8 * RELU_RANGE / 255), "logits")
    return g
