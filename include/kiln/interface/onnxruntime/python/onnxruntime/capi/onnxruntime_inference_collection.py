"""Sessions."""

from __future__ import annotations

import os
import warnings
from typing import Any, Mapping, Sequence

from . import _defaults, _providers, _resolved
from ._api import api
from ._devices import OrtDevice
from ._enums import OrtAllocatorType
from ._environment import CPU_PROVIDER, KILN_PROVIDERS, plugin_names
from ._errors import EPFail
from ._io_binding import IOBinding
from ._metadata import ModelMetadata
from ._ort_value import OrtValue
from ._providers import Provider, Step
from ._run_options import RunOptions
from ._session import AsyncCallback, OrtEpAssignedSubgraph, RawSession
from ._session_options import SessionOptions
from ._types import NodeArg

__all__ = ["IOBinding", "InferenceSession", "OrtAllocatorType", "OrtDevice", "OrtValue", "Session"]


class Session:
    """A model that is ready to run."""

    _raw: RawSession
    _steps: list[Step]
    _provider_options: dict[str, dict[str, str]]

    def __init__(self) -> None:
        self._enable_fallback = True
        self._fallback_providers = [CPU_PROVIDER]
        self._sess_options: SessionOptions | None = None

    def _reset_session(self, providers: Sequence[Provider] | None, options: Sequence[dict[Any, Any]] | None) -> None:
        raise NotImplementedError

    def get_session_options(self) -> SessionOptions:
        """The options that the session was made with."""
        if self._sess_options is None:
            self._sess_options = SessionOptions()
        return self._sess_options

    def get_inputs(self) -> list[NodeArg]:
        """The inputs that a run needs."""
        return self._raw.inputs

    def get_outputs(self) -> list[NodeArg]:
        """The outputs."""
        return self._raw.outputs

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Initializers that a run may give other values."""
        return self._raw.initializers

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says of itself."""
        return self._raw.metadata

    def get_providers(self) -> list[str]:
        """The session's providers, first preference first."""
        names = [s.name for s in self._steps if s.name]
        if any(s.name is None for s in self._steps):  # a policy: those that got nodes
            names += [s.ep_name for s in self._raw.assigned()]
        return list(dict.fromkeys([*names, CPU_PROVIDER]))

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Each provider's options: kiln's with the value of every one, after environment and defaults."""
        return {name: dict(options) for name, options in self._provider_options.items()}

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        """Which provider has which nodes; the session's entry "session.record_ep_graph_assignment_info" must be "1"."""
        return self._raw.assigned()

    def set_providers(
        self, providers: Sequence[Provider] | None = None, provider_options: Sequence[dict[Any, Any]] | None = None
    ) -> None:
        """Makes the session again with other providers."""
        self._reset_session(providers, provider_options)

    def disable_fallback(self) -> None:
        """Failures of a provider are raised."""
        self._enable_fallback = False

    def enable_fallback(self) -> None:
        """After a failure of a provider the session is made again with the CPU's, once."""
        self._enable_fallback = True

    def _checked(
        self, output_names: Sequence[str] | None, feed: Mapping[str, Any]
    ) -> tuple[Sequence[str], Mapping[str, Any]]:
        """The outputs' names and the feed, which an optional input of None is left out of."""
        optional = self._raw.optional
        if optional:
            feed = {name: item for name, item in feed.items() if item is not None or name not in optional}
        for name in self._raw.required:
            if name not in feed:
                missing = [n for n in self._raw.required if n not in feed]
                raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")
        return output_names or self._raw.output_names, feed

    def _fall_back(self, error: EPFail) -> None:
        if not self._enable_fallback:
            raise error
        print(f"EP Error: {error!s} using {self.get_providers()}")
        print(f"Falling back to {self._fallback_providers} and retrying.")
        self.set_providers(self._fallback_providers)
        self.disable_fallback()

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None
    ) -> list[Any]:
        """The named outputs (None: all) for inputs by name, as arrays, lists and dicts."""
        names, feed = self._checked(output_names, input_feed)
        try:
            return self._raw.run(names, feed, run_options)
        except EPFail as error:
            self._fall_back(error)
            return self._raw.run(names, feed, run_options)

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: AsyncCallback,
        user_data: Any = None,
        run_options: RunOptions | None = None,
    ) -> None:
        """Runs on a thread of the session's, which calls `callback(outputs, user_data, error)` at the end."""
        names, feed = self._checked(output_names, input_feed)
        self._raw.run_async(names, feed, callback, user_data, run_options)

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """The same from and to OrtValues."""
        names, feed = self._checked(output_names, input_dict_ort_values)
        try:
            return self._raw.run_values(names, feed, run_options)
        except EPFail as error:
            self._fall_back(error)
            return self._raw.run_values(names, feed, run_options)

    def io_binding(self) -> IOBinding:
        """An empty binding."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs on what is bound."""
        iobinding._run(run_options)

    def end_profiling(self) -> str:
        """Writes the profile that `SessionOptions.enable_profiling` asked for and returns its file's name."""
        return self._raw.end_profiling()

    def get_profiling_start_time_ns(self) -> int:
        """When the profile started, comparable with time.monotonic_ns()."""
        return self._raw.profiling_start()


class InferenceSession(Session):
    """A model from a file or from bytes, in ONNX's or ONNX Runtime's format."""

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Sequence[Provider] | None = None,
        provider_options: Sequence[dict[Any, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        """Providers are names or (name, options) pairs in the order of preference, or names with a list of options. Without
        any, kiln's provider and then the CPU's; without any but those of the session's options, those."""
        super().__init__()
        if isinstance(path_or_bytes, bytes):
            self._model: str | bytes = path_or_bytes
        elif isinstance(path_or_bytes, (str, os.PathLike)):
            self._model = os.fspath(path_or_bytes)
        else:
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        self._model_path = None if isinstance(self._model, bytes) else self._model
        self._sess_options = sess_options
        self._enable_fallback = int(kwargs.get("enable_fallback", 1)) == 1
        self._disabled_optimizers = list(kwargs.get("disabled_optimizers") or [])
        try:
            self._create(providers, provider_options)
        except (ValueError, RuntimeError) as error:
            if not self._enable_fallback:
                raise
            print("*************** EP Error ***************")
            print(f"EP Error {error} when using {providers}")
            print(f"Falling back to {self._fallback_providers} and retrying.")
            print("****************************************")
            try:
                self._create(self._fallback_providers, None)
            except Exception as fallback_error:
                raise fallback_error from error
            self.disable_fallback()

    def _wanted(self, providers: Sequence[Provider] | None, options: Sequence[dict[Any, Any]] | None) -> list[Step]:
        pairs = _providers.normalized(providers, options)
        session_options = self.get_session_options()
        if pairs or not session_options.has_providers():
            first = [n for n in plugin_names() if n in KILN_PROVIDERS][:1]
            return _providers.steps(pairs or [(n, dict[str, str]()) for n in first])
        return list(session_options._providers)

    def _create(self, providers: Sequence[Provider] | None, options: Sequence[dict[Any, Any]] | None) -> None:
        steps = self._wanted(providers, options)
        handle = self.get_session_options()._clone()
        try:
            _defaults.apply(handle, self.get_session_options())
            if self._disabled_optimizers:
                entry = ";".join(self._disabled_optimizers).encode()
                api.add_session_entry(handle, b"optimization.disable_specified_optimizers", entry)
            recorded = "session.record_ep_graph_assignment_info"
            if any(step.name is None for step in steps) and recorded not in self.get_session_options()._entries:
                api.add_session_entry(handle, recorded.encode(), b"1")
            if self.get_session_options()._replaced and any(step.name in KILN_PROVIDERS for step in steps):
                names = ", ".join(self.get_session_options()._replaced)
                warnings.warn(f"kiln's provider takes the model's own values of {names}, not those of add_initializer", stacklevel=3)
            for step in steps:
                step.apply(handle)
            self._raw, self._steps = RawSession(self._model, handle, self.get_session_options()._kept), steps
        finally:
            api.release_session_options(handle)
        given = {s.name: s.options for s in steps}
        entries = self.get_session_options()._entries
        self._provider_options = {n: _resolved.options(n, given.get(n, {}), entries) for n in self.get_providers()}

    def _reset_session(self, providers: Sequence[Provider] | None, options: Sequence[dict[Any, Any]] | None) -> None:
        self._create(providers, options)
