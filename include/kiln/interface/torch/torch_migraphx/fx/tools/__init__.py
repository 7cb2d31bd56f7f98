"""Timing, and modules from ONNX files."""

from . import mgx_benchmark, mgx_onnx

__all__ = ["mgx_benchmark", "mgx_onnx"]
