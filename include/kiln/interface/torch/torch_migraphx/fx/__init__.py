"""Modules traced and lowered: lower_to_mgx, and what it gives."""

from . import quantization, tools, utils
from .lower import lower_to_mgx
from .mgx_module import MGXModule, SplitModule
from .utils import LowerPrecision

__all__ = ["LowerPrecision", "MGXModule", "SplitModule", "lower_to_mgx", "quantization", "tools", "utils"]
