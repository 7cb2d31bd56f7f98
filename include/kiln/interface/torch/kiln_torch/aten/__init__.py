"""PyTorch's operators in kiln's ops: one file for each family, which register themselves in the table."""

from __future__ import annotations

from . import activation, compare, create, index, linear, nn, pointwise, reduce, shape
from .table import Entry, lowers, name_of, table

__all__ = [
    "Entry",
    "activation",
    "compare",
    "create",
    "index",
    "linear",
    "lowers",
    "name_of",
    "nn",
    "pointwise",
    "reduce",
    "shape",
    "table",
]
