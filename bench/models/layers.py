"""Single layers and chains of them, each bound by one thing."""
import math

import numpy as np

from convolutional import RELU_RANGE, quantized_conv
from graph import Graph, model


def micro(f):
    def build(small, seed):
        g = Graph(f.__name__, seed)
        g.output(f(g, small), "y")
        return g
    build.__name__ = f.__name__
    return model(build)


@micro
def pointwise12(g, small):
    """Twelve cheap ops over two inputs: one pass over memory if fused."""
    n = [64, 64] if small else [4096, 1024]
    x, y = g.input("a", n), g.input("b", n)
    v = g.op("Mul", x, y)
    for i, (kind, other) in enumerate([("Add", x), ("Relu", None), ("Mul", g.const(0.7)), ("Sub", y), ("Abs", None), ("Add", g.const(0.3)),
                                       ("Max", y), ("Mul", x), ("Neg", None), ("Add", y), ("Mul", g.const(1.1))]):
        v = g.op(kind, v, other) if other else g.op(kind, v)
    return v


@micro
def pointwise12_exp(g, small):
    """Twelve ops of which five are transcendental."""
    n = [64, 64] if small else [4096, 1024]
    x, y = g.input("a", n), g.input("b", n)
    v = g.op("Sigmoid", g.op("Mul", x, y))
    v = g.op("Mul", g.op("Add", v, x), g.const(0.5))
    v = g.op("Erf", g.op("Tanh", v))
    v = g.op("Sub", g.op("Exp", v), y)
    v = g.op("Sqrt", g.op("Add", g.op("Abs", v), g.const(0.1)))
    return g.op("Mul", v, y)


@micro
def gelu_erf(g, small):
    return g.gelu_erf(g.input("x", [64, 64] if small else [4096, 1024]))


@micro
def softmax(g, small):
    return g.op("Softmax", g.input("x", [64, 64] if small else [4096, 1024]), axis=-1)


@micro
def layernorm(g, small):
    rows, dim = (64, 64) if small else (4096, 1024)
    return g.norm(g.input("x", [rows, dim]), "ln", dim)


@micro
def layernorm_plain(g, small):
    """LayerNorm as exporters wrote it before opset 17."""
    rows, dim = (64, 64) if small else (4096, 1024)
    x = g.input("x", [rows, dim])
    c = g.op("Sub", x, g.op("ReduceMean", x, axes=[-1]))
    v = g.op("Sqrt", g.op("Add", g.op("ReduceMean", g.op("Pow", c, g.const(2)), axes=[-1]), g.const(1e-5)))
    return g.op("Add", g.op("Mul", g.op("Div", c, v), g.weight("g", (dim,), 0.1, 1.0)), g.weight("b", (dim,), 0.02))


@micro
def transpose(g, small):
    b, s, h, d = (1, 16, 4, 8) if small else (8, 512, 12, 64)
    return g.transpose(g.input("x", [b, s, h, d]), 0, 2, 1, 3)


@micro
def reduce_mean_hw(g, small):
    return g.op("ReduceMean", g.input("x", [1, 8, 16, 16] if small else [1, 1024, 64, 64]), axes=[2, 3])


@micro
def gemm_1024(g, small):
    n = 64 if small else 1024
    return g.op("MatMul", g.input("x", [n, n]), g.weight("w", (n, n), 1 / math.sqrt(n)))


@micro
def gemm_bert_up(g, small):
    """128x768 by 768x3072, bias and erf-GELU."""
    m, k = (16, 32) if small else (128, 768)
    return g.gelu_erf(g.linear(g.input("x", [m, k]), "fc", k, 4 * k))


@micro
def gemv_4096(g, small):
    n = 64 if small else 4096
    return g.op("MatMul", g.input("x", [1, n]), g.weight("w", (n, n), 1 / math.sqrt(n)))


@micro
def gemm_1024_int8(g, small):
    n = 64 if small else 1024
    x = g.qdq(g.input("x", [n, n]), 2 / 255)
    w, _ = g.quantized("w", g.random("w", (n, n), 1 / math.sqrt(n)), 1)
    return g.qdq(g.op("MatMul", x, w), 6 / 255)


def conv_micro(name, cin, cout, k, size, group=1, stride=1, tail=None):
    def f(g, small):
        ci, co, s = (min(cin, 16), min(cout, 16), 8) if small else (cin, cout, size)
        gr = ci if group > 1 else 1
        y = g.op("Relu", g.conv(g.input("x", [1, ci, s, s]), "c", ci, co, k, stride, gr))
        return tail(g, y) if tail else y
    f.__name__ = name
    micro(f)


conv_micro("conv3x3_64_56", 64, 64, 3, 56)
conv_micro("conv3x3_256_14", 256, 256, 3, 14)
conv_micro("conv3x3_512_7", 512, 512, 3, 7)
conv_micro("conv1x1_256_64_56", 256, 64, 1, 56)
conv_micro("conv1x1_1024_256_14", 1024, 256, 1, 14)
conv_micro("depthwise3x3_32_112", 32, 32, 3, 112, group=32)
conv_micro("conv7x7s2_3_64_224", 3, 64, 7, 224, stride=2)


@micro
def conv3x3_64_56_int8(g, small):
    c, s = (16, 8) if small else (64, 56)
    x = g.qdq(g.op("Relu", g.input("x", [1, c, s, s])), 1 / 255, 0)
    return quantized_conv(g, x, 1 / 255, "c", c, c, 3, 1, 1 / 6, 1.0, RELU_RANGE / 255, True, 0)


def recurrent(g, kind, x, name, cin, hidden, directions=1, **attrs):
    """The sequence that a recurrent layer of exporters makes, [steps, directions, batch, hidden]."""
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[kind] * hidden
    ins = [x, g.weight(name + ".w", (directions, gates, cin), 1 / math.sqrt(cin)),
           g.weight(name + ".r", (directions, gates, hidden), 1 / math.sqrt(hidden)),
           g.weight(name + ".b", (directions, 2 * gates), 0.02)]
    way = "bidirectional" if directions == 2 else "forward"
    return g.op(kind, *ins, n=1, hidden_size=hidden, direction=way, **attrs)


@micro
def lstm_2x256(g, small):
    """Two layers in both directions, one sequence of 64 steps."""
    steps, n = (5, 8) if small else (64, 256)
    y, width = g.input("x", [steps, 1, n]), n
    for i in range(2):
        y = recurrent(g, "LSTM", y, f"l{i}", width, n, 2)
        y, width = g.reshape(g.transpose(y, 0, 2, 1, 3), steps, 1, 2 * n), 2 * n
    return y


@micro
def lstm_64(g, small):
    """So small a state that a step takes a microsecond."""
    steps, n = (5, 8) if small else (100, 64)
    return recurrent(g, "LSTM", g.input("x", [steps, 1, n]), "l", n, n)


@micro
def gru_512(g, small):
    """Eight sequences of 32 steps; weights that no core's own cache holds."""
    steps, batch, n = (5, 2, 8) if small else (32, 8, 512)
    return recurrent(g, "GRU", g.input("x", [steps, batch, n]), "l", n, n, linear_before_reset=1)


@micro
def rnn_128(g, small):
    """A plain cell over 32 sequences of 50 steps."""
    steps, batch, n = (5, 2, 8) if small else (50, 32, 128)
    return recurrent(g, "RNN", g.input("x", [steps, batch, n]), "l", n, n)


@micro
def attention_12_512_64(g, small):
    heads, seq, d = (2, 16, 8) if small else (12, 512, 64)
    q, k, v = (g.input(n, [1, heads, seq, d]) for n in "qkv")
    s = g.op("Mul", g.op("MatMul", q, g.transpose(k, 0, 1, 3, 2)), g.const(d ** -0.5))
    return g.op("MatMul", g.op("Softmax", s, axis=-1), v)


@micro
def tiny_mlp(g, small):
    """So little work that the runtime's own cost shows."""
    x = g.input("x", [1, 16])
    for i in range(8):
        x = g.op("Relu", g.linear(x, f"l{i}", 16, 16, 1.4))
    return x


@micro
def matmul_f64_512(g, small):
    n = 16 if small else 512
    return g.op("MatMul", g.input("x", [n, n], np.float64), g.input("w", [n, n], np.float64))


@micro
def matmul_i32_256(g, small):
    n = 16 if small else 256
    return g.op("MatMul", g.input("x", [n, n], np.int32), g.input("w", [n, n], np.int32))


@micro
def dft_16_4096(g, small):
    """Whole spectra of real signals."""
    return g.op("DFT", g.input("x", [2, 32, 1] if small else [16, 4096, 1]), axis=1)
