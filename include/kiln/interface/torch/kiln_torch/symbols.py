"""PyTorch's symbolic extents as kiln's."""

from __future__ import annotations

from typing import Any

import torch

from .. import _kiln

_SymInt: Any = getattr(torch, "SymInt", None) or torch._C.SymIntNode


def is_symbolic(extent: Any) -> bool:
    """Whether an extent depends on symbols."""
    return isinstance(extent, _SymInt)


def dim_of(extent: Any) -> Any:
    """An extent as a number or, where it depends on symbols, a Dim."""
    if not is_symbolic(extent):
        return int(extent)
    expression = _expression(extent)
    return int(expression) if getattr(expression, "is_number", False) else _dim(expression, _range_finder(extent))


def _expression(extent: Any) -> Any:
    node = getattr(extent, "node", None)
    node = node if node is not None else extent.get_pyobj()
    return node.expr


def _range_finder(extent: Any) -> Any:
    environment = getattr(getattr(extent, "node", None), "shape_env", None)
    return getattr(environment, "var_to_range", {})


def _dim(expression: Any, ranges: Any) -> Any:
    kind = type(expression).__name__
    if expression.is_Integer:
        return int(expression)
    if expression.is_Symbol:
        bounds = ranges.get(expression)
        low, high = (bounds.lower, bounds.upper) if bounds is not None else (0, None)
        finite = isinstance(high, int) or getattr(high, "is_Integer", False)
        most = int(high) if finite and high is not None else None
        return _kiln.symbol(str(expression), int(low), most if most is None or most < 2**31 else None)
    parts = [_dim(e, ranges) for e in expression.args]
    if kind == "Add":
        total = parts[0]
        for p in parts[1:]:
            total = total + p
        return total
    if kind == "Mul":
        total = parts[0]
        for p in parts[1:]:
            total = total * p
        return total
    if kind in ("FloorDiv", "CleanDiv"):
        return parts[0] // parts[1]
    if kind in ("Mod", "PythonMod"):
        return parts[0] % parts[1]
    raise _kiln.ArgumentError(f"an extent is made of sums, products, quotients and remainders: found {expression}")
