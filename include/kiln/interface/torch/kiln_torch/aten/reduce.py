"""Reductions."""

from __future__ import annotations

from typing import Any

from .table import lowers


def axes_of(x: Any, dims: Any) -> list[int]:
    """Dims as axes from 0; all of them where none is named."""
    rank = len(x.shape)
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return list(range(rank))
    named = dims if isinstance(dims, (list, tuple)) else [dims]
    return sorted({d % rank for d in named}) if rank else []


def kept(y: Any, axes: list[int], keepdim: bool) -> Any:
    """A reduction's result, which has extent 1 along its axes, with or without them."""
    return y if keepdim or not axes else y.squeeze(axes)


@lowers("mean", "mean.dim")
def mean(c: Any, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    x = c.convert(x, c.dtype)
    axes = axes_of(x, dim)
    return kept(x.reduce_mean(axes), axes, keepdim) if axes else x
