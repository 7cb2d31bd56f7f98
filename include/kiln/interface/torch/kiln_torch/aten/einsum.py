"""Sums of products by named dims."""

from __future__ import annotations

import math
from typing import Any

from ... import ops
from .reduce import reduced
from .shape import reshaped_to
from .table import lowers


class Labels:
    """An equation's labels of each operand and of the result; an ellipsis stands for labels of its own."""

    def __init__(self, equation: str, ranks: list[int]) -> None:
        sides = equation.replace(" ", "").split("->")
        terms = sides[0].split(",")
        # characters that no equation has, the last dim's last
        hidden = [chr(0x2460 + i) for i in range(max(ranks, default=0) + 1)]
        most = max((r - len(t.replace("...", "")) for t, r in zip(terms, ranks) if "..." in t), default=0)
        extra = "".join(hidden[:most])

        def spelled(term: str, rank: int) -> str:
            count = rank - len(term.replace("...", ""))
            return term.replace("...", extra[most - count :] if count else "")

        self.operands = [spelled(t, r) for t, r in zip(terms, ranks)]
        if len(sides) > 1:
            self.result = sides[1].replace("...", extra)
        else:
            every = "".join(self.operands)
            self.result = extra + "".join(sorted(ch for ch in set(every) - set(extra) if every.count(ch) == 1))


def einsum_refusal(equation: str, tensors: Any, **how: Any) -> str | None:
    """Why an einsum is none of kiln's products; None where it is one."""
    if len(tensors) > 2:
        return "it multiplies more than two tensors"
    labels = Labels(equation, [len(t.shape) for t in tensors])
    extents: dict[str, Any] = {}
    for term, t in zip(labels.operands, tensors):
        if len(set(term)) != len(term):
            return "it takes a diagonal"
        for label, n in zip(term, t.shape):
            if extents.setdefault(label, n) != n:
                return "it broadcasts extents of 1"
    return None


def _summed(x: Any, term: str, kept: str) -> tuple[Any, str]:
    """x without the dims whose labels nobody reads."""
    axes = [d for d, label in enumerate(term) if label not in kept]
    left = "".join(label for label in term if label in kept)
    return (reduced(ops.reduce_sum, x, axes, False) if axes else x), left


def _ordered(x: Any, term: str, wanted: str) -> Any:
    order = [term.index(label) for label in wanted]
    return x if order == sorted(order) else x.transpose(order)


@lowers("einsum", check=einsum_refusal)
def einsum(c: Any, equation: str, tensors: Any, **how: Any) -> Any:
    labels = Labels(equation, [len(t.shape) for t in tensors])
    tensors = c.promote(*tensors)
    if len(tensors) == 1:
        x, term = _summed(tensors[0], labels.operands[0], labels.result)
        return _ordered(x, term, labels.result)
    (a, b), (first, second), out = tensors, labels.operands, labels.result
    a, first = _summed(a, first, second + out)
    b, second = _summed(b, second, first + out)
    batch = "".join(ch for ch in out if ch in first and ch in second)
    inner = "".join(ch for ch in first if ch in second and ch not in out)
    rows = "".join(ch for ch in out if ch in first and ch not in batch)
    columns = "".join(ch for ch in out if ch in second and ch not in batch)
    extents = dict(zip(first + second, [*a.shape, *b.shape]))
    a, b = _ordered(a, first, batch + rows + inner), _ordered(b, second, batch + inner + columns)

    def lens(names: str) -> list[Any]:
        return [extents[ch] for ch in names]

    if not inner:
        a = a.reshape([*a.shape, *[1] * len(columns)])
        made = ops.mul(a, b.reshape([*lens(batch), *[1] * len(rows), *lens(columns)]))
    else:
        lead = lens(batch)
        if len(lead) > 2:
            lead = [math.prod(lead[:-1]), lead[-1]]
        height, depth, width = (math.prod(lens(names)) for names in (rows, inner, columns))
        product = reshaped_to(c, a, [*lead, height, depth]).dot(reshaped_to(c, b, [*lead, depth, width]))
        made = reshaped_to(c, product, lens(batch + rows + columns))
    return _ordered(made, batch + rows + columns, out)
