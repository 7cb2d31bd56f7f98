"""Comparisons, logic, bounds and choices."""

from __future__ import annotations

import math
from typing import Any

import torch

from ... import ops
from ..types import FLOATS, promoted, torch_dtype
from .table import lowers


def _ordered(c: Any, x: Any, y: Any) -> list[Any]:
    """Operands of a comparison: bools compare as integers."""
    dtype = promoted(x, y)
    return [c.convert(c.convert(v, dtype), "u8" if dtype == "bool" else dtype) for v in (x, y)]


def _comparison(name: str, op: str) -> None:
    function = getattr(ops, op)

    @lowers(f"{name}.Tensor", f"{name}.Scalar")
    def lower(c: Any, x: Any, other: Any) -> Any:
        return function(*_ordered(c, x, other))


for _name, _op in (("eq", "equal"), ("lt", "less"), ("gt", "greater"), ("le", "less_or_equal"),
                   ("ge", "greater_or_equal")):  # fmt: skip
    _comparison(_name, _op)


@lowers("ne.Tensor", "ne.Scalar")
def not_equal(c: Any, x: Any, other: Any) -> Any:
    return ops.logical_not(ops.equal(*_ordered(c, x, other)))


def _logical(name: str) -> None:
    function = getattr(ops, name)

    @lowers(name)
    def lower(c: Any, *values: Any) -> Any:
        return function(*(c.convert(v, "bool") for v in values))


for _name in ("logical_and", "logical_or", "logical_xor", "logical_not"):
    _logical(_name)


def _bitwise(name: str, *overloads: str) -> None:
    of_bits, of_bools = getattr(ops, f"bitwise_{name}"), getattr(ops, f"logical_{name}")

    @lowers(*overloads)
    def lower(c: Any, *values: Any) -> Any:
        values = c.promote(*values)
        return (of_bools if values[0].dtype == "bool" else of_bits)(*values)


for _name in ("and", "or", "xor"):
    _bitwise(_name, *(f"{n}.{kind}" for n in (f"bitwise_{_name}", f"__{_name}__") for kind in ("Tensor", "Scalar")))
_bitwise("not", "bitwise_not")


@lowers("bitwise_left_shift.Tensor", "bitwise_left_shift.Tensor_Scalar", "__lshift__.Scalar", "__lshift__.Tensor")
def shift_left(c: Any, x: Any, count: Any) -> Any:
    return ops.shift_left(*c.promote(x, count))


@lowers("bitwise_right_shift.Tensor", "bitwise_right_shift.Tensor_Scalar", "__rshift__.Scalar", "__rshift__.Tensor")
def shift_right(c: Any, x: Any, count: Any) -> Any:
    return ops.shift_right(*c.promote(x, count))


@lowers("maximum", "max.other")
def maximum(c: Any, x: Any, other: Any) -> Any:
    x, y = c.promote(x, other)
    return ops.logical_or(x, y) if x.dtype == "bool" else ops.max(x, y)


@lowers("minimum", "min.other")
def minimum(c: Any, x: Any, other: Any) -> Any:
    x, y = c.promote(x, other)
    return ops.logical_and(x, y) if x.dtype == "bool" else ops.min(x, y)


def _ignoring_nan(c: Any, x: Any, y: Any, made: Any) -> Any:
    if x.dtype not in FLOATS:
        return made
    return ops.where(ops.is_nan(x), y, ops.where(ops.is_nan(y), x, made))


@lowers("fmax")
def fmax(c: Any, x: Any, other: Any) -> Any:
    x, y = c.promote(x, other)
    return _ignoring_nan(c, x, y, maximum(c, x, y))


@lowers("fmin")
def fmin(c: Any, x: Any, other: Any) -> Any:
    x, y = c.promote(x, other)
    return _ignoring_nan(c, x, y, minimum(c, x, y))


@lowers("clamp", "clamp.Tensor", "clip", "clip.Tensor")
def clamp(c: Any, x: Any, low: Any = None, high: Any = None) -> Any:
    given = [v for v in (low, high) if v is not None]
    dtype = promoted(x, *given)
    x = c.convert(x, dtype)
    if low is not None and high is not None:
        return ops.clip(x, c.convert(low, dtype), c.convert(high, dtype))
    return ops.max(x, c.convert(low, dtype)) if low is not None else ops.min(x, c.convert(high, dtype))


@lowers("clamp_min", "clamp_min.Tensor")
def clamp_min(c: Any, x: Any, low: Any) -> Any:
    return clamp(c, x, low=low)


@lowers("clamp_max", "clamp_max.Tensor")
def clamp_max(c: Any, x: Any, high: Any) -> Any:
    return clamp(c, x, high=high)


@lowers("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar")
def where(c: Any, condition: Any, x: Any, y: Any) -> Any:
    x, y = c.promote(x, y)
    return ops.where(c.convert(condition, "bool"), x, y)


@lowers("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(c: Any, x: Any, mask: Any, value: Any) -> Any:
    return ops.where(c.convert(mask, "bool"), c.convert(value, x.dtype), x)


@lowers("isnan")
def isnan(c: Any, x: Any) -> Any:
    return ops.is_nan(x) if x.dtype in FLOATS else c.full(x.shape, False, "bool")


def _infinite(name: str, negative: bool, positive: bool) -> None:
    @lowers(name)
    def lower(c: Any, x: Any) -> Any:
        if x.dtype not in FLOATS:
            return c.full(x.shape, False, "bool")
        return ops.is_inf(x, detect_negative=negative, detect_positive=positive)


_infinite("isinf", True, True)
_infinite("isposinf", False, True)
_infinite("isneginf", True, False)


@lowers("isfinite")
def isfinite(c: Any, x: Any) -> Any:
    if x.dtype not in FLOATS:
        return c.full(x.shape, True, "bool")
    return ops.less(ops.abs(x), c.constant(math.inf, x.dtype))


@lowers("nan_to_num")
def nan_to_num(c: Any, x: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    if x.dtype not in FLOATS:
        return x
    limits = torch.finfo(torch_dtype(x.dtype))
    high = ops.is_inf(x, detect_negative=False)
    low = ops.is_inf(x, detect_positive=False)
    made = ops.where(ops.is_nan(x), c.constant(0 if nan is None else nan, x.dtype), x)
    made = ops.where(high, c.constant(limits.max if posinf is None else posinf, x.dtype), made)
    return ops.where(low, c.constant(limits.min if neginf is None else neginf, x.dtype), made)


@lowers("heaviside")
def heaviside(c: Any, x: Any, at_zero: Any) -> Any:
    zero, one = c.constant(0, x.dtype), c.constant(1, x.dtype)
    return ops.where(x.equal(zero), at_zero, ops.where(ops.greater(x, zero), one, zero))
