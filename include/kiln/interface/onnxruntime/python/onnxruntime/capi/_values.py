"""ONNX Runtime's values from Python's objects and back: arrays, strings, sequences, maps, optionals."""

from __future__ import annotations

import ctypes
from typing import Any, List, Sequence, Tuple

import numpy as np

from . import _strings
from ._api import allocator, api, c_pointers, cpu_memory, int_from, pointer_from, raise_status, unchecked
from ._element_types import DTYPES, NUMBERS_BY_NAME, STRING, dtype_of, number_of

# Memory of a program's: its first address, the one after its last, and what keeps it.
Span = Tuple[int, int, Any]
Spans = List[Span]
TENSOR, SEQUENCE, MAP, SPARSE, OPTIONAL = 1, 2, 3, 5, 6

_byref = ctypes.byref
_tensor_of_data, _tensor_info = unchecked.tensor_of_data, unchecked.tensor_info_of_value
_rank, _extents_of, _data = unchecked.rank, unchecked.extents, unchecked.tensor_data
_release_info, _release = api.release_tensor_info, api.release_value
_EXTENTS = [ctypes.c_int64 * rank for rank in range(16)]


def extents_type(rank: int) -> Any:
    """The C array of a shape's extents."""
    return _EXTENTS[rank] if rank < len(_EXTENTS) else ctypes.c_int64 * rank


class _Holder:
    """Memory of a value that numpy's arrays show: it lives as long as they do."""

    __slots__ = ("__array_interface__", "value")

    def __init__(self, value: int, address: int, shape: tuple[int, ...], typestr: str) -> None:
        self.value = value
        self.__array_interface__ = {"version": 3, "data": (address, False), "shape": shape, "typestr": typestr}

    def __del__(self, release: Any = api.release_value) -> None:
        release(self.value)


def usable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array that ONNX Runtime can read in place: itself, or a copy in row-major order and this machine's byte order."""
    flags = array.flags
    if flags.c_contiguous and flags.aligned and array.dtype.isnative:
        return array
    return array.astype(array.dtype.newbyteorder("="), order="C", copy=True)


def tensor_over(address: int, nbytes: int, shape: tuple[int, ...], element_type: int) -> int:
    """A new value over memory that the caller keeps."""
    rank = len(shape)
    out = ctypes.c_void_p()
    status = _tensor_of_data(cpu_memory, address, nbytes, extents_type(rank)(*shape), rank, element_type, _byref(out))
    if status:
        raise_status(status)
    return out.value or 0


def from_array(array: np.ndarray[Any, Any], keep: Spans, element_type: int | None = None) -> int:
    """A new value over an array's memory; what must live as long is appended to `keep`."""
    number = number_of(array.dtype) if element_type is None else element_type
    if number == STRING:
        return _strings.make(array)
    array = usable(array)
    address, nbytes = array.__array_interface__["data"][0], array.nbytes
    keep.append((address, address + nbytes, array))
    return tensor_over(address, nbytes, array.shape, number)


def _composite(parts: list[int], kind: int) -> int:
    try:
        return pointer_from(api.create_value, c_pointers(parts), len(parts), kind)
    finally:
        for part in parts:
            api.release_value(part)


def _inner(declared: str) -> str:
    return declared[declared.index("(") + 1 : -1]


def _array(item: Any, declared: str, name: str) -> np.ndarray[Any, Any]:
    if isinstance(item, np.ndarray):
        return item
    number = NUMBERS_BY_NAME.get(_inner(declared)) if declared.startswith("tensor(") else None
    if number is None:
        raise RuntimeError(f"input '{name}' of type {declared}: found {type(item).__name__}")
    return np.asarray(item, dtype=DTYPES.get(number))


def _map_parts(item: dict[Any, Any], declared: str, keep: Spans) -> list[int]:
    key, value = _inner(declared).split(",", 1)
    keys = np.array(list(item.keys()), dtype=DTYPES[NUMBERS_BY_NAME[key]])
    values = np.array(list(item.values()), dtype=DTYPES[NUMBERS_BY_NAME[_inner(value)]])
    return [from_array(keys, keep), from_array(values, keep)]


def to_value(item: Any, declared: str, name: str, keep: Spans) -> int:
    """A new value of an input's declared type from a Python object."""
    if isinstance(item, np.ndarray):
        return from_array(item, keep)
    if item is None:
        raise RuntimeError(f"input '{name}' of type {declared}: found None, which stands for an optional input alone")
    if declared.startswith("optional("):
        declared = _inner(declared)
    if declared.startswith("seq(") and isinstance(item, (list, tuple)):
        return _composite([to_value(part, _inner(declared), name, keep) for part in item], SEQUENCE)
    if declared.startswith("map(") and isinstance(item, dict):
        return _composite(_map_parts(item, declared, keep), MAP)
    return from_array(_array(item, declared, name), keep)


def shape_and_type(value: int) -> tuple[tuple[int, ...], int]:
    """A tensor's extents and element type."""
    info = pointer_from(api.tensor_info_of_value, value)
    try:
        rank = int_from(api.rank, info)
        shape = extents_type(rank)()
        api.extents(info, shape, rank)
        return tuple(shape), int_from(api.element_type, info)
    finally:
        api.release_tensor_info(info)


def keepers(value: int, is_input: bool, kept: Spans) -> Spans:
    """Those of the memory that was given to a run which a result uses, because it is an input: a tensor by its address, all
    else by `is_input`, whether it has an input's name."""
    if not kept or not has_value(value):
        return []
    if int_from(api.value_type_of_value, value) != TENSOR:
        return list(kept) if is_input else []
    address = pointer_from(api.tensor_data, value)
    return [s for s in kept if s[0] <= address < s[1]]


def array_over(value: int, typestr: str, kept: Sequence[Span] = ()) -> np.ndarray[Any, Any]:
    """An array over the memory of a tensor, which is the array's from then on; a copy where the memory is among `kept`, that
    of a run's inputs. The statuses are errors only for values that are no tensors, and the functions only read then."""
    info, rank, address = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_void_p()
    status = _tensor_info(value, _byref(info)) or _data(value, _byref(address)) or _rank(info, _byref(rank))
    if not status:
        extents = extents_type(rank.value)()
        status = _extents_of(info, extents, rank.value)
    _release_info(info)
    if status:
        _release(value)
        raise_status(status)
    if address.value and 0 not in extents:
        out = np.asarray(_Holder(value, address.value, tuple(extents), typestr))
        for first, end, _ in kept:
            if first <= address.value < end:
                return out.copy()
        return out
    _release(value)
    return np.empty(tuple(extents), typestr)


def tensor_to_array(value: int, what: str, kept: Sequence[Span] = ()) -> np.ndarray[Any, Any]:
    """A tensor's elements as an array over its memory (strings and memory among `kept`: a copy). The value is the array's
    from then on."""
    try:
        shape, number = shape_and_type(value)
        if number == STRING:
            out = _strings.read(value, shape)
            api.release_value(value)
            return out
        typestr = dtype_of(number, what).str
    except BaseException:
        api.release_value(value)
        raise
    return array_over(value, typestr, kept)


def _part(value: int, index: int) -> int:
    return pointer_from(api.part_of_value, value, index, allocator)


def to_python(value: int | None, what: str, kept: Sequence[Span] = ()) -> Any:
    """A value as Python's object: an array, a list, a dict, or None for an optional without a value. It is released, or the
    array's from then on."""
    if not value or not has_value(value):
        if value:
            api.release_value(value)
        return None
    kind = int_from(api.value_type_of_value, value)
    if kind == TENSOR:
        return tensor_to_array(value, what, kept)
    try:
        if kind == SEQUENCE:
            return [to_python(_part(value, i), what, kept) for i in range(int_from(api.part_count, value))]
        if kind == MAP:
            keys, values = (to_python(_part(value, i), what) for i in range(2))
            return dict(zip(keys.tolist(), values.tolist()))
        raise NotImplementedError(f"{what} is neither a tensor, a sequence nor a map: read it as an OrtValue")
    finally:
        api.release_value(value)


def has_value(value: int | None) -> bool:
    """Whether a value that may be an optional has one."""
    if not value:
        return False
    out = ctypes.c_int(1)
    api.has_value(value, _byref(out))
    return bool(out.value)
