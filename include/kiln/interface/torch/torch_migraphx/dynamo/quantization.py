"""Quantization of exported programs (PT2E), where PyTorch has it."""

from __future__ import annotations

import importlib.util
from typing import Any

import torch


def _missing(what: str) -> ImportError:
    return ImportError(
        f"{what} needs PyTorch 2 with torch.ao.quantization.quantizer: found PyTorch {torch.__version__}; "
        "fx.quantization.get_migraphx_qconfig_mapping quantizes with what this one has"
    )


def __getattr__(name: str) -> Any:
    if name in ("MGXQuantizer", "prepare_pt2e", "convert_pt2e", "export_for_quantization"):
        if importlib.util.find_spec("torch.ao.quantization.quantizer") is None:
            raise _missing(name)
        from . import _pt2e

        return getattr(_pt2e, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
