"""What the graphs of language models are made of, as exporters write them: kiln compares their tokens with ONNX Runtime's.

A family is a set of options (families.py); every part is written once and looks them up.
"""
import math
import os
import sys
import zlib

import numpy as np
from onnx import helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../bench/models"))
from graph import Graph  # noqa: E402

MICROSOFT = "com.microsoft"
DEFAULTS = dict(
    type="llama", dtype=np.float32, opset=17, layers=2, vocab=48, hidden=32, heads=4, kv=2, depth=16, inner=32,
    attention="packed",      # packed, grouped, multi_head, ops, sparse, gpt2
    norms="rms",             # rms, layer (with bias), plain (no weights)
    fused_norm=True,         # skip connections inside the norms
    biases=(),               # of "qkv", "out", "mlp", "head"
    rotary=1.0,              # share of each head that turns
    interleaved=False, theta=10000.0, rope=True,
    no_rope=(),              # layers whose heads do not turn
    long_rope=None,          # tokens that turn by the short angles
    head_norm=False,         # norms of queries and keys
    mlp="silu",              # silu, gelu, relu2, packed_silu, gelu_gate, moe, quantized_moe
    parallel=False,          # attention and mlp of the same normalized input
    post_norms=False,        # norms behind attention and mlp too
    embed_scale=1.0, residual_scale=1.0, logit_scale=1.0, attention_scale=0.0,
    softcap=0.0, final_softcap=0.0, window=-1, local_layers=None, sinks=False, smooth=False,
    bits=0, experts=4, chosen=2, normalize=1, three=False, twin=False, extra={}, context=512, prompt=(7, 12), steps=64,
    config=None, zero_points=False,
    axes=1,                  # of positions; texts have the same on all
    by_layer=())             # (depth, kv) of each layer, where they differ


class Decoder(Graph):
    def __init__(self, name, seed, **options):
        self.o = dict(DEFAULTS, **options)
        super().__init__(name, seed, self.o["dtype"])
        self.caches = []  # names of (past, present)

    def __getattr__(self, key):
        try:
            return self.__dict__["o"][key]
        except KeyError:
            raise AttributeError(key) from None

    # -- the parts of all
    def ms(self, kind, *ins, n=1, **attrs):
        return self.op(kind, *ins, n=n, domain=MICROSOFT, **attrs)

    def cast(self, x, dtype):
        return self.op("Cast", x, to=helper.mapping.NP_TYPE_TO_TENSOR_TYPE[np.dtype(dtype)])

    def scaled(self, x, factor):
        return x if factor == 1 else self.op("Mul", x, self.const(factor))

    def matmul(self, x, name, cin, cout, bias=False, gain=1.0):
        if self.bits:
            blocks = cin // 32
            q = self.rng(name).integers(0, 256, (cout, blocks, 16), np.uint8)
            # fields are even: their standard deviation is 4.6
            scale = (gain / (4.6 * math.sqrt(cin)) * (1 + 0.1 * self.random(name + ".s", (cout * blocks,), 1))).astype(self.dtype)
            ins = [x, self.init(name + ".q", q), self.init(name + ".s", scale)]
            if self.zero_points:
                zeros = self.rng(name + ".z").integers(0, 256, (cout * ((blocks + 1) // 2),), np.uint8)
                ins.append(self.init(name + ".z", zeros & 0x77))
            y = self.ms("MatMulNBits", *ins, K=cin, N=cout, bits=4, block_size=32, accuracy_level=0)
        else:
            y = self.op("MatMul", x, self.weight(name + ".w", (cin, cout), gain / math.sqrt(cin)))
        return self.op("Add", y, self.weight(name + ".b", (cout,), 0.3)) if bias else y

    def rng(self, name):
        return np.random.default_rng([self.seed, zlib.crc32(name.encode())])

    def gains(self, name, dim=None):
        dim = dim or self.hidden
        if self.norms == "plain":
            return [self.const(np.ones(dim))]
        w = [self.weight(name + ".g", (dim,), 0.2, 1.0)]
        return w + [self.weight(name + ".b", (dim,), 0.2)] if self.norms == "layer" else w

    def normalized(self, x, name, dim=None):
        """The norm alone; in ONNX's own operators where nothing is fused."""
        w = self.gains(name, dim)
        if self.norms != "rms":
            return self.op("LayerNormalization", x, *w, axis=-1, epsilon=1e-5)
        if self.fused_norm:
            return self.op("SimplifiedLayerNormalization", x, w[0], axis=-1, epsilon=1e-5, stash_type=1)
        wide = self.cast(x, np.float32) if self.dtype != np.float32 else x
        one = lambda v: self.const(v, np.float32)
        mean = self.op("ReduceMean", self.op("Pow", wide, one(2)), axes=[-1])
        y = self.op("Mul", wide, self.op("Div", one(1), self.op("Sqrt", self.op("Add", mean, one(1e-5)))))
        return self.op("Mul", w[0], self.cast(y, self.dtype) if self.dtype != np.float32 else y)

    def added_norm(self, x, skip, name):
        """The norm of x + skip, and the sum."""
        skip = self.scaled(skip, self.residual_scale)
        if not self.fused_norm or self.norms == "plain":
            total = self.op("Add", x, skip)
            return self.normalized(total, name), total
        kind = "SkipSimplifiedLayerNormalization" if self.norms == "rms" else "SkipLayerNormalization"
        y, total = self.fresh("norm"), self.fresh("sum")
        self.nodes.append(helper.make_node(kind, [x, skip] + self.gains(name), [y, "", "", total], name=self.fresh("n"),
                                           domain=MICROSOFT, epsilon=1e-5))
        return y, total

    # -- inputs
    def describe_inputs(self):
        ids = np.int32 if self.attention == "gpt2" else np.int64
        self.ids = self.input("input_ids", ["batch_size", "sequence_length"], ids)
        self.mask = self.input("attention_mask", ["batch_size", "total_sequence_length"], ids)
        self.positions = None
        if self.attention in ("multi_head", "ops", "gpt2", "grouped"):
            own = [self.axes] if self.axes > 1 else []
            self.positions = self.input("position_ids", own + ["batch_size", "sequence_length"], ids)
            if own:
                self.positions = self.op("Gather", self.positions, self.const(1, np.int64), axis=0)

    def cache(self, past, present, shape):
        self.caches.append((past, present))
        return self.input(past, shape)

    def keys_values(self, i):
        shape = ["batch_size", self.kv, "past_sequence_length", self.depth]
        return [self.cache(f"past_key_values.{i}.{k}", f"present.{i}.{k}", shape) for k in ("key", "value")]

    def extent(self, x, axis):
        return self.op("Gather", self.op("Shape", x), self.const(axis, np.int64), axis=0)

    def lengths(self):
        """seqlens_k and total_sequence_length of GroupQueryAttention, once."""
        if not hasattr(self, "lens"):
            count = self.op("ReduceSum", self.mask, self.shape(1), keepdims=0)
            ends = count if self.attention == "sparse" else self.op("Sub", count, self.const(1, np.int64))
            self.lens = self.cast(ends, np.int32), self.cast(self.extent(self.mask, 1), np.int32)
        return self.lens

    # -- angles
    def tables(self, factor=1.0, rows=None, theta=None):
        pairs = int(self.depth * self.rotary) // 2
        rows = rows or self.context
        angle = np.arange(rows)[:, None] * ((theta or self.theta) ** -(np.arange(pairs) / pairs) / factor)[None]
        return np.cos(angle).astype(self.dtype), np.sin(angle).astype(self.dtype)

    def angles(self, i):
        """Names of the tables of cos and sin of a layer."""
        local = self.local_layers is not None and i in self.local_layers
        theta = self.o["extra"].get("local_theta") if local else None
        key = f"angles_{theta}_{self.depth}"
        if key not in self.__dict__:
            if self.long_rope:
                self.__dict__[key] = self.chosen_tables()
            else:
                cos, sin = self.tables(theta=theta)
                self.__dict__[key] = self.init("cos" + key, cos), self.init("sin" + key, sin)
        return self.__dict__[key]

    def chosen_tables(self):
        """An If takes the long or the short factors by the total length."""
        total = self.extent(self.mask, 1)
        is_long = self.op("Greater", total, self.const(self.long_rope, np.int64))

        def branch(name, tables):
            outs = [name + "_cos", name + "_sin"]
            nodes = [helper.make_node("Constant", [], [o], name=o, value=numpy_helper.from_array(t, o)) for o, t in zip(outs, tables)]
            kind = helper.mapping.NP_TYPE_TO_TENSOR_TYPE[self.dtype]
            infos = [helper.make_tensor_value_info(o, kind, t.shape) for o, t in zip(outs, tables)]
            return helper.make_graph(nodes, name, [], infos)
        long, short = self.tables(4.0), self.tables(1.0, self.long_rope)
        return self.op("If", is_long, n=2, then_branch=branch("long", [t * np.dtype(self.dtype).type(1.2) for t in long]),
                       else_branch=branch("short", short))

    # -- attention
    def heads_of(self, x, n):
        return self.transpose(self.reshape(x, 0, 0, n, self.depth), 0, 2, 1, 3)

    def head_norms(self, q, k, name):
        if not self.head_norm:
            return q, k

        def one(x, n, which):
            y = self.normalized(self.reshape(x, 0, -1, n, self.depth), f"{name}.{which}_norm", self.depth)
            return self.reshape(y, 0, -1, n * self.depth)
        return one(q, self.heads, "q"), one(k, self.kv, "k")

    def turned(self, x, i, n):
        cos, sin = self.angles(i)
        attrs = dict(interleaved=int(self.interleaved))
        if self.rotary != 1:
            attrs.update(rotary_embedding_dim=int(self.depth * self.rotary), num_heads=n)
        return self.ms("RotaryEmbedding", x, self.positions, cos, sin, **attrs)

    def turned_by_ops(self, x, i, n):
        """x [batch, heads, sequence, depth] by elementary operators."""
        cos, sin = (self.op("Unsqueeze", self.op("Gather", self.op("Concat", t, t, axis=1), self.positions, axis=0), self.shape(1))
                    for t in self.angles(i))
        a, b = self.op("Split", x, n=2, axis=3)
        return self.op("Add", self.op("Mul", x, cos), self.op("Mul", self.op("Concat", self.op("Neg", b), a, axis=3), sin))

    def score_mask(self, i):
        """What is added to scores, [batch, 1, sequence, total]."""
        window = self.window_of(i)
        key = f"mask_{window}"
        if key in self.__dict__:
            return self.__dict__[key]
        zero, one = self.const(0, np.int64), self.const(1, np.int64)
        total, now = self.extent(self.mask, 1), self.extent(self.ids, 1)
        keys = self.op("Unsqueeze", self.op("Range", zero, total, one), self.shape(0))
        queries = self.op("Unsqueeze", self.op("Range", self.op("Sub", total, now), total, one), self.shape(1))
        seen = self.op("LessOrEqual", keys, queries)
        if window > 0:
            seen = self.op("And", seen, self.op("Greater", keys, self.op("Sub", queries, self.const(window, np.int64))))
        pad = self.op("Unsqueeze", self.cast(self.mask, np.bool_), self.shape(1, 2))
        seen = self.op("And", self.op("Unsqueeze", seen, self.shape(0, 1)), pad)
        least = np.finfo(self.dtype).min
        self.__dict__[key] = self.op("Where", seen, self.const(0), self.const(least))
        return self.__dict__[key]

    def window_of(self, i):
        return self.window if self.local_layers is None or i in self.local_layers else -1

    def repeated(self, x):
        """Each head of [batch, kv, total, depth] for its queries."""
        times = self.heads // self.kv
        if times == 1:
            return x
        shape = self.op("Shape", x)
        part = lambda a, b: self.op("Slice", shape, self.shape(a), self.shape(b))
        wide = self.op("Concat", part(0, 2), self.shape(times), part(2, 4), axis=0)
        y = self.op("Expand", self.op("Unsqueeze", x, self.shape(2)), wide)
        return self.op("Reshape", y, self.op("Concat", part(0, 1), self.shape(self.heads), part(2, 4), axis=0))

    def attend(self, x, i):
        name = f"layers.{i}.attn"
        if self.by_layer:
            self.o.update(depth=self.by_layer[i][0], kv=self.by_layer[i][1])
        if self.attention == "gpt2":
            return self.attend_gpt2(x, i, name)
        q_size, kv_size, bias = self.heads * self.depth, self.kv * self.depth, "qkv" in self.biases
        pasts = self.keys_values(i)
        presents = [p for _, p in self.caches[-2:]]
        rope = self.rope and i not in self.no_rope
        if self.attention in ("packed", "sparse") and not self.head_norm:
            packed = self.matmul(x, name + ".qkv", self.hidden, q_size + 2 * kv_size, bias)
            y = self.fused(name, i, [packed, "", ""], pasts, presents, rope)
        else:
            q = self.matmul(x, name + ".q", self.hidden, q_size, bias)
            k = self.matmul(x, name + ".k", self.hidden, kv_size, bias)
            v = self.matmul(x, name + ".v", self.hidden, kv_size, bias)
            q, k = self.head_norms(q, k, name)
            y = getattr(self, "attend_" + self.attention)(name, i, q, k, v, pasts, presents, rope)
        return self.matmul(y, name + ".o", q_size, self.hidden, "out" in self.biases)

    def fused(self, name, i, qkv, pasts, presents, rope):
        """GroupQueryAttention or SparseAttention that turns and appends by itself."""
        cos, sin = self.angles(i) if rope else ("", "")
        attrs = dict(num_heads=self.heads, kv_num_heads=self.kv, do_rotary=int(rope), rotary_interleaved=int(self.interleaved))
        if self.attention_scale:
            attrs["scale"] = self.attention_scale
        lens, total = self.lengths()
        y = self.fresh("attention")
        if self.attention == "sparse":
            ins = qkv + pasts + list(self.layouts()) + [total, lens, cos, sin]
            kind, attrs["sparse_block_size"] = "SparseAttention", 16
        else:
            kind, ins = "GroupQueryAttention", qkv + pasts + [lens, total, cos, sin]
            attrs.update(local_window_size=self.window_of(i), softcap=self.softcap, smooth_softmax=int(self.smooth))
            if self.sinks:
                ins += ["", "", self.weight(name + ".sinks", (self.heads,), 1.0)]
        self.nodes.append(helper.make_node(kind, ins, [y] + presents, name=self.fresh("n"), domain=MICROSOFT, **attrs))
        return y

    def layouts(self):
        """Rows and columns of two layouts: blocks of the last one and of every second one from the first or the next."""
        blocks = self.context // 16
        rows, columns = [], []
        for layout in range(2):
            row, column = [0], []
            for q in range(blocks):
                column += [k for k in range(q + 1) if k == q or k % 2 == layout]
                row.append(len(column))
            rows.append(row)
            columns.append(column)
        most = max(map(len, columns))
        columns = [c + [-1] * (most - len(c)) for c in columns]
        return self.const(rows, np.int32), self.const(columns, np.int32)

    def attend_packed(self, name, i, q, k, v, pasts, presents, rope):
        return self.fused(name, i, [q, k, v], pasts, presents, rope)

    def attend_grouped(self, name, i, q, k, v, pasts, presents, rope):
        if rope:
            q, k = self.turned(q, i, self.heads), self.turned(k, i, self.kv)
        return self.fused(name, i, [q, k, v], pasts, presents, False)

    def attend_multi_head(self, name, i, q, k, v, pasts, presents, rope):
        if rope:
            q, k = self.turned(q, i, self.heads), self.turned(k, i, self.kv)
        attrs = dict(num_heads=self.heads, **({"scale": self.attention_scale} if self.attention_scale else {}))
        if self.kv == self.heads:
            y = self.fresh("attention")
            self.nodes.append(helper.make_node("MultiHeadAttention", [q, k, v, "", "", self.score_mask(i)] + pasts, [y] + presents,
                                               name=self.fresh("n"), domain=MICROSOFT, **attrs))
            return y
        whole = [self.appended(p, self.heads_of(x, self.kv), o) for p, x, o in zip(pasts, (k, v), presents)]
        flat = [self.repeated(x) for x in whole]
        return self.ms("MultiHeadAttention", q, *flat, "", "", self.score_mask(i), **attrs)

    def appended(self, past, now, present):
        self.nodes.append(helper.make_node("Concat", [past, now], [present], name=self.fresh("n"), axis=2))
        return present

    def attend_ops(self, name, i, q, k, v, pasts, presents, rope):
        q, k, v = self.heads_of(q, self.heads), self.heads_of(k, self.kv), self.heads_of(v, self.kv)
        if rope:
            q, k = self.turned_by_ops(q, i, self.heads), self.turned_by_ops(k, i, self.kv)
        k, v = (self.repeated(self.appended(p, x, o)) for p, x, o in zip(pasts, (k, v), presents))
        s = self.op("Mul", self.op("MatMul", q, self.transpose(k, 0, 1, 3, 2)), self.const(self.attention_scale or self.depth ** -0.5))
        if self.softcap:
            s = self.op("Mul", self.op("Tanh", self.op("Div", s, self.const(self.softcap))), self.const(self.softcap))
        p = self.op("Softmax", self.op("Add", s, self.score_mask(i)), axis=-1)
        return self.reshape(self.transpose(self.op("MatMul", p, v), 0, 2, 1, 3), 0, 0, self.heads * self.depth)

    def attend_gpt2(self, x, i, name):
        past = self.cache(f"past_{i}", f"present_{i}", [2, "batch_size", self.heads, "past_sequence_length", self.depth])
        y, size = self.fresh("attention"), self.heads * self.depth
        w = self.weight(name + ".qkv", (self.hidden, 3 * size), 1 / math.sqrt(self.hidden))
        self.nodes.append(helper.make_node("Attention", [x, w, self.weight(name + ".b", (3 * size,), 0.3), self.mask, past],
                                           [y, f"present_{i}"], name=self.fresh("n"), domain=MICROSOFT, num_heads=self.heads,
                                           unidirectional=1))
        return self.matmul(y, name + ".o", size, self.hidden, True)

    # -- feed forward
    def feed_forward(self, x, i):
        name, bias = f"layers.{i}.mlp", "mlp" in self.biases
        if self.mlp in ("moe", "quantized_moe"):
            return self.mixture(x, name)
        if self.mlp == "packed_silu":
            gate, up = self.op("Split", self.matmul(x, name + ".gate_up", self.hidden, 2 * self.inner, bias), n=2, axis=-1)
            y = self.op("Mul", self.silu(gate), up)
        elif self.mlp in ("silu", "gelu_gate"):
            gate, up = (self.matmul(x, f"{name}.{n}", self.hidden, self.inner, bias) for n in ("gate", "up"))
            y = self.op("Mul", self.silu(gate) if self.mlp == "silu" else self.ms("FastGelu", gate), up)
        else:
            y = self.matmul(x, name + ".up", self.hidden, self.inner, bias)
            if self.mlp == "gelu":
                y = self.ms("FastGelu", y)
            else:
                y = self.op("Relu", y)
                y = self.op("Mul", y, y)
        return self.matmul(y, name + ".down", self.inner, self.hidden, bias)

    def mixture(self, x, name):
        """Experts of two layers, the first with gates and values in turn, or of three: ONNX Runtime's CPU has no third, there
        `twin` writes the same as two."""
        flat = self.reshape(x, -1, self.hidden)
        logits = self.matmul(flat, name + ".router", self.hidden, self.experts, "mlp" in self.biases, 2.0)
        clipped, e = self.type == "gptoss", self.experts
        attrs = dict(k=self.chosen, normalize_routing_weights=self.normalize)
        up, down = (e, self.inner, self.hidden), (e, self.hidden, self.inner)
        gate, linear, second = (self.expert_layer(f"{name}.{n}", s) for n, s in (("gate", up), ("up", up), ("down", down)))
        if self.three and not self.twin:
            attrs["activation_type"] = "silu"
            layers = gate, second, linear
        else:
            turns = [np.stack([g, u], 2).reshape(e, -1, *g.shape[2:]) for g, u in zip(gate, linear)]
            attrs.update(activation_type="swiglu", swiglu_fusion=1)
            attrs.update(dict(activation_alpha=1.702, activation_beta=1.0, swiglu_limit=7.0) if clipped else
                         dict(activation_alpha=1.0, activation_beta=0.0))
            layers = turns, second
        ins = []
        for k, arrays in enumerate(layers):
            ins += [self.init(f"{name}.{k}.{j}", a) for j, a in enumerate(arrays)]
            ins.append(self.weight(f"{name}.{k}.b", arrays[0].shape[:2], 0.2) if clipped else "")
        if self.mlp == "moe":
            return self.ms("MoE", flat, logits, *ins, **attrs)
        return self.ms("QMoE", flat, logits, *ins, expert_weight_bits=4, **attrs)

    def expert_layer(self, name, s):
        """Weights, or 4-bit fields and scales, of all experts [experts, outputs, inputs]."""
        gain = 1 / math.sqrt(s[2])
        if self.mlp == "moe":
            return [self.random(name, s, gain).astype(self.dtype)]
        fields = self.rng(name).integers(0, 256, (s[0], s[1], s[2] // 2), np.uint8)
        return [fields, (gain / 4.6 * (1 + 0.2 * self.random(name + ".s", s[:2], 1))).astype(self.dtype)]

    # -- the whole
    def embedded(self):
        x = self.op("Gather", self.weight("embed", (self.vocab, self.hidden), 1.0), self.ids, axis=0)
        if self.attention == "gpt2":
            x = self.op("Add", x, self.op("Gather", self.weight("places", (self.context, self.hidden), 0.5), self.positions, axis=0))
        return self.scaled(x, self.embed_scale)

    def mixed(self, x, i):
        """What a layer's first half adds; families with other states have their own."""
        return self.attend(x, i)

    def build(self):
        self.describe_inputs()
        x = self.embedded()
        y = self.normalized(x, "layers.0.norm")
        for i in range(self.layers):
            name, last = f"layers.{i}", i + 1 == self.layers
            following = "norm" if last else f"layers.{i + 1}.norm"
            if self.parallel:
                both = self.op("Add", self.mixed(y, i), self.shaped(self.feed_forward(y, i), y))
                y, x = self.added_norm(x, both, following)
                continue
            a = self.mixed(y, i)
            if self.post_norms:
                a = self.normalized(a, name + ".after")
            y, x = self.added_norm(x, a, name + ".mlp_norm")
            m = self.shaped(self.feed_forward(y, i), y)
            if self.post_norms:
                m = self.normalized(m, name + ".mlp_after")
            y, x = self.added_norm(x, m, following)
        logits = self.matmul(y, "head", self.hidden, self.vocab, "head" in self.biases, 3.0)
        logits = self.scaled(logits, self.logit_scale)
        if self.final_softcap:
            cap = self.const(self.final_softcap)
            logits = self.op("Mul", self.op("Tanh", self.op("Div", logits, cap)), cap)
        self.output(logits, "logits")
        self.outputs += [present for _, present in self.caches]
        return self

    def shaped(self, x, like):
        return self.op("Reshape", x, self.op("Shape", like)) if self.mlp in ("moe", "quantized_moe") else x

    def proto(self):
        inits = [numpy_helper.from_array(a, n) for n, a in self.inits.items()]
        kind = helper.mapping.NP_TYPE_TO_TENSOR_TYPE[np.dtype(self.dtype)]
        of = {v.name: v for v in self.inputs}
        outs = [helper.make_tensor_value_info("logits", kind, ["batch_size", "sequence_length", self.vocab])]
        for past, present in self.caches:
            dims = [d.dim_param or d.dim_value for d in of[past].type.tensor_type.shape.dim]
            dims = ["total_sequence_length" if d == "past_sequence_length" else d for d in dims]
            outs.append(helper.make_tensor_value_info(present, of[past].type.tensor_type.elem_type, dims))
        g = helper.make_graph(self.nodes, self.name, self.inputs, outs, inits)
        m = helper.make_model(g, opset_imports=[helper.make_opsetid("", self.opset), helper.make_opsetid(MICROSOFT, 1)],
                              producer_name="kiln-families")
        m.ir_version = 8
        return m

    def settings(self):
        """genai_config.json."""
        decoder = dict(filename="model.onnx", hidden_size=self.hidden, num_attention_heads=self.heads, num_key_value_heads=self.kv,
                       num_hidden_layers=self.layers, head_size=self.depth)
        if self.attention == "gpt2":
            decoder["inputs"] = dict(past_names="past_%d")
            decoder["outputs"] = dict(present_names="present_%d")
        decoder.update(self.o["extra"].get("decoder", {}))
        model = dict(type=self.type, vocab_size=self.vocab, context_length=self.context, eos_token_id=self.vocab - 1,
                     pad_token_id=self.vocab - 1, bos_token_id=1, decoder=decoder)
        return self.config if self.config is not None else dict(model=model, search=dict(max_length=self.context))
