"""Operators as they run, written as the nodes of a graph."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from .. import _kiln
from . import packed, products
from .aten.einsum import einsum_refusal
from .decompose import decompositions
from .quantized import rounding

# Functions that are one operator of kiln's though PyTorch computes them as many: with the overload that says the same.
_WHOLE = {
    "lstm": "lstm.input",
    "gru": "gru.input",
    "rnn_tanh": "rnn_tanh.input",
    "rnn_relu": "rnn_relu.input",
    "einsum": "einsum.default",
    "repeat_interleave": "repeat_interleave.self_int",
}
_READS_A_NUMBER = {"_local_scalar_dense", "is_nonzero", "equal"}


# What fills a tensor of the shape of another one or of a given one; None: with an argument.
_FILLS = {"new_zeros": 0, "new_ones": 1, "zeros_like": 0, "ones_like": 1, "new_full": None, "full_like": None}


def _fill_value(func: Any, args: Any, kwargs: Any) -> Any:
    at = next(i for i, a in enumerate(func._schema.arguments) if a.name == "fill_value")
    return args[at] if at < len(args) else kwargs["fill_value"]


# Operators that show their operand's elements where they are.
VIEWS = {"getitem", "view", "t", "transpose", "permute", "unsqueeze", "squeeze", "select", "slice", "detach", "alias", "split",
         "unbind", "reshape", "unsafe_split", "split_with_sizes", "expand"}


class TraceError(_kiln.ArgumentError):
    """A module whose run is no graph of operators: it reads numbers out of tensors, or makes what is no tensor."""


MUTATES = ("a module mutates its inputs, its parameters and buffers, and what it makes: found an operator that mutates another "
           "tensor; make that a buffer of the module")


def wrap(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor whose mutations become new tensors."""
    try:
        return torch._to_functional_tensor(tensor)
    except TypeError:  # of PyTorch 2.0
        return torch._to_functional_tensor(tensor, mirror_autograd_meta=False)


def unwrap(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor that a wrapped one stands for."""
    if not torch._is_functional_tensor(tensor):
        return tensor
    torch._sync(tensor)
    return torch._from_functional_tensor(tensor)


def storage_of(tensor: torch.Tensor) -> int:
    """The address of a tensor's storage."""
    return int((tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()).data_ptr())


def _of_scalar(func: Any, args: Any) -> tuple[Any, Any]:
    """A bitwise operator of a tensor and a number, which reach the dispatcher as one of two tensors."""
    name = func._schema.name.split("::")[1]
    if not name.startswith("bitwise_") or func._overloadname != "Tensor" or isinstance(args[1], torch.Tensor):
        return func, args
    if isinstance(args[1], bool):  # the other overload takes it as an integer
        return func, (args[0], torch.tensor(args[1]))
    return func.overloadpacket.Scalar, args


def _of_other_dtype(func: Any, args: Any, kwargs: Any) -> torch.Tensor | None:
    """What an operator gives, without data, where its dtype is another one than that of the first operand."""
    if draws(func, args, kwargs):
        return None
    shapes = tree_map(shape_only, (tuple(args), dict(kwargs)))
    try:
        made = func(*shapes[0], **shapes[1])
    except (RuntimeError, NotImplementedError):  # has no form without data
        made = func(*args, **kwargs)
    return shape_only(made) if isinstance(made, torch.Tensor) and made.dtype != args[0].dtype else None


def _layout(x: torch.Tensor) -> tuple[Any, ...]:
    return x.shape, x.stride(), x.storage_offset(), x.dtype


class Recorder(TorchDispatchMode):
    """Writes each operator that runs as a node. Tensors that it does not know are constants."""

    def __init__(self, names: Mapping[int, str]) -> None:
        super().__init__()
        self.graph = Graph()
        self.root = torch.nn.Module()
        self.names = dict(names)  # of state, by id
        self.nodes: dict[int, Node] = {}
        self.alive: list[Any] = []  # an id is unique as long as its tensor lives
        self.reads: list[str] = []
        self.silent = False
        self.of_any_size: list[Node] = []
        self.held: set[int] = set()  # where constants are that the run has not made
        self.stale: dict[int, str] = {}  # what mutated other views of a tensor's elements, by its id
        self.fresh: set[int] = set()  # of tensors that are made of numbers in the run, by id
        self.constant: set[Node] = set()  # what depends on no input

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        func, args = _of_scalar(func, args)
        if func in decompositions and not self.silent:
            with _Again(self):
                return decompositions[func](*args, **kwargs)
        if not self.silent and func._schema.is_mutable:
            self._check_mutation(func, args, kwargs)
        plain, same = (func, []) if self.silent else self._without_mutation(func, args)
        other = _of_other_dtype(plain, args, kwargs) if plain is not func else None
        made = products.run(func, args, kwargs)
        if not self.silent:
            if other is not None:  # what is written in place has the operand's dtype
                self.record(plain, args, kwargs, other)
                plain, args, kwargs = torch.ops.aten._to_copy.default, (other,), {"dtype": made.dtype}
            self.record(plain, args, kwargs, made)
            for x in same:
                self.nodes[id(x)] = self.nodes[id(made)]
        return made

    def _without_mutation(self, func: Any, args: Any) -> tuple[Any, list[torch.Tensor]]:
        """The operator that gives what this one writes into its operand, and the tensors that are the same as that: mutations of
        what depends on no input are not functionalized. Those that show its elements in another way become stale."""
        name = func._schema.name.split("::")[1]
        if not func._schema.is_mutable or not name.endswith("_") or not isinstance(args[0], torch.Tensor):
            return func, []
        plain = getattr(getattr(torch.ops.aten, name[:-1], None), func._overloadname, None)
        if plain is None:
            return func, []
        if args[0].numel() == 0:  # has no address
            return plain, [args[0]]
        place, own = storage_of(args[0]), _layout(args[0])
        shown = [x for x in self.alive if x.layout == torch.strided and x.numel() and storage_of(x) == place]
        self.stale.update((id(x), func._schema.name) for x in shown if _layout(x) != own)
        return plain, [x for x in shown if _layout(x) == own]

    def _check_mutation(self, func: Any, args: Any, kwargs: Any) -> None:
        """Raises an error where an operator would write into a tensor that is none of this run's."""
        for i, a in enumerate(func._schema.arguments):
            value = args[i] if i < len(args) else kwargs.get(a.name)
            if a.alias_info is None or not a.alias_info.is_write:
                continue
            for x in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(x, torch.Tensor) and (id(x) not in self.nodes or x.numel() and storage_of(x) in self.held):
                    raise TraceError(f"{MUTATES} ({func._schema.name})")

    def record(self, func: Any, args: Any, kwargs: Any, made: Any) -> None:
        name = func._schema.name.split("::")[1]
        if name in ("lift_fresh", "detach", "alias") and made is args[0]:
            if name == "lift_fresh" and id(made) not in self.nodes:
                self.fresh.add(id(made))
                self.alive.append(made)
            return
        tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
        varies = is_random(func, args, kwargs) or any(id(t) in self.nodes and self.nodes[id(t)] not in self.constant for t in tensors)
        if name in _READS_A_NUMBER and varies:
            self.reads.append(name)
        results = [x for x in tree_flatten(made)[0] if isinstance(x, torch.Tensor)]
        if any(x.is_quantized for x in (*tensors, *results)):
            raise TraceError(
                f"a module whose tensors are floats, or that torch.ao.quantization converted: found {name} of quantized "
                "tensors; convert_to_reference_fx() gives what can be compiled"
            )
        if not results:
            return
        if name in _FILLS and isinstance(made, torch.Tensor):  # of a tensor it asks the shape and dtype alone
            value = _FILLS[name] if _FILLS[name] is not None else _fill_value(func, args, kwargs)
            func, args, kwargs = torch.ops.aten.full.default, (list(made.shape), value), {"dtype": made.dtype}
        if name == "_reshape_alias":  # its strides are those that any view has
            func, args = torch.ops.aten.reshape.default, args[:2]
        node = self.graph.call_function(func, *tree_map(self.node_of, (tuple(args), dict(kwargs))))
        node.meta["val"] = tree_map(shape_only, made)
        if not varies:
            self.constant.add(node)
        elif has_any_size(func, args):
            self.of_any_size.append(node)
        if isinstance(made, torch.Tensor):
            self.know(made, node)
        else:
            for i, x in enumerate(made):
                if isinstance(x, torch.Tensor):
                    item = self.graph.call_function(operator.getitem, (node, i))
                    item.meta["val"] = shape_only(x)
                    if not varies:
                        self.constant.add(item)
                    self.know(x, item)

    def know(self, tensor: torch.Tensor, node: Node) -> None:
        self.nodes[id(tensor)] = node
        self.alive.append(tensor)

    def placeholder(self, tensor: torch.Tensor, name: str) -> None:
        node = self.graph.placeholder(name)
        node.meta["val"] = shape_only(tensor)
        self.know(tensor, node)

    def node_of(self, x: Any) -> Any:
        """The node of a tensor; anything else as it is."""
        if not isinstance(x, torch.Tensor):
            return x
        if id(x) in self.stale:
            raise TraceError(f"{MUTATES} ({self.stale[id(x)]} of a constant that a view shows)")
        if id(x) not in self.nodes:
            wanted = self.names.get(id(x), "constant").replace(".", "_")
            name = wanted if wanted != "constant" and not hasattr(self.root, wanted) else f"{wanted}_{len(self.nodes)}"
            self.root.register_buffer(name, x.detach() if not x.is_inference() else x)
            node = self.graph.create_node("get_attr", name)
            node.meta["val"] = shape_only(x)
            node.meta["fresh"] = id(x) in self.fresh
            if not node.meta["fresh"]:
                self.held.add(storage_of(x))
            self.constant.add(node)
            self.know(x, node)
        return self.nodes[id(x)]


class _Again(TorchDispatchMode):
    """A recorder within itself, for what an operator is written as."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.recorder.__torch_dispatch__(func, types, args, kwargs)


class Whole(TorchFunctionMode):
    """Keeps functions that are one operator of kiln's."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in ("quantize_per_tensor", "quantize_per_channel"):
            plain = tree_map(lambda x: unwrap(x) if isinstance(x, torch.Tensor) else x, args)
            with self._quiet():
                found = rounding(name, plain, kwargs)
            if found is not None:
                return wrap(self._run(*found))
        if name == "dequantize" and not args[0].is_quantized:
            return args[0]
        if name in packed.FUNCTIONS and not kwargs and packed.is_packed(name, args):
            made = packed.written(name, args, self._numbers)
            if made is None:
                raise TraceError(
                    f"lengths of packed sequences that no input decides: found {name} of lengths that are computed of inputs; give "
                    "them as a list or a buffer, or pad the sequences"
                )
            return made
        if name == "one_hot":  # PyTorch's reads the numbers to check them
            args, kwargs = _in_order(args, kwargs or {}, ("input", "num_classes"))
            if not kwargs and len(args) == 2 and args[1] > 0 and args[0].dtype == torch.int64:
                return (args[0].unsqueeze(-1) == torch.arange(args[1])).long()
        overload = _WHOLE.get(name)
        if overload == "einsum.default" and len(args) > 1 and not isinstance(args[1], (list, tuple)):
            args = (args[0], list(args[1:]))
        if overload == "repeat_interleave.self_int" and kwargs:
            args, kwargs = _in_order(args, kwargs, ("input", "repeats", "dim"))
        if overload is None or kwargs or not _is_whole(overload, args):
            return func(*args, **(kwargs or {}))
        name, _, of = overload.partition(".")
        op = getattr(getattr(torch.ops.aten, name), of)
        plain = tree_map(lambda x: unwrap(x) if isinstance(x, torch.Tensor) else x, args)
        return tree_map(wrap, self._run(op, plain))

    def _numbers(self, tensor: torch.Tensor) -> list[int] | None:
        """A tensor's numbers, where they depend on no input."""
        plain = unwrap(tensor)
        node = self.recorder.nodes.get(id(plain))
        if node is not None and node not in self.recorder.constant:
            return None
        with self._quiet():
            return [int(n) for n in plain.tolist()]

    def _run(self, op: Any, args: Any) -> Any:
        with self._quiet():
            made = op(*args)
        self.recorder.record(op, args, {}, made)
        return made

    @contextlib.contextmanager
    def _quiet(self) -> Iterator[None]:
        with _below_functionalization():
            self.recorder.silent = True
            try:
                yield
            finally:
                self.recorder.silent = False


def _in_order(args: Any, kwargs: Any, names: Sequence[str]) -> tuple[Any, Any]:
    """Arguments with those by keyword at their places, as long as none between is missing; and the others by keyword."""
    args, kwargs = list(args), dict(kwargs)
    kwargs.pop("output_size", None)  # says what is known
    while len(args) < len(names) and names[len(args)] in kwargs:
        args.append(kwargs.pop(names[len(args)]))
    return tuple(args), kwargs


def _is_whole(overload: str, args: Any) -> bool:
    if overload == "einsum.default":
        plain = len(args) == 2 and isinstance(args[0], str) and isinstance(args[1], (list, tuple))
        return plain and einsum_refusal(*args) is None
    if overload == "repeat_interleave.self_int":
        return len(args) > 1 and isinstance(args[0], torch.Tensor) and type(args[1]) is int
    # the other overload of recurrent layers, of packed sequences, has a tensor of sizes second
    return not isinstance(args[3], (list, tuple))


@contextlib.contextmanager
def _below_functionalization() -> Iterator[None]:
    torch._disable_functionalization()
    try:
        yield
    finally:
        torch._enable_functionalization(reapply_views=True)


def shape_only(x: Any) -> Any:
    """A tensor's shape and dtype, without data; anything else as it is."""
    if not isinstance(x, torch.Tensor) or x.layout != torch.strided:
        return x
    return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")


def nbytes(tensor: torch.Tensor) -> int:
    """Bytes of all elements."""
    return tensor.numel() * tensor.element_size()


_OF_ANY_SIZE = {"nonzero", "masked_select", "unique_dim", "unique_consecutive", "unique_dim_consecutive", "_unique", "_unique2",
                "bincount", "nms"}


def has_any_size(func: Any, args: Any) -> bool:
    """Whether the numbers in an operator's operands decide the shape of what it gives."""
    name = func._schema.name.split("::")[1]
    if name == "repeat_interleave":
        return func._overloadname != "self_int"
    if name in ("index", "_unsafe_index"):
        return any(isinstance(i, torch.Tensor) and i.dtype in (torch.bool, torch.uint8) for i in args[1])
    return name in _OF_ANY_SIZE or torch.Tag.dynamic_output_shape in getattr(func, "tags", ())


def is_random(func: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] = {}) -> bool:
    """Whether an operator draws random numbers, or gives memory that nobody has written."""
    return draws(func, args, kwargs) or func._schema.name.split("::")[1].startswith(("empty", "new_empty"))


def draws(func: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] = {}) -> bool:
    """Whether an operator draws random numbers."""
    name = func._schema.name.split("::")[1]
    if "scaled_dot_product" in name:
        at = [a.name for a in func._schema.arguments].index("dropout_p")
        return bool(args[at] if at < len(args) else kwargs.get("dropout_p", 0))
    return torch.Tag.nondeterministic_seeded in getattr(func, "tags", ()) or name.startswith("rand")
