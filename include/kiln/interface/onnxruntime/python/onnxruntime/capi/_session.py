"""A session's handle and the calls that run it."""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
from typing import Any, Callable, Mapping, Sequence

from . import _types, _values
from ._api import allocator, api, int_from, owned_text, pointer_from, pointers_from, raise_status, text, unchecked
from ._element_types import numbers_typestr
from ._environment import environment
from ._metadata import ModelMetadata
from ._ort_value import OrtValue
from ._run_options import RunOptions
from ._values import Spans

_run, _release_value = unchecked.run, api.release_value
AsyncCallback = Callable[[Any, Any, str], None]


class _Call:
    """Names of inputs or outputs as C strings, and numpy's types of those that are declared as tensors of numbers. It stays
    for the next run with the same names."""

    __slots__ = ("names", "c_names", "count", "values", "types")

    def __init__(self, names: tuple[str, ...], declared: dict[str, str]) -> None:
        self.names, self.count = names, len(names)
        self.c_names = (ctypes.c_char_p * len(names))(*[n.encode() for n in names])
        self.values: Any = ctypes.c_void_p * len(names)
        self.types = [numbers_typestr(declared.get(n, "")) for n in names]


class RawSession:
    """Owns a session of ONNX Runtime's. Any number of threads may run it."""

    def __init__(self, model: str | bytes, options: int, keep: Sequence[Any] = ()) -> None:
        """`keep` is what must live as long as the session."""
        _release_finished()
        self._kept = list(keep)
        self._release = api.release_session
        self._handle = 0
        if isinstance(model, bytes):
            self._handle = pointer_from(api.create_session_from_array, environment, model, len(model), options)
        else:
            self._handle = pointer_from(api.create_session, environment, os.fsencode(model), options)
        self.inputs = _types.node_args(self._handle, "input")
        self.outputs = _types.node_args(self._handle, "output")
        self.initializers = _types.node_args(self._handle, "initializer")
        self.metadata = ModelMetadata(self._handle)
        self.output_names = tuple(o.name for o in self.outputs)
        self.required = [a.name for a in self.inputs if not a.type.startswith("optional")]
        self.optional = {a.name for a in self.inputs if a.type.startswith("optional")}
        self._inputs = {a.name: a.type for a in self.inputs + self.initializers}
        self._outputs = {a.name: a.type for a in self.outputs}
        self._calls: dict[tuple[str, ...], _Call] = {}
        self._call(self.output_names, self._outputs)

    def __del__(self) -> None:
        if getattr(self, "_handle", 0):
            self._release(self._handle)

    def _call(self, names: tuple[str, ...], declared: dict[str, str]) -> _Call:
        found = self._calls.get(names)
        if found is None or found.names != names:
            if len(self._calls) > 64:  # a program that makes up names
                self._calls.clear()
            found = self._calls[names] = _Call(names, declared)
        return found

    def _feed(self, feed: Mapping[str, Any], values: Any, made: list[int], keep: Spans) -> None:
        for i, (name, item) in enumerate(feed.items()):
            if isinstance(item, OrtValue):
                values[i] = item._handle
                keep += item._kept
            else:
                values[i] = value = _values.to_value(item, self._inputs.get(name, "undeclared"), name, keep)
                made.append(value)

    def _run(self, outputs: _Call, feed: Mapping[str, Any], options: RunOptions | None, keep: Spans) -> Any:
        inputs = self._call(tuple(feed), self._inputs)
        given, got = inputs.values(), outputs.values()
        made: list[int] = []
        try:
            self._feed(feed, given, made, keep)
            handle = options._handle if options else None
            status = _run(
                self._handle, handle, inputs.c_names, given, inputs.count, outputs.c_names, outputs.count, got
            )
        finally:
            for value in made:
                _release_value(value)
        if status:
            raise_status(status)
        return got

    def run(self, output_names: Sequence[str], feed: Mapping[str, Any], options: RunOptions | None) -> list[Any]:
        """Outputs as Python's objects."""
        outputs = self._call(tuple(output_names), self._outputs)
        keep: Spans = []
        return _to_objects(outputs, self._run(outputs, feed, options, keep), keep)

    def run_values(self, output_names: Sequence[str], feed: Mapping[str, Any], options: RunOptions | None) -> list[OrtValue]:
        """Outputs as values."""
        outputs = self._call(tuple(output_names), self._outputs)
        keep: Spans = []
        return self.values(outputs.names, self._run(outputs, feed, options, keep), keep)

    def values(self, names: Sequence[str], handles: Sequence[int | None], kept: Spans) -> list[OrtValue]:
        """Results by their names; `kept` is the memory of the program's that they may be in."""
        out = [OrtValue(v) for v in handles]
        for name, value in zip(names, out if kept else ()):
            value._kept = _values.keepers(value._handle, name in self._inputs, kept)
        return out

    def run_async(
        self,
        output_names: Sequence[str],
        feed: Mapping[str, Any],
        callback: AsyncCallback,
        user_data: Any,
        options: RunOptions | None,
    ) -> None:
        """Runs on a thread of the session's; that thread calls `callback(outputs, user_data, error)`."""
        inputs, outputs = self._call(tuple(feed), self._inputs), self._call(tuple(output_names), self._outputs)
        given, got = inputs.values(), outputs.values()
        _release_finished()
        run = _Pending(self, outputs, callback, user_data, [inputs, given, got, options, feed])
        number = next(_numbers)
        try:
            self._feed(feed, given, run.made, run.spans)
            _pending[number] = run
            handle = options._handle if options else None
            names = (inputs.c_names, given, inputs.count, outputs.c_names, outputs.count)
            api.run_async(self._handle, handle, *names, got, _FINISH, number)
        except BaseException:
            _pending.pop(number, None)
            run.release()
            raise

    def end_profiling(self) -> str:
        """Writes the profile and returns its file's name."""
        return owned_text(api.end_profiling, self._handle, allocator)

    def profiling_start(self) -> int:
        """When the profile started, in nanoseconds of the monotonic clock."""
        return int_from(api.profiling_start, self._handle)

    def assigned(self) -> list[OrtEpAssignedSubgraph]:
        """Which provider has which nodes."""
        return [OrtEpAssignedSubgraph(s) for s in pointers_from(api.assigned_subgraphs, self._handle)]


def _to_objects(outputs: _Call, values: Any, kept: Spans) -> list[Any]:
    out: list[Any] = []
    try:
        for value, typestr, name in zip(values, outputs.types, outputs.names):
            if typestr:
                out.append(_values.array_over(value, typestr, kept))
            else:
                out.append(_values.to_python(value, f"output '{name}'", kept))
    except BaseException:
        for value in values[len(out) + 1 :]:  # the one that failed is released
            _release_value(value)
        raise
    return out


class _Pending:
    """What an asynchronous run needs until its end."""

    def __init__(
        self, session: RawSession, outputs: _Call, callback: AsyncCallback, user_data: Any, keep: list[Any]
    ) -> None:
        self.session, self.outputs, self.callback, self.user_data = session, outputs, callback, user_data
        self.keep = keep
        self.made: list[int] = []
        self.spans: Spans = []

    def release(self) -> None:
        for value in self.made:
            api.release_value(value)


_pending: dict[int, _Pending] = {}
# Sessions whose runs have ended: the thread that says so is the session's own, and must not release it.
_finished: list[RawSession] = []
_in_callback = threading.local()


def _release_finished() -> None:
    if not getattr(_in_callback, "value", False):
        _finished.clear()


_numbers = itertools.count(1)


def _finish(number: int, values: Any, count: int, status: int | None) -> None:
    run = _pending.pop(number)
    run.release()
    outputs: list[Any] = []
    error = ""
    try:
        if status:
            raise_status(status)
        outputs = _to_objects(run.outputs, [values[i] for i in range(count)], run.spans)
    except Exception as failure:
        error = str(failure)
    _finished.append(run.session)
    _in_callback.value = True
    try:
        run.callback(outputs, run.user_data, error)
    finally:
        _in_callback.value = False


_Finish: Any = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_void_p
)
_FINISH = _Finish(_finish)


class OrtEpAssignedNode:
    """A node that a provider has: `name`, `domain` and `op_type`."""

    def __init__(self, handle: int) -> None:
        self.name = text(pointer_from(api.assigned_node_name, handle))
        self.domain = text(pointer_from(api.assigned_node_domain, handle))
        self.op_type = text(pointer_from(api.assigned_node_operator, handle))


class OrtEpAssignedSubgraph:
    """Nodes that one provider has: `ep_name` and `get_nodes()`."""

    def __init__(self, handle: int) -> None:
        self.ep_name = text(pointer_from(api.assigned_ep, handle))
        self._nodes = [OrtEpAssignedNode(n) for n in pointers_from(api.assigned_nodes, handle)]

    def get_nodes(self) -> list[OrtEpAssignedNode]:
        """The nodes, as they were before the provider took them."""
        return list(self._nodes)


class Binding:
    """Owns a binding of a session's inputs and outputs."""

    def __init__(self, session: RawSession) -> None:
        self._release = api.release_binding
        self._handle = pointer_from(api.create_binding, session._handle)
        self.session = session

    def __del__(self) -> None:
        if getattr(self, "_handle", 0):
            self._release(self._handle)

    def run(self, options: RunOptions | None) -> None:
        """Runs the session on what is bound."""
        api.run_with_binding(self.session._handle, options._handle if options else None, self._handle)

    def outputs(self) -> list[int]:
        """New references to the outputs of the last run."""
        out, count = ctypes.c_void_p(), ctypes.c_size_t()
        api.bound_outputs(self._handle, allocator, ctypes.byref(out), ctypes.byref(count))
        if not count.value:
            return []
        values = list(ctypes.cast(out, ctypes.POINTER(ctypes.c_void_p))[: count.value])
        api.free(allocator, out)
        return [v or 0 for v in values]


__all__ = ["Binding", "OrtEpAssignedNode", "OrtEpAssignedSubgraph", "RawSession"]
