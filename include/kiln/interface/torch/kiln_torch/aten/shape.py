"""Views, joins and cuts: no element changes."""

from __future__ import annotations

import math
from typing import Any

import torch

from ... import _kiln, ops
from ..types import promoted
from .table import lowers


def axis_of(x: Any, dim: int) -> int:
    return dim % len(x.shape)


def broadcast_lens(*shapes: Any) -> list[Any]:
    """The extents that shapes broadcast to; PyTorch has checked that they do."""
    rank = max(map(len, shapes))
    made: list[Any] = [1] * rank
    for shape in shapes:
        for d, n in enumerate(shape, rank - len(shape)):
            made[d] = n if isinstance(made[d], int) and made[d] == 1 else made[d]
    return made


def cut(x: Any, axis: int, start: Any, end: Any, step: int = 1) -> Any:
    """x[..., start:end:step, ...]; x itself where that is all of it."""
    if isinstance(start, int) and start == 0 and step == 1 and end == x.shape[axis]:
        return x
    return ops.slice(x, axes=[axis], starts=[start], ends=[end], steps=[step])


def part(x: Any, axis: int, index: Any) -> Any:
    """x[..., index, ...] without the axis."""
    return cut(x, axis, index, index + 1).squeeze([axis])


def joined(values: list[Any], axis: int) -> Any:
    return values[0] if len(values) == 1 else ops.concat(*values, axis=axis)


def reshaped_to(c: Any, x: Any, extents: list[Any]) -> Any:
    """x with other extents; what x was made of where that has them."""
    return next((form for form in c.forms(x) if list(form.shape) == extents), None) or c.reshaped(x, extents)


@lowers("view", "_unsafe_view", "reshape", "_reshape_alias", "view_copy", "_reshape_copy")
def view(c: Any, x: Any, size: Any, stride: Any = None) -> Any:
    return reshaped_to(c, x, c.resolved(x, size))


@lowers("view_as", "reshape_as")
def view_as(c: Any, x: Any, other: Any) -> Any:
    return x.reshape(other.shape)


@lowers("flatten.using_ints")
def flatten(c: Any, x: Any, start: int = 0, end: int = -1) -> Any:
    if not x.shape:
        return x.reshape([1])
    first, last = axis_of(x, start), axis_of(x, end)
    lens = list(x.shape)
    return x.reshape(lens[:first] + [math.prod(lens[first : last + 1])] + lens[last + 1 :])


@lowers("unflatten.int")
def unflatten(c: Any, x: Any, dim: int, sizes: Any) -> Any:
    axis, lens, sizes = axis_of(x, dim), list(x.shape), c.shape(sizes)
    if -1 in [s for s in sizes if isinstance(s, int)]:
        at = sizes.index(-1)
        sizes[at] = lens[axis] // math.prod(sizes[:at] + sizes[at + 1 :])
    return x.reshape(lens[:axis] + sizes + lens[axis + 1 :])


@lowers("permute", "permute_copy")
def permute(c: Any, x: Any, dims: Any) -> Any:
    order = [axis_of(x, d) for d in dims]
    return x if order == sorted(order) else x.transpose(order)


@lowers("transpose.int", "transpose_copy.int", "swapaxes", "swapdims")
def transpose(c: Any, x: Any, first: int, second: int) -> Any:
    order = list(range(len(x.shape)))
    if order:
        order[first], order[second] = order[second], order[first]
    return x.transpose(order) if order else x


@lowers("t", "t_copy", "numpy_T")
def t(c: Any, x: Any) -> Any:
    return x.transpose(list(range(len(x.shape)))[::-1]) if len(x.shape) > 1 else x


@lowers("movedim.int", "movedim.intlist")
def movedim(c: Any, x: Any, source: Any, to: Any) -> Any:
    sources = [axis_of(x, d) for d in (source if isinstance(source, (list, tuple)) else [source])]
    places = [axis_of(x, d) for d in (to if isinstance(to, (list, tuple)) else [to])]
    rest = iter(d for d in range(len(x.shape)) if d not in sources)
    found = dict(zip(places, sources))
    return x.transpose([found[d] if d in found else next(rest) for d in range(len(x.shape))])


@lowers("expand", "expand_copy")
def expand(c: Any, x: Any, size: Any, *, implicit: bool = False) -> Any:
    wanted, new = c.shape(size), len(size) - len(x.shape)
    whole = [x.shape[d - new] if isinstance(e, int) and e == -1 else e for d, e in enumerate(wanted)]
    return x if list(x.shape) == whole else x.broadcast_to(whole)


@lowers("broadcast_to")
def broadcast_to(c: Any, x: Any, size: Any) -> Any:
    return expand(c, x, size)


@lowers("expand_as")
def expand_as(c: Any, x: Any, other: Any) -> Any:
    return x.broadcast_to(other.shape)


@lowers("repeat", "tile")
def repeat(c: Any, x: Any, repeats: Any) -> Any:
    repeats = c.shape(repeats)
    rank = max(len(repeats), len(x.shape))
    repeats = [1] * (rank - len(repeats)) + repeats
    lens = [1] * (rank - len(x.shape)) + list(x.shape)
    if all(isinstance(r, int) and r == 1 for r in repeats):
        return x.reshape(lens)
    apart = [e for n in lens for e in (1, n)]
    spread = [e for r, n in zip(repeats, lens) for e in (r, n)]
    return x.reshape(apart).broadcast_to(spread).reshape([r * n for r, n in zip(repeats, lens)])


@lowers("repeat_interleave.self_int")
def repeat_interleave(c: Any, x: Any, repeats: Any, dim: int | None = None, *, output_size: Any = None) -> Any:
    if dim is None:
        x, dim = x.reshape([math.prod(x.shape)]), 0
    axis, lens = axis_of(x, dim), list(x.shape)
    spread = lens[: axis + 1] + [repeats] + lens[axis + 1 :]
    return x.unsqueeze([axis + 1]).broadcast_to(spread).reshape(lens[:axis] + [lens[axis] * repeats] + lens[axis + 1 :])


@lowers("squeeze", "squeeze.dim", "squeeze.dims", "squeeze_copy", "squeeze_copy.dim", "squeeze_copy.dims")
def squeeze(c: Any, x: Any, dim: Any = None) -> Any:
    rank = len(x.shape)
    named = range(rank) if dim is None else [d % rank for d in (dim if isinstance(dim, (list, tuple)) else [dim]) if rank]
    axes = sorted(d for d in named if isinstance(x.shape[d], int) and x.shape[d] == 1)
    return x.squeeze(axes) if axes else x


@lowers("unsqueeze", "unsqueeze_copy")
def unsqueeze(c: Any, x: Any, dim: int) -> Any:
    return x.unsqueeze([dim % (len(x.shape) + 1)])


def bound(index: Any, extent: Any, otherwise: Any) -> Any:
    """A slice's start or end as an index in [0, extent]."""
    if index is None:
        return otherwise
    if isinstance(index, _kiln.Dim):
        return index
    if isinstance(extent, _kiln.Dim):
        return index + extent if index < 0 else index if index < 1 << 31 else extent
    return min(max(index + extent if index < 0 else index, 0), extent)


@lowers("slice.Tensor", "slice_copy.Tensor")
def slice_along(c: Any, x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    axis = axis_of(x, dim)
    extent = x.shape[axis]
    first, last = bound(start, extent, 0), bound(end, extent, extent)
    if isinstance(first, int) and isinstance(last, int):
        last = max(first, last)
    return cut(x, axis, first, last, step)


@lowers("narrow")
def narrow(c: Any, x: Any, dim: int, start: Any, length: Any) -> Any:
    axis = axis_of(x, dim)
    first = bound(start, x.shape[axis], 0)
    return cut(x, axis, first, first + length)


@lowers("select.int", "select_copy.int")
def select(c: Any, x: Any, dim: int, index: Any) -> Any:
    axis = axis_of(x, dim)
    return part(x, axis, index + x.shape[axis] if isinstance(index, int) and index < 0 else index)


@lowers("split_with_sizes", "split_with_sizes_copy", "split.sizes", "unsafe_split_with_sizes")
def split_with_sizes(c: Any, x: Any, sizes: Any, dim: int = 0) -> Any:
    axis, at, made = axis_of(x, dim), 0, []
    for n in c.shape(sizes):
        made.append(cut(x, axis, at, at + n))
        at = at + n
    return tuple(made)


@lowers("split.Tensor", "split_copy.Tensor", "unsafe_split.Tensor")
def split(c: Any, x: Any, size: Any, dim: int = 0) -> Any:
    extent = x.shape[axis_of(x, dim)]
    if isinstance(extent, _kiln.Dim):
        c.refuse("it splits a symbolic extent")
    if extent == 0:
        return (x,)
    return split_with_sizes(c, x, [min(size, extent - at) for at in range(0, extent, size)], dim)


@lowers("chunk", "unsafe_chunk")
def chunk(c: Any, x: Any, count: int, dim: int = 0) -> Any:
    extent = x.shape[axis_of(x, dim)]
    if extent == 0:
        return (x,) * count
    return split(c, x, -(-extent // count), dim)


@lowers("unbind.int", "unbind_copy.int")
def unbind(c: Any, x: Any, dim: int = 0) -> Any:
    axis = axis_of(x, dim)
    return tuple(part(x, axis, i) for i in range(x.shape[axis]))


@lowers("cat", "concat", "concatenate")
def cat(c: Any, values: Any, dim: int = 0) -> Any:
    dtype = promoted(*values)
    # an empty list may stand beside tensors of any rank
    some = [v for v in values if not (len(v.shape) == 1 and v.shape[0] == 0)] or list(values[:1])
    return joined([c.convert(v, dtype) for v in some], axis_of(some[0], dim))


@lowers("stack")
def stack(c: Any, values: Any, dim: int = 0) -> Any:
    dtype, axis = promoted(*values), dim % (len(values[0].shape) + 1)
    return joined([c.convert(v, dtype).unsqueeze([axis]) for v in values], axis)


@lowers("flip")
def flip(c: Any, x: Any, dims: Any) -> Any:
    return ops.reverse(x, axes=sorted(axis_of(x, d) for d in dims)) if dims and x.shape else x


@lowers("roll")
def roll(c: Any, x: Any, shifts: Any, dims: Any = ()) -> Any:
    if not dims:
        lens = x.shape
        return roll(c, x.reshape([math.prod(lens)]), shifts, [0]).reshape(lens)
    for shift, dim in zip(shifts, dims):
        axis = axis_of(x, dim)
        extent = x.shape[axis]
        at = shift % extent if extent else 0
        if at:
            x = ops.concat(cut(x, axis, extent - at, extent), cut(x, axis, 0, extent - at), axis=axis)
    return x


@lowers("tril")
def tril(c: Any, x: Any, diagonal: int = 0) -> Any:
    return _triangle(c, x, False, diagonal)


@lowers("triu")
def triu(c: Any, x: Any, diagonal: int = 0) -> Any:
    return _triangle(c, x, True, diagonal)


def _triangle(c: Any, x: Any, upper: bool, k: int) -> Any:
    return ops.tri(x, upper=upper, k=k)


def _only_reshapes(x: Any, size: Any, stride: Any, offset: Any) -> bool:
    """Whether a contiguous x's elements are read in their order, all of them. The first extent may be symbolic."""
    if offset or not all(isinstance(n, int) for n in (*size[1:], *stride, *x.shape[1:])):
        return False
    step = 1
    for n, s in reversed(list(zip(size[1:], stride[1:]))):
        if n != 1 and s != step:
            return False
        step *= n
    if size and isinstance(size[0], int) and size[0] == 1:
        return bool(step == math.prod(x.shape))
    if size and stride[0] != step:
        return False
    if size and isinstance(size[0], int):
        return bool(size[0] * step == math.prod(x.shape))
    return bool(size) and step == math.prod(x.shape[1:])


def _reads_as_written(x: Any, size: Any, stride: Any, offset: Any = None) -> str | None:
    if not x.is_contiguous():
        return "it reads a tensor's memory, which is not contiguous"
    if _only_reshapes(x, size, stride, offset):
        return None
    if not all(isinstance(n, int) for n in (*size, *stride, *x.shape)):
        return "it reads a symbolic extent"
    last = (offset or 0) + sum((n - 1) * s for n, s in zip(size, stride))
    return "it reads beyond the tensor" if 0 not in size and last >= x.numel() else None


@lowers("as_strided", "as_strided_copy", check=_reads_as_written)
def as_strided(c: Any, x: Any, size: Any, stride: Any, offset: Any = None) -> Any:
    if _only_reshapes(x, size, stride, offset):
        return reshaped_to(c, x, c.shape(size))
    at = torch.full(tuple(size), offset or 0)
    for d, (n, s) in enumerate(zip(size, stride)):
        at = at + (torch.arange(n) * s).reshape([n if i == d else 1 for i in range(len(size))])
    return x.reshape([math.prod(x.shape)]).gather(c.constant(at), 0)
