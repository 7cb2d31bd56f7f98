"""Runs one overload of PyTorch's in kiln and eagerly, and compares."""

import operator
import unittest

import kiln
import torch
from aten_later import later
from kiln.torch import lower as lowering
from kiln.torch.aten import name_of, table
from torch.fx import Graph, GraphModule
from torch.utils._pytree import tree_flatten, tree_map

# Of the greatest magnitude in the result.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
HALVES = (torch.float16, torch.bfloat16)
exercised = set()


def overload(name):
    """torch.ops.aten.add.Tensor of "add.Tensor". One that this PyTorch lacks has its later schema."""
    space, _, rest = name.rpartition("::")
    base, _, kind = rest.partition(".")
    packet = getattr(getattr(torch.ops, space or "aten"), base, None)
    return getattr(packet, kind or "default", None) or later(name)


def without_data(x):
    if not isinstance(x, torch.Tensor):
        return x
    return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")


def graph_of(op, args, kwargs, made, read):
    """The graph that calls the overload with its tensors as inputs; `read` are the results it gives."""
    g, inputs = Graph(), []

    def placeholder(x):
        if not isinstance(x, torch.Tensor):
            return x
        node = g.placeholder(f"x{len(inputs)}")
        node.meta["val"] = without_data(x)
        inputs.append(x)
        return node

    args, kwargs = tree_map(placeholder, list(args)), tree_map(placeholder, dict(kwargs))
    call = g.call_function(op, tuple(args), kwargs)
    call.meta["val"] = tree_map(without_data, made)
    if isinstance(made, (tuple, list)):
        outputs = []
        for i in read if read is not None else range(len(made)):
            outputs.append(g.call_function(operator.getitem, (call, i)))
            outputs[-1].meta["val"] = without_data(made[i])
        g.output(tuple(outputs))
    else:
        g.output(call)
    return GraphModule({}, g), inputs


def eager(op, args, kwargs, precise):
    """What PyTorch computes; in single precision where it has no kernel for a half, or a `precise` one is asked for."""
    found = [x.dtype for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor) and x.dtype in HALVES]
    try:
        if not precise or not found:
            return op(*args, **kwargs)
    except RuntimeError as why:
        if not found or "not implemented" not in str(why):
            raise
    wide = lambda x: x.float() if isinstance(x, torch.Tensor) and x.dtype in HALVES else x  # noqa: E731
    made = op(*tree_map(wide, list(args)), **tree_map(wide, dict(kwargs)))
    return tree_map(lambda x: x.to(found[0]) if isinstance(x, torch.Tensor) and x.is_floating_point() else x, made)


def differs(found, wanted, tolerance):
    """How a tensor differs from another one; None where it does not."""
    if tuple(found.shape) != tuple(wanted.shape):
        return f"shape {tuple(found.shape)}, expected {tuple(wanted.shape)}"
    if found.dtype != wanted.dtype:
        return f"dtype {found.dtype}, expected {wanted.dtype}"
    if not wanted.is_floating_point():
        return None if torch.equal(found, wanted) else f"{found.tolist()}, expected {wanted.tolist()}"
    a, b = found.double(), wanted.double()
    special = ~torch.isfinite(b)
    if not torch.equal(torch.isnan(a), torch.isnan(b)) or not torch.equal(
        a[special & ~torch.isnan(b)], b[special & ~torch.isnan(b)]
    ):
        return f"{found.tolist()}, expected {wanted.tolist()}"
    a, b = a[~special], b[~special]
    if b.numel() == 0:
        return None
    limit = TOLERANCE[wanted.dtype] if tolerance is None else tolerance
    error = float((a - b).abs().max() / b.abs().max().clamp(min=1e-30))
    if not torch.isfinite(a).all() or (error > limit and float((a - b).abs().max()) > 0):
        return f"off by {error:.3g} of the greatest: {found.flatten()[:8].tolist()}, expected {wanted.flatten()[:8].tolist()}"
    return None


def run(graph_module, inputs):
    lowered = lowering.lower(graph_module)
    results = kiln.compile(lowered.program).run(dict(zip(lowered.inputs, map(array_of, inputs))))
    return [tensor_of(results[name]) for name in lowered.outputs]


def array_of(x):
    return x.numpy() if x.dtype == torch.bool else x


def tensor_of(x):
    return torch.from_numpy(x.numpy()) if x.dtype == "bool" else torch.from_dlpack(x)


class CaseTest(unittest.TestCase):
    def agrees(self, name, *args, read=None, tolerance=None, precise=False, like=None, **kwargs):
        """The overload gives what PyTorch gives: shape, dtype and elements. `read` are the results that are read. With
        `precise`, what it gives in single precision stands for a half's, which it computes with more roundings. `like` gives the results of an
        overload that has no kernel for the CPU."""
        op = overload(name)
        exercised.add(name_of(op).removeprefix("aten::"))
        self.assertIn(name_of(op), table)
        with self.subTest(op=name, args=[a if not isinstance(a, torch.Tensor) else f"{a.dtype}{list(a.shape)}" for a in args], **kwargs):
            made = eager(like or op, args, kwargs, precise)
            graph_module, inputs = graph_of(op, args, kwargs, made, read)
            call = next(n for n in graph_module.graph.nodes if n.op == "call_function")
            self.assertIsNone(lowering.supports(call))
            wanted = made if isinstance(made, (tuple, list)) else [made]
            wanted = [wanted[i] for i in read] if read is not None else wanted
            for i, (f, w) in enumerate(zip(run(graph_module, inputs), wanted)):
                why = differs(f, w, tolerance)
                self.assertIsNone(why, f"result {i}: {why}")

    def has_the_shape(self, name, *args, **kwargs):
        """The overload, whose elements are anything, gives PyTorch's shape and dtype."""
        op = overload(name)
        exercised.add(name)
        made = op(*args, **kwargs)
        graph_module, inputs = graph_of(op, args, kwargs, made, None)
        (found,) = run(graph_module, inputs)
        self.assertEqual((found.shape, found.dtype), (made.shape, made.dtype))

    def refused(self, name, *args, reason, read=None, **kwargs):
        """supports() gives a reason with this text."""
        op = overload(name)
        graph_module, _ = graph_of(op, args, kwargs, op(*args, **kwargs), read)
        call = next(n for n in graph_module.graph.nodes if n.op == "call_function")
        self.assertIn(reason, lowering.supports(call) or "")


def numbers(*shape, dtype=torch.float32, low=-3.0, high=3.0, seed=0):
    """Reproducible elements in [low, high)."""
    g = torch.Generator().manual_seed(seed + sum(shape) * 7 + len(shape))
    if dtype == torch.bool:
        return torch.rand(shape, generator=g) < 0.5
    x = torch.rand(shape, generator=g, dtype=torch.float64) * (high - low) + low
    if not dtype.is_floating_point:
        x = x.clamp(min=0) if dtype == torch.uint8 else x
    return x.to(dtype)
