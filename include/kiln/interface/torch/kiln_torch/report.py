"""What became of a module: its parts, and how near it comes to PyTorch."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import NamedTuple

import torch

from .. import _kiln
from .partition import Partition, text_of


class AccuracyError(_kiln.Error):
    """A compiled module that is further from PyTorch's results than the tolerance."""


class PartReport(NamedTuple):
    """Operators that run together, how often each: by kiln in one program, or by PyTorch."""

    by: str  # "kiln" or "torch"
    operators: dict[str, int]


class Report(NamedTuple):
    """What compilation did. `error` is the greatest difference from PyTorch's results for the example, relative to the
    greatest element of each; None where it was not measured. `reasons` say why operators are PyTorch's."""

    parts: tuple[PartReport, ...]
    reasons: dict[str, str]
    error: float | None
    dynamic_batch: bool
    remarks: tuple[str, ...]

    @property
    def programs(self) -> int:
        """The number of kiln's programs."""
        return sum(p.by == "kiln" for p in self.parts)

    def __str__(self) -> str:
        lines = []
        for i, part in enumerate(self.parts):
            named = ", ".join(f"{n} {name}" if n > 1 else name for name, n in part.operators.items())
            lines.append(f"part {i} by {part.by}: {named}")
        lines += [f"{name} is PyTorch's: {why}" for name, why in self.reasons.items()]
        if self.error is not None:
            lines.append(f"greatest error beside PyTorch: {self.error:.2g} of the greatest element")
        return "\n".join([*lines, *self.remarks])


def report_of(partition: Partition, error: float | None, dynamic_batch: bool, remarks: Sequence[str]) -> Report:
    """The report of a graph's parts."""
    parts = tuple(PartReport("kiln" if p.compiled else "torch", dict(p.operators())) for p in partition.parts)
    reasons: dict[str, str] = {}
    for node, why in partition.reasons.items():
        if node.target is not operator.getitem:
            reasons.setdefault(text_of(node), why)
    return Report(parts, reasons, error, dynamic_batch, tuple(remarks))


def error_of(found: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor]) -> float:
    """The greatest difference of two runs' results, relative to the greatest finite element of each result. Infinite
    where shapes, dtypes, infinities or what is not a number differ."""
    worst = 0.0
    for x, y in zip(found, wanted):
        if x.shape != y.shape or x.dtype != y.dtype:
            return float("inf")
        if x.numel() == 0:
            continue
        a, b = (t.detach().to(torch.complex128 if t.is_complex() else torch.float64) for t in (x, y))
        finite = torch.isfinite(b)
        if not torch.equal(finite, torch.isfinite(a)) or not torch.equal(a.isnan(), b.isnan()):
            return float("inf")
        if not torch.equal(a[b.isinf()], b[b.isinf()]):
            return float("inf")
        if not bool(finite.any()):
            continue
        a, b = a[finite], b[finite]
        far = float((a - b).abs().max())
        worst = max(worst, far / max(float(b.abs().max()), 1e-30) if far else 0.0)
    return worst
