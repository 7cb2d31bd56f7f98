"""A module's run as a graph of PyTorch's operators that mutates nothing."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import GraphModule
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from .. import _kiln
from .quantized import callable_of, put_forms
from .record import Recorder, TraceError, Whole, unwrap, wrap


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

    index: int  # type: ignore[assignment]


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
    recorder = Recorder({id(t): name for name, t in state.items()})
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
        put_forms(module)
        _put_state(module, {id(t): replaced[name] for name, t in state.items()})
        torch._enable_functionalization(reapply_views=True)
        try:
            with Whole(recorder), recorder:
                outputs, out_spec = tree_flatten(callable_of(module)(*call[0], **call[1]))
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
    for node in recorder.of_any_size:
        readers = {u for n in (node, *node.users) for u in n.users if u.target is not operator.getitem}
        if any(u.op != "output" for u in readers):
            raise TraceError(
                f"a module's run is the same for all values of its inputs: found {node.target}, whose result is as large as the numbers "
                f"say, and {next(u for u in readers if u.op != 'output').target} that reads it; compile the parts of the module without it"
            )
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
