"""A module's run as a graph of PyTorch's operators that mutates nothing."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import Graph, GraphModule, Node
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import TreeSpec, tree_flatten, tree_map, tree_unflatten

from .. import _kiln
from . import products
from .aten.einsum import einsum_refusal
from .decompose import decompositions

# Functions that are one operator of kiln's though PyTorch computes them as many: with the overload that says the same.
_WHOLE = {
    "lstm": "lstm.input",
    "gru": "gru.input",
    "rnn_tanh": "rnn_tanh.input",
    "rnn_relu": "rnn_relu.input",
    "einsum": "einsum.default",
}
_READS_A_NUMBER = {"_local_scalar_dense", "is_nonzero", "equal"}
# Constants that are made of constants are computed now, up to this many bytes beyond their operands'.
_MOST_FOLDED = 1 << 20
# What rounds weights is told to kiln, which keeps them as integers.
_KEPT = ("fake_quantize", "quantize", "dequantize")


# What fills a tensor of the shape of another one or of a given one; None: with an argument.
_FILLS = {"new_zeros": 0, "new_ones": 1, "zeros_like": 0, "ones_like": 1, "new_full": None, "full_like": None}


def _fill_value(func: Any, args: Any, kwargs: Any) -> Any:
    at = next(i for i, a in enumerate(func._schema.arguments) if a.name == "fill_value")
    return args[at] if at < len(args) else kwargs["fill_value"]


# Operators that show their operand's elements where they are.
VIEWS = {"getitem", "view", "t", "transpose", "permute", "unsqueeze", "squeeze", "select", "slice", "detach", "alias", "split",
         "unbind", "reshape", "unsafe_split", "split_with_sizes"}


class TraceError(_kiln.ArgumentError):
    """A module whose run is no graph of operators: it reads numbers out of tensors, or makes what is no tensor."""


class Trace(NamedTuple):
    """A run as a graph. Placeholders are the tensors among the flattened inputs, then the state (parameters and
    buffers) that the run mutates; attributes of the graph's module are what it only reads. Results are the tensors
    among the flattened outputs, then the new values of mutated inputs, then those of mutated state."""

    graph: GraphModule
    inputs: TreeSpec
    leaves: tuple[Any, ...]  # the inputs, flattened: None for a tensor, else the value that the graph was made for
    outputs: TreeSpec
    results: tuple[Any, ...]  # the outputs, flattened: (index of a result,), or the value itself
    mutated: tuple[int, ...]  # indices of placeholders whose new values follow the results
    state: tuple[str, ...]  # the mutated state's names, in the order of its placeholders
    given: tuple[torch.Tensor, ...]  # what the placeholders were in this run,
    made: tuple[torch.Tensor, ...]  # and the results


class Result(NamedTuple):
    """The place of a tensor among the graph's results."""

    index: int


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


class _Recorder(TorchDispatchMode):
    """Writes each operator that runs as a node. Tensors that it does not know are constants."""

    def __init__(self, names: Mapping[int, str]) -> None:
        super().__init__()
        self.graph = Graph()
        self.root = torch.nn.Module()
        self.names = names  # of state, by id
        self.nodes: dict[int, Node] = {}
        self.alive: list[Any] = []  # an id is unique as long as its tensor lives
        self.reads: list[str] = []
        self.silent = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in decompositions and not self.silent:
            with _Again(self):
                return decompositions[func](*args, **kwargs)
        made = products.run(func, args, kwargs)
        if not self.silent:
            self.record(func, args, kwargs, made)
        return made

    def record(self, func: Any, args: Any, kwargs: Any, made: Any) -> None:
        name = func._schema.name.split("::")[1]
        if name in ("lift_fresh", "detach", "alias") and made is args[0]:
            return
        tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
        if name in _READS_A_NUMBER and any(id(t) in self.nodes for t in tensors):
            self.reads.append(name)
        results = [x for x in tree_flatten(made)[0] if isinstance(x, torch.Tensor)]
        if not results or self._folds(func, name, tensors, results):
            return
        if name in _FILLS and isinstance(made, torch.Tensor):  # of a tensor it asks the shape and dtype alone
            value = _FILLS[name] if _FILLS[name] is not None else _fill_value(func, args, kwargs)
            func, args, kwargs = torch.ops.aten.full.default, (list(made.shape), value), {"dtype": made.dtype}
        if name == "_reshape_alias":  # its strides are those that any view has
            func, args = torch.ops.aten.reshape.default, args[:2]
        node = self.graph.call_function(func, *tree_map(self.node_of, (tuple(args), dict(kwargs))))
        node.meta["val"] = tree_map(shape_only, made)
        if isinstance(made, torch.Tensor):
            self.know(made, node)
        else:
            for i, x in enumerate(made):
                if isinstance(x, torch.Tensor):
                    item = self.graph.call_function(operator.getitem, (node, i))
                    item.meta["val"] = shape_only(x)
                    self.know(x, item)

    def _folds(self, func: Any, name: str, tensors: Sequence[Any], results: Sequence[Any]) -> bool:
        if not tensors or any(id(t) in self.nodes for t in tensors):
            return False
        if is_random(func) or func._schema.is_mutable or name.startswith(_KEPT) or name in VIEWS:
            return False  # of views, fold() knows who reads them
        return sum(map(nbytes, results)) <= sum(map(nbytes, tensors)) + _MOST_FOLDED

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
        if id(x) not in self.nodes:
            wanted = self.names.get(id(x), "constant").replace(".", "_")
            name = wanted if wanted != "constant" and not hasattr(self.root, wanted) else f"{wanted}_{len(self.nodes)}"
            self.root.register_buffer(name, x.detach() if not x.is_inference() else x)
            node = self.graph.create_node("get_attr", name)
            node.meta["val"] = shape_only(x)
            self.know(x, node)
        return self.nodes[id(x)]


class _Again(TorchDispatchMode):
    """A recorder within itself, for what an operator is written as."""

    def __init__(self, recorder: _Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.recorder.__torch_dispatch__(func, types, args, kwargs)


class _Whole(TorchFunctionMode):
    """Keeps functions that are one operator of kiln's."""

    def __init__(self, recorder: _Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        overload = _WHOLE.get(getattr(func, "__name__", ""))
        if overload == "einsum.default" and len(args) > 1 and not isinstance(args[1], (list, tuple)):
            args = (args[0], list(args[1:]))
        if overload is None or kwargs or not _is_whole(overload, args):
            return func(*args, **(kwargs or {}))
        name, _, of = overload.partition(".")
        op = getattr(getattr(torch.ops.aten, name), of)
        plain = tree_map(lambda x: unwrap(x) if isinstance(x, torch.Tensor) else x, args)
        with _below_functionalization():
            self.recorder.silent = True
            try:
                made = op(*plain)
            finally:
                self.recorder.silent = False
        self.recorder.record(op, plain, {}, made)
        return tree_map(wrap, made)


def _is_whole(overload: str, args: Any) -> bool:
    if overload == "einsum.default":
        plain = len(args) == 2 and isinstance(args[0], str) and isinstance(args[1], (list, tuple))
        return plain and einsum_refusal(*args) is None
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


def is_random(func: Any) -> bool:
    """Whether an operator draws random numbers, or gives memory that nobody has written."""
    tags = getattr(func, "tags", ())
    name = func._schema.name.split("::")[1]
    return torch.Tag.nondeterministic_seeded in tags or name.startswith(("rand", "empty", "new_empty"))


def state_of(module: Any) -> dict[str, torch.Tensor]:
    """Parameters and buffers by name, each once."""
    out: dict[str, torch.Tensor] = {}
    for named in (module.named_parameters(), module.named_buffers()):
        out.update(named)
    return out


@contextlib.contextmanager
def as_it_was(module: Any, training: bool | None = False) -> Iterator[None]:
    """Puts the module back as it was: its mode, and all attributes. Within, it is in the mode `training`, unless None."""
    if isinstance(module, torch.jit.ScriptModule):
        modes = [(m, m.training) for m in module.modules() if hasattr(m, "training")]  # a frozen one has no mode
        held = [(m, name, tensor) for m in module.modules() for name, tensor in _own_state(m)]
        try:
            for m, _ in modes if training is not None else ():
                m.training = training
            yield
        finally:
            for m, was in modes:
                m.training = was
            for m, name, tensor in held:
                m._c.setattr(name, tensor)
        return
    kept = [(m, dict(m.__dict__), {k: dict(v) for k, v in m.__dict__.items() if k in _TABLES}) for m in _modules(module)]
    try:
        for m, _, _ in kept if training is not None else ():
            m.training = training
        yield
    finally:
        for m, attributes, tables in kept:
            m.__dict__.clear()
            m.__dict__.update(attributes)
            for k, table in tables.items():
                m.__dict__[k].clear()
                m.__dict__[k].update(table)


_TABLES = ("_parameters", "_buffers", "_modules")


def _modules(module: Any) -> list[Any]:
    return list(module.modules()) if isinstance(module, torch.nn.Module) else []


def _own_state(module: Any) -> list[tuple[str, torch.Tensor]]:
    tables = (module._parameters, module._buffers)
    return [(name, tensor) for table in tables for name, tensor in table.items() if tensor is not None]


def _put_state(module: Any, to: Mapping[int, torch.Tensor]) -> None:
    if isinstance(module, torch.jit.ScriptModule):
        for m in module.modules():
            for name, tensor in _own_state(m):
                m._c.setattr(name, to[id(tensor)])
        return
    for m in _modules(module):
        for table in (m._parameters, m._buffers):
            for name, tensor in table.items():
                if tensor is not None and id(tensor) in to:
                    table[name] = to[id(tensor)]
        # weights that a module keeps beside its parameters, as nn.RNN does
        for name, held in list(m.__dict__.items()):
            if isinstance(held, list) and any(id(x) in to for x in held):
                m.__dict__[name] = [to.get(id(x), x) for x in held]


def trace(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Trace:
    """Records a run of a module, or of a function, in the mode that it is in."""
    made = _trace(module, args, kwargs, ())
    # what is computed of state that the run mutates is no constant
    return _trace(module, args, kwargs, made.state) if made.state else made


def _trace(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any], mutated: Sequence[str]) -> Trace:
    flat, spec = tree_flatten((tuple(args), dict(kwargs)))
    state = state_of(module) if isinstance(module, torch.nn.Module) else {}
    recorder = _Recorder({id(t): name for name, t in state.items()})
    given: list[torch.Tensor] = []
    for x in flat:
        if isinstance(x, torch.Tensor):
            check_tensor(x, f"input {len(given)}")
            given.append(x.detach().clone())
            recorder.placeholder(given[-1], f"input_{len(given) - 1}")
    wrapped = list(map(wrap, given))
    plain = {name: t.detach() for name, t in state.items()}
    replaced = {name: wrap(t) for name, t in plain.items()}
    recorder.names.update((id(t), name) for name, t in plain.items())
    recorder.alive.extend(plain.values())
    for name in mutated:
        recorder.placeholder(plain[name], "state_" + name.replace(".", "_"))

    tensors = iter(wrapped)
    call = tree_unflatten([next(tensors) if isinstance(x, torch.Tensor) else x for x in flat], spec)
    with as_it_was(module, None), torch.no_grad():
        _put_state(module, {id(t): replaced[name] for name, t in state.items()})
        torch._enable_functionalization(reapply_views=True)
        try:
            with _Whole(recorder), recorder:
                outputs, out_spec = tree_flatten(module(*call[0], **call[1]))
                outputs = [unwrap(x) if isinstance(x, torch.Tensor) else x for x in outputs]
                new = [unwrap(x) for x in wrapped]
                new_state = {name: unwrap(t) for name, t in replaced.items()}
        finally:
            torch._disable_functionalization()
    if recorder.reads:
        raise TraceError(
            f"a module's run is the same for all values of its inputs: found {recorder.reads[0]}, which reads a number out "
            "of a tensor; compile the parts of the module that do not"
        )
    changed = [i for i, (x, y) in enumerate(zip(given, new)) if x is not y]
    names = tuple(mutated) or tuple(name for name, t in new_state.items() if t is not plain[name])
    tensors_out = [x for x in outputs if isinstance(x, torch.Tensor)]
    order = iter(range(len(tensors_out)))
    results = tuple(Result(next(order)) if isinstance(x, torch.Tensor) else x for x in outputs)
    values = (*tensors_out, *(new[i] for i in changed), *(new_state[name] for name in names))
    recorder.graph.output(tuple(map(recorder.node_of, values)))
    recorder.graph.eliminate_dead_code()
    return Trace(
        GraphModule(recorder.root, recorder.graph),
        spec,
        tuple(None if isinstance(x, torch.Tensor) else x for x in flat),
        out_spec,
        results,
        (*changed, *(len(given) + i for i in range(len(names)))),
        names,
        (*given, *(plain[name] for name in names)),
        values,
    )


def check_tensor(x: torch.Tensor, what: str) -> None:
    """Raises an error for a tensor that kiln can't read: one of a device, or a sparse one."""
    if x.device.type != "cpu":
        raise _kiln.ArgumentError(f"{what} is in the host's memory (device cpu): found device {x.device}")
    if x.layout != torch.strided:
        raise _kiln.ArgumentError(f"{what} is dense: found layout {x.layout}")
