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
from attention import MICROSOFT, Attention  # noqa: E402
from graph import Graph  # noqa: E402

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


class Decoder(Attention, Graph):
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
