"""Enumerations with the numbers of ONNX Runtime's C interface."""

from __future__ import annotations

import enum


class ExecutionMode(enum.IntEnum):
    """Whether branches of a graph run side by side."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """In which order nodes run; the C interface has the default alone."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class GraphOptimizationLevel(enum.IntEnum):
    """What ONNX Runtime does to a graph before providers see it."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class OrtAllocatorType(enum.IntEnum):
    """Kinds of allocators."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(enum.IntEnum):
    """Where memory is, as seen by a provider."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtDeviceMemoryType(enum.IntEnum):
    """Kinds of a device's memory."""

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtHardwareDeviceType(enum.IntEnum):
    """Kinds of hardware."""

    CPU = 0
    GPU = 1
    NPU = 2


class OrtMemoryInfoDeviceType(enum.IntEnum):
    """Kinds of devices that memory belongs to."""

    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class OrtSparseFormat(enum.IntEnum):
    """Formats of sparse tensors."""

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


class OrtExecutionProviderDevicePolicy(enum.IntEnum):
    """How ONNX Runtime chooses devices where a program names no provider."""

    DEFAULT = 0
    PREFER_CPU = 1
    PREFER_NPU = 2
    PREFER_GPU = 3
    MAX_PERFORMANCE = 4
    MAX_EFFICIENCY = 5
    MIN_OVERALL_POWER = 6
