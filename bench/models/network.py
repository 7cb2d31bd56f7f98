"""Whole networks of many kinds, which generate.py writes with --corpus; they take 3 GB and two minutes."""
import numpy as np

from graph import Graph

NETWORKS = {}


class Network(Graph):
    """A graph that knows what values its inputs take, for bench_operators' list. `batch` is a number or a name."""

    def __init__(self, name, seed, batch):
        super().__init__(name, seed)
        self.batch, self.fields = batch, []

    def input(self, name, shape, dtype=None, low=None, high=None, values=None):
        whole = np.dtype(dtype or self.dtype).kind in "iu"
        low, high = (1 if whole else -1) if low is None else low, (2 if whole else 1) if high is None else high
        self.fields.append((name, shape, "=" + ",".join(map(str, values)) if values is not None else f"{low}:{high}"))
        return super().input(name, shape, dtype)

    def listed(self, batch):
        """The list's fields for a run at this batch."""
        return ["|".join((n, ",".join(str(batch if isinstance(d, str) else d) for d in shape), values)) for n, shape, values in self.fields]

    def rows(self, x, *dims):
        """Reshape to a batch of these extents."""
        return self.reshape(x, self.batch if isinstance(self.batch, int) else -1, *dims)

    def classifier(self, x, cin, classes, name="fc"):
        self.output(self.op("Gemm", x, self.weight(name + ".w", (classes, cin), 2 / cin ** 0.5), self.weight(name + ".b", (classes,), 0.02), transB=1), "logits")

    def pooled(self, x):
        return self.op("Flatten", self.op("GlobalAveragePool", x), axis=1)

    def conv1d(self, x, name, cin, cout, k, stride=1, group=1, pads=None, dilation=1, bias=True):
        ins = [x, self.weight(name + ".w", (cout, cin // group, k), (cin // group * k) ** -0.5)]
        ins += [self.weight(name + ".b", (cout,), 0.02)] if bias else []
        return self.op("Conv", *ins, kernel_shape=[k], strides=[stride], pads=pads or [k // 2] * 2, group=group, dilations=[dilation])

    def attention(self, q, k, v, heads, d, queries, keys, mask=None):
        """Of projected rows; `mask` is added to the scores."""
        split = lambda t, n, *perm: self.transpose(self.rows(t, n, heads, d), *perm)
        s = self.op("MatMul", split(q, queries, 0, 2, 1, 3), split(k, keys, 0, 2, 3, 1))
        s = self.op("Mul", s, self.const(d ** -0.5))
        s = self.op("Add", s, mask) if mask else s
        c = self.op("MatMul", self.op("Softmax", s, axis=-1), split(v, keys, 0, 2, 1, 3))
        return self.rows(self.transpose(c, 0, 2, 1, 3), queries, heads * d)

    def attended(self, x, name, dim, heads, queries, keys=None, other=None, mask=None, other_dim=None, bias=True):
        """Attention with its projections, over `other` where it is given."""
        o, n = (other, keys) if other else (x, queries)
        q = self.linear(x, name + ".q", dim, dim, bias=bias)
        k, v = (self.linear(o, f"{name}.{t}", other_dim or dim, dim, bias=bias) for t in "kv")
        return self.linear(self.attention(q, k, v, heads, dim // heads, queries, n, mask), name + ".o", dim, dim)

    def feed_forward(self, x, name, dim, hidden, act=None):
        return self.linear((act or self.gelu_erf)(self.linear(x, name + ".up", dim, hidden)), name + ".down", hidden, dim)

    def encoder_layer(self, x, name, dim, heads, seq, hidden=None, mask=None):
        """A Transformer layer whose norms come first."""
        x = self.op("Add", x, self.attended(self.norm(x, name + ".n1", dim), name + ".a", dim, heads, seq, mask=mask))
        return self.op("Add", x, self.feed_forward(self.norm(x, name + ".n2", dim), name + ".f", dim, hidden or 4 * dim))


def network(batches=(1,), dynamic=(), only_dynamic=()):
    """Registers f(g, small) for fixed batches, and with a named batch run at those of `dynamic` (or `only_dynamic`)."""
    def add(f):
        for b in batches if not only_dynamic else ():
            NETWORKS[f.__name__ + (f"_b{b}" if b != 1 else "")] = (f, b, [b])
        if dynamic or only_dynamic:
            NETWORKS[f.__name__ + "_dynamic"] = (f, "batch", list(dynamic or only_dynamic))
        return f
    return add


def build(name, small, seed):
    f, batch, runs = NETWORKS[name]
    g = Network(name, seed, batch)
    f(g, small)
    return g, runs
