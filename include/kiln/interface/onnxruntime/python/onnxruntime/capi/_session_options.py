"""SessionOptions over ONNX Runtime's own."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Callable, Sequence

from . import _providers
from ._api import api, c_pointers, c_strings, pointer_from
from ._enums import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, OrtExecutionProviderDevicePolicy
from ._environment import OrtEpDevice
from ._ort_value import OrtValue
from ._properties import flag, number, only, text_option

Delegate = Callable[[Sequence[OrtEpDevice], "dict[str, str]", "dict[str, str]", int], Sequence[OrtEpDevice]]


class SessionOptions:
    """What a session may be asked for. Properties and methods have the names and defaults of ONNX Runtime's package."""

    def __init__(self) -> None:
        self._release = api.release_session_options
        self._handle = pointer_from(api.create_session_options)
        self._values: dict[str, Any] = {}
        self._entries: dict[str, str] = {}
        self._providers: list[_providers.Step] = []
        self._kept: list[Any] = []
        self._replaced: list[str] = []

    def __del__(self) -> None:
        if getattr(self, "_handle", 0):
            self._release(self._handle)

    enable_cpu_mem_arena = flag("enable_cpu_mem_arena", True, api.enable_cpu_arena, api.disable_cpu_arena)
    enable_mem_pattern = flag("enable_mem_pattern", True, api.enable_memory_pattern, api.disable_memory_pattern)
    enable_mem_reuse = only("enable_mem_reuse", True)
    execution_order = only("execution_order", ExecutionOrder.DEFAULT)
    log_severity_level = number("log_severity_level", -1, api.set_session_log_severity)
    log_verbosity_level = number("log_verbosity_level", 0, api.set_session_log_verbosity)
    intra_op_num_threads = number("intra_op_num_threads", 0, api.set_intra_op_threads)
    inter_op_num_threads = number("inter_op_num_threads", 0, api.set_inter_op_threads)
    execution_mode = number("execution_mode", ExecutionMode.ORT_SEQUENTIAL, api.set_execution_mode, ExecutionMode)
    graph_optimization_level = number(
        "graph_optimization_level",
        GraphOptimizationLevel.ORT_ENABLE_ALL,
        api.set_graph_optimization_level,
        GraphOptimizationLevel,
    )
    logid = text_option("logid", "", api.set_session_log_id)
    optimized_model_filepath = text_option("optimized_model_filepath", "", api.set_optimized_model_path)
    use_deterministic_compute = number("use_deterministic_compute", False, api.set_deterministic, bool)

    @property
    def enable_profiling(self) -> bool:
        """Whether runs are recorded, into a file that starts with `profile_file_prefix`."""
        return bool(self._values.get("enable_profiling", False))

    @enable_profiling.setter
    def enable_profiling(self, value: bool) -> None:
        self._values["enable_profiling"] = bool(value)
        self._set_profiling()

    @property
    def profile_file_prefix(self) -> str:
        """What the name of the profile starts with."""
        return str(self._values.get("profile_file_prefix", "onnxruntime_profile_"))

    @profile_file_prefix.setter
    def profile_file_prefix(self, value: str) -> None:
        self._values["profile_file_prefix"] = str(value)
        self._set_profiling()

    def _set_profiling(self) -> None:
        if self.enable_profiling:
            api.enable_profiling(self._handle, os.fsencode(self.profile_file_prefix))
        else:
            api.disable_profiling(self._handle)

    @property
    def use_per_session_threads(self) -> bool:
        """Whether the session has threads of its own."""
        return bool(self._values.get("use_per_session_threads", True))

    @use_per_session_threads.setter
    def use_per_session_threads(self, value: bool) -> None:
        if not value:
            api.disable_session_threads(self._handle)
        elif not self.use_per_session_threads:
            raise ValueError("use_per_session_threads cannot be turned on again: make new SessionOptions")
        self._values["use_per_session_threads"] = bool(value)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Sets an entry by its key, such as "session.disable_cpu_ep_fallback"."""
        api.add_session_entry(self._handle, key.encode(), value.encode())
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """The value of an entry; a RuntimeError where it is not set."""
        if key not in self._entries:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}")
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, value: int) -> None:
        """Fixes the dimensions of a name, such as "batch", to a size."""
        api.override_extent_by_name(self._handle, name.encode(), value)

    def add_free_dimension_override_by_denotation(self, denotation: str, value: int) -> None:
        """Fixes the dimensions of a denotation, such as "DATA_BATCH", to a size."""
        api.override_extent_by_denotation(self._handle, denotation.encode(), value)

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """Gives the model's initializer of this name another value, which shares the OrtValue's memory, for the nodes that
        ONNX Runtime's own providers take."""
        self._kept.append(value)
        self._replaced.append(name)
        api.add_initializer(self._handle, name.encode(), value._handle)

    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """Gives initializers with external data their values."""
        self._kept += values
        handles = c_pointers([v._handle for v in values])
        api.add_external_initializers(self._handle, c_strings(list(names)), handles, len(handles))

    def register_custom_ops_library(self, library_path: str | os.PathLike[str]) -> None:
        """Loads operators from a shared library of ONNX Runtime's custom-operator interface."""
        api.register_custom_ops(self._handle, os.fsencode(library_path))

    def add_provider(self, provider_name: str, provider_options: dict[str, str]) -> None:
        """Adds a provider by its name, after those that were added before."""
        self._add(_providers.by_name(provider_name, provider_options))

    def add_provider_for_devices(self, ep_devices: Sequence[OrtEpDevice], provider_options: dict[str, str]) -> None:
        """Adds a provider for devices of `get_ep_devices()`, all of one provider."""
        self._add(_providers.for_devices(list(ep_devices), provider_options))

    def set_provider_selection_policy(self, policy: OrtExecutionProviderDevicePolicy) -> None:
        """Lets ONNX Runtime choose providers by a policy."""
        self._add(_providers.by_policy(int(policy)))

    def set_provider_selection_policy_delegate(self, delegate: Delegate) -> None:
        """Lets a function choose: it gets the devices, the model's and the run's metadata and how many it may choose."""
        self._add(_providers.by_delegate(delegate))

    def has_providers(self) -> bool:
        """Whether providers, or how to choose them, were added here."""
        return bool(self._providers)

    def _add(self, step: _providers.Step) -> None:
        clone = self._clone()  # what ONNX Runtime refuses is refused here, and not when a session is made
        try:
            step.apply(clone)
        finally:
            api.release_session_options(clone)
        self._providers.append(step)

    def _clone(self) -> int:
        out = ctypes.c_void_p()
        api.clone_session_options(self._handle, ctypes.byref(out))
        return out.value or 0
