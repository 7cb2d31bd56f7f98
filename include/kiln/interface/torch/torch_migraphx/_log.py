"""What environment variables let say: TORCH_MIGRAPHX_LOGLEVEL of all, and one of each of the loggers."""

from __future__ import annotations

import logging
import os

_OWN = {
    "interpreter": "TORCH_MIGRAPHX_LOG_INTERPRETER",
    "fx_lower": "TORCH_MIGRAPHX_LOG_FX_LOWER",
    "dynamo_lower": "TORCH_MIGRAPHX_LOG_DYNAMO_LOWER",
    "dynamo_passes": "TORCH_MIGRAPHX_LOG_DYNAMO_PASSES",
    "partitioner": "TORCH_MIGRAPHX_LOG_PARTITIONER",
}


def logger(name: str) -> logging.Logger:
    """The logger of a part: interpreter, fx_lower, dynamo_lower, dynamo_passes or partitioner."""
    return logging.getLogger(f"torch_migraphx.{name}")


def _level(variable: str) -> int | None:
    text = os.environ.get(variable, "").upper()
    if not text:
        return None
    level = int(text) if text.isdigit() else logging.getLevelName(text)
    if not isinstance(level, int):
        raise ValueError(f"{variable} is DEBUG, INFO, WARNING, ERROR, CRITICAL or a number: found {text!r}")
    return level


def set_up() -> None:
    """Sets the levels that the environment asks for."""
    levels = {"": _level("TORCH_MIGRAPHX_LOGLEVEL"), **{name: _level(variable) for name, variable in _OWN.items()}}
    if all(level is None for level in levels.values()):
        return
    root = logging.getLogger("torch_migraphx")
    if not root.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s: %(message)s"))
        root.addHandler(handler)
        root.propagate = False
    for name, level in levels.items():
        if level is not None:
            (root if not name else logger(name)).setLevel(level)
