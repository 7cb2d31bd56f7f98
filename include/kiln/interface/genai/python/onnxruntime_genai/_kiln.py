"""Finds kiln: where Python does, or in the build tree that this package is in."""

import importlib.util
import pathlib
import sys

if importlib.util.find_spec("kiln") is None:
    beside = pathlib.Path(__file__).resolve().parents[2] / "python"
    if not (beside / "kiln").is_dir():
        raise ImportError("this onnxruntime_genai is kiln's: it needs the package kiln, which is not installed")
    sys.path.append(str(beside))

from kiln import __version__ as kiln_version  # noqa: E402
from kiln import genai  # noqa: E402

__all__ = ["genai", "kiln_version"]
