"""Language models and recommendation: T5, BERT with padding, GPT-2 and llama by batch, a Transformer-XL-like scan, DLRM."""
import numpy as np
from onnx import TensorProto, helper

from graph import Graph
from network import network
from transformers import bert_graph, gpt2_graph, llama_graph


def relative_bias(g, name, heads, n, buckets=32, farthest=128):
    """T5's bias of both directions, computed from positions as exporters spell it."""
    at = g.op("Range", g.const(0, np.int64), g.const(n, np.int64), g.const(1, np.int64))
    far = g.op("Sub", g.op("Unsqueeze", at, g.shape(0)), g.op("Unsqueeze", at, g.shape(1)))
    half, exact = buckets // 2, buckets // 4
    after = g.op("Mul", g.op("Cast", g.op("Greater", far, g.const(0, np.int64)), to=TensorProto.INT64), g.const(half, np.int64))
    size = g.op("Abs", far)
    log = g.op("Log", g.op("Div", g.op("Cast", g.op("Max", size, g.const(1, np.int64)), to=TensorProto.FLOAT), g.const(exact)))
    scale = g.const((half - exact) / np.log(farthest / exact))
    large = g.op("Add", g.op("Cast", g.op("Mul", log, scale), to=TensorProto.INT64), g.const(exact, np.int64))
    large = g.op("Min", large, g.const(half - 1, np.int64))
    bucket = g.op("Add", after, g.op("Where", g.op("Less", size, g.const(exact, np.int64)), size, large))
    bias = g.op("Gather", g.weight(name, (buckets, heads), 0.5), bucket)
    return g.op("Unsqueeze", g.transpose(bias, 2, 0, 1), g.shape(0))


@network((1, 8))
def t5_encoder(g, small):
    dim, layers, vocab, seq = (128, 2, 300, 16) if small else (512, 6, 32128, 131)
    heads, d = dim // 64, 64
    x = g.op("Gather", g.weight("word", (vocab, dim), 1), g.input("ids", [g.batch, seq], np.int64, 0, vocab))
    bias = relative_bias(g, "bias", heads, seq)

    def rms(x, name):
        v = g.op("ReduceMean", g.op("Pow", x, g.const(2)), axes=[-1], keepdims=1)
        return g.op("Mul", g.weight(name, (dim,), 0.1, 1), g.op("Div", x, g.op("Sqrt", g.op("Add", v, g.const(1e-6)))))
    split = lambda t, *perm: g.transpose(g.rows(t, seq, heads, d), *perm)
    for i in range(layers):
        n = f"l{i}"
        h = rms(x, n + ".n1")
        q, k, v = (g.linear(h, f"{n}.{t}", dim, dim, 0.5, bias=False) for t in "qkv")
        s = g.op("Add", g.op("MatMul", split(q, 0, 2, 1, 3), split(k, 0, 2, 3, 1)), bias)
        c = g.rows(g.transpose(g.op("MatMul", g.op("Softmax", s, axis=-1), split(v, 0, 2, 1, 3)), 0, 2, 1, 3), seq, dim)
        x = g.op("Add", x, g.linear(c, n + ".o", dim, dim, bias=False))
        h = g.op("Relu", g.linear(rms(x, n + ".n2"), n + ".up", dim, 4 * dim, bias=False))
        x = g.op("Add", x, g.linear(h, n + ".down", 4 * dim, dim, bias=False))
    g.output(rms(x, "n"), "out")


class Told:
    """Inputs of a graph that says no values: ids of some words, and masks with padding at the ends of rows."""

    def __init__(self, g, vocab, seq=0):
        self.g, self.vocab, self.seq, self.plain = g, vocab, seq, g.input

    def __call__(self, name, shape, dtype=None):
        if name == "attention_mask" and self.seq:
            rows = [[int(i < self.seq - 17 * r % (self.seq - 1)) for i in range(self.seq)] for r in range(8)]
            return self.plain(name, shape, dtype, values=sum(rows, []))
        if name == "input_ids":
            return self.plain(name, shape, dtype, 0, self.vocab)
        return self.plain(name, shape, dtype)


@network((8,))
def bert_padded(g, small):
    g.input = Told(g, 100, 16 if small else 128)
    bert_graph(g, small, batch=g.batch)


@network((4,), dynamic=(1, 4, 16))
def gpt2_step(g, small):
    g.input = Told(g, 100)
    gpt2_graph(g, small, 8 if small else 128, 1, batch=g.batch)


@network(only_dynamic=(1, 4, 16))
def llama_step(g, small):
    g.input = Told(g, 100)
    llama_graph(g, small, batch=g.batch)


@network((1,))
def recurrent_transformer(g, small):
    """A Transformer that goes over segments and attends to the one before, as a Scan of its layers."""
    steps, n, dim, heads, layers = (3, 8, 32, 2, 1) if small else (16, 32, 256, 4, 2)
    d = dim // heads
    b = Graph("body", g.seed)
    tensor = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
    x, memory = "segment", [f"memory{i}" for i in range(layers)]
    kept = []
    for i in range(layers):
        name = f"l{i}"
        kept.append(b.op("Identity", x))
        both = b.op("Concat", memory[i], x, axis=1)
        split = lambda t, m, *perm: b.transpose(b.reshape(t, 1, m, heads, d), *perm)
        q = split(b.linear(x, name + ".q", dim, dim), n, 0, 2, 1, 3)
        k = split(b.linear(both, name + ".k", dim, dim), 2 * n, 0, 2, 3, 1)
        v = split(b.linear(both, name + ".v", dim, dim), 2 * n, 0, 2, 1, 3)
        p = b.op("Softmax", b.op("Mul", b.op("MatMul", q, k), b.const(d ** -0.5)), axis=-1)
        c = b.reshape(b.transpose(b.op("MatMul", p, v), 0, 2, 1, 3), 1, n, dim)
        x = b.norm(b.op("Add", x, b.linear(c, name + ".o", dim, dim)), name + ".n1", dim)
        h = b.linear(b.op("Relu", b.linear(x, name + ".up", dim, 4 * dim)), name + ".down", 4 * dim, dim)
        x = b.norm(b.op("Add", x, h), name + ".n2", dim)
    out = b.op("Identity", x)
    for name, value in b.inits.items():
        g.init("body." + name, value)
    for node in b.nodes:
        for k, v in enumerate(node.input):
            if v in b.inits:
                node.input[k] = "body." + v
    body = helper.make_graph(b.nodes, "body", [tensor(m) for m in memory] + [tensor("segment")], [tensor(v) for v in kept] + [tensor(out)])
    begin = [g.input(f"begin{i}", [1, n, dim]) for i in range(layers)]
    y = g.op("Scan", *begin, g.input("segments", [steps, 1, n, dim]), n=layers + 1, num_scan_inputs=1, body=body)
    g.output(g.linear(y[-1], "head", dim, 100), "logits")


@network((128, 2048))
def dlrm(g, small):
    """26 tables of which each sample adds four rows, products of all pairs, and two stacks of layers."""
    rows, dim = (100, 16) if small else (20000, 64)

    def layers(x, name, sizes, last="Relu"):
        for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
            x = g.op("Gemm", x, g.weight(f"{name}{i}.w", (b, a), (2 / a) ** 0.5), g.weight(f"{name}{i}.b", (b,), 0.02), transB=1)
            x = g.op(last if i + 2 == len(sizes) else "Relu", x)
        return x
    dense = layers(g.input("dense", [g.batch, 13]), "bottom", [13, 512, 256, dim])
    ids, parts = g.input("ids", [26, g.batch, 4], np.int64, 0, rows), [g.op("Unsqueeze", dense, g.shape(1))]
    for i in range(26):
        bag = g.op("Gather", g.weight(f"table{i}", (rows, dim), 0.3), g.op("Gather", ids, g.const(i, np.int64), axis=0))
        parts.append(g.op("ReduceSum", bag, g.shape(1), keepdims=1))
    t = g.op("Concat", *parts, axis=1)
    pairs = g.reshape(g.op("MatMul", t, g.transpose(t, 0, 2, 1)), -1, 27 * 27)
    a, b = np.tril_indices(27, -1)
    pairs = g.op("Gather", pairs, g.const(a * 27 + b, np.int64), axis=1)
    x = layers(g.op("Concat", dense, pairs, axis=1), "top", [dim + 351, 512, 256, 1], "Sigmoid")
    g.output(x, "probability")
