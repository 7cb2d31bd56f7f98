"""GenAI's log: what generators do, a line each, to standard error, a file or a function."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ._kiln import genai

# GenAI's names. Those of the second line are of parts that kiln does not have, and say nothing.
_FLAGS = {
    "enabled", "warning", "generate_next_token", "append_next_tokens", "hit_eos", "hit_max_length", "model_logits",
    "ansi_tags", "model_input_values", "model_output_shapes", "model_output_values", "ort_lib", "value_stats",
}  # fmt: skip
flags = {name: False for name in _FLAGS}
_filename = ""
_callback: Callable[[str], object] | None = None


def set_log_options(**options: bool | str) -> None:
    """Switches kinds of messages on or off by name, all of them by `enabled`; `filename` is where they go, standard error
    where it is empty."""
    global _filename
    for name, value in options.items():
        if name == "filename" and isinstance(value, str):
            _filename = value
        elif name not in _FLAGS:
            raise genai.ArgumentError(f"log option: expected one of filename, {', '.join(sorted(_FLAGS))}, found '{name}'")
        elif not isinstance(value, bool):
            raise genai.ArgumentError(f"log option '{name}': expected True or False, found {value!r}")
        else:
            flags[name] = value


def set_log_callback(callback: Callable[[str], object] | None) -> None:
    """Messages go to a function; None: back to the file or standard error."""
    global _callback
    _callback = callback


def wants(kind: str) -> bool:
    """Whether messages of a kind are written."""
    return flags["enabled"] and flags[kind]


def write(kind: str, text: str) -> None:
    """Writes a message, if its kind is wanted."""
    if not wants(kind):
        return
    line = f"{kind}: {text}"
    if _callback is not None:
        _callback(line)
    elif _filename:
        with open(_filename, "a", encoding="utf-8") as to:
            to.write(line + "\n")
    else:
        print(line, file=sys.stderr)
