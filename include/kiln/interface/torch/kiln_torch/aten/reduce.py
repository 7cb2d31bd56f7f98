"""Reductions, running sums and sorting."""

from __future__ import annotations

import math
from typing import Any

from ... import ops
from ..types import FLOATS, HALVES, Kind
from .create import dtype_or
from .table import lowers


def axes_of(x: Any, dims: Any) -> list[int]:
    """Dims as axes from 0; all of them where none is named."""
    rank = len(x.shape)
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return list(range(rank))
    named = dims if isinstance(dims, (list, tuple)) else [dims]
    return sorted({d % rank for d in named}) if rank else []


def reduced(op: Any, x: Any, dims: Any, keepdim: bool) -> Any:
    """A reduction over dims, which keep extent 1 or go; a tensor of rank 0 is its own."""
    axes = axes_of(x, dims)
    if not axes:
        return op(x.reshape([1]), axes=[0]).reshape([])
    y = op(x, axes=axes)
    return y if keepdim else y.squeeze(axes)


def _summed_dtype(x: Any, dtype: Any) -> str:
    return dtype_or(dtype, x.dtype if x.dtype in FLOATS else "i64")


@lowers("sum", "sum.dim_IntList")
def total(c: Any, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    return reduced(ops.reduce_sum, c.convert(x, _summed_dtype(x, dtype)), dim, keepdim)


@lowers("nansum")
def nansum(c: Any, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    if x.dtype in FLOATS:
        x = ops.where(ops.is_nan(x), c.constant(0, x.dtype), x)
    return total(c, x, dim, keepdim, dtype=dtype)


@lowers("mean", "mean.dim")
def mean(c: Any, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    return reduced(ops.reduce_mean, c.convert(x, dtype_or(dtype, x.dtype)), dim, keepdim)


@lowers("prod", "prod.dim_int")
def product(c: Any, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    return reduced(ops.reduce_prod, c.convert(x, _summed_dtype(x, dtype)), dim, keepdim)


def _extreme(c: Any, op: Any, x: Any, dims: Any, keepdim: bool) -> Any:
    if x.dtype == "bool":
        return c.convert(reduced(op, c.convert(x, "u8"), dims, keepdim), "bool")
    return reduced(op, x, dims, keepdim)


@lowers("amax", "max")
def amax(c: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return _extreme(c, ops.reduce_max, x, dim, keepdim)


@lowers("amin", "min")
def amin(c: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return _extreme(c, ops.reduce_min, x, dim, keepdim)


@lowers("aminmax")
def aminmax(c: Any, x: Any, *, dim: Any = None, keepdim: bool = False) -> Any:
    return amin(c, x, dim, keepdim), amax(c, x, dim, keepdim)


def _index_of(c: Any, op: Any, x: Any, dim: Any, keepdim: bool) -> Any:
    if x.dtype == "bool":
        x = c.convert(x, "u8")
    if dim is None or not x.shape:
        flat = op(x.reshape([math.prod(x.shape)]), axis=0)
        return flat.reshape([1] * len(x.shape) if keepdim else [])
    axis = dim % len(x.shape)
    y = op(x, axis=axis)
    return y if keepdim else y.squeeze([axis])


@lowers("argmax")
def argmax(c: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return _index_of(c, ops.arg_max, x, dim, keepdim)


@lowers("argmin")
def argmin(c: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return _index_of(c, ops.arg_min, x, dim, keepdim)


@lowers("max.dim")
def max_along(c: Any, x: Any, dim: int, keepdim: bool = False) -> Any:
    return amax(c, x, dim, keepdim), argmax(c, x, dim, keepdim) if c.reads(1) else None


@lowers("min.dim")
def min_along(c: Any, x: Any, dim: int, keepdim: bool = False) -> Any:
    return amin(c, x, dim, keepdim), argmin(c, x, dim, keepdim) if c.reads(1) else None


def _of_bools(c: Any, op: Any, x: Any, dims: Any, keepdim: bool) -> Any:
    made = reduced(op, c.convert(x, "bool"), dims, keepdim)
    return c.convert(made, "u8") if x.dtype == "u8" else made


@lowers("any", "any.dim", "any.dims")
def any_of(c: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return _of_bools(c, ops.reduce_any, x, dim, keepdim)


@lowers("all", "all.dim", "all.dims")
def all_of(c: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return _of_bools(c, ops.reduce_all, x, dim, keepdim)


@lowers("count_nonzero", "count_nonzero.dim_IntList")
def count_nonzero(c: Any, x: Any, dim: Any = None) -> Any:
    return reduced(ops.reduce_sum, c.convert(c.convert(x, "bool"), "i64"), dim, False)


def variance_of(c: Any, x: Any, dims: Any, correction: Any, keepdim: bool, root: bool) -> tuple[Any, Any]:
    """The variance, or its root, and the mean."""
    axes, correction = axes_of(x, dims), 1 if correction is None else correction
    wide = c.convert(x, "f32") if x.dtype in HALVES else x
    if not axes:
        wide, axes = wide.reshape([1]), [0]
        keepdim = False
    middle = ops.reduce_mean(wide, axes=axes)
    apart = ops.sub(wide, middle)
    squares = ops.reduce_sum(ops.mul(apart, apart), axes=axes)
    count = math.prod([wide.shape[a] for a in axes])
    # a divisor of 0 gives NaN or infinity, as PyTorch's
    variance = ops.div(squares, c.constant(max(count - correction, 0), wide.dtype))
    made = (ops.sqrt(variance) if root else variance, middle)
    return tuple(c.convert(v if keepdim else v.squeeze(axes), x.dtype) for v in made)  # type: ignore[return-value]


def _deviation(name: str, root: bool) -> None:
    @lowers(f"{name}.correction")
    def by_correction(
        c: Any, x: Any, dim: Any = None, *, correction: Any = None, unbiased: Any = None, keepdim: bool = False
    ) -> Any:
        return variance_of(c, x, dim, correction, keepdim, root)[0]

    @lowers(name)
    def of_all(c: Any, x: Any, unbiased: bool = True) -> Any:
        return variance_of(c, x, None, int(unbiased), False, root)[0]

    @lowers(f"{name}.dim")
    def along(c: Any, x: Any, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Any:
        return variance_of(c, x, dim, int(unbiased), keepdim, root)[0]

    @lowers(f"{name}_mean.correction")
    def with_mean(c: Any, x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
        return variance_of(c, x, dim, correction, keepdim, root)


_deviation("std", True)
_deviation("var", False)


def norm_of(c: Any, x: Any, order: Any, dims: Any, keepdim: bool) -> Any:
    """The vector norm of an order along dims."""
    if order == 2:
        return reduced(ops.reduce_l2, x, dims, keepdim)
    if order == 1:
        return reduced(ops.reduce_l1, x, dims, keepdim)
    size = ops.abs(x)
    if order in (math.inf, -math.inf):
        return reduced(ops.reduce_max if order > 0 else ops.reduce_min, size, dims, keepdim)
    if order == 0:
        return reduced(ops.reduce_sum, c.convert(c.convert(x, "bool"), x.dtype), dims, keepdim)
    wide = c.convert(size, "f32") if x.dtype in HALVES else size
    raised = ops.pow(wide, c.constant(order, wide.dtype))
    made = ops.pow(reduced(ops.reduce_sum, raised, dims, keepdim), c.constant(1 / order, wide.dtype))
    return c.convert(made, x.dtype)


@lowers("linalg_vector_norm")
def vector_norm(
    c: Any, x: Any, order: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:  # fmt: skip
    return norm_of(c, c.convert(x, c.dtype), order, dim, keepdim)


@lowers("norm.Scalar", "norm.ScalarOpt_dim")
def norm(c: Any, x: Any, order: Any = 2, dim: Any = None, keepdim: bool = False) -> Any:
    return norm_of(c, x, 2 if order is None else order, dim, keepdim)


@lowers("norm.ScalarOpt_dim_dtype", "norm.ScalarOpt_dtype")
def norm_as(
    c: Any, x: Any, order: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:  # fmt: skip
    return norm_of(c, c.convert(x, c.dtype), 2 if order is None else order, dim, keepdim)


@lowers("logsumexp")
def logsumexp(c: Any, x: Any, dim: Any, keepdim: bool = False) -> Any:
    (x,) = c.promote(x, kind=Kind.INT_TO_FLOAT)
    axes = axes_of(x, dim)
    if not axes:
        return x
    greatest = ops.reduce_max(x, axes=axes)
    finite = ops.less(ops.abs(greatest), c.constant(math.inf, x.dtype))
    shift = ops.where(finite, greatest, c.constant(0, x.dtype))
    made = ops.add(ops.log(ops.reduce_sum(ops.exp(ops.sub(x, shift)), axes=axes)), shift)
    return made if keepdim else made.squeeze(axes)


def _running(name: str) -> None:
    function = getattr(ops, name)

    @lowers(name)
    def lower(c: Any, x: Any, dim: int, *, dtype: Any = None) -> Any:
        x = c.convert(x, _summed_dtype(x, dtype))
        return function(x, axis=dim % len(x.shape)) if x.shape else x


_running("cumsum")
_running("cumprod")


def _ordered(c: Any, x: Any, count: Any, dim: int, largest: bool) -> tuple[Any, Any]:
    """The first elements along a dim in order, and their indices."""
    flags, scalar = x.dtype == "bool", not x.shape
    if flags:
        x = c.convert(x, "u8")
    if scalar:
        x, dim = x.reshape([1]), 0
    values = ops.topk(x, k=count, axis=dim % len(x.shape), largest=largest)
    made = values, values.result(1)
    if scalar:
        made = tuple(v.reshape([]) for v in made)  # type: ignore[assignment]
    return c.convert(made[0], "bool") if flags else made[0], made[1]


@lowers("topk")
def topk(c: Any, x: Any, k: Any, dim: int = -1, largest: bool = True, ordered: bool = True) -> Any:
    return _ordered(c, x, k, dim, largest)


@lowers("sort")
def sort(c: Any, x: Any, dim: int = -1, descending: bool = False) -> Any:
    return _ordered(c, x, x.shape[dim] if x.shape else 1, dim, descending)


@lowers("sort.stable")
def sort_stable(c: Any, x: Any, *, stable: Any = None, dim: int = -1, descending: bool = False) -> Any:
    return sort(c, x, dim, descending)


@lowers("argsort")
def argsort(c: Any, x: Any, dim: int = -1, descending: bool = False) -> Any:
    return sort(c, x, dim, descending)[1]
