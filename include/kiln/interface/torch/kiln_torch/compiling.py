"""From a module to a Variant: trace, fold, split, lower, compile, measure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional

import torch
from torch.fx import Node

import kiln

from .. import _kiln
from .extents import NotOneGraph, check_shapes, resized, unify, work_of
from .lower import Lowered, LoweringError, lower, supports
from .module import Key, Variant
from .partition import Part, PartGraph, Partition, fold, reads_memory, split, text_of
from .record import draws
from .report import AccuracyError, error_of, report_of
from .steps import KilnStep, Steps, make_steps
from .trace import Trace, trace
from .trees import tree_flatten, tree_unflatten

# The greatest error that is taken for rounding, relative to the greatest element, by precision.
TOLERANCE = {None: 1e-4, "fp16": 2e-2, "bf16": 1e-1}
_BATCHES = (2, 3, 5)
_LARGE = 67  # a batch that shows what changes with more than a few,
_MOST_WORK = 1 << 31  # unless its run takes more multiplications
_PRECISIONS = {"fp32": None, "f32": None, "float32": None, "fp16": "fp16", "f16": "fp16", "float16": "fp16", "bf16": "bf16",
               "bfloat16": "bf16", "int8": "int8"}


class Batch(NamedTuple):
    """What programs for any batch are made with: the symbol, the example's batch, and by index of an input its dim."""

    symbol: Any
    size: int
    axes: Mapping[int, int]

    def of(self, tensors: Sequence[torch.Tensor]) -> int:
        """The batch of inputs."""
        at = min(self.axes)
        return int(tensors[at].shape[self.axes[at]])


class Maker:
    """Compiles a module for inputs, as often as inputs need."""

    def __init__(
        self,
        module: Any,
        *,
        precision: str | None = None,
        min_size: int = 3,
        check: bool = True,
        tolerance: float | None = None,
        target: str = "cpu",
        samples: Any = None,
        eager: str | Sequence[str] = (),
        options: Mapping[str, Any],
    ) -> None:
        if precision is not None and (not isinstance(precision, str) or precision.lower() not in _PRECISIONS):
            raise _kiln.ArgumentError(f"a precision is fp32, fp16, bf16 or int8: found {precision!r}")
        self.precision = None if precision is None else _PRECISIONS[precision.lower()]
        self.module, self.min_size, self.check = module, min_size, check
        self.given_tolerance = tolerance
        self.eager = (eager,) if isinstance(eager, str) else tuple(eager)
        self.target, self.samples, self.options = target, samples, dict(options)

    def make(self, kind: Key, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Variant, dict[str, Any]]:
        """A Variant for inputs like these, and the state that it mutates. Where one for any batch is wanted and can't be,
        the kind says so from then on."""
        remarks: list[str] = []
        with torch.random.fork_rng([]):  # the numbers that the runs draw are the caller's still
            traced = trace(self.module, args, kwargs)
            key, tensors, n = kind.of(args, kwargs)
            variant = None
            if n and kind.axes is not None:
                axes = {i: axis for i, axis in kind.axes.items() if i < len(tensors)}
                try:
                    variant, kind.least[key] = self._for_any_batch(traced, args, kwargs, axes, n)
                except Exception as why:  # whatever other batches are refused for, this one may run
                    remarks.append(f"compiled for each shape, not for any batch: {str(why) or type(why).__name__}")
                    kind.least[key] = math.inf
            if variant is None:
                variant = self._variant(traced, None, remarks)
        state = {name.replace(".", "_"): t for name, t in zip(traced.state, traced.given[len(traced.given) - len(traced.state) :])}
        return variant, state

    def _for_any_batch(
        self, first: Trace, args: Any, kwargs: Any, axes: Mapping[int, int], own: int
    ) -> tuple[Variant, int]:  # fmt: skip
        """A Variant for any batch, and the least one that it is for: 1, or 2 where one row takes another way. Raises an error
        where runs with several batches are not one graph."""
        flat, spec = tree_flatten((tuple(args), dict(kwargs)))
        tensors = [i for i, x in enumerate(flat) if isinstance(x, torch.Tensor)]

        def of_batch(n: int) -> Trace:
            other = list(flat)
            for at, axis in axes.items():
                other[tensors[at]] = resized(other[tensors[at]].detach(), axis, n)
            call = tree_unflatten(other, spec)
            return trace(self.module, call[0], call[1])

        known = {n: of_batch(n) for n in [n for n in _BATCHES if n != own][: 3 if own == 1 else 2]}
        if own > 1:
            known[own] = first  # last: the graph of the first one becomes that of all
        general = unify(list(known.values()), list(known))
        check_shapes(general, own, [x.shape for x in first.made])
        general = general._replace(given=first.given, made=first.made)
        # PyTorch takes shortcuts for a batch of one, whose graph is then another one: what they give is compared
        least, others = 1, {}
        if own > 1:
            try:
                others[1] = of_batch(1)
                check_shapes(general, 1, [x.shape for x in others[1].made])
            except Exception:
                least = 2
                others.clear()
        many = int(min(_LARGE, _MOST_WORK * own // max(work_of(first.graph), 1)))
        if many > max(known):
            others[many] = of_batch(many)
            check_shapes(general, many, [x.shape for x in others[many].made])
        variant = self._variant(general, Batch(_kiln.symbol("batch", least), own, axes), [])
        if self.check and variant.report.error is not None:
            for n, run in others.items():
                error = error_of(variant.steps.run([x.clone() for x in run.given], n), run.made)
                if not error <= (self._tolerance(general) or math.inf):
                    if n > 1:
                        raise NotOneGraph(f"the results for the batch {n} differ by {error:.2g} from PyTorch's")
                    least = 2
        return variant, least

    def _variant(self, traced: Trace, batch: Optional[Batch], remarks: list[str]) -> Variant:
        fold(traced.graph)
        partition, steps = self._partition(traced, batch)
        error = None
        called = [n for n in traced.graph.graph.nodes if n.op == "call_function" and hasattr(n.target, "_schema")]
        if self.check and any(draws(n.target, n.args, n.kwargs) for n in called):
            remarks.append("the results are random: they were not compared with PyTorch's")
        elif self.check:
            error = error_of(steps.run([x.clone() for x in traced.given], batch.size if batch else 0), traced.made)
            tolerance = self._tolerance(traced)
            if tolerance is not None and not error <= tolerance:
                raise AccuracyError(
                    f"results within {tolerance:.2g} (the tolerance) of PyTorch's, relative to the greatest element: "
                    f"found {error:.2g}"
                )
        state = [name.replace(".", "_") for name in traced.state]
        report = report_of(partition, error, batch is not None, remarks)
        return Variant(steps, traced.outputs, traced.results, traced.mutated, state, report)

    def _partition(self, traced: Trace, batch: Optional[Batch]) -> tuple[Partition, Steps]:
        """Parts, and what runs them. A node whose lowering fails though it was thought to be supported is PyTorch's."""
        failed: dict[Node, str] = {}
        done: dict[Part, tuple[Any, Lowered]] = {}
        while True:
            partition = split(traced.graph, lambda n: failed.get(n) or self._why_not(n), self.min_size)
            try:
                return partition, self._steps(traced, partition, batch, done)
            except LoweringError as fault:
                node = fault.node.meta.get("whole")
                while node is not None and node.op == "call_function" and not hasattr(node.target, "_schema"):
                    node = node.args[0]
                if node is None or node in failed:
                    raise
                failed[node] = fault.reason

    def _tolerance(self, traced: Trace) -> float | None:
        # what rounds to integers may round to either neighbor
        rounds = any("quantize" in str(n.target) for n in traced.graph.graph.nodes)
        default = None if rounds else TOLERANCE.get(self.precision)
        return default if self.given_tolerance is None else self.given_tolerance

    def _why_not(self, node: Node) -> str | None:
        name = node.target._schema.name.split("::")[1]  # type: ignore[union-attr]
        if name in self.eager or text_of(node) in self.eager:
            return "as was asked for"
        return reads_memory(node) or supports(node)

    def _steps(
        self, traced: Trace, partition: Partition, batch: Optional[Batch], done: dict[Part, tuple[Any, Lowered]]
    ) -> Steps:  # fmt: skip
        """What runs the parts; those that are compiled are kept in `done`."""
        precision = None if self.precision == "int8" else self.precision

        def compiled(part: Part) -> tuple[Any, Sequence[int], Sequence[int]]:
            if part not in done:
                made = lower(PartGraph(traced.graph, part, batch.symbol if batch else None))  # type: ignore[arg-type]
                done[part] = kiln.compile(made.program, self.target, precision=precision, **self.options), made
            exe, made = done[part]
            names = [f"input_{i}" for i in range(len(part.inputs))]
            return exe, [names.index(p.name) for p in exe.inputs], _places(exe, made)

        steps = make_steps(traced.graph, partition.parts, compiled, self.target)
        if self.precision == "int8":
            self._quantize(steps, [done[part][1] for part in partition.parts if part.compiled], traced, batch)
        return steps

    def _samples(self, traced: Trace, batch: Optional[Batch]) -> list[list[torch.Tensor]]:
        """The samples' tensors; those of the example, where no sample has the shapes that are compiled."""
        made = []
        for sample in self.samples if self.samples is not None else ():
            args = (sample,) if isinstance(sample, torch.Tensor) else tuple(sample)
            found = [x for x in tree_flatten(args)[0] if isinstance(x, torch.Tensor)]
            if batch is not None or all(x.shape == y.shape for x, y in zip(found, traced.given)):
                made.append(found)
        return made or [[]]

    def _quantize(self, steps: Steps, lowered: Sequence[Lowered], traced: Trace, batch: Optional[Batch]) -> None:
        """Puts programs in int8 in place of those in f32, with the ranges of what samples make of their inputs."""
        own = [s for s in steps.steps if isinstance(s, KilnStep)]
        slots = [dict(zip((p.name for p in s.exe.inputs), s.inputs)) for s in own]
        seen: list[list[dict[str, torch.Tensor]]] = [[] for _ in own]
        for found in self._samples(traced, batch):
            given = [*found, *traced.given[len(found) :]]
            values: list[Any] = [x.clone() for x in given] + [None] * (steps.slots - len(given))
            for slot, tensor in steps.constants.items():
                values[slot] = tensor
            for step in steps.steps:
                if isinstance(step, KilnStep):
                    at = own.index(step)
                    seen[at].append({name: values[i].contiguous() for name, i in slots[at].items()})
                step.run(values, batch.of(given) if batch else 0)
        for step, made, places, samples in zip(own, lowered, slots, seen):
            try:
                quantized = kiln.quantize(made.program, "int8", samples=samples, target=self.target)
            except _kiln.ArgumentError as why:
                if "0 of 0 values" not in str(why):
                    raise
                continue  # a part without products of weights stays as it is
            step.exe = kiln.compile(quantized, self.target, **self.options)
            step.inputs = tuple(places[p.name] for p in step.exe.inputs)
            step.outs = tuple(_places(step.exe, made))


def _places(exe: Any, made: Lowered) -> list[int]:
    """For each of a graph's outputs which of the executable's it is."""
    ports = [p.name for p in exe.outputs]
    return [ports.index(name) for name in made.outputs]


def maker_of(module: Any, *, precision: str | None = None, min_size: int = 3, check: bool = True, tolerance: float | None = None,
             samples: Any = None, eager: str | Sequence[str] = (), target: str = "cpu", **options: Any) -> Maker:  # fmt: skip
    """What compiles a module, with the keywords of kiln.torch.compile()."""
    return Maker(module, precision=precision, min_size=min_size, check=check, tolerance=tolerance, samples=samples, eager=eager,
                 target=target, options=options)  # fmt: skip


def batch_axes(args: Any, kwargs: Any, how: Any) -> dict[int, int] | None:
    """By index of an input, the dim that is the batch, as the keyword dynamic_batch says it; None for none."""
    if how is False or how is None:
        return None
    tensors = [x for x in tree_flatten((tuple(args), dict(kwargs)))[0] if isinstance(x, torch.Tensor)]
    if isinstance(how, Mapping):
        if any(not 0 <= i < len(tensors) or not -tensors[i].dim() <= axis < tensors[i].dim() for i, axis in how.items()) or not how:
            raise _kiln.ArgumentError(f"dynamic_batch names dims of the {len(tensors)} inputs by index: found {dict(how)}")
        return {i: axis % tensors[i].dim() for i, axis in how.items()}
    if not isinstance(how, int):
        raise _kiln.ArgumentError(f"dynamic_batch is True, a dim, or dims by index of an input: found {how!r}")
    axis = 0 if how is True else how
    having = {i: axis % x.dim() for i, x in enumerate(tensors) if -x.dim() <= axis < x.dim()}
    if not having:
        raise _kiln.ArgumentError(f"dynamic_batch is of inputs with a dim {axis}: found none")
    first = tensors[min(having)].shape[having[min(having)]]
    return {i: d for i, d in having.items() if tensors[i].shape[d] == first}
