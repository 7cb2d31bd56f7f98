"""Element types: ONNX's numbers, ONNX Runtime's names, numpy's types."""

from __future__ import annotations

from typing import Any

import numpy as np

# Number, name, numpy's type; where numpy has none, that of the bits.
_ROWS: list[tuple[int, str, Any]] = [
    (1, "float", np.float32),
    (2, "uint8", np.uint8),
    (3, "int8", np.int8),
    (4, "uint16", np.uint16),
    (5, "int16", np.int16),
    (6, "int32", np.int32),
    (7, "int64", np.int64),
    (8, "string", np.object_),
    (9, "bool", np.bool_),
    (10, "float16", np.float16),
    (11, "double", np.float64),
    (12, "uint32", np.uint32),
    (13, "uint64", np.uint64),
    (14, "complex64", np.complex64),
    (15, "complex128", np.complex128),
    (16, "bfloat16", np.uint16),
    (17, "float8e4m3fn", np.uint8),
    (18, "float8e4m3fnuz", np.uint8),
    (19, "float8e5m2", np.uint8),
    (20, "float8e5m2fnuz", np.uint8),
]
_PACKED = {21: "uint4", 22: "int4", 23: "float4e2m1", 25: "uint2", 26: "int2"}

STRING = 8
NAMES: dict[int, str] = {number: name for number, name, _ in _ROWS} | _PACKED
DTYPES: dict[int, np.dtype[Any]] = {number: np.dtype(dtype) for number, _, dtype in _ROWS}
NUMBERS_BY_NAME: dict[str, int] = {name: number for number, name in NAMES.items()}
# Types of ml_dtypes, where a program has that package, by their names.
_EXTENSIONS = {
    "bfloat16": 16,
    "float8_e4m3fn": 17,
    "float8_e4m3fnuz": 18,
    "float8_e5m2": 19,
    "float8_e5m2fnuz": 20,
}
_BY_DTYPE: dict[np.dtype[Any], int] = {np.dtype(dtype): number for number, _, dtype in _ROWS if number <= 15}


def number_of(element_type: Any) -> int:
    """ONNX's number of a numpy type, or the number itself; a ValueError where ONNX Runtime has no such type."""
    if isinstance(element_type, int):
        if element_type not in NAMES:
            raise ValueError(f"element type {element_type} is none of ONNX's {sorted(NAMES)}")
        return int(element_type)
    dtype = np.dtype(element_type)
    number = _BY_DTYPE.get(dtype) or (STRING if dtype.kind in "US" else _EXTENSIONS.get(dtype.name))
    if number is None:
        number = _BY_DTYPE.get(dtype.newbyteorder("="))
    if number is None:
        raise ValueError(f"numpy type {dtype} is none of ONNX's element types")
    return number


def dtype_of(number: int, what: str) -> np.dtype[Any]:
    """Numpy's type of an element type; types of less than a byte are an error that names `what`."""
    dtype = DTYPES.get(number)
    if dtype is None:
        raise NotImplementedError(f"{what} has elements of type {NAMES.get(number, number)}, which no numpy array holds")
    return dtype


def numbers_typestr(declared: str) -> str | None:
    """Numpy's text of the elements of a declared type such as "tensor(float)"; None for all but tensors of numbers."""
    number = NUMBERS_BY_NAME.get(declared[len("tensor(") : -1]) if declared.startswith("tensor(") else None
    return DTYPES[number].str if number in DTYPES and number != STRING else None
