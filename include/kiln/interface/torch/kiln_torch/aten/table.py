"""The table from PyTorch's operators to functions that write them in kiln's ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Optional, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Entry(NamedTuple):
    """A lowering, and the reason for which it can't take some arguments: `check` gets the lowering's own arguments with
    tensors that have no data, and gives None or the reason. `makes` is how many of the results it makes, the first ones;
    None for all."""

    lower: Callable[..., Any]
    check: Optional[Callable[..., Optional[str]]]
    makes: Optional[int]


table: dict[str, Entry] = {}


def lowers(
    *names: str, check: Callable[..., Optional[str]] | None = None, makes: int | None = None
) -> Callable[[F], F]:
    """Registers a lowering by overload: `add.Tensor` is `aten::add.Tensor`, `relu` its default overload, and a name
    with `::` is of another namespace."""

    def register(function: F) -> F:
        for name in names:
            key = name if "::" in name else "aten::" + name
            if key in table:
                raise ValueError(f"{key} is lowered twice")
            table[key] = Entry(function, check, makes)
        return function

    return register


def name_of(overload: Any) -> str:
    """`aten::add.Tensor` of torch.ops.aten.add.Tensor; `aten::relu` of a default overload."""
    name: str = overload.name()
    return name[: -len(".default")] if name.endswith(".default") else name
