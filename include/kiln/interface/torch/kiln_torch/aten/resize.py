"""Images resized and sampled."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch

from ... import ops
from ..types import HALVES
from .table import lowers

# Whether an axis that keeps its extent is copied, whatever the factor, where others are filtered.
_COPIES = int(torch.__version__.split(".")[0]) >= 2

# One axis: its positions [taps, extent], and their weights where they are summed.
Taps = tuple[torch.Tensor, Any]


def _step(extent: int, wanted: int, factor: Any, corners: bool, dtype: torch.dtype) -> torch.Tensor:
    """How far apart in the source two neighbors of the result are."""
    if corners:
        return torch.tensor((extent - 1) / (wanted - 1) if wanted > 1 else 0.0, dtype=dtype)
    return torch.tensor(1.0 / factor if factor else extent / wanted, dtype=dtype)


def _nearest(extent: int, wanted: int, factor: Any, middle: float) -> Taps:
    step = _step(extent, wanted, factor, False, torch.float32)
    at = torch.floor((torch.arange(wanted, dtype=torch.float32) + middle) * step).long()
    return at.clamp(max=extent - 1)[None], None


def _source(extent: int, wanted: int, factor: Any, corners: bool, dtype: torch.dtype) -> torch.Tensor:
    step = _step(extent, wanted, factor, corners, dtype)
    index = torch.arange(wanted, dtype=dtype)
    return index * step if corners else (index + 0.5) * step - 0.5


def _linear(extent: int, wanted: int, factor: Any, corners: bool, dtype: torch.dtype) -> Taps:
    factor = None if wanted == extent else factor  # PyTorch's linear ones copy then
    at = _source(extent, wanted, factor, corners, dtype).clamp(min=0)
    first = at.floor().long().clamp(max=extent - 1)
    second = (first + 1).clamp(max=extent - 1)
    weight = (at - first).clamp(0, 1)
    return torch.stack([first, second]), torch.stack([1 - weight, weight])


def _cubic_weight(x: torch.Tensor, a: float) -> torch.Tensor:
    x = x.abs()
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return torch.where(x <= 1, near, torch.where(x < 2, far, torch.zeros_like(x)))


def _cubic(extent: int, wanted: int, factor: Any, corners: bool, dtype: torch.dtype) -> Taps:
    at = _source(extent, wanted, factor, corners, dtype)
    first = at.floor()
    taps = torch.arange(-1, 3)[:, None]
    weight = _cubic_weight((at - first) - taps.to(dtype), -0.75)
    return (first.long() + taps).clamp(0, extent - 1), weight


def _antialiased(extent: int, wanted: int, factor: Any, corners: bool, dtype: torch.dtype, width: int) -> Taps:
    """A filter of `width` source elements where it enlarges, of as many results' where it shrinks."""
    factor = None if wanted == extent and _COPIES else factor
    step = float(_step(extent, wanted, factor, corners, dtype))
    stretch = max(step, 1.0)
    reach = 0.5 * width * stretch
    center = (torch.arange(wanted, dtype=torch.float64) + 0.5) * step
    low = (center - reach + 0.5).long().clamp(min=0)
    count = (center + reach + 0.5).long().clamp(max=extent) - low
    taps = torch.arange(int(count.max()))[:, None]
    away = ((taps + low).double() - center + 0.5) / stretch
    weight = (1 - away.abs()).clamp(min=0) if width == 2 else _cubic_weight(away, -0.5)
    weight = torch.where(taps < count, weight, torch.zeros_like(weight))
    return (taps + low).clamp(max=extent - 1), (weight / weight.sum(0)).to(dtype)


def resized(c: Any, x: Any, sizes: Any, factors: Any, axes: int, tables: Any) -> Any:
    """x with its last axes resized; `tables` gives an axis' taps."""
    first = len(x.shape) - axes
    extents = x.shape[first:]
    if sizes is None:
        sizes = [math.floor(n * f) for n, f in zip(extents, factors)]
    factors = list(factors) if factors else [None] * axes
    operands, changed, weighted = [], [], False
    for d, (n, wanted, factor) in enumerate(zip(extents, c.shape(sizes), factors)):
        if n == wanted and factor in (None, 1):
            continue
        at, weight = tables(n, wanted, factor)
        changed.append(first + d)
        operands.append(c.constant(at))
        if weight is not None:
            weighted = True
            operands.append(c.constant(weight))
    if not changed:
        return x
    wide = c.convert(x, "f32") if weighted and x.dtype in HALVES else x
    return c.convert(ops.resample(wide, *operands, axes=changed, weighted=weighted), x.dtype)


def _has_floats(x: Any, *how: Any) -> str | None:
    if not x.is_floating_point():
        return f"it averages elements of {x.dtype}"
    return _known(x, *how)


def _known(x: Any, *how: Any) -> str | None:
    return None if all(isinstance(n, int) for n in x.shape[2:]) else "it resizes a symbolic extent"


def _factors(scales: tuple[Any, ...]) -> Any:
    return scales if any(s is not None for s in scales) else None


def _upsample_nearest(axes: int, exact: str, middle: float) -> None:
    name = f"{exact}{axes}d"

    def tables(extent: int, wanted: int, factor: Any) -> Taps:
        return _nearest(extent, wanted, factor, middle)

    @lowers(f"{name}.vec", check=_known)
    def by_size_or_factor(c: Any, x: Any, size: Any, factors: Any) -> Any:
        return resized(c, x, size, factors, axes, tables)

    @lowers(name, check=_known)
    def by_size(c: Any, x: Any, size: Any, *scales: Any) -> Any:
        return resized(c, x, size, _factors(scales), axes, tables)


def _upsample(name: str, axes: int, table: Any) -> None:
    def tables(c: Any, x: Any, corners: bool) -> Any:
        dtype = torch.float64 if x.dtype == "f64" else torch.float32
        return lambda extent, wanted, factor: table(extent, wanted, factor, corners, dtype)

    @lowers(f"{name}.vec", check=_has_floats)
    def by_size_or_factor(c: Any, x: Any, size: Any, corners: bool, factors: Any) -> Any:
        return resized(c, x, size, factors, axes, tables(c, x, corners))

    @lowers(name, check=_has_floats)
    def by_size(c: Any, x: Any, size: Any, corners: bool, *scales: Any) -> Any:
        return resized(c, x, size, _factors(scales), axes, tables(c, x, corners))


for _axes in (1, 2, 3):
    _upsample_nearest(_axes, "upsample_nearest", 0.0)
    _upsample_nearest(_axes, "_upsample_nearest_exact", 0.5)
_upsample("upsample_linear1d", 1, _linear)
_upsample("upsample_bilinear2d", 2, _linear)
_upsample("upsample_trilinear3d", 3, _linear)
_upsample("upsample_bicubic2d", 2, _cubic)
_upsample("_upsample_bilinear2d_aa", 2, partial(_antialiased, width=2))
_upsample("_upsample_bicubic2d_aa", 2, partial(_antialiased, width=4))


@lowers("grid_sampler_2d", "grid_sampler_3d", "grid_sampler")
def grid_sampler(c: Any, x: Any, grid: Any, interpolation: int, padding: int, align_corners: bool) -> Any:
    return ops.grid_sample(
        x,
        grid,
        mode=("linear", "nearest", "cubic")[interpolation],
        padding=("zeros", "border", "reflection")[padding],
        align_corners=align_corners,
    )


@lowers("affine_grid_generator")
def affine_grid(c: Any, theta: Any, size: Any, align_corners: bool) -> Any:
    lens = [int(n) for n in size[2:]]
    spans = []
    for n in lens:
        span = torch.linspace(-1, 1, n, dtype=torch.float64) if n > 1 else torch.zeros(1, dtype=torch.float64)
        spans.append(span if align_corners else span * (n - 1) / n)
    places = torch.stack([*torch.meshgrid(*spans, indexing="ij")][::-1] + [torch.ones(lens, dtype=torch.float64)], -1)
    base = c.constant(places.reshape(1, -1, len(lens) + 1), theta.dtype)
    batch = theta.shape[0]
    grid = base.broadcast_to([batch, *base.shape[1:]]).dot(theta.transpose([0, 2, 1]))
    return grid.reshape([batch, *lens, len(lens)])


@lowers("torchvision::roi_align")
def roi_align(
    c: Any, x: Any, rois: Any, scale: float, height: int, width: int, samples: int, aligned: bool
) -> Any:  # fmt: skip
    corners = ops.slice(rois, axes=[1], starts=[1], ends=[5])
    batch = c.convert(ops.slice(rois, axes=[1], starts=[0], ends=[1]).squeeze([1]), "i64")
    return ops.roi_align(
        x, corners, batch, height=height, width=width, samples=max(samples, 0), scale=float(scale), half_pixel=aligned
    )
