"""Structures of tensors: those of PyTorch's pytrees, and dataclasses and dicts of other types in them."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from typing import Any, NamedTuple

from torch.utils import _pytree


class _Kind(NamedTuple):
    """What an object is made again of."""

    type: Any
    names: tuple[Any, ...]


class _Opened:
    """An object as its parts."""

    def __init__(self, kind: _Kind, parts: list[Any]) -> None:
        self.kind, self.parts = kind, parts


def _close(parts: Any, kind: _Kind) -> Any:
    named = dict(zip(kind.names, parts))
    if not dataclasses.is_dataclass(kind.type):
        return kind.type(named)
    taken = {f.name for f in dataclasses.fields(kind.type) if f.init}
    made: Any = kind.type(**{name: x for name, x in named.items() if name in taken})
    for name, x in named.items():
        if name not in taken:
            object.__setattr__(made, name, x)
    return made


_register = getattr(_pytree, "register_pytree_node", None) or _pytree._register_pytree_node
_register(_Opened, lambda x: (x.parts, x.kind), _close)


def _open(x: Any) -> Any:
    kind = type(x)
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        names = tuple(f.name for f in dataclasses.fields(x))
        return _Opened(_Kind(kind, names), [_open(getattr(x, name)) for name in names])
    if kind in (list, tuple):
        return kind(map(_open, x))
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return kind(*map(_open, x))
    if kind in (dict, OrderedDict):
        return kind((key, _open(value)) for key, value in x.items())
    if isinstance(x, dict) and kind not in _pytree.SUPPORTED_NODES:
        return _Opened(_Kind(kind, tuple(x)), [_open(value) for value in x.values()])
    return x


def tree_flatten(x: Any) -> tuple[list[Any], Any]:
    """The leaves of a structure, and what tree_unflatten() puts them together by."""
    flat, spec = _pytree.tree_flatten(_open(x))
    return flat, spec


def tree_unflatten(leaves: Any, spec: Any) -> Any:
    """The structure of these leaves."""
    return _pytree.tree_unflatten(leaves, spec)
