"""Pools, and padding by what is around."""

from __future__ import annotations

import math
from typing import Any

import torch

from ... import _kiln, ops
from .convolution import batched, per_axis
from .table import lowers


def _axes_of_name(c: Any) -> int:
    return int(next(ch for ch in c.name if ch in "123"))


def _max_pool(c: Any, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    axes = _axes_of_name(c)
    x, alone = batched(x, axes)
    kernel, pads, dilation = per_axis(kernel, axes), per_axis(padding, axes), per_axis(dilation, axes)
    stride = per_axis(stride, axes) if stride else kernel
    y = ops.pooling(
        x, mode="max", lengths=kernel, stride=stride, dilation=dilation, pads=pads * 2, ceil_mode=ceil_mode
    )
    return x, y, alone, kernel, stride, pads, dilation


@lowers("max_pool1d", "max_pool2d", "max_pool3d")
def max_pool(
    c: Any, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    _, y, alone, *_ = _max_pool(c, x, kernel, stride, padding, dilation, ceil_mode)
    return y.squeeze([0]) if alone else y


@lowers("max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool_with_indices(
    c: Any, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    x, y, alone, kernel, stride, pads, dilation = _max_pool(c, x, kernel, stride, padding, dilation, ceil_mode)
    at = _positions(c, x, y, kernel, stride, pads, dilation) if c.reads(1) else None
    return tuple(v.squeeze([0]) if alone and v is not None else v for v in (y, at))


def _positions(c: Any, x: Any, y: Any, kernel: Any, stride: Any, pads: Any, dilation: Any) -> Any:
    """Where in the plane of x each greatest element is."""
    extents = x.shape[2:]
    at = torch.zeros(1, 1, dtype=torch.int64)
    inside = torch.ones(1, 1, dtype=torch.bool)
    for a, n in enumerate(extents):  # [windows, taps], flat over the axes so far
        count = y.shape[2 + a]
        own = torch.arange(count)[:, None] * stride[a] - pads[a] + torch.arange(kernel[a]) * dilation[a]
        fits = (own >= 0) & (own < n)
        own = own.clamp(0, n - 1)
        at = (at[:, None, :, None] * n + own[None, :, None, :]).reshape(len(at) * count, -1)
        inside = (inside[:, None, :, None] & fits[None, :, None, :]).reshape(len(inside) * count, -1)
    # a tap outside reads the first one inside, which goes before it
    first = at.gather(1, inside.int().argmax(1, keepdim=True))
    at = torch.where(inside, at, first)
    planes = x.reshape([x.shape[0] * x.shape[1], math.prod(extents)])
    best = ops.arg_max(planes.gather(c.constant(at), 1), axis=2)
    table = c.constant(at).broadcast_to([planes.shape[0], *at.shape])
    return ops.gather_elements(table, best, axis=2).reshape(y.shape)


@lowers("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(
    c: Any, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor: Any = None,
) -> Any:  # fmt: skip
    axes = _axes_of_name(c)
    x, alone = batched(x, axes)
    kernel, pads = per_axis(kernel, axes), per_axis(padding, axes)
    stride = per_axis(stride, axes) if stride else kernel
    how: dict[str, Any] = {"mode": "average", "lengths": kernel, "stride": stride}
    if divisor is None:
        y = ops.pooling(x, pads=pads * 2, ceil_mode=ceil_mode, count_include_pad=count_include_pad, **how)
    else:  # zeros around make every window whole
        ends = []
        for n, k, s, p in zip(x.shape[2:], kernel, stride, pads):
            span = n + 2 * p - k
            count = (-(-span // s) if ceil_mode else span // s) + 1
            if ceil_mode and (count - 1) * s >= n + p:
                count -= 1
            ends.append(max(p, (count - 1) * s + k - n - p))
        x = ops.pad(x, c.constant(0, x.dtype), pads=[0, 0, *pads, 0, 0, *ends])
        y = c.scaled(ops.pooling(x, **how), math.prod(kernel) / divisor)
    return y.squeeze([0]) if alone else y


def _window(i: int, extent: int, count: int) -> range:
    """What element i of `count` reads of an extent."""
    return range(i * extent // count, -(-(i + 1) * extent // count))


def _pooled_adaptively(c: Any, x: Any, size: Any, mode: Any) -> Any:
    axes = _axes_of_name(c)
    size = per_axis(size, axes)
    rank = len(x.shape)
    spatial = list(range(rank - axes, rank))
    if all(n == 1 for n in size):
        return (ops.reduce_mean if mode == "average" else ops.reduce_max)(x, axes=spatial)
    if any(isinstance(x.shape[a], _kiln.Dim) for a in spatial):
        c.refuse("it divides a symbolic extent into windows")
    if all(x.shape[a] % n == 0 for a, n in zip(spatial, size)):
        x, alone = batched(x, axes)
        kernel = [extent // n for extent, n in zip(x.shape[2:], size)]
        y = ops.pooling(x, mode=mode, lengths=kernel, stride=kernel)
        return y.squeeze([0]) if alone else y
    for axis, n in zip(spatial, size):
        x = _windows_of(c, x, axis, n, mode)
    return x


def _windows_of(c: Any, x: Any, axis: int, count: int, mode: str) -> Any:
    windows = [_window(i, x.shape[axis], count) for i in range(count)]
    taps = max(map(len, windows))
    at = torch.tensor([[w[min(k, len(w) - 1)] for w in windows] for k in range(taps)])
    if mode == "max":
        return ops.reduce_max(x.gather(c.constant(at), axis), axes=[axis]).squeeze([axis])
    weight = [[1 / len(w) if k < len(w) else 0.0 for w in windows] for k in range(taps)]
    dtype = torch.float64 if x.dtype == "f64" else torch.float32
    return ops.resample(x, c.constant(at), c.constant(torch.tensor(weight, dtype=dtype)), axes=[axis])


@lowers("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "_adaptive_avg_pool2d",
        "_adaptive_avg_pool3d")  # fmt: skip
def adaptive_avg_pool(c: Any, x: Any, size: Any) -> Any:
    return _pooled_adaptively(c, x, size, "average")


@lowers("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", makes=1)
def adaptive_max_pool(c: Any, x: Any, size: Any) -> Any:
    return _pooled_adaptively(c, x, size, "max"), None


def _begins_and_ends(rank: int, pad: Any) -> list[Any]:
    """Pads from the last dim on, begin and end, as all begins and then all ends."""
    begins, ends = [0] * rank, [0] * rank
    for i in range(len(pad) // 2):
        begins[rank - 1 - i], ends[rank - 1 - i] = pad[2 * i], pad[2 * i + 1]
    return begins + ends


@lowers("constant_pad_nd")
def constant_pad(c: Any, x: Any, pad: Any, value: Any = 0) -> Any:
    pads = _begins_and_ends(len(x.shape), c.shape(pad))
    if not x.shape or all(isinstance(p, int) and p == 0 for p in pads):
        return x
    if x.dtype == "bool":
        made = ops.pad(c.convert(x, "u8"), c.constant(bool(value), "u8"), pads=pads)
        return c.convert(made, "bool")
    return ops.pad(x, c.constant(value, x.dtype), pads=pads)


def _cuts(x: Any, pads: Any, *how: Any) -> str | None:
    """Pads below zero cut before the rest is reflected or repeated."""
    return "a pad is below zero" if any(isinstance(n, int) and n < 0 for n in pads) else None


def _pads_as(mode: Any, *names: str) -> None:
    @lowers(*names, check=_cuts)
    def lower(c: Any, x: Any, pad: Any) -> Any:
        return ops.pad(x, mode=mode, pads=_begins_and_ends(len(x.shape), c.shape(pad)))


_pads_as("reflect", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
_pads_as("edge", "replication_pad1d", "replication_pad2d", "replication_pad3d")
_pads_as("wrap", "_pad_circular")


@lowers("pad", check=lambda x, pads, mode="constant", value=None: None if mode == "constant" else _cuts(x, pads))
def pad(c: Any, x: Any, pads: Any, mode: str = "constant", value: Any = None) -> Any:
    if mode == "constant":
        return constant_pad(c, x, pads, value or 0)
    word: Any = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    return ops.pad(x, mode=word, pads=_begins_and_ends(len(x.shape), c.shape(pads)))


@lowers("pixel_shuffle")
def pixel_shuffle(c: Any, x: Any, factor: int) -> Any:
    *rest, channels, height, width = x.shape
    n, f = len(rest), factor
    y = x.reshape([*rest, channels // (f * f), f, f, height, width])
    order = [*range(n), n, n + 3, n + 1, n + 4, n + 2]
    return y.transpose(order).reshape([*rest, channels // (f * f), height * f, width * f])


@lowers("pixel_unshuffle")
def pixel_unshuffle(c: Any, x: Any, factor: int) -> Any:
    *rest, channels, height, width = x.shape
    n, f = len(rest), factor
    y = x.reshape([*rest, channels, height // f, f, width // f, f])
    order = [*range(n), n, n + 2, n + 4, n + 1, n + 3]
    return y.transpose(order).reshape([*rest, channels * f * f, height // f, width // f])


@lowers("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(c: Any, x: Any, groups: int) -> Any:
    batch, channels, *rest = x.shape
    y = x.reshape([batch, groups, channels // groups, *rest])
    return y.transpose([0, 2, 1, *range(3, 3 + len(rest))]).reshape(x.shape)
