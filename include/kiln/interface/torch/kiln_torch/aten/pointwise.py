"""Arithmetic and elementary functions."""

from __future__ import annotations

import math
from typing import Any

from ... import _kiln, ops
from ..types import FLOATS, HALVES, Kind, promoted
from .table import lowers

TO_FLOAT = Kind.INT_TO_FLOAT


def _unary(name: str, op: str, kind: Kind = Kind.DEFAULT) -> None:
    function = getattr(ops, op)

    @lowers(name)
    def lower(c: Any, x: Any) -> Any:
        return function(*c.promote(x, kind=kind))


for _name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "expm1", "log", "log1p",
              "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh"):  # fmt: skip
    _unary(_name, _name, TO_FLOAT)
_unary("reciprocal", "recip", TO_FLOAT)
_unary("neg", "neg")


@lowers("abs", "absolute")
def absolute(c: Any, x: Any) -> Any:
    return x if x.dtype in ("bool", "u8") else ops.abs(x)


@lowers("sign", "sgn")
def sign(c: Any, x: Any) -> Any:
    if x.dtype == "bool":
        return x
    made = ops.sign(x)  # PyTorch's sign of NaN is 0
    return ops.where(ops.is_nan(x), c.constant(0, x.dtype), made) if x.dtype in FLOATS else made


def _whole(name: str) -> None:
    function = getattr(ops, name)

    @lowers(name)
    def lower(c: Any, x: Any) -> Any:
        return function(x) if x.dtype in FLOATS else x


for _name in ("ceil", "floor", "round"):
    _whole(_name)


@lowers("round.decimals")
def round_to(c: Any, x: Any, *, decimals: int = 0) -> Any:
    if decimals == 0 or x.dtype not in FLOATS:
        return ops.round(x) if x.dtype in FLOATS else x
    scale = c.constant(10.0 ** abs(decimals), x.dtype)
    if decimals > 0:
        return ops.div(ops.round(ops.mul(x, scale)), scale)
    return ops.mul(ops.round(ops.div(x, scale)), scale)


def truncated(x: Any) -> Any:
    """x toward zero."""
    return ops.where(ops.less(x, 0), ops.ceil(x), ops.floor(x)) if x.dtype in FLOATS else x


@lowers("trunc", "fix")
def trunc(c: Any, x: Any) -> Any:
    return truncated(x)


@lowers("frac")
def frac(c: Any, x: Any) -> Any:
    return ops.sub(x, truncated(x))


def times(c: Any, x: Any, factor: Any) -> Any:
    """x times a number or, where that is 1, x."""
    return x if factor == 1 else c.scaled(x, factor)


@lowers("add.Tensor", "add.Scalar")
def add(c: Any, x: Any, other: Any, alpha: Any = 1) -> Any:
    dtype, (x, y) = c.wide(x, other)
    if dtype == "bool":
        return ops.logical_or(x, y) if alpha else x
    made = _added_before_split(c, x, y) if alpha == 1 else None
    return c.convert(ops.add(x, times(c, y, alpha)), dtype) if made is None else made


def _added_before_split(c: Any, x: Any, y: Any) -> Any:
    """x + y where x is a value whose first dim was split, as windows are for their masks: the sum of that value and y
    in its extents, split. None where x is another one."""
    before, rank = c.before_reshape(x), len(x.shape)
    split = rank - len(before.shape) + 1
    if before is x or split < 2 or before.shape[1:] != x.shape[split:] or not y.shape:
        return None
    lens = [1] * (rank - len(y.shape)) + list(y.shape)
    if any(lens[d] != 1 and lens[d] != x.shape[d] for d in range(rank)):
        return None
    if all(n == 1 for n in lens[:split]):
        y = y.reshape([1, *lens[split:]])
    else:
        whole = [*x.shape[:split], *lens[split:]]
        y = y.reshape(lens).broadcast_to(whole).reshape([before.shape[0], *lens[split:]])
    return c.reshaped(ops.add(before, y), x.shape)


@lowers("sub.Tensor", "sub.Scalar")
def sub(c: Any, x: Any, other: Any, alpha: Any = 1) -> Any:
    dtype, (x, y) = c.wide(x, other)
    return c.convert(ops.sub(x, times(c, y, alpha)), dtype)


@lowers("rsub.Tensor", "rsub.Scalar")
def rsub(c: Any, x: Any, other: Any, alpha: Any = 1) -> Any:
    dtype, (x, y) = c.wide(x, other)
    return c.convert(ops.sub(y, times(c, x, alpha)), dtype)


def _by_one_number(c: Any, x: Any, other: Any, op: Any, kind: Kind = Kind.DEFAULT) -> Any:
    """op(x, other) in the promoted dtype. By one number it is done to what x was made of by a reshape: a product of
    matrices and its scale stay side by side."""
    alone = isinstance(x, _kiln.Value) and not (isinstance(other, _kiln.Value) and other.shape)
    before = c.before_reshape(x) if alone and x.shape else x
    if before is not x and promoted(before, other, kind=kind) != promoted(x, other, kind=kind):
        before = x  # a reshape gave a scalar dims, or took them
    dtype, (a, b) = c.wide(before, other, kind=kind)
    made = c.convert(op(a, b), dtype)
    return made if before is x else c.reshaped(made, x.shape)


@lowers("mul.Tensor", "mul.Scalar")
def mul(c: Any, x: Any, other: Any) -> Any:
    if promoted(x, other) == "bool":
        return ops.logical_and(x, c.convert(other, "bool"))
    return _by_one_number(c, x, other, ops.mul)


@lowers("div.Tensor", "div.Scalar", "true_divide.Tensor", "true_divide.Scalar")
def div(c: Any, x: Any, other: Any) -> Any:
    return _by_one_number(c, x, other, ops.div, TO_FLOAT)


@lowers("div.Tensor_mode", "div.Scalar_mode")
def div_rounded(c: Any, x: Any, other: Any, *, rounding_mode: str | None) -> Any:
    if rounding_mode is None:
        return div(c, x, other)
    dtype = promoted(x, other)
    x, y = (c.convert(v, "f32" if dtype in HALVES else dtype) for v in (x, other))
    made = floor_quotient(c, x, y) if rounding_mode == "floor" else truncated(ops.div(x, y))
    return c.convert(made, dtype)


@lowers("floor_divide", "floor_divide.Scalar")
def floor_divide(c: Any, x: Any, other: Any) -> Any:
    return div_rounded(c, x, other, rounding_mode="floor")


def floor_quotient(c: Any, x: Any, y: Any) -> Any:
    """The greatest integer that is at most x / y, from the exact remainder as Python computes it."""
    if x.dtype not in FLOATS:
        return ops.div(ops.sub(x, ops.mod(x, y)), y)
    zero = c.constant(0, x.dtype)
    rest = ops.fmod(x, y)
    q = ops.div(ops.sub(x, rest), y)
    differs = ops.logical_xor(ops.less(y, zero), ops.less(rest, zero))
    below = ops.logical_and(ops.logical_not(rest.equal(zero)), differs)
    q = ops.where(below, ops.sub(q, c.constant(1, x.dtype)), q)
    floor = ops.floor(q)
    floor = ops.where(ops.greater(ops.sub(q, floor), 0.5), ops.add(floor, 1), floor)
    return ops.where(y.equal(zero), ops.div(x, y), floor)


@lowers("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(c: Any, x: Any, other: Any) -> Any:
    return ops.mod(*c.promote(x, other))


@lowers("fmod.Tensor", "fmod.Scalar")
def fmod(c: Any, x: Any, other: Any) -> Any:
    return ops.fmod(*c.promote(x, other))


@lowers("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def power(c: Any, x: Any, exponent: Any) -> Any:
    dtype = promoted(x, exponent)
    if isinstance(x, _kiln.Value) and not isinstance(exponent, _kiln.Value):
        plain = _small_power(c, c.convert(x, dtype), exponent)
        if plain is not None:
            return plain
    x, exponent = (c.convert(v, "f32" if dtype in HALVES else dtype) for v in (x, exponent))
    return c.convert(ops.pow(x, exponent), dtype)


def _small_power(c: Any, x: Any, exponent: Any) -> Any:
    """A power that is a product or a root; None for another one."""
    if exponent == 0:
        return c.full(x.shape, 1, x.dtype)
    if exponent in (1, 2):
        return x if exponent == 1 else ops.mul(x, x)
    if x.dtype not in FLOATS:
        return None
    made = {0.5: ops.sqrt, -0.5: ops.rsqrt, -1: ops.recip}.get(exponent)
    if made is not None:
        return made(x)
    return ops.mul(ops.mul(x, x), x) if exponent == 3 and x.dtype not in HALVES else None


@lowers("square")
def square(c: Any, x: Any) -> Any:
    return power(c, x, 2)


@lowers("exp2")
def exp2(c: Any, x: Any) -> Any:
    (x,) = c.promote(x, kind=TO_FLOAT)
    return ops.pow(c.constant(2, x.dtype), x)


def _logarithm(name: str, base: float) -> None:
    @lowers(name)
    def lower(c: Any, x: Any) -> Any:
        (x,) = c.promote(x, kind=TO_FLOAT)
        wide = c.convert(x, "f32") if x.dtype in HALVES else x
        return c.convert(c.scaled(ops.log(wide), 1 / math.log(base)), x.dtype)


_logarithm("log2", 2)
_logarithm("log10", 10)


@lowers("erfc")
def erfc(c: Any, x: Any) -> Any:
    (x,) = c.promote(x, kind=TO_FLOAT)
    return ops.sub(c.constant(1, x.dtype), ops.erf(x))


@lowers("atan2")
def atan2(c: Any, y: Any, x: Any) -> Any:
    y, x = c.promote(y, x, kind=TO_FLOAT)
    dtype = x.dtype
    y, x = (c.convert(v, "f32" if dtype in HALVES else dtype) for v in (y, x))
    zero, infinite = c.constant(0, x.dtype), c.constant(math.inf, x.dtype)
    high, wide = ops.abs(y), ops.abs(x)
    made = ops.atan(ops.div(high, wide))  # in the first quadrant, with what the quotient can't say:
    made = ops.where(ops.logical_and(high.equal(zero), wide.equal(zero)), zero, made)
    both = ops.logical_and(high.equal(infinite), wide.equal(infinite))
    made = ops.where(both, c.constant(math.pi / 4, x.dtype), made)
    made = ops.where(_has_sign(c, x), ops.sub(c.constant(math.pi, x.dtype), made), made)
    return c.convert(ops.where(_has_sign(c, y), ops.neg(made), made), dtype)


def _has_sign(c: Any, x: Any) -> Any:
    """Whether a number is below zero, or -0.0."""
    zero = c.constant(0, x.dtype)
    return ops.logical_or(ops.less(x, zero), ops.logical_and(x.equal(zero), ops.less(ops.recip(x), zero)))


@lowers("addcmul")
def addcmul(c: Any, x: Any, first: Any, second: Any, *, value: Any = 1) -> Any:
    dtype = promoted(x, first, second)
    x, first, second = (c.convert(v, "f32" if dtype in HALVES else dtype) for v in (x, first, second))
    return c.convert(ops.add(x, times(c, ops.mul(first, second), value)), dtype)


@lowers("addcdiv")
def addcdiv(c: Any, x: Any, first: Any, second: Any, *, value: Any = 1) -> Any:
    dtype = promoted(x, first, second)
    x, first, second = (c.convert(v, "f32" if dtype in HALVES else dtype) for v in (x, first, second))
    return c.convert(ops.add(x, times(c, ops.div(first, second), value)), dtype)


@lowers("lerp.Scalar", "lerp.Tensor")
def lerp(c: Any, x: Any, end: Any, weight: Any) -> Any:
    span = ops.sub(end, x)
    if not isinstance(weight, _kiln.Value):
        if weight < 0.5:
            return ops.add(x, c.scaled(span, weight))
        return ops.sub(end, c.scaled(span, 1 - weight))
    high = ops.sub(end, ops.mul(span, ops.sub(c.constant(1, x.dtype), weight)))
    return ops.where(ops.less(weight, 0.5), ops.add(x, ops.mul(span, weight)), high)


@lowers("xlogy.Tensor", "xlogy.Scalar_Self", "xlogy.Scalar_Other")
def xlogy(c: Any, x: Any, y: Any) -> Any:
    x, y = c.promote(x, y, kind=TO_FLOAT)
    zero = c.constant(0, x.dtype)
    none = ops.logical_and(x.equal(zero), ops.logical_not(ops.is_nan(y)))
    return ops.where(none, zero, ops.mul(x, ops.log(y)))


@lowers("logaddexp")
def logaddexp(c: Any, x: Any, y: Any) -> Any:
    x, y = c.promote(x, y, kind=TO_FLOAT)
    gap = ops.where(x.equal(y), c.constant(0, x.dtype), ops.abs(ops.sub(x, y)))
    return ops.add(ops.max(x, y), ops.log1p(ops.exp(ops.neg(gap))))


@lowers("logit")
def logit(c: Any, x: Any, eps: Any = None) -> Any:
    (x,) = c.promote(x, kind=TO_FLOAT)
    if eps is not None:
        x = ops.clip(x, c.constant(eps, x.dtype), c.constant(1 - eps, x.dtype))
    return ops.log(ops.div(x, ops.sub(c.constant(1, x.dtype), x)))
