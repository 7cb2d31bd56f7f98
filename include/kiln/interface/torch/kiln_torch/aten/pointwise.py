"""Arithmetic, comparisons and elementary functions."""

from __future__ import annotations

import math
from typing import Any

from ... import ops
from ..types import FLOATS, Kind
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
for _name in ("selu", "mish", "sign"):
    _unary(_name, _name)


@lowers("abs", "sgn")
def absolute(c: Any, x: Any) -> Any:
    return x if x.dtype == "bool" else (ops.sign if c.name == "aten::sgn" else ops.abs)(x)


@lowers("relu")
def relu(c: Any, x: Any) -> Any:
    return x.relu()


def _whole(name: str) -> None:
    function = getattr(ops, name)

    @lowers(name)
    def lower(c: Any, x: Any) -> Any:
        return function(x) if x.dtype in FLOATS else x


for _name in ("ceil", "floor", "round"):
    _whole(_name)


def truncated(x: Any) -> Any:
    """x toward zero."""
    return ops.where(ops.less(x, 0), ops.ceil(x), ops.floor(x)) if x.dtype in FLOATS else x


@lowers("trunc", "fix")
def trunc(c: Any, x: Any) -> Any:
    return truncated(x)


@lowers("add.Tensor", "add.Scalar")
def add(c: Any, x: Any, other: Any, alpha: Any = 1) -> Any:
    dtype, (x, y) = c.wide(x, other)
    if alpha != 1:
        y = c.scaled(y, alpha)
    if dtype == "bool":
        return ops.logical_or(x, y)
    return c.convert(ops.add(x, y), dtype)


@lowers("sub.Tensor", "sub.Scalar")
def sub(c: Any, x: Any, other: Any, alpha: Any = 1) -> Any:
    dtype, (x, y) = c.wide(x, other)
    return c.convert(ops.sub(x, y if alpha == 1 else c.scaled(y, alpha)), dtype)


@lowers("rsub.Tensor", "rsub.Scalar")
def rsub(c: Any, x: Any, other: Any, alpha: Any = 1) -> Any:
    dtype, (x, y) = c.wide(x, other)
    return c.convert(ops.sub(y, x if alpha == 1 else c.scaled(x, alpha)), dtype)


@lowers("mul.Tensor", "mul.Scalar")
def mul(c: Any, x: Any, other: Any) -> Any:
    dtype, (x, y) = c.wide(x, other)
    return ops.logical_and(x, y) if dtype == "bool" else c.convert(ops.mul(x, y), dtype)


@lowers("div.Tensor", "div.Scalar")
def div(c: Any, x: Any, other: Any) -> Any:
    dtype, (x, y) = c.wide(x, other, kind=TO_FLOAT)
    return c.convert(ops.div(x, y), dtype)
