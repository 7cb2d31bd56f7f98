"""What a model says of its inputs and outputs."""

from __future__ import annotations

import ctypes
from typing import Callable, Union

from ._api import allocator, api, int_from, owned_text, pointer_from, text
from ._element_types import NAMES
from ._values import MAP, OPTIONAL, SEQUENCE, SPARSE, TENSOR

Dimension = Union[int, str, None]


class NodeArg:
    """An input or output: its name, type ("tensor(float)") and shape, whose dimensions are an int, a name or None."""

    def __init__(self, name: str, type_: str, shape: list[Dimension]) -> None:
        self.name, self.type, self.shape = name, type_, shape

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


def _shape(info: int) -> list[Dimension]:
    if not api.has_rank(info):
        return []
    rank = int_from(api.rank, info)
    extents, names = (ctypes.c_int64 * rank)(), (ctypes.c_void_p * rank)()
    api.extents(info, extents, rank)
    api.extent_names(info, names, rank)
    return [e if e >= 0 else (text(n) or None) for e, n in zip(extents, names)]


def _own_type(function: Callable[..., object], of: int) -> str:
    inner = pointer_from(function, of)
    try:
        return type_text(inner)[0]
    finally:
        api.release_type(inner)


def type_text(info: int) -> tuple[str, list[Dimension]]:
    """The text of a type, and its shape where it is a tensor's."""
    kind = int_from(api.value_type_of, info)
    if kind in (TENSOR, SPARSE):
        tensor = pointer_from(api.tensor_info_of_type, info)
        name = NAMES.get(int_from(api.element_type, tensor), "undefined")
        return f"{'sparse_tensor' if kind == SPARSE else 'tensor'}({name})", _shape(tensor)
    if kind == SEQUENCE:
        return f"seq({_own_type(api.sequence_element, pointer_from(api.sequence_of_type, info))})", []
    if kind == MAP:
        of = pointer_from(api.map_of_type, info)
        return f"map({NAMES[int_from(api.map_key_type, of)]},{_own_type(api.map_value_type, of)})", []
    if kind == OPTIONAL:
        return f"optional({_own_type(api.optional_content, pointer_from(api.optional_of_type, info))})", []
    return "opaque", []


def node_args(session: int, part: str) -> list[NodeArg]:
    """A session's inputs ("input"), outputs ("output") or initializers that a feed may replace ("initializer")."""
    count = int_from(getattr(api, f"session_{part}_count"), session)
    out = []
    for i in range(count):
        name = owned_text(getattr(api, f"session_{part}_name"), session, i, allocator)
        info = pointer_from(getattr(api, f"session_{part}_type"), session, i)
        try:
            out.append(NodeArg(name, *type_text(info)))
        finally:
            api.release_type(info)
    return out
