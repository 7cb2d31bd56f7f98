"""From a module to a Variant: trace, fold, split, lower, compile, measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx import Node
from torch.utils._pytree import tree_flatten, tree_unflatten

import kiln

from .. import _kiln
from .extents import NotOneGraph, check_shapes, resized, unify
from .lower import lower, supports
from .module import CompiledModule, Variant
from .partition import Part, PartGraph, Partition, fold, split, text_of
from .report import AccuracyError, error_of, report_of
from .steps import KilnStep, Steps, make_steps
from .trace import Trace, as_it_was, trace

# The greatest error that is taken for rounding, relative to the greatest element, by precision.
TOLERANCE = {None: 1e-4, "fp16": 2e-2, "bf16": 1e-1}
_BATCHES = (2, 3, 5)


class Maker:
    """Compiles a module for inputs, as often as inputs need."""

    def __init__(
        self,
        module: Any,
        *,
        precision: str | None,
        min_size: int,
        check: bool,
        tolerance: float | None,
        target: str,
        samples: Any,
        eager: Sequence[str],
        options: Mapping[str, Any],
    ) -> None:
        self.module, self.precision, self.min_size, self.check = module, precision, min_size, check
        self.given_tolerance = tolerance
        self.target, self.samples, self.eager, self.options = target, samples, tuple(eager), dict(options)

    def make(self, owner: CompiledModule, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Variant, dict[str, Any]]:
        """A Variant for inputs like these, and the state that it mutates."""
        remarks: list[str] = []
        with as_it_was(self.module, False):
            traced = trace(self.module, args, kwargs)
            axes = owner._key.axes
            variant = None
            if axes is not None:
                try:
                    general = self._with_symbol(traced, args, kwargs, axes)
                    variant = self._variant(general, axes, remarks)
                except NotOneGraph as why:
                    remarks.append(f"compiled for each shape, not for any batch: {why}")
                    owner._key.axes = None
        if variant is None:
            variant = self._variant(traced, None, remarks)
        state = {name.replace(".", "_"): t for name, t in zip(traced.state, traced.given[len(traced.given) - len(traced.state) :])}
        return variant, state

    def _with_symbol(self, first: Trace, args: Any, kwargs: Any, axes: Mapping[int, int]) -> Trace:
        flat, spec = tree_flatten((tuple(args), dict(kwargs)))
        tensors = [i for i, x in enumerate(flat) if isinstance(x, torch.Tensor)]
        own = flat[tensors[min(axes)]].shape[axes[min(axes)]]
        # PyTorch takes shortcuts for a batch of one, whose graph is then another one: the results are compared
        count = 3 if own == 1 else 2
        known: dict[int, Trace] = {}
        for n in [n for n in _BATCHES if n != own][:count]:
            other = list(flat)
            for at, axis in axes.items():
                other[tensors[at]] = resized(other[tensors[at]].detach(), axis, n)
            call = tree_unflatten(other, spec)
            known[n] = trace(self.module, call[0], call[1])
        if own > 1:
            known[own] = first  # last: the graph of the first one becomes that of all
        made = unify(list(known.values()), list(known))
        check_shapes(made, own, [x.shape for x in first.made])
        return made._replace(given=first.given, made=first.made)

    def _variant(self, traced: Trace, axes: Mapping[int, int] | None, remarks: list[str]) -> Variant:
        fold(traced.graph)
        partition = split(traced.graph, self._why_not, self.min_size)
        symbol = None if axes is None else _kiln.symbol("batch", 1)
        steps = self._steps(traced, partition, symbol)
        error = None
        if self.check:
            batch = 0 if axes is None else traced.given[min(axes)].shape[axes[min(axes)]]
            error = error_of(steps.run([x.clone() for x in traced.given], batch), traced.made)
            tolerance = self._tolerance(traced)
            if tolerance is not None and not error <= tolerance:
                if axes is not None:
                    raise NotOneGraph(f"the results for the example differ by {error:.2g} from PyTorch's")
                raise AccuracyError(
                    f"results within {tolerance:.2g} (the tolerance) of PyTorch's, relative to the greatest element: "
                    f"found {error:.2g}"
                )
        state = [name.replace(".", "_") for name in traced.state]
        report = report_of(partition, error, axes is not None, remarks)
        return Variant(steps, traced.outputs, traced.results, traced.mutated, state, report)

    def _tolerance(self, traced: Trace) -> float | None:
        # what rounds to integers may round to either neighbor
        rounds = any("quantize" in str(n.target) for n in traced.graph.graph.nodes)
        default = None if rounds else TOLERANCE.get(self.precision)
        return default if self.given_tolerance is None else self.given_tolerance

    def _why_not(self, node: Node) -> str | None:
        name = node.target._schema.name.split("::")[1]  # type: ignore[union-attr]
        if name in self.eager or text_of(node) in self.eager:
            return "as was asked for"
        return supports(node)

    def _steps(self, traced: Trace, partition: Partition, symbol: Any) -> Steps:
        programs: list[tuple[_kiln.Program, Sequence[str]]] = []

        def compiled(part: Part, precision: str | None) -> tuple[Any, Sequence[int], Sequence[int]]:
            made = lower(PartGraph(traced.graph, part, symbol))  # type: ignore[arg-type]
            programs.append((made.program, made.inputs))
            exe = kiln.compile(made.program, self.target, precision=precision, **self.options)
            names = [f"input_{i}" for i in range(len(part.inputs))]
            ports = [p.name for p in exe.outputs]
            return exe, [names.index(p.name) for p in exe.inputs], [ports.index(name) for name in made.outputs]

        if self.precision != "int8":
            return make_steps(traced.graph, partition.parts, lambda p: compiled(p, self.precision), self.target)
        steps = make_steps(traced.graph, partition.parts, lambda p: compiled(p, None), self.target)
        self._quantize(steps, programs, traced)
        return steps

    def _quantize(self, steps: Steps, programs: Sequence[tuple[_kiln.Program, Sequence[str]]], traced: Trace) -> None:
        """Puts programs in int8 in place of those in f32, with the ranges of what samples make of their inputs."""
        own = [s for s in steps.steps if isinstance(s, KilnStep)]
        seen: list[list[dict[str, torch.Tensor]]] = [[] for _ in own]
        for sample in self.samples if self.samples is not None else [None]:
            given = list(traced.given)
            if sample is not None:
                args = (sample,) if isinstance(sample, torch.Tensor) else tuple(sample)
                found = [x for x in tree_flatten(args)[0] if isinstance(x, torch.Tensor)]
                given[: len(found)] = found
            values: list[Any] = [x.clone() for x in given] + [None] * (steps.slots - len(given))
            for slot, tensor in steps.constants.items():
                values[slot] = tensor
            for step in steps.steps:
                if isinstance(step, KilnStep):
                    names = [p.name for p in step.exe.inputs]
                    seen[own.index(step)].append({n: values[i].contiguous() for n, i in zip(names, step.inputs)})
                step.run(values, 0)
        for step, (program, _), samples in zip(own, programs, seen):
            quantized = kiln.quantize(program, "int8", samples=samples, target=self.target)
            step.exe = kiln.compile(quantized, self.target, **self.options)
