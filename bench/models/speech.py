"""Networks over long sequences: Whisper (base), wav2vec2, a temporal CNN, LSTM and GRU stacks, Conv-TasNet."""
import numpy as np

from layers import recurrent
from network import network


@network((1,))
def whisper_encoder(g, small):
    dim, layers, frames = (128, 2, 200) if small else (512, 6, 3000)
    x = g.gelu_erf(g.conv1d(g.input("mel", [g.batch, 80, frames]), "c1", 80, dim, 3))
    x = g.transpose(g.gelu_erf(g.conv1d(x, "c2", dim, dim, 3, 2)), 0, 2, 1)
    x = g.op("Add", x, g.weight("pos", (frames // 2, dim), 0.2))
    for i in range(layers):
        x = g.encoder_layer(x, f"l{i}", dim, dim // 64, frames // 2)
    g.output(g.norm(x, "n", dim), "out")


@network((1, 5))
def whisper_decoder(g, small):
    """One step: 64 tokens kept, keys and values of 1500 frames."""
    dim, layers, vocab, past, frames = (128, 2, 500, 8, 50) if small else (512, 6, 51865, 64, 1500)
    heads, d = dim // 64, 64
    ids = g.input("ids", [g.batch, 1], np.int64, 0, vocab)
    word = g.random("word", (vocab, dim), 1)
    x = g.op("Add", g.op("Gather", g.init("word", word), ids), g.weight("pos", (1, 1, dim), 0.2))
    present = []
    for i in range(layers):
        n = f"l{i}"
        h = g.norm(x, n + ".n1", dim)
        q, k, v = (g.transpose(g.rows(g.linear(h, f"{n}.{t}", dim, dim), 1, heads, d), 0, 2, 1, 3) for t in "qkv")
        k = g.op("Concat", g.input(f"past.{i}.key", [g.batch, heads, past, d]), k, axis=2)
        v = g.op("Concat", g.input(f"past.{i}.value", [g.batch, heads, past, d]), v, axis=2)
        present += [(k, f"present.{i}.key"), (v, f"present.{i}.value")]

        def attend(q, k, v, name):
            s = g.op("MatMul", g.op("Mul", q, g.const(d ** -0.5)), g.transpose(k, 0, 1, 3, 2))
            c = g.op("MatMul", g.op("Softmax", s, axis=-1), v)
            return g.linear(g.rows(g.transpose(c, 0, 2, 1, 3), 1, dim), name, dim, dim)
        x = g.op("Add", x, attend(q, k, v, n + ".o"))
        q = g.transpose(g.rows(g.linear(g.norm(x, n + ".n2", dim), n + ".xq", dim, dim), 1, heads, d), 0, 2, 1, 3)
        x = g.op("Add", x, attend(q, g.input(f"across.{i}.key", [g.batch, heads, frames, d]), g.input(f"across.{i}.value", [g.batch, heads, frames, d]), n + ".xo"))
        x = g.op("Add", x, g.feed_forward(g.norm(x, n + ".n3", dim), n + ".f", dim, 4 * dim))
    g.output(g.op("MatMul", g.norm(x, "n", dim), g.init("head", np.ascontiguousarray(word.T) * np.float32(dim ** -0.5))), "logits")
    for value, name in present:
        g.output(value, name)


@network((1,))
def wav2vec2(g, small):
    """Five seconds of sound."""
    samples, dim, layers = (4000, 64, 1) if small else (80000, 768, 12)
    c = 64 if small else 512
    x, cin, n = g.input("sound", [g.batch, 1, samples]), 1, samples
    for i, (k, s) in enumerate([(10, 5)] + [(3, 2)] * 4 + [(2, 2)] * 2):
        x, cin, n = g.conv1d(x, f"c{i}", cin, c, k, s, pads=[0, 0], bias=False), c, (n - k) // s + 1
        if i == 0:
            x = g.op("InstanceNormalization", x, g.weight("c0.g", (c,), 0.1, 1), g.weight("c0.b", (c,), 0.02))
        x = g.gelu_erf(x)
    x = g.linear(g.norm(g.transpose(x, 0, 2, 1), "in.n", c), "in", c, dim)
    pos = g.conv1d(g.transpose(x, 0, 2, 1), "pos", dim, dim, 128, group=16, pads=[64, 64])
    pos = g.op("Slice", pos, g.shape(0), g.shape(-1), g.shape(2))
    x = g.norm(g.op("Add", x, g.transpose(g.gelu_erf(pos), 0, 2, 1)), "n", dim)
    for i in range(layers):
        x = g.norm(g.op("Add", x, g.attended(x, f"l{i}.a", dim, dim // 64, n)), f"l{i}.n1", dim)
        x = g.norm(g.op("Add", x, g.feed_forward(x, f"l{i}.f", dim, 4 * dim)), f"l{i}.n2", dim)
    g.output(g.linear(x, "head", dim, 32), "logits")


@network((1, 8))
def temporal_cnn(g, small):
    """Causal dilated convolutions (Bai et al. 2018): pads on the left alone."""
    x, cin, steps = g.input("x", [g.batch, 20, 60 if small else 1001]), 20, 0
    for i in range(3 if small else 8):
        c, name, dilation = 96, f"b{i}", 2 ** i
        y = x
        for j, ci in enumerate((cin, c)):
            y = g.op("Relu", g.conv1d(y, f"{name}.{j}", ci, c, 7, pads=[6 * dilation, 0], dilation=dilation))
        x, cin = g.op("Relu", g.op("Add", y, g.conv1d(x, name + ".d", cin, c, 1) if cin != c else x)), c
    g.output(g.conv1d(x, "head", cin, 10, 1), "out")


def stack(g, kind, layers, steps, cin, hidden, directions, **attrs):
    """Layers over each other, as exporters join directions."""
    x = g.input("x", [steps, g.batch, cin])
    for i in range(layers):
        x = g.transpose(recurrent(g, kind, x, f"l{i}", cin, hidden, directions, **attrs), 0, 2, 1, 3)
        x, cin = g.reshape(x, 0, 0, directions * hidden), directions * hidden
    g.output(g.linear(x, "head", cin, 29), "out")


@network((1, 8), dynamic=(4,))
def lstm_stack(g, small):
    stack(g, "LSTM", 2, 5 if small else 100, 80, 16 if small else 512, 1)


@network((1, 8))
def gru_both_ways(g, small):
    stack(g, "GRU", 3, 5 if small else 150, 161, 16 if small else 384, 2, linear_before_reset=1)


@network((1,))
def conv_tasnet(g, small):
    """Luo and Mesgarani 2019: two seconds of sound at 8 kHz, two speakers; separable dilated convolutions, norms over all."""
    samples, blocks, repeats = (1600, 2, 1) if small else (16000, 8, 3)
    filters, length, narrow, wide = 512, 16, 128, 512
    frames = (samples - length) // (length // 2) + 1

    def norm_all(x, name, c):
        mean = g.op("ReduceMean", x, axes=[1, 2], keepdims=1)
        apart = g.op("Sub", x, mean)
        var = g.op("ReduceMean", g.op("Mul", apart, apart), axes=[1, 2], keepdims=1)
        y = g.op("Div", apart, g.op("Sqrt", g.op("Add", var, g.const(1e-8))))
        return g.op("Add", g.op("Mul", y, g.weight(name + ".g", (c, 1), 0.1, 1.0)), g.weight(name + ".b", (c, 1), 0.02))
    prelu = lambda x, name: g.op("PRelu", x, g.weight(name + ".a", (1, 1), 0.01, 0.25))
    coded = g.op("Relu", g.conv1d(g.input("sound", [g.batch, 1, samples]), "encoder", 1, filters, length, length // 2, pads=[0, 0], bias=False))
    x = g.conv1d(norm_all(coded, "n", filters), "in", filters, narrow, 1)
    skips = None
    for r in range(repeats):
        for i in range(blocks):
            n = f"b{r}.{i}"
            y = norm_all(prelu(g.conv1d(x, n + ".1", narrow, wide, 1), n + ".p1"), n + ".n1", wide)
            y = g.conv1d(y, n + ".2", wide, wide, 3, group=wide, pads=[2 ** i] * 2, dilation=2 ** i)
            y = norm_all(prelu(y, n + ".p2"), n + ".n2", wide)
            skip = g.conv1d(y, n + ".skip", wide, narrow, 1)
            skips = g.op("Add", skips, skip) if skips else skip
            x = g.op("Add", x, g.conv1d(y, n + ".3", wide, narrow, 1))
    masks = g.op("Sigmoid", g.conv1d(prelu(skips, "p"), "masks", narrow, 2 * filters, 1))
    apart = g.op("Mul", g.reshape(masks, g.batch, 2, filters, frames), g.op("Unsqueeze", coded, g.shape(1)))
    y = g.op("ConvTranspose", g.reshape(apart, g.batch * 2, filters, frames), g.weight("decoder", (filters, 1, length), 0.05), kernel_shape=[length], strides=[length // 2])
    g.output(g.reshape(y, g.batch, 2, -1), "speakers")
