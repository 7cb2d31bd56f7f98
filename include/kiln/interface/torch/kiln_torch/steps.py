"""A partitioned graph as steps that run one after another."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Union

import torch
from torch.fx import GraphModule, Node

from .. import _kiln
from .extents import Extent
from .partition import Part
from .tensors import from_kiln, to_kiln


class Slot(NamedTuple):
    """The place of a value among those of a run."""

    index: int  # type: ignore[assignment]


class KilnStep:
    """A part that is a compiled program."""

    def __init__(self, exe: Any, inputs: Sequence[int], outputs: Sequence[int], outs: Sequence[int], target: str) -> None:
        self.exe = exe
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.outs = tuple(outs)  # for each output, which of the executable's
        self.target = target

    def run(self, values: list[Any], n: int) -> None:
        made = self.exe(*[to_kiln(values[i]) for i in self.inputs])
        if len(self.outputs) == 1 and isinstance(made, _kiln.Tensor):
            values[self.outputs[0]] = from_kiln(made)
            return
        made = (made,) if isinstance(made, _kiln.Tensor) else made
        tensors = [from_kiln(x) for x in made]
        for slot, i in zip(self.outputs, self.outs):
            values[slot] = tensors[i]

    def __getstate__(self) -> dict[str, Any]:
        handle, path = tempfile.mkstemp(".kiln")
        os.close(handle)
        try:
            self.exe.save(path)
            with open(path, "rb") as file:
                return {**self.__dict__, "exe": file.read()}
        finally:
            os.unlink(path)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        handle, path = tempfile.mkstemp(".kiln")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(state["exe"])
            self.exe = _kiln._load(path, self.target, [], False)
        finally:
            os.unlink(path)  # the loaded program keeps what it maps


class EagerStep:
    """An operator that PyTorch runs."""

    def __init__(self, target: Any, args: Any, kwargs: Any, output: int) -> None:
        self.target, self.args, self.kwargs, self.output = target, args, kwargs, output

    def run(self, values: list[Any], n: int) -> None:
        args, kwargs = _fill((self.args, self.kwargs), values, n)
        values[self.output] = self.target(*args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        if isinstance(self.target, torch._ops.OpOverload):
            name = f"{self.target._schema.name}.{self.target._overloadname}"
            return {**self.__dict__, "target": name}
        return dict(self.__dict__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if isinstance(self.target, str):
            namespace, _, name = self.target.partition("::")
            op, _, overload = name.partition(".")
            self.target = getattr(getattr(getattr(torch.ops, namespace), op), overload)


def _fill(x: Any, values: Sequence[Any], n: int) -> Any:
    if isinstance(x, Slot):
        return values[x.index]
    if isinstance(x, Extent):
        return x.at(n)
    if isinstance(x, (list, tuple)):
        return type(x)(_fill(y, values, n) for y in x)
    if isinstance(x, dict):
        return {k: _fill(y, values, n) for k, y in x.items()}
    return x


Step = Union[KilnStep, EagerStep]


class Steps:
    """What a graph computes of the tensors of its placeholders, step by step."""

    def __init__(self, slots: int, constants: Mapping[int, torch.Tensor], outputs: Sequence[int]) -> None:
        self.slots, self.constants, self.outputs = slots, dict(constants), tuple(outputs)
        self.fresh: frozenset[int] = frozenset()  # slots of constants that the graph makes: each run gives copies
        self.steps: list[Step] = []
        self.drops: list[tuple[int, ...]] = []  # slots that nobody reads after a step

    def run(self, inputs: Sequence[torch.Tensor], n: int = 0, after: Callable[[], None] | None = None) -> list[Any]:
        """The results for tensors; n is the batch, where the graph has it as a symbol. `after` is called after each
        step."""
        values: list[Any] = list(inputs) + [None] * (self.slots - len(inputs))
        for slot, tensor in self.constants.items():
            values[slot] = tensor
        for step, drops in zip(self.steps, self.drops):
            step.run(values, n)
            if after is not None:
                after()
            for i in drops:
                values[i] = None
        for i in self.fresh:
            values[i] = values[i].clone()
        return [values[i] for i in self.outputs]


def _slots_read(step: Step) -> set[int]:
    if isinstance(step, KilnStep):
        return set(step.inputs)
    found: set[int] = set()

    def visit(x: Any) -> None:
        if isinstance(x, Slot):
            found.add(x.index)
        elif isinstance(x, (list, tuple)):
            for y in x:
                visit(y)
        elif isinstance(x, dict):
            for y in x.values():
                visit(y)

    visit((step.args, step.kwargs))
    return found


def make_steps(
    graph: GraphModule, parts: Sequence[Part], compiled: Callable[[Part], tuple[Any, Sequence[int], Sequence[int]]], target: str
) -> Steps:
    """The steps of a graph's parts. `compiled` gives a part's executable, the parts' inputs that it reads in their order,
    and for each of the part's outputs which of the executable's it is."""
    slot: dict[Node, int] = {}

    def place(node: Node) -> int:
        return slot.setdefault(node, len(slot))

    for node in graph.graph.nodes:
        if node.op == "placeholder":
            place(node)
    steps: list[Step] = []
    constants: dict[int, torch.Tensor] = {}

    def refer(node: Node) -> Slot:
        if node.op == "get_attr":
            constants[place(node)] = getattr(graph, node.target)  # type: ignore[arg-type]
        return Slot(place(node))

    for part in parts:
        if part.compiled:
            exe, reads, outs = compiled(part)
            steps.append(
                KilnStep(exe, [place(part.inputs[i]) for i in reads], [place(x) for x in part.outputs], outs, target)
            )
            continue
        for node in part.nodes:
            args, kwargs = _referring((node.args, node.kwargs), refer)
            steps.append(EagerStep(node.target, args, kwargs, place(node)))
    (results,) = next(n for n in graph.graph.nodes if n.op == "output").args
    out = Steps(0, {}, [refer(x).index for x in results])  # type: ignore[union-attr]
    out.slots, out.constants, out.steps = len(slot), constants, steps
    out.fresh = frozenset(place(x) for x in results if x.op == "get_attr" and x.meta.get("fresh"))  # type: ignore[union-attr]
    last: dict[int, int] = {}
    for i, step in enumerate(steps):
        last.update((s, i) for s in _slots_read(step))
    kept = {*out.outputs, *constants}
    out.drops = [tuple(s for s, at in last.items() if at == i and s not in kept) for i in range(len(steps))]
    return out


def _referring(x: Any, refer: Callable[[Node], Slot]) -> Any:
    if isinstance(x, Node):
        return refer(x)
    if isinstance(x, Extent):
        return x
    if isinstance(x, dict):
        return {k: _referring(v, refer) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        made = [_referring(y, refer) for y in x]
        return made if isinstance(x, list) else tuple(made)
    return x
