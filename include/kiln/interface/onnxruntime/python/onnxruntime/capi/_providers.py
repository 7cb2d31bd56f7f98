"""Execution providers as programs name them, and how each is added to a session's options."""

from __future__ import annotations

import collections.abc
import ctypes
import warnings
from typing import Any, Callable, NamedTuple, Sequence, Tuple, Union

from . import _environment
from ._api import api, c_pointers, c_strings, library, pairs_at
from ._environment import CPU_PROVIDER, OrtEpDevice, environment
from ._errors import error_of

Provider = Union[str, Tuple[str, "dict[Any, Any]"]]

# All that ONNX Runtime knows, in its order of preference.
_ALL = [
    "MIGraphXExecutionProvider", "KilnExecutionProvider", "NvTensorRTRTXExecutionProvider", "TensorrtExecutionProvider",
    "CUDAExecutionProvider", "ROCMExecutionProvider", "OpenVINOExecutionProvider", "DnnlExecutionProvider",
    "VitisAIExecutionProvider", "QNNExecutionProvider", "NnapiExecutionProvider", "VSINPUExecutionProvider",
    "JsExecutionProvider", "CoreMLExecutionProvider", "ArmNNExecutionProvider", "ACLExecutionProvider",
    "DmlExecutionProvider", "RknpuExecutionProvider", "WebNNExecutionProvider", "WebGpuExecutionProvider",
    "XnnpackExecutionProvider", "CANNExecutionProvider", "AzureExecutionProvider", CPU_PROVIDER,
]  # fmt: skip


class Step(NamedTuple):
    """One thing that is done to a session's options before the session is made; the name is None for a policy."""

    name: str | None
    options: dict[str, str]
    apply: Callable[[int], object]


def get_all_providers() -> list[str]:
    """Providers that ONNX Runtime or kiln has anywhere, in the order of preference."""
    return list(_ALL)


def _for_handles(name: str, handles: list[int], options: dict[str, str]) -> Step:
    keys, values = c_strings(list(options)), c_strings(list(options.values()))
    devices = c_pointers(handles)

    def apply(to: int) -> None:
        api.append_provider(to, environment, devices, len(devices), keys, values, len(keys))

    return Step(name, options, apply)


def for_devices(devices: list[OrtEpDevice], options: dict[str, str]) -> Step:
    """A plugin for some of its devices."""
    if not devices:
        raise ValueError("a provider needs at least one of the devices of get_ep_devices()")
    return _for_handles(devices[0].ep_name, [d._handle for d in devices], normalized_options(options))


def _append_cpu(to: int) -> None:
    status = library.OrtSessionOptionsAppendExecutionProvider_CPU(ctypes.c_void_p(to), 1)
    if status:
        raise error_of(1, "ONNX Runtime refused its CPU provider")


def by_name(name: str, options: dict[Any, Any]) -> Step:
    """A provider by its name: a plugin with all of its devices, or one of the library's."""
    given = normalized_options(options)
    if name == CPU_PROVIDER:
        return Step(name, given, _append_cpu)
    handles = [d._handle for d in _environment.get_ep_devices() if d.ep_name == name]
    if handles:
        return _for_handles(name, handles, given)
    short = name[: -len("ExecutionProvider")] if name.endswith("ExecutionProvider") else name
    keys, values = c_strings(list(given)), c_strings(list(given.values()))
    return Step(name, given, lambda to: api.append_provider_by_name(to, short.encode(), keys, values, len(keys)))


def by_policy(policy: int) -> Step:
    """The choice is ONNX Runtime's."""
    return Step(None, {}, lambda to: api.set_selection_policy(to, policy))


_Delegate = ctypes.CFUNCTYPE(
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_size_t,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.c_void_p,
)


def by_delegate(choose: Callable[..., Sequence[OrtEpDevice]]) -> Step:
    """The choice is a function's."""

    def call(devices: Any, count: int, model: int, run: int, out: Any, most: int, chosen: Any, _state: int) -> int:
        try:
            given = [OrtEpDevice(devices[i]) for i in range(count)]
            picked = list(choose(given, pairs_at(model) if model else {}, pairs_at(run) if run else {}, most))
            if len(picked) > most:
                raise ValueError(f"the selection delegate chose {len(picked)} devices: expected at most {most}")
            for i, device in enumerate(picked):
                out[i] = device._handle
            chosen[0] = len(picked)
            return 0
        except Exception as error:  # it must not pass through ONNX Runtime
            return int(api.create_status(1, f"{type(error).__name__}: {error}".encode()))

    pointer = _Delegate(call)
    return Step(None, {}, lambda to: api.set_selection_delegate(to, pointer, None))


def normalized_options(options: dict[Any, Any]) -> dict[str, str]:
    """Keys and values as text."""
    return {str(key): str(value) for key, value in options.items()}


def normalized(
    providers: Sequence[Provider] | None, provider_options: Sequence[dict[Any, Any]] | None
) -> list[tuple[str, dict[str, str]]]:
    """Both forms that programs use as names with their options; one that is not available is a warning."""
    if providers is None:
        return []
    if not isinstance(providers, collections.abc.Sequence):
        raise ValueError("'providers' should be a sequence.")
    pairs: list[tuple[Any, Any]]
    if provider_options is not None:
        pairs = _zipped(providers, provider_options)
    else:
        pairs = [(p, {}) if isinstance(p, str) else p for p in providers if _is_provider(p)]
    known = _environment.get_available_providers() + ["WebGpuExecutionProvider"]
    out: dict[str, dict[str, str]] = {}
    for name, options in pairs:
        if name not in known:
            warnings.warn(
                f"Specified provider '{name}' is not in available provider names. Available providers: '{', '.join(known[:-1])}'",
                stacklevel=5,
            )
        if name in out:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=5)
        else:
            out[name] = normalized_options(options)
    return list(out.items())


def _is_provider(provider: Any) -> bool:
    named = isinstance(provider, tuple) and len(provider) == 2 and isinstance(provider[0], str) and isinstance(provider[1], dict)
    if not named and not isinstance(provider, str):
        raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
    return True


def _zipped(providers: Sequence[Any], options: Sequence[Any]) -> list[tuple[Any, Any]]:
    if not isinstance(options, collections.abc.Sequence):
        raise ValueError("'provider_options' should be a sequence.")
    if len(providers) != len(options):
        raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
    if not all(isinstance(p, str) for p in providers):
        raise ValueError("Only string values for 'providers' are supported if 'provider_options' is given.")
    if not all(isinstance(o, dict) for o in options):
        raise ValueError("'provider_options' values must be dicts.")
    return list(zip(providers, options))


def steps(pairs: list[tuple[str, dict[str, str]]]) -> list[Step]:
    """What adds the named providers. ONNX Runtime's known ones that are not here are left out; a name that nobody knows is
    an error. The CPU's at the end is there without being added, so that its fallback can be forbidden."""
    available = _environment.get_available_providers() + ["WebGpuExecutionProvider"]
    out = []
    if pairs and pairs[-1][0] == CPU_PROVIDER:
        pairs = pairs[:-1]
    for name, options in pairs:
        if name in available:
            out.append(by_name(name, options))
        elif name not in _ALL:
            raise RuntimeError(f"Unknown Provider Type: {name}")
    return out
