"""OrtValue: a value of ONNX Runtime's that a program holds."""

from __future__ import annotations

import ctypes
from typing import Any, Sequence

import numpy as np

from . import _dlpack, _strings, _types, _values
from ._api import allocator, api, int_from, pointer_from, text
from ._devices import need_cpu
from ._element_types import STRING, dtype_of, number_of
from ._values import Spans


class OrtValue:
    """A tensor, sequence, map or optional in ONNX Runtime's hands. One that was made of an array shares its memory."""

    def __init__(self, handle: int | None, keep: Spans | None = None) -> None:
        self._release = api.release_value
        self._handle, self._kept = handle or 0, keep or []

    def __del__(self) -> None:
        if getattr(self, "_handle", 0):
            self._release(self._handle)

    @property
    def _ortvalue(self) -> OrtValue:
        return self

    def _get_c_value(self) -> OrtValue:
        return self

    @staticmethod
    def ortvalue_from_numpy(
        numpy_obj: np.ndarray[Any, Any], device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """A tensor over an array's memory, which lives on; strings and arrays out of order are copied."""
        need_cpu(device_type, "an OrtValue")
        keep: Spans = []
        return OrtValue(_values.from_array(np.asarray(numpy_obj), keep), keep)

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(data: np.ndarray[Any, Any], onnx_element_type: int) -> OrtValue:
        """A tensor of an element type that numpy lacks, such as bfloat16, over an array of its bits."""
        number = number_of(int(onnx_element_type))
        size = dtype_of(number, "the array").itemsize
        if data.dtype.itemsize != size or number == STRING:
            raise ValueError(f"elements of type {onnx_element_type} have {size} bytes: found an array of {data.dtype}")
        keep: Spans = []
        return OrtValue(_values.from_array(data, keep, number), keep)

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """A tensor whose elements are not set, by a numpy type or ONNX's number of a type."""
        need_cpu(device_type, "an OrtValue")
        extents = _values.extents_type(len(shape))(*shape)
        return OrtValue(pointer_from(api.create_tensor, allocator, extents, len(shape), number_of(element_type)))

    @staticmethod
    def from_dlpack(tensor: Any, is_bool_tensor: bool = False) -> OrtValue:
        """A tensor over the memory of an object with `__dlpack__`, or of a capsule; bytes may stand for bool."""
        capsule = tensor.__dlpack__() if hasattr(tensor, "__dlpack__") else tensor
        got = _dlpack.Imported(capsule)
        number = 9 if is_bool_tensor and got.nbytes == int(np.prod(got.shape)) else got.element_type
        value = _values.tensor_over(got.address, got.nbytes, got.shape, number)
        return OrtValue(value, [(got.address, got.address + got.nbytes, got)])

    def __dlpack__(self, stream: Any = None) -> Any:
        return _dlpack.export(self.data_ptr(), tuple(self.shape()), self.element_type(), self)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _dlpack.CPU

    def to_dlpack(self) -> Any:
        """A DLPack capsule over the tensor's memory."""
        return self.__dlpack__()

    def data_ptr(self) -> int:
        """The address of the first element."""
        return pointer_from(api.tensor_data, self._handle)

    def tensor_size_in_bytes(self) -> int:
        """The bytes of all elements."""
        return int_from(api.tensor_bytes, self._handle)

    def device_name(self) -> str:
        """The name of the device that the elements are on, in lower case."""
        memory = pointer_from(api.memory_of_tensor, self._handle)
        return text(pointer_from(api.memory_name, memory)).lower()

    def shape(self) -> list[int]:
        """A tensor's extents."""
        return list(_values.shape_and_type(self._handle)[0])

    def element_type(self) -> int:
        """ONNX's number of a tensor's element type."""
        return _values.shape_and_type(self._handle)[1]

    def data_type(self) -> str:
        """The type's text, such as "tensor(float)"."""
        info = pointer_from(api.type_of_value, self._handle)
        try:
            return _types.type_text(info)[0]
        finally:
            api.release_type(info)

    def _kind(self) -> int:
        return int_from(api.value_type_of_value, self._handle) if self.has_value() else 0

    def has_value(self) -> bool:
        """Whether an optional has a value; True for all else."""
        return _values.has_value(self._handle)

    def is_tensor(self) -> bool:
        """Whether it is a tensor."""
        return self._kind() == _values.TENSOR

    def is_sparse_tensor(self) -> bool:
        """Whether it is a sparse tensor."""
        return self._kind() == _values.SPARSE

    def is_tensor_sequence(self) -> bool:
        """Whether it is a sequence of tensors."""
        return self._kind() == _values.SEQUENCE and self.data_type().startswith("seq(tensor(")

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy of a tensor's elements; types that numpy lacks as the integers of their bits."""
        if not self.is_tensor():
            raise RuntimeError(f"only tensors are arrays: found {self.data_type()}")
        shape, number = _values.shape_and_type(self._handle)
        if number == STRING:
            return _strings.read(self._handle, shape)
        out = np.empty(shape, dtype_of(number, "the OrtValue"))
        if out.nbytes:
            ctypes.memmove(out.__array_interface__["data"][0], self.data_ptr(), out.nbytes)
        return out

    def update_inplace(self, np_arr: np.ndarray[Any, Any]) -> None:
        """Copies an array of the same shape and type into the tensor's memory."""
        shape, number = _values.shape_and_type(self._handle)
        found = number_of(np_arr.dtype)
        bits = dtype_of(number, "the OrtValue")
        if tuple(np_arr.shape) != shape or (found != number and np_arr.dtype != bits):
            raise ValueError(f"expected an array of {bits}{list(shape)}: found {np_arr.dtype}{list(np_arr.shape)}")
        if number == STRING:
            _strings.fill(self._handle, np_arr)
        elif np_arr.nbytes:
            source = _values.usable(np_arr)
            ctypes.memmove(self.data_ptr(), source.__array_interface__["data"][0], source.nbytes)


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: None = None) -> None:
    """Copies tensors into others of the same shapes and types, before it returns."""
    if len(src) != len(dst):
        raise ValueError(f"expected as many tensors to copy into as from: found {len(src)} and {len(dst)}")
    if stream is not None:
        raise ValueError("expected no stream: the CPU's tensors are copied without one")
    for i, (a, b) in enumerate(zip(src, dst)):
        if (a.shape(), a.data_type()) != (b.shape(), b.data_type()):
            expected, found = f"{a.data_type()}{a.shape()}", f"{b.data_type()}{b.shape()}"
            raise ValueError(f"tensor {i}: expected memory of {expected} to copy into, found {found}")
        if a.element_type() == STRING:
            b.update_inplace(a.numpy())
        elif a.tensor_size_in_bytes():
            ctypes.memmove(b.data_ptr(), a.data_ptr(), a.tensor_size_in_bytes())
