"""Devices and memory by ONNX Runtime's names."""

from __future__ import annotations

from typing import Any

from ._api import api, pointer_from
from ._enums import OrtAllocatorType, OrtMemType

_TYPES = {"cpu": 0, "cuda": 1, "hip": 1, "gpu": 1, "npu": 2}
_NAMES = {0: "cpu", 1: "gpu", 2: "npu"}


class OrtDevice:
    """A device: its type's number, the kind of memory and the device's number."""

    def __init__(self, device_type: int = 0, memory_type: int = 0, device_id: int = 0, vendor_id: int = 0) -> None:
        self._type, self._memory, self._id, self._vendor = device_type, memory_type, device_id, vendor_id

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = 0) -> OrtDevice:
        """A device by its type's name."""
        return OrtDevice(device_type_of(ort_device_name), 0, device_id, vendor_id)

    @staticmethod
    def cpu() -> int:
        """The number of processors."""
        return 0

    @staticmethod
    def cuda() -> int:
        """The number of GPUs."""
        return 1

    @staticmethod
    def default_memory() -> int:
        """The number of a device's own memory."""
        return 0

    def device_id(self) -> int:
        """The device's number."""
        return self._id

    def device_type(self) -> int:
        """The number of the device's type."""
        return self._type

    def device_vendor_id(self) -> int:
        """The vendor's PCI number; 0 for processors."""
        return self._vendor

    def __repr__(self) -> str:
        return f"OrtDevice({_NAMES.get(self._type, self._type)}:{self._id})"


def device_type_of(name: str) -> int:
    """The number of a device's type; a ValueError for a name that is none."""
    number = _TYPES.get(name.lower())
    if number is None:
        raise ValueError(f"Unsupported device type: {name}; expected one of {', '.join(_TYPES)}")
    return number


def need_cpu(name: str, what: str) -> None:
    """Refuses memory outside the CPU's: ONNX Runtime and kiln's provider exchange tensors in host memory."""
    if device_type_of(name) != 0:
        raise ValueError(f"{what} on '{name}': expected 'cpu', where kiln's provider and ONNX Runtime exchange tensors")


class OrtMemoryInfo:
    """Memory of a device, for allocators."""

    def __init__(self, name: str, alloc_type: Any, id: int, mem_type: Any) -> None:  # noqa: A002
        self._release = api.release_memory_info
        self._handle = pointer_from(api.create_memory_info, name.encode(), int(alloc_type), id, int(mem_type))
        self.name, self.id = name, id
        self.alloc_type, self.mem_type = OrtAllocatorType(int(alloc_type)), OrtMemType(int(mem_type))

    def __del__(self) -> None:
        if getattr(self, "_handle", 0):
            self._release(self._handle)


class OrtArenaCfg:
    """Settings of an arena: most bytes (0: ONNX Runtime's default), strategy, first chunk and least unused bytes (-1: default)."""

    def __init__(
        self,
        max_mem: int | dict[str, int] = 0,
        arena_extend_strategy: int = -1,
        initial_chunk_size_bytes: int = -1,
        max_dead_bytes_per_chunk: int = -1,
    ) -> None:
        """The settings, or a dict of them by these names."""
        self._release = api.release_arena_settings
        settings = {
            "max_mem": 0 if isinstance(max_mem, dict) else max_mem,
            "arena_extend_strategy": arena_extend_strategy,
            "initial_chunk_size_bytes": initial_chunk_size_bytes,
            "max_dead_bytes_per_chunk": max_dead_bytes_per_chunk,
        }
        for name, setting in max_mem.items() if isinstance(max_mem, dict) else ():
            if name not in settings:
                raise ValueError(f"an arena has no setting {name}: expected one of {', '.join(settings)}")
            settings[name] = setting
        self._handle = pointer_from(api.create_arena_settings, *settings.values())

    def __del__(self) -> None:
        if getattr(self, "_handle", 0):
            self._release(self._handle)
