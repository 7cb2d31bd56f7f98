"""RunOptions over ONNX Runtime's own, and adapters of parameters."""

from __future__ import annotations

import os
from typing import Any

from ._api import allocator, api, pointer_from
from ._properties import flag, number, only, text_option


class LoraAdapter:
    """Parameters from an adapter's file, which a run may use in place of the model's."""

    def __init__(self) -> None:
        self._release = api.release_adapter
        self._handle = 0

    def Load(self, file_path: str | os.PathLike[str]) -> None:  # noqa: N802, the name that programs know
        """Reads the file; its parameters are views of it."""
        self._close()
        self._handle = pointer_from(api.create_adapter, os.fsencode(file_path), allocator)

    def _close(self) -> None:
        if self._handle:
            self._release(self._handle)
        self._handle = 0

    def __del__(self) -> None:
        self._close()


class RunOptions:
    """What one run may be asked for; `terminate` ends it from another thread."""

    def __init__(self) -> None:
        self._release = api.release_run_options
        self._handle = pointer_from(api.create_run_options)
        self._values: dict[str, Any] = {}
        self._entries: dict[str, str] = {}
        self._kept: list[LoraAdapter] = []

    def __del__(self) -> None:
        if getattr(self, "_handle", 0):
            self._release(self._handle)

    log_severity_level = number("log_severity_level", -1, api.set_run_log_severity)
    log_verbosity_level = number("log_verbosity_level", 0, api.set_run_log_verbosity)
    logid = text_option("logid", "", api.set_run_tag)
    terminate = flag("terminate", False, api.set_terminate, api.unset_terminate)
    only_execute_path_to_fetches = only("only_execute_path_to_fetches", False)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Sets an entry by its key."""
        api.add_run_entry(self._handle, key.encode(), value.encode())
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """The value of an entry; a RuntimeError where it is not set."""
        if key not in self._entries:
            raise RuntimeError(f"RunOptions does not have configuration with key: {key}")
        return self._entries[key]

    def add_active_adapter(self, adapter: LoraAdapter) -> None:
        """Adds an adapter, after those that were added before."""
        self._kept.append(adapter)
        api.add_active_adapter(self._handle, adapter._handle)
