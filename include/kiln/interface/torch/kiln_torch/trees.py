"""Structures of tensors: those of PyTorch's pytrees, and dataclasses and dicts of other types in them."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict
from typing import Any, NamedTuple

from torch.utils import _pytree

from .. import _kiln


class _Kind(NamedTuple):
    """What an object is made again of."""

    type: Any
    names: tuple[str, ...]  # attributes, which are the first parts
    entries: tuple[tuple[Any, int], ...]  # of a dict: keys, and the parts that they have
    factory: Any  # of a defaultdict


class _Opened:
    """An object as its parts."""

    def __init__(self, kind: _Kind, parts: list[Any]) -> None:
        self.kind, self.parts = kind, parts


def _base(kind: Any) -> Any:
    """The type that holds the elements of a dataclass or dict."""
    return next((b for b in (OrderedDict, defaultdict, dict) if issubclass(kind, b)), object)


def _close(parts: Any, kind: _Kind) -> Any:
    """The object as it was: neither its constructor nor what it overrides runs."""
    base = _base(kind.type)
    try:
        made: Any = base.__new__(kind.type)
    except TypeError as why:
        raise _kiln.ArgumentError(f"a dataclass or dict that is made of fields and items alone: found {kind.type.__qualname__}") from why
    if base is defaultdict:
        defaultdict.__init__(made, kind.factory)
    for name, x in zip(kind.names, parts):
        object.__setattr__(made, name, x)
    for key, at in kind.entries:
        base.__setitem__(made, key, parts[at])
    return made


_register = getattr(_pytree, "register_pytree_node", None) or _pytree._register_pytree_node
_register(_Opened, lambda x: (x.parts, x.kind), _close)


def _parts(x: Any, fields: tuple[str, ...]) -> _Opened:
    """An object as its attributes and items. An item that an attribute is, too, is that part."""
    base = _base(type(x))
    names = (*(name for name in fields if hasattr(x, name)), *(name for name in getattr(x, "__dict__", ()) if name not in fields))
    values, entries = [getattr(x, name) for name in names], []
    places = {id(value): at for at, value in enumerate(values)}
    for key, value in base.items(x) if base is not object else ():
        entries.append((key, places.get(id(value), len(values))))
        if id(value) not in places:
            values.append(value)
    factory = x.default_factory if base is defaultdict else None
    return _Opened(_Kind(type(x), names, tuple(entries), factory), list(map(_open, values)))


def _open(x: Any) -> Any:
    kind = type(x)
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return _parts(x, tuple(f.name for f in dataclasses.fields(x)))
    if kind in (list, tuple):
        return kind(map(_open, x))
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return kind(*map(_open, x))
    if kind in (dict, OrderedDict):
        return kind((key, _open(value)) for key, value in x.items())
    if isinstance(x, dict) and kind not in _pytree.SUPPORTED_NODES:
        return _parts(x, ())
    return x


def tree_flatten(x: Any) -> tuple[list[Any], Any]:
    """The leaves of a structure, and what tree_unflatten() puts them together by."""
    flat, spec = _pytree.tree_flatten(_open(x))
    return flat, spec


def tree_unflatten(leaves: Any, spec: Any) -> Any:
    """The structure of these leaves."""
    return _pytree.tree_unflatten(leaves, spec)
