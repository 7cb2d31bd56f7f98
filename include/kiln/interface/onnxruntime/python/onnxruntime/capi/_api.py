"""The functions of ONNX Runtime's C interface as Python functions: a status that is an error is raised."""

from __future__ import annotations

import ctypes
from typing import Any, Callable

from . import _library
from ._errors import error_of
from ._slots import COMPILE_SLOTS, SLOTS, Slot

_TYPES: dict[str, Any] = {
    "s": ctypes.c_void_p,
    "v": None,
    "p": ctypes.c_void_p,
    "i": ctypes.c_int,
    "u": ctypes.c_uint32,
    "z": ctypes.c_size_t,
    "l": ctypes.c_int64,
    "b": ctypes.c_bool,
}

library, library_path = _library.load()
_address, version = _library.table(library, library_path)


def raise_status(status: int) -> None:
    """Raises a status, which is released."""
    code = api.status_code_of(status)
    message = text(api.status_message(status))
    api.release_status(status)
    raise error_of(code, message)


def _check(status: int | None, _function: Any, _arguments: Any) -> None:
    if status:
        raise_status(status)


class _Functions:
    """Each function of a table by the name in `_slots`."""

    def __init__(self, table: int, slots: list[Slot], checked: bool) -> None:
        addresses = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))
        for slot in slots:
            # A function that returns at once keeps the interpreter's lock: to pass it on and back takes longer.
            kind: Any = ctypes.CFUNCTYPE if slot.long else ctypes.PYFUNCTYPE
            address = addresses[slot.index]
            function: Any = kind(_TYPES[slot.result], *[_TYPES[p] for p in slot.parameters])(address or 0)
            if slot.result == "s" and checked:
                function.errcheck = _check
            setattr(self, slot.name, function)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(name)


api = _Functions(_address, SLOTS, checked=True)
# For what every run does: the caller looks at the status, which costs less than a call of `_check` would.
unchecked = _Functions(_address, SLOTS, checked=False)
compile_api = _Functions(api.compile_api(), COMPILE_SLOTS, checked=True)


def text(address: int | None) -> str:
    """A C string at an address, which stays ONNX Runtime's."""
    return ctypes.string_at(address).decode(errors="replace") if address else ""


def pointer_from(function: Callable[..., Any], *arguments: Any) -> int:
    """The pointer that a function writes where its last argument points to; 0 for null."""
    out = ctypes.c_void_p()
    function(*arguments, ctypes.byref(out))
    return out.value or 0


def int_from(function: Callable[..., Any], *arguments: Any) -> int:
    """The int, or the size, that a function writes where its last argument points to."""
    out = ctypes.c_int64(0)
    function(*arguments, ctypes.byref(out))
    return int(out.value)


allocator = pointer_from(api.default_allocator)
cpu_memory = pointer_from(api.cpu_memory, 0, 0)


def owned_text(function: Callable[..., Any], *arguments: Any) -> str:
    """A string that a function allocates: it is freed."""
    address = pointer_from(function, *arguments)
    out = text(address)
    if address:
        api.free(allocator, address)
    return out


def pointers_from(function: Callable[..., Any], *arguments: Any) -> list[int]:
    """The pointers of an array that stays ONNX Runtime's, whose address and length a function writes."""
    out, count = ctypes.c_void_p(), ctypes.c_size_t()
    function(*arguments, ctypes.byref(out), ctypes.byref(count))
    return list(ctypes.cast(out, ctypes.POINTER(ctypes.c_void_p))[: count.value]) if count.value else []


def pairs_at(address: int) -> dict[str, str]:
    """Keys and values of an OrtKeyValuePairs, which stays ONNX Runtime's."""
    keys, values, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    api.pairs_of(address, ctypes.byref(keys), ctypes.byref(values), ctypes.byref(count))
    if not count.value:
        return {}
    kind = ctypes.POINTER(ctypes.c_void_p)
    names, texts = ctypes.cast(keys, kind), ctypes.cast(values, kind)
    return {text(names[i]): text(texts[i]) for i in range(count.value)}


def c_strings(strings: list[str]) -> Any:
    """A C array of C strings."""
    return (ctypes.c_char_p * len(strings))(*[s.encode() for s in strings])


def c_pointers(pointers: list[int]) -> Any:
    """A C array of pointers."""
    return (ctypes.c_void_p * len(pointers))(*pointers)
