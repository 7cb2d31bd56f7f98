"""The process's one environment of ONNX Runtime, with kiln's plugin registered."""

from __future__ import annotations

import ctypes
import os
import warnings

import onnxruntime_ep_kiln

from ._api import api, library_path, pairs_at, pointer_from, pointers_from, text
from ._enums import OrtHardwareDeviceType

_WARNING = 2
environment = pointer_from(api.create_env, _WARNING, b"Default")
CPU_PROVIDER = "CPUExecutionProvider"
# The name that programs written for MIGraphX ask for comes first: it is the one that is prioritized.
KILN_PROVIDERS = list(reversed(onnxruntime_ep_kiln.get_ep_names()))


class OrtHardwareDevice:
    """A device of this machine: `type`, `vendor`, `vendor_id`, `device_id` and `metadata`."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self.type = OrtHardwareDeviceType(api.hardware_type(handle))
        self.vendor = text(api.hardware_vendor(handle))
        self.vendor_id = int(api.hardware_vendor_id(handle))
        self.device_id = int(api.hardware_device_id(handle))
        self.metadata = pairs_at(api.hardware_metadata(handle))


class OrtEpDevice:
    """A device as a provider has it: `ep_name`, `ep_vendor`, `ep_metadata`, `ep_options` and `device`."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self.ep_name = text(api.device_ep_name(handle))
        self.ep_vendor = text(api.device_ep_vendor(handle))
        self.ep_metadata = pairs_at(api.device_ep_metadata(handle))
        self.ep_options = pairs_at(api.device_ep_options(handle))
        self.device = OrtHardwareDevice(api.device_hardware(handle))


def get_ep_devices() -> list[OrtEpDevice]:
    """The devices of all providers: those in the library, kiln's, and those of registered libraries."""
    return [OrtEpDevice(handle) for handle in pointers_from(api.ep_devices, environment)]


def register_execution_provider_library(registration_name: str, library_path: str) -> None:
    """Loads a plugin execution provider by its library's path."""
    path = os.path.abspath(os.fspath(library_path))
    api.register_library(environment, registration_name.encode(), path.encode())


def unregister_execution_provider_library(registration_name: str) -> None:
    """Unloads a plugin that no session uses anymore."""
    api.unregister_library(environment, registration_name.encode())


def plugin_names() -> list[str]:
    """Names of providers that have a device, kiln's first."""
    names = list(dict.fromkeys(device.ep_name for device in get_ep_devices()))
    return [n for n in KILN_PROVIDERS if n in names] + [n for n in names if n not in KILN_PROVIDERS and n != CPU_PROVIDER]


def built_in_names() -> list[str]:
    """Names of the providers that the library was built with."""
    names, count = ctypes.c_void_p(), ctypes.c_int()
    api.available_providers(ctypes.byref(names), ctypes.byref(count))
    out = [text(address) for address in ctypes.cast(names, ctypes.POINTER(ctypes.c_void_p))[: count.value]]
    api.release_available_providers(names, count)
    return out


def get_available_providers() -> list[str]:
    """Providers that a session may name, in the order of preference: kiln's, other plugins', and those of the library whose
    parts are here."""
    separate = {"TensorrtExecutionProvider": "tensorrt", "CUDAExecutionProvider": "cuda"}
    folder = os.path.dirname(os.path.realpath(library_path))

    def is_here(name: str) -> bool:
        part = separate.get(name)
        return part is None or os.path.exists(os.path.join(folder, f"libonnxruntime_providers_{part}.so"))

    # WebGPU is in every build and fails where there is no GPU: programs name it themselves.
    own = [n for n in built_in_names() if n != "WebGpuExecutionProvider" and is_here(n)]
    plugins = plugin_names()
    return plugins + [n for n in own if n not in plugins]


def register_kiln() -> None:
    """Registers the plugin under its names, unless the library has done so. Without the plugin the package works, after a
    warning, with ONNX Runtime's own providers."""
    try:
        path = onnxruntime_ep_kiln.get_library_path()
    except FileNotFoundError as error:
        warnings.warn(str(error), RuntimeWarning, stacklevel=2)
        return
    present = {device.ep_name for device in get_ep_devices()}
    for name in KILN_PROVIDERS:
        if name not in present:
            try:
                register_execution_provider_library(name, path)
            except Exception as error:
                warnings.warn(f"kiln's plugin {path} is not registered: {error}", RuntimeWarning, stacklevel=2)


register_kiln()
