"""Ops whose computation is a Python function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from . import _kiln


class TensorType(NamedTuple):
    """A dtype and a shape, whose extents are numbers or Dims."""

    dtype: str
    shape: tuple[Any, ...]


class CustomOp:
    """An op of the user's own: called with Values it appends itself to their program, with arrays it computes."""

    def __init__(self, name: str, compute: Callable[..., Any]) -> None:
        self.name = name
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __call__(self, *operands: Any, **attributes: Any) -> Any:
        if any(isinstance(x, _kiln.Value) for x in operands):
            return _kiln._custom_op(self.name, *operands, **attributes)
        return self.compute(*operands, **attributes)

    def __repr__(self) -> str:
        return f"kiln.CustomOp({self.name!r})"


def custom_op(
    name: str, *, shape: Callable[..., Any] | None = None, pure: bool = True
) -> Callable[[Callable[..., Any]], CustomOp]:
    """Makes an op of a function of numpy arrays, for the life of the process: `@kiln.custom_op("my.domain::Swish")`.

    ONNX models that are read later may hold it under that domain and type. The function's keywords are the op's
    attributes: numbers, text, or lists of these (a list of one is its element). `shape` tells results from operands: it
    is called with a TensorType for each and the attributes, and gives a TensorType or a list of them; without it, the
    result has the first operand's type. `pure`: equal operands give equal results, so that kiln may compute it
    beforehand. The function gets copies, may be called by several threads, and runs on the CPU for every target."""

    def define(compute: Callable[..., Any]) -> CustomOp:
        def rule(operands: Sequence[tuple[str, tuple[Any, ...]]], attributes: dict[str, Any]) -> list[Any]:
            types = [TensorType(*o) for o in operands]
            if shape is None:
                return types[:1]
            made = shape(*types, **attributes)
            return [made] if isinstance(made, tuple) else list(made)

        def run(operands: Sequence[_kiln.Tensor], attributes: dict[str, Any]) -> list[Any]:
            made = compute(*(o.numpy() for o in operands), **attributes)
            return list(made) if isinstance(made, (list, tuple)) else [made]

        domain, _, kind = name.rpartition("::")
        _kiln._define_op(domain, kind, rule, run, pure)
        return CustomOp(name, compute)

    return define
