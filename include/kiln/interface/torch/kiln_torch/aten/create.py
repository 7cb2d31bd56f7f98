"""Copies in other dtypes, and tensors of numbers."""

from __future__ import annotations

from typing import Any

import torch

from ... import _kiln, ops
from ..types import kiln_dtype, torch_dtype
from .table import lowers


def _is_strided(*args: Any, **how: Any) -> str | None:
    layout = how.get("layout")
    return f"it makes a tensor of the layout {layout}" if layout not in (None, torch.strided) else None


@lowers("detach", "alias", "clone", "contiguous", "lift", "lift_fresh", "lift_fresh_copy", "detach_copy", "alias_copy",
        "positive", "resolve_conj", "resolve_neg", "conj")  # fmt: skip
def identity(c: Any, x: Any, **how: Any) -> Any:
    return x


@lowers("_to_copy", check=_is_strided)
def to_copy(c: Any, x: Any, **how: Any) -> Any:
    return c.convert(x, c.dtype)


@lowers("to.dtype", "to.dtype_layout", "to.device", "to.other", "type_as", "real", check=_is_strided)
def to(c: Any, x: Any, *how: Any, **named: Any) -> Any:
    return c.convert(x, c.dtype)


@lowers("copy")
def copy(c: Any, x: Any, source: Any, non_blocking: bool = False) -> Any:
    return c.convert(source, x.dtype).broadcast_to(x.shape)


@lowers("fill.Scalar", "fill.Tensor")
def fill(c: Any, x: Any, value: Any) -> Any:
    return c.convert(value, x.dtype).broadcast_to(x.shape)


@lowers("full", check=_is_strided)
def full(c: Any, size: Any, value: Any, **how: Any) -> Any:
    return c.full(size, value, c.dtype)


@lowers("full_like", check=_is_strided)
def full_like(c: Any, x: Any, value: Any, **how: Any) -> Any:
    return c.full(x.shape, value, c.dtype)


@lowers("new_full", check=_is_strided)
def new_full(c: Any, x: Any, size: Any, value: Any, **how: Any) -> Any:
    return c.full(size, value, c.dtype)


@lowers("ones", check=_is_strided)
def ones(c: Any, size: Any, **how: Any) -> Any:
    return c.full(size, 1, c.dtype)


@lowers("ones_like", check=_is_strided)
def ones_like(c: Any, x: Any, **how: Any) -> Any:
    return c.full(x.shape, 1, c.dtype)


@lowers("new_ones", check=_is_strided)
def new_ones(c: Any, x: Any, size: Any, **how: Any) -> Any:
    return c.full(size, 1, c.dtype)


# What is uninitialized may be zero.
@lowers("zeros", "empty.memory_format", "empty_strided", check=_is_strided)
def zeros(c: Any, size: Any, *stride: Any, **how: Any) -> Any:
    return c.full(size, 0, c.dtype)


@lowers("zeros_like", "empty_like", check=_is_strided)
def zeros_like(c: Any, x: Any, **how: Any) -> Any:
    return c.full(x.shape, 0, c.dtype)


@lowers("new_zeros", "new_empty", "new_empty_strided", check=_is_strided)
def new_zeros(c: Any, x: Any, size: Any, *stride: Any, **how: Any) -> Any:
    return c.full(size, 0, c.dtype)


@lowers("scalar_tensor", check=_is_strided)
def scalar_tensor(c: Any, value: Any, **how: Any) -> Any:
    return c.constant(value, c.dtype)


@lowers("eye", "eye.m", check=_is_strided)
def eye(c: Any, rows: int, columns: int | None = None, **how: Any) -> Any:
    return c.constant(torch.eye(rows, rows if columns is None else columns), c.dtype)


@lowers("linspace", check=_is_strided)
def linspace(c: Any, start: Any, end: Any, steps: Any = 100, **how: Any) -> Any:
    return c.constant(torch.linspace(start, end, steps, dtype=torch_dtype(c.dtype)))


@lowers("arange", check=_is_strided)
def arange(c: Any, end: Any, **how: Any) -> Any:
    return arange_by(c, 0, end)


@lowers("arange.start", check=_is_strided)
def arange_from(c: Any, start: Any, end: Any, **how: Any) -> Any:
    return arange_by(c, start, end)


@lowers("arange.start_step", check=_is_strided)
def arange_by(c: Any, start: Any, end: Any, step: Any = 1, **how: Any) -> Any:
    if not isinstance(start, _kiln.Dim) and not isinstance(end, _kiln.Dim):
        return c.constant(torch.arange(start, end, step, dtype=torch_dtype(c.dtype)))
    if step != 1:
        c.refuse("a range of a symbolic extent has steps of 1")
    ones_of = c.constant(1, "i64").broadcast_to([end - start])
    index = ops.cumsum(ones_of, axis=0, exclusive=True)
    if isinstance(start, _kiln.Dim):
        c.refuse("a range starts at a number")
    return c.convert(ops.add(index, c.constant(start, "i64")), c.dtype)


@lowers("one_hot", check=lambda x, classes: "the number of classes is found by a run" if classes < 1 else None)
def one_hot(c: Any, x: Any, classes: int) -> Any:
    return ops.one_hot(x, c.constant([0, 1], "i64"), depth=classes, axis=-1)


def dtype_or(dtype: Any, otherwise: str) -> str:
    """kiln's name of a dtype that is given, or another one."""
    return otherwise if dtype is None else str(kiln_dtype(dtype))
