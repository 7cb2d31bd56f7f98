"""Numbers that are rounded to integers of a scale, as models say that were quantized."""

from __future__ import annotations

from typing import Any

import torch

from ... import _kiln, ops
from ..types import kiln_dtype
from .table import lowers

_RANGES = {(-128, 127): "i8", (0, 255): "u8"}


def _rounded(c: Any, x: Any, scale: Any, zero: Any, low: int, high: int, axis: int | None, dtype: str) -> Any:
    """x / scale rounded half to even plus zero within [low, high], as integers of a dtype."""
    wide = c.convert(x, "f32")
    scale, zero = c.convert(scale, "f32"), zero
    if _RANGES.get((low, high)) == dtype:
        return ops.quantize_linear(wide, scale, c.convert(zero, dtype), type=dtype, axis=axis or 0)
    scale, shift = (_along(c, wide, v, axis) for v in (scale, c.convert(zero, "f32")))
    y = ops.add(ops.round(ops.div(wide, scale)), shift)
    return c.convert(ops.clip(y, c.constant(low, "f32"), c.constant(high, "f32")), dtype)


def _along(c: Any, x: Any, vector: Any, axis: int | None) -> Any:
    return vector if axis is None or not vector.shape else ops.broadcast(vector, axis=axis, to=x.shape)


def _real(c: Any, q: Any, scale: Any, zero: Any, axis: int | None) -> Any:
    scale = c.convert(scale, "f32")
    zero = c.full(scale.shape, 0, "i32") if zero is None else zero
    if q.dtype in ("i8", "u8"):
        return ops.dequantize_linear(q, scale, c.convert(zero, q.dtype), axis=axis or 0)
    apart = ops.sub(c.convert(q, "f32"), _along(c, q, c.convert(zero, "f32"), axis))
    return ops.mul(apart, _along(c, q, scale, axis))


@lowers("quantized_decomposed::quantize_per_tensor", "quantized_decomposed::quantize_per_tensor.tensor")
def quantize(c: Any, x: Any, scale: Any, zero: Any, low: int, high: int, dtype: Any) -> Any:
    return _rounded(c, x, _number(scale), _number(zero), low, high, None, str(kiln_dtype(dtype)))


def _number(x: Any) -> Any:
    return x.reshape([]) if isinstance(x, _kiln.Value) else x


@lowers("quantized_decomposed::dequantize_per_tensor", "quantized_decomposed::dequantize_per_tensor.tensor")
def dequantize(c: Any, q: Any, scale: Any, zero: Any, low: int, high: int, dtype: Any, **how: Any) -> Any:
    return c.convert(_real(c, q, _number(scale), _number(zero), None), c.dtype)


@lowers("quantized_decomposed::quantize_per_channel")
def quantize_channels(c: Any, x: Any, scale: Any, zero: Any, axis: int, low: int, high: int, dtype: Any) -> Any:
    return _rounded(c, x, scale, zero, low, high, axis % len(x.shape), str(kiln_dtype(dtype)))


@lowers("quantized_decomposed::dequantize_per_channel")
def dequantize_channels(
    c: Any, q: Any, scale: Any, zero: Any, axis: int, low: int, high: int, dtype: Any, **how: Any
) -> Any:
    return c.convert(_real(c, q, scale, zero, axis % len(q.shape)), c.dtype)


def _integers(weight: Any, scale: Any, zeros: Any, low: int, high: int, axis: int | None, c: Any) -> Any:
    """A weight rounded as _rounded rounds."""
    scales = torch.tensor(float(scale)) if axis is None else c.node.args[1].meta["constant"]
    shape = [] if axis is None else [-1 if d == axis else 1 for d in range(weight.dim())]
    return torch.clamp(torch.round(weight.double() / scales.double().view(shape)) + zeros.double().view(shape), low, high)


def _fake(c: Any, x: Any, scale: Any, zero: Any, low: int, high: int, axis: int | None) -> Any:
    dtype = _RANGES.get((low, high), "i32")
    held = getattr(c.node.args[0], "meta", {}).get("constant")
    known = axis is None and not isinstance(scale, _kiln.Value) and not isinstance(zero, _kiln.Value)
    if axis is not None:
        known = all("constant" in getattr(n, "meta", {}) for n in c.node.args[1:3])
    if held is not None and known and dtype != "i32":  # a weight is a constant of integers
        zeros = torch.tensor(float(zero)) if axis is None else c.node.args[2].meta["constant"]
        q = c.constant(_integers(held, scale, zeros, low, high, axis, c), dtype)
        more = [c.constant(zeros, dtype)] if bool(zeros.any()) else []
        return c.convert(ops.dequantize_linear(q, c.convert(scale, "f32"), *more, axis=axis or 0), x.dtype)
    return c.convert(_real(c, _rounded(c, x, scale, zero, low, high, axis, dtype), scale, zero, axis), x.dtype)


@lowers("fake_quantize_per_tensor_affine", "fake_quantize_per_tensor_affine.tensor_qparams")
def fake_quantize(c: Any, x: Any, scale: Any, zero: Any, low: int, high: int) -> Any:
    return _fake(c, x, _number(scale), _number(zero), low, high, None)


@lowers("fake_quantize_per_tensor_affine_cachemask", makes=1)
def fake_quantize_and_mask(c: Any, x: Any, scale: Any, zero: Any, low: int, high: int) -> Any:
    return _fake(c, x, scale, zero, low, high, None), None


@lowers("fake_quantize_per_channel_affine")
def fake_quantize_channels(c: Any, x: Any, scale: Any, zero: Any, axis: int, low: int, high: int) -> Any:
    return _fake(c, x, scale, zero, low, high, axis % len(x.shape))


@lowers("fake_quantize_per_channel_affine_cachemask", makes=1)
def fake_quantize_channels_and_mask(c: Any, x: Any, scale: Any, zero: Any, axis: int, low: int, high: int) -> Any:
    return fake_quantize_channels(c, x, scale, zero, axis, low, high), None
