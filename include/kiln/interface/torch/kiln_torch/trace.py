"""A module's run as a graph of PyTorch's operators that mutates nothing."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import GraphModule
from torch.utils._pytree import TreeSpec

from .. import _kiln
from .quantized import callable_of, put_forms
from .record import MUTATES, Recorder, TraceError, Whole, unwrap, wrap
from .twin import Twin, state_of
from .trees import tree_flatten, tree_unflatten


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


def trace(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Trace:
    """Records a run of a module in the mode of evaluation, or of a function. The module stays as it is."""
    made = _trace(module, args, kwargs, ())
    # what is computed of state that the run mutates is no constant
    return _trace(module, args, kwargs, made.state) if made.state else made


def _trace(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any], mutated: Sequence[str]) -> Trace:
    flat, spec = tree_flatten((tuple(args), dict(kwargs)))
    twin = Twin(module)
    state = state_of(twin.root)
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
    with torch.no_grad():
        put_forms(twin.root)
        twin.put({id(t): replaced[name] for name, t in state.items()})
        torch._enable_functionalization(reapply_views=True)
        try:
            with Whole(recorder), recorder:
                outputs, out_spec = tree_flatten(callable_of(twin.call)(*call[0], **call[1]))
                outputs = [unwrap(x) if isinstance(x, torch.Tensor) else x for x in outputs]
                new = [unwrap(x) for x in wrapped]
                held = twin.state()
                new_state = {name: unwrap(held.get(name, t)) for name, t in replaced.items()}
        except RuntimeError as why:
            if "mutating a non-functional tensor" in str(why):
                raise TraceError(MUTATES) from why
            raise
        finally:
            torch._disable_functionalization()
    _check_state(recorder, twin, plain, new_state)
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


def _check_state(recorder: Recorder, twin: Twin, was: Mapping[str, torch.Tensor], now: Mapping[str, torch.Tensor]) -> None:
    for name, t in now.items():
        if (t.shape, t.dtype) != (was[name].shape, was[name].dtype):
            raise TraceError(
                f"a buffer keeps its shape and dtype: found {name} of {list(was[name].shape)} {was[name].dtype} replaced by "
                f"{list(t.shape)} {t.dtype}"
            )
    for name, tensor in twin.rebound():
        if id(tensor) in recorder.nodes:
            raise TraceError(f"a tensor that a run reads and replaces is a buffer of its module: found the attribute {name}")


def check_tensor(x: torch.Tensor, what: str) -> None:
    """Raises an error for a tensor that kiln can't read: one of a device, or a sparse one."""
    if x.device.type != "cpu":
        raise _kiln.ArgumentError(f"{what} is in the host's memory (device cpu): found device {x.device}")
    if x.layout != torch.strided:
        raise _kiln.ArgumentError(f"{what} is dense: found layout {x.layout}")
