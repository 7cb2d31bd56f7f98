"""kiln as a backend of torch.compile (PyTorch 2)."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from .. import _kiln
from .compiling import batch_axes, maker_of
from .module import CompiledModule


class _Bound(torch.nn.Module):
    """A graph with some of its inputs bound: the parameters, which PyTorch 2.5 and later hand to it with every call."""

    def __init__(self, graph: Any, bound: Mapping[int, torch.Tensor]) -> None:
        super().__init__()
        self.graph = graph
        self.places = tuple(bound)
        for i, x in bound.items():
            self.register_buffer(f"bound_{i}", x)

    def forward(self, *rest: Any) -> Any:
        free = iter(rest)
        count = len(rest) + len(self.places)
        return self.graph(*[getattr(self, f"bound_{i}") if i in self.places else next(free) for i in range(count)])


def backend(graph: Any, example_inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """What torch.compile calls with a GraphModule: a function of its inputs, which compiles when it is first called,
    since the examples may have no data. Options are those of kiln.torch.compile() but its examples."""
    how = dict(options.pop("options", None) or {})
    how.update(options)
    dynamic_batch = how.pop("dynamic_batch", False)
    maker_of(graph, **how)  # wrong options are told at once
    compiled: dict[tuple[tuple[int, int], ...], CompiledModule] = {}
    parameters: list[Any] = []  # an id is unique as long as its tensor lives

    def run(*inputs: Any) -> Any:
        if torch.is_grad_enabled() and getattr(graph, "training", False):
            wanted = [x for x in (*inputs, *graph.parameters()) if isinstance(x, torch.Tensor) and x.requires_grad]
            if wanted:
                raise _kiln.ArgumentError(
                    "kiln's programs give no gradients: call the module in the mode of evaluation or under torch.no_grad()"
                )
        bound = {i: x for i, x in enumerate(inputs) if isinstance(x, torch.nn.Parameter)}
        key = tuple((i, id(x)) for i, x in bound.items())
        if key not in compiled:
            parameters.append(bound)
            module = _Bound(graph, bound) if bound else graph
            free = [x for i, x in enumerate(inputs) if i not in bound]
            compiled[key] = CompiledModule._of(maker_of(module, **how), batch_axes(free, {}, dynamic_batch))
        return compiled[key](*[x for i, x in enumerate(inputs) if i not in bound])

    return run


def register(name: str, function: Callable[..., Any]) -> bool:
    """Lets torch.compile(backend=name) call a function, where this PyTorch has it; says whether it has."""
    if importlib.util.find_spec("torch._dynamo") is None:
        return False
    dynamo = importlib.import_module("torch._dynamo")
    registry = dynamo.register_backend if hasattr(dynamo, "register_backend") else dynamo.backends.registry.register_backend
    registry(function, name=name)
    return True
