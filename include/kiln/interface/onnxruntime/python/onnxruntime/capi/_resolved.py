"""The values of kiln's options after environment and defaults, as its plugin reads them."""

from __future__ import annotations

import ctypes
import json

import onnxruntime_ep_kiln

from ._api import c_strings
from ._environment import KILN_PROVIDERS


def _plugin() -> ctypes.CDLL:
    plugin = ctypes.CDLL(onnxruntime_ep_kiln.get_library_path())
    plugin.kiln_onnxruntime_resolved_options.argtypes = [
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_void_p),
    ]
    plugin.kiln_onnxruntime_free.argtypes = [ctypes.c_void_p]
    plugin.kiln_onnxruntime_free.restype = None
    return plugin


def options(name: str, given: dict[str, str], entries: dict[str, str]) -> dict[str, str]:
    """A provider's options as a session has them that is made now: kiln's with all values, any other's as they were given."""
    if name not in KILN_PROVIDERS:
        return dict(given)
    prefix = f"ep.{name.lower()}."
    asked = {key[len(prefix) :]: value for key, value in entries.items() if key.startswith(prefix)} | given
    plugin, text = _plugin(), ctypes.c_void_p()
    keys, values = c_strings(list(asked)), c_strings(list(asked.values()))
    failed = plugin.kiln_onnxruntime_resolved_options(keys, values, len(keys), ctypes.byref(text))
    answer = ctypes.string_at(text).decode() if text.value else "out of memory"
    plugin.kiln_onnxruntime_free(text)
    if failed:
        raise ValueError(answer)
    return {str(key): str(value) for key, value in json.loads(answer).items()}
