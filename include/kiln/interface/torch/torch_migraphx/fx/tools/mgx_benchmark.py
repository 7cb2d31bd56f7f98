"""How long a lowered module takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import torch

import kiln

from ..mgx_module import SplitModule


class MGXBenchmarkResults(NamedTuple):
    """Medians in seconds: of the module, and of each of its parts within the module's runs."""

    module: SplitModule
    batch_size: int
    full_mod: float
    submods: dict[str, float]

    def print_tabular(self) -> None:
        """Prints a table."""
        total = sum(self.submods.values()) or 1.0
        print(f"{'part':<24}{'ms':>10}{'per second':>12}{'share':>8}")
        print(f"{'all':<24}{self.full_mod * 1e3:>10.3f}{self.batch_size / self.full_mod:>12.1f}{'':>8}")
        for name, seconds in self.submods.items():
            print(f"{name:<24}{seconds * 1e3:>10.3f}{'':>12}{seconds / total:>8.1%}")


def _batch_of(inputs: Sequence[Any]) -> int:
    sizes = {x.shape[0] for x in inputs if isinstance(x, torch.Tensor) and x.dim()}
    if len(sizes) != 1:
        raise kiln.ArgumentError(f"all inputs have one batch as dim 0, or batch_size is given: found {sorted(sizes)}")
    return sizes.pop()


def benchmark(
    model: SplitModule,
    sample_inputs: Sequence[Any],
    n: int = 100,
    batch_size: Optional[int] = None,
    benchmark_submods: bool = True,
    print_results: bool = True,
) -> MGXBenchmarkResults:
    """Times n runs of a lowered module, and each of its parts in n more."""
    batch = batch_size if batch_size is not None else _batch_of(sample_inputs)
    model(*sample_inputs)

    def timed(f: Any) -> float:
        begin = time.perf_counter()
        f()
        return time.perf_counter() - begin

    full = statistics.median(timed(lambda: model(*sample_inputs)) for _ in range(n))
    submods: dict[str, float] = {}
    if benchmark_submods:
        names, times = list(model.parts()), []
        for _ in range(n):
            times.append(model.times_of_parts(*sample_inputs))
        submods = {name: statistics.median(t[i] for t in times) for i, name in enumerate(names)}
    results = MGXBenchmarkResults(model, batch, full, submods)
    if print_results:
        results.print_tabular()
    return results
