"""PyTorch's operators in kiln's ops: one file for each family, which register themselves in the table."""

from __future__ import annotations

from . import (
    activation,
    attention,
    compare,
    convolution,
    create,
    einsum,
    index,
    linear,
    normalize,
    pointwise,
    pool,
    quantize,
    recurrent,
    reduce,
    resize,
    shape,
)
from .table import Entry, lowers, name_of, table

__all__ = [
    "Entry",
    "activation",
    "attention",
    "compare",
    "convolution",
    "create",
    "einsum",
    "index",
    "linear",
    "lowers",
    "name_of",
    "normalize",
    "pointwise",
    "pool",
    "quantize",
    "recurrent",
    "reduce",
    "resize",
    "shape",
    "table",
]
