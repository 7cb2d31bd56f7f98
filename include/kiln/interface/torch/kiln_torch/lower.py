"""A graph of PyTorch's operators as a kiln program."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional

import torch
from torch.fx.graph_module import GraphModule
from torch.fx.node import Node, map_arg
from torch.utils._pytree import tree_flatten

from .. import _kiln
from .aten import Entry, name_of, table
from .symbols import dim_of, is_symbolic
from .tensors import to_kiln
from .extents import Extent
from .record import nbytes
from .types import Kind, Number, exact_in, HALVES, kiln_dtype, promoted, torch_dtype


_SHARED = 1 << 16  # bytes from which on parameters are read where they are


class LoweringError(_kiln.ArgumentError):
    """A node that kiln has no form of: its name, its operator and the reason."""

    def __init__(self, node: Node, reason: str) -> None:
        super().__init__(f"{node.name} ({_text_of(node)}): {reason}")
        self.node, self.reason = node, reason


class Lowered(NamedTuple):
    """A program, the names of its inputs in the order of the graph's placeholders, and for each of the graph's outputs,
    flattened, the name of the program's output or, where the graph has a number or None, a tuple with that."""

    program: _kiln.Program
    inputs: tuple[str, ...]
    outputs: tuple[Any, ...]


class Lowering:
    """What a lowering writes with: the builder, and the node that it stands for."""

    def __init__(self, builder: _kiln.Builder) -> None:
        self.builder = builder
        self.node: Any = None
        self._reshaped: dict[int, tuple[_kiln.Value, list[_kiln.Value]]] = {}  # by id: a value and what it was

    def refuse(self, why: str) -> Any:
        """Raises an error that names the node, its operator and the reason."""
        raise LoweringError(self.node, why)

    @property
    def dtypes(self) -> tuple[Optional[str], ...]:
        """The results' dtypes; None for a result that is no tensor."""
        made = result_of(self.node)
        return tuple(_dtype_of(x) for x in made) if isinstance(made, (tuple, list)) else (_dtype_of(made),)

    @property
    def dtype(self) -> str:
        """The only or first result's dtype."""
        found = self.dtypes[0]
        return found if found is not None else str(self.refuse("the node's result has no dtype that kiln has"))

    @property
    def name(self) -> str:
        """The operator's overload, such as `aten::add.Tensor`."""
        return name_of(self.node.target)

    def reads(self, index: int) -> bool:
        """Whether a result is read: one that is not may be None."""
        return index in results_read(self.node)

    def shape(self, extents: Sequence[Any]) -> list[Any]:
        """Extents as an op's attribute."""
        return [e if isinstance(e, _kiln.Dim) else operator.index(e) for e in extents]

    def constant(self, data: Any, dtype: str | None = None) -> _kiln.Value:
        """A constant of a tensor, a number or nested lists; a number is converted as PyTorch converts it."""
        if isinstance(data, torch.Tensor):
            held = data.detach()
        else:  # a float in all its bits
            held = torch.tensor(data, dtype=torch.float64 if isinstance(data, float) and dtype is not None else None)
        if dtype is not None:
            held = held.to(torch_dtype(dtype))
        held = held.cpu()
        return self.builder.constant(held.numpy() if held.dtype == torch.bool else held.contiguous())

    def convert(self, value: Any, dtype: str) -> _kiln.Value:
        """A value or number as another dtype; a float becomes an integer toward zero, anything a bool by `!= 0`."""
        if not isinstance(value, _kiln.Value):
            return self.constant(value, dtype)
        if value.dtype == dtype:
            return value
        if dtype == "bool":
            return value.equal(self.constant(0, value.dtype)).logical_not()
        return value.convert(dtype)

    def promote(self, *values: Any, kind: Kind = Kind.DEFAULT) -> list[_kiln.Value]:
        """Values and numbers in the dtype that PyTorch computes them in."""
        dtype = promoted(*values, kind=kind)
        return [self.convert(v, dtype) for v in values]

    def wide(self, *values: Any, kind: Kind = Kind.DEFAULT) -> tuple[str, list[_kiln.Value]]:
        """The promoted dtype, and the values in it; or in f32, where a half has not all the numbers: PyTorch computes
        halves with numbers in f32 and rounds once."""
        dtype = promoted(*values, kind=kind)
        wide = dtype in HALVES and any(not isinstance(v, _kiln.Value) and not exact_in(v, dtype) for v in values)
        return dtype, [self.convert(v, "f32" if wide else dtype) for v in values]

    def scaled(self, value: _kiln.Value, factor: Number) -> _kiln.Value:
        """A value times a number, in the value's dtype."""
        return _kiln._op("mul", value, self.constant(factor, value.dtype))

    def resolved(self, value: _kiln.Value, extents: Sequence[Any]) -> list[Any]:
        """The extents of a reshape, one of which may be -1."""
        wanted = self.shape(extents)
        if not any(isinstance(e, int) and e == -1 for e in wanted):
            return wanted
        at = wanted.index(-1)
        rest = math.prod(wanted[:at] + wanted[at + 1 :])
        wanted[at] = math.prod(value.shape) // rest
        return wanted

    def reshaped(self, value: _kiln.Value, extents: Sequence[Any]) -> _kiln.Value:
        """A value with other extents, which remembers what it was."""
        made = value.reshape(extents)
        self._reshaped[id(made)] = made, [value, *self.forms(value)[1:]]
        return made

    def forms(self, value: _kiln.Value) -> list[_kiln.Value]:
        """A value, and those with the same elements that reshaped() made it of, the nearest first."""
        return [value, *self._reshaped.get(id(value), (value, []))[1]]

    def before_reshape(self, value: _kiln.Value) -> _kiln.Value:
        """The value that reshaped() made this one of at first; itself, where it did not."""
        return self.forms(value)[-1]

    def full(self, shape: Sequence[Any], number: Number, dtype: str) -> _kiln.Value:
        """A value all of whose elements are the number."""
        return self.constant(number, dtype).broadcast_to(self.shape(shape))


def result_of(node: Node) -> Any:
    """What a node makes, as tensors without data, numbers or tuples of these; None where nothing is known."""
    if "val" in node.meta:
        return node.meta["val"]
    return _without_data(node.meta.get("tensor_meta"))


def _without_data(meta: Any) -> Any:
    if meta is None:
        return None
    if hasattr(meta, "dtype"):
        return torch.empty_strided(meta.shape, meta.stride, dtype=meta.dtype, device="meta")
    return tuple(_without_data(m) for m in meta)


def _dtype_of(made: Any) -> str | None:
    return kiln_dtype(made.dtype) if isinstance(made, torch.Tensor) else None


def _is_overload(target: Any) -> bool:
    return hasattr(target, "_schema") and hasattr(target, "name")


def _text_of(node: Node) -> str:
    return name_of(node.target) if _is_overload(node.target) else str(node.target)


# What graphs compute of extents.
_OF_EXTENTS = {operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.neg}


def _entry(node: Node) -> Entry | None:
    return table.get(name_of(node.target)) if _is_overload(node.target) else None


def _is_extent_of(node: Node) -> bool:
    return _text_of(node).startswith(("aten::sym_size", "aten.sym_size"))


def arguments_of(node: Node, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of the node's schema, positional ones and those by keyword, with the defaults of those not given."""
    positional, by_name = [], {}
    for i, a in enumerate(node.target._schema.arguments):  # type: ignore[union-attr]
        value = args[i] if i < len(args) else kwargs.get(a.name, a.default_value)
        if a.kwarg_only:
            by_name[a.name] = kwargs.get(a.name, a.default_value)
        else:
            positional.append(value)
    return positional, by_name


def supports(node: Node) -> str | None:
    """Why kiln has no form of a node; None where it has one."""
    if node.op == "get_attr":
        return None
    if node.op != "call_function":
        return f"{node.op} is none of PyTorch's operators"
    if node.target is operator.getitem or node.target in _OF_EXTENTS or _is_extent_of(node):
        return None
    entry = _entry(node)
    if entry is None:
        return "kiln has no lowering of the operator"
    args, kwargs = arguments_of(node, *map_arg((node.args, node.kwargs), result_of))
    for a, x in zip(node.target._schema.arguments, (*args, *kwargs.values())):  # type: ignore[union-attr]
        if isinstance(x, Extent) and "int" not in str(a.type).lower():
            return "a number that it computes with depends on the batch"
    for x in tree_flatten((args, kwargs, result_of(node)))[0]:
        if isinstance(x, torch.Tensor):
            if x.layout != torch.strided:
                return f"a tensor has the layout {x.layout}"
            if kiln_dtype(x.dtype) is None or x.is_quantized:
                return f"a tensor has the dtype {x.dtype}"
        elif isinstance(x, complex):
            return "a number is complex"
    if entry.makes is not None and any(i >= entry.makes for i in results_read(node)):
        return f"a result beyond the first {entry.makes} is read"
    return entry.check(*args, **kwargs) if entry.check else None


def results_read(node: Node) -> set[int]:
    """Which results of a node with several are read."""
    parts = (user for user in node.users if user.target is operator.getitem and user.users)
    return {int(part.args[1]) for part in parts}  # type: ignore[arg-type]


def lower(graph_module: GraphModule, *, names: Mapping[str, str] | None = None) -> Lowered:
    """The program of a graph of PyTorch's operators that mutates nothing. Parameters and buffers become constants.
    `names` gives placeholders other names. What kiln has no form of is a LoweringError."""
    c = Lowering(_kiln.Builder())
    held: dict[Node, Any] = {}
    inputs: list[str] = []
    outputs: list[Any] = []
    attributes: dict[str, _kiln.Value] = {}
    for node in graph_module.graph.nodes:
        c.node = node
        if node.op == "placeholder":
            held[node] = _input(c, (names or {}).get(node.target, node.target), inputs)
        elif node.op == "get_attr":
            if node.target not in attributes:
                attributes[node.target] = _attribute(c, graph_module)
            held[node] = attributes[node.target]
        elif node.op == "output":
            for i, x in enumerate(tree_flatten(map_arg(node.args[0], held.__getitem__))[0]):
                outputs.append(_output(c, x, f"output_{i}"))
        elif node.op == "call_function":
            if node.users:
                held[node] = _call(c, held)
        else:
            c.refuse(f"{node.op} is none of PyTorch's operators")
    return Lowered(c.builder.finish(), tuple(inputs), tuple(outputs))


def _input(c: Lowering, name: str, inputs: list[str]) -> Any:
    made = result_of(c.node)
    if is_symbolic(made):
        return dim_of(made)
    if not isinstance(made, torch.Tensor):
        c.refuse("a placeholder's node says what it is: found no tensor in its meta")
    dtype = kiln_dtype(made.dtype)
    if dtype is None:
        c.refuse(f"an input has the dtype {made.dtype}")
    inputs.append(name)
    # a graph of runs with several batches says the extents itself
    return c.builder.input(name, dtype, c.node.meta.get("dims") or [dim_of(d) for d in made.shape])


def _attribute(c: Lowering, graph_module: GraphModule) -> _kiln.Value:
    found: Any = graph_module
    for part in c.node.target.split("."):
        found = getattr(found, part)
    if not isinstance(found, torch.Tensor):
        c.refuse(f"an attribute is a tensor: found {type(found).__name__}")
    if kiln_dtype(found.dtype) is None or found.layout != torch.strided:
        c.refuse(f"a parameter has the dtype {found.dtype} and the layout {found.layout}")
    if found.is_contiguous() and found.device.type == "cpu" and nbytes(found) >= _SHARED:
        return c.builder.constant(to_kiln(found), copy=False)
    return c.constant(found)


def _output(c: Lowering, value: Any, name: str) -> Any:
    if not isinstance(value, _kiln.Value):
        return (value,)
    c.builder.output(value, name)
    return name


def _call(c: Lowering, held: Mapping[Node, Any]) -> Any:
    node = c.node
    args, kwargs = map_arg((node.args, node.kwargs), held.__getitem__)
    if node.target is operator.getitem:
        found = args[0][args[1]]
        return found if found is not None else c.refuse("the lowering does not make this result")
    if node.target in _OF_EXTENTS:
        return node.target(*args)
    if _is_extent_of(node):
        return args[0].shape[args[1]]
    entry = _entry(node)
    if entry is None:
        return c.refuse("kiln has no lowering of the operator")
    positional, by_name = arguments_of(node, args, kwargs)
    try:
        return entry.lower(c, *positional, **by_name)
    except LoweringError:
        raise
    except _kiln.Error as fault:
        raise LoweringError(node, str(fault)) from fault
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RuntimeError) as fault:
        # a symbol where the lowering, or PyTorch, wants a number
        raise LoweringError(node, f"{type(fault).__name__}: {fault}") from fault
