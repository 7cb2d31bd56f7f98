"""Text from language models: folders with genai_config.json, a decoder in ONNX and a tokenizer's files.

The names are those of ONNX Runtime GenAI's Python package; the package `onnxruntime_genai` beside this one has them for
programs that import that."""

from __future__ import annotations

from ._genai import (
    Adapters,
    ArgumentError,
    Config,
    Error,
    Generator,
    GeneratorParams,
    Model,
    NamedTensors,
    Tensor,
    Tokenizer,
    TokenizerStream,
    get_current_gpu_device_id,
    set_current_gpu_device_id,
)
from ._genai_engine import Engine, Request

__all__ = [
    "Adapters",
    "ArgumentError",
    "Config",
    "Engine",
    "Error",
    "Generator",
    "GeneratorParams",
    "Model",
    "NamedTensors",
    "Request",
    "Tensor",
    "Tokenizer",
    "TokenizerStream",
    "get_current_gpu_device_id",
    "set_current_gpu_device_id",
]
