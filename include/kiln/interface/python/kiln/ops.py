"""kiln's ops by name: `kiln.ops.max(x, y)`. Keywords are attributes; `help(kiln.ops.slice)` lists them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _kiln


def _function(name: str, kind: str, inputs: int, attributes: list[tuple[str, str, str]]) -> Callable[..., _kiln.Value]:
    def op(*operands: Any, **given: Any) -> _kiln.Value:
        return _kiln._op(name, *operands, **given)

    op.__name__ = op.__qualname__ = name
    count = {-1: "operands as its rule says", 1: "1 operand"}.get(inputs, f"{inputs} operands")
    lines = [f"The op {name} ({kind}, {count})."]
    lines += [f"{attribute}: {of}, {default or 'empty'}" for attribute, of, default in attributes]
    op.__doc__ = "\n".join(lines)
    return op


__all__: list[str] = []
for _row in _kiln._op_table():
    globals()[_row[0]] = _function(*_row)
    __all__.append(_row[0])
