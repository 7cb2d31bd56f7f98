"""A small builder of ONNX graphs with seeded random weights (python3-onnx)."""
import math
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

OPSET = 17
MODELS = {}


def model(f):
    """Registers a function (small, seed) -> Graph under its name."""
    MODELS[f.__name__] = f
    return f


class Graph:
    """An ONNX graph under construction; every method that makes a value returns its name."""

    def __init__(self, name, seed, dtype=np.float32):
        self.name, self.seed, self.dtype = name, seed, np.dtype(dtype)
        self.nodes, self.inits, self.inputs, self.outputs = [], {}, [], []
        self.consts, self.count, self.typed = {}, 0, []

    # -- values
    def fresh(self, hint):
        self.count += 1
        return f"{hint}_{self.count}"

    def input(self, name, shape, dtype=None):
        kind = helper.mapping.NP_TYPE_TO_TENSOR_TYPE[np.dtype(dtype or self.dtype)]
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, value, name):
        for nd in self.nodes:
            for values in (nd.input, nd.output):
                for i, v in enumerate(values):
                    if v == value:
                        values[i] = name
        self.outputs.append(name)

    def init(self, name, array):
        self.inits[name] = array
        return name

    def random(self, name, shape, std, mean=0.0):
        """The array a seeded weight holds: it depends on the seed and its name only."""
        rng = np.random.default_rng([self.seed, zlib.crc32(name.encode())])
        a = rng.standard_normal(size=shape, dtype=np.float32)
        a *= np.float32(std)
        if mean:
            a += np.float32(mean)
        return a

    def weight(self, name, shape, std, mean=0.0):
        return self.init(name, self.random(name, shape, std, mean).astype(self.dtype, copy=False))

    def const(self, value, dtype=None):
        a = np.asarray(value, dtype or self.dtype)
        key = (a.dtype.str, a.shape, a.tobytes())
        if key not in self.consts:
            self.consts[key] = self.init(f"const_{len(self.consts)}", a)
        return self.consts[key]

    def shape(self, *dims):
        return self.const(dims, np.int64)

    # -- nodes
    def op(self, kind, *ins, n=1, **attrs):
        outs = [self.fresh(kind.lower()) for _ in range(n)]
        self.nodes.append(helper.make_node(kind, list(ins), outs, name=self.fresh("n"), **attrs))
        return outs[0] if n == 1 else outs

    def reshape(self, x, *dims):
        return self.op("Reshape", x, self.shape(*dims))

    def transpose(self, x, *perm):
        return self.op("Transpose", x, perm=perm)

    def linear(self, x, name, cin, cout, gain=1.0, bias=True):
        y = self.op("MatMul", x, self.weight(name + ".w", (cin, cout), gain / math.sqrt(cin)))
        return self.op("Add", self.weight(name + ".b", (cout,), 0.02), y) if bias else y

    def conv(self, x, name, cin, cout, k, stride=1, group=1, bias=True, pad=None, gain=1.0, dilation=1):
        """`k` is a square's side or (rows, columns); padding keeps extents at stride 1 unless `pad` says otherwise."""
        kh, kw = k if isinstance(k, tuple) else (k, k)
        fan = cin // group * kh * kw
        ins = [x, self.weight(name + ".w", (cout, cin // group, kh, kw), gain / math.sqrt(fan))]
        if bias:
            ins.append(self.weight(name + ".b", (cout,), 0.02))
        py, px = (kh // 2 * dilation, kw // 2 * dilation) if pad is None else (pad, pad)
        return self.op("Conv", *ins, kernel_shape=[kh, kw], strides=[stride] * 2, pads=[py, px, py, px], group=group, dilations=[dilation] * 2)

    def norm(self, x, name, dim):
        return self.op("LayerNormalization", x, self.weight(name + ".g", (dim,), 0.1, 1.0),
                       self.weight(name + ".b", (dim,), 0.02), axis=-1, epsilon=1e-5)

    def gelu_erf(self, x):
        e = self.op("Erf", self.op("Div", x, self.const(math.sqrt(2))))
        return self.op("Mul", self.op("Mul", x, self.op("Add", e, self.const(1))), self.const(0.5))

    def gelu_tanh(self, x):
        cubic = self.op("Mul", self.op("Pow", x, self.const(3)), self.const(0.044715))
        t = self.op("Tanh", self.op("Mul", self.op("Add", x, cubic), self.const(math.sqrt(2 / math.pi))))
        return self.op("Mul", self.op("Mul", x, self.const(0.5)), self.op("Add", t, self.const(1)))

    def silu(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x))

    # -- quantization
    def qdq(self, x, scale, zero=128, dtype=np.uint8):
        s, z = self.const(scale), self.const(zero, dtype)
        return self.op("DequantizeLinear", self.op("QuantizeLinear", x, s, z), s, z)

    def quantized(self, name, w, axis):
        """Per-channel symmetric int8 weights and their DequantizeLinear; also the scales."""
        scale = np.abs(w).max(axis=tuple(i for i in range(w.ndim) if i != axis)) / 127
        scale = np.maximum(scale, 1e-8).astype(np.float32)
        s = scale.reshape([-1 if i == axis else 1 for i in range(w.ndim)])
        q = np.clip(np.rint(w / s), -127, 127).astype(np.int8)
        ins = [self.init(name, q), self.init(name + ".scale", scale), self.init(name + ".zp", np.zeros(scale.shape, np.int8))]
        return self.op("DequantizeLinear", *ins, axis=axis), scale

    def bias32(self, name, b, scale):
        q = np.rint(b / scale).astype(np.int32)
        ins = [self.init(name, q), self.init(name + ".scale", scale.astype(np.float32))]
        return self.op("DequantizeLinear", *ins, axis=0)

    # -- the finished model
    def proto(self, with_weights=True):
        inits, extra = [], []
        for name, a in self.inits.items():
            if with_weights or a.size <= 64 or a.dtype == np.int64:
                inits.append(numpy_helper.from_array(a, name))
            else:
                extra.append(helper.make_tensor_value_info(name, helper.mapping.NP_TYPE_TO_TENSOR_TYPE[a.dtype], a.shape))
        outs = self.typed or [helper.make_empty_tensor_value_info(o) for o in self.outputs]
        g = helper.make_graph(self.nodes, self.name, self.inputs + extra, outs, inits)
        domains = {"": OPSET, **{nd.domain: 1 for nd in self.nodes if nd.domain}}
        m = helper.make_model(g, opset_imports=[helper.make_opsetid(*d) for d in domains.items()], producer_name="kiln-bench")
        m.ir_version = 8
        return m

    def infer(self):
        """Types the outputs by inferring shapes, without serializing the weights."""
        m = shape_inference.infer_shapes(self.proto(with_weights=False), strict_mode=True)
        info = {}
        for v in list(m.graph.value_info) + list(m.graph.input) + list(m.graph.output):
            t = v.type.tensor_type
            info[v.name] = ([d.dim_value for d in t.shape.dim], t.elem_type)
        for name, a in self.inits.items():
            info[name] = (list(a.shape), helper.mapping.NP_TYPE_TO_TENSOR_TYPE[a.dtype])
        self.typed = [helper.make_tensor_value_info(o, info[o][1], info[o][0]) if info.get(o, [None, 0])[1]
                      else helper.make_tensor_value_info(o, TensorProto.UINT8, None) for o in self.outputs]
