"""kiln in role of onnxruntime_genai: ONNX Runtime GenAI's Python package over kiln.genai. What kiln does not have (images,
audio, other providers) raises an Error that says so."""

from ._kiln import genai as genai
from ._devices import (
    get_current_gpu_device_id,
    is_cuda_available,
    is_dml_available,
    is_openvino_available,
    is_qnn_available,
    is_rocm_available,
    is_webgpu_available,
    register_execution_provider_library,
    set_current_gpu_device_id,
    unregister_execution_provider_library,
)
from ._generator import Generator
from ._kiln import kiln_version
from ._log import set_log_callback, set_log_options
from ._media import Audios, Images, MtpGenerator, MultiModalProcessor, StreamingProcessor

Adapters = genai.Adapters
Config = genai.Config
Engine = genai.Engine
GeneratorParams = genai.GeneratorParams
Model = genai.Model
NamedTensors = genai.NamedTensors
Request = genai.Request
Tensor = genai.Tensor
Tokenizer = genai.Tokenizer
TokenizerStream = genai.TokenizerStream

# The version of ONNX Runtime GenAI whose names these are.
__version__ = f"0.12.0+kiln.{kiln_version}"

__all__ = [
    "Adapters",
    "Audios",
    "Config",
    "Engine",
    "Generator",
    "GeneratorParams",
    "Images",
    "Model",
    "MtpGenerator",
    "MultiModalProcessor",
    "NamedTensors",
    "Request",
    "StreamingProcessor",
    "Tensor",
    "Tokenizer",
    "TokenizerStream",
    "get_current_gpu_device_id",
    "is_cuda_available",
    "is_dml_available",
    "is_openvino_available",
    "is_qnn_available",
    "is_rocm_available",
    "is_webgpu_available",
    "register_execution_provider_library",
    "set_current_gpu_device_id",
    "set_log_callback",
    "set_log_options",
    "unregister_execution_provider_library",
]
