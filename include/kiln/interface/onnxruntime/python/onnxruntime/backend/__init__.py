"""ONNX's interface of backends: `prepare` makes a session of a model, `run` runs it."""

from .backend import OnnxRuntimeBackend as OnnxRuntimeBackend
from .backend import is_compatible as is_compatible
from .backend import prepare as prepare
from .backend import run as run
from .backend import run_model as run_model
from .backend import supports_device as supports_device
from .backend_rep import OnnxRuntimeBackendRep as OnnxRuntimeBackendRep
