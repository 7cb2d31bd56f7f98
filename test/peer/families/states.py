"""Families whose layers keep a state of all tokens at once: convolutions and linear attention."""
import numpy as np
from onnx import helper

from decoder import MICROSOFT, Decoder


class WithStates(Decoder):
    """Every layer but those of `full` has states."""

    def mixed(self, x, i):
        return self.attend(x, i) if i in self.o["extra"]["full"] else self.state_layer(x, i, f"layers.{i}.state")

    def state(self, key, i, shape):
        past, present = (self.o["extra"][key][k] % i for k in (0, 1))
        self.caches.append((past, present))
        return self.input(past, ["batch_size", *shape]), present

    def emitted(self, kind, ins, present, **attrs):
        y = self.fresh(kind.lower())
        self.nodes.append(helper.make_node(kind, ins, [y, present], name=self.fresh("n"), domain=MICROSOFT, **attrs))
        return y


class ShortConvolutions(WithStates):
    """lfm2: a gated depthwise convolution over the last three tokens."""

    def state_layer(self, x, i, name):
        width = 3
        b, c, y = self.op("Split", self.matmul(x, name + ".in", self.hidden, 3 * self.hidden), n=3, axis=-1)
        past, present = self.state("conv", i, [self.hidden, width - 1])
        gated = self.transpose(self.op("Mul", b, y), 0, 2, 1)
        w = self.weight(name + ".conv", (self.hidden, 1, width), 0.6)
        y = self.emitted("CausalConvWithState", [gated, w, "", past], present, activation="none", ndim=1)
        return self.matmul(self.op("Mul", c, self.transpose(y, 0, 2, 1)), name + ".out", self.hidden, self.hidden)


class GatedDeltaNet(WithStates):
    """qwen3.5: convolution, then the gated delta rule with twice as many value heads as key heads."""

    def state_layer(self, x, i, name):
        keys, values, d = 2, 4, self.depth
        k_size, v_size, fused = keys * d, values * d, self.o["extra"]["gates"]
        width = 2 * k_size + v_size
        past, present = self.state("conv", i, [width, 3])
        mixed = self.matmul(x, name + ".qkv", self.hidden, width)
        w = self.weight(name + ".conv", (width, 1, 4), 0.6)
        y = self.emitted("CausalConvWithState", [self.transpose(mixed, 0, 2, 1), w, "", past], present, activation="silu")
        q, k, v = (self.op("Slice", self.transpose(y, 0, 2, 1), self.shape(a), self.shape(b), self.shape(2))
                   for a, b in ((0, k_size), (k_size, 2 * k_size), (2 * k_size, width)))
        q, k = (self.reshape(self.op("LpNormalization", self.reshape(t, 0, 0, keys, d), axis=-1, p=2), 0, 0, k_size) for t in (q, k))
        a, b = (self.matmul(x, f"{name}.{n}", self.hidden, values) for n in "ab")
        kind = np.float32 if fused else self.dtype  # the operator has these in f32
        bias, factor = (self.init(f"{name}.{n}", v.astype(kind))
                        for n, v in (("dt", self.random(name + ".dt", (values,), 0.5)), ("a", -abs(self.random(name + ".a", (values,), 0.5)))))
        if fused:
            decay, beta = self.ms("LinearAttentionGate", a, bias, factor, b, n=2)
        else:
            decay, beta = self.op("Mul", factor, self.op("Softplus", self.op("Add", a, bias))), self.op("Sigmoid", b)
        past, present = self.state("recurrent", i, [values, d, d])
        y = self.emitted("LinearAttention", [q, k, v, past, decay, beta], present, q_num_heads=keys, kv_num_heads=values,
                         update_rule="gated_delta", scale=d ** -0.5)
        z = self.matmul(x, name + ".z", self.hidden, v_size)
        gains = self.weight(name + ".norm", (d,), 0.2, 1.0)
        if fused:
            y = self.ms("GatedRMSNorm", y, gains, z, epsilon=1e-6)
        else:
            rows = self.op("SimplifiedLayerNormalization", self.reshape(y, 0, 0, values, d), gains, axis=-1, epsilon=1e-6, stash_type=1)
            y = self.op("Mul", self.reshape(rows, 0, 0, v_size), self.silu(z))
        return self.matmul(y, name + ".out", v_size, self.hidden)


class GatedDeltaNetOfExperts(GatedDeltaNet):
    """qwen3.5 with experts, one of which all tokens have, by a gate of its own."""

    def feed_forward(self, x, i):
        name = f"layers.{i}.mlp.shared"
        gate, up = (self.matmul(x, f"{name}.{n}", self.hidden, self.inner) for n in ("gate", "up"))
        own = self.matmul(self.op("Mul", self.silu(gate), up), name + ".down", self.inner, self.hidden)
        open_ = self.op("Sigmoid", self.matmul(x, name + ".open", self.hidden, 1))
        return self.op("Add", self.shaped(super().feed_forward(x, i), x), self.op("Mul", open_, own))
