"""What holds for the whole process."""

from __future__ import annotations

import os
import platform
import warnings
from typing import TYPE_CHECKING

from ._api import api, c_strings, library_path, text, version
from ._devices import OrtArenaCfg, OrtMemoryInfo
from ._enums import OrtHardwareDeviceType
from ._environment import KILN_PROVIDERS, environment, get_available_providers, get_ep_devices

if TYPE_CHECKING:
    from ._session_options import SessionOptions

_verbosity = 0


def set_default_logger_severity(severity: int) -> None:
    """Which lines are logged where a session does not say: 0 verbose, 1 info, 2 warning, 3 error, 4 fatal."""
    api.set_log_level(environment, int(severity))


def set_default_logger_verbosity(verbosity: int) -> None:
    """The verbosity of sessions that do not say, where lines of severity 0 are logged."""
    global _verbosity
    _verbosity = int(verbosity)


def apply(handle: int, options: SessionOptions) -> None:
    """Gives a new session's options what holds for the process."""
    if _verbosity and "log_verbosity_level" not in options._values:
        api.set_session_log_verbosity(handle, _verbosity)


def set_seed(seed: int) -> None:
    """Warns: ONNX Runtime's C interface cannot set the seed of operators that draw numbers without one of their own."""
    warnings.warn("set_seed has no effect: ONNX Runtime's C interface cannot set a seed", stacklevel=2)


def set_global_thread_pool_sizes(intra_op_num_threads: int, inter_op_num_threads: int) -> None:
    """Warns: ONNX Runtime's environment, which would have the pools, is there when the package is imported."""
    warnings.warn("set_global_thread_pool_sizes has no effect: set SessionOptions.intra_op_num_threads", stacklevel=2)


def has_collective_ops() -> bool:
    """Whether operators that join several processes are there: never."""
    return False


def get_version_string() -> str:
    """The version of ONNX Runtime's library."""
    return version


def get_build_info() -> str:
    """How the library was built."""
    return text(api.build_info())


def get_device() -> str:
    """"GPU" where kiln's provider has one, else "CPU"."""
    devices = [d for d in get_ep_devices() if d.ep_name in KILN_PROVIDERS]
    return "GPU" if any(d.device.type == OrtHardwareDeviceType.GPU for d in devices) else "CPU"


def enable_telemetry_events() -> None:
    """Turns ONNX Runtime's telemetry on, where its build has one."""
    api.enable_telemetry(environment)


def disable_telemetry_events() -> None:
    """Turns ONNX Runtime's telemetry off."""
    api.disable_telemetry(environment)


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """Does nothing: kiln's provider and the CPU's need no libraries of a vendor's."""


def print_debug_info() -> None:
    """Prints what a report of a problem needs: versions, the machine, the library and the providers."""
    print(f"ONNX Runtime {version} from {os.path.abspath(library_path)}, with kiln in role of its package")
    print(f"Python {platform.python_version()}, {platform.platform()}, {os.cpu_count()} processors")
    print(f"Providers: {', '.join(get_available_providers())}")
    print(get_build_info())


def create_and_register_allocator(memory_info: OrtMemoryInfo, arena_cfg: OrtArenaCfg | None) -> None:
    """Makes an allocator that sessions with the entry "session.use_env_allocators" share."""
    api.create_and_register_allocator(environment, memory_info._handle, arena_cfg._handle if arena_cfg else None)


def create_and_register_allocator_v2(
    provider_type: str, memory_info: OrtMemoryInfo, options: dict[str, str], arena_cfg: OrtArenaCfg | None
) -> None:
    """The same with the allocator of a provider that the library was built with, by the provider's name and options."""
    arena = arena_cfg._handle if arena_cfg else None
    keys, values = c_strings(list(options)), c_strings([str(v) for v in options.values()])
    given = (provider_type.encode(), memory_info._handle, arena, keys, values, len(options))
    api.create_and_register_allocator_of(environment, *given)
