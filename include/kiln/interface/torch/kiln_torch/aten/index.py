"""Elements picked and placed by tensors of indices."""

from __future__ import annotations

import math
from typing import Any

import torch

from ... import _kiln, ops
from ..types import FLOATS
from .shape import axis_of, bound, broadcast_lens, cut, joined
from .table import lowers


def _at_least_1(x: Any) -> Any:
    return x if x.shape else x.reshape([1])


@lowers("embedding")
def embedding(c: Any, weight: Any, indices: Any, *how: Any) -> Any:
    return weight.gather(indices, 0)


@lowers("index_select")
def index_select(c: Any, x: Any, dim: int, index: Any) -> Any:
    if not x.shape:
        return x
    return x.gather(_at_least_1(index), axis_of(x, dim))


@lowers("gather")
def gather(c: Any, x: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    if not x.shape or not index.shape:
        made = ops.gather_elements(_at_least_1(x), _at_least_1(c.convert(index, "i64")), axis=0)
        return made.reshape(index.shape)
    axis = axis_of(x, dim)
    for d, n in enumerate(index.shape):  # indices may cover a part of the other dims
        if d != axis and not n == x.shape[d]:
            x = cut(x, d, 0, n)
    return ops.gather_elements(x, c.convert(index, "i64"), axis=axis)


@lowers("take")
def take(c: Any, x: Any, index: Any) -> Any:
    return x.reshape([math.prod(x.shape)]).gather(index, 0)


def _flags(x: Any) -> bool:
    return x.dtype in (torch.bool, torch.uint8) if isinstance(x, torch.Tensor) else False


def _by_numbers(x: Any, indices: Any) -> str | None:
    return "the flags it selects by decide its result's shape" if any(_flags(i) for i in indices) else None


class _Picked:
    """x[indices]: the indexed axes in front and a list of positions, and where their dims stand in the result."""

    def __init__(self, c: Any, x: Any, indices: Any) -> None:
        rank = len(x.shape)
        self.axes = [d for d, i in enumerate(indices) if i is not None]
        given = [c.convert(i, "i64") for i in indices if i is not None]
        self.order = self.axes + [d for d in range(rank) if d not in self.axes]
        self.lens = broadcast_lens(*(i.shape for i in given))
        self.positions = joined([i.broadcast_to(self.lens).unsqueeze([len(self.lens)]) for i in given], len(self.lens))
        adjacent = self.axes == list(range(self.axes[0], self.axes[-1] + 1))
        self.at = self.axes[0] if adjacent else 0
        self.rest = rank - len(self.axes)

    def in_front(self, x: Any) -> Any:
        return x if self.order == sorted(self.order) else x.transpose(self.order)

    def back(self, x: Any) -> Any:
        return x if self.order == sorted(self.order) else x.transpose([self.order.index(d) for d in range(len(self.order))])

    def placed(self, y: Any) -> Any:
        """[lens..., rest...] with the indices' dims where PyTorch puts them."""
        n = len(self.lens)
        order = list(range(n, n + self.at)) + list(range(n)) + list(range(n + self.at, n + self.rest))
        return y if order == sorted(order) else y.transpose(order)

    def from_placed(self, y: Any) -> Any:
        """The inverse of placed()."""
        n, rank = len(self.lens), len(self.lens) + self.rest
        order = list(range(self.at, self.at + n)) + list(range(self.at)) + list(range(self.at + n, rank))
        return y if order == sorted(order) else y.transpose(order)

    def placed_lens(self, x: Any) -> list[Any]:
        rest = [x.shape[d] for d in self.order[len(self.axes) :]]
        return rest[: self.at] + self.lens + rest[self.at :]


@lowers("index.Tensor", "_unsafe_index.Tensor", check=_by_numbers)
def index(c: Any, x: Any, indices: Any) -> Any:
    named = [(d, i) for d, i in enumerate(indices) if i is not None]
    if not named:
        return x
    if len(named) == 1:
        return x.gather(c.convert(named[0][1], "i64"), named[0][0])
    p = _Picked(c, x, indices)
    return p.placed(ops.gather_nd(p.in_front(x), p.positions))


def _placeable(x: Any, indices: Any, values: Any, accumulate: bool = False, unsafe: bool = False) -> str | None:
    if not any(_flags(i) for i in indices):
        return None
    if len(indices) > 1 or accumulate or values.numel() != 1:
        return "the flags it selects by decide how many values it reads"
    return None


@lowers("index_put", "_unsafe_index_put", "_index_put_impl", check=_placeable)
def index_put(c: Any, x: Any, indices: Any, values: Any, accumulate: bool = False, unsafe: bool = False) -> Any:
    named = [i for i in indices if i is not None]
    if not named:
        return values.broadcast_to(x.shape)
    if named[0].dtype in ("bool", "u8"):
        mask = c.convert(named[0], "bool")
        mask = mask.reshape(list(mask.shape) + [1] * (len(x.shape) - len(mask.shape)))
        return ops.where(mask, values.reshape([]), x)
    p = _Picked(c, x, indices)
    updates = p.from_placed(values.broadcast_to(p.placed_lens(x)))
    made = _scattered(c, ops.scatter_nd, p.in_front(x), p.positions, updates, "add" if accumulate else "none")
    return p.back(made)


def _scattered(c: Any, op: Any, x: Any, index: Any, updates: Any, reduction: str, **how: Any) -> Any:
    """A scatter of any dtype: bools as bytes, whose sum is `or` and whose product is `and`."""
    if x.dtype != "bool" or reduction == "none":
        return op(x, index, updates, reduction=reduction, **how)
    mode = {"add": "max", "mul": "min"}.get(reduction, reduction)
    return c.convert(op(c.convert(x, "u8"), index, c.convert(updates, "u8"), reduction=mode, **how), "bool")


def _scatter(c: Any, x: Any, dim: int, index: Any, source: Any, reduction: str) -> Any:
    index = c.convert(index, "i64")
    if not isinstance(source, _kiln.Value):
        source = c.full(index.shape, source, x.dtype)
    scalar = not x.shape
    if scalar or not index.shape:
        x, index, source = _at_least_1(x), _at_least_1(index), _at_least_1(source)
    for d, n in enumerate(index.shape):  # what indices do not cover is not read
        if not n == source.shape[d]:
            source = cut(source, d, 0, n)
    made = _scattered(c, ops.scatter_elements, x, index, source, reduction, axis=axis_of(x, dim))
    return made.reshape([]) if scalar else made


_WORDS = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amin": "min", "amax": "max"}


@lowers("scatter.src", "scatter.value")
def scatter(c: Any, x: Any, dim: int, index: Any, source: Any) -> Any:
    return _scatter(c, x, dim, index, source, "none")


@lowers("scatter.reduce", "scatter.value_reduce")
def scatter_by(c: Any, x: Any, dim: int, index: Any, source: Any, *, reduce: str) -> Any:
    return _scatter(c, x, dim, index, source, _WORDS[reduce])


@lowers("scatter_add")
def scatter_add(c: Any, x: Any, dim: int, index: Any, source: Any) -> Any:
    return _scatter(c, x, dim, index, source, "add")


@lowers("scatter_reduce.two")
def scatter_reduce(
    c: Any, x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:  # fmt: skip
    mean = reduce == "mean"
    if not include_self:  # what an index names begins with the element that changes nothing
        x = _scatter(c, x, dim, index, _identity(c, x.dtype, reduce), "none")
    made = _scatter(c, x, dim, index, source, _WORDS["sum" if mean else reduce])
    if not mean:
        return made
    counts = _scatter(c, c.full(x.shape, int(include_self), x.dtype), dim, index, c.full(index.shape, 1, x.dtype), "add")
    counts = ops.max(counts, c.constant(1, x.dtype))
    if x.dtype in FLOATS:
        return ops.div(made, counts)
    return ops.div(ops.sub(made, ops.mod(made, counts)), counts)


def _identity(c: Any, dtype: str, reduce: str) -> Any:
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    low = reduce == "amax"
    if dtype in FLOATS:
        return -math.inf if low else math.inf
    if dtype == "bool":
        return not low
    limits = torch.iinfo(getattr(torch, {"u8": "uint8"}.get(dtype, dtype.replace("i", "int"))))
    return limits.min if low else limits.max


def _rows(c: Any, x: Any, dim: int, index: Any, source: Any, reduction: str) -> Any:
    """Slices along a dim that are replaced by, or combined with, the source's."""
    if not x.shape:
        index = _at_least_1(index).reshape([1, 1])
        made = _scattered(c, ops.scatter_nd, x.reshape([1]), index, source.reshape([1]), reduction)
        return made.reshape([])
    axis, rank = axis_of(x, dim), len(x.shape)
    order = [axis] + [d for d in range(rank) if d != axis]
    back = [order.index(d) for d in range(rank)]
    count = index.shape[0] if index.shape else 1
    rows = source.broadcast_to([count if d == axis else n for d, n in enumerate(x.shape)]).transpose(order)
    positions = c.convert(index, "i64").reshape([count, 1])
    return _scattered(c, ops.scatter_nd, x.transpose(order), positions, rows, reduction).transpose(back)


@lowers("index_copy")
def index_copy(c: Any, x: Any, dim: int, index: Any, source: Any) -> Any:
    return _rows(c, x, dim, index, source, "none")


@lowers("index_add")
def index_add(c: Any, x: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    return _rows(c, x, dim, index, source if alpha == 1 else c.scaled(source, alpha), "add")


@lowers("index_fill.int_Scalar", "index_fill.int_Tensor")
def index_fill(c: Any, x: Any, dim: int, index: Any, value: Any) -> Any:
    return _rows(c, x, dim, index, c.convert(value, x.dtype), "none")


def _inserted(c: Any, x: Any, source: Any, axis: int, start: Any, end: Any, step: int) -> Any:
    """x with x[..., start:end:step, ...] replaced."""
    source = c.convert(source, x.dtype)
    extent = x.shape[axis]
    if step == 1:
        parts = [cut(x, axis, 0, start), source, cut(x, axis, end, extent)]
        return joined([p for p in parts if not p.shape[axis] == 0] or [x], axis)
    at = torch.arange(extent)
    at[start:end:step] = extent + torch.arange(source.shape[axis])
    return ops.concat(x, source, axis=axis).gather(c.constant(at), axis)


@lowers("select_scatter")
def select_scatter(c: Any, x: Any, source: Any, dim: int, index: Any) -> Any:
    axis = axis_of(x, dim)
    at = index + x.shape[axis] if index < 0 else index
    lens = [n for d, n in enumerate(x.shape) if d != axis]
    return _inserted(c, x, source.broadcast_to(lens).unsqueeze([axis]), axis, at, at + 1, 1)


@lowers("slice_scatter")
def slice_scatter(
    c: Any, x: Any, source: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:  # fmt: skip
    axis = axis_of(x, dim)
    first, last = bound(start, x.shape[axis], 0), bound(end, x.shape[axis], x.shape[axis])
    count = max(0, -(-(last - first) // step))
    if isinstance(count, int) and count == 0:
        return x
    source = source.broadcast_to([count if d == axis else n for d, n in enumerate(x.shape)])
    return _inserted(c, x, source, axis, first, max(first, last), step)


@lowers("diagonal", "diagonal_copy")
def diagonal(c: Any, x: Any, offset: int = 0, first: int = 0, second: int = 1) -> Any:
    rows, columns = axis_of(x, first), axis_of(x, second)
    order = [d for d in range(len(x.shape)) if d not in (rows, columns)] + [rows, columns]
    lens = [x.shape[d] for d in order]
    at = torch.arange(lens[-2] * lens[-1]).reshape(lens[-2], lens[-1]).diagonal(offset)
    flat = x.transpose(order).reshape(lens[:-2] + [lens[-2] * lens[-1]])
    return flat.gather(c.constant(at.contiguous()), len(lens) - 2)


@lowers("unfold")
def unfold(c: Any, x: Any, dim: int, size: int, step: int) -> Any:
    if not x.shape:
        return x.reshape([1]).gather(c.constant(torch.arange(size)), 0)
    axis, rank = axis_of(x, dim), len(x.shape)
    starts = torch.arange(0, x.shape[axis] - size + 1, step)
    y = x.gather(c.constant(starts[:, None] + torch.arange(size)), axis)
    return y.transpose([d for d in range(rank + 1) if d != axis + 1] + [axis + 1])
