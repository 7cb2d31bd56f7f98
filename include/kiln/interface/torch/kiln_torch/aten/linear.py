"""Products of matrices, and layers of them."""

from __future__ import annotations

from typing import Any

from ... import ops
from .table import lowers


@lowers("mm", "bmm")
def mm(c: Any, x: Any, y: Any) -> Any:
    return x.dot(y)


@lowers("addmm")
def addmm(c: Any, added: Any, x: Any, y: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return plus_scaled(c, added, x.dot(y), beta, alpha)


def plus_scaled(c: Any, added: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """beta * added + alpha * product; where beta is 0, what is added may be anything."""
    if alpha != 1:
        product = c.scaled(product, alpha)
    if beta == 0:
        return product
    return ops.add(product, added if beta == 1 else c.scaled(added, beta))
