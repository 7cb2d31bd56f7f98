"""kiln's plugin execution provider for programs of ONNX Runtime 1.23 and later, by the names that such packages have:

    onnxruntime.register_execution_provider_library("KilnExecutionProvider", onnxruntime_ep_kiln.get_library_path())
"""

from __future__ import annotations

import os
import pathlib

__all__ = ["get_ep_name", "get_ep_names", "get_library_path"]

_FILE = "libkiln_onnxruntime_ep.so"
_VARIABLE = "KILN_ONNXRUNTIME_EP"


def get_library_path() -> str:
    """The plugin's absolute path: what the environment's KILN_ONNXRUNTIME_EP names, or the file of this installation or build
    tree. A FileNotFoundError lists where it was looked for."""
    named = os.environ.get(_VARIABLE)
    if named:
        if not os.path.isfile(named):
            raise FileNotFoundError(f"{_VARIABLE} names {named}, which is no file")
        return os.path.abspath(named)
    folder = pathlib.Path(__file__).resolve().parent
    # Beside the package; in a build tree; in an installation, where the package is in <lib>/kiln/python_onnxruntime.
    places = [folder / _FILE, folder.parents[1] / "lib" / _FILE, folder.parents[2] / _FILE]
    for place in places:
        if place.is_file():
            return str(place)
    tried = ", ".join(map(str, places))
    raise FileNotFoundError(f"kiln's plugin for ONNX Runtime is at none of {tried}; set {_VARIABLE} to its path")


def get_ep_names() -> list[str]:
    """The names that the library may be registered under; the provider has the name that it is registered under."""
    return ["KilnExecutionProvider", "MIGraphXExecutionProvider"]


def get_ep_name() -> str:
    """The provider's own name."""
    return get_ep_names()[0]
