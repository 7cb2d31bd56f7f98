"""Ops whose computation is a Python function or C++ text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, overload

from . import _kiln


FLOATS = ("f64", "f32", "f16", "bf16")


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


@overload
def custom_op(
    name: str, *, shape: Callable[..., Any] | None = None, pure: bool = True, version: str = ""
) -> Callable[[Callable[..., Any]], CustomOp]: ...
@overload
def custom_op(
    name: str,
    *,
    source: str,
    operands: Sequence[str] = ("x",),
    attributes: Mapping[str, float] | None = None,
    dtypes: Sequence[Any] = FLOATS,
    compiler: str = "",
    version: str = "",
) -> CustomOp: ...
def custom_op(
    name: str,
    *,
    shape: Callable[..., Any] | None = None,
    pure: bool = True,
    source: str | None = None,
    operands: Sequence[str] = ("x",),
    attributes: Mapping[str, float] | None = None,
    dtypes: Sequence[Any] = FLOATS,
    compiler: str = "",
    version: str = "",
) -> CustomOp | Callable[[Callable[..., Any]], CustomOp]:
    """Makes an op, for the life of the process, of a function of numpy arrays: `@kiln.custom_op("my.domain::Swish")`,
    or of C++ text: `custom_op("my.domain::Leaky", source="return x > 0 ? x : slope * x;", attributes={"slope": 0.01})`.

    ONNX models that are read later may hold it under that domain and type. It runs on the CPU for every target.
    `version` says what it computes, another one wherever that changes: programs with an op that has none are not kept
    in a cache of compiled programs. Text has one by itself.

    Of a function, the keywords are the op's attributes: numbers, text, or lists of these (a list of one is its
    element). `shape` tells results from operands: it is called with a TensorType for each and the attributes, and gives
    a TensorType or a list of them; without it, the result has the first operand's type. `pure`: equal operands give
    equal results, so that kiln may compute it beforehand. The function gets copies, and may be called by several
    threads.

    Of text, `source` is the body of a function that returns one element for one element of each of the `operands`,
    which broadcast as numpy's. `T` is the elements' type, and <cmath>'s functions need no std::. `attributes` are
    numbers with their defaults: an int is a std::int64_t, a float a T. The text is compiled now, by `compiler`, $CXX or
    the first of g++, clang++ and c++ on the PATH, and kept in the user's cache; it runs without the interpreter's lock.
    It is for the `dtypes`; f16 and bf16 are computed in float."""
    if source is not None:
        if shape is not None or not pure:
            raise _kiln.ArgumentError("shape and pure are said of a function: an op from source is pointwise")
        return _of_source(name, source, operands, dict(attributes or {}), dtypes, compiler, version)

    def define(compute: Callable[..., Any]) -> CustomOp:
        def rule(given: Sequence[tuple[str, tuple[Any, ...]]], values: dict[str, Any]) -> list[Any]:
            types = [TensorType(*o) for o in given]
            if shape is None:
                return types[:1]
            made = shape(*types, **values)
            return [made] if isinstance(made, tuple) else list(made)

        def run(given: Sequence[_kiln.Tensor], values: dict[str, Any]) -> list[Any]:
            made = compute(*(o.numpy() for o in given), **values)
            return list(made) if isinstance(made, (list, tuple)) else [made]

        domain, _, kind = name.rpartition("::")
        _kiln._define_op(domain, kind, rule, run, pure, version)
        return CustomOp(name, compute)

    return define


def _of_source(
    name: str,
    source: str,
    operands: Sequence[str],
    attributes: dict[str, Any],
    dtypes: Sequence[Any],
    compiler: str,
    version: str,
) -> CustomOp:
    def compute(*arrays: Any, **values: Any) -> _kiln.Tensor:
        return _kiln._compute_custom_op(name, list(arrays), values)[0]

    domain, _, kind = name.rpartition("::")
    _kiln._define_source_op(domain, kind, source, operands, attributes, list(dtypes), compiler, version)
    compute.__doc__ = source
    return CustomOp(name, compute)
