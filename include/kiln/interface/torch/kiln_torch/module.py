"""The compiled module, and what makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

import torch
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from .. import _kiln
from .report import Report
from .steps import Steps
from .trace import Result, check_tensor


class Variant:
    """A module compiled for inputs of one structure, and for one shape of each or for any batch."""

    def __init__(
        self,
        steps: Steps,
        outputs: TreeSpec,
        results: Sequence[Any],
        mutated: Sequence[int],
        state: Sequence[str],
        report: Report,
    ) -> None:
        self.steps, self.outputs, self.report = steps, outputs, report
        self.results, self.mutated, self.state = tuple(results), tuple(mutated), tuple(state)
        tensors = [r.index for r in self.results if isinstance(r, Result)]
        self.count = len(tensors)
        self.single = len(self.results) == 1 and self.count == 1 and outputs.num_leaves == 1 and not outputs.children_specs

    def run(self, given: Sequence[torch.Tensor], n: int) -> Any:
        """The module's outputs; what it mutates among the inputs and the state is written there."""
        with torch.no_grad():
            values = self.steps.run(given, n)
            for i, new in zip(self.mutated, values[self.count :]):
                if given[i] is not new:
                    given[i].copy_(new)
        if self.single:
            return values[0]
        flat = [values[r.index] if isinstance(r, Result) else r for r in self.results]
        return tree_unflatten(flat, self.outputs)

    def __deepcopy__(self, memo: Any) -> Variant:
        return self  # nothing in it changes


class Key:
    """What tells inputs apart that need a Variant each, and the batch in them."""

    def __init__(self, axes: Mapping[int, int] | None) -> None:
        self.axes = axes

    def of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, list[torch.Tensor], int]:
        """The key of a call, its tensors, and its batch."""
        if not kwargs and all(isinstance(x, torch.Tensor) for x in args):
            flat: list[Any] = list(args)
            spec: Any = len(args)
        else:
            flat, structure = tree_flatten((tuple(args), dict(kwargs)))
            spec = repr(structure)
        tensors = [x for x in flat if isinstance(x, torch.Tensor)]
        parts: list[Any] = [spec]
        batch = 0
        index = 0
        for x in flat:
            if not isinstance(x, torch.Tensor):
                parts.append((type(x), _hashable(x)))
                continue
            if x.device.type != "cpu" or x.layout is not torch.strided:
                check_tensor(x, f"input {index}")
            shape: Any = x.shape
            if self.axes is not None and index in self.axes:
                axis = self.axes[index]
                if axis >= len(shape):
                    raise _kiln.ArgumentError(f"input {index} has the batch as dim {axis}: found shape {list(shape)}")
                if batch and shape[axis] != batch:
                    raise _kiln.ArgumentError(
                        f"all inputs have one batch: found {shape[axis]} in input {index}, and {batch} before it"
                    )
                batch = shape[axis]
                shape = (*shape[:axis], None, *shape[axis + 1 :])
            parts.append((shape, x.dtype))
            index += 1
        return tuple(parts), tensors, batch


def _hashable(x: Any) -> Any:
    try:
        hash(x)
    except TypeError:
        raise _kiln.ArgumentError(
            f"inputs are tensors, and lists, tuples and dicts of them, or values that can be compared: found {type(x).__name__}"
        ) from None
    return x


class CompiledModule(torch.nn.Module):
    """A module whose operators run in kiln's programs, and those that kiln has no form of in PyTorch: called as the
    module that it was made of. state_dict(), torch.save(), pickle and copy.deepcopy carry the programs; a module that
    was loaded needs no compilation, and has no module to compile other shapes of."""

    def __init__(self) -> None:
        super().__init__()
        self._variants: dict[Any, Variant] = {}
        self._key = Key(None)
        self._maker: Any = None

    @classmethod
    def _of(cls, maker: Any, axes: Mapping[int, int] | None) -> CompiledModule:
        made = cls()
        made._maker = maker
        made._key = Key(axes)
        made.train(False)
        return made

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        key, tensors, n = self._key.of(args, kwargs)
        variant = self._variants.get(key)
        if variant is None:
            variant = self._prepare(args, kwargs)
            key, tensors, n = self._key.of(args, kwargs)
        if variant.state:
            tensors += [self._buffers[name] for name in variant.state]  # type: ignore[misc]
        return variant.run(tensors, n)

    def _prepare(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Variant:
        if self._maker is None:
            found = ", ".join(f"{list(x.shape)} {x.dtype}" if isinstance(x, torch.Tensor) else repr(x)
                              for x in tree_flatten((tuple(args), dict(kwargs)))[0])
            raise _kiln.ArgumentError(
                "a module that was loaded runs what it was compiled for: call it with other shapes before it is saved, or "
                f"compile with dynamic_batch=True; found {found}"
            )
        variant, state = self._maker.make(self, args, kwargs)
        for name, tensor in state.items():
            if name not in self._buffers:
                self.register_buffer(name, tensor.detach().clone())
        key, _, _ = self._key.of(args, kwargs)
        return self._variants.setdefault(key, variant)

    def train(self, mode: bool = True) -> CompiledModule:
        """Programs are for inference: the mode of training is refused."""
        if mode:
            raise _kiln.ArgumentError("a compiled module is for inference: train the module that it was made of")
        return super().train(False)  # type: ignore[return-value]

    @property
    def report(self) -> Report:
        """The parts of what was compiled first, why some are PyTorch's, and the error that was measured."""
        if not self._variants:
            raise _kiln.ArgumentError("a module that holds a program: found an empty one")
        return next(iter(self._variants.values())).report

    @property
    def reports(self) -> tuple[Report, ...]:
        """A report for each structure and shape of inputs that was compiled."""
        return tuple(v.report for v in self._variants.values())

    def extra_repr(self) -> str:
        return "" if not self._variants else f"programs={self.report.programs}, compiled for {len(self._variants)} kinds of inputs"

    def get_extra_state(self) -> Any:
        return {"variants": dict(self._variants), "axes": self._key.axes}

    def set_extra_state(self, state: Any) -> None:
        self._variants = dict(state["variants"])
        self._key = Key(state["axes"])
        self._maker = None

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        for variant in state_dict[f"{prefix}_extra_state"]["variants"].values():
            for name in variant.state:
                if name not in self._buffers and prefix + name in state_dict:
                    self.register_buffer(name, torch.empty_like(state_dict[prefix + name]))
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_maker": None}

    def __deepcopy__(self, memo: Any) -> CompiledModule:
        made = type(self)._of(self._maker, self._key.axes)
        made._variants = dict(self._variants)
        for name, tensor in self._buffers.items():
            made.register_buffer(name, None if tensor is None else tensor.clone())
        return made
