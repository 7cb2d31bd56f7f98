"""kiln in role of onnxruntime: ONNX Runtime's Python package over the C interface of its stock library, with kiln's plugin
execution provider registered under MIGraphX's name and its own."""

from .capi._public import *  # noqa: F403
from .capi._public import get_version_string
from .capi.onnxruntime_inference_collection import InferenceSession as InferenceSession
from .capi.onnxruntime_inference_collection import IOBinding as IOBinding

__version__ = version = get_version_string()
package_name = "onnxruntime"
cuda_version = ""
