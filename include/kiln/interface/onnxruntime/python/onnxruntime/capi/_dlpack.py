"""Tensors to and from DLPack's capsules, without copies."""

from __future__ import annotations

import ctypes
from typing import Any, Callable

# ONNX's number: DLPack's kind (int 0, uint 1, float 2, bfloat 4, complex 5, bool 6) and bits.
_CODES: dict[int, tuple[int, int]] = {
    1: (2, 32), 2: (1, 8), 3: (0, 8), 4: (1, 16), 5: (0, 16), 6: (0, 32), 7: (0, 64), 9: (6, 8), 10: (2, 16),
    11: (2, 64), 12: (1, 32), 13: (1, 64), 14: (5, 64), 15: (5, 128), 16: (4, 16),
}  # fmt: skip
_NUMBERS = {code: number for number, code in _CODES.items()}
CPU = (1, 0)


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_python: Any = ctypes.pythonapi
_python.PyCapsule_New.restype = ctypes.py_object
_python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_python.PyCapsule_GetPointer.restype = ctypes.c_void_p
_python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
_NAME, _USED = b"dltensor", b"used_dltensor"

_given: dict[int, Any] = {}  # what consumers hold, by the address of its struct
_Deleter: Any = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
# The same functions for a capsule that is being destroyed: a reference to it would revive it.
_pointer_of: Any = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_is_valid: Any = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))


def _forget(address: int) -> None:
    _given.pop(address, None)


def _forget_unused(capsule: int) -> None:
    """The capsule's own end: one that nobody took still owns its tensor."""
    if _is_valid(capsule, _NAME):
        _given.pop(_pointer_of(capsule, _NAME), None)


_DELETER, _DESTRUCTOR = _Deleter(_forget), _Deleter(_forget_unused)


def export(address: int, shape: tuple[int, ...], element_type: int, owner: Any) -> Any:
    """A capsule over memory that `owner` keeps."""
    if element_type not in _CODES:
        raise BufferError(f"DLPack has no element type {element_type} of ONNX's")
    extents = (ctypes.c_int64 * len(shape))(*shape)
    managed = _Managed()
    kind, bits = _CODES[element_type]
    managed.tensor = _Tensor(address, *CPU, len(shape), kind, bits, 1, extents, None, 0)
    managed.deleter = ctypes.cast(_DELETER, ctypes.c_void_p).value
    where = ctypes.addressof(managed)
    _given[where] = (managed, extents, owner)
    return _python.PyCapsule_New(where, _NAME, ctypes.cast(_DESTRUCTOR, ctypes.c_void_p).value)


class Imported:
    """A tensor of somebody else's, whose deleter is called at the end."""

    def __init__(self, capsule: Any) -> None:
        address = _python.PyCapsule_GetPointer(capsule, _NAME)
        self._managed = _Managed.from_address(address)
        tensor = self._managed.tensor
        if tensor.device_type != CPU[0]:
            raise BufferError(f"the tensor is on DLPack's device {tensor.device_type}; expected the CPU's, {CPU[0]}")
        code = (tensor.code, tensor.bits)
        if tensor.lanes != 1 or code not in _NUMBERS:
            raise BufferError(f"DLPack's type {code} of {tensor.lanes} lanes is none of ONNX's element types")
        self.shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
        self._check_strides(tensor)
        self.element_type = _NUMBERS[code]
        self.nbytes = tensor.bits // 8
        for extent in self.shape:
            self.nbytes *= extent
        self.address = (tensor.data or 0) + tensor.byte_offset
        _python.PyCapsule_SetName(capsule, _USED)
        self._address, self._deleter = address, _Deleter(self._managed.deleter) if self._managed.deleter else None

    def _check_strides(self, tensor: Any) -> None:
        step = 1
        for i in reversed(range(tensor.ndim)):
            if tensor.strides and self.shape[i] > 1 and tensor.strides[i] != step:
                raise BufferError("the tensor is not contiguous in row-major order")
            step *= self.shape[i]

    def __del__(self) -> None:
        deleter: Callable[[int], None] | None = getattr(self, "_deleter", None)
        if deleter:
            deleter(self._address)
