"""Products of matrices, and layers of them."""

from __future__ import annotations

import math
from typing import Any

from ... import ops
from ..types import HALVES
from .table import lowers


def plus_scaled(c: Any, added: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """beta * added + alpha * product; where beta is 0, what is added may be anything."""
    if alpha != 1:
        product = c.scaled(product, alpha)
    if beta == 0:
        return product
    return ops.add(product, added if beta == 1 else c.scaled(added, beta))


@lowers("mm")
def mm(c: Any, x: Any, y: Any) -> Any:
    return x.dot(y)


@lowers("bmm")
def bmm(c: Any, x: Any, y: Any) -> Any:
    # a product of ranks above 3 comes with its batches in one dim: apart, it is next to what is done to it there
    for lead, a in _apart(c, x):
        for other, b in _apart(c, y):
            if lead == other:
                product = _in_two(a, lead).dot(_in_two(b, lead))
                return c.reshaped(product, [x.shape[0], x.shape[1], y.shape[2]])
    return x.dot(y)


def _apart(c: Any, x: Any) -> list[tuple[list[Any], Any]]:
    """What the matrices x[n, rows, columns] were made of, with the last batch dim and the product of those before."""
    forms = [f for f in c.forms(x) if len(f.shape) > 3 and f.shape[-2:] == x.shape[-2:]]
    return [([math.prod(f.shape[:-3]), f.shape[-3]], f) for f in forms]


def _in_two(x: Any, lead: list[Any]) -> Any:
    return x if len(x.shape) == 4 else x.reshape([*lead, *x.shape[-2:]])


@lowers("addmm", "baddbmm")
def addmm(c: Any, added: Any, x: Any, y: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return plus_scaled(c, added, x.dot(y), beta, alpha)


@lowers("addbmm")
def addbmm(c: Any, added: Any, x: Any, y: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return plus_scaled(c, added, x.dot(y).reduce_sum([0]).squeeze([0]), beta, alpha)


@lowers("mv")
def mv(c: Any, x: Any, y: Any) -> Any:
    return x.dot(y.unsqueeze([1])).squeeze([1])


@lowers("addmv")
def addmv(c: Any, added: Any, x: Any, y: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return plus_scaled(c, added, mv(c, x, y), beta, alpha)


@lowers("dot", "vdot", "inner")
def dot(c: Any, x: Any, y: Any) -> Any:
    if c.name == "aten::inner":
        if not x.shape or not y.shape:
            return ops.mul(x, y)
        rank = len(y.shape)
        return matmul(c, x, y.transpose(list(range(rank - 2)) + [rank - 1, rank - 2]) if rank > 1 else y)
    return x.unsqueeze([0]).dot(y.unsqueeze([1])).reshape([])


@lowers("outer", "ger")
def outer(c: Any, x: Any, y: Any) -> Any:
    x, y = c.promote(x, y)
    return ops.mul(x.unsqueeze([1]), y.unsqueeze([0]))


@lowers("addr")
def addr(c: Any, added: Any, x: Any, y: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return plus_scaled(c, added, outer(c, x, y), beta, alpha)


@lowers("matmul")
def matmul(c: Any, x: Any, y: Any) -> Any:
    if len(x.shape) == 1 and len(y.shape) == 1:
        return x.unsqueeze([0]).dot(y.unsqueeze([1])).reshape([])
    if len(x.shape) == 1:
        made = x.unsqueeze([0])
        return _batched(made, y).squeeze([len(y.shape) - 2])
    if len(y.shape) == 1:
        return _batched(x, y.unsqueeze([1])).squeeze([len(x.shape) - 1])
    return _batched(x, y)


def _batched(x: Any, y: Any) -> Any:
    if len(y.shape) == 2 and len(x.shape) > 2:  # one matrix for all: one product of all rows
        lens = list(x.shape)
        rows = x.reshape([math.prod(lens[:-1]), lens[-1]])
        return rows.dot(y).reshape(lens[:-1] + [y.shape[1]])
    return x.dot(y)


@lowers("linear")
def linear(c: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    if len(weight.shape) == 1:
        y = matmul(c, x, weight)
    else:
        y = matmul(c, x, weight.transpose([1, 0]))
    return y if bias is None else ops.add(y, bias)


@lowers("cdist", "_cdist_forward", check=lambda x, y, p, *how: "its order is not 1 or 2" if p not in (1, 2) else None)
def cdist(c: Any, x: Any, y: Any, p: float = 2, mode: Any = None) -> Any:
    rank = len(x.shape)
    apart = ops.sub(x.unsqueeze([rank - 1]), y.unsqueeze([rank - 2]))
    op = ops.reduce_l2 if p == 2 else ops.reduce_l1
    return op(apart, axes=[rank]).squeeze([rank])


@lowers("linalg_inv", "inverse")
def inverse(c: Any, x: Any) -> Any:
    wide = c.convert(x, "f32") if x.dtype in HALVES else x
    return c.convert(ops.inverse(wide), x.dtype)


@lowers("linalg_inv_ex", makes=1)
def inverse_with_info(c: Any, x: Any, *, check_errors: bool = False) -> Any:
    return ops.inverse(x), None


@lowers("linalg_det", "det")
def det(c: Any, x: Any) -> Any:
    return ops.det(x)


@lowers("_linalg_det", makes=1)
def det_and_factors(c: Any, x: Any) -> Any:
    return ops.det(x), None, None
