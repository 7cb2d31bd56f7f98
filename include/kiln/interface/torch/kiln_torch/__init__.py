"""PyTorch's modules compiled by kiln: `fast = kiln.torch.compile(module, example)`, then `fast(x)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

try:
    import torch
except ImportError as why:
    raise ImportError(f"kiln.torch needs PyTorch (Debian's package python3-torch): {why}") from why

from .compiling import batch_axes, maker_of
from .dynamo import backend, register
from .lower import LoweringError
from .module import CompiledModule
from .record import TraceError
from .report import AccuracyError, PartReport, Report
from .script import module_of

__all__ = ["AccuracyError", "CompiledModule", "LoweringError", "PartReport", "Report", "TraceError", "backend", "compile"]


def compile(
    module: Any,
    example_inputs: Any,
    example_kwargs: Mapping[str, Any] | None = None,
    *,
    precision: str | None = None,
    dynamic_batch: bool | int | Mapping[int, int] = False,
    min_size: int = 3,
    check: bool = True,
    tolerance: float | None = None,
    samples: Any = None,
    eager: Sequence[str] = (),
    target: str = "cpu",
    **options: Any,
) -> CompiledModule:
    """Compiles a module, a scripted or exported one, a file of either (.pt, .pt2) or a function of tensors for inference.

    `example_inputs` is a tensor or a tuple of the positional inputs, `example_kwargs` those by keyword. Operators that
    kiln has no form of stay PyTorch's, between kiln's programs; so do the operators named in `eager`, and parts of fewer
    than `min_size` operators beside others. What is compiled is the module in its mode of evaluation; the module stays
    as it is. Inputs of other shapes are compiled when they come; with `dynamic_batch` one program is for every batch,
    which is dim 0 (or the given one; or by index of the input) of every input that has the first one's extent there.

    `precision` is "fp32", "fp16", "bf16" or "int8"; `samples` are inputs (tensors or tuples) that int8 is calibrated
    with, the example otherwise. `check` compares the results for the example with PyTorch's: an error beyond the
    `tolerance` (1e-4 in fp32, 2e-2 in fp16 and 1e-1 in bf16, relative to the greatest element of a result; in int8 none)
    is an AccuracyError. Every other keyword is an option of kiln.compile(), such as `threads=2`."""
    args = (example_inputs,) if isinstance(example_inputs, torch.Tensor) else tuple(example_inputs)
    kwargs = dict(sorted((example_kwargs or {}).items()))
    maker = maker_of(
        module_of(module),
        precision=precision,
        min_size=min_size,
        check=check,
        tolerance=tolerance,
        target=target,
        samples=samples,
        eager=eager,
        **options,
    )
    made = CompiledModule._of(maker, batch_axes(args, kwargs, dynamic_batch))
    made._prepare(args, kwargs)
    return made


register("kiln", backend)
