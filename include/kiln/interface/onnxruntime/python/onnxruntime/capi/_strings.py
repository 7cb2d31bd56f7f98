"""Tensors of strings: ONNX Runtime's bytes and numpy's objects."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ._api import allocator, api, int_from, pointer_from


def _bytes(item: Any) -> bytes:
    return item if isinstance(item, bytes) else str(item).encode()


def fill(value: int, array: np.ndarray[Any, Any]) -> None:
    """Copies an array's strings into a tensor of its shape."""
    out = ctypes.c_void_p()
    for i, item in enumerate(array.ravel().tolist()):
        data = _bytes(item)
        api.string_element(value, i, len(data), ctypes.byref(out))
        ctypes.memmove(out, data, len(data))


def make(array: np.ndarray[Any, Any]) -> int:
    """A new tensor of an array's strings."""
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    value = pointer_from(api.create_tensor, allocator, shape, array.ndim, 8)
    fill(value, array)
    return value


def read(value: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """A tensor's strings as an array of objects."""
    count = int(np.prod(shape, dtype=np.int64))
    out = np.empty(count, dtype=np.object_)
    if count:
        length = int_from(api.string_bytes, value)
        data, offsets = ctypes.create_string_buffer(length + 1), (ctypes.c_size_t * count)()
        api.string_content(value, data, length, offsets, count)
        ends = [*offsets[1:], length]
        out[:] = [data.raw[begin:end].decode(errors="surrogateescape") for begin, end in zip(offsets, ends)]
    return out.reshape(shape)
