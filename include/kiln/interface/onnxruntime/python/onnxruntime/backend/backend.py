"""The backend: models to sessions. It needs no package of ONNX's; a ModelProto is what has `SerializeToString`."""

from __future__ import annotations

import os
from typing import Any, NoReturn

from .. import InferenceSession, SessionOptions, get_device
from .backend_rep import OnnxRuntimeBackendRep, set_members


class OnnxRuntimeBackend:
    """What ONNX's interface of backends asks for, as methods of the class."""

    @classmethod
    def is_compatible(cls, model: Any, device: str | None = None, **kwargs: Any) -> bool:
        """Whether models may run on the device; which nodes a provider takes shows when the session is made."""
        return device is None or cls.supports_device(device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether a device's kind is here: "CPU" always, "GPU" and "CUDA" where kiln's provider has one."""
        kind = device.split(":")[0].upper()
        return kind == "CPU" or (kind in ("GPU", "CUDA") and get_device() == "GPU")

    @classmethod
    def prepare(cls, model: Any, device: str | None = None, **kwargs: Any) -> OnnxRuntimeBackendRep:
        """A model that is ready to run, from a ModelProto, its bytes, a path or a session; SessionOptions' members by name.
        A provider that fails is an error."""
        if isinstance(model, OnnxRuntimeBackendRep):
            return model
        if device is not None and not cls.supports_device(device):
            raise RuntimeError(f"Incompatible device expected '{device}', got '{get_device()}'")
        if isinstance(model, InferenceSession):
            return OnnxRuntimeBackendRep(model)
        if not isinstance(model, (str, bytes, os.PathLike)):
            if not hasattr(model, "SerializeToString"):
                raise TypeError(f"expected a ModelProto, bytes, a path or a session: found {type(model).__name__}")
            model = model.SerializeToString()
        options = SessionOptions()
        set_members(options, kwargs)
        session = InferenceSession(model, options, enable_fallback=0)
        return OnnxRuntimeBackendRep(session)

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str | None = None, **kwargs: Any) -> list[Any]:
        """The outputs of a model that `prepare` takes."""
        return cls.prepare(model, device, **kwargs).run(inputs, **kwargs)

    @classmethod
    def run_node(cls, node: Any, inputs: Any, device: str | None = None, **kwargs: Any) -> NoReturn:
        """Always an error: a node without a model has no types and no opset."""
        raise NotImplementedError("run_node: make a model of the node and give it to run_model")


is_compatible = OnnxRuntimeBackend.is_compatible
supports_device = OnnxRuntimeBackend.supports_device
prepare = OnnxRuntimeBackend.prepare
run = run_model = OnnxRuntimeBackend.run_model
