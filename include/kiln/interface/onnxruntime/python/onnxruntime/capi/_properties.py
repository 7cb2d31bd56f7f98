"""Properties that remember a value and pass it on to ONNX Runtime."""

from __future__ import annotations

import os
import warnings
from typing import Any, Callable


def number(name: str, default: Any, setter: Callable[..., Any], kind: Callable[[Any], Any] = int) -> Any:
    """A number that a function of the C interface sets."""

    def get(self: Any) -> Any:
        return self._values.get(name, default)

    def put(self: Any, value: Any) -> None:
        setter(self._handle, kind(value))
        self._values[name] = kind(value)

    return property(get, put)


def flag(name: str, default: bool, on: Callable[..., Any], off: Callable[..., Any]) -> Any:
    """A flag that two functions turn on and off."""

    def get(self: Any) -> bool:
        return bool(self._values.get(name, default))

    def put(self: Any, value: bool) -> None:
        (on if value else off)(self._handle)
        self._values[name] = bool(value)

    return property(get, put)


def text_option(name: str, default: str, setter: Callable[..., Any]) -> Any:
    """A text or a path."""

    def get(self: Any) -> str:
        return str(self._values.get(name, default))

    def put(self: Any, value: str | os.PathLike[str]) -> None:
        setter(self._handle, os.fsencode(value))
        self._values[name] = os.fspath(value)

    return property(get, put)


def only(name: str, default: Any) -> Any:
    """A property that ONNX Runtime's C interface cannot set: another value than its default is a warning, and remembered."""

    def get(self: Any) -> Any:
        return self._values.get(name, default)

    def put(self: Any, value: Any) -> None:
        if value != default:
            warnings.warn(f"{name} = {value} has no effect: ONNX Runtime's C interface cannot set it", stacklevel=2)
        self._values[name] = value

    return property(get, put)
