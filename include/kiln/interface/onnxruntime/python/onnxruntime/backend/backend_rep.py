"""A model that a backend has prepared."""

from __future__ import annotations

from typing import Any

from .. import InferenceSession, RunOptions


class OnnxRuntimeBackendRep:
    """A session that takes inputs by their order."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session

    def run(self, inputs: Any, **kwargs: Any) -> list[Any]:
        """The outputs for a list of inputs, a dict of them by name, or the one input; RunOptions' members by name."""
        options = RunOptions()
        set_members(options, kwargs)
        names = [i.name for i in self._session.get_inputs()]
        if not isinstance(inputs, dict):
            given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
            if len(given) != len(names):
                raise ValueError(f"the model has {len(names)} inputs ({', '.join(names)}): found {len(given)}")
            inputs = dict(zip(names, given))
        return self._session.run(None, inputs, options)


def set_members(options: Any, values: dict[str, Any]) -> None:
    """Sets those of the values whose names the options have: callers pass the same values to every kind of options."""
    for name, value in values.items():
        if hasattr(options, name):
            setattr(options, name, value)
