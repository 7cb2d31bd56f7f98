"""What the tables of bench/operators are written with: a case is a model of one node (or few) with its inputs' values.

A row `case(kind, inputs, ...)` makes one model for each type and each of two sizes. `inputs` maps a size's extents to
the node's inputs: `x(...)` is a tensor of the case's type (integers stand for themselves), `index(...)` one of
indices, `given(...)` and `weight(...)` constants, None an omitted input. Attributes may be functions of the extents.
"""
import zlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper

TYPES = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "f64": TensorProto.DOUBLE,
         "i64": TensorProto.INT64, "i32": TensorProto.INT32, "i16": TensorProto.INT16, "i8": TensorProto.INT8,
         "u8": TensorProto.UINT8, "u16": TensorProto.UINT16, "u32": TensorProto.UINT32, "u64": TensorProto.UINT64,
         "bool": TensorProto.BOOL}
NUMPY = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "i64": np.int64, "i32": np.int32, "i16": np.int16,
         "i8": np.int8, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "bool": np.bool_}
RANGES = {"i8": (-128, 128), "u8": (0, 256), "bool": (0, 2)}
# Greatest differences: relative to the greatest value, or of bytes a step, as text.
TOLERANCE = {"bf16": "1.6e-2", "f16": "2e-3", "u8": "=1", "i8": "=1"}
OPSET = 20

FLOATS, NUMBERS = "f32 f16 f64", "f32 f16 f64 i64 i32"
# Extents of about 100k elements and of about 4M, odd ones.
ROWS = [(317, 311), (1999, 2003)]
CUBE = [(3, 167, 199), (5, 641, 1283)]
IMAGE = [(2, 9, 73, 77), (3, 33, 199, 203)]
CASES = {}


class Tensor:
    """An input of a node: drawn from [low, high), or `values` that repeat, or a constant array."""

    def __init__(self, shape, type=None, low=None, high=None, values=None, array=None):
        self.shape, self.type, self.low, self.high, self.values, self.array = list(shape), type, low, high, values, array


def x(*shape, low=None, high=None, type=None):
    return Tensor(shape, type, low, high)


def index(*shape, below, low=0, type="i64"):
    return Tensor(shape, type, low, below)


def cycle(shape, values, type="i64"):
    return Tensor(shape, type, values=list(values))


def given(values, type="i64"):
    a = np.asarray(values, NUMPY[type])
    return Tensor(a.shape, type, array=a)


def weight(*shape, type=None, std=1.0, low=None, high=None):
    """A constant of seeded values, normal or from [low, high)."""
    def array(t):
        r = np.random.default_rng([1, zlib.crc32(repr(shape).encode())])
        a = r.integers(low, high, shape) if low is not None else r.standard_normal(shape, np.float32) * std
        return a.astype(NUMPY[type or t])
    return Tensor(shape, type, array=array)


class Model:
    """A graph under construction, for cases of more than one node."""

    def __init__(self, type="f32"):
        self.type, self.nodes, self.inits, self.inputs, self.fields, self.count = type, [], [], [], [], 0

    def put(self, t):
        """The name of an operand."""
        if t is None or isinstance(t, str):
            return t or ""
        self.count += 1
        name, kind = f"x{self.count}", t.type or self.type
        if t.array is not None:
            a = t.array(self.type) if callable(t.array) else t.array
            self.inits.append(numpy_helper.from_array(np.asarray(a, order="C"), name))
            return name
        self.inputs.append(helper.make_tensor_value_info(name, TYPES[kind], t.shape))
        low, high = RANGES.get(kind, (-1, 1) if kind[0] in "fb" else (0, 100) if kind[0] == "u" else (-100, 100))
        low, high = (low if t.low is None else t.low), (high if t.high is None else t.high)
        values = "=" + ",".join(str(v) for v in t.values) if t.values is not None else f"{low}:{high}"
        self.fields.append("|".join((name, ",".join(map(str, t.shape)), values)))
        return name

    def op(self, kind, *inputs, outs=1, domain="", **attrs):
        ins = [self.put(t) for t in inputs]
        while ins and not ins[-1]:
            ins.pop()
        self.count += 1
        names = [f"v{self.count}_{i}" for i in range(outs)]
        self.nodes.append(helper.make_node(kind, ins, names, domain=domain, **attrs))
        return names[0] if outs == 1 else names

    def proto(self, name, outputs, opset):
        """`outputs`: names, or (name, element type) of those whose type no runtime can infer."""
        outs = [helper.make_empty_tensor_value_info(o) if isinstance(o, str) else
                helper.make_tensor_value_info(o[0], o[1], None) for o in outputs]
        g = helper.make_graph(self.nodes, name, self.inputs, outs, self.inits)
        domains = {"": opset, **{n.domain: 1 for n in self.nodes if n.domain}}
        m = helper.make_model(g, opset_imports=[helper.make_opsetid(*d) for d in domains.items()])
        m.ir_version = 8
        return m


def graph_case(name, build, types="f32", sizes=CUBE, opset=OPSET, tolerance=None):
    """`build(model, *extents)` gives the name of the output, or a list of them."""
    for t in types.split():
        for lens in sizes:
            full = f"{name} {t} {'x'.join(map(str, lens))}"
            if full in CASES:
                raise ValueError("two cases are called " + full)

            def make(t=t, lens=lens, full=full):
                m = Model(t)
                outs = build(m, *lens)
                outs = outs if isinstance(outs, list) else [outs]
                limit = TOLERANCE.get(t, "1e-3") if tolerance is None else str(tolerance)
                return m.proto(full, [o for o in outs if o], opset), limit, m.fields
            CASES[full] = make


def case(kind, inputs, types="f32", sizes=CUBE, variant="", outs=1, domain="", opset=OPSET, tolerance=None, more=(), **attrs):
    """`more`: attributes that have the name of an argument."""
    def build(m, *lens):
        made = {k: v(*lens) if callable(v) else v for k, v in {**attrs, **dict(more)}.items()}
        made = {k: TYPES[v] if k in ("to", "dtype") and isinstance(v, str) else v for k, v in made.items()}
        return m.op(kind, *inputs(*lens), outs=outs, domain=domain, **made)
    graph_case(("ms." if domain else "") + kind + (" " + variant if variant else ""), build, types, sizes, opset, tolerance)


def contrib(kind, inputs, **rest):
    case(kind, inputs, domain="com.microsoft", **rest)
