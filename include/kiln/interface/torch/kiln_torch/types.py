"""Dtypes and type promotion: PyTorch's rules for kiln's values."""

from __future__ import annotations

from typing import Any, Union

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as Kind
from torch._prims_common import elementwise_dtypes

from .. import _kiln

Number = Union[bool, int, float]

_KILN = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "bool",
}
_TORCH = {name: dtype for dtype, name in _KILN.items()}

__all__ = ["FLOATS", "HALVES", "Kind", "Number", "exact_in", "kiln_dtype", "promoted", "stand_in", "torch_dtype"]

FLOATS = ("f64", "f32", "f16", "bf16")
HALVES = ("f16", "bf16")


def kiln_dtype(dtype: torch.dtype) -> str | None:
    """kiln's name of a dtype; None for one that kiln has no values of, such as complex64."""
    return _KILN.get(dtype)


def torch_dtype(name: str) -> torch.dtype:
    """PyTorch's dtype of kiln's name."""
    return _TORCH[name]


def stand_in(value: Any) -> Any:
    """What type promotion looks at: a tensor without data of the value's dtype and dimensionality, or the number."""
    if isinstance(value, _kiln.Value):
        return torch.empty((1,) * min(len(value.shape), 1), dtype=_TORCH[value.dtype], device="meta")
    return value


def promoted(*values: Any, kind: Kind = Kind.DEFAULT) -> str:
    """The dtype that values and numbers are computed in."""
    return _KILN[elementwise_dtypes(*map(stand_in, values), type_promotion_kind=kind)[1]]


def exact_in(number: Number, dtype: str) -> bool:
    """Whether a dtype has the number."""
    held = torch.tensor(number, dtype=torch.float64 if isinstance(number, float) else None)
    return bool(torch.isnan(held) or held.to(_TORCH[dtype]).to(held.dtype) == held)
