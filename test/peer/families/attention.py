"""Attention of language models, in the operators that exporters write: a part of the class Decoder."""
import math

import numpy as np
from onnx import helper, numpy_helper

MICROSOFT = "com.microsoft"


class Attention:
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
