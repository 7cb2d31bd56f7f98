"""What holds for the whole process."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from ._api import api, text, version
from ._devices import OrtArenaCfg, OrtMemoryInfo
from ._enums import OrtHardwareDeviceType
from ._environment import KILN_PROVIDERS, environment, get_ep_devices

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


def create_and_register_allocator(memory_info: OrtMemoryInfo, arena_cfg: OrtArenaCfg | None) -> None:
    """Makes an allocator that sessions with the entry "session.use_env_allocators" share."""
    api.create_and_register_allocator(environment, memory_info._handle, arena_cfg._handle if arena_cfg else None)
