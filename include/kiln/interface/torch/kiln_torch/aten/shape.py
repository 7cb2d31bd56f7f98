"""Views and copies: no element changes."""

from __future__ import annotations

import math
from typing import Any

from ... import ops
from .table import lowers


@lowers("detach", "alias", "clone", "contiguous", "lift", "lift_fresh", "lift_fresh_copy")
def identity(c: Any, x: Any, **how: Any) -> Any:
    return x


@lowers("view", "_unsafe_view", "reshape", "_reshape_alias", "view_copy")
def view(c: Any, x: Any, size: Any, stride: Any = None) -> Any:
    return x.reshape(c.resolved(x, size))


@lowers("permute", "permute_copy")
def permute(c: Any, x: Any, dims: Any) -> Any:
    rank = len(x.shape)
    return x.transpose([d % rank for d in dims]) if rank else x


@lowers("transpose.int", "transpose_copy.int")
def transpose(c: Any, x: Any, first: int, second: int) -> Any:
    order = list(range(len(x.shape)))
    if order:
        order[first], order[second] = order[second], order[first]
    return x.transpose(order) if order else x


@lowers("t", "t_copy")
def t(c: Any, x: Any) -> Any:
    return x.transpose([1, 0]) if len(x.shape) == 2 else x
