"""Transformers: BERT-base in fp32, fp16, and three int8 spellings, GPT-2 (prompt and one step), one step of a llama."""
import math

import numpy as np
from onnx import TensorProto, helper

from graph import Graph, model


def heads_split(g, x, batch, seq, heads, d, perm=(0, 2, 1, 3)):
    return g.transpose(g.reshape(x, batch, seq, heads, d), *perm)


def quantized_linear(g, x, name, cin, cout, how, scale):
    """A Linear of the same weights: QDQ on its operands ("in"), on its product too ("out"), or dynamic MatMulInteger."""
    w = g.random(name + ".w", (cin, cout), 1 / math.sqrt(cin))
    b = g.weight(name + ".b", (cout,), 0.02)
    if how != "dynamic":
        wq, _ = g.quantized(name + ".w", w, 1)
        y = g.op("MatMul", g.qdq(x, scale), wq)
        return g.op("Add", g.qdq(y, scale) if how == "out" else y, b)
    if x not in g.dynamic:
        g.dynamic[x] = g.op("DynamicQuantizeLinear", x, n=3)
    xq, xs, xz = g.dynamic[x]
    scale = np.abs(w).max(axis=0) / 127
    wq = g.init(name + ".w", np.rint(w / scale).astype(np.int8))
    acc = g.op("Cast", g.op("MatMulInteger", xq, wq, xz, g.init(name + ".zp", np.zeros(cout, np.int8))), to=TensorProto.FLOAT)
    return g.op("Add", g.op("Mul", acc, g.op("Mul", xs, g.init(name + ".s", scale.astype(np.float32)))), b)


def bert_graph(g, small, how="float", batch=1):
    layers, heads, dim, seq, vocab = (2, 2, 32, 16, 100) if small else (12, 12, 768, 128, 30522)
    d = dim // heads
    g.dynamic = {}

    def linear(x, name, cin, cout, scale):
        if how == "float":
            return g.linear(x, name, cin, cout)
        return quantized_linear(g, x, name, cin, cout, how, scale)

    ids, mask, types = g.input("input_ids", [batch, seq], np.int64), g.input("attention_mask", [batch, seq], np.int64), g.input("token_type_ids", [batch, seq], np.int64)
    m = g.op("Unsqueeze", g.op("Unsqueeze", mask, g.shape(1)), g.shape(2))
    low = float(np.finfo(g.dtype).min)
    m = g.op("Mul", g.op("Sub", g.const(1), g.op("Cast", m, to=helper.mapping.NP_TYPE_TO_TENSOR_TYPE[g.dtype])), g.const(low))
    x = g.op("Add", g.op("Gather", g.weight("word", (vocab, dim), 1), ids), g.op("Gather", g.weight("type", (2, dim), 0.1), types))
    x = g.op("Add", x, g.op("Gather", g.weight("pos", (512, dim), 0.5), g.const([list(range(seq))], np.int64)))
    x = g.norm(x, "emb.ln", dim)
    unit = 10 / 255  # ten standard deviations of a normalized activation
    for i in range(layers):
        n = f"l{i}"
        q = heads_split(g, linear(x, n + ".q", dim, dim, unit), batch, seq, heads, d)
        k = heads_split(g, linear(x, n + ".k", dim, dim, unit), batch, seq, heads, d, (0, 2, 3, 1))
        v = heads_split(g, linear(x, n + ".v", dim, dim, unit), batch, seq, heads, d)
        if how in ("in", "out"):
            q, k, v = (g.qdq(t, unit) for t in (q, k, v))
        s = g.op("MatMul", q, k)
        if how == "out":
            s = g.qdq(s, 6 * unit)
        s = g.op("Div", s, g.const(math.sqrt(d)))
        p = g.op("Softmax", g.op("Add", s, m), axis=-1)
        if how in ("in", "out"):
            p = g.qdq(p, 1 / 255, 0)
        c = g.op("MatMul", p, v)
        if how == "out":
            c = g.qdq(c, unit)
        c = g.reshape(g.transpose(c, 0, 2, 1, 3), batch, seq, dim)
        x = g.norm(g.op("Add", linear(c, n + ".o", dim, dim, unit), x), n + ".ln1", dim)
        h = g.gelu_erf(linear(x, n + ".up", dim, 4 * dim, unit))
        x = g.norm(g.op("Add", linear(h, n + ".down", 4 * dim, dim, unit), x), n + ".ln2", dim)
    first = g.op("Gather", x, g.const(0, np.int64), axis=1)
    pooled = g.op("Tanh", g.op("Gemm", first, g.weight("pool.w", (dim, dim), 1 / math.sqrt(dim)), g.weight("pool.b", (dim,), 0.02), transB=1))
    g.output(x, "last_hidden_state")
    g.output(pooled, "pooler_output")


@model
def bert_base(small, seed):
    g = Graph("bert_base", seed)
    bert_graph(g, small)
    return g


@model
def bert_base_fp16(small, seed):
    g = Graph("bert_base_fp16", seed, np.float16)
    bert_graph(g, small)
    return g


@model
def bert_base_int8(small, seed):
    """QDQ around every MatMul, as ONNX Runtime's static quantizer writes it."""
    g = Graph("bert_base_int8", seed)
    bert_graph(g, small, "out")
    return g


@model
def bert_base_int8_in(small, seed):
    """QDQ on the operands only, as TensorRT-style quantizers write it."""
    g = Graph("bert_base_int8_in", seed)
    bert_graph(g, small, "in")
    return g


@model
def bert_base_dyn8(small, seed):
    g = Graph("bert_base_dyn8", seed)
    bert_graph(g, small, "dynamic")
    return g


def free(batch):
    """The extent that a Reshape gives a batch, whose extent may have a name."""
    return batch if isinstance(batch, int) else -1


def gpt2_graph(g, small, past, seq, batch=1):
    layers, heads, dim, vocab, ctx = (2, 2, 32, 100, 256) if small else (12, 12, 768, 50257, 1024)
    d, total = dim // heads, past + seq
    ids, pos = g.input("input_ids", [batch, seq], np.int64), g.input("position_ids", [batch, seq], np.int64)
    mask = g.input("attention_mask", [batch, total], np.int64)
    m = g.op("Cast", g.op("Unsqueeze", g.op("Unsqueeze", mask, g.shape(1)), g.shape(2)), to=TensorProto.FLOAT)
    m = g.op("Mul", g.op("Sub", g.const(1), m), g.const(-1e9))
    wte = g.random("wte", (vocab, dim), 1)
    x = g.op("Add", g.op("Gather", g.init("wte", wte), ids), g.op("Gather", g.weight("wpe", (ctx, dim), 0.3), pos))
    causal = g.init("causal", np.tril(np.ones((1, 1, ctx, ctx), bool)))

    def fc(x, name, cin, cout, gain=1.0):  # Conv1D, as the exporter writes it
        y = g.op("Gemm", g.reshape(x, -1, cin), g.weight(name + ".w", (cin, cout), gain / math.sqrt(cin)), g.weight(name + ".b", (cout,), 0.02))
        return g.reshape(y, free(batch), seq, cout)

    present = []
    for i in range(layers):
        n = f"l{i}"
        qkv = g.op("Split", fc(g.norm(x, n + ".ln1", dim), n + ".qkv", dim, 3 * dim), g.shape(dim, dim, dim), n=3, axis=2)
        q, k, v = (heads_split(g, t, free(batch), seq, heads, d) for t in qkv)
        if past:
            k = g.op("Concat", g.input(f"past.{i}.key", [batch, heads, past, d]), k, axis=2)
            v = g.op("Concat", g.input(f"past.{i}.value", [batch, heads, past, d]), v, axis=2)
        present += [(k, f"present.{i}.key"), (v, f"present.{i}.value")]
        s = g.op("Div", g.op("MatMul", q, g.transpose(k, 0, 1, 3, 2)), g.const(math.sqrt(d)))
        keep = g.op("Slice", g.op("Slice", causal, g.shape(past), g.shape(total), g.shape(2)), g.shape(0), g.shape(total), g.shape(3))
        s = g.op("Add", g.op("Where", keep, s, g.const(float(np.finfo(np.float32).min))), m)
        c = g.reshape(g.transpose(g.op("MatMul", g.op("Softmax", s, axis=-1), v), 0, 2, 1, 3), free(batch), seq, dim)
        x = g.op("Add", fc(c, n + ".o", dim, dim), x)
        x = g.op("Add", x, fc(g.gelu_tanh(fc(g.norm(x, n + ".ln2", dim), n + ".up", dim, 4 * dim)), n + ".down", 4 * dim, dim))
    x = g.norm(x, "ln_f", dim)
    g.output(g.op("MatMul", x, g.init("lm_head", np.ascontiguousarray(wte.T) * np.float32(1 / math.sqrt(dim)))), "logits")
    for value, name in present:
        g.output(value, name)


@model
def gpt2_decode(small, seed):
    g = Graph("gpt2_decode", seed)
    gpt2_graph(g, small, 8 if small else 128, 1)
    return g


@model
def gpt2_prefill(small, seed):
    g = Graph("gpt2_prefill", seed)
    gpt2_graph(g, small, 0, 16 if small else 128)
    return g


@model
def llama_decode(small, seed):
    g = Graph("llama_decode", seed)
    llama_graph(g, small)
    return g


def llama_graph(g, small, batch=1):
    layers, heads, kv, dim, hidden, vocab, past = (2, 4, 2, 32, 64, 100, 8) if small else (8, 16, 4, 1024, 2816, 32000, 256)
    d, total, ctx = dim // heads, past + 1, 2048 if not small else 64
    ids, pos = g.input("input_ids", [batch, 1], np.int64), g.input("position_ids", [batch, 1], np.int64)
    mask = g.input("attention_mask", [batch, total], np.int64)
    m = g.op("Cast", g.op("Unsqueeze", mask, g.shape(1, 2)), to=TensorProto.FLOAT)
    m = g.op("Mul", g.op("Sub", g.const(1), m), g.const(-1e9))
    angle = np.outer(np.arange(ctx), 10000.0 ** (-np.arange(0, d, 2) / d))
    angle = np.concatenate([angle, angle], 1)
    table = lambda n, f: g.op("Unsqueeze", g.op("Gather", g.init(n, f(angle).astype(np.float32)), pos), g.shape(1))
    cos, sin = table("cos", np.cos), table("sin", np.sin)

    def rms(x, name):
        v = g.op("ReduceMean", g.op("Pow", x, g.const(2)), axes=[-1], keepdims=1)
        r = g.op("Div", g.const(1), g.op("Sqrt", g.op("Add", v, g.const(1e-5))))
        return g.op("Mul", g.weight(name, (dim,), 0.1, 1.0), g.op("Mul", x, r))

    def rope(x):
        half = lambda a, b: g.op("Slice", x, g.shape(a), g.shape(b), g.shape(3), g.shape(1))
        turned = g.op("Concat", g.op("Neg", half(d // 2, 2**63 - 1)), half(0, d // 2), axis=-1)
        return g.op("Add", g.op("Mul", x, cos), g.op("Mul", turned, sin))

    def repeat(x):  # grouped queries: every key-value head serves heads/kv query heads
        y = g.op("Expand", g.op("Unsqueeze", x, g.shape(2)), g.shape(1, kv, heads // kv, total, d))
        return g.reshape(y, free(batch), heads, total, d)

    x, present = g.op("Gather", g.weight("embed", (vocab, dim), 1), ids), []
    for i in range(layers):
        n = f"l{i}"
        h = rms(x, n + ".n1")
        q = rope(heads_split(g, g.linear(h, n + ".q", dim, dim, bias=False), free(batch), 1, heads, d))
        k = rope(heads_split(g, g.linear(h, n + ".k", dim, kv * d, bias=False), free(batch), 1, kv, d))
        v = heads_split(g, g.linear(h, n + ".v", dim, kv * d, bias=False), free(batch), 1, kv, d)
        k = g.op("Concat", g.input(f"past.{i}.key", [batch, kv, past, d]), k, axis=2)
        v = g.op("Concat", g.input(f"past.{i}.value", [batch, kv, past, d]), v, axis=2)
        present += [(k, f"present.{i}.key"), (v, f"present.{i}.value")]
        s = g.op("Div", g.op("MatMul", q, g.transpose(repeat(k), 0, 1, 3, 2)), g.const(math.sqrt(d)))
        c = g.op("MatMul", g.op("Softmax", g.op("Add", s, m), axis=-1), repeat(v))
        c = g.reshape(g.transpose(c, 0, 2, 1, 3), free(batch), 1, dim)
        x = g.op("Add", x, g.linear(c, n + ".o", dim, dim, bias=False))
        h = rms(x, n + ".n2")
        h = g.op("Mul", g.silu(g.linear(h, n + ".gate", dim, hidden, bias=False)), g.linear(h, n + ".up", dim, hidden, bias=False))
        x = g.op("Add", x, g.linear(h, n + ".down", hidden, dim, bias=False))
    g.output(g.linear(rms(x, "norm"), "lm_head", dim, vocab, bias=False), "logits")
    for value, name in present:
        g.output(value, name)
