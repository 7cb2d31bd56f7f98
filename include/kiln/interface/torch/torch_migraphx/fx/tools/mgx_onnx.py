"""Modules from ONNX files."""

from __future__ import annotations

from typing import Any

import kiln

from ..mgx_module import MGXModule


def from_onnx(fname: Any, **options: Any) -> MGXModule:
    """A module that runs an ONNX file: its inputs in the file's order. Options are those of kiln.read()."""
    return MGXModule(kiln.read(fname, **options))
