"""Precisions."""

import enum


class LowerPrecision(enum.Enum):
    """What a module is computed in."""

    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"
    INT8 = "int8"

    @classmethod
    def from_str(cls, label: str) -> "LowerPrecision":
        """The precision of a name, such as "fp16" or "float16"."""
        names = {"float32": "fp32", "float": "fp32", "float16": "fp16", "half": "fp16", "bfloat16": "bf16"}
        name = names.get(label.lower(), label.lower())
        if name not in {p.value for p in cls}:
            raise ValueError(f"a precision is fp32, fp16, bf16 or int8: found {label!r}")
        return cls(name)
