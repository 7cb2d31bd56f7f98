"""The functions that users of FX-based lowering call, each as a module that kiln compiles whole."""

import math
import sys
import unittest

try:
    import torch
except ImportError as why:
    print(f"SKIPPED: {why}: nothing of PyTorch's is tested", file=sys.stderr)
    sys.exit(77)

import torch.nn.functional as F
from aten_cases import HALVES, differs, numbers
from kiln import torch as kiln_torch

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
SINGLE = (torch.float32, torch.float64)
I = torch.tensor([[0, 2, 1], [1, 1, 0]])  # noqa: E741


def of(*shape, **how):
    return lambda dtype: (numbers(*shape, dtype=dtype, **how),)


def pair(first, second, **how):
    return lambda dtype: (numbers(*first, dtype=dtype, **how), numbers(*second, dtype=dtype, seed=3, **how))


def flags(*shape):
    return lambda dtype: (numbers(*shape, dtype=torch.bool), numbers(*shape, dtype=torch.bool, seed=3))


X, UNIT, POSITIVE = of(2, 3, 4), of(2, 3, 4, low=-0.9, high=0.9), of(2, 3, 4, low=0.5)
IMAGE, VOLUME, TWO = of(2, 4, 6, 6), of(2, 4, 5, 5, 5), pair((2, 3, 4), (3, 1))

# Name: the function, its inputs for a dtype, its dtypes.
CASES = {
    "abs": (torch.abs, X, FLOATS + (torch.int64,)),
    "acos": (torch.acos, UNIT, FLOATS),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (2, 3)), IMAGE, SINGLE),
    "add": (torch.add, TWO, FLOATS + (torch.int64,)),
    "all": (lambda x, y: (x.all(), x.all(1)), flags(2, 3), SINGLE[:1]),
    "any": (lambda x, y: (x.any(), x.any(1, keepdim=True)), flags(2, 3), SINGLE[:1]),
    "argmax": (lambda x: torch.argmax(x, 1), X, SINGLE + (torch.int64,)),
    "argmin": (lambda x: torch.argmin(x), X, SINGLE + (torch.int64,)),
    "as_strided": (lambda x: torch.as_strided(x, (2, 2), (3, 1), 1), X, SINGLE),
    "asin": (torch.asin, UNIT, FLOATS),
    "atan": (torch.atan, X, FLOATS),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 2, 1), IMAGE, SINGLE),
    "batch_norm": (lambda x, m: F.batch_norm(x, m, m.abs() + 1, m, m, eps=1e-3), pair((2, 4, 6), (4,)), SINGLE),
    "bitwise_and": (lambda x: x & 6, of(9, low=0, high=9), (torch.int64, torch.uint8)),
    "cat": (lambda x, y: torch.cat([x, y], 1), pair((2, 3), (2, 5)), FLOATS + (torch.int64,)),
    "ceil": (torch.ceil, X, FLOATS),
    "chunk": (lambda x: torch.chunk(x, 2, 2), X, FLOATS),
    "clamp": (lambda x: torch.clamp(x, -1, 1.5), X, FLOATS),
    "contiguous": (lambda x: x.transpose(0, 2).contiguous() + 0, X, FLOATS),
    "conv1d": (lambda x, w: F.conv1d(x, w, padding=1), pair((2, 4, 6), (3, 4, 3)), SINGLE),
    "conv2d": (lambda x, w: F.conv2d(x, w, stride=2), pair((2, 4, 6, 6), (3, 4, 3, 3)), SINGLE),
    "conv3d": (lambda x, w: F.conv3d(x, w, dilation=2), pair((2, 4, 5, 5, 5), (3, 4, 2, 2, 2)), SINGLE),
    "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w, stride=2), pair((2, 4, 6, 6), (4, 3, 3, 3)), SINGLE),
    "conv_transpose3d": (lambda x, w: F.conv_transpose3d(x, w), pair((2, 4, 5, 5, 5), (4, 3, 2, 2, 2)), SINGLE),
    "cos": (torch.cos, X, FLOATS),
    "cosh": (torch.cosh, X, FLOATS),
    "cumsum": (lambda x: torch.cumsum(x, 1), X, FLOATS + (torch.int64,)),
    "div": (torch.div, pair((2, 3), (3,), low=1), FLOATS + (torch.int64,)),
    "elu": (lambda x: F.elu(x, 0.7), X, FLOATS),
    "embedding": (lambda w: F.embedding(I, w), of(4, 5), FLOATS),
    "eq": (torch.eq, pair((5,), (5,)), FLOATS + (torch.int64,)),
    "erf": (torch.erf, X, FLOATS),
    "exp": (torch.exp, X, FLOATS),
    "expand": (lambda x: x.expand(5, -1, -1, -1), X, FLOATS),
    "flatten": (lambda x: torch.flatten(x, 1), X, FLOATS),
    "floor": (torch.floor, X, FLOATS),
    "floor_div": (lambda x, y: torch.div(x, y, rounding_mode="floor"), pair((2, 3), (3,), low=1), SINGLE + (torch.int64,)),
    "fmod": (torch.fmod, pair((2, 3), (3,), low=1), SINGLE + (torch.int64,)),
    "gather": (lambda x: torch.gather(x, 0, I), of(3, 4), FLOATS + (torch.int64,)),
    "ge": (torch.ge, pair((5,), (5,)), FLOATS + (torch.int64,)),
    "gelu": (F.gelu, X, FLOATS),
    "getitem": (lambda x: x[:, 1:, None, ..., ::2], X, FLOATS),
    "glu": (lambda x: F.glu(x, 2), X, FLOATS),
    "group_norm": (lambda x: F.group_norm(x, 2), IMAGE, SINGLE),
    "gt": (torch.gt, pair((5,), (5,)), FLOATS + (torch.int64,)),
    "hardsigmoid": (F.hardsigmoid, X, FLOATS),
    "hardtanh": (lambda x: F.hardtanh(x, -0.5, 2), X, FLOATS),
    "index_copy": (lambda x, y: torch.index_copy(x, 0, I[0], y), pair((4, 5), (3, 5)), FLOATS + (torch.int64,)),
    "index_select": (lambda x: torch.index_select(x, 1, I[0]), X, FLOATS + (torch.int64,)),
    "isinf": (lambda x: torch.isinf(x / 0), X, SINGLE),
    "isnan": (lambda x: torch.isnan(x / 0 * 0), X, SINGLE),
    "layer_norm": (lambda x, w: F.layer_norm(x, (4,), w, w), pair((2, 3, 4), (4,)), SINGLE),
    "le": (torch.le, pair((5,), (5,)), FLOATS + (torch.int64,)),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.2), X, FLOATS),
    "linalg_vector_norm": (lambda x: torch.linalg.vector_norm(x, 3, 1), X, FLOATS),
    "linear": (F.linear, pair((2, 3, 4), (5, 4)), SINGLE),
    "log": (torch.log, POSITIVE, FLOATS),
    "log2": (torch.log2, POSITIVE, FLOATS),
    "log_softmax": (lambda x: F.log_softmax(x, 1), X, SINGLE),
    "logical_not": (torch.logical_not, X, FLOATS),
    "lt": (torch.lt, pair((5,), (5,)), FLOATS + (torch.int64,)),
    "masked_fill": (lambda x: x.masked_fill(x > 1, -2.0), X, FLOATS),
    "matmul": (torch.matmul, pair((2, 3, 4), (2, 4, 5)), SINGLE),
    "max": (lambda x: (torch.max(x), *torch.max(x, 1)), X, SINGLE + (torch.int64,)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), IMAGE, SINGLE),
    "maximum": (torch.maximum, TWO, FLOATS + (torch.int64,)),
    "mean": (lambda x: (x.mean(), x.mean((0, 2), keepdim=True)), X, FLOATS),
    "min": (lambda x: (torch.min(x), *torch.min(x, 2, keepdim=True)), X, SINGLE + (torch.int64,)),
    "minimum": (torch.minimum, TWO, FLOATS + (torch.int64,)),
    "mul": (torch.mul, TWO, FLOATS + (torch.int64,)),
    "nan_to_num": (lambda x: torch.nan_to_num(x / 0 * 0, 2.0), X, SINGLE),
    "ne": (torch.ne, pair((5,), (5,)), FLOATS + (torch.int64,)),
    "neg": (torch.neg, X, FLOATS + (torch.int64,)),
    "new_zeros": (lambda x: x.new_zeros(2, 3) + x[0, 0, 0], X, FLOATS),
    "nll_loss": (lambda x: F.nll_loss(x, I[0]), of(3, 4), SINGLE),
    "numel": (lambda x: x * x.numel(), X, SINGLE),
    "pad": (lambda x: F.pad(x, (1, 2), value=0.5), X, FLOATS),
    "permute": (lambda x: x.permute(2, 0, 1) + 0, X, FLOATS),
    "pow": (lambda x: torch.pow(x, 2.5), POSITIVE, FLOATS),
    "prod": (lambda x: torch.prod(x, 1), X, SINGLE + (torch.int64,)),
    "reciprocal": (torch.reciprocal, POSITIVE, FLOATS),
    "relu": (F.relu, X, FLOATS),
    "repeat": (lambda x: x.repeat(2, 1, 3), X, FLOATS),
    "reshape": (lambda x: x.reshape(6, 4) + 0, X, FLOATS),
    "rsqrt": (torch.rsqrt, POSITIVE, FLOATS),
    "scaled_dot_product_attention": (
        getattr(F, "scaled_dot_product_attention", lambda q, k, v: F._scaled_dot_product_attention(q, k, v)[0]),
        lambda dtype: tuple(numbers(2, 4, 5, 8, dtype=dtype, seed=s) for s in (1, 2, 3)), SINGLE),
    "scatter_reduce": (lambda x: torch.scatter_reduce(x, 0, I, x[:2, :3] + 1, "amax"), of(3, 4), SINGLE),
    "select_scatter": (lambda x: torch.select_scatter(x, x[:, 0] * 2, 1, 1), X, FLOATS),
    "selu": (F.selu, X, FLOATS),
    "sigmoid": (torch.sigmoid, X, FLOATS),
    "sign": (torch.sign, X, FLOATS + (torch.int64,)),
    "sin": (torch.sin, X, FLOATS),
    "sinh": (torch.sinh, X, FLOATS),
    "size": (lambda x: x.reshape(x.size(0), -1) * x.size(1), X, FLOATS),
    "slice_scatter": (lambda x: torch.slice_scatter(x, x[:, :1] * 2, 1, 1, 2, 1), X, FLOATS),
    "softmax": (lambda x: F.softmax(x, 1), X, SINGLE),
    "softsign": (F.softsign, X, FLOATS),
    "split": (lambda x: [y * 2 for y in torch.split(x, [1, 2], 1)], X, FLOATS),
    "sqrt": (torch.sqrt, POSITIVE, FLOATS),
    "squeeze": (lambda x: x[:, :1].squeeze(1) * 2, X, FLOATS),
    "std": (lambda x: torch.std(x, 1), X, FLOATS),
    "sub": (torch.sub, TWO, FLOATS + (torch.int64,)),
    "sum": (lambda x: (x.sum(), x.sum(1)), X, FLOATS + (torch.int64, torch.bool)),
    "tan": (torch.tan, UNIT, FLOATS),
    "tanh": (torch.tanh, X, FLOATS),
    "tile": (lambda x: torch.tile(x, (2, 1)), X, FLOATS),
    "topk": (lambda x: torch.topk(x, 2, 1), X, SINGLE),
    "trunc_div": (lambda x, y: torch.div(x, y, rounding_mode="trunc"), pair((2, 3), (3,), low=1), SINGLE + (torch.int64,)),
    "unbind": (lambda x: [y + 1 for y in torch.unbind(x, 1)], X, FLOATS),
    "unsqueeze": (lambda x: x.unsqueeze(1) * 2, X, FLOATS),
    "where": (lambda x, y: torch.where(x > 0, x, y), TWO, FLOATS + (torch.int64,)),
}  # fmt: skip
MODULES = {"lstm": lambda: torch.nn.LSTM(5, 6, 2, bidirectional=True)}


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


class AccOpsTest(unittest.TestCase):
    def agrees(self, module, args, dtype):
        try:
            wanted = module(*args)
        except RuntimeError as why:
            if dtype in HALVES and "not implemented" in str(why):
                return  # what PyTorch does not compute it can't trace
            raise
        made = kiln_torch.compile(module, args, tolerance=math.inf)
        self.assertNotIn("eager", str(made.report))
        found = made(*args)
        flat = torch.utils._pytree.tree_flatten
        self.assertEqual(flat(found)[1], flat(wanted)[1])
        for f, w in zip(flat(found)[0], flat(wanted)[0]):
            self.assertIsNone(differs(f, w, None))


def case(function, inputs, dtypes):
    def test(self):
        for dtype in dtypes:
            with self.subTest(dtype=dtype):
                self.agrees(Function(function), inputs(dtype), dtype)

    return test


def case_of_module(make):
    def test(self):
        torch.manual_seed(0)
        self.agrees(make().eval(), (numbers(4, 3, 5),), torch.float32)

    return test


for _name, _row in CASES.items():
    setattr(AccOpsTest, f"test_{_name}", case(*_row))
for _name, _make in MODULES.items():
    setattr(AccOpsTest, f"test_{_name}", case_of_module(_make))


if __name__ == "__main__":
    unittest.main()
