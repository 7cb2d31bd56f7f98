"""The compiled module, and what makes it."""

from __future__ import annotations

import itertools
import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import TreeSpec

from .. import _kiln
from .report import Report
from .steps import Steps
from .trace import Result, check_tensor
from .trees import tree_flatten, tree_unflatten


MOST = 64  # kinds of inputs that a module keeps programs for
_uses = itertools.count()
_making = threading.RLock()  # a run is recorded, and what it gives is compiled, by one thread at a time


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
        self.used = 0  # when it was called last
        self.single = len(self.results) == 1 and self.count == 1 and outputs.num_leaves == 1 and not outputs.children_specs

    def run(self, given: Sequence[torch.Tensor], n: int) -> Any:
        """The module's outputs; what it mutates among the inputs and the state is written there."""
        if self.mutated:
            _check_apart(given, self.mutated)
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


def _check_apart(given: Sequence[torch.Tensor], mutated: Sequence[int]) -> None:
    """Raises an error where a tensor that is written into has elements of another one: a trace has them apart."""
    spans = []
    for x in given:
        last = sum((n - 1) * step for n, step in zip(x.shape, x.stride()))
        spans.append((x.data_ptr(), x.data_ptr() + (last + 1) * x.element_size() if x.numel() else x.data_ptr()))
    for i in mutated:
        for j, (begin, end) in enumerate(spans):
            if j != i and begin < spans[i][1] and spans[i][0] < end:
                raise _kiln.ArgumentError(
                    f"an input that the module mutates shares no elements with others: found inputs {i} and {j}"
                )


class Key:
    """What tells inputs apart that need a Variant each, and the batch in them."""

    def __init__(self, axes: Mapping[int, int] | None, least: Mapping[Any, float] | None = None) -> None:
        self.axes = axes
        # by key without the batch, the least batch that its program is for, 1 if none is said: infinite where each shape has
        # its own
        self.least = dict(least or {})

    def of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, list[torch.Tensor], int]:
        """The key of a call, its tensors, and its batch, 0 where the key is of that batch alone."""
        if not kwargs and all(isinstance(x, torch.Tensor) for x in args):
            flat: list[Any] = list(args)
            spec: Any = len(args)
        else:
            flat, structure = tree_flatten((tuple(args), dict(kwargs)))
            spec = repr(structure)
        tensors = [x for x in flat if isinstance(x, torch.Tensor)]
        parts: list[Any] = [spec]
        whole: list[Any] = [spec]
        batch: int | None = None
        index = 0
        for x in flat:
            if not isinstance(x, torch.Tensor):
                parts.append((type(x), _hashable(x)))
                whole.append(parts[-1])
                continue
            if x.device.type != "cpu" or x.layout is not torch.strided:
                check_tensor(x, f"input {index}")
            shape: Any = x.shape
            whole.append((shape, x.dtype))
            if self.axes is not None and index in self.axes:
                axis = self.axes[index]
                if axis >= len(shape):
                    raise _kiln.ArgumentError(f"input {index} has the batch as dim {axis}: found shape {list(shape)}")
                if batch is not None and shape[axis] != batch:
                    raise _kiln.ArgumentError(
                        f"all inputs have one batch: found {shape[axis]} in input {index}, and {batch} before it"
                    )
                batch = shape[axis]
                shape = (*shape[:axis], None, *shape[axis + 1 :])
            parts.append((shape, x.dtype))
            index += 1
        key = tuple(parts)
        if batch is None or batch < self.least.get(key, 1):
            return tuple(whole), tensors, 0
        return key, tensors, batch


def _hashable(x: Any) -> Any:
    try:
        hash(x)
    except TypeError:
        raise _kiln.ArgumentError(
            f"inputs are tensors, and lists, tuples and dicts of them, or values that can be compared: found {type(x).__name__}"
        ) from None
    return x.hex() if isinstance(x, float) else x  # NaN is itself, and -0.0 is not 0.0


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
        kwargs = dict(sorted(kwargs.items()))
        key, tensors, n = self._key.of(args, kwargs)
        variant = self._variants.get(key)
        if variant is None:
            variant = self._prepare(args, kwargs)
            key, tensors, n = self._key.of(args, kwargs)
        variant.used = next(_uses)
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
        with _making:
            key, _, _ = self._key.of(args, kwargs)
            if key in self._variants:  # another thread was first
                return self._variants[key]
            variant, state = self._maker.make(self._key, args, kwargs)
            for name, tensor in state.items():
                if name not in self._buffers:
                    self.register_buffer(name, tensor.detach().clone())
            if len(self._variants) >= MOST:  # the first one is what the report is of
                del self._variants[min(list(self._variants)[1:], key=lambda k: self._variants[k].used)]
            variant.used = next(_uses)
            key, _, _ = self._key.of(args, kwargs)
            self._variants[key] = variant
            return variant  # type: ignore[no-any-return]

    def train(self, mode: bool = True) -> CompiledModule:
        """Programs are for inference: the mode stays that of evaluation, with a warning where it is to be another."""
        if mode:
            warnings.warn("a compiled module is for inference: train the module that it was made of", stacklevel=2)
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
        return {"variants": dict(self._variants), "axes": self._key.axes, "least": dict(self._key.least)}

    def set_extra_state(self, state: Any) -> None:
        self._variants = dict(state["variants"])
        self._key = Key(state["axes"], state["least"])
        self._maker = None

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        held = state_dict.get(f"{prefix}_extra_state", {"variants": {}})  # a missing key is told by PyTorch
        for variant in held["variants"].values():
            for name in variant.state:
                if name not in self._buffers and prefix + name in state_dict:
                    self.register_buffer(name, torch.empty_like(state_dict[prefix + name]))
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_maker": None}

    def __deepcopy__(self, memo: Any) -> CompiledModule:
        made = type(self)._of(self._maker, self._key.axes)
        made._key = Key(self._key.axes, self._key.least)
        made._variants = dict(self._variants)
        for name, tensor in self._buffers.items():
            made.register_buffer(name, None if tensor is None else tensor.clone())
        return made
